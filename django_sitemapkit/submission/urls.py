"""The key file of IndexNow; include this at the root, for it speaks for all URLs below it."""

from django.http import HttpRequest, HttpResponse
from django.urls import path, register_converter
from django.views.decorators.http import require_safe

from django_sitemapkit.submission.options import KEY, submit_options

app_name = "sitemapkit_submission"


class KeyConverter:
    """A path converter that matches only the IndexNow key of the settings."""

    regex = KEY.pattern

    def to_python(self, value: str) -> str:
        """Return the key. Raises ValueError for any other text, so that the URL does not match."""
        if value != submit_options().indexnow_key:
            raise ValueError(value)
        return value

    def to_url(self, value: str) -> str:
        """Return the key."""
        return value


@require_safe
def key_file(request: HttpRequest, key: str) -> HttpResponse:
    """Answer with the key as text, which proves that its owner controls the host."""
    return HttpResponse(key, content_type="text/plain; charset=utf-8")


register_converter(KeyConverter, "sitemapkit_indexnow_key")

urlpatterns = [path("<sitemapkit_indexnow_key:key>.txt", key_file, name="key")]
