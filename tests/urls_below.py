"""A URLconf that includes the package's URLs below the root."""

from django.urls import include, path

urlpatterns = [path("deep/", include("django_sitemapkit.urls"))]
