"""The addresses of a project that only submits."""

from django.urls import include, path

urlpatterns = [path("", include("django_sitemapkit.urls"))]
