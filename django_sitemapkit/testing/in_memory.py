"""Builds in memory, which leave nothing behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.db import router, transaction
from django.test import override_settings

from django_sitemapkit.builds import BuildResult, build
from django_sitemapkit.builds.manifest import parse_xml_line, stored_entries_of
from django_sitemapkit.conf import caching_sites
from django_sitemapkit.models import Build, Place
from django_sitemapkit.protocol.entries import UrlEntry
from django_sitemapkit.publishing import ALIAS
from django_sitemapkit.sites import SitemapSite, all_sites

IN_MEMORY = {"BACKEND": "django.core.files.storage.InMemoryStorage"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltSitemaps:
    """The result and the entries of a build in memory.

    Example::

        with built_sitemaps() as sitemaps:
            assert sitemaps.result.skipped == 0
            assert [entry.priority for entry in sitemaps.entries] == ["0.8"]
    """

    result: BuildResult
    """The result of the build: its status, files, problems and warnings."""
    entries: tuple[UrlEntry, ...]
    """The entries of all its files, in the order of the index."""

    @property
    def locations(self) -> list[str]:
        """The URLs of all entries."""
        return [entry.location for entry in self.entries]


@contextmanager
def built_sitemaps(*, site: str | None = None) -> Iterator[BuiltSitemaps]:
    """Build a site as ``build_sitemaps`` does, into memory, and serve that build within the block.

    ``site`` is the key of the site; it can be omitted if there is only one. Nothing is exported,
    and nothing is submitted to search engines. All else follows your settings and publish gates: a
    build that they hold for review has the status "held". At the end of the block, everything that
    was written to the database within it is rolled back.

    Raises ValueError for an unknown site, and what `django_sitemapkit.builds.build` raises, such as
    NothingToPublish if no section has a URL. ::

        with built_sitemaps() as sitemaps:
            assert "https://www.example.com/about/" in sitemaps.locations
            assert_valid_sitemap(self.client.get("/sitemap-pages-1.xml.gz"))
    """
    with caching_sites():
        here = site_with_key(site)
    database = router.db_for_write(Build)
    with (
        override_settings(
            STORAGES={**settings.STORAGES, ALIAS: IN_MEMORY},
            SITEMAPKIT_EXPORT_STORAGE=None,
            SITEMAPKIT_SUBMIT={},
        ),
        transaction.atomic(using=database),
    ):
        result = build(here)
        # Its storage was empty, so it has a file of its own for each page, and is not "unchanged".
        pages = Place.objects.filter(build=result.build).pages()
        entries = map(parse_xml_line, stored_entries_of(pages))
        yield BuiltSitemaps(result=result, entries=tuple(entries))
        transaction.set_rollback(True, using=database)


def site_with_key(key: str | None) -> SitemapSite:
    """Return the site with this key, or for None the only site.

    Raises ValueError if there is no such site, or for None more than one.
    """
    sites = all_sites()
    found = [site for site in sites if key in {None, site.key}]
    if len(found) == 1:
        return found[0]
    keys = ", ".join(repr(site.key) for site in sites)
    why = "There is more than one site" if key is None else f"There is no site {key!r}"
    raise ValueError(f"{why}. Choose one of these keys with site=…: {keys}.")
