"""The package's URL patterns; include them at the root of the URLconf."""

from django.urls import path, re_path

from django_sitemapkit import views

app_name = "sitemapkit"

urlpatterns = [
    path("sitemap.xml", views.index, name="index"),
    re_path(
        # [0-9] and not \d: "१" is a digit too, and would be a second address of page 1. Nine
        # digits are more pages than there can be, and few enough for int().
        r"^sitemap-(?P<section>[a-z0-9_-]+)-(?P<number>[1-9][0-9]{0,8})"
        r"\.(?P<form>(?:xml|txt)(?:\.gz)?)\Z",
        views.page,
        name="page",
    ),
]
