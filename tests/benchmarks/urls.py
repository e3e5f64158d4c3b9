from importlib import import_module

from django.apps import apps
from django.conf import settings
from django.http import HttpResponse
from django.urls import include, path


def view(request, **kwargs):
    """Answer for every page that the sitemaps list."""
    return HttpResponse("ok")


urlpatterns = [
    path("<slug:category>/<str:slug>/", view, name="product"),
    path("<int:year>/<slug:category>/<str:slug>/", view, name="article"),
]

if settings.BENCHMARKS_PAGE:
    from tests.benchmarks import web_pages

    urlpatterns = [
        path("robots.txt", web_pages.robots),
        path(
            "<slug:category>/<str:slug>/",
            getattr(web_pages, settings.BENCHMARKS_PAGE),
            name="product",
        ),
    ]

# Each contender has its own views and no other's.
if apps.is_installed("django_sitemapkit"):
    urlpatterns.insert(0, path("", include("django_sitemapkit.urls")))
OLD_VIEWS = ("django.contrib.sitemaps", "django_sitemapkit.contrib.sitemaps")
for app in filter(apps.is_installed, OLD_VIEWS):
    views = import_module(f"{app}.views")

    from tests.benchmarks.contrib import SITEMAPS

    urlpatterns[:0] = [
        path(
            "contrib/sitemap.xml",
            views.index,
            {"sitemaps": SITEMAPS, "sitemap_url_name": "contrib-sitemap"},
        ),
        path(
            "contrib/sitemap-<section>.xml",
            views.sitemap,
            {"sitemaps": SITEMAPS},
            name="contrib-sitemap",
        ),
    ]
