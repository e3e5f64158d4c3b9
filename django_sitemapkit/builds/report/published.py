"""What is published: the file at an address, one URL in all files, and whether these are whole.

Also what a roll-back leaves to come, and the problems and checks of each section. How many
published URLs match is counted in the stored pages, whose bytes are not parsed.
"""

import datetime as dt
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from django.db.models import Exists, FilteredRelation, Q, Sum

from django_sitemapkit.builds.manifest import (
    FindUrls,
    answering_places,
    damage_of,
    entries_at,
    find_all,
    key_range_of,
    locations_of,
)
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.inspection import paging_key
from django_sitemapkit.models import Build, ExclusionRule, Place, Publication
from django_sitemapkit.overrides import section_of
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.registry import EXTRA_URLS
from django_sitemapkit.rendering import page_address
from django_sitemapkit.sites import SitemapSite

SECTIONS_PER_QUERY = 100
"""Sections looked for by one query."""

MAX_MATCHES = 20
"""The first matches, which are kept."""

COUNT_SECONDS = 1.0
"""How long a request counts; another one goes on where it has ended."""

PAGES_PER_QUERY = 100
"""How many stored pages are looked up at a time."""


def published_build_and_file(
    site: SitemapSite, section: str, number: int
) -> tuple[Build | None, Place | None]:
    """Return the build that a site serves, and the file at an address, each None if there is none.

    If only an earlier build has the address, it is that build's file through the grace period, so
    that a reader of the earlier index finds all that it lists; but not if editors have excluded the
    last URL of the page.
    """
    wanted = Q(places__section=section, places__number=number)
    builds = Build.objects.annotate(file=FilteredRelation("places", condition=wanted))
    builds = builds.select_related("file__page").defer("file__override_hashes")  # type: ignore[misc]
    publication = Publication.objects.filter(site=site.key)
    published = builds.filter(pk__in=publication.values("build")).first()
    if published is None:
        return None, None
    file: Place | None = getattr(published, "file", None)
    if file is None or file.status != Place.Status.DONE:
        rows = Place.objects.answering(site).filter(section=section, number=number)
        file = rows.defer("override_hashes").first()
    return published, file if file and file.status == Place.Status.DONE else None


def earlier_pages(site: SitemapSite, live: Build) -> Collection[Place]:
    """Return the pages of earlier builds that still answer at addresses the live build lacks."""
    keys = [
        key
        for status, build, key in answering_places(site).values()
        if status == Place.Status.DONE and build != live.pk
    ]
    return Place.objects.select_related("page").defer("override_hashes").in_bulk(keys).values()


def sections_not_in(build: Build, names: Sequence[str]) -> set[str]:
    """Return those of the sections that a build does not have, by a lookup for each.

    Extra URLs never count as missing: like all that editors change, they are published by a build.
    """
    names = [name for name in names if name != EXTRA_URLS]
    rows = Place.objects.in_build(build).exclude(Place.withdrawing_condition())
    missing: set[str] = set()
    for start in range(0, len(names), SECTIONS_PER_QUERY):
        batch = names[start : start + SECTIONS_PER_QUERY]
        looks = [Exists(rows.filter(section=name)) for name in batch]
        (found,) = Build.objects.filter(pk=build.pk).values_list(*looks)
        missing.update(name for name, there in zip(batch, found, strict=True) if not there)
    return missing


def is_served_live(site: SitemapSite, section: str) -> bool:
    """Return whether a section is served live: no published build that is served has it."""
    return bool(sections_served_live(Build.objects.published(site), [section]))


def sections_served_live(build: Build | None, names: Sequence[str]) -> set[str]:
    """Return those of the sections that are served live while a site serves this build.

    With SITEMAPKIT_SERVE_FROM = "auto" they are those that the build does not have, or all without
    a build; with "live" they are all, and with "published" none is.
    """
    if settings.SERVE_FROM == "published":
        return set()
    return sections_not_in(build, names) if build and settings.SERVE_FROM == "auto" else {*names}


def is_complete(build: Build) -> bool:
    """Return whether a build made all its files: it was published, or is held for review."""
    return build.published_at is not None or build.status == Build.Status.HELD


def rollback_states(states: Iterable[Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the sites' states whose next build undoes a roll-back, each with what comes back.

    What comes back is a state with the code "returning" and the id of the build that was rolled
    back, and with the URL counts of the live build and of that one.
    """
    rolled_back = [each for each in states if each.rolled_back]
    wanted = {pk for each in rolled_back for pk in (each.build, each.rolled_back.pk)}
    places = Place.objects.filter(build__in=wanted)
    urls = {total["build"]: total["urls"] for total in places.totals("build")}
    for each in rolled_back:
        counts = {"before": urls.get(each.build, 0), "urls": urls.get(each.rolled_back.pk, 0)}
        yield each, {"code": "returning", "build": each.rolled_back.pk, **counts}


def problems_by_section(build: Build) -> dict[str, int]:
    """Return how many rows and values a build left out, by section; only sections with any."""
    kept: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    faulty = Place.objects.filter(build=build).exclude(problems={}, skipped=0)
    for name, kinds, rows in faulty.values_list("section", "problems", "skipped"):
        kept[name] += sum(kind["count"] for kind in kinds.values())
        skipped[name] += rows
    return dict(kept | skipped)


def checked_at_by_section(build: Build, sections: Collection[str]) -> dict[str, dt.datetime]:
    """Return by section when the last build ended that compared it with its rows."""
    checkers = build.checking_build_ids(sections)
    moments: dict[int, Any] = {build.pk: build.ended_at}
    if others := set(checkers.values()) - {build.pk}:
        ended = Build.objects.filter(pk__in=others).exclude(ended_at=None)
        moments |= dict(ended.values_list("pk", "ended_at"))
    return {name: moments[pk] for name, pk in checkers.items() if pk in moments}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedUrl:
    """A URL in a published file."""

    address: str
    """The address of the file."""
    section: str
    """The section of the file."""
    changed_at: dt.datetime | None
    """When the file's content last changed."""
    values: Mapping[str, str]
    """The optional tags of the URL."""
    times: int = 1
    """How often the file lists it."""


@dataclass(slots=True, kw_only=True)
class PublishedSearch:
    """The result of a search for a URL in the published files of a site."""

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
    every: bool = False,
) -> PublishedSearch:
    """Look for a URL in normal form in the published files of a site.

    All of them are read, unless ``seconds`` is given: then the search ends when the time is over
    and, unless ``every`` file that lists the URL is wanted, at the first that does. A row of
    ``section`` with the primary key ``pk`` is looked for first where it has to be. ``failures`` of
    the result says which files cannot be read. The result is empty if nothing is published.
    """
    build = Build.objects.published(site)
    search = PublishedSearch(build=build)
    if build is None:
        return search  # Without builds, a project needs no storage.
    rows = list(Place.objects.in_build(build).pages())
    end = None if seconds is None else monotonic() + seconds
    for number, row in enumerate(_likeliest_first(site, rows, section, pk)):
        is_enough = search.found and not every
        if end is not None and (is_enough or (number and monotonic() > end)):
            search.unread = len(rows) - number
            break
        try:
            found = entries_at(row, location)
        except StorageFailure as error:
            search.failures.append(f"{error}. Run validate_sitemaps --repair to store it again.")
            continue
        if found:
            search.found.append(
                PublishedUrl(
                    address=page_address(site, row.section, row.number),
                    section=row.section,
                    changed_at=row.page.lastmod,
                    values=found[0].tags,
                    times=len(found),
                )
            )
    return search


def last_build_with(
    site: SitemapSite, location: str, live: Build, *, seconds: float
) -> Build | None:
    """Return the build that listed a URL in normal form last, other than the live one, or None.

    It was published and still has its files. Files that the live build has too are not read. The
    search ends when the time is over.
    """
    builds = Build.objects.publishable(site.key).exclude(Q(published_at=None) | Q(pk=live.pk))
    known = Place.objects.in_build(live).pages().values("page")
    end, read = monotonic() + seconds, set[str]()
    for build in builds.order_by("-published_at"):
        for row in Place.objects.in_build(build).pages().exclude(page__in=known):
            if monotonic() > end:
                return None
            with suppress(StorageFailure):
                if row.page.name not in read and entries_at(row, location):
                    return build
            read.add(row.page.name)
    return None


def _likeliest_first(site: SitemapSite, rows: list[Place], name: str, pk: Any) -> Iterator[Place]:
    """Yield the file that should list row ``pk`` of a section, its other files, then the rest."""
    own = [row for row in rows if row.section == name]
    if own and pk is not None and (likely := _likely_file_of(site, own, name, pk)):
        yield likely
        own.remove(likely)
    yield from own
    yield from (row for row in rows if row.section != name)


def _likely_file_of(site: SitemapSite, rows: list[Place], name: str, pk: Any) -> Place | None:
    """Return the file of a section whose key range has the row ``pk``; None if it is not known."""
    section = section_of(site, name)
    if section is None or section.keyset is None:
        return None
    try:
        key = paging_key(section, pk)
        if key is None:
            return None
        return rows[
            section.keyset.index_of_range(key, [key_range_of(row, section) for row in rows])
        ]
    except Exception:  # noqa: BLE001  the files may be by another key than the section has now
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedFile:
    """A published file, with its difference from the manifest, if any."""

    address: str
    """The URL it is served at."""
    name: str
    """Its name in the storage."""
    section: str
    """The section of its page; "" for an index."""
    fault: str
    """Why it is not intact: lost, unreadable or changed. "" where it is intact."""


def verify_published(site: SitemapSite) -> Iterator[VerifiedFile]:
    """Yield every file that a site has published, indexes first, once it has been read.

    A file is intact if it is stored and its SHA-256 is the recorded one. A page must also be
    complete gzip, well-formed XML, and list the recorded number of URLs.
    """
    build = Build.objects.published(site)
    storage = SitemapStorage()
    files = Place.objects.in_build(build).filter(status=Place.Status.DONE) if build else ()
    for file in sorted(files, key=lambda file: (file.section != "", file.position, file.number)):
        yield VerifiedFile(
            address=page_address(site, file.section, file.number),
            name=file.page.name,
            section=file.section,
            fault=_fault_of(storage, file),
        )


def _fault_of(storage: SitemapStorage, file: Place) -> str:
    """Return why a published file is not intact, such as lost or damaged; "" if it is intact."""
    try:
        with storage.open(file.page.name) as content:
            damage = damage_of(file, content)
    except Exception as error:  # noqa: BLE001  each storage has errors of its own
        return f"{file.page.name} cannot be read: {error}"
    return damage and f"{file.page.name} is damaged: {damage}"


@dataclass(slots=True, kw_only=True)
class UrlMatches:
    """A counter of matching URLs that can go on where it stopped: those read and those matched."""

    build: Build | None
    """The build whose stored pages are read; None if the live sections are."""
    total: int | None
    """How many URLs there are; None as long as the live sections have not been read."""
    read: int = 0
    """How many were read."""
    matched: int = 0
    """How many of these match: a URL that two sections list counts twice."""
    last: int = 0
    """The primary key of the last place that was read."""
    locations: list[str] = field(default_factory=list)
    """The first matches."""

    @property
    def complete(self) -> bool:
        """Whether all URLs were read, so that ``matched`` is exact."""
        return self.read == self.total

    def add(self, locations: list[str]) -> None:
        """Count some URLs as matching."""
        self.matched += len(locations)
        self.locations += locations[: MAX_MATCHES - len(self.locations)]

    def continue_reading(self, find: FindUrls, seconds: float = COUNT_SECONDS) -> None:
        """Count on for ``seconds``, up to the end of a stored page; at least one page is read.

        ``find`` finds the URLs that match. Raises StorageFailure where a page is lost or damaged.
        """
        end = monotonic() + seconds
        rows = Place.objects.in_build(self.build).pages().order_by("pk")  # type: ignore[arg-type]
        while some := list(rows.filter(pk__gt=self.last)[:PAGES_PER_QUERY]):
            for row in some:
                for locations in locations_of(row, find):
                    self.add(locations)
                self.read += row.page.urls
                self.last = row.pk
                if monotonic() > end:
                    return


def published_match_counter(site: SitemapSite) -> UrlMatches | None:
    """Return a match counter for the published build that has read nothing yet.

    Returns None if the site has no published build.
    """
    build = Build.objects.published(site)
    if build is None:
        return None
    pages = Place.objects.in_build(build).pages()
    return UrlMatches(build=build, **pages.aggregate(total=Sum("page__urls", default=0)))


def match_counter(site: SitemapSite, rule: ExclusionRule | None = None) -> UrlMatches:
    """Return a match counter that has read nothing yet: of the published build or live sections.

    It is of the live sections if nothing is published, or if the stored ``rule`` has excluded URLs
    from the published build.
    """
    matches = published_match_counter(site)
    if matches is None or (rule is not None and _has_excluded_urls(matches.build, rule)):
        return UrlMatches(build=None, total=None)
    return matches


def _has_excluded_urls(build: Build | None, rule: ExclusionRule) -> bool:
    """Return whether a stored rule has excluded a URL from a build."""
    known = Place.objects.filter(build=build).exclude(override_hashes=b"")
    hashes = known.values_list("override_hashes", flat=True)
    return any(rule.hash in array("q", bytes(met)) for met in hashes)


def count_published_paths(site: SitemapSite, paths: Iterable[str]) -> UrlMatches | None:
    """Count for a second which of some paths the published build lists; return the counter.

    Returns None without a published build. Raises StorageFailure where a stored page is lost or
    damaged.
    """
    matches = published_match_counter(site)
    if matches is not None:
        wanted = {f"{site.origin}{path}".encode() for path in paths}
        matches.continue_reading(lambda block: wanted.intersection(find_all(block)))
    return matches
