"""Import and export of overrides and extra URLs as CSV.

A file is encoded in UTF-8, with or without a byte order mark, with cells separated by commas,
semicolons or tabs. An empty cell inherits; a missing column stays as it is.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from io import StringIO
from typing import Any

from django.db import connections, router, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import model_by_label, objects_by_key
from django_sitemapkit.overrides.cells import (
    OVERRIDE_TABLE,
    CsvTable,
    RowReader,
    cell_text,
    csv_error,
    escape_formulas,
)
from django_sitemapkit.printable import without_controls
from django_sitemapkit.reading.keysets import read_by_key
from django_sitemapkit.sites import SitemapSite

MAX_CSV_BYTES = 5_000_000
"""Maximum size of an imported file."""

MAX_CSV_LINES = 50_000
"""Maximum lines of an imported file; a cell with line breaks has several."""

CSV_ROWS_PER_QUERY = 500
"""Rows that one query reads, looks up or writes."""


class LineOutcome(Enum):
    """The effect of importing a line."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    INVALID = "invalid"


@dataclass(slots=True)
class Line:
    """One row of a file that is imported, and what the import does with it."""

    number: int
    """The line of the file where the row starts, from 1."""
    outcome: LineOutcome
    """What the import does with it."""
    row: Any = None
    """The model instance after the import; None if the line is invalid."""
    changes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The texts before and after, by changed column."""
    error: str = ""
    """Why the line is invalid."""

    def mark_invalid(self, error: object) -> None:
        """Set the outcome to invalid for the reason ``error``: the import skips the line."""
        self.outcome, self.row, self.error = LineOutcome.INVALID, None, str(error)


@dataclass(slots=True)
class Comparison:
    """The lines of a file, each compared with the stored row that it would create or change."""

    table: CsvTable
    """The model of its rows."""
    columns: Sequence[str]
    """The columns it has."""
    lines: list[Line]
    """Its rows."""

    def lines_with(self, outcome: LineOutcome) -> list[Line]:
        """Return the lines with that outcome."""
        return [line for line in self.lines if line.outcome is outcome]

    def count(self, outcome: LineOutcome) -> int:
        """Return how many lines have that outcome."""
        return len(self.lines_with(outcome))

    def apply(self) -> tuple[list[Any], list[Any]]:
        """Import the file: write its new and its changed rows in one transaction.

        Returns the created rows and the changed rows, as stored.
        """
        model = self.table.model
        created = [line.row for line in self.lines_with(LineOutcome.CREATED)]
        changed = [line.row for line in self.lines_with(LineOutcome.CHANGED)]
        values = [name for name in self.columns if name in self.table.values]
        database = router.db_for_write(model)
        with transaction.atomic(using=database):
            model._default_manager.bulk_create(created, batch_size=CSV_ROWS_PER_QUERY)
            if changed:  # bulk_update() takes thirteen times as long.
                targets = connections[database].features.supports_update_conflicts_with_target
                model._default_manager.bulk_create(
                    changed,
                    batch_size=CSV_ROWS_PER_QUERY,
                    update_conflicts=True,
                    update_fields=values,
                    unique_fields=["pk"] if targets else None,
                )
            # Not every database returns the keys of rows created in bulk.
            return list(_stored_rows(model, created).values()), changed


def exported_lines(table: CsvTable, rows: QuerySet[Any]) -> Iterator[str]:
    """Yield the lines of a CSV file of the ``rows`` of a table, in constant memory."""
    return csv_lines(table.columns, read_by_key(rows, *table.columns))


def csv_lines(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """Yield the lines of a CSV file with a header of ``columns``, in constant memory.

    It starts with a byte order mark, without which spreadsheets expect an older encoding. An
    apostrophe escapes text that a spreadsheet would read as a formula; no control character of a
    terminal is left.
    """
    writer = csv.writer(_Echo())
    yield "\ufeff" + writer.writerow(columns)
    for row in rows:
        yield writer.writerow(escape_formulas(without_controls(cell_text(cell))) for cell in row)


def compare_file(table: CsvTable, data: bytes, sites: Sequence[SitemapSite]) -> Comparison:
    """Return what importing a CSV file would do with each line, without writing anything.

    ``data`` is its content. A line must name one of ``sites``, or none if there is only one. Raises
    InvalidValue if the file as a whole cannot be read; a line that cannot be imported is part of
    the result.
    """
    columns, rows = _columns_and_rows(table, _decode_file(data))
    return compare_rows(table, columns, rows, sites)


def compare_rows(
    table: CsvTable,
    columns: Sequence[str],
    rows: Iterable[tuple[int, Sequence[str]]],
    sites: Sequence[SitemapSite],
) -> Comparison:
    """Return what ``compare_file`` does for rows of cells, each given with its line number.

    The cells of a row are in the order of ``columns``.
    """
    lines: list[Line] = []
    reader = RowReader(table, {site.key: site for site in sites})
    seen: dict[tuple[str, int], int] = {}
    for number, cells in rows:
        line = Line(number, LineOutcome.CREATED)
        lines.append(line)
        try:
            line.row = reader.row(columns, cells)
        except InvalidValue as error:
            line.mark_invalid(error)
            continue
        first = seen.setdefault((line.row.site, line.row.hash), number)
        if first != number:
            line.mark_invalid(_("This is a duplicate of line %(number)s.") % {"number": first})
    for start in range(0, len(lines), CSV_ROWS_PER_QUERY):
        _compare_with_stored(table, columns, lines[start : start + CSV_ROWS_PER_QUERY])
    return Comparison(table, columns, lines)


class _Echo:
    """A target for ``csv.writer``, whose ``writerow()`` then returns the line."""

    def write(self, line: str) -> str:
        """Return the line instead of storing it."""
        return line


def _decode_file(data: bytes) -> str:
    """Return a file's text; raises InvalidValue if it is too large, too long or not UTF-8."""
    if len(data) > MAX_CSV_BYTES:
        text = _("The file is larger than %(count)s bytes. Split it.")
        raise csv_error(text % {"count": f"{MAX_CSV_BYTES:,}"})
    ends = data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
    if ends + (not data.endswith((b"\n", b"\r"))) > MAX_CSV_LINES:
        text = _("The file has more than %(count)s lines. Split it.")
        raise csv_error(text % {"count": f"{MAX_CSV_LINES:,}"})
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise csv_error(_("The file is not encoded in UTF-8.")) from error


def _columns_and_rows(
    table: CsvTable, text: str
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the columns of a file, from its first row, and the others with their line numbers.

    Raises InvalidValue if the columns are wrong.
    """
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows = _numbered_rows(reader)
    _number, cells = next(rows, (1, []))
    columns = [cell.strip().lower() for cell in cells]
    _check_columns(table, columns)
    return columns, rows


def _numbered_rows(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield each row of a CSV reader that is not empty, with the number of its first line, from 1.

    Raises InvalidValue for a line that cannot be read.
    """
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            text = _("Line %(number)s cannot be read: %(error)s.")
            raise csv_error(text % {"number": number, "error": error}) from error
        if cells is None:
            return
        if any(cells):
            yield number, cells


def _check_columns(table: CsvTable, columns: Sequence[str]) -> None:
    """Raise InvalidValue if a column is unknown or repeated, or none identifies the URL."""
    known = ", ".join(table.columns)
    if unknown := [repr(name[:50]) for name in columns if name not in table.columns]:
        text = _("Unknown columns: %(unknown)s. Known columns: %(known)s.")
        raise csv_error(text % {"unknown": ", ".join(unknown[:10]), "known": known})
    if len(set(columns)) < len(columns):
        raise csv_error(_("A column appears twice."))
    if "path" not in columns and not {"model", "object_id"} <= set(columns):
        text = _("No column identifies the URL. Known columns: %(known)s.")
        raise csv_error(text % {"known": known})


def _compare_with_stored(table: CsvTable, columns: Sequence[str], lines: Iterable[Line]) -> None:
    """Set outcome, changes and row of some lines by comparing them with the stored rows."""
    lines = [line for line in lines if line.row is not None]
    stored = _stored_rows(table.model, [line.row for line in lines])
    new: list[Line] = []
    for line in lines:
        previous = stored.get((line.row.site, line.row.hash))
        if previous is None:
            new.append(line)
            continue
        if previous.identity != line.row.identity:  # pragma: no cover  one in 2**64
            line.mark_invalid(_("Another row has the same hash."))
            continue
        for name in (name for name in columns if name in table.values):
            before, after = getattr(previous, name), getattr(line.row, name)
            if before != after:
                line.changes[name] = cell_text(before), cell_text(after)
                setattr(previous, name, after)
        line.outcome = LineOutcome.CHANGED if line.changes else LineOutcome.UNCHANGED
        line.row = previous
    if table is OVERRIDE_TABLE:
        _reject_missing_objects(new)


def _reject_missing_objects(lines: Sequence[Line]) -> None:
    """Mark lines as invalid whose override is for an object that does not exist."""
    for label in {line.row.model for line in lines if line.row.model}:
        lines_of_model = [line for line in lines if line.row.model == label]
        model = model_by_label(label)
        assert model is not None  # noqa: S101  it was looked up for the row
        found = objects_by_key(model, [line.row.object_id for line in lines_of_model])
        for line in lines_of_model:
            obj = found.get(line.row.object_id)
            if obj is None:
                line.mark_invalid(_("object_id: this object does not exist."))
            elif str(obj.pk) != line.row.object_id:
                line.mark_invalid(_("object_id: enter %(key)s.") % {"key": obj.pk})


def _stored_rows(model: type[Any], rows: Sequence[Any]) -> dict[tuple[str, int], Any]:
    """Return the stored rows that have the site and hash of one of ``rows``, by site and hash."""
    found: dict[tuple[str, int], Any] = {}
    wanted = {(row.site, row.hash) for row in rows}
    hashes = [row.hash for row in rows]
    for start in range(0, len(hashes), CSV_ROWS_PER_QUERY):
        using = model._default_manager.using(router.db_for_write(model))
        for row in using.filter(hash__in=hashes[start : start + CSV_ROWS_PER_QUERY]):
            if (row.site, row.hash) in wanted:
                found[row.site, row.hash] = row
    return found
