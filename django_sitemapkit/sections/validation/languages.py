"""Mistakes in what a section says of languages and extensions."""

import re
from collections.abc import Sequence

from django.conf import settings
from django.core.exceptions import FieldDoesNotExist, FieldError, ImproperlyConfigured

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.extensions import NAMESPACES, format_hreflang, hreflang_doubt
from django_sitemapkit.protocol.limits import NAMESPACE
from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.contrib import ContribSection
from django_sitemapkit.sections.languages import default_language, default_url
from django_sitemapkit.sections.options import Column, Method, Plain
from django_sitemapkit.sections.querysets import Section
from django_sitemapkit.sections.routes import Route
from django_sitemapkit.sections.translations import Related, Translated
from django_sitemapkit.sections.validation.faults import Fault, queryset_of
from django_sitemapkit.sites import site_at

_PREFIX = re.compile(r"[a-z_][a-z0-9_.-]*", re.IGNORECASE)


def idle_languages(section: BaseSection) -> Fault | None:
    """Find what is said of languages by a section that lists each object once."""
    if isinstance(section, ContribSection) or section.i18n:
        if section.i18n and (repeated := _repeated(section.languages)):
            return Fault(f"languages has {repeated!r} twice, which has no effect", "Name it once.")
        if section.i18n and not section.alternates and section.x_default is not False:
            return Fault("x_default has no effect without alternates", "Set alternates = True.")
        return None
    named = [name for name in _OF_LANGUAGES if getattr(section, name) != _OF_LANGUAGES[name]]
    if not named:
        return None
    return Fault(
        f"{', '.join(named)} {'has' if len(named) == 1 else 'have'} no effect without i18n",
        "Set i18n = True to list each object in every language.",
    )


def _repeated(codes: Sequence[str] | str | None) -> str | None:
    """Return a code that is named twice, or None; text is the path of a column."""
    if codes is None or isinstance(codes, str):
        return None
    codes = list(codes)
    return next((code for place, code in enumerate(codes) if code in codes[:place]), None)


_OF_LANGUAGES = {
    name: getattr(BaseSection, name)
    for name in ("languages", "get_languages", "alternates", "x_default", "language_hosts")
}


def wrong_languages(section: BaseSection) -> Fault | None:
    """Find languages that are none, or a host that is none, or named for some of them alone."""
    if isinstance(section, ContribSection) or not section.i18n:
        return None
    known = dict(settings.LANGUAGES)
    named = section.languages
    if isinstance(named, str) and (fault := _wrong_path(section, named)):
        return fault
    codes = list(known) if named is None or isinstance(named, str) else list(named)
    unknown = [code for code in codes if code not in known]
    if not codes or unknown:
        return Fault(
            f"languages names {', '.join(map(repr, unknown)) or 'none'}",
            "Use codes that settings.LANGUAGES has.",
        )
    return (
        _too_few(section, codes) or _wrong_hosts(section, codes) or _wrong_default(section, codes)
    )


def _too_few(section: BaseSection, codes: list[str]) -> Fault | None:
    if section.alternates and section.limit is not None and section.limit < len(codes):
        return Fault(
            f"limit is {section.limit}, and an object has {len(codes)} versions that link to each"
            " other",
            f"Set limit to {len(codes)} or more: they are listed together or not at all.",
        )
    return None


def _wrong_hosts(section: BaseSection, codes: list[str]) -> Fault | None:
    hosts = section.language_hosts
    if hosts and set(hosts) != set(codes):
        return Fault(
            f"language_hosts is for {sorted(hosts)}, and its languages are {sorted(codes)}",
            "Name a host for each language: all sites have to link to the same versions.",
        )
    try:
        for base_url in hosts.values():
            site_at(base_url)
    except (ImproperlyConfigured, AttributeError, TypeError) as error:
        return Fault(f"language_hosts: {error}", 'Use base URLs: {"fr": "https://example.fr"}.')
    return None


def _wrong_path(section: BaseSection, path: str) -> Fault | None:
    rows = queryset_of(section)
    if not isinstance(section, Section):
        return Fault(
            f"languages is {path!r}", "Name a list of codes: a path needs rows to begin at."
        )
    if section.get_languages is not None:
        return Fault(
            f"languages is the path {path!r}, beside get_languages(), which is not asked then",
            "Keep one of them.",
        )
    try:
        _ = rows is None or rows.values_list(path)
    except (FieldError, ValueError) as error:
        return Fault(f"languages: {error}", "Name the column that holds the codes.")
    return None


def _wrong_default(section: BaseSection, codes: list[str]) -> Fault | None:
    default = section.x_default
    if default is True and settings.LANGUAGE_CODE not in codes:
        return Fault(
            f"x_default is True, but {settings.LANGUAGE_CODE!r} is none of its languages",
            "Set it to one of them, or to a path or URL.",
        )
    if isinstance(default, bool) or default in codes:
        return None
    try:
        default_url(default, section)
    except RefusedValue as refusal:
        return Fault(
            f"x_default is {default!r}: {refusal}",
            "Set it to one of its languages, to True, or to a path or URL.",
        )
    return None


def unknown_translation(section: BaseSection) -> Fault | None:
    """Find a translated argument of a Route that the model has no translation of."""
    rows = queryset_of(section)
    if rows is None or not isinstance(section, Section):
        return None
    route = section.location_source
    codes = section.spoken.codes if section.spoken else [default_language()]
    for column in route.columns if isinstance(route, Route) else ():
        if isinstance(column, Translated):
            try:
                for code in codes:
                    found = column.column(rows.model, code)
                    paths = (found.value, found.language) if isinstance(found, Related) else ()
                    rows.values_list(*paths)
            except (FieldError, FieldDoesNotExist) as error:
                return Fault(f"location: {error}", "Name the relation with the translations.")
    return None


def one_location(section: BaseSection) -> Fault | None:
    """Find versions that would all have one address."""
    if not isinstance(section, Section) or not section.i18n:
        return None
    if not isinstance(section.location_source, Column):
        return None
    return Fault(
        "location is one column, the same in all languages",
        "Use a Route, whose URLs may differ by language, or a method.",
    )


def doubtful_language(section: BaseSection) -> Fault | None:
    """Find the code of a language that Google does not know."""
    if not section.spoken or not section.alternates:
        return None
    for code in section.spoken.codes:
        try:
            doubt = hreflang_doubt(format_hreflang(code))
        except RefusedValue as refusal:
            doubt = str(refusal)
        if doubt:
            return Fault(
                f"the hreflang of language {code!r} will not be understood: {doubt}",
                "Leave it out of languages, or live with it: the pages are listed all the same.",
            )
    return None


def wrong_extension(section: BaseSection) -> Fault | None:
    """Find images, videos, news or elements that are neither a method nor, for images, a column."""
    for option, source in section.extension_sources.items():
        if isinstance(source, Method):
            continue
        if option == "images" and isinstance(section, Section) and isinstance(source, Column):
            continue
        shown = source.value if isinstance(source, Plain) else source.expression
        return Fault(
            f"{option} is {shown!r}",
            f"Write a method: def {option}(self, obj).",
        )
    return None


def wrong_namespace(section: BaseSection) -> Fault | None:
    """Find a namespace whose prefix or name no document may declare, or that nothing uses."""
    for prefix, name in section.namespaces.items():
        reserved = prefix in NAMESPACES or prefix == "xsi" or prefix.lower().startswith("xml")
        if not _PREFIX.fullmatch(prefix) or reserved:
            return Fault(f"namespaces: the prefix {prefix!r} is taken or none", "Use another one.")
        if not name or name in {NAMESPACE, *NAMESPACES.values()}:
            return Fault(f"namespaces: {name!r} is no namespace of yours", "Use a URL of yours.")
    has_elements = "elements" in section.extension_sources
    if has_elements != bool(section.namespaces):
        return Fault(
            "elements and namespaces need each other",
            'Set namespaces = {"prefix": "https://…"} and a method elements(self, obj).',
        )
    return None


def unknown_images(section: BaseSection) -> Fault | None:
    """Find a path to images that leads nowhere."""
    rows = queryset_of(section)
    source = section.extension_sources.get("images")
    if rows is None or not isinstance(source, Column):
        return None
    try:
        rows.values_list(source.expression)
    except (FieldError, ValueError, TypeError) as error:
        return Fault(f"images: {error}", "Name a field, a path over relations, or an F().")
    return None
