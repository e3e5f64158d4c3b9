"""Checks of models and sections; ``reading.validation`` finds the mistakes of declarations."""

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import Tags
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from django_sitemapkit.checks.base import (
    Found,
    check,
    known_sites,
    sites_with_urlconf,
    uses_only_drop_in,
)
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.mixins import SitemapMixin, declared_models, sitemap_options_of
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.reading import call_for_each, reader_of
from django_sitemapkit.reading.validation import (
    Mistake,
    closest_option,
    mistake_of_crash,
    mistakes_of,
    option_names,
    unknown_attributes,
)
from django_sitemapkit.registry import belongs_to, registry
from django_sitemapkit.rendering.indexes import AllowedLocations, url_of_item
from django_sitemapkit.sections import External, ExternalSection, ItemSection, Registered, Section
from django_sitemapkit.sites import NoFrameworkSite

MODULE = "sitemaps"


@check(Tags.urls)
def check_sections_are_registered() -> Found:
    """Report modules that register sections but are not imported, or that nothing is registered."""
    modules = _unimported_modules()
    for module in modules:
        yield Mistake(
            "sitemapkit.W032",
            f"{module} is not imported, because {module.rpartition('.')[0]!r} is not an installed"
            " app. The sections that it registers do not exist.",
            "Add the package to INSTALLED_APPS, or move the module into an installed app.",
        )
    if registry.is_empty and not modules and not uses_only_drop_in():
        yield Mistake(
            "sitemapkit.W031",
            "No section is registered; there is no sitemap.",
            f"Declare a Section in the module {MODULE}.py of an installed app, with @register"
            " above it.",
        )


def _unimported_modules() -> list[str]:
    """Return the modules ``sitemaps`` next to settings and URLconf that are not imported.

    Only those that register sections. Many put one there, but that package is seldom an installed
    app, so nothing imports it.
    """
    sites_with_urlconf()  # Imports the URLconfs, which may import it.
    settings_module = getattr(django_settings, "SETTINGS_MODULE", None) or ""
    found = []
    for named in dict.fromkeys([settings_module, str(django_settings.ROOT_URLCONF)]):
        package = named.rpartition(".")[0]
        while package:
            found.append(f"{package}.{MODULE}")
            package = package.rpartition(".")[0]
    return [name for name in dict.fromkeys(found) if _has_unimported_sections(name)]


def _has_unimported_sections(module: str) -> bool:
    """Return whether a module is not imported, and its source names this package.

    A module directly in an installed app is not looked at.
    """
    package = module.rpartition(".")[0]
    if module in sys.modules or package in {app.name for app in apps.get_app_configs()}:
        return False
    try:
        spec = find_spec(module)
        source = Path((spec and spec.origin) or "").read_text(encoding="utf-8")
    except (ImportError, OSError, ValueError):
        return False
    return "django_sitemapkit" in source


@check(Tags.models)
def check_mixins() -> Found:
    """Report a model that uses SitemapMixin and has no ``class Sitemap``."""
    for model in apps.get_models():
        if SitemapMixin in model.__bases__ and sitemap_options_of(model) is None:
            yield Mistake(
                "sitemapkit.W011",
                f"{model._meta.label} has SitemapMixin, but no class Sitemap.",
                "Declare one in the model, or remove the mixin.",
                model,
            )


@check(Tags.models)
def check_mixin_querysets() -> Found:
    """Report a model's ``class Sitemap`` whose queryset option cannot work.

    It names a method that the manager does not have, or it sets ``queryset``, which it cannot have
    before the model exists.
    """
    for model, declared in declared_models():
        name = getattr(declared, "queryset_method", None)
        if getattr(declared, "queryset", None) is not None:
            yield Mistake(
                "sitemapkit.E012",
                f"{model._meta.label}.Sitemap: queryset is not an option here.",
                "Name a method in queryset_method, or set filter to a Q().",
                model,
            )
        elif name is not None and not _has_method(model._default_manager, name):
            yield Mistake(
                "sitemapkit.E012",
                f"{model._meta.label}.Sitemap: the default manager has no method {name!r}.",
                "Name a method of the manager or its querysets, or set filter to a Q().",
                model,
            )


def _has_method(manager: Any, name: Any) -> bool:
    """Return whether a manager or its querysets have a method of this name."""
    return hasattr(manager, str(name)) or hasattr(manager.all(), str(name))


@check(Tags.models)
def check_declarations() -> Found:
    """Report the mistakes in the declaration of each section, and the errors that it raises."""
    for section in registry.declared():
        yield from _mistakes_in(section)


def _mistakes_in(section: type[Registered]) -> Found:
    """Yield the mistakes in a section's declaration, and as mistakes the errors that it raises."""
    is_external = issubclass(section, ExternalSection)
    name = f"{'External section' if is_external else 'Section'} {section.get_name()!r}"
    try:
        # The sites of a function may not be in the database yet, and a site without the section,
        # maybe with another URLconf, says nothing about the sites that have it.
        site = next((each for each in known_sites() if belongs_to(section, each)), None)
        if site is not None:
            declared: Any = section(site)
            if is_external:
                found = mistakes_of_external(declared)
            else:
                found = mistakes_of(reader_of(declared))
            for mistake in found:
                yield mistake.with_name(name, section)
    except NoFrameworkSite:
        return  # W156 reports it.
    except DatabaseError as error:
        # Items may be a list of rows, and the tables may not exist yet.
        if issubclass(section, Section):
            yield Mistake(
                "sitemapkit.W100",
                f"it reads the database while it is declared: {error}",
                "Build the queryset without reading rows; use a Subquery.",
            ).with_name(name, section)
    except Exception as error:  # noqa: BLE001  a project's code may raise anything
        yield mistake_of_crash(error).with_name(name, section)


@check(Tags.models)
def check_current_sites() -> Found:
    """Report a section that reads the sites framework's current site, where there is none."""
    sites = sites_with_urlconf()
    for site in sites if len(sites) > 1 else ():
        for section in registry.enabled_classes(site):
            try:
                _ = reader_of(section(site)).rows
            except NoFrameworkSite as error:
                yield Mistake(
                    "sitemapkit.W156",
                    f"Section {section.get_name()!r} on site {site.key!r}: {error.message}",
                    error.hint,
                    section,
                )
            except Exception:  # noqa: BLE001, S112  check_declarations() reports it
                continue


# External sections --------------------------------------------------------------------------------


IDLE = (option_names(Section) | option_names(ItemSection)) - option_names(ExternalSection)
"""The options that only other sections have."""


def mistakes_of_external(section: ExternalSection) -> Iterator[Mistake]:
    """Yield the mistakes in the declaration of an external section."""
    yield from _options_without_effect(type(section))
    items = () if callable(section.sitemaps) else section.sitemaps
    wrong = [items]
    if _is_list(items):
        wrong = [item for item in items if not isinstance(item, (str, External))]
    if wrong:
        yield Mistake(
            "sitemapkit.E020",
            f"sitemaps has {wrong[0]!r}",
            "Set a list of URL names, paths, absolute URLs and External(), or write a method.",
        )
        items = ()
    yield from _wrong_hosts_and_items(section, items)
    lastmods = [item.lastmod for item in items if isinstance(item, External)]
    for lastmod in lastmods if callable(section.lastmod) else [section.lastmod, *lastmods]:
        try:
            format_lastmod(lastmod)
        except InvalidValue as refusal:
            yield Mistake(
                "sitemapkit.E023",
                str(refusal),
                "Set a date or a datetime, or write lastmod(self, item).",
            )


def _is_list(value: Any) -> bool:
    """Return whether a value is a collection such as a list: no text, no mapping."""
    return isinstance(value, Collection) and not isinstance(value, (str, bytes, Mapping))


def _options_without_effect(section: type[ExternalSection]) -> Iterator[Mistake]:
    """Yield mistakes for attributes that are options of other sections, or misspelt options."""
    for name in sorted(unknown_attributes(section)):
        close = closest_option(name, option_names(section))
        if close or name in IDLE:
            yield Mistake(
                "sitemapkit.E024",
                f"{name} is not an option of external sections",
                f"Did you mean {close}?" if close else "Name the files in sitemaps.",
            )


def _wrong_hosts_and_items(section: ExternalSection, items: Collection[Any]) -> Iterator[Mistake]:
    """Yield mistakes for hosts that are not origins, and items that the index would skip."""
    with section.site.active():
        locations = call_for_each(url_of_item, items, "sitemaps")
    wrong: list[str] = []
    if not _is_list(section.hosts):
        wrong.append(f"hosts is {section.hosts!r}")
    else:
        with suppress(ImproperlyConfigured):  # W005 reports that no sitemap is served.
            allowed = AllowedLocations(section)
            wrong += [str(refusal) for _, refusal in allowed.refused]
            located = [one for one in locations if isinstance(one, str)]
            locations += call_for_each(allowed.address, located, "sitemaps")
    for reason in wrong:
        yield Mistake("sitemapkit.E022", reason, 'Set a list such as ["https://cdn.example.com"].')
    for refusal in (one for one in locations if isinstance(one, InvalidValue)):
        yield Mistake(
            "sitemapkit.E021",
            str(refusal),
            "It must be a URL of the site, in the folder of its sitemap or below, or on hosts.",
        )
