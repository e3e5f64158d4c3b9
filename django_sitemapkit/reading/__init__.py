"""The engine behind sections: what reads their rows and checks their declarations.

A project declares a section, and ``reader_of`` returns its reader. The rooms above this one use
readers; the project's own section is a reader's ``options``.
"""

from django_sitemapkit.reading.base import SectionReader
from django_sitemapkit.reading.chunks import Chunk
from django_sitemapkit.reading.items import ContribReader, ItemReader, StaticReader
from django_sitemapkit.reading.keysets import EVERYTHING, MAX_PARAMETERS, KeyRange, Keyset
from django_sitemapkit.reading.pushdown import why_not_as_text
from django_sitemapkit.reading.rows import QuerySetReader
from django_sitemapkit.reading.text_queries import TextChunk
from django_sitemapkit.sections import (
    BaseSection,
    ContribSection,
    ItemSection,
    Section,
    StaticSection,
)

__all__ = [
    "EVERYTHING",
    "MAX_PARAMETERS",
    "Chunk",
    "ContribReader",
    "ItemReader",
    "KeyRange",
    "Keyset",
    "QuerySetReader",
    "SectionReader",
    "StaticReader",
    "TextChunk",
    "reader_of",
    "why_not_as_text",
]

_READERS: tuple[tuple[type[BaseSection], type[SectionReader]], ...] = (
    (Section, QuerySetReader),
    (StaticSection, StaticReader),
    (ContribSection, ContribReader),
    (ItemSection, ItemReader),
)


def reader_of(section: BaseSection) -> SectionReader:
    """Return the reader of a section, which reads its rows or items."""
    for kind, reader in _READERS:
        if isinstance(section, kind):
            return reader(section)
    return SectionReader(section)
