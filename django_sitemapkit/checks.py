"""System checks: each mistake has its own, with an id, a message and the way out.

docs/checks.md lists them all. What is wrong with a declaration is found by the functions of
``sections.validation``; what is wrong with settings, sites and models is found here.
"""

import difflib
from importlib import import_module
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Info, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from django_sitemapkit.conf import NAMES, settings
from django_sitemapkit.mixins import SitemapMixin, declared_models, own_options
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.publishing.storage import ALIAS
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering.compression import has_isal
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sections.validation import PAGEABLE, locations, options, rows
from django_sitemapkit.sections.validation.faults import Fault, Finder
from django_sitemapkit.sites import Site, all_sites

PREFIX = "SITEMAPKIT_"

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
    "sitemapkit.E134": (Error, locations.unknown_item),
    "sitemapkit.E135": (Error, options.objectless_method),
    "sitemapkit.W140": (checks.Warning, options.misspelt_option),
    "sitemapkit.W141": (checks.Warning, options.blind_trust),
    "sitemapkit.W143": (checks.Warning, locations.idle_only),
    "sitemapkit.W151": (checks.Warning, locations.overridden_urls),
    "sitemapkit.W152": (checks.Warning, locations.unwritten_alternates),
}
"""Each mistake in a declaration: its id, how grave it is, and what finds it."""


@register(Tags.sites)
def check_settings(**options: Any) -> list[CheckMessage]:
    """E001: a setting has a wrong value."""
    messages: list[CheckMessage] = []
    for name in NAMES:
        try:
            getattr(settings, name)
        except ImproperlyConfigured as error:
            hint = f"docs/settings.md says what {PREFIX}{name} may be."
            messages.append(Error(str(error), hint=hint, id="sitemapkit.E001"))
    return messages


@register(Tags.sites)
def check_urlconfs(**options: Any) -> list[CheckMessage]:
    """E010: a site's URLconf cannot be imported."""
    messages: list[CheckMessage] = []
    for site in _sites_in_settings():
        try:
            import_module(site.urlconf or django_settings.ROOT_URLCONF)
        except ImportError as error:
            message = f'SITEMAPKIT_SITES[{site.key!r}]["URLCONF"]: {error}.'
            hint = "Give the dotted path of a module that can be imported."
            messages.append(Error(message, hint=hint, id="sitemapkit.E010"))
    return messages


@register(Tags.sites)
def check_addresses_differ(**options: Any) -> list[CheckMessage]:
    """E013: two sites have the same base URL, so that one of them is never found."""
    taken: dict[str, str] = {}
    messages: list[CheckMessage] = []
    for site in _sites_in_settings():
        base = f"{site.origin}{site.path}"
        if base in taken:
            message = f"Sites {taken[base]!r} and {site.key!r} of SITEMAPKIT_SITES are both {base}."
            hint = "Give each a base URL of its own."
            messages.append(Error(message, hint=hint, id="sitemapkit.E013"))
        taken.setdefault(base, site.key)
    return messages


@register(Tags.sites)
def check_unknown_settings(**options: Any) -> list[CheckMessage]:
    """W002: a setting does not exist, and so does nothing."""
    messages: list[CheckMessage] = []
    for setting in dir(django_settings):
        name = setting.removeprefix(PREFIX)
        if setting.startswith(PREFIX) and name not in NAMES:
            close = difflib.get_close_matches(name, NAMES, n=1)
            hint = f"Did you mean {PREFIX}{close[0]}?" if close else "Take it out."
            messages.append(
                checks.Warning(f"{setting} is no setting.", hint=hint, id="sitemapkit.W002")
            )
    return messages


@register(Tags.sites)
def check_site_sections(**options: Any) -> list[CheckMessage]:
    """E003: SITEMAPKIT_SITES names a section that nobody registered."""
    known = {section.get_name() for section in registry}
    return [
        Error(
            f"SITEMAPKIT_SITES[{site.key!r}]: there is no section {name!r}.",
            hint=f"The registered sections are: {', '.join(sorted(known)) or 'none'}.",
            id="sitemapkit.E003",
        )
        for site in _configured()
        for name in site.sections or ()
        if name not in known
    ]


@register(Tags.sites)
def check_section_sites(**options: Any) -> list[CheckMessage]:
    """E004: a section is for a site that SITEMAPKIT_SITES does not have."""
    known = {site.key for site in _configured()} if _sites_are_set() else set()
    return [
        Error(
            f"Section {section.get_name()!r}: SITEMAPKIT_SITES has no {key!r}.",
            hint=f"The keys are: {', '.join(sorted(known))}.",
            obj=section,
            id="sitemapkit.E004",
        )
        for section in registry
        for key in map(str, section.sites or ())
        if known and key not in known
    ]


@register(Tags.urls)
def check_addresses(**options: Any) -> list[CheckMessage]:
    """W005: the package's URLs are not included."""
    messages: list[CheckMessage] = []
    for site in _configured():
        try:
            site.scope()
        except ImproperlyConfigured as error:
            hint = "Until then no sitemap is served."
            messages.append(checks.Warning(str(error), hint=hint, id="sitemapkit.W005"))
    return messages


@register(Tags.urls)
def check_scope(**options: Any) -> list[CheckMessage]:
    """W006: the package's URLs are included below the site's root."""
    messages: list[CheckMessage] = []
    for site in _configured():
        try:
            directory = site.scope().directory
        except ImproperlyConfigured:
            continue
        if not site.prefix.startswith(directory):
            messages.append(
                checks.Warning(
                    f"Site {site.key!r}: a sitemap in {directory} may list nothing outside of it.",
                    hint="Include django_sitemapkit.urls at the root, unless you mean it so.",
                    id="sitemapkit.W006",
                )
            )
    return messages


@register(Tags.security, deploy=True)
def check_host(**options: Any) -> list[CheckMessage]:
    """W007: only the Host header says where the site is."""
    if _configured() or apps.is_installed("django.contrib.sites"):
        return []
    hint = 'Set SITEMAPKIT_BASE_URL = "https://www.example.com".'
    message = (
        "Sitemaps take their host from the request; with wildcards in ALLOWED_HOSTS they fail."
    )
    return [checks.Warning(message, hint=hint, id="sitemapkit.W007")]


@register(Tags.files, deploy=True)
def check_storage(**options: Any) -> list[CheckMessage]:
    """W008: the files go to the static files storage, which others clear."""
    if ALIAS in django_settings.STORAGES or _value_of("SERVE") == "live":
        return []
    message = (
        f"STORAGES has no {ALIAS!r}: sitemaps are stored among the static files, where"
        " `collectstatic --clear` deletes them."
    )
    hint = f"Add an entry {ALIAS!r} to STORAGES; docs/hosting.md has examples."
    return [checks.Warning(message, hint=hint, id="sitemapkit.W008")]


@register(Tags.files)
def check_sendfile(**options: Any) -> list[CheckMessage]:
    """E009: the web server is to send files that do not lie on its disk."""
    sendfile = _value_of("SENDFILE")
    if sendfile is None or _has_local_path():
        return []
    return [
        Error(
            f"SITEMAPKIT_SENDFILE is {sendfile!r}, but the storage has no path on a local disk.",
            hint=f"Take it out, or let STORAGES[{ALIAS!r}] be a FileSystemStorage.",
            id="sitemapkit.E009",
        )
    ]


@register(Tags.files)
def check_codec(**options: Any) -> list[CheckMessage]:
    """E014: the codec asked for is not installed."""
    if _value_of("GZIP") != "isal" or has_isal():
        return []
    return [
        Error(
            'SITEMAPKIT_GZIP is "isal", which is not installed.',
            hint='Install django-sitemapkit[fast], or set it to "auto".',
            id="sitemapkit.E014",
        )
    ]


@register()
def check_runner(**options: Any) -> list[CheckMessage]:
    """E015: there is no such runner."""
    name = _value_of("RUNNER")
    try:
        if name is not None:
            get_runner(name)
    except (ImportError, ImproperlyConfigured, TypeError) as error:
        return [
            Error(
                f"SITEMAPKIT_RUNNER is {name!r}: {error}",
                hint='Set it to "inline", "processes" or the dotted path of a Runner.',
                id="sitemapkit.E015",
            )
        ]
    return []


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
    """E100, W100: a section cannot be asked; E101 to W152: what is wrong with its declaration."""
    messages: list[CheckMessage] = []
    for section_class in registry:
        section = section_class(_site_of(section_class))
        for identifier, (kind, find) in DECLARATION.items():
            try:
                fault = find(section)
            except DatabaseError as error:
                messages.append(_unread(section, error))
                break
            except Exception as error:  # noqa: BLE001  a project's method may raise anything
                messages.append(_unasked(section, error))
                break
            if fault is not None:
                messages.append(_message(kind, identifier, section, fault))
    return messages


@register(Tags.models, deploy=True)
def check_costs(**options: Any) -> list[CheckMessage]:
    """I142: a section reads objects where columns would do; said only of a deployment."""
    sections = [section(_site_of(section)) for section in registry]
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
    text = f"Section {section.get_name()!r}: {fault.message}."
    return kind(text, hint=fault.hint, obj=type(section), id=identifier)


def _unasked(section: BaseSection, error: Exception) -> CheckMessage:
    return Error(
        f"Section {section.get_name()!r} raised {type(error).__name__}: {error}",
        hint="get_queryset() must work without rows, and without tables it does not read.",
        obj=type(section),
        id="sitemapkit.E100",
    )


def _value_of(name: str) -> Any:
    """Return a setting; None where its value is wrong, which E001 reports."""
    try:
        return getattr(settings, name)
    except ImproperlyConfigured:
        return None


def _has_local_path() -> bool:
    try:
        return SitemapStorage().local_path("x") is not None
    except ImproperlyConfigured:  # Such as the static files storage without STATIC_ROOT.
        return False


def _unread(section: BaseSection, error: Exception) -> CheckMessage:
    """Tell it as a warning: an error would keep ``migrate`` from making the table."""
    return checks.Warning(
        f"Section {section.get_name()!r} reads the database while it is declared: {error}",
        hint="Build the queryset without reading rows; use a Subquery.",
        obj=type(section),
        id="sitemapkit.W100",
    )


def _sites_are_set() -> bool:
    try:
        return bool(settings.SITES)
    except ImproperlyConfigured:
        return False


def _sites_in_settings() -> list[Site]:
    """Return the sites of the settings; none where a setting is wrong, which E001 reports."""
    try:
        return all_sites() if settings.SITES or settings.BASE_URL else []
    except ImproperlyConfigured:
        return []


def _configured() -> list[Site]:
    """Return the sites of the settings that have a URLconf; E010 reports the others."""
    return [site for site in _sites_in_settings() if _has_urlconf(site)]


def _has_urlconf(site: Site) -> bool:
    try:
        import_module(site.urlconf or django_settings.ROOT_URLCONF)
    except ImportError:
        return False
    return True


def _site_of(section: type[BaseSection]) -> Site:
    """Return a site that has the section, for a look at its declaration."""
    sites = _configured() or [Site.at("https://www.example.com")]
    keys = None if section.sites is None else set(map(str, section.sites))
    return next((site for site in sites if keys is None or site.key in keys), sites[0])
