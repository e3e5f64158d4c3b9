"""The engine behind sections: what reads their rows and checks their declarations.

A project declares a section, and ``reader_of`` returns its reader. The rooms above this one use
readers; the project's own section is a reader's ``options``.
"""

from django_sitemapkit.reading.base import SectionReader
from django_sitemapkit.reading.chunks import (
    INFRASTRUCTURE,
    Chunk,
    Versions,
    call_for_each,
    invalid_value_of,
    too_many_urls_error,
)
from django_sitemapkit.reading.items import ContribReader, ItemReader, StaticReader
from django_sitemapkit.reading.keysets import (
    EVERYTHING,
    MAX_PARAMETERS,
    KeyRange,
    Keyset,
    have_rows,
    read_by_key,
)
from django_sitemapkit.reading.languages import (
    Languages,
    RelatedTranslation,
    translation_column,
    x_default_url,
)
from django_sitemapkit.reading.lastmods import (
    equality_fields,
    moves_with_next_change,
    own_field,
    plain_indexes_of_model,
)
from django_sitemapkit.reading.lines import SEPARATORS, has_room_for_line
from django_sitemapkit.reading.pushdown import Pushdown, why_not_as_text
from django_sitemapkit.reading.rows import QuerySetReader
from django_sitemapkit.reading.sources import (
    TAGS,
    UNSET,
    Column,
    Constant,
    Formula,
    Method,
    Source,
    source_of,
)
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
    "INFRASTRUCTURE",
    "MAX_PARAMETERS",
    "SEPARATORS",
    "TAGS",
    "UNSET",
    "Chunk",
    "Column",
    "Constant",
    "ContribReader",
    "Formula",
    "ItemReader",
    "KeyRange",
    "Keyset",
    "Languages",
    "Method",
    "Pushdown",
    "QuerySetReader",
    "RelatedTranslation",
    "SectionReader",
    "Source",
    "StaticReader",
    "TextChunk",
    "Versions",
    "call_for_each",
    "equality_fields",
    "has_room_for_line",
    "have_rows",
    "invalid_value_of",
    "moves_with_next_change",
    "own_field",
    "plain_indexes_of_model",
    "read_by_key",
    "reader_of",
    "source_of",
    "too_many_urls_error",
    "translation_column",
    "why_not_as_text",
    "x_default_url",
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
