"""The key file of IndexNow."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from django_sitemapkit.submission.options import KEY, submit_options


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
