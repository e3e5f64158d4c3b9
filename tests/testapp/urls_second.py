"""The URLconf of a second site: other addresses for the sitemaps and for readings."""

from django.urls import include, path, re_path

from tests.urls import view

urlpatterns = [
    path("maps/", include("django_sitemapkit.urls")),
    re_path(r"^maps/levels/(?P<level>-?[0-9]+)/$", view, name="reading"),
]
