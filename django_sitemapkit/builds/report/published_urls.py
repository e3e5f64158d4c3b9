"""Where one URL is published: in which files, since when, and with which values."""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from django_sitemapkit.builds.manifest import keys_of
from django_sitemapkit.builds.stored_files import entry_of, holds_location, stored_entries_of
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.inspection import paging_key
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import section_of
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import page_address
from django_sitemapkit.sites import SitemapSite


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedUrl:
    """A URL in a published file."""

    address: str
    """The address of the file."""
    changed_at: dt.datetime | None
    """When the file's content last changed."""
    values: Mapping[str, str]
    """The optional tags of the URL."""
    times: int = 1
    """How often the file lists it."""


@dataclass(slots=True, kw_only=True)
class PublishedSearch:
    """What a look at the published files of a site has found of a URL."""

    build: Build | None
    """The published build; None if nothing is published."""
    found: list[PublishedUrl] = field(default_factory=list)
    """The files that list it."""
    unread: int = 0
    """How many files were not read: the time was over, or another file lists the URL."""
    failures: list[str] = field(default_factory=list)
    """What is wrong with files that could not be read."""


def search_published(
    site: SitemapSite,
    location: str,
    *,
    section: str = "",
    pk: Any = None,
    seconds: float | None = None,
) -> PublishedSearch:
    """Look for a URL in normal form in the published files of a site.

    All of them are read. With ``seconds`` the look ends at the first file that lists the URL, or
    when the time is over; a row of ``section`` with the primary key ``pk`` is looked for first
    where it has to be.
    """
    build = Build.objects.published(site)
    search = PublishedSearch(build=build)
    if build is None:
        return search  # Without builds, a project needs no storage.
    rows = list(Place.objects.in_build(build).pages())
    end = None if seconds is None else monotonic() + seconds
    storage = SitemapStorage()
    for number, row in enumerate(_likely_first(site, rows, section, pk)):
        if end is not None and (search.found or (number and monotonic() > end)):
            search.unread = len(rows) - number
            break
        try:
            with storage.open(row.page.name) as file:
                listed = holds_location(file, location)
            if listed:
                search.found.append(_published_url(site, row, location, storage))
        except Exception as error:  # noqa: BLE001  each storage has errors of its own
            search.failures.append(
                f"{row.page.name} cannot be read: {error}. Run validate_sitemaps --repair to store"
                " it again."
            )
    return search


def find_url(site: SitemapSite, url: str) -> Iterator[str]:
    """Yield the addresses of the published files that list a URL.

    ``url`` is a path or an absolute URL of the site; raises InvalidValue where it cannot be. All
    files are read. Raises StorageFailure in the end where one is lost or damaged.
    """
    search = search_published(site, site.scope().normalise(url))
    yield from (each.address for each in search.found)
    if search.failures:
        raise StorageFailure(search.failures[0])


def _likely_first(site: SitemapSite, rows: list[Place], name: str, pk: Any) -> Iterator[Place]:
    """Yield the file that a row of a section should be in, the section's others, and the rest."""
    own = [row for row in rows if row.section == name]
    if own and pk is not None and (likely := _file_of(site, own, name, pk)):
        yield likely
        own.remove(likely)
    yield from own
    yield from (row for row in rows if row.section != name)


def _file_of(site: SitemapSite, rows: list[Place], name: str, pk: Any) -> Place | None:
    """Return the file of a section whose key range has a row; None where that is not known."""
    section = section_of(site, name)
    if section is None or section.keyset is None:
        return None
    try:
        key = paging_key(section, pk)
        if key is None:
            return None
        return rows[section.keyset.place_of(key, [keys_of(row, section) for row in rows])]
    except Exception:  # noqa: BLE001  the files may be by another key than the section has now
        return None


def _published_url(
    site: SitemapSite, row: Place, location: str, storage: SitemapStorage
) -> PublishedUrl:
    entries = map(entry_of, stored_entries_of([row], storage))
    found = [entry for entry in entries if entry.location == location]
    return PublishedUrl(
        address=page_address(site, row.section, row.number),
        changed_at=row.page.lastmod,
        values=found[0].tags,
        times=len(found),
    )
