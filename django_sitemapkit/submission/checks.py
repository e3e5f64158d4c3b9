"""System checks of the setting ``SITEMAPKIT_SUBMIT``."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.core import checks
from django.core.checks import CheckMessage, register
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.submission.options import submit_options


@register()
def check_submit(**options: Any) -> list[CheckMessage]:
    """E160: SITEMAPKIT_SUBMIT cannot be used."""
    try:
        submit_options()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="sitemapkit.E160")]
    return []


@register()
def check_credentials(**options: Any) -> list[CheckMessage]:
    """E161: what Search Console needs is missing."""
    try:
        path = submit_options().google_credentials
    except ImproperlyConfigured:
        return []  # E160 says so.
    if not path:
        return []
    hint = 'Install the extra: pip install "django-sitemapkit[google]".'
    missing = [name for name in ("google.oauth2", "requests") if not _is_installed(name)]
    messages: list[CheckMessage] = [
        checks.Error(f"Search Console needs {name}.", hint=hint, id="sitemapkit.E161")
        for name in missing
    ]
    if not Path(path).is_file():
        messages.append(
            checks.Error(
                f'SITEMAPKIT_SUBMIT["google_credentials"] is {str(path)!r}, which is not a file.',
                hint="Download the JSON key of a service account from the Google Cloud console.",
                id="sitemapkit.E161",
            )
        )
    return messages


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
