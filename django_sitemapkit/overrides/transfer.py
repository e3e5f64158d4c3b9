"""Overrides and extra URLs as CSV: written out, compared with what there is, taken in.

A file is UTF-8, with or without a byte order mark, its cells separated by commas, semicolons or
tabs. An empty cell inherits; a column that is left out stays as it is.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from io import StringIO
from typing import Any

from django.db import router, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.overrides.cells import (
    OVERRIDES,
    RowReader,
    Table,
    guarded,
    refused,
    text_of,
)
from django_sitemapkit.overrides.objects import named_model, named_objects
from django_sitemapkit.sites import Site

MAX_BYTES = 5_000_000
"""Of a file that is taken in."""

MAX_LINES = 50_000
"""Lines of a file that is taken in; a cell with line breaks has several."""

AT_ONCE = 500
"""Rows read, looked up and written by one query."""


class Outcome(Enum):
    """What becomes of a line."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(slots=True)
class Line:
    """One row of a file."""

    number: int
    """The line of the file that it begins on, from 1."""
    outcome: Outcome
    """What becomes of it."""
    row: Any = None
    """The model's row as it will be; None where it is refused."""
    changes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """What changes, by column: the texts before and after."""
    why: str = ""
    """Why it is refused."""

    def refuse(self, why: object) -> None:
        """Leave the line out."""
        self.outcome, self.row, self.why = Outcome.REFUSED, None, str(why)


@dataclass(slots=True)
class Comparison:
    """A file, line by line, beside what is stored."""

    table: Table
    """What its rows are."""
    columns: Sequence[str]
    """The columns it has."""
    lines: list[Line]
    """Its rows."""

    def of(self, outcome: Outcome) -> list[Line]:
        """Return the lines with that outcome."""
        return [line for line in self.lines if line.outcome is outcome]

    def count(self, outcome: Outcome) -> int:
        """Return how many lines have that outcome."""
        return sum(line.outcome is outcome for line in self.lines)

    def apply(self) -> tuple[list[Any], list[Any]]:
        """Write what is to be created and changed; return both, as they are stored.

        All of it or, where the database raises an error, nothing.
        """
        model = self.table.model
        created = [line.row for line in self.of(Outcome.CREATED)]
        changed = [line.row for line in self.of(Outcome.CHANGED)]
        values = [name for name in self.columns if name in self.table.values]
        with transaction.atomic(using=router.db_for_write(model)):
            model._default_manager.bulk_create(created, batch_size=AT_ONCE)
            if changed:
                now = timezone.now()
                for row in changed:
                    row.changed_at = now
                model._default_manager.bulk_update(
                    changed, [*values, "changed_at"], batch_size=AT_ONCE
                )
            # Not every database tells the keys of many rows that are created at once.
            return list(_stored(model, created).values()), changed


def exported(table: Table, rows: QuerySet[Any]) -> Iterator[str]:
    """Yield a CSV file of ``rows``, line by line, in memory that does not grow with them.

    It begins with a byte order mark, without which spreadsheets take it for an older encoding. A
    text that one would take for a formula gets an apostrophe before it.
    """
    writer = csv.writer(_Lines())
    yield "\ufeff" + writer.writerow(table.columns)
    last = 0
    while some := list(rows.filter(pk__gt=last).order_by("pk")[:AT_ONCE]):
        for row in some:
            yield writer.writerow(guarded(text_of(getattr(row, name))) for name in table.columns)
        last = some[-1].pk


def compared(table: Table, data: bytes, sites: Sequence[Site]) -> Comparison:
    """Return what a file would create and change, and what of it is refused, by line.

    Nothing is written. Raises RefusedValue where the file as a whole cannot be read.
    """
    columns, rows = _rows(table, _decoded(data))
    return compared_rows(table, columns, rows, sites)


def compared_rows(
    table: Table,
    columns: Sequence[str],
    rows: Iterable[tuple[int, Sequence[str]]],
    sites: Sequence[Site],
) -> Comparison:
    """Return the same of rows that are cells already, each with the number of its line."""
    lines: list[Line] = []
    reader = RowReader(table, {site.key: site for site in sites})
    seen: dict[tuple[str, int], int] = {}
    for number, cells in rows:
        line = Line(number, Outcome.CREATED)
        lines.append(line)
        try:
            line.row = reader.row(columns, cells)
        except RefusedValue as refusal:
            line.refuse(refusal)
            continue
        first = seen.setdefault((line.row.site, line.row.hash), number)
        if first != number:
            line.refuse(_("It is the same as line %(number)s.") % {"number": first})
    for start in range(0, len(lines), AT_ONCE):
        _compare(table, columns, lines[start : start + AT_ONCE])
    return Comparison(table, columns, lines)


class _Lines:
    """A file for ``csv.writer`` that hands each line back."""

    def write(self, line: str) -> str:
        return line


def _decoded(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        text = _("The file has more than %(count)s bytes; split it.")
        raise refused(text % {"count": f"{MAX_BYTES:,}"})
    if _line_count(data) > MAX_LINES:
        text = _("The file has more than %(count)s lines; split it.")
        raise refused(text % {"count": f"{MAX_LINES:,}"})
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused(_("The file is not encoded in UTF-8.")) from error


def _line_count(data: bytes) -> int:
    ends = data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
    return ends + (not data.endswith((b"\n", b"\r")))


def _rows(table: Table, text: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the columns of a file, and its rows, each with the line that it begins on."""
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows = _numbered(reader)
    _number, cells = next(rows, (1, []))
    columns = [cell.strip().lower() for cell in cells]
    _check_columns(table, columns)
    return columns, rows


def _numbered(reader: Any) -> Iterator[tuple[int, list[str]]]:
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            text = _("Line %(number)s cannot be read: %(error)s.")
            raise refused(text % {"number": number, "error": error}) from error
        if cells is None:
            return
        if any(cells):
            yield number, cells


def _check_columns(table: Table, columns: Sequence[str]) -> None:
    known = ", ".join(table.columns)
    if unknown := [repr(name[:50]) for name in columns if name not in table.columns]:
        text = _("Unknown columns: %(unknown)s. There may be: %(known)s.")
        raise refused(text % {"unknown": ", ".join(unknown[:10]), "known": known})
    if len(set(columns)) < len(columns):
        raise refused(_("A column stands there twice."))
    if "path" not in columns and not {"model", "object_id"} <= set(columns):
        text = _("No column says which URL it is. There may be: %(known)s.")
        raise refused(text % {"known": known})


def _compare(table: Table, columns: Sequence[str], lines: Iterable[Line]) -> None:
    """Set the outcome of some lines by what is stored."""
    lines = [line for line in lines if line.row is not None]
    stored = _stored(table.model, [line.row for line in lines])
    new: list[Line] = []
    for line in lines:
        former = stored.get((line.row.site, line.row.hash))
        if former is None:
            new.append(line)
            continue
        if former.identity != line.row.identity:  # pragma: no cover  one in 2**64
            line.refuse(_("Its hash is that of another row."))
            continue
        for name in (name for name in columns if name in table.values):
            before, after = getattr(former, name), getattr(line.row, name)
            if before != after:
                line.changes[name] = text_of(before), text_of(after)
                setattr(former, name, after)
        line.outcome = Outcome.CHANGED if line.changes else Outcome.UNCHANGED
        line.row = former
    if table is OVERRIDES:
        _refuse_missing_objects(new)


def _refuse_missing_objects(lines: Iterable[Line]) -> None:
    """Refuse new overrides of objects that are not there."""
    by_model: dict[str, list[Line]] = {}
    for line in lines:
        if line.row.model:
            by_model.setdefault(line.row.model, []).append(line)
    for label, some in by_model.items():
        model = named_model(label)
        assert model is not None  # noqa: S101  it was looked up for the row
        found = named_objects(model, [line.row.object_id for line in some])
        for line in some:
            obj = found.get(line.row.object_id)
            if obj is None:
                line.refuse(_("object_id: there is no such object."))
            elif str(obj.pk) != line.row.object_id:
                line.refuse(_("object_id: write it as %(key)s.") % {"key": obj.pk})


def _stored(model: type[Any], rows: Sequence[Any]) -> dict[tuple[str, int], Any]:
    """Return the stored rows that have the identities of ``rows``."""
    found: dict[tuple[str, int], Any] = {}
    wanted = {(row.site, row.hash) for row in rows}
    hashes = [row.hash for row in rows]
    for start in range(0, len(hashes), AT_ONCE):
        using = model._default_manager.using(router.db_for_write(model))
        for row in using.filter(hash__in=hashes[start : start + AT_ONCE]):
            if (row.site, row.hash) in wanted:
                found[row.site, row.hash] = row
    return found
