"""What a reader hands to rendering: the values of some rows, by column."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress, repeat
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseFailure
from django.urls import NoReverseMatch
from django.utils.functional import Promise

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import writable

INFRASTRUCTURE = (
    DatabaseFailure,
    ConnectionError,
    TimeoutError,
    MemoryError,
    ImproperlyConfigured,
)
"""What fails a whole page, because it says nothing about the row it happened to meet."""


@dataclass(slots=True)
class Chunk:
    """Some rows of a section, by column; all columns are of one length."""

    keys: Sequence[Any]
    """What names the rows in problems, and orders them: the paging key, or the item."""
    locations: Sequence[Any]
    """Rooted paths or absolute URLs as declared; None where the row has none.

    An InvalidValue takes the place of the URL of a row that is refused already, and says why.
    """
    columns: dict[str, Sequence[Any]] = field(default_factory=dict)
    """The values that differ by row, by tag; an InvalidValue in the place of one that raised."""
    row_values: dict[str, Sequence[Any]] = field(default_factory=dict)
    """The tags that a row sets itself instead of its section's; None or "" inherits."""
    normal: bool = False
    """Whether the locations are paths in normal form, as compiled routes make them."""
    lastmod_is_text: bool = False
    """Whether the column "lastmod" holds final texts already, of moments in UTC or of dates."""
    extensions: dict[str, Sequence[Any]] = field(default_factory=dict)
    """Images, videos, news and elements of the project's own, by option."""
    versions: "Versions | None" = None
    """Which rows are one object; None where each is one by itself."""
    translations: Sequence[tuple[Any, Any]] | None = None
    """What each row shares with its translations, which are other rows, and its language."""
    read: int | None = None
    """The rows that were read for it, where they are not its own."""

    @property
    def rows(self) -> int:
        """How many rows were read for it; a row in several languages counts once."""
        return len(self.keys) if self.read is None else self.read

    def repeat_rows(
        self, indexes: Sequence[int], locations: Sequence[Any], languages: Sequence[str] | None
    ) -> "Chunk":
        """Return a chunk with a row for each of ``indexes``, which may repeat an index.

        The new rows have the ``locations`` and ``languages`` given. The rows of one index follow
        each other: they are versions of one object.
        """

        def column(values: Sequence[Any]) -> list[Any]:
            return [values[index] for index in indexes]

        return Chunk(
            column(self.keys),
            locations,
            {tag: column(values) for tag, values in self.columns.items()},
            {tag: column(values) for tag, values in self.row_values.items()},
            normal=self.normal,
            lastmod_is_text=self.lastmod_is_text,
            extensions={option: column(values) for option, values in self.extensions.items()},
            versions=Versions(indexes, languages),
            translations=self.translations and column(self.translations),
            read=len(self.keys),
        )


@dataclass(slots=True)
class Versions:
    """Which rows of a chunk are versions of one object: its languages, or its entries."""

    objects: Sequence[int]
    """What tells one object from the next; all rows of an object follow each other."""
    languages: Sequence[str] | None
    """The language of each row, as settings.LANGUAGES has it; None for entries in none."""

    def only_listed(self, mask: Iterable[Any]) -> "Versions":
        """Return the versions of the rows for which ``mask``, a value for each row, is true."""
        mask = list(mask)
        languages = self.languages and list(compress(self.languages, mask))
        return Versions(list(compress(self.objects, mask)), languages)


def call_for_each(
    function: Callable[[Any], Any],
    rows: Iterable[Any],
    option: str,
    wanted: Iterable[bool] = repeat(True),
) -> list[Any]:
    """Return what a section's method returns for each row; None for a row that is not ``wanted``.

    If the method raises, the value is an InvalidValue with the error: the row is not listed, or it
    loses an optional tag or extension. Errors in INFRASTRUCTURE are raised. Lazy text is evaluated.
    """
    values: list[Any] = []
    for row, is_wanted in zip(rows, wanted, strict=False):
        try:
            value = function(row) if is_wanted else None
            values.append(str(value) if isinstance(value, Promise) else value)
        except INFRASTRUCTURE:
            raise
        except Exception as error:  # noqa: BLE001  a project's method may raise anything
            values.append(invalid_value_of(error, option))
    return values


def invalid_value_of(error: Exception, option: str) -> InvalidValue:
    """Return the InvalidValue that reports an error of the method for an ``option``."""
    if isinstance(error, InvalidValue):
        return error
    if isinstance(error, NoReverseMatch):
        return InvalidValue("no-url", f"No URL: {error}")
    return InvalidValue("exception", f"{option} raised {type(error).__name__}: {writable(error)}")


def too_many_urls_error(at_most: int) -> InvalidValue:
    """Return the InvalidValue for a row with more URLs than a page, which has ``at_most``."""
    return InvalidValue(
        "too-many-urls",
        f"Too many URLs: one row has more URLs than fit on a page, {at_most:,}.",
    )
