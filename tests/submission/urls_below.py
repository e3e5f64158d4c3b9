"""The addresses of a project that serves the key file in a folder."""

from django.urls import include, path

urlpatterns = [
    path("", include("tests.submission.urls")),
    path("maps/", include("django_sitemapkit.submission.urls")),
]
