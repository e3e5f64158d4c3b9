"""The methods of a section over rows: which are read as columns, and which have to be called."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db.models import DateField, DateTimeField, F, QuerySet

from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.reading.chunks import call_for_each
from django_sitemapkit.reading.formulas import ASK, Formula
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.reading.method_sources import StaysMethod
from django_sitemapkit.reading.methods import formula_of
from django_sitemapkit.reading.sources import EXTENSIONS, OPTIONS, TAGS, Column, Constant, Method

if TYPE_CHECKING:
    from django_sitemapkit.reading.row_sources import RowSources

SAMPLED_ROWS = 100
"""Rows of a page, from two places in it, of which the odd ones are compared with the method."""

LOOKS = 3
"""How often rows are read again where a difference may come of their being saved meanwhile."""

RANDOM_ROWS = 3
"""Rows that are compared besides those."""


_known: dict[tuple[str, str, str], str] = {}
"""What was found in this process, by site, section and digest."""


class RowMethods:
    """The methods of a section, as its reader reads them.

    Each is read as columns if all of them can be: as soon as one needs the object, the objects
    are read, and the methods are called.
    """

    def __init__(self, reader: "RowSources") -> None:
        self._reader = reader

    def of(self, reader: "RowSources") -> "RowMethods":
        """Return the same methods for a reader that reads the same section."""
        methods = copy(self)
        methods._reader = reader
        return methods

    @cached_property
    def declared(self) -> dict[str, Method]:
        """The options that are methods of the object, whether or not they are called."""
        reader = self._reader
        declared = {reader.location_option: reader.declared_location}
        options = [*TAGS, *EXTENSIONS]
        if reader.language_plan is not None:
            options.append("object_languages")
        declared |= {option: reader.declared_source(option) for option in options}
        return {option: source for option, source in declared.items() if isinstance(source, Method)}

    @cached_property
    def readings(self) -> dict[str, Formula | StaysMethod]:
        """For each method, by option: its Formula, or the reason why it must be called."""
        found: dict[str, Formula | StaysMethod] = {}
        for option, source in self.declared.items():
            try:
                found[option] = self._reading(option, source)
            except StaysMethod as why:
                found[option] = why
        if self._digest(found) == self._reader.called_methods:
            differing = StaysMethod("has given another value than its source says")
            return dict.fromkeys(found, differing)
        return found

    @cached_property
    def as_columns(self) -> Mapping[str, Formula]:
        """The methods that are read as columns, by option; none if one has to be called."""
        found = {name: self.readings[name] for name in self.in_force}
        return {} if any(isinstance(one, StaysMethod) for one in found.values()) else found  # type: ignore[return-value]

    @cached_property
    def in_force(self) -> list[str]:
        """The options that are methods and that editors have not set to a value."""
        return [option for option in self.declared if option not in self._reader.setting_values]

    @property
    def digest(self) -> str:
        """Text that changes whenever a method is read as something else; "" if all are called."""
        return self._digest(self.readings) if self.as_columns else ""

    def _digest(self, readings: Mapping[str, Any]) -> str:
        texts = [(option, getattr(one, "text", repr(one))) for option, one in readings.items()]
        state = repr((self._reader.label, texts))
        return hashlib.sha256(state.encode()).hexdigest()[:16]

    def _reading(self, option: str, source: Method) -> Formula:
        """Return the Formula of a method. Raises StaysMethod if the method must be called."""
        if not settings.METHODS_AS_COLUMNS:
            why = "is called because of SITEMAPKIT_METHODS_AS_COLUMNS"
            raise StaysMethod(why, change="remove that setting")
        if option not in {"location", *TAGS}:
            raise StaysMethod("may return more than one value")
        if self._reader.label is None:
            raise StaysMethod("is of items that are not read by key")
        function, finish = self._reader.function_of(option, source)
        formula = replace(formula_of(function, self._reader.rows, finish), method=source.function)
        if option == "location":
            self._require_routes(formula)
            return formula
        if formula.reverses:
            raise StaysMethod("calls reverse() for a tag")
        if not formula.read:
            return replace(formula, source=_constant(option, formula))
        is_date = formula.kind in {DateField, DateTimeField}
        return replace(formula, source=Column(F(formula.column))) if is_date else formula

    def _require_routes(self, formula: Formula) -> None:
        """Raise StaysMethod where a location cannot be computed in each language."""
        plan, site = self._reader.language_plan, self._reader.site
        if plan is not None and formula.route is None:
            raise StaysMethod("is called in each language")
        for code in plan.rendered if plan else [""]:
            with plan.active(code) if plan else site.active():
                formula.require_routes()

    # Values

    def computed(
        self, formula: Formula, option: str, columns: Sequence[Sequence[Any]], keys: Sequence[Any]
    ) -> list[Any]:
        """Return a method's value for each row from its columns, or an InvalidValue."""
        values = formula.values(columns, len(keys))
        if ASK not in values:
            return values
        odd = [place for place, value in enumerate(values) if value is ASK]
        asked = self.ask(formula, option, keys, odd)
        return [asked.get(place, value) for place, value in enumerate(values)]

    def ask(
        self, formula: Formula, option: str, keys: Sequence[Any], places: Sequence[int]
    ) -> dict[int, Any]:
        """Call a method on the rows at some places; return by place its value or an InvalidValue.

        None stands for a row that has been deleted.
        """
        # The same connection may be reading the next rows, and a method may ask for more.
        with self._reader.connection_lock:
            objects = self._reader.objects([keys[place] for place in places])
            found = [objects.get(keys[place]) for place in places]
            is_there = [obj is not None for obj in found]
            values = call_for_each(formula.method, found, option, is_there)
        return dict(zip(places, values, strict=True))

    # What is proven, compared with what is so

    def difference(self, keys: KeyRange, *, once: bool = False) -> str:
        """Return which method gives another value for a row of a page than its columns; or "".

        A few rows are compared: those with the least, the greatest and no value of each column,
        one that is not ASCII, and some at random. With ``once``, one look for each process is
        enough.
        """
        if not self.as_columns:
            return ""
        key = self._reader.site.key, self._reader.get_name(), self.digest
        if once and key in _known:
            return _known[key]
        odd = _unusual_rows(self._sample_rows(keys))
        found = self._confirmed_difference(odd)
        if once and odd:  # Otherwise, the next page may have rows.
            _known[key] = found
        return found

    def _confirmed_difference(self, odd: Sequence[tuple[Any, ...]]) -> str:
        """Return a difference that remains when the rows are read again unchanged; or ""."""
        keys = [key for key, *_ in odd]
        for _ in range(LOOKS):
            rows = self._rows_with(keys)
            found = self._difference_in_languages(list(rows.values()))
            if not found or rows == self._rows_with(keys):
                return found
        return ""

    def _rows_with(self, keys: Sequence[Any]) -> dict[Any, tuple[Any, ...]]:
        with self._reader.site.active():
            rows = self._read_columns(self._reader.rows_with(keys)) if keys else []
        return {row[0]: row for row in rows}

    def _difference_in_languages(self, rows: Sequence[tuple[Any, ...]]) -> str:
        objects = self._reader.objects([key for key, *_ in rows])
        rows = [row for row in rows if row[0] in objects]
        plan, site = self._reader.language_plan, self._reader.site
        for code in plan.rendered if plan and rows else [""]:
            there = [objects[key] for key, *_ in rows]
            with plan.active(code, there) if plan else site.active():
                if found := self._first_difference(rows, there):
                    return found
        return ""

    def _sample_rows(self, keys: KeyRange) -> list[tuple[Any, ...]]:
        """Return the first rows of a page, and some from a random place where keys are numbers."""
        with self._reader.site.active():
            rows = self._read_columns(self._reader.keyset.within(keys)[:SAMPLED_ROWS])
            first, last = rows[-1][0] if rows else None, keys.upper
            if type(first) is type(last) is int and first < last:
                keys = KeyRange(random.randrange(first, last), last)  # noqa: S311  no secret
                rows += self._read_columns(self._reader.keyset.within(keys)[:SAMPLED_ROWS])
        return rows

    def _read_columns(self, rows: QuerySet[Any]) -> list[tuple[Any, ...]]:
        columns = [column for one in self.as_columns.values() for column in one.read]
        return list(rows.values_list(self._reader.options.key, *columns))

    def _first_difference(self, rows: Sequence[tuple[Any, ...]], objects: Sequence[Any]) -> str:
        """Return the first difference in the active language; "" without any."""
        keys, *columns = zip(*rows, strict=True) if rows else [()]
        for option, formula in self.as_columns.items():
            count = len(formula.read)
            values = formula.values(columns[:count], len(keys))
            columns = columns[count:]
            given = call_for_each(self.declared[option].function, objects, option)
            for row, (value, real) in enumerate(zip(values, given, strict=True)):
                if value is not ASK and value != real:
                    said = real if isinstance(real, InvalidValue) else quoted(real)
                    return (
                        f"{option} of the row with key {keys[row]} is {said}; its source says"
                        f" {quoted(value)}"
                    )
        return ""


def _constant(option: str, formula: Formula) -> Constant:
    """Return the Constant for a tag whose value is the same for every object.

    Raises StaysMethod for a value that may be refused: each row has that problem, and a constant
    tells it once.
    """
    (value,) = formula.values((), 1)
    if value is ASK:
        raise StaysMethod("raises for each object")
    try:
        if option == "lastmod" and value is not None:
            raise StaysMethod("returns a date that does not depend on the object")
        if format_value := OPTIONS[option].format_value:
            format_value(value)
    except InvalidValue as refusal:
        raise StaysMethod(f"returns what is refused: {refusal}") from refusal
    return Constant(value)


def _unusual_rows(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows of some in which a method is most likely to give an unexpected value."""
    found: list[tuple[Any, ...]] = []
    for column in zip(*rows, strict=True):
        known = [place for place, value in enumerate(column) if value is not None]
        found += [rows[place] for place in range(len(rows)) if column[place] is None][:1]
        if known:
            known.sort(key=lambda place: str(column[place]))
            found += [rows[known[0]], rows[known[-1]]]
            found += [rows[place] for place in known if not str(column[place]).isascii()][:1]
    found += random.sample(rows, min(RANDOM_ROWS, len(rows)))
    return list({row[0]: row for row in found}.values())
