"""How many published URLs match: counted in the stored pages, whose bytes are not parsed."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic

from django.db.models import Sum

from django_sitemapkit.builds.manifest import FindUrls, find_all, locations_of
from django_sitemapkit.models import Build, ExclusionRule, Place
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.sites import SitemapSite

MAX_MATCHES = 20
"""The first matches, which are kept."""

COUNT_SECONDS = 1.0
"""How long a request counts; another one goes on where it has ended."""

PAGES_PER_QUERY = 100
"""How many stored pages are looked up at a time."""


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
        end, storage = monotonic() + seconds, SitemapStorage()
        rows = Place.objects.in_build(self.build).pages().order_by("pk")  # type: ignore[arg-type]
        while some := list(rows.filter(pk__gt=self.last)[:PAGES_PER_QUERY]):
            for row in some:
                for locations in locations_of(row, storage, find):
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
