"""The system checks of the setting ``SITEMAPKIT_SUBMIT``."""

from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.checks.base import Found, check, sites_in_settings
from django_sitemapkit.extras import how_to_install
from django_sitemapkit.reading.validation import Mistake
from django_sitemapkit.submission.options import submit_options


@check()
def check_submit() -> Found:
    """Report a value of ``SITEMAPKIT_SUBMIT`` that is not valid."""
    try:
        submit_options()
    except ImproperlyConfigured as error:
        yield Mistake(
            "sitemapkit.E160", str(error), "See docs/settings.md for the keys and their values."
        )


@check()
def check_credentials() -> Found:
    """Report a credentials file or a package that Search Console needs but is missing."""
    try:
        path = submit_options().google_credentials
    except ImproperlyConfigured:
        return
    if not path:
        return
    for name in ("google.oauth2", "requests"):
        if not _is_importable(name):
            yield Mistake(
                "sitemapkit.E161",
                f"Search Console needs {name}.",
                f"Install the extra: {how_to_install('google')}.",
            )
    if not Path(path).is_file():
        yield Mistake(
            "sitemapkit.E161",
            f'SITEMAPKIT_SUBMIT["google_credentials"] is {str(path)!r}, which is not a file.',
            "Download the JSON key of a service account from the Google Cloud console.",
        )


@check()
def check_properties() -> Found:
    """Report keys of ``google_properties`` that are not sites: their properties are never used."""
    known = [site.key for site in sites_in_settings()]
    try:
        properties = submit_options().google_properties
    except ImproperlyConfigured:
        return
    for key in properties if known else ():  # Those in the database can change.
        if key not in known:
            yield Mistake(
                "sitemapkit.E168",
                f'SITEMAPKIT_SUBMIT["google_properties"] names the site {key!r},'
                " which does not exist.",
                f"Use the keys of sites, such as {known[0]!r}.",
            )


def _is_importable(module: str) -> bool:
    """Return whether a module, such as ``google.oauth2``, is installed."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
