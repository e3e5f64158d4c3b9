"""The system checks of the setting ``SITEMAPKIT_SUBMIT``."""

from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.checks.base import Found, check
from django_sitemapkit.submission.options import submit_options


@check("sitemapkit.E160")
def check_submit() -> Found:
    """Report a setting that cannot be used."""
    try:
        submit_options()
    except ImproperlyConfigured as error:
        yield str(error), "See docs/settings.md for the keys and their values."


@check("sitemapkit.E161")
def check_credentials() -> Found:
    """Report what Search Console needs and is missing."""
    try:
        path = submit_options().google_credentials
    except ImproperlyConfigured:
        return
    if not path:
        return
    for name in ("google.oauth2", "requests"):
        if not _is_installed(name):
            hint = 'Install the extra: pip install "django-sitemapkit[google]".'
            yield f"Search Console needs {name}.", hint
    if not Path(path).is_file():
        yield (
            f'SITEMAPKIT_SUBMIT["google_credentials"] is {str(path)!r}, which is not a file.',
            "Download the JSON key of a service account from the Google Cloud console.",
        )


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
