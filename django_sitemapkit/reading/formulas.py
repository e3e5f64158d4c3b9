"""Formulas: what methods compute of fields, computed from the columns of many rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Field
from django.urls import NoReverseMatch

from django_sitemapkit.reading.method_sources import MustBeCalled
from django_sitemapkit.reading.routes import CompiledRoute, compile_route
from django_sitemapkit.sections import Route

MUST_CALL = object()
"""Takes the place of a value that a row's columns do not tell: the method must be called."""

Compute = Callable[..., Any]
"""Takes a row's columns."""


@dataclass(frozen=True, slots=True)
class Reverse:
    """A call of ``reverse()`` in a method, and what computes its arguments from columns."""

    route: Route
    """Its name, and the names of its arguments."""
    arguments: tuple[Compute, ...]
    """What computes each argument from the columns."""


@dataclass(frozen=True, slots=True)
class Formula:
    """What a method computes, as a function of columns: its values need no objects."""

    method: Callable[[Any], Any]
    """The method as it is declared; it takes the object."""
    text: str
    """What it computes; changes whenever the method gives other values for the same columns."""
    read: tuple[Any, ...]
    """The field paths and expressions that it reads."""
    route: Route | None = None
    """Where it is nothing but one ``reverse()`` of columns: the Route that gives the same."""
    column: str = ""
    """Where it is nothing but one field of the row: its path."""
    kind: "type[Field[Any, Any]] | None" = None
    """The class of that field."""
    keys: tuple[str, ...] = ()
    """The foreign keys whose rows may be missing: columns that tell why a value is None."""
    reverses: tuple[Reverse, ...] = ()
    """The calls of ``reverse()`` in it."""
    convert: Compute | None = None
    """What converts the values of its expression, or None."""
    _compute: Compute = field(default=str, repr=False)
    source: Any = None
    """The Constant or the Column that gives the same values; None if only the formula does."""

    def compile_routes(self) -> list[CompiledRoute]:
        """Return the compiled routes of its ``reverse()`` calls, for the active site and language.

        Raises MustBeCalled if the URLconf has no pattern for one.
        """
        try:
            return [compile_route(one.route) for one in self.reverses]
        except NoReverseMatch as error:
            change = "correct the name or the arguments of the URL"
            raise MustBeCalled(f"calls reverse(): {error}", change=change) from error

    def values(self, columns: Sequence[Sequence[Any]], rows: int) -> list[Any]:
        """Return the method's value for each row, computed from its columns.

        MUST_CALL is the value of a row whose columns do not tell it. ``columns`` are those in
        ``read``. The site and the language must be active.
        """
        known = list(columns)
        for one in self.reverses:
            computed = [_compute_rows(argument, known, rows) for argument in one.arguments]
            arguments = [
                [None if value is MUST_CALL else value for value in values]
                if MUST_CALL in values
                else values
                for values in computed
            ]  # A route has no path for None.
            paths = compile_route(one.route).paths(arguments, rows)
            known.append([path if isinstance(path, str) else None for path in paths])
        values = _compute_rows(self._compute, known, rows)
        # A related object that is missing raises, and so does reverse() without a path.
        are_related = [isinstance(one, F) for one in self.read]
        for column, is_related in zip(known, [*are_related, *[True] * len(known)], strict=False):
            if is_related and None in column:
                values = [
                    MUST_CALL if known_value is None else value
                    for known_value, value in zip(column, values, strict=True)
                ]
        if self.convert is None:
            return values
        return [value if value is MUST_CALL else self.convert(value) for value in values]


def _compute_rows(compute: Compute, columns: Sequence[Sequence[Any]], rows: int) -> list[Any]:
    """Return what a function computes for each row; MUST_CALL for a row for which it raises."""
    try:
        return list(map(compute, *columns)) if columns else [compute()] * rows
    except Exception:  # noqa: BLE001  the method raises the same, and names the row
        every = zip(*columns, strict=True) if columns else [()] * rows
        return [_compute_row(compute, values) for values in every]


def _compute_row(compute: Compute, values: Sequence[Any]) -> Any:
    """Return what a function computes from a row's values; MUST_CALL if it raises."""
    try:
        return compute(*values)
    except Exception:  # noqa: BLE001  the method raises the same, and names the row
        return MUST_CALL
