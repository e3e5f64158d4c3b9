"""What reads the rows or items of a section, wherever they come from."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache, cached_property
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
    LanguageVersion,
    ObjectLanguages,
    extensions_of,
    repeat_for_versions,
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
from django_sitemapkit.sections import BaseSection, Section

LINKED_ROWS = 500
"""Rows of one chunk that link to their translations, which are read for each chunk."""

Prefetch = Callable[[Iterator[Any]], Iterator[Any]]
"""What reads pass through on their way to be rendered."""

_WRITE = re.compile(r"(?:INSERT (?:OR \w+ |IGNORE )?INTO|UPDATE|DELETE FROM) (\S+)", re.IGNORECASE)


class SectionReader:
    """Reads one section of one site: its rows, their values by column, and digests of them.

    ``options`` is the project's own section; its classes never see the reader.
    """

    options: BaseSection

    has_columns: ClassVar[bool] = False
    """Whether options may be columns."""

    rows: Any = ()
    """What the section returns as its rows or items for this site."""

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

    @property
    def links_rows(self) -> bool:
        """Whether its rows link to others, which are their translations."""
        return isinstance(self.options, Section) and self.options.translations is not None

    @property
    def has_entries(self) -> bool:
        """Whether a row may have any number of entries."""
        return isinstance(self.options, Section) and self.options.entries is not None

    def get_name(self) -> str:
        """Return the name of the section, as in the URLs of its files."""
        return self.options.get_name()

    @property
    def max_urls(self) -> int:
        """The most URLs in one of its files: the ``limit`` option, or else SITEMAPKIT_MAX_URLS.

        It is never more than that setting allows, nor than 1,000 if the section has news.
        """
        most = min(settings.MAX_URLS, MAX_NEWS) if self.has_news else settings.MAX_URLS
        return min(self.options.limit or most, most)

    @property
    def has_news(self) -> bool:
        """Whether the section declares ``news``."""
        return "news" in self.extension_sources

    @property
    def rows_per_page(self) -> int:
        """How many rows fill a page if each of them has ``urls_per_row`` URLs."""
        return max(1, self.max_urls // self.urls_per_row)

    @property
    def urls_per_row(self) -> int:
        """URLs that a row counts for: one, or one for each language that the site lists."""
        return max(1, len(self.languages.listed)) if self.languages else 1

    @cached_property
    def languages(self) -> Languages | None:
        """The languages of the section; None unless it sets ``i18n``."""
        return Languages(self.options) if self.options.i18n else None

    @cached_property
    def object_languages_source(self) -> Source:
        """The source of each object's languages; a constant if all objects have all languages."""
        return self.source("object_languages")

    @cached_property
    def extension_sources(self) -> dict[str, Source]:
        """The sources of images, videos, news and elements, by option: of those declared."""
        return self._sources_of(EXTENSIONS)

    @cached_property
    def used_namespaces(self) -> dict[str, str]:
        """The XML namespaces that its documents declare, by prefix: only those it may use."""
        has_links = self.links_rows or (self.languages and self.options.alternates)
        prefixes = ["xhtml"] if has_links else []
        prefixes += [PREFIXES[option] for option in self.extension_sources if option in PREFIXES]
        own = self.options.namespaces if "elements" in self.extension_sources else {}
        return {**{prefix: NAMESPACES[prefix] for prefix in prefixes}, **own}

    @cached_property
    def tag_sources(self) -> dict[str, Source]:
        """The sources of lastmod, changefreq and priority, by tag: of those declared or set."""
        set_here = {tag: Constant(value) for tag, value in self.setting_values.items()}
        return self._sources_of(TAGS) | set_here

    def _sources_of(self, options: Sequence[str]) -> dict[str, Source]:
        """Return the sources of those ``options`` that are set, by option."""
        sources = {option: self.source(option) for option in options}
        return {option: source for option, source in sources.items() if source != UNSET}

    @cached_property
    def tag_sources_by_language(self) -> dict[str, dict[str, Source]]:
        """The sources of the tags whose values may differ by language: by tag, then by language.

        These are tags with a method, which may ask for the language, or with another source in some
        language. All other tags are read once for all languages.
        """
        languages = self.languages
        found: dict[str, dict[str, Source]] = {tag: {} for tag in TAGS}
        read: dict[str, list[Any]] = {tag: [] for tag in TAGS}
        for code in languages.listed if languages else ():
            with languages.active(code):  # type: ignore[union-attr]
                for tag in TAGS:
                    found[tag][code] = self.source(tag)
                    read[tag].append(self.comparable_source(found[tag][code]))
        return {
            tag: sources
            for tag, sources in found.items()
            if tag not in self.setting_values
            and (
                any(isinstance(source, Method) for source in sources.values())
                or any(one != read[tag][0] for one in read[tag])
            )
        }

    def comparable_source(self, source: Source) -> Any:
        """Return what a source reads, in a form to compare between languages."""
        return source

    def column_values(self, column: Column, keys: Sequence[Any]) -> Sequence[Any]:
        """Return a column's values for the rows with these keys, in the active language."""
        raise NotImplementedError

    @property
    def constant_tags(self) -> dict[str, Any]:
        """The values of the tags that are the same for all entries, by tag."""
        return {tag: s.value for tag, s in self.tag_sources.items() if isinstance(s, Constant)}

    @property
    def column_tags(self) -> dict[str, Any]:
        """The expressions of the tags that are columns, by tag."""
        return {tag: s.expression for tag, s in self.tag_sources.items() if isinstance(s, Column)}

    def source(self, option: str) -> Source:
        """Return the source in use for an option."""
        return self.declared_source(option)

    def declared_source(self, option: str) -> Source:
        """Return the source that the section declares for an option, even if it is not in use."""
        # Not getattr() with a default: a property may raise AttributeError, too.
        value = getattr(self.options, option) if hasattr(type(self.options), option) else None
        return source_of(value, text_is_column=self.has_columns and option in FIELD_PATHS)

    @property
    def label(self) -> str | None:
        """The label of the model of its rows; None if its pages are cut by position."""
        return None if self.keyset is None else label_of(self.keyset.queryset.model)

    def filtered(self, **lookups: Any) -> Self:
        """Return a reader of the rows that match all lookups. The section has a ``label``."""
        reader = self.without_cached_values()
        reader.rows = self.rows.filter(**lookups)
        return reader

    def without_cached_values(self) -> Self:
        """Return a new reader of the section, which asks the project's code again for all values.

        It keeps what editors have set.
        """
        reader = type(self)(self.options)
        reader.overrides = self.overrides
        reader.setting_values = self.setting_values
        reader.called_methods = self.called_methods
        return reader

    @property
    def keyset(self) -> Keyset | None:
        """The rows in the order of their key; None if the pages are cut by position."""
        return None

    @property
    def required_keyset(self) -> Keyset:
        """The ``keyset``. Raises TypeError if there is none."""
        if self.keyset is None:
            raise TypeError(f"{self!r} has no rows that are read by key.")
        return self.keyset

    @property
    def can_split(self) -> bool:
        """Whether a page with too many URLs is split in the stored plan, to list them all."""
        return self.keyset is not None

    def chunks(self, keys: KeyRange) -> Iterator[Chunk]:
        """Yield the rows of a page as Chunks, in order; a row is repeated for each of its versions.

        Without a keyset, the bounds of ``keys`` are positions.
        """
        for rows in self.row_batches(keys):
            with self.site.active(), logging_writes(self.get_name()):
                chunk = self.chunk_of(rows)
            yield chunk

    def row_batches(self, keys: KeyRange) -> Iterator[Sequence[Any]]:
        """Yield the rows or items of a page in lists, each of them enough for one Chunk."""
        step = LINKED_ROWS if self.links_rows else CHUNK
        if self.languages is not None:
            step = self.languages.objects_per_chunk
        for rows in self.read_rows(keys):
            for begin in range(0, len(rows), step):
                yield rows[begin : begin + step]

    def read_rows(self, keys: KeyRange) -> Iterator[Sequence[Any]]:
        """Yield the rows or items of a page in lists, one for each read."""
        raise NotImplementedError

    def chunk_of(self, rows: Sequence[Any]) -> Chunk:
        """Return a Chunk with the locations, tags and extensions of some rows or items."""
        raise NotImplementedError

    def locate_objects(
        self,
        chunk: Chunk,
        objects: Sequence[Any],
        locate: Callable[[Any], Any],
        object_languages: ObjectLanguages | None,
    ) -> Chunk:
        """Return the chunk with what ``locate`` and the methods of extensions return for objects.

        With ``i18n`` they are called in each language that an object has, and the chunk has a row
        for each. ``object_languages`` is None if all objects have all languages.
        """
        if self.languages is not None:
            versions = self.languages.versions(objects, locate, object_languages)
            return self.in_languages(chunk, objects, versions)
        chunk.locations = call_for_each(locate, objects, "location")
        chunk.extensions |= extensions_of(self.extension_sources, objects)
        return chunk

    def in_languages(
        self, chunk: Chunk, objects: Sequence[Any], versions: Sequence[LanguageVersion]
    ) -> Chunk:
        """Return a chunk that repeats each row in its languages, with the values in each."""
        if self.languages is not None:
            for version in versions:
                self._add_values(version, chunk.keys, objects, self.languages)
        return repeat_for_versions(chunk, versions)

    def _add_values(
        self,
        version: LanguageVersion,
        keys: Sequence[Any],
        objects: Sequence[Any],
        languages: Languages,
    ) -> None:
        """Add to a version the tags, images, videos, news and elements that differ by language.

        A version that another site lists gets no values. Without ``objects``, no method is called.
        """
        is_listed = version.language in languages.listed
        wanted = [
            is_listed and location is not None and not isinstance(location, InvalidValue)
            for location in version.locations
        ]
        with languages.active(version.language, objects):
            if objects:
                version.extensions = extensions_of(self.extension_sources, objects, wanted)
            for tag, by_language in self.tag_sources_by_language.items():
                match by_language.get(version.language, UNSET):
                    case Method(function):
                        values: Sequence[Any] = call_for_each(function, objects, tag, wanted)
                    case Column() as column:
                        values = self.column_values(column, keys)
                    case Constant(value):
                        values = [value] * len(keys)
                    case source:
                        raise TypeError(f"{source!r} has no values that differ by language.")
                version.columns[tag] = values

    @property
    def methods_digest(self) -> str:
        """Text that changes whenever other columns are read in place of methods.

        It is "" if no method is read as columns.
        """
        return ""

    def method_difference(self, keys: KeyRange, *, once_per_process: bool = False) -> str:
        """Return text about a row for which a method and the columns read in its place differ.

        It is "" if they agree for a few sampled rows, or if no method is read as columns. With
        ``once_per_process``, rows are compared only the first time that a process asks.
        """
        return ""

    def with_prefetch(
        self, prefetch: Prefetch, connection_lock: AbstractContextManager[Any]
    ) -> Self:
        """Return a reader that passes its reads through ``prefetch``.

        A reader of objects or items returns itself. The other queries of the reader lock
        ``connection_lock``, as the prefetch thread may be reading.
        """
        return self

    def count_items(self) -> int:
        """Return how many items there are. Only a section without a keyset is asked."""
        raise NotImplementedError

    def count_and_newest_lastmod(self, keys: KeyRange) -> tuple[int, Any] | None:
        """Return a page's number of rows and their newest lastmod; None if lastmod is no column.

        It is called only if ``trust_lastmod`` is set.
        """
        return None

    def newest_lastmod(self, keys: KeyRange) -> Any:
        """Return the newest lastmod of a page's rows; None if it is not known or no row has one.

        It is called only if ``trust_lastmod`` is set.
        """
        found = self.count_and_newest_lastmod(keys)
        return None if found is None else found[1]

    def fingerprints(self, ranges: Sequence[KeyRange]) -> list[tuple[int, str]]:
        """Return for each page its number of rows, and text that changes whenever a row changes.

        The text is "" if the rows must be rendered to see a change; the number then means nothing.
        """
        return [(0, "")] * len(ranges)

    def declaration_text(self) -> str:
        """Return text that changes whenever an edit of the declaration may change its entries."""
        name = type(self.options).__qualname__
        values = [getattr(self.options, option) for option in IN_FINGERPRINT]
        zone = django_settings.TIME_ZONE if self.lastmod_by_day else ""
        state = name, values, zone, self.constant_tags, self.used_namespaces
        if self.languages is None:
            return repr(state)
        hosts = {code: site.base for code, site in self.languages.sites.items()}
        return repr((state, hosts, django_settings.LANGUAGE_CODE))

    def languages_by_method(self, objects: Sequence[Any], chunk: Chunk) -> ObjectLanguages | None:
        """Return the languages that ``object_languages`` returns for objects; None if all have all.

        If the method raises for an object, the InvalidValue becomes its location in ``chunk``, and
        the object has all languages.
        """
        source = self.object_languages_source
        if not isinstance(source, Method) or self.languages is None:
            return None
        method, every = source.function, self.languages.codes
        found = call_for_each(lambda obj: list(method(obj)), objects, "object_languages")
        chunk.locations = [one if isinstance(one, InvalidValue) else None for one in found]
        return {
            (place, code)
            for place, codes in enumerate(found)
            for code in (every if isinstance(codes, InvalidValue) else codes)
        }


@contextmanager
def logging_writes(section: str) -> Iterator[None]:
    """Log a warning for each table that the section's methods write to within the block.

    A build neither notices the rows that they write nor undoes them.
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
    """Log that a method of a section writes to a table, once in a process."""
    logger.warning(
        "Section %r: one of its methods writes to %s. Methods must only read, since they are called"
        " as often as needed: write in a command or in a signal's receiver.",
        section,
        table,
    )
