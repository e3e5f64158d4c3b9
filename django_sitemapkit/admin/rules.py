"""The screens of exclusion rules, and the URLs that a rule matches."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import SiteFilter, number
from django_sitemapkit.admin.editor_settings import EditorSettingAdmin, EditorSettingForm
from django_sitemapkit.builds.manifest import locations_of
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import Build, BuildFile, ExclusionRule, hash_of
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.overrides.patterns import Pattern
from django_sitemapkit.protocol.locations import Scope, normalise_pattern
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading.chunks import Chunk
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.sites import SitemapSite

MAX_MATCHES = 20
"""Matches shown in a preview."""

SEARCH_SECONDS = 1.0
"""Time limit of a search."""

MAX_SEARCHED_URLS = 1_000_000
"""URLs that a search reads at most."""


class RuleForm(EditorSettingForm):
    """A form for a pattern."""

    def clean(self) -> dict[str, Any]:
        """Normalise the pattern, and reject a duplicate."""
        cleaned = super().clean() or self.cleaned_data
        if self.site is None or not cleaned.get("pattern"):
            return cleaned
        try:
            pattern = _normalised(self.site, cleaned["pattern"])
        except InvalidValue as error:
            self.add_error("pattern", ValidationError(str(error), code=error.code))
            return cleaned
        cleaned["pattern"] = pattern
        self.reject_duplicate("pattern", hash=hash_of(ExclusionRule(pattern=pattern).identity))
        return cleaned


def _normalised(site: SitemapSite, text: str) -> str:
    """Return a pattern in its normal form, without a pasted scheme and host.

    Raises InvalidValue with a translated message.
    """
    if "://" in text and not text.startswith(("/", "*")):
        text = pasted_path(site, text)
    try:
        return normalise_pattern(text)
    except InvalidValue as error:
        message = _(
            "A pattern starts with / or *. It cannot contain #, control characters,"
            " or a . or .. segment."
        )
        raise InvalidValue(error.code, message) from error


@admin.register(ExclusionRule)
class ExclusionRuleAdmin(EditorSettingAdmin):
    """Exclusion rules, with a preview of the URLs they match."""

    form = RuleForm
    fields = ("site", "pattern", "note")
    preview_template = "admin/sitemapkit/editor_settings/matches.html"
    list_display = ("pattern", "site", "note", "changed_at")
    list_filter = (SiteFilter,)
    search_fields = ("pattern", "note")

    def preview_context(
        self, request: HttpRequest, site: SitemapSite, row: ExclusionRule, *, stored: bool
    ) -> dict[str, Any]:
        """Return the first URLs that the rule matches.

        Published files may lack URLs because of this very rule, so a stored rule is tested against
        the sections instead.
        """
        matches = find_matches(site, row.pattern, live=stored)
        return {"matches": matches, "url_count": number(matches.url_count), "most": MAX_MATCHES}


@dataclass(slots=True)
class RuleMatches:
    """The result of a search."""

    build: int | None
    """The published build whose files were read; None if the live sections were."""
    locations: list[str] = field(default_factory=list)
    """The first URLs that the pattern matches."""
    url_count: int = 0
    """URLs read."""
    complete: bool = False
    """Whether all URLs of the site were read."""


def find_matches(site: SitemapSite, text: str, *, live: bool) -> RuleMatches:
    """Return the first URLs of a site that a normalised pattern matches.

    The search reads the published files. If nothing is published, or with ``live``, it reads the
    sections, before overrides and rules. Raises StorageFailure if a file is lost or damaged.
    """
    build = None if live else Build.objects.published(site)
    batches = _published_urls(build) if build else _live_urls(site)
    found = RuleMatches(build.pk if build else None)
    pattern, origin = Pattern(text), len(site.origin)
    deadline = time.monotonic() + SEARCH_SECONDS
    for batch in batches:
        found.url_count += len(batch)
        for location in batch:
            if pattern.matches(location[origin:]):
                found.locations.append(location)
                if len(found.locations) == MAX_MATCHES:
                    return found
        if found.url_count >= MAX_SEARCHED_URLS or time.monotonic() > deadline:
            return found
    found.complete = True
    return found


def _published_urls(build: Build) -> Iterator[list[str]]:
    """Yield the URLs of a build's files in batches."""
    storage = SitemapStorage()
    for row in BuildFile.objects.in_build(build).pages().iterator():
        yield from locations_of(row, storage)


def _live_urls(site: SitemapSite) -> Iterator[list[str]]:
    """Yield the URLs of the sections in batches."""
    scope = site.scope()
    for section in sections_of(site):
        everything = EVERYTHING if section.keyset is not None else KeyRange(0, None)
        for chunk in section.chunks(everything):
            yield _locations(chunk, scope)


def _locations(chunk: Chunk, scope: Scope) -> list[str]:
    if chunk.normal:
        locations: Sequence[str | None] = scope.enclose_all(chunk.locations)[0]
        return [location for location in locations if location is not None]
    found: list[str] = []
    for row, location in enumerate(chunk.locations):
        if row not in chunk.refusals:
            with suppress(InvalidValue):
                found.append(scope.normalise(location))
    return found
