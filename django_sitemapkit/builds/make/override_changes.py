"""Which stored pages are not as editors will have them: found without rendering any.

See "Affected pages are found without rendering" in docs/decisions.md.
"""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import chain
from typing import Any

from django.core.exceptions import ValidationError
from django.db import router
from django.db.models import QuerySet

from django_sitemapkit.builds.manifest import keys_of
from django_sitemapkit.builds.stored_files import locations_of
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Build, ExclusionRule, Place, UrlOverride
from django_sitemapkit.overrides.patterns import Pattern, first_matches
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import MAX_PARAMETERS
from django_sitemapkit.sites import SitemapSite

MAX_CHANGES = 10_000
"""Changes beyond which all pages are rendered again, instead of finding where each one matters."""


class OverrideChanges:
    """What editors of a site have changed since a revision, and which stored pages it concerns."""

    def __init__(self, site: SitemapSite, revision: int) -> None:
        self._site = site
        self._revision = revision
        new = self._rows(UrlOverride).filter(revision__gt=revision)
        fields = ("hash", "path", "model", "object_id", "include")
        self._changed = list(new.values_list(*fields, named=True)[: MAX_CHANGES + 1])
        rules = self._rows(ExclusionRule).filter(revision__gt=revision)
        self._rules = [Pattern(text) for text in rules.values_list("pattern", flat=True)]

    def affects(self, section: SectionReader, row: Place, *, look: bool) -> bool:
        """Return whether a stored page has to be rendered again because of an override or a rule.

        Without ``look`` neither a file nor a row is looked at, and any change concerns it.
        """
        if len(self._changed) > MAX_CHANGES:
            return True
        met = array("q", bytes(row.override_hashes))
        if not all(one in self._unchanged and one not in self._hiding for one in met):
            return True
        if not look:
            return bool(self._changed) or bool(self._rules)
        return self._has_row(section, row) or self._lists(row)

    def _has_row(self, section: SectionReader, row: Place) -> bool:
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

    def _lists(self, row: Place) -> bool:
        """Return whether the page's file lists a URL that a change is about."""
        if not (self._paths or self._rules) or row.status != Place.Status.DONE:
            return False
        origin = self._site.origin
        wanted = {origin + path for path in self._paths}
        try:
            for some in locations_of(row, SitemapStorage()):
                if not wanted.isdisjoint(some):
                    return True
                if self._rules and any(first_matches(self._rules, origin, some)):
                    return True
        except StorageFailure:
            return True
        return False

    @cached_property
    def _paths(self) -> list[str]:
        """The changed paths that a page may list without its manifest's row saying so.

        What met any page of this very revision was there when the others were made.
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
    def _unchanged(self) -> "Hashes":
        """All that is as it was."""
        return Hashes(
            one
            for model in (UrlOverride, ExclusionRule)
            for one in _hashes(self._rows(model).filter(revision__lte=self._revision))
        )

    @cached_property
    def _hiding(self) -> "Hashes":
        """What may have left out a URL, so that no file tells of it, that is to be listed again."""
        again = [change.path for change in self._changed if change.include and change.path]
        if not again:
            return Hashes(())
        rules = self._rows(ExclusionRule).values_list("pattern", "hash")
        matching = (one for text, one in rules if any(map(Pattern(text).matches, again)))
        objects = self._rows(UrlOverride).filter(include=False).exclude(model="")
        return Hashes(chain(matching, _hashes(objects)))

    def _rows(self, model: Any) -> QuerySet[Any]:
        rows: QuerySet[Any] = model._default_manager.using(router.db_for_write(model))
        return rows.filter(site=self._site.key)


class Hashes:
    """A set of hashes in eight bytes each."""

    def __init__(self, hashes: Iterable[int]) -> None:
        self._sorted = array("q", hashes)
        self._sorted = array("q", sorted(self._sorted))

    def __contains__(self, one: int) -> bool:
        place = bisect_left(self._sorted, one)
        return place < len(self._sorted) and self._sorted[place] == one


def _hashes(rows: QuerySet[Any]) -> Iterator[int]:
    """Yield the hashes of rows, some thousands a query."""
    rows = rows.order_by("hash").values_list("hash", flat=True)
    some = list(rows[:MAX_CHANGES])
    while some:
        yield from some
        some = (
            list(rows.filter(hash__gt=some[-1])[:MAX_CHANGES]) if len(some) == MAX_CHANGES else []
        )


def packed(hashes: Collection[int]) -> bytes:
    """Return hashes as a row of a manifest keeps them."""
    return array("q", sorted(hashes)).tobytes()
