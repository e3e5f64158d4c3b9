"""Rows that passed all checks, by column: what a page is written from."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

from django_sitemapkit.protocol.entries import UrlEntry
from django_sitemapkit.protocol.writers import TagColumn, UrlsetWriter
from django_sitemapkit.reading.chunks import Versions

LinkedVersion = tuple[int, str, str]
"""What tells an object from the next, a language, and the location of that version."""


@dataclass(slots=True)
class EntryColumns:
    """Rows that passed all checks, by column, as a writer takes them."""

    keys: Sequence[Any]
    """What names each row, and orders it."""
    locations: Sequence[str]
    """Absolute, normalised, in scope."""
    tags: dict[str, TagColumn] = field(default_factory=dict)
    """The texts of the optional tags that the section declares."""
    extensions: TagColumn = None
    """The elements of other namespaces, as XML."""
    versions: Versions | None = None
    """Which rows are one object; None where each is one by itself."""
    translations: Sequence[tuple[Any, Any]] | None = None
    """What each row shares with its translations, which are other rows, and its language."""
    foreign: Sequence[LinkedVersion] = ()
    """The versions of their objects that other sites list, which they link to."""
    proven: Set[Any] = frozenset()
    """The keys of the rows that were read as text, so that their XML is known to be well-formed."""

    def written(self, begin: int = 0, end: int | None = None) -> dict[str, Any]:
        """Return the columns of some of the rows, as the arguments of a writer's ``add()``."""
        columns = {**self.tags, "extensions": self.extensions}
        rows = slice(begin, end)
        return {
            "locations": self.locations[rows],
            **{name: _column_rows(column, rows) for name, column in columns.items()},
        }

    def entry(self, row: int) -> UrlEntry:
        """Return one of the rows as a value."""
        columns = {**self.tags, "extensions": self.extensions}
        texts = {
            name: column if column is None or isinstance(column, str) else column[row]
            for name, column in columns.items()
        }
        return UrlEntry(location=self.locations[row], **texts)


def without_rows(entries: EntryColumns, rows: Iterable[int]) -> EntryColumns:
    """Return the entries except those at some row indexes."""
    listed = bytearray(b"\1") * len(entries.locations)
    for row in rows:
        listed[row] = 0
    return _select(entries, listed)


def only_rows(entries: EntryColumns, rows: Iterable[int]) -> EntryColumns:
    """Return the entries at some row indexes, in their original order."""
    listed = bytearray(len(entries.locations))
    for row in rows:
        listed[row] = 1
    return _select(entries, listed)


def _select(entries: EntryColumns, listed: bytearray) -> EntryColumns:
    return replace(
        entries,
        keys=list(compress(entries.keys, listed)),
        locations=list(compress(entries.locations, listed)),
        tags={tag: _kept_rows(column, listed) for tag, column in entries.tags.items()},
        extensions=_kept_rows(entries.extensions, listed),
        versions=entries.versions and entries.versions.of_rows(listed),
        translations=entries.translations and list(compress(entries.translations, listed)),
    )


def _kept_rows(column: TagColumn, listed: bytearray) -> TagColumn:
    if column is None or isinstance(column, str):
        return column
    return list(compress(column, listed))


def with_texts(entries: EntryColumns, texts: dict[str, dict[int, str]]) -> EntryColumns:
    """Return the entries with other texts, by tag and row."""
    tags = dict(entries.tags)
    for tag, rows in texts.items():
        tags[tag] = with_replaced_texts(tags.get(tag), rows, len(entries.keys))
    changed = {entries.keys[row] for rows in texts.values() for row in rows}
    return replace(entries, tags=tags, proven=entries.proven - changed)


def with_replaced_texts(column: TagColumn, texts: dict[int, str], count: int) -> TagColumn:
    """Return a column of ``count`` texts in which some rows have new texts."""
    if not texts:
        return column
    replaced = [column] * count if column is None or isinstance(column, str) else list(column)
    for row, text in texts.items():
        replaced[row] = text
    return replaced


def _column_rows(column: TagColumn, rows: slice) -> TagColumn:
    return column if column is None or isinstance(column, str) else column[rows]


def xml_of(entries: EntryColumns) -> bytes:
    """Return entries as the writer writes them, each as a line."""
    return UrlsetWriter().add(**entries.written())[0]
