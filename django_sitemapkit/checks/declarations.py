"""Checks of models and sections: the mistakes themselves are in ``reading.validation``."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.checks import CheckMessage, Error, Info, Tags, register
from django.db import DatabaseError
from django.db.models import Model

from django_sitemapkit.checks.asking import configured, site_of
from django_sitemapkit.mixins import SitemapMixin, declared_models, own_options
from django_sitemapkit.printable import printable
from django_sitemapkit.reading import QuerySetReader, SectionReader, reader_of
from django_sitemapkit.reading.validation import KINDS, Mistake, checks_of
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import NoFrameworkSite

DECLARATION_IDS = frozenset(
    identifier
    for kind in KINDS.values()
    for identifier in (*kind.CHECKS, *kind.ITEM_CHECKS, *kind.COSTS)
)
"""The ids of all mistakes in declarations."""

_LEVELS: dict[str, type[Error] | type[checks.Warning] | type[Info]] = {
    "E": Error,
    "W": checks.Warning,
    "I": Info,
}


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
    """E012: a model's ``class Sitemap`` names a method that its manager does not have.

    Or it sets ``queryset``, which it cannot have before the model is made.
    """
    messages: list[CheckMessage] = []
    for model, declared in declared_models():
        message, hint = _wrong_rows(model, declared)
        if message:
            text = f"{model._meta.label}.Sitemap: {message}"
            messages.append(Error(text, hint=hint, obj=model, id="sitemapkit.E012"))
    return messages


def _wrong_rows(model: type[Model], declared: type) -> tuple[str, str]:
    """Return what is wrong with the rows of a model's ``class Sitemap``, and the way out."""
    if getattr(declared, "queryset", None) is not None:
        hint = "Name a method in queryset_method, or set filter to a Q()."
        return "queryset is no option here.", hint
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
    """E100, W100: a section raises; E101 to E155, W140 to W153: a mistake in its declaration."""
    messages: list[CheckMessage] = []
    for section in registry:
        messages += _messages_of(reader_of(section(site_of(section))))
    return messages


def _messages_of(reader: SectionReader) -> Iterator[CheckMessage]:
    found = checks_of(reader)
    for identifier, check in [*sorted(found.CHECKS.items()), *found.ITEM_CHECKS.items()]:
        try:
            mistake = check(found)
        except NoFrameworkSite:
            return  # E156 reports it.
        except DatabaseError as error:
            # Items may be a list of rows, and the database not there yet.
            if isinstance(reader, QuerySetReader):
                yield _reads_early(reader, error)
            return
        except Exception as error:  # noqa: BLE001  a project's method may raise anything
            yield _raised(reader, error)
            return
        if mistake is not None:
            yield _message(identifier, reader, mistake)


@register(Tags.models)
def check_current_sites(**options: Any) -> list[CheckMessage]:
    """E156: a section asks for the current site, which the sites framework does not have."""
    messages: list[CheckMessage] = []
    sites = configured()
    for site in sites if len(sites) > 1 else ():
        for reader in registry.of(site):
            try:
                reader.prepare()
            except NoFrameworkSite as error:
                message = f"Section {reader.get_name()!r} on site {site.key!r}: {error.message}"
                kind = type(reader.options)
                messages.append(Error(message, hint=error.hint, obj=kind, id="sitemapkit.E156"))
            except Exception:  # noqa: BLE001, S112  check_declarations() reports it
                continue
    return messages


@register(Tags.models, deploy=True)
def check_costs(**options: Any) -> list[CheckMessage]:
    """I142: a section reads objects where columns would do; reported only for a deployment."""
    messages: list[CheckMessage] = []
    for section in registry:
        reader = reader_of(section(site_of(section)))
        found = checks_of(reader)
        if not _is_broken(reader):
            mistakes = [(identifier, check(found)) for identifier, check in found.COSTS.items()]
            messages += [_message(name, reader, mistake) for name, mistake in mistakes if mistake]
    return messages


def _is_broken(reader: SectionReader) -> bool:
    found = checks_of(reader)
    try:
        return any(check(found) for check in found.PAGEABLE)
    except Exception:  # noqa: BLE001  what check_declarations() reports as E100
        return True


def _message(identifier: str, reader: SectionReader, mistake: Mistake) -> CheckMessage:
    kind = _LEVELS[identifier.partition(".")[2][0]]
    text = printable(f"Section {reader.get_name()!r}: {mistake.sentence}")
    return kind(text, hint=mistake.hint, obj=type(reader.options), id=identifier)


def _raised(reader: SectionReader, error: Exception) -> CheckMessage:
    return Error(
        printable(f"Section {reader.get_name()!r} raised {type(error).__name__}: {error}"),
        hint="get_queryset() must work without rows, and without tables it does not read.",
        obj=type(reader.options),
        id="sitemapkit.E100",
    )


def _reads_early(reader: SectionReader, error: Exception) -> CheckMessage:
    """Return a warning: an error would keep ``migrate`` from making the table."""
    return checks.Warning(
        printable(
            f"Section {reader.get_name()!r} reads the database while it is declared: {error}"
        ),
        hint="Build the queryset without reading rows; use a Subquery.",
        obj=type(reader.options),
        id="sitemapkit.W100",
    )
