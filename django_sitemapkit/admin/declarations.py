"""What the sections of a site declare, as text for people."""

from functools import partial

from django.db.models import Model
from django.utils.translation import gettext as _

from django_sitemapkit.admin.display import try_read
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import identity_model
from django_sitemapkit.models import ExtraUrl
from django_sitemapkit.overrides.sections import extra_urls_of
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.sources import Constant
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import SitemapSite

_FORMATTERS = {"changefreq": format_changefreq, "priority": format_priority}


def declared_sections(site: SitemapSite) -> dict[str, SectionReader]:
    """Return all declared sections of a site by name, enabled or not."""
    enabled = {section.get_name(): True for section in registry}
    sections = [*registry.of(site, enabled), extra_urls_of(site)]
    return {section.get_name(): section for section in sections}


def declared_value(section: SectionReader, tag: str) -> str:
    """Return what a section declares for "changefreq" or "priority", as text."""
    source = section.sources.get(tag)
    if source is None:
        return _("none")
    if not isinstance(source, Constant):
        return _("from each row")
    try:
        return _FORMATTERS[tag](source.value) or _("none")
    except InvalidValue:
        return _("none")


def declared_enabled(section: SectionReader) -> str:
    """Return "yes" or "no": whether a section is declared as enabled."""
    return _("yes") if section.options.enabled else _("no")


def listed_models(sites: list[SitemapSite]) -> dict[str, type[Model]]:
    """Return the models whose objects the sections list, by model label."""
    found: dict[str, type[Model]] = {}
    for site in sites:
        for section in declared_sections(site).values():
            keyset, _reason = try_read(partial(getattr, section, "keyset"))
            if keyset is not None and keyset.queryset.model is not ExtraUrl:
                model = identity_model(keyset.queryset.model)
                found[model._meta.label_lower] = model
    return found
