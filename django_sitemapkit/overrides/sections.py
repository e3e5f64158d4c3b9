"""The sections of a site as they are in force: declared, and set by editors."""

from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from threading import Lock

from django.db import router
from django.db.models import F, QuerySet
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.models import ExtraUrl, Revision, SectionSettings
from django_sitemapkit.overrides.effects import Overrides
from django_sitemapkit.registry import EXTRA_URLS, Switched, registry
from django_sitemapkit.sections import BaseSection, Section
from django_sitemapkit.sites import Site

REMEMBERED = 64
"""Sites whose overrides a process remembers."""


class ExtraUrls(Section):
    """The URLs that an editor added; a section like any other, where there are any."""

    name = EXTRA_URLS
    heading = _("More pages")
    location = F("path")
    lastmod = "lastmod"

    @cached_property
    def own_columns(self) -> dict[str, str]:
        """Each URL's own values win over what holds for the section."""
        return {"changefreq": "changefreq", "priority": "priority"}

    def get_queryset(self) -> QuerySet[ExtraUrl]:
        """Return those of the site."""
        rows: QuerySet[ExtraUrl] = ExtraUrl.objects.using(router.db_for_write(ExtraUrl))
        return rows.filter(site=self.site.key)


def sections_of(site: Site) -> list[BaseSection]:
    """Return the sections of a site that are enabled, with the settings that editors gave them.

    Each section knows the site's overrides, as of now.
    """
    overrides = overrides_of(site)
    switched = _switched(overrides.settings)
    sections = registry.of(site, switched)
    if _has_extra_urls(overrides, switched):
        sections.append(ExtraUrls(site))
    return [_settled(section, overrides) for section in sections]


def section_of(site: Site, name: str) -> BaseSection | None:
    """Return one enabled section of a site by name, as ``sections_of`` does, or None."""
    overrides = overrides_of(site)
    switched = _switched(overrides.settings)
    if name == EXTRA_URLS:
        return (
            _settled(ExtraUrls(site), overrides) if _has_extra_urls(overrides, switched) else None
        )
    section = registry.get(site, name, switched)
    return _settled(section, overrides) if section else None


def _has_extra_urls(overrides: Overrides, switched: Switched) -> bool:
    return switched.get(EXTRA_URLS, True) and overrides.has_extra_urls


def _switched(settings: Mapping[str, SectionSettings]) -> Switched:
    return {name: row.enabled for name, row in settings.items() if row.enabled is not None}


def _settled(section: BaseSection, overrides: Overrides) -> BaseSection:
    section.overrides = overrides
    settings = overrides.settings.get(section.get_name())
    if settings is not None and settings.changefreq:
        section.preset["changefreq"] = settings.changefreq
    if settings is not None and settings.priority is not None:
        section.preset["priority"] = settings.priority
    return section


_known: "OrderedDict[tuple[str, str], tuple[tuple[int, int], Overrides]]" = OrderedDict()
_lock = Lock()


def overrides_of(site: Site) -> Overrides:
    """Return what editors set for a site: one query, as long as nothing has changed.

    It is read where it is written: an editor who has excluded a URL must not find it listed still
    because a replica is behind.
    """
    database = router.db_for_write(Revision)
    rows = Revision.objects.using(database).filter(site=site.key)
    state = rows.values_list("number", "mark").first() or (0, 0)
    key = (site.key, site.origin)
    with _lock:
        known = _known.get(key)
        if known is not None and known[0] == state:
            _known.move_to_end(key)
            return known[1]
        overrides = Overrides(site.key, site.origin, state[0], database)
        _known[key] = (state, overrides)
        if len(_known) > REMEMBERED:
            _known.popitem(last=False)
    return overrides
