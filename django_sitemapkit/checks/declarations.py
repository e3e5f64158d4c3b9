"""Checks of models and sections; ``reading.validation`` finds the mistakes of declarations."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Tags, register
from django.db import DatabaseError
from django.db.models import Model

from django_sitemapkit.checks.base import (
    Found,
    check,
    configured,
    message_of,
    raised_message,
    serves_by_drop_in,
    site_of,
    warned_of,
)
from django_sitemapkit.mixins import SitemapMixin, declared_models, own_options
from django_sitemapkit.printable import printable
from django_sitemapkit.reading import QuerySetReader, SectionReader, reader_of
from django_sitemapkit.reading.validation import KINDS, checks_of
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import NoFrameworkSite

DECLARATION_IDS = frozenset(
    identifier
    for kind in KINDS.values()
    for identifier in (*kind.CHECKS, *kind.ITEM_CHECKS, *kind.OF_CODE)
)
"""The ids of all mistakes in declarations."""

MODULE = "sitemaps"


@check("sitemapkit.W031", Tags.urls)
def check_registered() -> Found:
    """Report that no section is registered."""
    if registry.is_empty and not serves_by_drop_in() and not _unimported_modules():
        message = "No section is registered; there is no sitemap."
        hint = (
            f"Declare a Section in the module {MODULE}.py of an installed app, with @register"
            " above it."
        )
        yield message, hint


@check("sitemapkit.W032", Tags.urls)
def check_unimported_modules() -> Found:
    """Report a module that registers sections and is not imported."""
    for module in _unimported_modules():
        message = (
            f"{module} is not imported, because {module.rpartition('.')[0]!r} is not an installed"
            " app. The sections that it registers do not exist."
        )
        hint = "Add the package to INSTALLED_APPS, or move the module into an installed app."
        yield message, hint


def _unimported_modules() -> list[str]:
    """Return the modules of the project's own package that register sections, unimported.

    Many put it next to settings and URLconf; that package is seldom an app.
    """
    configured()  # Imports the URLconfs, which may import it.
    settings_module = getattr(django_settings, "SETTINGS_MODULE", None) or ""
    found = []
    for named in dict.fromkeys([settings_module, str(django_settings.ROOT_URLCONF)]):
        package = named.rpartition(".")[0]
        while package:
            found.append(f"{package}.{MODULE}")
            package = package.rpartition(".")[0]
    return [name for name in dict.fromkeys(found) if _is_unimported(name)]


def _is_unimported(module: str) -> bool:
    package = module.rpartition(".")[0]
    if module in sys.modules or package in {app.name for app in apps.get_app_configs()}:
        return False
    try:
        spec = find_spec(module)
        source = Path((spec and spec.origin) or "").read_text(encoding="utf-8")
    except (ImportError, OSError, ValueError):
        return False
    return "django_sitemapkit" in source


@check("sitemapkit.W011", Tags.models)
def check_mixins() -> Found:
    """Report a model that uses SitemapMixin and declares nothing."""
    for model in apps.get_models():
        if SitemapMixin in model.__bases__ and own_options(model) is None:
            message = f"{model._meta.label} has SitemapMixin, but no class Sitemap."
            yield message, "Declare one in the model, or remove the mixin.", model


@check("sitemapkit.E012", Tags.models)
def check_mixin_querysets() -> Found:
    """Report a model's ``class Sitemap`` whose rows are not given by an option.

    It names a method that the manager does not have, or it sets ``queryset``, which it cannot have
    before the model exists.
    """
    for model, declared in declared_models():
        message, hint = _wrong_rows(model, declared)
        if message:
            yield f"{model._meta.label}.Sitemap: {message}", hint, model


def _wrong_rows(model: type[Model], declared: type) -> tuple[str, str]:
    """Return what is wrong with the rows of a model's ``class Sitemap``, and the way out."""
    if getattr(declared, "queryset", None) is not None:
        hint = "Name a method in queryset_method, or set filter to a Q()."
        return "queryset is not an option here.", hint
    name = getattr(declared, "queryset_method", None)
    manager = model._default_manager
    if name is None or (isinstance(name, str) and _has_method(manager, name)):
        return "", ""
    message = f"the default manager has no method {name!r}."
    return message, "Name a method of the manager or its querysets, or set filter to a Q()."


def _has_method(manager: Any, name: str) -> bool:
    return hasattr(manager, name) or hasattr(manager.all(), name)


@register(Tags.models)
def check_declarations(**options: Any) -> list[CheckMessage]:
    """Report sections that raise (W100), and mistakes in their declarations."""
    messages: list[CheckMessage] = []
    for section in registry:
        try:
            site = site_of(section)
            reader = reader_of(section(site)) if site else None
        except Exception as error:  # noqa: BLE001  a project's code may raise anything
            messages.append(raised_message(f"Section {section.get_name()!r}", error, section))
            continue
        if reader is not None:
            messages += _messages_of(reader)
    return messages


def _messages_of(reader: SectionReader) -> Iterator[CheckMessage]:
    found = checks_of(reader)
    for identifier, check_one in [*sorted(found.CHECKS.items()), *found.ITEM_CHECKS.items()]:
        try:
            mistake = check_one(found)
        except NoFrameworkSite:
            return  # W156 reports it.
        except DatabaseError as error:
            # Items may be a list of rows, and the tables may not exist yet.
            if isinstance(reader, QuerySetReader):
                text = f" reads the database while it is declared: {error}"
                hint = "Build the queryset without reading rows; use a Subquery."
                yield _message("sitemapkit.W100", reader, text, hint)
            return
        except Exception as error:  # noqa: BLE001  a project's method may raise anything
            yield raised_message(f"Section {reader.get_name()!r}", error, type(reader.options))
            return
        if mistake is not None:
            reported = warned_of(identifier, found.OF_CODE if found.calls_code else ())
            yield _message(reported, reader, f": {mistake.sentence}", mistake.hint)


@check("sitemapkit.W156", Tags.models)
def check_current_sites() -> Found:
    """Report a section that asks for the current site, which the sites framework does not have."""
    sites = configured()
    for site in sites if len(sites) > 1 else ():
        for section in registry.registered(site):
            try:
                _ = reader_of(section(site)).rows
            except NoFrameworkSite as error:
                message = f"Section {section.get_name()!r} on site {site.key!r}: {error.message}"
                yield message, error.hint, section
            except Exception:  # noqa: BLE001, S112  check_declarations() reports it
                continue


def _message(identifier: str, reader: SectionReader, text: str, hint: str) -> CheckMessage:
    message = printable(f"Section {reader.get_name()!r}{text}")
    return message_of(identifier, message, hint, type(reader.options))
