"""How the options of a site's sections are read, and why a method is called for each object."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db.models import F, Index, QuerySet, TextChoices

from django_sitemapkit.overrides import sections_of
from django_sitemapkit.reading import (
    Column,
    Constant,
    Formula,
    Method,
    QuerySetReader,
    SectionReader,
    Source,
    equality_fields,
    own_field,
    plain_indexes_of_model,
    why_not_as_text,
)
from django_sitemapkit.reading.method_sources import MustBeCalled
from django_sitemapkit.reading.validation import mistake_of_crash, naming_section, require_pageable
from django_sitemapkit.registry import dotted_path, registry
from django_sitemapkit.sections import Route, Section
from django_sitemapkit.sites import SitemapSite

Readings = Mapping[str, Source | MustBeCalled]
"""What each method is read as, by option, or why it stays a method."""


class ReadAs(TextChoices):
    """How the rows of a section, or the values of an option, are read."""

    TEXT = "text", "as text, thousands of rows at a time"
    COLUMNS = "columns", "as columns"
    OBJECTS = "objects", "as objects"
    POSITION = "position", "by position in a list"
    METHOD = "method"
    CONSTANT = "constant"
    FILES = "files", "by search engines: the index lists its files"
    FAILED = "failed", "not at all"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionReading:
    """How one option of a section is read."""

    option: str
    """Its name."""
    read_as: ReadAs
    """TEXT, COLUMNS, METHOD or CONSTANT."""
    reads: str = ""
    """The Route, the field paths, the expression or the constant."""
    why: str = ""
    """Why a method is called for each object: a sentence without a subject or a full stop."""
    file: str = ""
    """The file of the method's part that is not read as columns, or ""."""
    line: int = 0
    """The line in it."""
    expression: str = ""
    """The expression there."""
    instead: str = ""
    """What to write instead, or to add, or ""."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionReading:
    """How a section is read."""

    section: str
    """Its name."""
    declared: str
    """The dotted path of its class."""
    read_as: ReadAs
    """TEXT, COLUMNS, OBJECTS, POSITION, FILES or FAILED."""
    why: str = ""
    """Why not as text, or what its code raised: without a full stop."""
    instead: str = ""
    """What to write instead, or to add, or ""."""
    options: tuple[OptionReading, ...] = ()
    """The options that are declared, and the location."""


def reading_reports_of(site: SitemapSite) -> Iterator[SectionReading]:
    """Yield how each section of a site is read, the external ones last.

    A section whose code raises is reported as FAILED. No row of a queryset is read.
    """
    yield from map(_describe_reading_or_failure, sections_of(site))
    for external in registry.externals(site):
        yield SectionReading(
            section=external.get_name(),
            declared=dotted_path(type(external)),
            read_as=ReadAs.FILES,
        )


def _describe_reading_or_failure(reader: SectionReader) -> SectionReading:
    """Return how a section is read; if its code raises, a FAILED reading with the reason."""
    name, declared = reader.get_name(), dotted_path(type(reader.options))
    try:
        require_pageable(reader)
        with naming_section(reader):
            return _describe_reading(reader, name, declared)
    except ImproperlyConfigured as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001  a project's code may raise anything
        why = mistake_of_crash(error).text
    return SectionReading(section=name, declared=declared, read_as=ReadAs.FAILED, why=why)


def _describe_reading(reader: SectionReader, name: str, declared: str) -> SectionReading:
    """Return how a section and each of its options are read; raises what its code raises."""
    options: Any = reader.options
    read_as, why, instead = ReadAs.POSITION, "", ""
    sources: dict[str, Any] = {"location": Method(options.location)}
    methods: Readings = {}
    if isinstance(reader, QuerySetReader) and reader.keyset is not None:
        sources = {reader.location_option: reader.location_source}
        methods, why = reader.methods.formulas_or_reasons, why_not_as_text(reader)
        read_as = ReadAs.COLUMNS if why else ReadAs.TEXT
        if reader.reads_objects:
            read_as, why = ReadAs.OBJECTS, _called_methods_text(methods)
            instead = _method_hints(options)
    elif isinstance(reader.rows, QuerySet):
        why = "its items are a queryset that is not read by key"
        instead = "Declare a Section with a queryset that is neither sliced nor combined."
    sources |= reader.tag_sources | reader.extension_sources
    if reader.languages is not None and options.object_languages is not None:
        sources["object_languages"] = reader.object_languages_source
    columns_as = ReadAs.TEXT if read_as is ReadAs.TEXT else ReadAs.COLUMNS
    return SectionReading(
        section=name,
        declared=declared,
        read_as=read_as,
        why=why,
        instead=instead,
        options=tuple(
            _method_reading(option, methods, options)
            if isinstance(source, Method)
            else OptionReading(
                option=option,
                read_as=ReadAs.CONSTANT if isinstance(source, Constant) else columns_as,
                reads=_source_text(source),
                instead=_missing_index_text(reader, source) if option == "lastmod" else "",
            )
            for option, source in sources.items()
        ),
    )


def _source_text(source: Any) -> str:
    """Return the source of an option's values as text, as one would declare it."""
    route = source.route if isinstance(source, Formula) else source
    if isinstance(route, Route):
        named = {name: _field_path(column) for name, column in route.kwargs.items()}
        behind = f" + {route.suffix!r}" if route.suffix else ""
        return repr(Route(route.viewname, *map(_field_path, route.args), **named)) + behind
    if isinstance(source, Formula):
        return ", ".join(map(str, map(_field_path, source.read)))
    return str(_field_path(source.expression)) if isinstance(source, Column) else repr(source.value)


def _field_path(column: Any) -> Any:
    """Return the field path of an F() expression; any other column unchanged."""
    return column.name if isinstance(column, F) else column  # type: ignore[attr-defined]


# Methods ------------------------------------------------------------------------------------------


def _called_methods_text(readings: Readings) -> str:
    """Return a clause that names the options whose methods are called."""
    called = [option for option, found in readings.items() if isinstance(found, MustBeCalled)]
    return f"methods are called for {', '.join(called)}"


def _method_hints(options: Any) -> str:
    """Return which options to set so that methods cost less; "" if they are set."""
    hints = []
    if isinstance(options, Section) and options.only is None:
        hints.append("Name the fields that its methods read in only.")
    if isinstance(options, Section) and options.depends_on is None and not options.trust_lastmod:
        hints.append("Name in depends_on what they depend on: builds then reuse pages.")
    return " ".join(hints)


def _method_reading(option: str, readings: Readings, options: Any) -> OptionReading:
    """Return how an option with a method is read, and why the method is called for each object.

    ``readings`` is empty for a section of items.
    """
    found = readings.get(option)
    if isinstance(found, MustBeCalled):
        return OptionReading(
            option=option,
            read_as=ReadAs.METHOD,
            why=found.why,
            file=_relative_path(found.file),
            line=found.line,
            expression=found.expression,
            instead=_replacement_text(option, found, options),
        )
    if found is None:
        return OptionReading(option=option, read_as=ReadAs.METHOD)
    return OptionReading(
        option=option,
        read_as=ReadAs.METHOD,
        reads=_source_text(found),
        why=f"only reads columns, but {_called_methods_text(readings)}",
    )


def _relative_path(file: str) -> str:
    """Return the path of a file relative to the working directory, if it is in that."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


_DECLARATIONS = {
    "location": 'location = Route("name", argument="column")',
    "lastmod": 'lastmod = "column"',
    "changefreq": 'changefreq = F("column")',
    "priority": 'priority = F("column")',
    "images": 'images = "file_field"',
    "object_languages": 'object_languages = "column"',
}


def _replacement_text(option: str, why: MustBeCalled, options: Any) -> str:
    """Return a sentence that says what to write instead of a method, or ""."""
    ways = [why.change.format(why.expression)] if why.change else []
    if option in _DECLARATIONS:
        verb = "set" if isinstance(options, Section) else "declare a Section with"
        ways.append(f"{verb} {_DECLARATIONS[option]}")
    text = ", or ".join(ways)
    return f"{text[0].upper()}{text[1:]}." if text else ""


# Indexes ------------------------------------------------------------------------------------------


def _missing_index_text(reader: SectionReader, lastmod: Any) -> str:
    """Return which index to add to the model for ``trust_lastmod``, as a sentence; "" for none.

    It judges by the indexes that the model declares.
    """
    if not (reader.trust_lastmod and isinstance(lastmod, Column) and reader.keyset):
        return ""
    keyset = reader.keyset
    field, equal = own_field(keyset, lastmod.expression), equality_fields(keyset)
    if field is None or equal is None:
        return ""  # No index holds what it filters by.
    meta, names = field.model._meta, [one.name for one in equal]
    # With the key it has all that is read of a page; without it, the newest rows are at its end.
    wanted = [keyset.field.name, field.name]
    for fields in plain_indexes_of_model(field):
        rest = fields[len(names) :]
        if set(fields[: len(names)]) == set(names) and (
            rest[:1] == wanted[1:] or rest[:2] == wanted
        ):
            return ""
    index = Index(fields=[*names, *wanted])
    index.set_name_with_model(field.model)
    return f'Add models.Index(fields={index.fields}, name="{index.name}") to {meta.label}.'
