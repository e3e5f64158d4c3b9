from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path
from wagtail import urls as wagtail_urls
from wagtail.admin import urls as admin_urls
from wagtail.contrib.sitemaps.views import sitemap

urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("old-sitemap.xml", sitemap, name="old-sitemap"),
    path("cms/", include(admin_urls)),
    *i18n_patterns(path("", include(wagtail_urls)), prefix_default_language=False),
]
