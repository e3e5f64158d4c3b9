"""The system check of the setting ``SITEMAPKIT_SUBMIT``."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.checks.base import Found, check, sites_in_settings
from django_sitemapkit.extras import how_to_install
from django_sitemapkit.reading.validation import Mistake
from django_sitemapkit.submission.options import submit_options


@check()
def check_submit() -> Found:
    """Report what is wrong with ``SITEMAPKIT_SUBMIT``: its values, or what these name."""
    try:
        options = submit_options()
    except ImproperlyConfigured as error:
        yield Mistake(
            "sitemapkit.E160", str(error), "See docs/settings.md for the keys and their values."
        )
        return
    if options.google_credentials:
        yield from _credentials_mistakes(Path(options.google_credentials))
    known = [site.key for site in sites_in_settings()]
    for key in options.google_properties if known else ():  # Those in the database can change.
        if key not in known:
            yield Mistake(
                "sitemapkit.E168",
                f'SITEMAPKIT_SUBMIT["google_properties"] names the site {key!r},'
                " which does not exist.",
                f"Use the keys of sites, such as {known[0]!r}.",
            )


def _credentials_mistakes(path: Path) -> Iterator[Mistake]:
    """Yield a mistake if a package that Search Console needs, or the credentials, are missing."""
    for name in ("google.oauth2", "requests"):
        if find_spec(name.partition(".")[0]) is None or find_spec(name) is None:
            yield Mistake(
                "sitemapkit.E161",
                f"Search Console needs {name}.",
                f"Install the extra: {how_to_install('google')}.",
            )
    if not path.is_file():
        yield Mistake(
            "sitemapkit.E161",
            f'SITEMAPKIT_SUBMIT["google_credentials"] is {str(path)!r}, which is not a file.',
            "Download the JSON key of a service account from the Google Cloud console.",
        )
