"""What the sections of a site declare, as people read it."""

from functools import partial

from django.db.models import Model
from django.utils.translation import gettext as _

from django_sitemapkit.admin.wording import told
from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.models import ExtraUrl
from django_sitemapkit.overrides.sections import ExtraUrls
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.registry import registry
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.objects import identity_model
from django_sitemapkit.sections.options import Plain
from django_sitemapkit.sites import Site

_FORMATTERS = {"changefreq": format_changefreq, "priority": format_priority}


def declared_sections(site: Site) -> dict[str, BaseSection]:
    """Return the sections of a site by name, enabled or not, as they are declared."""
    on = {section.get_name(): True for section in registry}
    sections = [*registry.of(site, on), ExtraUrls(site)]
    return {section.get_name(): section for section in sections}


def declared_value(section: BaseSection, tag: str) -> str:
    """Return in words what a section declares for "changefreq" or "priority"."""
    source = section.sources.get(tag)
    if source is None:
        return _("none")
    if not isinstance(source, Plain):
        return _("from each row")
    try:
        return _FORMATTERS[tag](source.value) or _("none")
    except RefusedValue:
        return _("none")


def declared_enabled(section: BaseSection) -> str:
    """Return in words whether a section is enabled as it is declared."""
    return _("yes") if section.enabled else _("no")


def listed_models(sites: list[Site]) -> dict[str, type[Model]]:
    """Return the models whose objects the sections list, by the label that names them."""
    found: dict[str, type[Model]] = {}
    for site in sites:
        for section in declared_sections(site).values():
            keyset, _why = told(partial(getattr, section, "keyset"))
            if keyset is not None and keyset.queryset.model is not ExtraUrl:
                model = identity_model(keyset.queryset.model)
                found[model._meta.label_lower] = model
    return found
