"""Mistakes in the options of sections that a project declares itself."""

import difflib
import inspect
import re
from typing import ClassVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.extensions import NAMESPACES
from django_sitemapkit.protocol.limits import NAMESPACE
from django_sitemapkit.reading.languages import default_url
from django_sitemapkit.reading.sources import (
    EXTENSIONS,
    PRECISIONS,
    TAGS,
    Column,
    Constant,
    Method,
    Source,
)
from django_sitemapkit.reading.validation.common import FindMistake, Mistake, SectionChecks
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import site_at

_PACKAGE = "django_sitemapkit."
_PREFIX = re.compile(r"[a-z_][a-z0-9_.-]*", re.IGNORECASE)

_METHODS = ("location", "entries", *TAGS, *EXTENSIONS, "object_languages", "title")
"""The options that may be methods, which get the object."""

_ELSEWHERE = {
    "items": "Set queryset, or derive from ItemSection.",
    "queryset": "Derive from Section, or set items.",
    "protocol": "The scheme is that of SITEMAPKIT_BASE_URL.",
    "paginate_by": "Set limit.",
    "get_urls": "Override location and the tags instead.",
    "get_latest_lastmod": "Set trust_lastmod.",
    "template_name": "Stream your own template with stream_template().",
    "get_languages_for_item": "Name it object_languages.",
}
"""Options of contrib, and of other kinds of sections, and what to do instead."""

_LANGUAGE_OPTIONS = {
    name: getattr(BaseSection, name)
    for name in ("languages", "object_languages", "alternates", "x_default", "language_hosts")
}


def options_of(section: type[BaseSection]) -> frozenset[str]:
    """Return the names of the options and hooks of a kind of section."""
    ours = [base for base in section.__mro__ if base.__module__.startswith(_PACKAGE)]
    return frozenset(name for base in ours for name in vars(base) if not name.startswith("_"))


class OptionChecks(SectionChecks):
    """The checks of a section that a project declares by subclassing one of ours."""

    def project_attributes(self) -> list[str]:
        """Return the names that the project's own classes define."""
        bases = type(self.options).__mro__
        theirs = [base for base in bases if not base.__module__.startswith(_PACKAGE)]
        return [name for base in theirs if base is not object for name in vars(base)]

    def misplaced_option(self) -> Mistake | None:
        """Find an option of contrib, or of another kind of section, that means nothing here."""
        known = options_of(type(self.options))
        for name in self.project_attributes():
            if name in _ELSEWHERE and name not in known:
                return Mistake(f"{name} is not an option here", _ELSEWHERE[name])
        return None

    def misspelt_option(self) -> Mistake | None:
        """Find an attribute that is nearly an option, and so does nothing."""
        known = options_of(type(self.options))
        for name in self.project_attributes():
            if name in known or name in _ELSEWHERE or name.startswith("_"):
                continue
            if close := difflib.get_close_matches(name, known, n=1, cutoff=0.8):
                return Mistake(f"{name} is not an option", f"Did you mean {close[0]}?")
        return None

    def objectless_method(self) -> Mistake | None:
        """Find a method that does not take the object it will be given."""
        for name in _METHODS:
            source = self.reader.declared_source(name) if hasattr(self.options, name) else None
            if not isinstance(source, Method):
                continue
            try:
                inspect.signature(source.function).bind(object())
            except TypeError:
                hint = f"Write {name}(self, obj)."
                return Mistake(f"{name}() cannot be called with an object", hint)
            except ValueError:
                continue  # A callable without a signature.
        return None

    def idle_languages(self) -> Mistake | None:
        """Find language options without effect."""
        if self.options.i18n:
            return super().idle_languages()
        default = _LANGUAGE_OPTIONS
        named = [name for name in default if getattr(self.options, name) != default[name]]
        if self.reader.links_rows and "x_default" in named:
            named.remove("x_default")
        if not named:
            return None
        return Mistake(
            f"{', '.join(named)} {'has' if len(named) == 1 else 'have'} no effect without i18n",
            "Set i18n = True to list each object in every language.",
        )

    def wrong_languages(self) -> Mistake | None:
        """Find languages and hosts that do not exist, or hosts for some of the languages alone."""
        if not self.options.i18n:
            return None
        named = self.options.languages
        if isinstance(named, str):
            return Mistake(
                f"languages is {named!r}",
                "Use a list of codes. For a field path to the codes of each object, use"
                " object_languages.",
            )
        known = dict(settings.LANGUAGES)
        codes = list(known) if named is None else list(named)
        unknown = [code for code in codes if code not in known]
        if not codes or unknown:
            return Mistake(
                f"languages names {', '.join(map(repr, unknown)) or 'none'}",
                "Use codes from settings.LANGUAGES.",
            )
        return (
            self._wrong_object_languages()
            or self._too_few(codes)
            or self._wrong_hosts(codes)
            or self._wrong_default(codes)
        )

    def _wrong_object_languages(self) -> Mistake | None:
        source = self.reader.declared_source("object_languages")
        if isinstance(source, Method) or self.options.object_languages is None:
            return None
        return Mistake(
            f"object_languages is {_shown(source)!r}",
            "Write a method: def object_languages(self, obj).",
        )

    def _too_few(self, codes: list[str]) -> Mistake | None:
        limit = self.options.limit
        if self.options.alternates and limit is not None and limit < len(codes):
            return Mistake(
                f"limit is {limit}, and an object has {len(codes)} versions that link to each"
                " other",
                f"Set limit to {len(codes)} or more: they are listed together or not at all.",
            )
        return None

    def _wrong_hosts(self, codes: list[str]) -> Mistake | None:
        hosts = self.options.language_hosts
        if hosts and set(hosts) != set(codes):
            return Mistake(
                f"language_hosts has {sorted(hosts)}, but the languages are {sorted(codes)}",
                "Name a host for each language: all sites have to link to the same versions.",
            )
        try:
            for base_url in hosts.values():
                site_at(base_url)
        except (ImproperlyConfigured, AttributeError, TypeError) as error:
            hint = 'Use base URLs: {"fr": "https://example.fr"}.'
            return Mistake(f"language_hosts: {error}", hint)
        return None

    def _wrong_default(self, codes: list[str]) -> Mistake | None:
        default = self.options.x_default
        if default is True and settings.LANGUAGE_CODE not in codes:
            return Mistake(
                f"x_default is True, but {settings.LANGUAGE_CODE!r} is not one of its languages",
                "Set it to one of them, or to a path or URL.",
            )
        if isinstance(default, bool) or default in codes:
            return None
        try:
            default_url(default, self.options)
        except InvalidValue as refusal:
            return Mistake(
                f"x_default is {default!r}: {refusal}",
                "Set it to one of its languages, to True, or to a path or URL.",
            )
        return None

    def wrong_extension(self) -> Mistake | None:
        """Find images, videos, news or elements that are not methods."""
        for option, source in self.reader.extension_sources.items():
            is_column = isinstance(source, Column) and option in self.reader.text_paths
            if not isinstance(source, Method) and not is_column:
                hint = f"Write a method: def {option}(self, obj)."
                return Mistake(f"{option} is {_shown(source)!r}", hint)
        return None

    def wrong_namespace(self) -> Mistake | None:
        """Find a namespace whose prefix or name no document may declare, or that nothing uses."""
        namespaces = self.options.namespaces
        for prefix, name in namespaces.items():
            reserved = prefix in NAMESPACES or prefix == "xsi" or prefix.lower().startswith("xml")
            if not _PREFIX.fullmatch(prefix) or reserved:
                message = f"namespaces: the prefix {prefix!r} is empty or already in use"
                return Mistake(message, "Use another prefix.")
            if not name or name in {NAMESPACE, *NAMESPACES.values()}:
                message = f"namespaces: {name!r} is not a namespace of your own"
                return Mistake(message, "Use a URL of your own.")
        has_elements = "elements" in self.reader.extension_sources
        if has_elements != bool(namespaces):
            return Mistake(
                "elements and namespaces need each other",
                'Set namespaces = {"prefix": "https://…"} and a method elements(self, obj).',
            )
        return None

    def wrong_precision(self) -> Mistake | None:
        """Find a precision of lastmod that is not one."""
        precision = self.options.lastmod_precision
        if precision in PRECISIONS:
            return None
        return Mistake(f"lastmod_precision is {precision!r}", 'Set it to "second" or "day".')

    def idle_trust(self) -> Mistake | None:
        """Find trust_lastmod on a section whose lastmod is not a column."""
        if not self.options.trust_lastmod:
            return None
        return Mistake(
            "trust_lastmod has no effect: lastmod is not a column",
            "Set lastmod to a DateTimeField, or remove trust_lastmod.",
        )

    CHECKS: ClassVar[dict[str, FindMistake]] = SectionChecks.CHECKS | {
        "sitemapkit.E121": misplaced_option,
        "sitemapkit.E135": objectless_method,
        "sitemapkit.E136": wrong_languages,
        "sitemapkit.E139": wrong_extension,
        "sitemapkit.E144": wrong_namespace,
        "sitemapkit.E146": wrong_precision,
        "sitemapkit.W140": misspelt_option,
        "sitemapkit.W141": idle_trust,
        "sitemapkit.W152": idle_languages,
    }


def _shown(source: Source) -> object:
    """Return what an option is set to, for a message."""
    match source:
        case Constant(value):
            return value
        case Column(expression):
            return expression
    return source.function  # type: ignore[union-attr]  # what is declared is no Formula
