"""The screens of exclusion rules, and the URLs that a rule matches."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import SiteFilter, number
from django_sitemapkit.admin.editor_settings import EditorSettingAdmin, HashedSettingForm
from django_sitemapkit.admin.url_counts import LOSS, url_counts
from django_sitemapkit.builds.manifest import locations_of as published_locations_of
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.inspection import locations_of
from django_sitemapkit.inspection.attempts import try_read
from django_sitemapkit.models import Build, ExclusionRule, Place
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.overrides.patterns import Pattern
from django_sitemapkit.protocol.locations import normalise_pattern
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.sites import SitemapSite

MAX_MATCHES = 20
"""Matches shown in a preview."""

ROWS_PER_QUERY = 100
"""How many rows of a manifest are read at a time."""

SEARCH_SECONDS = 2.0
"""Time limit of a search. What it has not read by then is estimated."""


class RuleForm(HashedSettingForm):
    """A form for a pattern, which asks before it takes many URLs out of the sitemap."""

    text_field = "pattern"

    def normalised(self, site: SitemapSite, text: str) -> str:
        """Return a pattern in its normal form, without a pasted scheme and host."""
        if "://" in text and not text.startswith(("/", "*")):
            text = super().normalised(site, text)
        try:
            return normalise_pattern(text)
        except InvalidValue as error:
            message = _(
                "A pattern starts with / or *. It cannot contain #, control characters,"
                " or a . or .. segment."
            )
            raise InvalidValue(error.code, message) from error

    def is_valid(self) -> bool:
        """Return whether it may be saved: of many URLs, only once that is confirmed."""
        if not super().is_valid():
            return False
        if self.is_new and self.data.get("_confirmed") != self.confirmation:
            matches, _reason = try_read(lambda: self.matches)
            self.previewing = matches is None or matches.is_many
        return not self.previewing

    def prepare_preview(self) -> None:
        """Search for the URLs that the rule matches."""
        try_read(lambda: self.matches)

    @property
    def confirmation(self) -> str:
        """What is confirmed: this pattern on this site, and not another one entered since."""
        return f"{self.cleaned_data['site']} {self.cleaned_data['pattern']}"

    @property
    def is_new(self) -> bool:
        """Whether no stored rule has excluded these URLs so far."""
        return self.instance.pk is None or not {"site", "pattern"}.isdisjoint(self.changed_data)

    @cached_property
    def matches(self) -> "RuleMatches":
        """The URLs that the rule removes; of a stored one, those that it has removed.

        Raises StorageFailure if a file is lost or damaged.
        """
        site: Any = self.site
        return find_matches(site, self.cleaned_data["pattern"], live=not self.is_new)


@admin.register(ExclusionRule)
class ExclusionRuleAdmin(EditorSettingAdmin):
    """Exclusion rules, with a preview of the URLs they match."""

    form = RuleForm
    fields = ("site", "pattern", "note")
    preview_template = "admin/sitemapkit/editor_settings/matches.html"
    list_display = ("pattern", "site", "note", "changed_at")
    list_filter = (SiteFilter, "changed_at")
    search_fields = ("pattern", "note")

    def preview_context(
        self, request: HttpRequest, site: SitemapSite, row: ExclusionRule, form: Any
    ) -> dict[str, Any]:
        """Return how many URLs the rule matches, and the first of them, if a preview asks for it.

        Published files may lack URLs because of this very rule, so a stored rule is tested against
        the sections instead.
        """
        if form.is_bound:
            matches, failure = try_read(lambda: form.matches)
            asks = form.is_new and (matches is None or matches.is_many)
            confirmation = form.confirmation if asks else ""
            return {"matches": matches, "failure": failure, "confirmation": confirmation}
        return {"matches": None}  # Reading all sections takes long: that is for "Preview".


@dataclass(slots=True)
class RuleMatches:
    """The result of a search."""

    build: int | None
    """The published build whose files were read; None if the live sections were."""
    everything: bool
    """Whether the pattern matches any URL."""
    locations: list[str] = field(default_factory=list)
    """The first URLs that the pattern matches."""
    match_count: int = 0
    """URLs read that it matches."""
    url_count: int = 0
    """URLs read."""
    total: int | None = None
    """URLs of the site; None if they were not all read, and no build has counted them."""

    @property
    def complete(self) -> bool:
        """Whether all URLs of the site were read."""
        return self.url_count == self.total

    @property
    def share(self) -> float:
        """The share of the URLs read that the pattern matches."""
        return self.match_count / self.url_count if self.url_count else 0.0

    @property
    def is_many(self) -> bool:
        """Whether it matches so many URLs that somebody should look before they go.

        Where not all were read, it may: the files that were left may have more of them.
        """
        return self.everything or self.share > LOSS or not self.complete

    @property
    def texts(self) -> dict[str, str]:
        """The numbers as text: of all URLs, estimated where not all were read."""
        total = self.total or self.url_count
        return {
            "matched": number(round(self.share * total)),
            "total": number(total),
            "read": number(self.url_count),
            "percent": "<1" if 0 < self.share < 0.005 else f"{self.share:.0%}".rstrip("%"),
        }


def find_matches(site: SitemapSite, text: str, *, live: bool) -> RuleMatches:
    """Return how many URLs of a site a normalised pattern matches, and the first of them.

    The search reads the published files. If nothing is published, it reads the sections, before
    overrides and rules; with ``live`` it does so in any case. It ends when its time is up. Files
    come in an order that has nothing to do with their URLs, so the share of those read is about
    that of all.
    Raises StorageFailure if a file is lost or damaged.
    """
    build = None if live else Build.objects.published(site)
    batches = _published_urls(build) if build else _live_urls(site)
    pattern, origin = Pattern(text), len(site.origin)
    found = RuleMatches(build.pk if build else None, everything=pattern.matches_everything)
    if build:
        found.total = sum(url_counts([build.pk])[build.pk].values())
    deadline = time.monotonic() + SEARCH_SECONDS
    for batch in batches:
        found.url_count += len(batch)
        matched = [location for location in batch if pattern.matches(location[origin:])]
        found.match_count += len(matched)
        found.locations += matched[: MAX_MATCHES - len(found.locations)]
        if time.monotonic() > deadline:
            return found
    found.total = found.url_count
    return found


def _published_urls(build: Build) -> Iterator[list[str]]:
    """Yield the URLs of a build's files in batches, the files in the order of their hashes."""
    storage = SitemapStorage()
    rows = Place.objects.in_build(build).pages().order_by("page__sha256")
    keys = list(rows.values_list("pk", flat=True))
    # iterator() would need one session of PostgreSQL, which pgbouncer may not give.
    for start in range(0, len(keys), ROWS_PER_QUERY):
        for row in rows.filter(pk__in=keys[start : start + ROWS_PER_QUERY]):
            yield from published_locations_of(row, storage)


def _live_urls(site: SitemapSite) -> Iterator[list[str]]:
    """Yield the URLs of the sections in batches."""
    for section in sections_of(site):
        everything = EVERYTHING if section.keyset is not None else KeyRange(0, None)
        for chunk in section.chunks(everything):
            yield list(locations_of(section, chunk).values())
