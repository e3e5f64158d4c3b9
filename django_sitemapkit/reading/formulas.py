"""Formulas: what methods compute of fields, computed from the columns of many rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Field
from django.urls import NoReverseMatch

from django_sitemapkit.reading.method_sources import StaysMethod
from django_sitemapkit.reading.routes import CompiledRoute, compile_route
from django_sitemapkit.sections import Route

ASK = object()
"""Stands for the value of a row of which only the method knows it."""

Compute = Callable[..., Any]
"""Takes a row's columns."""


@dataclass(frozen=True, slots=True)
class Reverse:
    """A ``reverse()`` in a method."""

    route: Route
    """Its name, and the names of its arguments."""
    arguments: tuple[Compute, ...]
    """What computes each argument from the columns."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A method that is computed from columns."""

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
    """The ``reverse()`` that it calls."""
    finish: Compute | None = None
    """What is made of the values of its expression, if anything."""
    _compute: Compute = field(default=str, repr=False)
    source: Any = None
    """The Constant or the Column that gives the same values; None if only the formula does."""

    def require_routes(self) -> list[CompiledRoute]:
        """Return the compiled routes of its ``reverse()`` calls, for the active site and language.

        Raises StaysMethod if the URLconf has no pattern for one.
        """
        try:
            return [compile_route(one.route) for one in self.reverses]
        except NoReverseMatch as error:
            change = "correct the name or the arguments of the URL"
            raise StaysMethod(f"calls reverse(): {error}", change=change) from error

    def values(self, columns: Sequence[Sequence[Any]], rows: int) -> list[Any]:
        """Return the method's values for rows from their columns; ASK where only it can tell.

        ``columns`` are those in ``read``. The site, and the language, must be active.
        """
        known = list(columns)
        for one in self.reverses:
            computed = [_compute_rows(argument, known, rows) for argument in one.arguments]
            arguments = [
                [None if value is ASK else value for value in values] if ASK in values else values
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
                    ASK if known_value is None else value
                    for known_value, value in zip(column, values, strict=True)
                ]
        if self.finish is None:
            return values
        return [value if value is ASK else self.finish(value) for value in values]


def _compute_rows(compute: Compute, columns: Sequence[Sequence[Any]], rows: int) -> list[Any]:
    """Return a function's results for each row's columns; ASK for a row for which it raises."""
    try:
        return list(map(compute, *columns)) if columns else [compute()] * rows
    except Exception:  # noqa: BLE001  the method raises the same, and names the row
        every = zip(*columns, strict=True) if columns else [()] * rows
        return [_compute_row(compute, values) for values in every]


def _compute_row(compute: Compute, values: Sequence[Any]) -> Any:
    try:
        return compute(*values)
    except Exception:  # noqa: BLE001  the method raises the same, and names the row
        return ASK
