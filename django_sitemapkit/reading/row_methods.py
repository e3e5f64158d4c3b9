"""The methods of a section over rows: which are read as columns, and which have to be called."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db.models import F, QuerySet

from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.reading.chunks import call_for_each
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.reading.method_sources import MustBeCalled
from django_sitemapkit.reading.methods import formula_of
from django_sitemapkit.reading.sources import (
    EXTENSIONS,
    MUST_CALL,
    OPTIONS,
    TAGS,
    Column,
    Constant,
    Formula,
    Method,
)

if TYPE_CHECKING:
    from django_sitemapkit.reading.row_sources import RowSources

SAMPLED_ROWS = 100
"""Rows of a page, from two places in it, of which the odd ones are compared with the method."""

LOOKS = 3
"""How often rows are read again where a difference may come of their being saved meanwhile."""

RANDOM_ROWS = 3
"""Rows that are compared besides those."""


_differences: dict[tuple[str, str, str], str] = {}
"""What was found in this process, by site, section and digest."""


class RowMethods:
    """The methods of a section over rows, and the columns to read in place of them.

    Either all of them are read as columns, or none: as soon as one needs the object, the objects
    are read, and all methods are called.
    """

    def __init__(self, reader: "RowSources") -> None:
        self.reader = reader

    @cached_property
    def declared(self) -> dict[str, Method]:
        """The options that are methods of the object, whether or not they are called."""
        reader = self.reader
        declared = {reader.location_option: reader.declared_location}
        options = [*TAGS, *EXTENSIONS]
        if reader.languages is not None:
            options.append("object_languages")
        declared |= {option: reader.declared_source(option) for option in options}
        return {option: source for option, source in declared.items() if isinstance(source, Method)}

    @cached_property
    def formulas_or_reasons(self) -> dict[str, Formula | MustBeCalled]:
        """For each method, by option: its Formula, or the reason why it must be called."""
        found: dict[str, Formula | MustBeCalled] = {}
        for option, source in self.declared.items():
            try:
                found[option] = self._formula_for(option, source)
            except MustBeCalled as why:
                found[option] = why
        if self._digest_of(found) == self.reader.called_methods:
            return dict.fromkeys(
                found, MustBeCalled("has given another value than its source says")
            )
        return found

    @cached_property
    def formulas_unless_called(self) -> Mapping[str, Formula]:
        """The Formulas of the effective methods, by option; empty if any must be called."""
        found = {name: self.formulas_or_reasons[name] for name in self.effective_options}
        return {} if any(isinstance(one, MustBeCalled) for one in found.values()) else found  # type: ignore[return-value]

    @cached_property
    def effective_options(self) -> list[str]:
        """The options that are methods, except those that editors have set to a value."""
        return [option for option in self.declared if option not in self.reader.setting_values]

    @property
    def formulas_digest(self) -> str:
        """Text that changes whenever a Formula does; "" if the methods are called."""
        return self._digest_of(self.formulas_or_reasons) if self.formulas_unless_called else ""

    def _digest_of(self, readings: Mapping[str, Any]) -> str:
        """Return a hash of what methods are read as: their Formulas, or why they are called."""
        texts = [(option, getattr(one, "text", repr(one))) for option, one in readings.items()]
        return hashlib.sha256(repr((self.reader.label, texts)).encode()).hexdigest()[:16]

    def _formula_for(self, option: str, source: Method) -> Formula:
        """Return the Formula of a method. Raises MustBeCalled if the method must be called."""
        if not settings.METHODS_AS_COLUMNS:
            raise MustBeCalled(
                "is called because of SITEMAPKIT_METHODS_AS_COLUMNS", change="remove that setting"
            )
        if option not in {"location", *TAGS}:
            raise MustBeCalled("may return more than one value")
        if self.reader.label is None:
            raise MustBeCalled("is of items that are not read by key")
        function, convert = self.reader.function_and_converter(option, source)
        formula = replace(formula_of(function, self.reader.rows, convert), method=source.function)
        if option == "location":
            self._require_routes(formula)
            return formula
        if formula.reverses:
            raise MustBeCalled("calls reverse() for a tag")
        if not formula.read:
            return replace(formula, source=_constant(option, formula))
        if formula.date_column:
            return replace(formula, source=Column(F(formula.date_column)))
        return formula

    def _require_routes(self, formula: Formula) -> None:
        """Raise MustBeCalled unless a Formula of the location works in each language."""
        languages, site = self.reader.languages, self.reader.site
        if languages is not None and formula.route is None:
            raise MustBeCalled("is called in each language")
        for code in languages.rendered if languages else [""]:
            with languages.active(code) if languages else site.active():
                formula.compile_routes()

    # Values

    def compute(
        self, formula: Formula, option: str, columns: Sequence[Sequence[Any]], keys: Sequence[Any]
    ) -> list[Any]:
        """Return a method's value for each row, computed from its columns.

        ``columns`` are those in ``formula.read``, each with a value for each of ``keys``. The
        method is called for rows whose columns do not tell; if it raises, the value is an
        InvalidValue.
        """
        values = formula.values(columns, len(keys))
        if MUST_CALL not in values:
            return values
        odd = [place for place, value in enumerate(values) if value is MUST_CALL]
        asked = self.call_for_rows(formula, option, keys, odd)
        return [asked.get(place, value) for place, value in enumerate(values)]

    def call_for_rows(
        self, formula: Formula, option: str, keys: Sequence[Any], indexes: Sequence[int]
    ) -> dict[int, Any]:
        """Call a method for the rows at ``indexes``; return by index its value or an InvalidValue.

        The value is None for a row that has been deleted.
        """
        # The same connection may be reading the next rows, and a method may ask for more.
        with self.reader.connection_lock:
            objects = self.reader.objects_by_key([keys[index] for index in indexes])
            found = [objects.get(keys[index]) for index in indexes]
            is_there = [obj is not None for obj in found]
            values = call_for_each(formula.method, found, option, is_there)
        return dict(zip(indexes, values, strict=True))

    # What is proven, compared with what is so

    def find_difference(self, keys: KeyRange, *, once_per_process: bool = False) -> str:
        """Return which method gives another value for a row of a page than its columns; or "".

        A few of the sampled rows are compared: those with the least, the greatest and no value of
        each column, one that is not ASCII, and some at random. With ``once_per_process``, what a
        process has found for the section is returned again.
        """
        if not self.formulas_unless_called:
            return ""
        key = self.reader.site.key, self.reader.get_name(), self.formulas_digest
        if once_per_process and key in _differences:
            return _differences[key]
        unusual = _unusual_keys(self._sample_rows(keys))
        found = self._lasting_difference(unusual)
        if once_per_process and unusual:  # Otherwise, the next page may have rows.
            _differences[key] = found
        return found

    def _lasting_difference(self, keys: Sequence[Any]) -> str:
        """Return a difference that is not due to rows saved meanwhile; or ""."""
        for _ in range(LOOKS):
            rows = self._read_rows_by_key(keys)
            found = self._difference_in_languages(list(rows.values()))
            if not found or rows == self._read_rows_by_key(keys):
                return found
        return ""

    def _read_rows_by_key(self, keys: Sequence[Any]) -> dict[Any, tuple[Any, ...]]:
        """Return the rows with these keys, by key: each the key and the columns of the Formulas."""
        with self.reader.site.active():
            rows = self._read_values(self.reader.rows_with_keys(keys)) if keys else []
        return {row[0]: row for row in rows}

    def _difference_in_languages(self, rows: Sequence[tuple[Any, ...]]) -> str:
        """Return the first difference for some rows in any of the languages; or ""."""
        objects = self.reader.objects_by_key([key for key, *_ in rows])
        rows = [row for row in rows if row[0] in objects]
        there = [objects[key] for key, *_ in rows]
        languages, site = self.reader.languages, self.reader.site
        for code in languages.rendered if languages and rows else [""]:
            with languages.active(code, there) if languages else site.active():
                if found := self._first_difference(rows, there):
                    return found
        return ""

    def _sample_rows(self, keys: KeyRange) -> list[tuple[Any, ...]]:
        """Return the first rows of a page, and some from a random place: each key with its columns.

        Those from a random place need integer keys.
        """
        keyset = self.reader.keyset
        with self.reader.site.active():
            rows = self._read_values(keyset.within(keys)[:SAMPLED_ROWS])
            if len(rows) == SAMPLED_ROWS and type(first := rows[-1][0]) is int:
                is_last = keys.upper is None
                ends = keyset.first_keys(1, keys, descending=True) if is_last else [keys.upper]
                start = random.randrange(first, max([first + 1, *ends]))  # noqa: S311  no secret
                rows += self._read_values(keyset.within(KeyRange(start, keys.upper))[:SAMPLED_ROWS])
        return rows

    def _read_values(self, rows: QuerySet[Any]) -> list[tuple[Any, ...]]:
        """Return the key of each row, and the columns that the Formulas read."""
        columns = [column for one in self.formulas_unless_called.values() for column in one.read]
        return list(rows.values_list(self.reader.options.key, *columns))

    def _first_difference(self, rows: Sequence[tuple[Any, ...]], objects: Sequence[Any]) -> str:
        """Return the first difference for some rows in the active language; or ""."""
        keys, *columns = zip(*rows, strict=True) if rows else [()]
        for option, formula in self.formulas_unless_called.items():
            count = len(formula.read)
            values = formula.values(columns[:count], len(keys))
            columns = columns[count:]
            given = call_for_each(self.declared[option].function, objects, option)
            for row, (value, real) in enumerate(zip(values, given, strict=True)):
                if value is not MUST_CALL and value != real:
                    said = real if isinstance(real, InvalidValue) else quoted(real)
                    return (
                        f"{option} of the row with key {keys[row]} is {said}; its source says"
                        f" {quoted(value)}"
                    )
        return ""


def _constant(option: str, formula: Formula) -> Constant:
    """Return the Constant for a tag whose method returns the same for every object.

    Raises MustBeCalled if the value is invalid: the problem is that of each row, and a constant
    would report it only once.
    """
    (value,) = formula.values((), 1)
    if value is MUST_CALL:
        raise MustBeCalled("raises for each object")
    try:
        if option == "lastmod" and value is not None:
            raise MustBeCalled("returns a date that does not depend on the object")
        if format_value := OPTIONS[option].format_value:
            format_value(value)
    except InvalidValue as refusal:
        raise MustBeCalled(f"returns what is refused: {refusal}") from refusal
    return Constant(value)


def _unusual_keys(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the keys of the rows for which a method is most likely to return what is unexpected.

    The key is the first column.
    """
    found: list[tuple[Any, ...]] = []
    for column in zip(*rows, strict=True):
        known = [place for place, value in enumerate(column) if value is not None]
        found += [rows[place] for place in range(len(rows)) if column[place] is None][:1]
        if known:
            known.sort(key=lambda place: str(column[place]))
            found += [rows[known[0]], rows[known[-1]]]
            found += [rows[place] for place in known if not str(column[place]).isascii()][:1]
    found += random.sample(rows, min(RANDOM_ROWS, len(rows)))
    return list(dict.fromkeys(row[0] for row in found))
