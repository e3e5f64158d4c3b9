"""The addresses of the site map for people; include them next to ``django_sitemapkit.urls``."""

from django.urls import path, re_path

from django_sitemapkit.contrib.people import views

app_name = "sitemapkit_people"

urlpatterns = [
    path("sitemap/", views.html_sitemap, name="html"),
    re_path(
        r"^sitemap/(?P<section>[a-z0-9_-]+)/(?P<number>[1-9][0-9]{0,8})/\Z",
        views.html_sitemap_page,
        name="html-page",
    ),
]
