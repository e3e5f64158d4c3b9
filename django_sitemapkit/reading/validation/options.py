"""Mistakes in the options of a section, whatever its rows are."""

import datetime as dt
import difflib
import inspect
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.contrib.sitemaps import GenericSitemap
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, NotSupportedError
from django.db.models import DateField, DateTimeField, Q, QuerySet

from django_sitemapkit import _django
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.extensions import format_hreflang, hreflang_doubt
from django_sitemapkit.protocol.limits import MAX_URLS, NAMESPACE, NAMESPACES
from django_sitemapkit.protocol.locations import UNENCODED
from django_sitemapkit.reading import ContribReader, SectionReader
from django_sitemapkit.reading.digests import moment_in
from django_sitemapkit.reading.languages import x_default_url
from django_sitemapkit.reading.sources import OPTIONS, TAGS, UNSET, Column, Constant, Method
from django_sitemapkit.reading.validation.mistakes import Mistake
from django_sitemapkit.sections import BaseSection, Section, Translated
from django_sitemapkit.sites import site_at

_PACKAGE = "django_sitemapkit."
_PREFIX = re.compile(r"[a-z_][a-z0-9_.-]*", re.IGNORECASE)
_URI = re.compile(rf"[{UNENCODED}%#]+")

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


def option_names(section: type) -> frozenset[str]:
    """Return the names of all options and hooks of a class of sections."""
    ours = [base for base in section.__mro__ if base.__module__.startswith(_PACKAGE)]
    return frozenset(name for base in ours for name in vars(base) if not name.startswith("_"))


def unknown_attributes(section: type) -> list[str]:
    """Return the names that a project's own classes define and that are no option or hook."""
    known = option_names(section)
    theirs = [base for base in section.__mro__ if not base.__module__.startswith(_PACKAGE)]
    names = [name for base in theirs if base is not object for name in vars(base)]
    return [name for name in names if name not in known]


def closest_option(name: str, known: Collection[str]) -> str:
    """Return the known option that a name was probably meant to be; "" if none is similar."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.8)
    return close[0] if close and not name.startswith("_") else ""


def has_no_rows(options: Any) -> bool:
    """Return whether a ``Section`` neither sets a queryset nor overrides ``get_queryset()``."""
    return type(options).get_queryset is Section.get_queryset and options.queryset is None


def mistakes_in_options(reader: SectionReader) -> Iterator[Mistake]:
    """Yield the mistakes that are found without rows and items."""
    options = reader.options
    yield from wrong_sources(reader)
    if not isinstance(reader, ContribReader):
        yield from unknown_options(options)
        yield from methods_without_object(reader)
        if options.i18n:
            yield from wrong_languages(options)
        else:
            yield from language_options_without_i18n(reader)
        yield from wrong_namespaces(reader)
    if options.i18n:
        yield from ineffective_language_options(options)
        yield from doubtful_languages(reader)
    moment = next(filter(_is_from_import, _declared_moments(options)), None)
    if moment is not None:
        yield Mistake(
            "sitemapkit.W164",
            f"it compares with {moment}, the time at which it was imported, or has it as lastmod:"
            " until the process ends, it stays the same",
            "Use Now() of django.db.models.functions, or a method: def get_queryset(self).",
        )


def wrong_limit(limit: Any) -> Iterator[Mistake]:
    """Find a limit that is not a number of URLs allowed in a file."""
    whole = isinstance(limit, int) and not isinstance(limit, bool)
    if limit is not None and not (whole and 1 <= limit <= MAX_URLS):
        yield Mistake(
            "sitemapkit.E122",
            f"limit is {limit!r}",
            f"Set it to a whole number from 1 to {MAX_URLS:,}.",
        )


def wrong_sources(reader: SectionReader) -> Iterator[Mistake]:
    """Find options of a wrong kind, or with a value that the protocol does not allow."""
    options = reader.options
    for name in TAGS if isinstance(reader, ContribReader) else OPTIONS:
        source, option = reader.declared_source(name), OPTIONS[name]
        if source == UNSET or (option.needs and not getattr(options, option.needs)):
            continue
        value = getattr(options, name)
        if name == "title" and isinstance(value, Translated):
            continue  # A column in each language.
        is_other_value = option.one_of and value not in option.one_of
        is_idle_column = isinstance(source, Column) and not reader.has_columns
        if is_idle_column and Constant in option.takes:
            yield Mistake(
                "sitemapkit.E129",
                f"{name} is a column, but its items are not rows",
                "Use a value or a method.",
            )
        elif is_idle_column or is_other_value or not isinstance(source, option.takes):
            yield Mistake(
                option.check,
                f"{name} is {value!r}",
                option.hint or f"Write a method: def {name}(self, obj).",
            )
        elif isinstance(source, Constant) and option.format_value is not None:
            try:
                option.format_value(source.value)
            except InvalidValue as refusal:
                yield Mistake(option.check, f"{name}: {refusal}", option.hint)


def unknown_options(options: BaseSection) -> Iterator[Mistake]:
    """Find options of contrib or of other kinds of sections, and options that are misspelt."""
    known = option_names(type(options))
    for name in unknown_attributes(type(options)):
        if name in _ELSEWHERE:
            # Without rows, E101 names items already.
            if not (name == "items" and has_no_rows(options)):
                yield Mistake("sitemapkit.E121", f"{name} is not an option here", _ELSEWHERE[name])
        elif close := closest_option(name, known):
            yield Mistake("sitemapkit.W140", f"{name} is not an option", f"Did you mean {close}?")


def methods_without_object(reader: SectionReader) -> Iterator[Mistake]:
    """Find methods that do not take the object with which they will be called."""
    by_object = [
        name
        for name, option in OPTIONS.items()
        if Method in option.takes and not option.in_fingerprint
    ]
    for name in ("location", "entries", *by_object):
        source = reader.declared_source(name)
        try:
            if isinstance(source, Method):
                inspect.signature(source.function).bind(object())
        except TypeError:
            yield Mistake(
                "sitemapkit.E135",
                f"{name}() cannot be called with an object",
                f"Write {name}(self, obj).",
            )
        except ValueError:
            continue  # A callable without a signature.


# Languages ----------------------------------------------------------------------------------------


def ineffective_language_options(options: BaseSection) -> Iterator[Mistake]:
    """Find repeated languages, and x_default without alternates, in a section with ``i18n``."""
    codes = [] if isinstance(options.languages, str) else list(options.languages or ())
    for code in {code: None for code in codes if codes.count(code) > 1}:
        yield Mistake(
            "sitemapkit.W152",
            f"languages has {code!r} twice, which has no effect",
            "Name it once.",
        )
    if not options.alternates and options.x_default is not False:
        yield Mistake(
            "sitemapkit.W152",
            "x_default has no effect without alternates",
            "Set alternates = True.",
        )


def language_options_without_i18n(reader: SectionReader) -> Iterator[Mistake]:
    """Find language options that have no effect, as ``i18n`` is not set."""
    options = reader.options
    idle = [
        name
        for name, option in OPTIONS.items()
        if option.needs == "i18n" and getattr(options, name) != getattr(BaseSection, name)
    ]
    if reader.links_rows and "x_default" in idle:
        idle.remove("x_default")
    if idle:
        yield Mistake(
            "sitemapkit.W152",
            f"{', '.join(idle)} {'has' if len(idle) == 1 else 'have'} no effect without i18n",
            "Set i18n = True to list each object in every language.",
        )


def doubtful_languages(reader: SectionReader) -> Iterator[Mistake]:
    """Find languages whose hreflang code Google does not know."""
    languages = reader.languages
    for code in languages.codes if languages and reader.options.alternates else ():
        try:
            doubt = hreflang_doubt(format_hreflang(code))
        except InvalidValue as refusal:
            doubt = str(refusal)
        if doubt:
            yield Mistake(
                "sitemapkit.W153",
                f"the hreflang of language {code!r} will not be understood: {doubt}",
                "Remove it from languages, or ignore this warning: the pages are listed anyway.",
            )


def wrong_languages(options: BaseSection) -> Iterator[Mistake]:
    """Find languages, hosts, an x_default or a limit that are wrong in a section with ``i18n``."""
    named, known = options.languages, dict(settings.LANGUAGES)
    codes = list(known if named is None else named)
    unknown = [code for code in codes if code not in known]
    if isinstance(named, str):
        yield Mistake(
            "sitemapkit.E136",
            f"languages is {named!r}",
            "Use a list of codes. For a field path to the codes of each object, use"
            " object_languages.",
        )
    elif unknown or not codes:
        yield Mistake(
            "sitemapkit.E136",
            f"languages names {', '.join(map(repr, unknown)) or 'none'}",
            "Use codes from settings.LANGUAGES.",
        )
    else:
        versions = len(codes)
        if options.alternates and options.limit is not None and options.limit < versions:
            yield Mistake(
                "sitemapkit.E136",
                f"limit is {options.limit}, and an object has {versions} versions that link to each"
                " other",
                f"Set limit to {versions} or more: they are listed together or not at all.",
            )
        yield from _wrong_hosts(options.language_hosts, codes)
        yield from _wrong_x_default(options, codes)


def _wrong_hosts(hosts: Any, codes: list[str]) -> Iterator[Mistake]:
    """Find language hosts that are not base URLs, or that are not one for each language."""
    if hosts and set(hosts) != set(codes):
        yield Mistake(
            "sitemapkit.E136",
            f"language_hosts has {sorted(hosts)}, but the languages are {sorted(codes)}",
            "Name a host for each language: all sites have to link to the same versions.",
        )
    try:
        for base_url in hosts.values():
            site_at(base_url)
    except (ImproperlyConfigured, AttributeError, TypeError) as error:
        yield Mistake(
            "sitemapkit.E136",
            f"language_hosts: {error}",
            'Use base URLs: {"fr": "https://example.fr"}.',
        )


def _wrong_x_default(options: BaseSection, codes: list[str]) -> Iterator[Mistake]:
    """Find an x_default that is neither a language of the section nor a path or URL."""
    default = options.x_default
    if default is True and settings.LANGUAGE_CODE not in codes:
        yield Mistake(
            "sitemapkit.E136",
            f"x_default is True, but {settings.LANGUAGE_CODE!r} is not one of its languages",
            "Set it to one of them, or to a path or URL.",
        )
    if isinstance(default, bool) or default in codes:
        return
    try:
        x_default_url(default, options)
    except InvalidValue as refusal:
        yield Mistake(
            "sitemapkit.E136",
            f"x_default is {default!r}: {refusal}",
            "Set it to one of its languages, to True, or to a path or URL.",
        )


# Other options that depend on one another ---------------------------------------------------------


def wrong_namespaces(reader: SectionReader) -> Iterator[Mistake]:
    """Find unusable prefixes and namespaces, and one of ``namespaces`` and ``elements`` alone."""
    namespaces = reader.options.namespaces
    for prefix, name in namespaces.items():
        reserved = prefix in NAMESPACES or prefix == "xsi" or prefix.lower().startswith("xml")
        if reserved or not _PREFIX.fullmatch(prefix):
            yield Mistake(
                "sitemapkit.E144",
                f"namespaces: the prefix {prefix!r} is empty or already in use",
                "Use another prefix.",
            )
        if not _URI.fullmatch(str(name or "")) or name in {NAMESPACE, *NAMESPACES.values()}:
            yield Mistake(
                "sitemapkit.E144",
                f"namespaces: {name!r} is not a namespace of your own",
                "Use a URL of your own.",
            )
    if ("elements" in reader.extension_sources) != bool(namespaces):
        yield Mistake(
            "sitemapkit.E144",
            "elements and namespaces need each other",
            'Set namespaces = {"prefix": "https://…"} and a method elements(self, obj).',
        )


def ineffective_trust_lastmod(reader: SectionReader, lastmod: Any = None) -> Iterator[Mistake]:
    """Find trust_lastmod without a lastmod column that differs after each change.

    ``lastmod`` is the field of the column; None if lastmod is no column.
    """
    if not reader.options.trust_lastmod:
        return
    if reader.links_rows:
        yield Mistake(
            "sitemapkit.W141",
            "trust_lastmod has no effect: a page changes with the translations of its rows",
            "Remove it, or translations.",
        )
    elif lastmod is None:
        yield Mistake(
            "sitemapkit.W141",
            "trust_lastmod has no effect: lastmod is not a column",
            "Set lastmod to a DateTimeField, or remove trust_lastmod.",
        )
    elif isinstance(lastmod, DateField) and not isinstance(lastmod, DateTimeField):
        yield Mistake(
            "sitemapkit.W141",
            "trust_lastmod has no effect on ETags: two changes on the same day have the same date",
            "Set lastmod to a DateTimeField, or remove trust_lastmod.",
        )


# Moments of the import ----------------------------------------------------------------------------


STARTED = dt.datetime.now(dt.UTC)
"""When the process imported this module; sections are declared about then."""

_NEAR = dt.timedelta(minutes=10)
_HOUR = dt.timedelta(hours=1)


def _declared_moments(options: Any) -> Iterator[Any]:
    """Yield dates and moments that a class declares as constants; None for other values."""
    owner = getattr(options, "sitemap", options)
    declared = {
        name: inspect.getattr_static(type(owner), name, None)
        for name in ("queryset", "items", "filter", "lastmod")
    }
    if isinstance(owner, GenericSitemap):  # Its queryset is an argument.
        declared["queryset"] = owner.queryset
    yield moment_in(declared["lastmod"], DEFAULT_DB_ALIAS)
    for rows in (declared["queryset"], declared["items"]):
        if isinstance(rows, QuerySet):
            yield from _moments_in_statement(rows)
    if isinstance(condition := declared["filter"], Q):
        yield from _moments_in_statement(options.model._base_manager.filter(condition))


def _moments_in_statement(rows: QuerySet[Any]) -> Iterator[Any]:
    """Yield each parameter of a queryset's SQL: a date or moment as such, any other as None."""
    with suppress(FieldError, NotSupportedError):  # Which other checks report.
        for value in _django.select_sql(rows, rows.db)[1]:
            yield moment_in(value, rows.db)


def _is_from_import(value: Any) -> bool:
    """Return whether a date or moment was computed from the clock at import."""
    if not isinstance(value, dt.datetime):
        return isinstance(value, dt.date) and value in (STARTED.date(), STARTED.astimezone().date())
    apart = abs(value - STARTED)
    # "Two weeks ago", too: nobody writes microseconds, but for the last one of a day.
    is_written = value.microsecond in (0, 999_999)
    return apart < _NEAR or (not is_written and min(apart % _HOUR, -apart % _HOUR) < _NEAR)
