"""Checks of models and sections: what is wrong with them is found in ``sections.validation``."""

from typing import Any

from django.apps import apps
from django.core import checks
from django.core.checks import CheckMessage, Error, Info, Tags, register
from django.db import DatabaseError

from django_sitemapkit.checks.asking import configured, site_of
from django_sitemapkit.mixins import SitemapMixin, declared_models, own_options
from django_sitemapkit.printable import printable
from django_sitemapkit.registry import registry
from django_sitemapkit.sections import BaseSection, Section
from django_sitemapkit.sections.validation import (
    PAGEABLE,
    items,
    languages,
    locations,
    options,
    rows,
)
from django_sitemapkit.sections.validation.faults import Fault, Finder, rows_of
from django_sitemapkit.sites import NoFrameworkSite

Kind = type[Error] | type[checks.Warning] | type[Info]

DECLARATION: dict[str, tuple[Kind, Finder]] = {
    "sitemapkit.E101": (Error, rows.no_queryset),
    "sitemapkit.E102": (Error, rows.no_model_rows),
    "sitemapkit.E103": (Error, rows.sliced),
    "sitemapkit.E104": (Error, rows.combined),
    "sitemapkit.E105": (Error, rows.repeated),
    "sitemapkit.E106": (Error, rows.windowed),
    "sitemapkit.E107": (Error, rows.distinct_on),
    "sitemapkit.E111": (Error, rows.unknown_key),
    "sitemapkit.E112": (Error, rows.composite_key),
    "sitemapkit.E113": (Error, rows.nullable_key),
    "sitemapkit.E114": (Error, rows.repeating_key),
    "sitemapkit.E115": (Error, rows.unorderable_key),
    "sitemapkit.E118": (Error, options.no_time_zones),
    "sitemapkit.E120": (Error, options.reserved_name),
    "sitemapkit.E121": (Error, options.misplaced_option),
    "sitemapkit.E122": (Error, options.wrong_limit),
    "sitemapkit.E123": (Error, options.wrong_lastmod),
    "sitemapkit.E124": (Error, options.wrong_changefreq),
    "sitemapkit.E125": (Error, options.wrong_priority),
    "sitemapkit.E126": (Error, options.unknown_column),
    "sitemapkit.E127": (Error, options.column_of_many),
    "sitemapkit.E128": (Error, options.undated_lastmod),
    "sitemapkit.E129": (Error, options.column_without_rows),
    "sitemapkit.E131": (Error, locations.unknown_route),
    "sitemapkit.E132": (Error, locations.wrong_location),
    "sitemapkit.E133": (Error, locations.no_location),
    "sitemapkit.E135": (Error, options.objectless_method),
    "sitemapkit.E136": (Error, languages.wrong_languages),
    "sitemapkit.E137": (Error, languages.unknown_translation),
    "sitemapkit.E138": (Error, languages.one_location),
    "sitemapkit.E139": (Error, languages.wrong_extension),
    "sitemapkit.E144": (Error, languages.wrong_namespace),
    "sitemapkit.E145": (Error, languages.unknown_images),
    "sitemapkit.W140": (checks.Warning, options.misspelt_option),
    "sitemapkit.W141": (checks.Warning, options.blind_trust),
    "sitemapkit.W143": (checks.Warning, locations.idle_only),
    "sitemapkit.W151": (checks.Warning, locations.overridden_urls),
    "sitemapkit.W152": (checks.Warning, languages.idle_languages),
    "sitemapkit.W153": (checks.Warning, languages.doubtful_language),
    # They may read the database: last, so that the others are found without one.
    "sitemapkit.E134": (Error, items.unknown_item),
    "sitemapkit.E155": (Error, items.wrong_items),
}
"""Each mistake in a declaration: its id, how grave it is, and what finds it."""


@register(Tags.models)
def check_mixins(**options: Any) -> list[CheckMessage]:
    """W011: a model takes SitemapMixin and declares nothing."""
    return [
        checks.Warning(
            f"{model._meta.label} has SitemapMixin, but no class Sitemap.",
            hint="Declare one in the model, or leave the mixin out.",
            obj=model,
            id="sitemapkit.W011",
        )
        for model in apps.get_models()
        if SitemapMixin in model.__bases__ and own_options(model) is None
    ]


@register(Tags.models)
def check_mixin_querysets(**options: Any) -> list[CheckMessage]:
    """E012: a model's ``class Sitemap`` names a queryset its manager does not have."""
    messages: list[CheckMessage] = []
    for model, declared in declared_models():
        name = getattr(declared, "queryset", None)
        manager = model._default_manager
        if isinstance(name, str) and not (hasattr(manager, name) or hasattr(manager.all(), name)):
            messages.append(
                Error(
                    f"{model._meta.label}.Sitemap: the default manager has no method {name!r}.",
                    hint="Name a method of the manager or its querysets, or write a Q().",
                    obj=model,
                    id="sitemapkit.E012",
                )
            )
    return messages


@register(Tags.models)
def check_declarations(**options: Any) -> list[CheckMessage]:
    """E100, W100: a section cannot be asked; E101 to W153: what is wrong with its declaration."""
    messages: list[CheckMessage] = []
    for section_class in registry:
        section = section_class(site_of(section_class))
        for identifier, (kind, find) in DECLARATION.items():
            try:
                fault = find(section)
            except NoFrameworkSite:
                break  # E156 reports it.
            except DatabaseError as error:
                # Items may be a list of rows, and the database not there yet.
                messages += [_unread(section, error)] if isinstance(section, Section) else []
                break
            except Exception as error:  # noqa: BLE001  a project's method may raise anything
                messages.append(_unasked(section, error))
                break
            if fault is not None:
                messages.append(_message(kind, identifier, section, fault))
    return messages


@register(Tags.models)
def check_current_sites(**options: Any) -> list[CheckMessage]:
    """E156: a section asks for the current site, which the sites framework does not have."""
    messages: list[CheckMessage] = []
    sites = configured()
    for site in sites if len(sites) > 1 else ():
        for section in registry.of(site):
            try:
                _ = rows_of(section), items.wrong_items(section)
            except NoFrameworkSite as error:
                message = f"Section {section.get_name()!r} on site {site.key!r}: {error.message}"
                messages.append(
                    Error(message, hint=error.hint, obj=type(section), id="sitemapkit.E156")
                )
            except Exception:  # noqa: BLE001, S112  check_declarations() reports it
                continue
    return messages


@register(Tags.models, deploy=True)
def check_costs(**options: Any) -> list[CheckMessage]:
    """I142: a section reads objects where columns would do; said only of a deployment."""
    sections = [section(site_of(section)) for section in registry]
    return [
        _message(Info, "sitemapkit.I142", section, fault)
        for section in sections
        if not _is_broken(section) and (fault := locations.reads_objects(section))
    ]


def _is_broken(section: BaseSection) -> bool:
    try:
        return any(find(section) for find in PAGEABLE)
    except Exception:  # noqa: BLE001  what check_declarations() reports as E100
        return True


def _message(kind: Kind, identifier: str, section: BaseSection, fault: Fault) -> CheckMessage:
    text = printable(f"Section {section.get_name()!r}: {fault.sentence}")
    return kind(text, hint=fault.hint, obj=type(section), id=identifier)


def _unasked(section: BaseSection, error: Exception) -> CheckMessage:
    return Error(
        printable(f"Section {section.get_name()!r} raised {type(error).__name__}: {error}"),
        hint="get_queryset() must work without rows, and without tables it does not read.",
        obj=type(section),
        id="sitemapkit.E100",
    )


def _unread(section: BaseSection, error: Exception) -> CheckMessage:
    """Tell it as a warning: an error would keep ``migrate`` from making the table."""
    return checks.Warning(
        printable(
            f"Section {section.get_name()!r} reads the database while it is declared: {error}"
        ),
        hint="Build the queryset without reading rows; use a Subquery.",
        obj=type(section),
        id="sitemapkit.W100",
    )
