"""Whether a page keeps the file that is stored, or why not: asked by builds and by the status."""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from heapq import merge
from itertools import chain
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ValidationError
from django.db import router
from django.db.models import QuerySet, TextChoices
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_sitemapkit import __version__
from django_sitemapkit.builds.make.deduplication import hashes_of
from django_sitemapkit.builds.manifest import StoredFiles, digest, key_range_of, locations_of
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import Build, ExclusionRule, Place, UrlOverride
from django_sitemapkit.overrides.patterns import Pattern, first_matching_patterns
from django_sitemapkit.reading import MAX_PARAMETERS, KeyRange, QuerySetReader, SectionReader
from django_sitemapkit.rendering import linked_sections, links_fingerprint
from django_sitemapkit.sites import SitemapSite

MAX_CHANGES = 10_000
"""Changes beyond which all pages are rendered again, instead of finding where each one matters."""


FINGERPRINTS_PER_QUERY = 10
"""Pages whose fingerprints are computed at a time: between two, the lease may be renewed."""


class _HashSet:
    """A set of 64-bit hashes that takes eight bytes of memory for each."""

    def __init__(self, batches: Iterable[Iterable[int]]) -> None:
        """Store the hashes of all batches, which may come in any order."""
        self._sorted = array("q", merge(*(array("q", sorted(batch)) for batch in batches)))

    def __contains__(self, value: int) -> bool:
        place = bisect_left(self._sorted, value)
        return place < len(self._sorted) and self._sorted[place] == value


class OverrideChanges:
    """The editors' changes at a site since a revision, and the stored pages that they affect."""

    def __init__(self, site: SitemapSite, revision: int) -> None:
        self._site = site
        self._revision = revision
        new = self._rows_of_site(UrlOverride).filter(revision__gt=revision)
        fields = ("hash", "path", "model", "object_id", "include")
        self._changed = list(new.values_list(*fields, named=True)[: MAX_CHANGES + 1])
        rules = self._rows_of_site(ExclusionRule).filter(revision__gt=revision)
        self._rules = [Pattern(text) for text in rules.values_list("pattern", flat=True)]

    def affects(self, section: SectionReader, row: Place, *, look: bool) -> bool:
        """Return whether a stored page must be rendered again because of an override or rule.

        Without ``look`` neither a file nor a row is read, and every change counts as affecting it.
        """
        if len(self._changed) > MAX_CHANGES:
            return True
        met = array("q", bytes(row.override_hashes))
        if not all(
            one in self._unchanged_hashes and one not in self._overruled_exclusion_hashes
            for one in met
        ):
            return True
        if not look:
            return bool(self._changed) or bool(self._rules)
        return self._has_changed_object(section, row) or self._lists_changed_url(row)

    def _has_changed_object(self, section: SectionReader, row: Place) -> bool:
        """Return whether the page's key range has an object of a changed override."""
        keyset, label = section.keyset, section.label
        if keyset is None or not label:
            return False
        keys: list[Any] = []
        for change in self._changed:
            if change.model == label:
                with suppress(ValidationError, ValueError):  # What cannot be a key names no row.
                    keys.append(keyset.queryset.model._meta.pk.to_python(change.object_id))
        if not keys:
            return False
        rows = keyset.within(key_range_of(row, section))
        with section.site.active(), suppress(OverflowError):  # A key that no row can have.
            return any(
                rows.filter(pk__in=keys[start : start + MAX_PARAMETERS]).exists()
                for start in range(0, len(keys), MAX_PARAMETERS)
            )
        return True

    def _lists_changed_url(self, row: Place) -> bool:
        """Return whether the page's file lists a URL of a changed override or rule.

        True if the file cannot be read.
        """
        if not (self._changed_paths or self._rules) or row.status != Place.Status.DONE:
            return False
        origin = self._site.origin
        wanted = {origin + path for path in self._changed_paths}
        try:
            for some in locations_of(row):
                if not wanted.isdisjoint(some):
                    return True
                if self._rules and any(first_matching_patterns(self._rules, origin, some)):
                    return True
        except StorageFailure:
            return True
        return False

    @cached_property
    def _changed_paths(self) -> list[str]:
        """The paths of changed overrides that no page of the revision has applied.

        An override that one page has applied was known to all pages of the revision: those that it
        acts in have its hash in their rows, so their files need not be searched.
        """
        changed = {change.hash: change.path for change in self._changed if change.path}
        build = Build.objects.published(self._site) if changed else None
        known = Place.objects.in_build(build) if build else Place.objects.none()
        known = known.filter(revision=self._revision).exclude(override_hashes=b"")
        for met in known.values_list("override_hashes", flat=True):
            for one in array("q", bytes(met)):
                changed.pop(one, None)
        return list(changed.values())

    @cached_property
    def _unchanged_hashes(self) -> _HashSet:
        """The hashes of the overrides and rules that have not changed since the revision."""
        return _HashSet(
            batch
            for model in (UrlOverride, ExclusionRule)
            for batch in _hash_batches(
                self._rows_of_site(model).filter(revision__lte=self._revision)
            )
        )

    @cached_property
    def _overruled_exclusion_hashes(self) -> _HashSet:
        """Hashes of rules and overrides that may have excluded a URL that editors now include.

        No file lists such a URL, so only the row of the page shows that it was excluded.
        """
        again = [change.path for change in self._changed if change.include and change.path]
        if not again:
            return _HashSet(())
        rules = self._rows_of_site(ExclusionRule).values_list("pattern", "hash")
        matching = [one for text, one in rules if any(map(Pattern(text).matches, again))]
        objects = self._rows_of_site(UrlOverride).filter(include=False).exclude(model="")
        return _HashSet(chain([matching], _hash_batches(objects)))

    def _rows_of_site(self, model: Any) -> QuerySet[Any]:
        """Return the site's rows of a model: its overrides or exclusion rules."""
        rows: QuerySet[Any] = model._default_manager.using(router.db_for_write(model))
        return rows.filter(site=self._site.key)


def _hash_batches(rows: QuerySet[Any]) -> Iterator[list[int]]:
    """Yield the hashes of overrides or exclusion rules, some thousands a query."""
    rows = rows.order_by("hash").values_list("hash", flat=True)
    batch = list(rows[:MAX_CHANGES])
    while batch:
        yield batch
        batch = list(rows.filter(hash__gt=batch[-1])[:MAX_CHANGES])


def packed_hashes(hashes: Collection[int]) -> bytes:
    """Return hashes as the bytes that a manifest row stores: sorted, each hash once."""
    return array("q", sorted(set(hashes))).tobytes()


class Reason(TextChoices):
    """The reasons why a build renders pages again or removes them."""

    NEVER = "never", _("not built")
    NEW = "new", _("new pages")
    GONE = "gone", _("pages removed")
    LOST = "lost", _("stored files missing")
    CODE = "code", _("code or settings changed")
    DATE = "date", _("a lastmod is no longer in the future")
    METHODS = "methods", _("rebuilt each time")
    ROWS = "rows", _("rows changed")
    LATER = "later", _("built, but not live")
    OVERRIDES = "overrides", _("overrides or rules changed")
    SOMEWHERE = "somewhere", _("to be checked for edits")
    DUPLICATES = "duplicates", _("may be affected by changed duplicates")
    AGAIN = "again", _("deduplication was switched off")
    BROKEN = "broken", _("cannot be read")


class Fingerprints:
    """Computes fingerprints of pages: a page whose fingerprint is unchanged can keep its file.

    A fingerprint has two parts: a digest of code and settings, and a digest of the rows.
    """

    def __init__(self, site: SitemapSite) -> None:
        self._site = site
        self._address = site.address("index")  # Its folder is what may be listed.
        self._codes: dict[str, str] = {}
        self._cached: dict[tuple[str, KeyRange], str] = {}
        self._linked_sections = cache(linked_sections)

    def prefetch(self, section: SectionReader, ranges: Sequence[KeyRange]) -> dict[KeyRange, int]:
        """Compute and cache the fingerprints of pages; return how many rows each page has.

        Pages with an open end are skipped, since any number of rows may have been added, and so are
        pages that only rendering can judge.
        """
        closed = [keys for keys in ranges if keys.upper is not None]
        counts: dict[KeyRange, int] = {}
        for start in range(0, len(closed), FINGERPRINTS_PER_QUERY):
            some = closed[start : start + FINGERPRINTS_PER_QUERY]
            heartbeat()
            for keys, (rows, text) in zip(some, self.compute(section, some), strict=True):
                if text:
                    self._cached[section.get_name(), keys] = text
                    counts[keys] = rows
        return counts

    def compute(
        self, section: SectionReader, ranges: Sequence[KeyRange]
    ) -> Sequence[tuple[int, str]]:
        """Return for each page its number of rows and its fingerprint.

        The fingerprint is "" if only rendering can tell whether the page changed. Compute it before
        the rows are read: a row that changes in between then changes the next fingerprint.
        """
        found = section.fingerprints(ranges)
        if section.links_rows:
            found = [
                (rows, text and self._digest_with_links(section, keys, text))
                for keys, (rows, text) in zip(ranges, found, strict=True)
            ]
        return [(rows, text and self.of_digest(section, rows, text)) for rows, text in found]

    def _digest_with_links(self, section: SectionReader, keys: KeyRange, text: str) -> str:
        """Return the digest ``text`` of a page and that of its translation links; "" if unknown."""
        assert isinstance(section, QuerySetReader)  # noqa: S101  only rows link to others
        links = links_fingerprint(section, self._linked_sections(section), keys)
        return links and f"{text} {links}"

    def of_digest(self, section: SectionReader, rows: int, text: str) -> str:
        """Return the fingerprint of a page from its number of rows and the digest of its rows."""
        return f"{self.code_digest_of(section)} {digest(f'{rows} {text}'.encode())}"

    def of(self, section: SectionReader, keys: KeyRange) -> str:
        """Return the fingerprint of a page; it is computed once, or was prefetched."""
        page = section.get_name(), keys
        if page not in self._cached:
            self._cached[page] = self.compute(section, [keys])[0][1]
        return self._cached[page]

    def code_digest_of(self, section: SectionReader) -> str:
        """Return a digest of a section's declaration, the settings and the package version."""
        name = section.get_name()
        if name not in self._codes:
            key = section.keyset.identity if section.keyset else ""
            zone = (django_settings.USE_TZ, django_settings.TIME_ZONE)
            limits = (settings.MAX_BYTES, section.max_urls, settings.SCHEMA_LOCATION)
            state = (__version__, self._address, limits, zone, key)
            self._codes[name] = digest(repr((state, section.declaration_text())).encode())
        return self._codes[name]

    def declaration_digest_of(
        self, sections: Iterable[SectionReader], chosen: Collection[str]
    ) -> str:
        """Return a digest of the declarations and settings of a build.

        ``chosen`` has the names of the sections to build; it is empty for all. The pages of an
        interrupted build are adopted, and helpers make pages, only if the digest is the same.
        """
        codes = [(section.get_name(), self.code_digest_of(section)) for section in sections]
        # A killed build may have stored hashes, which depend on SECRET_KEY.
        hashing = settings.DEDUPLICATE and hashes_of([""])
        return digest(repr((repr(self._site), hashing, sorted(chosen), codes)).encode())


class Reuse:
    """Decides for each page of a site whether the build keeps its stored file."""

    def __init__(
        self,
        site: SitemapSite,
        files: StoredFiles,
        *,
        hashed: Collection[str] = (),
    ) -> None:
        self.fingerprints = Fingerprints(site)
        """Of the pages as their rows are now."""
        # By the revision now, too: of what was edited since a look, the next one is to know.
        self._changes = cache(lambda since, now: OverrideChanges(site, since))
        self._files = files
        self.hashed = hashed
        """The names of the sections that leave out what is listed already."""

    def find_reusable(
        self,
        section: SectionReader,
        keys: KeyRange | None,
        stored: Iterable[Place],
        *,
        adopts: Collection[int] = (),
    ) -> tuple[Place | None, Reason | None]:
        """Return the first stored row whose file a page can keep; else None and the reason.

        ``stored`` are rows of this page, the preferred one first. ``keys`` is the page's key range;
        without it, no row is read. A page that only rendering can judge keeps the file of a build
        in ``adopts``, given by id, if that was made of the same key range. If no file can be kept,
        the reason is that of the last one. The URLs of earlier pages are not considered.
        """
        reason: Reason | None = Reason.NEW
        for previous in stored:
            is_adopted = previous.build_id in adopts and not previous.fingerprint
            assume_unchanged = is_adopted and key_range_of(previous, section) == keys
            reason = self._why_not_reusable(
                section, previous, keys, assume_unchanged=assume_unchanged
            )
            if reason is None:
                return previous, None
        return None, reason

    def _why_not_reusable(
        self,
        section: SectionReader,
        previous: Place,
        keys: KeyRange | None,
        *,
        assume_unchanged: bool,
    ) -> Reason | None:
        """Return why a page cannot keep a stored file; None if it can.

        Without ``keys``, its rows count as unchanged. With ``assume_unchanged``, which is only for
        a row without a fingerprint, so do those of a page that only rendering can judge.
        """
        if previous.status != Place.Status.EMPTY and not self._files.has(previous.page.name):
            return Reason.LOST
        code, _, _ = previous.fingerprint.partition(" ")
        if code and code != self.fingerprints.code_digest_of(section):
            return Reason.CODE
        if previous.changes_at is not None and previous.changes_at <= timezone.now():
            return Reason.DATE
        now = previous.fingerprint if keys is None else self.fingerprints.of(section, keys)
        if now != previous.fingerprint or not (now or assume_unchanged):
            return Reason.ROWS if now else Reason.METHODS
        since, revision = previous.revision, section.overrides.revision
        look = keys is not None
        if since != revision and self._changes(since, revision).affects(
            section, previous, look=look
        ):
            return Reason.OVERRIDES if look else Reason.SOMEWHERE
        is_compared = bool(previous.urls_digest or previous.duplicate_hashes)
        is_off = section.get_name() not in self.hashed
        return Reason.AGAIN if is_off and is_compared and previous.duplicates else None
