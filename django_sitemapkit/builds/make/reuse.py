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
from django_sitemapkit.builds.make.url_hashes import hashes_of
from django_sitemapkit.builds.manifest import StoredFiles, digest, keys_of, locations_of
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import Build, ExclusionRule, Place, UrlOverride
from django_sitemapkit.overrides.patterns import Pattern, first_matching_patterns
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading import QuerySetReader, SectionReader
from django_sitemapkit.reading.keysets import MAX_PARAMETERS, KeyRange
from django_sitemapkit.rendering import LinkFingerprints
from django_sitemapkit.sites import SitemapSite

MAX_CHANGES = 10_000
"""Changes beyond which all pages are rendered again, instead of finding where each one matters."""


FINGERPRINTS_PER_QUERY = 10
"""Pages whose fingerprints are computed at a time: between two, the lease may be renewed."""


class _Hashes:
    """A set of many hashes, with eight bytes for each."""

    def __init__(self, batches: Iterable[Iterable[int]]) -> None:
        """Store integers of 64 bits, which come some at a time and in any order."""
        self._sorted = array("q", merge(*(array("q", sorted(batch)) for batch in batches)))

    def __contains__(self, value: int) -> bool:
        place = bisect_left(self._sorted, value)
        return place < len(self._sorted) and self._sorted[place] == value


class OverrideChanges:
    """The editors' changes at a site since a revision, and the stored pages that they affect."""

    def __init__(self, site: SitemapSite, revision: int) -> None:
        self._site = site
        self._revision = revision
        new = self._hash_rows(UrlOverride).filter(revision__gt=revision)
        fields = ("hash", "path", "model", "object_id", "include")
        self._changed = list(new.values_list(*fields, named=True)[: MAX_CHANGES + 1])
        rules = self._hash_rows(ExclusionRule).filter(revision__gt=revision)
        self._rules = [Pattern(text) for text in rules.values_list("pattern", flat=True)]

    def affects(self, section: SectionReader, row: Place, *, look: bool) -> bool:
        """Return whether a stored page must be rendered again because of an override or rule.

        Without ``look`` neither a file nor a row is read, and every change counts.
        """
        if len(self._changed) > MAX_CHANGES:
            return True
        met = array("q", bytes(row.override_hashes))
        if not all(
            one in self._unchanged_hashes and one not in self._excluding_hashes for one in met
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
        rows = keyset.within(keys_of(row, section))
        with section.site.active(), suppress(OverflowError):  # A key that no row can have.
            return any(
                rows.filter(pk__in=keys[start : start + MAX_PARAMETERS]).exists()
                for start in range(0, len(keys), MAX_PARAMETERS)
            )
        return True

    def _lists_changed_url(self, row: Place) -> bool:
        """Return whether the page's file lists a URL that a change is about."""
        if not (self._changed_paths or self._rules) or row.status != Place.Status.DONE:
            return False
        origin = self._site.origin
        wanted = {origin + path for path in self._changed_paths}
        try:
            for some in locations_of(row, SitemapStorage()):
                if not wanted.isdisjoint(some):
                    return True
                if self._rules and any(first_matching_patterns(self._rules, origin, some)):
                    return True
        except StorageFailure:
            return True
        return False

    @cached_property
    def _changed_paths(self) -> list[str]:
        """The changed paths that a page may list without having the override's hash in its row.

        A hash in any row of this revision was known when all rows of the revision were made.
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
    def _unchanged_hashes(self) -> _Hashes:
        """The hashes of the overrides and rules that have not changed since the revision."""
        return _Hashes(
            batch
            for model in (UrlOverride, ExclusionRule)
            for batch in _hash_batches(self._hash_rows(model).filter(revision__lte=self._revision))
        )

    @cached_property
    def _excluding_hashes(self) -> _Hashes:
        """Hashes of rules and overrides that may have excluded a URL that editors list again.

        No file lists such a URL, so only the row of the page shows that it was excluded.
        """
        again = [change.path for change in self._changed if change.include and change.path]
        if not again:
            return _Hashes(())
        rules = self._hash_rows(ExclusionRule).values_list("pattern", "hash")
        matching = [one for text, one in rules if any(map(Pattern(text).matches, again))]
        objects = self._hash_rows(UrlOverride).filter(include=False).exclude(model="")
        return _Hashes(chain([matching], _hash_batches(objects)))

    def _hash_rows(self, model: Any) -> QuerySet[Any]:
        rows: QuerySet[Any] = model._default_manager.using(router.db_for_write(model))
        return rows.filter(site=self._site.key)


def _hash_batches(rows: QuerySet[Any]) -> Iterator[list[int]]:
    """Yield the hashes of rows, some thousands a query."""
    rows = rows.order_by("hash").values_list("hash", flat=True)
    batch = list(rows[:MAX_CHANGES])
    while batch:
        yield batch
        batch = list(rows.filter(hash__gt=batch[-1])[:MAX_CHANGES])


def packed_hashes(hashes: Collection[int]) -> bytes:
    """Return hashes as the bytes that a row of a manifest stores, each hash once."""
    return array("q", sorted(set(hashes))).tobytes()


class Reason(TextChoices):
    """Why pages are rendered again or removed."""

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
        self._links = cache(LinkFingerprints)

    def prefetch(self, section: SectionReader, ranges: Sequence[KeyRange]) -> dict[KeyRange, int]:
        """Return the number of rows of some pages, and cache the pages' fingerprints.

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
                (rows, text and self._with_links(section, keys, text))
                for keys, (rows, text) in zip(ranges, found, strict=True)
            ]
        return [(rows, text and self.of_digest(section, rows, text)) for rows, text in found]

    def _with_links(self, section: SectionReader, keys: KeyRange, text: str) -> str:
        """Return a page's digest with that of its translation links; "" if unknown."""
        assert isinstance(section, QuerySetReader)  # noqa: S101  only rows link to others
        links = self._links(section).of_page(keys)
        return links and f"{text} {links}"

    def of_digest(self, section: SectionReader, rows: int, text: str) -> str:
        """Return the fingerprint of a page from its number of rows and the digest of its rows."""
        return f"{self.code_of(section)} {digest(f'{rows} {text}'.encode())}"

    def of(self, section: SectionReader, keys: KeyRange) -> str:
        """Return the fingerprint of a page, as it was computed first or prefetched."""
        page = section.get_name(), keys
        if page not in self._cached:
            self._cached[page] = self.compute(section, [keys])[0][1]
        return self._cached[page]

    def code_of(self, section: SectionReader) -> str:
        """Return a digest of a section's declaration, the settings and the package version."""
        name = section.get_name()
        if name not in self._codes:
            key = section.keyset.identity if section.keyset else ""
            zone = (django_settings.USE_TZ, django_settings.TIME_ZONE)
            limits = (settings.MAX_BYTES, section.max_urls, settings.SCHEMA_LOCATION)
            state = (__version__, self._address, limits, zone, key)
            self._codes[name] = digest(repr((state, section.declaration_text())).encode())
        return self._codes[name]

    def declaration_of(self, sections: Iterable[SectionReader], chosen: Collection[str]) -> str:
        """Return a digest of everything but rows that a build of some sections depends on."""
        codes = [(section.get_name(), self.code_of(section)) for section in sections]
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

        ``keys`` is the page's key range; without it, no row is read. Of the builds that it
        ``adopts``, by id, a page of which only rendering tells what it is keeps a file that was
        made of the same key range. Of several files that it cannot keep the last one tells why.
        What pages before it list is not judged here.
        """
        reason: Reason | None = Reason.NEW
        for previous in stored:
            is_adopted = previous.build_id in adopts and not previous.fingerprint
            believed = is_adopted and keys_of(previous, section) == keys
            reason = self._why_not_reusable(section, previous, keys, believed=believed)
            if reason is None:
                return previous, None
        return None, reason

    def _why_not_reusable(
        self, section: SectionReader, previous: Place, keys: KeyRange | None, *, believed: bool
    ) -> Reason | None:
        """Return why a page cannot keep a stored file; None if it can.

        With ``believed``, a page that only rendering could judge counts as unchanged.
        """
        if previous.status != Place.Status.EMPTY and not self._files.has(previous.page.name):
            return Reason.LOST
        code, _, _ = previous.fingerprint.partition(" ")
        if code and code != self.fingerprints.code_of(section):
            return Reason.CODE
        if previous.changes_at is not None and previous.changes_at <= timezone.now():
            return Reason.DATE
        reason = self._rows_differ(section, previous, keys)
        if reason and not (believed and reason == Reason.METHODS):
            return reason
        look = keys is not None
        if self._is_affected(section, previous, look=look):
            return Reason.OVERRIDES if look else Reason.SOMEWHERE
        is_compared = bool(previous.urls_digest or previous.duplicate_hashes)
        hashed = section.get_name() in self.hashed
        return Reason.AGAIN if is_compared and previous.duplicates and not hashed else None

    def _is_affected(self, section: SectionReader, row: Place, *, look: bool) -> bool:
        """Return whether editors changed anything that affects a page since its file was made."""
        if row.revision == section.overrides.revision:
            return False
        return self._changes(row.revision, section.overrides.revision).affects(
            section, row, look=look
        )

    def _rows_differ(
        self, section: SectionReader, previous: Place, keys: KeyRange | None
    ) -> Reason | None:
        if keys is None:
            return None if previous.fingerprint else Reason.METHODS
        now = self.fingerprints.of(section, keys)
        if not now:
            return Reason.METHODS
        return Reason.ROWS if now != previous.fingerprint else None
