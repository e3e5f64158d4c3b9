"""Rows that passed all checks, by column: what a page is written from."""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import itemgetter
from typing import Any

from django_sitemapkit.protocol.entries import UrlEntry
from django_sitemapkit.protocol.writers import TagColumn, UrlsetWriter
from django_sitemapkit.reading.chunks import Versions

LinkedVersion = tuple[int, str, str]
"""What tells an object from the next, a language, and the location of that version."""


@dataclass(slots=True)
class EntryColumns:
    """Sitemap entries by column, as ``UrlsetWriter`` takes them: rows that passed all checks."""

    keys: Sequence[Any]
    """What names each row, and orders it."""
    locations: Sequence[str]
    """Absolute, normalised, in scope."""
    tags: dict[str, TagColumn] = field(default_factory=dict)
    """The texts of the optional tags that the section declares."""
    extensions: TagColumn = None
    """The XML of the elements of other namespaces, for each row."""
    versions: Versions | None = None
    """Which rows are one object; None where each is one by itself."""
    translations: Sequence[tuple[Any, Any]] | None = None
    """What each row shares with its translations, which are other rows, and its language."""
    foreign: Sequence[LinkedVersion] = ()
    """The versions of their objects that other sites list, which they link to."""
    proven: Set[Any] = frozenset()
    """The keys of the rows that were read as text, so that their XML is known to be well-formed."""

    def writer_arguments(self, begin: int = 0, end: int | None = None) -> dict[str, Any]:
        """Return the keyword arguments with which ``UrlsetWriter.add()`` writes a range of rows."""
        columns = {**self.tags, "extensions": self.extensions}
        rows = slice(begin, end)
        return {
            "locations": self.locations[rows],
            **{
                name: _apply_to_column(column, itemgetter(rows)) for name, column in columns.items()
            },
        }

    def entry(self, row: int) -> UrlEntry:
        """Return the entry at a row index as a UrlEntry."""
        columns = {**self.tags, "extensions": self.extensions}
        texts = {
            name: _apply_to_column(column, itemgetter(row)) for name, column in columns.items()
        }
        return UrlEntry(location=self.locations[row], **texts)


def without_rows(entries: EntryColumns, rows: Iterable[int]) -> EntryColumns:
    """Return the entries except those at some row indexes."""
    mask = bytearray(b"\1") * len(entries.locations)
    for row in rows:
        mask[row] = 0
    return _select_rows(entries, mask)


def only_rows(entries: EntryColumns, rows: Iterable[int]) -> EntryColumns:
    """Return the entries at some row indexes, in their original order."""
    mask = bytearray(len(entries.locations))
    for row in rows:
        mask[row] = 1
    return _select_rows(entries, mask)


def _select_rows(entries: EntryColumns, mask: bytearray) -> EntryColumns:
    """Return the entries whose byte in ``mask``, which has one for each row, is not 0."""

    def selected(values: Iterable[Any]) -> list[Any]:
        return list(compress(values, mask))

    return replace(
        entries,
        keys=selected(entries.keys),
        locations=selected(entries.locations),
        tags={tag: _apply_to_column(column, selected) for tag, column in entries.tags.items()},
        extensions=_apply_to_column(entries.extensions, selected),
        versions=entries.versions and entries.versions.only_listed(mask),
        translations=entries.translations and selected(entries.translations),
    )


def _apply_to_column(column: TagColumn, select: Callable[[Any], Any]) -> Any:
    """Return what ``select`` returns for the texts of a column; a constant is unchanged."""
    return column if column is None or isinstance(column, str) else select(column)


def with_tag_texts(entries: EntryColumns, texts: dict[str, dict[int, str]]) -> EntryColumns:
    """Return the entries with some texts of their tags replaced.

    ``texts`` has the new ones, for each tag by row index. The changed rows are no longer proven.
    """
    tags = dict(entries.tags)
    for tag, rows in texts.items():
        tags[tag] = with_replaced_texts(tags.get(tag), rows, len(entries.keys))
    changed = {entries.keys[row] for rows in texts.values() for row in rows}
    return replace(entries, tags=tags, proven=entries.proven - changed)


def with_replaced_texts(column: TagColumn, texts: dict[int, str], count: int) -> TagColumn:
    """Return a column of ``count`` texts, with those in ``texts``, by row index, replaced."""
    if not texts:
        return column
    replaced = [column] * count if column is None or isinstance(column, str) else list(column)
    for row, text in texts.items():
        replaced[row] = text
    return replaced


def xml_of(entries: EntryColumns) -> bytes:
    """Return the ``<url>`` elements of entries, one per line, as ``UrlsetWriter`` writes them."""
    return UrlsetWriter().add(**entries.writer_arguments())[0]
