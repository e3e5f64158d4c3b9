"""The example project's addresses, with an icon, and those that a theme of the admin needs."""

from django.apps import apps
from django.http import HttpResponse
from django.urls import include, path

from django_sitemapkit.contrib.people import parts
from example_project.urls import urlpatterns as examples

# Few entries at a time, so that little data has several parts.
parts.MAX_ENTRIES = 10
parts.parts_of.__kwdefaults__["rows"] = parts.MAX_ENTRIES

THEMES = ("baton", "grappelli")
"""The themes that have addresses of their own."""

urlpatterns = [
    # Browsers ask for it on their own, and log that it is missing.
    path("favicon.ico", lambda request: HttpResponse(status=204)),
    *(path(f"{name}/", include(f"{name}.urls")) for name in THEMES if apps.is_installed(name)),
    *examples,
]
