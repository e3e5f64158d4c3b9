"""What reads the rows or items of a section, wherever they come from."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache, cached_property, partial
from typing import Any, ClassVar, Self

from django.conf import settings as django_settings
from django.db import connections

from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import label_of
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.limits import MAX_NEWS, NAMESPACES
from django_sitemapkit.reading.chunks import Chunk, call_for_each
from django_sitemapkit.reading.keysets import CHUNK, KeyRange, Keyset
from django_sitemapkit.reading.languages import (
    Languages,
    ObjectLanguages,
    Version,
    extensions_of,
    in_languages,
)
from django_sitemapkit.reading.sources import (
    DAY,
    EXTENSIONS,
    FIELD_PATHS,
    IN_FINGERPRINT,
    PREFIXES,
    TAGS,
    UNSET,
    Column,
    Constant,
    Method,
    Source,
    source_of,
)
from django_sitemapkit.sections import BaseSection

LINKED_ROWS = 500
"""Rows of one chunk that link to their translations, which are read for each chunk."""

Prefetch = Callable[[Iterator[Any]], Iterator[Any]]
"""What reads pass through on their way to be rendered."""

_WRITE = re.compile(r"(?:INSERT (?:OR \w+ |IGNORE )?INTO|UPDATE|DELETE FROM) (\S+)", re.IGNORECASE)


class SectionReader:
    """Reads one section of one site: its rows and pages, and digests that reveal changes.

    The project's own object is ``options``. Nothing here is visible to the project's classes.
    """

    options: BaseSection

    has_columns: ClassVar[bool] = False
    """Whether options may be columns."""

    rows: Any = ()
    """What the section returns as its rows or items for this site."""

    links_rows: bool = False
    """Whether its rows link to others, which are their translations."""

    has_entries: bool = False
    """Whether a row may have any number of entries."""
    lists_repeated: ClassVar[bool] = False
    """Whether a URL is listed once for each item that has it."""

    def __init__(self, options: BaseSection) -> None:
        self.options = options
        """The section as the project declares it: its options and hooks."""
        self.site = options.site
        self.lastmod_by_day = options.lastmod_precision == DAY
        """Whether a lastmod is written as its day in TIME_ZONE."""
        self.trust_lastmod = options.trust_lastmod and not self.links_rows
        """Whether the newest lastmod of a page changes whenever one of its entries does."""
        self.overrides: Any = None
        """What editors set for the site; None where a section is made without it."""
        self.connection_lock: AbstractContextManager[Any] = nullcontext()
        """Lock to hold during any other query of a page: the prefetch thread may be reading."""
        self.called_methods = ""
        """The digest of methods that gave other values than their source says; "" for none."""
        self.setting_values: dict[str, Any] = {}
        """The optional tags that editors set for the section, whatever it declares."""

    def __repr__(self) -> str:
        return repr(self.options)

    def get_name(self) -> str:
        """Return the name in addresses."""
        return self.options.get_name()

    @property
    def max_urls(self) -> int:
        """URLs in one of its files: ``limit``, SITEMAPKIT_MAX_URLS, or 1,000 where it has news."""
        most = min(settings.MAX_URLS, MAX_NEWS) if self.has_news else settings.MAX_URLS
        return min(self.options.limit or most, most)

    @property
    def has_news(self) -> bool:
        """Whether its entries may be news."""
        return "news" in self.extension_sources

    @property
    def rows_per_page(self) -> int:
        """Rows that make ``max_urls`` URLs."""
        return max(1, self.max_urls // self.urls_per_row)

    @property
    def urls_per_row(self) -> int:
        """URLs each row gives at the most; more than one for rows in several languages."""
        return max(1, len(self.language_plan.listed)) if self.language_plan else 1

    @cached_property
    def language_plan(self) -> Languages | None:
        """Its languages; None where it lists each object once."""
        return Languages(self.options) if self.options.i18n else None

    @cached_property
    def languages_source(self) -> Source:
        """Where the languages of each object come from; a constant where all have all."""
        return self.source("object_languages")

    @cached_property
    def extension_sources(self) -> dict[str, Source]:
        """The extensions that are declared, by option: where each one's values come from."""
        return self._declared_sources(EXTENSIONS)

    @cached_property
    def used_namespaces(self) -> dict[str, str]:
        """The namespaces that its documents declare, by prefix: those it may use, and no other."""
        has_links = self.links_rows or (self.language_plan and self.options.alternates)
        found = {"xhtml": NAMESPACES["xhtml"]} if has_links else {}
        for option in self.extension_sources:
            if option in PREFIXES:
                found[PREFIXES[option]] = NAMESPACES[PREFIXES[option]]
            else:
                found |= self.options.namespaces
        return found

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The optional tags that are declared, by name: where each one's values come from."""
        set_here = {tag: Constant(value) for tag, value in self.setting_values.items()}
        return self._declared_sources(TAGS) | set_here

    def _declared_sources(self, options: Sequence[str]) -> dict[str, Source]:
        sources = {option: self.source(option) for option in options}
        return {option: source for option, source in sources.items() if source != UNSET}

    @cached_property
    def sources_by_language(self) -> dict[str, dict[str, Source]]:
        """The tags whose values may differ by language: where they come from in each of them.

        A method may always ask for the language; whatever else is the same in all is read once.
        """
        plan = self.language_plan
        found: dict[str, dict[str, Source]] = {tag: {} for tag in TAGS}
        read: dict[str, list[Any]] = {tag: [] for tag in TAGS}
        for code in plan.listed if plan else ():
            with plan.active(code):  # type: ignore[union-attr]
                for tag in TAGS:
                    found[tag][code] = self.source(tag)
                    read[tag].append(self.language_signature(found[tag][code]))
        return {
            tag: sources
            for tag, sources in found.items()
            if tag not in self.setting_values
            and (
                any(isinstance(source, Method) for source in sources.values())
                or any(one != read[tag][0] for one in read[tag])
            )
        }

    def language_signature(self, source: Source) -> Any:
        """Return what is compared between languages to tell whether a tag's values differ."""
        return source

    def _tag_values(
        self, keys: Sequence[Any], tag: str, code: str, objects: Any, there: Sequence[bool]
    ) -> Sequence[Any]:
        source = self.sources_by_language[tag][code]
        if isinstance(source, Method):
            return call_for_each(source.function, objects, tag, there)
        if isinstance(source, Column):
            return self.column_of(source, keys)
        return [source.value] * len(keys)  # type: ignore[union-attr]

    def column_of(self, column: Column, keys: Sequence[Any]) -> Sequence[Any]:
        """Return a column's values of the rows with these keys, in the active language."""
        raise NotImplementedError

    @property
    def constant_tags(self) -> dict[str, Any]:
        """The optional tags that are the same for all entries."""
        return {tag: s.value for tag, s in self.sources.items() if isinstance(s, Constant)}

    @property
    def columns(self) -> dict[str, Any]:
        """The optional tags that the database fills, as expressions."""
        return {tag: s.expression for tag, s in self.sources.items() if isinstance(s, Column)}

    def source(self, option: str) -> Source:
        """Return where the values of an option come from."""
        return self.declared_source(option)

    def declared_source(self, option: str) -> Source:
        """Return the source that the section declares for an option, even a method not called."""
        value = getattr(self.options, option, None)
        return source_of(value, text_is_column=self.has_columns and option in FIELD_PATHS)

    @property
    def label(self) -> str | None:
        """The label of the model whose keys its rows have; None if they page by position."""
        return None if self.keyset is None else label_of(self.keyset.queryset.model)

    def where(self, **lookups: Any) -> Self:
        """Return a reader of the rows that meet all lookups; called where it has a ``label``."""
        reader = self.fresh()
        reader.rows = self.rows.filter(**lookups)
        return reader

    def fresh(self) -> Self:
        """Return a new reader without the values that this one got from the project's code."""
        reader = type(self)(self.options)
        reader.overrides = self.overrides
        reader.setting_values = self.setting_values
        reader.called_methods = self.called_methods
        return reader

    @property
    def keyset(self) -> Keyset | None:
        """How its rows are read by key; None where they are counted by position."""
        return None

    @property
    def row_keyset(self) -> Keyset:
        """How its rows are read by key. Raises TypeError where they are counted by position."""
        if self.keyset is None:
            raise TypeError(f"{self!r} has no rows that are read by key.")
        return self.keyset

    @property
    def can_split(self) -> bool:
        """Whether a page that overflows is split in the plan, for its other rows to have a page."""
        return self.keyset is not None

    def chunks(self, keys: KeyRange) -> Iterator[Chunk]:
        """Yield the rows of a page in order, some at a time, once for each of their languages.

        Without a keyset, the bounds of ``keys`` are positions.
        """
        for rows in self.batches(keys):
            with self.site.active(), noticing_writes(self.get_name()):
                chunk = self.chunk(rows)
            yield chunk

    def batches(self, keys: KeyRange) -> Iterator[Sequence[Any]]:
        """Yield the rows or items of a page, as many at a time as make a chunk."""
        step = LINKED_ROWS if self.links_rows else CHUNK
        if self.language_plan is not None:
            step = self.language_plan.objects_per_chunk
        for rows in self.reads(keys):
            for begin in range(0, len(rows), step):
                yield rows[begin : begin + step]

    def reads(self, keys: KeyRange) -> Iterator[Sequence[Any]]:
        """Yield the rows or items of a page as they are read, some at a time."""
        raise NotImplementedError

    def chunk(self, rows: Sequence[Any]) -> Chunk:
        """Return rows or items by column."""
        raise NotImplementedError

    def located(
        self,
        chunk: Chunk,
        objects: Sequence[Any],
        locate: Callable[[Any], Any],
        languages: ObjectLanguages | None,
    ) -> Chunk:
        """Return a chunk with locations from a method, one for each language of an object."""
        if self.language_plan is not None:
            versions = self.language_plan.located(objects, locate, languages)
            return self.in_languages(chunk, objects, versions)
        chunk.locations = call_for_each(locate, objects, "location")
        chunk.extensions |= extensions_of(self.extension_sources, objects)
        return chunk

    def in_languages(
        self, chunk: Chunk, objects: Sequence[Any], versions: Sequence[Version]
    ) -> Chunk:
        """Return a chunk that repeats each row in its languages, with the values in each."""
        if self.language_plan is not None:
            tags = {
                tag: partial(self._tag_values, chunk.keys, tag) for tag in self.sources_by_language
            }
            self.language_plan.extend(versions, objects, self.extension_sources, tags)
        return in_languages(chunk, versions)

    @property
    def methods_digest(self) -> str:
        """Text that changes whenever a method is read as other columns; "" if none is."""
        return ""

    def method_difference(self, keys: KeyRange, *, once: bool = False) -> str:
        """Return text about a row for which a method and the columns read in its place differ.

        It is "" if none of a few sampled rows has such a value, or if no method is read as columns.
        With ``once``, a section that this process has compared is not compared again.
        """
        return ""

    def with_prefetch(
        self, prefetch: Prefetch, connection_lock: AbstractContextManager[Any]
    ) -> Self:
        """Return a reader that passes its reads through ``prefetch``, if it can."""
        return self

    def size(self) -> int:
        """Return how many rows there are; called only without a keyset."""
        raise NotImplementedError

    def newest(self, keys: KeyRange) -> tuple[int, Any] | None:
        """Return how many rows a page has and their newest lastmod, or None if unknown.

        Called only where ``trust_lastmod`` is set.
        """
        return None

    def newest_lastmod(self, keys: KeyRange) -> Any:
        """Return the newest lastmod of a page's rows; None if unknown, or without any.

        Called only where ``trust_lastmod`` is set.
        """
        found = self.newest(keys)
        return None if found is None else found[1]

    def fingerprints(self, ranges: Sequence[KeyRange]) -> list[tuple[int, str]]:
        """Return for each page how many rows it has, and text that changes when one of them does.

        Where the rows have to be rendered to know, the text is "", and the number means nothing.
        """
        return [(0, "")] * len(ranges)

    def declaration(self) -> str:
        """Return text that changes whenever the declaration would produce other entries."""
        name = type(self.options).__qualname__
        values = [getattr(self.options, option) for option in IN_FINGERPRINT]
        zone = django_settings.TIME_ZONE if self.lastmod_by_day else ""
        state = name, values, zone, self.constant_tags, self.used_namespaces
        if self.language_plan is None:
            return repr(state)
        hosts = {code: site.base for code, site in self.language_plan.sites.items()}
        return repr((state, hosts, django_settings.LANGUAGE_CODE))

    def languages_by_method(self, objects: Sequence[Any], chunk: Chunk) -> ObjectLanguages | None:
        """Return the languages that a method gives for objects; None if all have all.

        An object whose method raises is refused, in all of them.
        """
        source = self.languages_source
        if not isinstance(source, Method) or self.language_plan is None:
            return None
        method, every = source.function, self.language_plan.codes
        found = call_for_each(lambda obj: list(method(obj)), objects, "object_languages")
        chunk.locations = [one if isinstance(one, InvalidValue) else None for one in found]
        return {
            (place, code)
            for place, codes in enumerate(found)
            for code in (every if isinstance(codes, InvalidValue) else codes)
        }


@contextmanager
def noticing_writes(section: str) -> Iterator[None]:
    """Log each table that methods write to in this block, once in a process and section.

    A build neither knows of such rows nor undoes them.
    """

    def notice(execute: Callable[..., Any], sql: Any, *arguments: Any) -> Any:
        if write := _WRITE.match(str(sql)):
            _warn_of_write(section, write[1])
        return execute(sql, *arguments)

    with ExitStack() as stack:
        for connection in connections.all(initialized_only=True):
            stack.enter_context(connection.execute_wrapper(notice))
        yield


@cache
def _warn_of_write(section: str, table: str) -> None:
    logger.warning(
        "Section %r: one of its methods writes to %s. Methods must only read, since they are called"
        " as often as needed: write in a command or in a signal's receiver.",
        section,
        table,
    )
