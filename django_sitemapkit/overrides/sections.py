"""The sections of a site in force: declarations with the settings of editors."""

import logging
from collections import OrderedDict
from collections.abc import Collection
from functools import cached_property
from threading import Lock
from typing import TypeVar

from django.db import router
from django.db.models import F, QuerySet
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.models import ExtraUrl, Revision, SectionSettings
from django_sitemapkit.overrides.in_force import Overrides
from django_sitemapkit.reading import QuerySetReader, SectionReader
from django_sitemapkit.registry import EXTRA_URLS, registry
from django_sitemapkit.sections import Section
from django_sitemapkit.sites import SitemapSite

logger = logging.getLogger("django_sitemapkit")

_Reader = TypeVar("_Reader", bound=SectionReader)

MAX_CACHED_SITES = 64
"""Sites whose overrides a process caches."""


class ExtraUrls(Section):
    """The section of extra URLs, which a site has if editors added any."""

    name = EXTRA_URLS
    heading = _("More pages")
    location = F("path")
    lastmod = "lastmod"
    title = "title"

    def get_queryset(self) -> QuerySet[ExtraUrl]:
        """Return the extra URLs of the site."""
        rows: QuerySet[ExtraUrl] = ExtraUrl.objects.using(router.db_for_write(ExtraUrl))
        return rows.filter(site=self.site.key)


class ExtraUrlsReader(QuerySetReader):
    """Reads the URLs that editors added."""

    @cached_property
    def row_value_columns(self) -> dict[str, str]:
        """The columns whose values take precedence over those of the section."""
        return {"changefreq": "changefreq", "priority": "priority"}


def extra_urls_of(site: SitemapSite) -> SectionReader:
    """Return the section of the URLs that editors added to a site."""
    return ExtraUrlsReader(ExtraUrls(site))


def sections_of(site: SitemapSite) -> list[SectionReader]:
    """Return the enabled sections of a site, with their section settings.

    Each section has the site's current overrides.
    """
    overrides = overrides_of(site)
    sections = registry.of(site, overrides.enabled)
    if overrides.has_extra_urls:
        sections.append(extra_urls_of(site))
    return [with_overrides(section, overrides) for section in sections]


def require_sections(site: SitemapSite, names: Collection[str]) -> None:
    """Raise ValueError if ``names`` has a section that the site does not have."""
    known = [section.get_name() for section in sections_of(site)] if names else []
    if unknown := sorted(set(names) - set(known)):
        raise ValueError(
            f"Site {site.key!r} has no section {unknown[0]!r}; it has: {', '.join(known)}."
        )


def section_of(
    site: SitemapSite, name: str, state: tuple[int, int] | None = None
) -> SectionReader | None:
    """Return one enabled section of a site by name, like ``sections_of``, or None.

    ``state`` is passed to ``overrides_of``.
    """
    overrides = overrides_of(site, state)
    if name == EXTRA_URLS:
        section = extra_urls_of(site) if overrides.has_extra_urls else None
    else:
        section = registry.get(site, name, overrides.enabled)
    return with_overrides(section, overrides) if section else None


def with_overrides(section: _Reader, overrides: Overrides) -> _Reader:
    """Return a section that applies a site's overrides and its own section settings."""
    section.overrides = overrides
    if (settings := overrides.settings.get(section.get_name())) is None:
        return section
    section.called_methods = settings.called_methods
    if settings.changefreq:
        section.setting_values["changefreq"] = settings.changefreq
    if settings.priority is not None:
        section.setting_values["priority"] = settings.priority
    return section


def call_methods(section: SectionReader, difference: str) -> None:
    """Have the methods of a section called from now on: one is not what its source says."""
    logger.error(
        "%r: %s. Its methods are called for each object from now on, until one of them changes.",
        *(section, difference),
    )
    SectionSettings.objects.using(router.db_for_write(SectionSettings)).update_or_create(
        site=section.site.key,
        section=section.get_name(),
        defaults={"called_methods": section.methods_digest},
    )


_cached: "OrderedDict[tuple[str, str], tuple[tuple[int, int], Overrides]]" = OrderedDict()
_lock = Lock()


def overrides_of(site: SitemapSite, state: tuple[int, int] | None = None) -> Overrides:
    """Return the editor settings of a site, by one query unless they have changed.

    Callers that have just read the revision's number and nonce pass them as ``state``, which saves
    the query. The query uses the database for writes: after an editor excludes a URL, a lagging
    replica must not make it listed again.
    """
    database = router.db_for_write(Revision)
    if state is None:
        rows = Revision.objects.using(database).filter(site=site.key)
        state = rows.values_list("number", "nonce").first() or (0, 0)
    key = (site.key, site.origin)
    with _lock:
        cached = _cached.get(key)
        if cached is not None and cached[0] == state:
            _cached.move_to_end(key)
            return cached[1]
        overrides = Overrides(site.key, site.origin, state[0], database)
        _cached[key] = (state, overrides)
        if len(_cached) > MAX_CACHED_SITES:
            _cached.popitem(last=False)
    return overrides
