"""The statement by which PostgreSQL joins the columns of many rows into one text.

To hand over a row costs the server and the client more than to join it. The order of the text is
that of a sorted subquery, which PostgreSQL documents for aggregates without a join around it; an
ORDER BY in the aggregate would sort what is sorted already, for half of the time again.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connections
from django.db.models import (
    BigIntegerField,
    Case,
    CharField,
    DateField,
    DateTimeField,
    DecimalField,
    F,
    Field,
    FileField,
    Func,
    ImageField,
    QuerySet,
    SlugField,
    TextField,
    UUIDField,
    Value,
    When,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast, Coalesce, Extract, Left, Length
from django.db.models.lookups import Exact

from django_sitemapkit import _django
from django_sitemapkit.reading.chunks import Chunk
from django_sitemapkit.reading.digests import INTEGERS, SUM_OF_HASHES, column_field_class
from django_sitemapkit.reading.keysets import FIRST_CHUNK, KeyRange, Keyset, SqlColumn
from django_sitemapkit.reading.lines import SEPARATORS
from django_sitemapkit.reading.routes import FastPattern
from django_sitemapkit.reading.row_sources import RowSources

ROWS_PER_TEXT = 4_000
"""Rows joined at a time: a build is no quicker with more, and takes more memory."""

TEXT_FIELD_CLASSES = (CharField, SlugField, TextField)
KEYS = (*INTEGERS, *TEXT_FIELD_CLASSES, UUIDField, DateField, DateTimeField)
"""The fields of which PostgreSQL finds the first key and the last as Django reads them."""

_FIELD_CLASSES: dict[type, tuple[type, ...]] = {
    _django.IntConverter: INTEGERS,
    _django.UUIDConverter: (UUIDField,),
}
"""The field classes whose values a converter may accept; each line is checked, too."""

WHOLE_UNITS = {
    *("year", "iso_year", "quarter", "month", "week", "day", "week_day", "iso_week_day"),
    *("hour", "minute", "second"),
}
"""What Django extracts without a fraction; of others, Python cuts it off and PostgreSQL rounds."""

LAST_KEY = object()
"""The parameter of a statement that is the key of the last row that was read."""

_KEYS = "ARRAY_AGG(sitemapkit_key)"
# The first and the last key are those at the ends: a comparison might have another order.
_SELECTED = f"COUNT(*), ({_KEYS})[1], ({_KEYS})[COUNT(*)], STRING_AGG(sitemapkit_text, E'\\n')"
_LASTMODS = (
    "MIN(sitemapkit_lastmod)::text, MAX(sitemapkit_lastmod)::text, COUNT(sitemapkit_lastmod)"
)


@dataclass(slots=True)
class TextChunk:
    """Some rows of a section as lines of one text, in the order of their key."""

    rows: int
    """Rows that were read; of none, the rest is empty."""
    first: Any = None
    """The key of the first row."""
    last: Any = None
    """The key of the last row."""
    text: bytes = b""
    """A line for each row: proven, percent-encoded, its lastmod in W3C form.

    Before that, a lastmod is as PostgreSQL writes it.
    """
    lastmods: tuple[str, str, int] = ("", "", 0)
    """The oldest and the newest lastmod of the lines, "" without any, and how many there are."""
    keys: Sequence[Any] = ()
    """The keys of all rows, if they were asked for."""
    row_chunks: Callable[[], Iterator[Chunk]] = lambda: iter(())
    """Reads the same rows the row path's way."""
    find_key: Callable[[str], Any] | None = None
    """Asks for the key of a row with a lastmod, where ``keys`` are missing."""
    digest: int = 0
    """The sum of the rows' hashes, if it was asked for."""

    def newest_key_finder(self) -> Callable[[], Any]:
        """Return a function that finds the key of a row with the newest lastmod.

        The function holds no rows. It returns None if that row has another lastmod by now.
        """
        newest = self.lastmods[1]
        if self.find_key is not None and not self.keys:
            return partial(self.find_key, newest)
        lines = zip(self.keys, self.text.split(b"\n"), strict=False)
        found = next(key for key, line in lines if line.endswith(newest.encode()))
        return lambda: found


def can_join(
    reader: RowSources, pattern: FastPattern, columns: Sequence[Any], image: str | None
) -> bool:
    """Return whether the database can join rows into lines that fill a URL pattern.

    It must be PostgreSQL, return each row once with the columns that are read, and write all values
    as Python does, including those that a row may set itself and the name of its ``image``.
    """
    keyset, read = reader.keyset, reader.queryset
    rows, own_values = keyset.queryset, reader.row_value_columns.values()
    if connections[rows.db].vendor != "postgresql" or not _django.reads_single_rows(read):
        return False
    if _django.QueryShape(rows).changes_values or _django.QueryShape(read).has_extra_columns:
        return False
    # Of a view or a foreign table, nothing enforces that a key is unique.
    if type(keyset.stored) not in KEYS or not rows.model._meta.managed:
        return False
    others = (*TEXT_FIELD_CLASSES, *INTEGERS, UUIDField)
    fitting = [_FIELD_CLASSES.get(type(one), others) for one in pattern.converters]
    fitting += [(CharField, DecimalField)] * len(own_values)
    images = [] if image is None else [image]
    fitting += [(FileField, ImageField)] * len(images)
    return all(
        _field_class(_django.resolve_column(column, rows)[0]) in kinds
        for column, kinds in zip([*columns, *own_values, *images], fitting, strict=True)
    )


def _field_class(expression: Any) -> "type[Field[Any, Any]] | None":
    """Return the field class whose values an expression returns; None if it is not known."""
    if _django.table_and_field_of(expression) is not None:
        return column_field_class(expression)
    if isinstance(expression, Extract) and expression.lookup_name not in WHOLE_UNITS:
        return None
    is_known = isinstance(expression, (Cast, Extract)) or _django.is_text_function(expression)
    return type(expression.output_field) if is_known else None


class TextQuery:
    """Reads the rows of a keyset as text, several thousand by one statement."""

    def __init__(
        self,
        reader: RowSources,
        columns: Sequence[Any],
        *,
        at_most: int,
    ) -> None:
        """Read ``columns`` and a lastmod of rows, at most ``at_most`` and ROWS_PER_TEXT at a time.

        The line of a row that sets a tag itself is empty.
        """
        keyset, lastmod_text = reader.keyset, reader.lastmod_text
        self._rows_per_text = min(at_most, ROWS_PER_TEXT)
        self.with_keys = False
        """Whether all keys are asked for."""
        self.has_hashes = False
        """Whether the sums of the rows' hashes are found, too."""
        self._field = keyset.field
        line = _line_expression(keyset.queryset, columns, lastmod_text)
        selected: dict[str, Any] = {
            "sitemapkit_key": F(keyset.name),
            "sitemapkit_text": _blank_with_own_values(line, reader.row_value_columns.values()),
        }
        self._lastmods = "NULL, NULL, 0"
        if lastmod_text is not None:
            (selected["sitemapkit_lastmod"],) = lastmod_text.get_source_expressions()
            self._lastmods = _LASTMODS
        rows: QuerySet[Any] = keyset.queryset.values(**selected)
        self._keyset = Keyset(rows, keyset.name, keyset.active)

    def add_hash_sum(self, row_hash_expression: Func) -> None:
        """Let the statements also return the sum of the rows' hashes."""
        rows = self._keyset.queryset.annotate(sitemapkit_hash=row_hash_expression)
        self._keyset = Keyset(rows, self._keyset.name, self._keyset.active)
        self.has_hashes = True

    def text_chunks(self, keys: KeyRange) -> Iterator[TextChunk]:
        """Yield the rows of a range as TextChunks; the first is small, as a reader waits for it."""
        size = FIRST_CHUNK
        found = self._run_statement(self._statement(self._keyset.within(keys)[:size]))
        following: SqlColumn | None = None
        while found.rows:
            is_rest, last = found.rows < size, found.last
            yield found
            if is_rest:
                return
            if following is None or size < self._rows_per_text:
                size = min(4 * size, self._rows_per_text)
                # A placeholder: one compiled statement then reads all further chunks.
                behind = self._keyset.after(RawSQL("%s", (LAST_KEY,), self._field), keys)
                following = self._statement(behind[:size])
            found = self._run_statement(following, last)

    def _statement(self, rows: QuerySet[Any]) -> SqlColumn:
        """Return the SQL that reads some rows as text; "" if no row can match."""
        with self._keyset.active():
            inner, parameters = _django.select_sql(rows, rows.db)
        if not inner:
            return "", ()
        # The ORM would take longer for the outer statement than for the inner one.
        keys = _KEYS if self.with_keys else "NULL"
        hashes = SUM_OF_HASHES if self.has_hashes else "0"
        columns = f"{_SELECTED}, {self._lastmods}, {keys}, {hashes}"
        outer = f"SELECT {columns} FROM ({inner}) found"  # noqa: S608
        return outer, parameters

    def _run_statement(self, statement: SqlColumn, last: Any = None) -> TextChunk:
        """Run a statement and return its rows; ``last`` is the key after which it reads, if any."""
        sql, parameters = statement
        if not sql:
            return TextChunk(0)
        connection = connections[self._keyset.queryset.db]
        if last is not None:
            key = self._keyset.stored.get_db_prep_value(last, connection)
            parameters = tuple(key if value is LAST_KEY else value for value in parameters)
        with self._keyset.active(), connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            count, first, last, text, oldest, newest, dated, keys, digest = cursor.fetchone()
        return TextChunk(
            rows=count,
            first=self._field.to_python(first),
            last=self._field.to_python(last),
            text=f"{text}\n".encode(),
            lastmods=(oldest or "", newest or "", dated),
            keys=keys or (),
            digest=int(digest),
        )


def _line_expression(rows: QuerySet[Any], columns: Sequence[Any], lastmod: Any) -> Any:
    """Return the expression of a row's line; the line is empty if a value is missing."""
    text, parts = TextField(), []
    for column, separator in zip(columns, SEPARATORS, strict=False):
        if isinstance(_django.resolve_column(column, rows)[0], Extract):
            column = Cast(column, BigIntegerField())  # noqa: PLW2901  a numeric has decimals
        parts += [Cast(column, text), Value(chr(separator))]
    if lastmod is not None:
        # Fractions of a second are not written, and the zone is UTC.
        seconds = Left(lastmod, len("YYYY-MM-DD hh:mm:ss"), output_field=text)
        parts.append(Coalesce(seconds, Value(""), output_field=text))
    line = Func(*parts, template="(%(expressions)s)", arg_joiner=" || ", output_field=text)
    return Coalesce(line, Value(""), output_field=text)


def _blank_with_own_values(line: Any, columns: Collection[str]) -> Any:
    """Return the expression of a line that is empty if the row sets a tag in ``columns`` itself."""
    if not columns:
        return line
    # CONCAT takes columns of any type, and NULL for an empty text.
    values = Func(*columns, function="CONCAT", output_field=TextField())
    is_blank = When(Exact(Length(values), 0), then=line)
    return Case(is_blank, default=Value(""), output_field=TextField())
