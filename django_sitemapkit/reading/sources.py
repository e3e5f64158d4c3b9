"""Where the values of an option come from: a constant, a column, a method, or what it computes.

The table of options says which of them each may be, what it needs, and its check. Whatever reads or
checks an option, or tells whether it changed, looks there. What an option means is in the comment
above its default, in ``sections``. Those that say which rows a section has, and where it is, are
not in the table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import F
from django.urls import NoReverseMatch

from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.reading.method_sources import MustBeCalled
from django_sitemapkit.reading.routes import CompiledRoute, compile_route
from django_sitemapkit.sections import Route

TAGS = ("lastmod", "changefreq", "priority")
"""The optional tags of an entry, in the order the protocol asks for."""

DAY = "day"
"""The precision of a lastmod that is written as a date."""

PREFIXES = {"images": "image", "videos": "video", "news": "news"}
"""The options for Google's extensions, with the prefix of each one's namespace."""

EXTENSIONS = (*PREFIXES, "elements")
"""The options for what an entry has besides its tags, in the order they are written."""

MUST_CALL = object()
"""Takes the place of a value that a row's columns do not tell: the method must be called."""

Compute = Callable[..., Any]
"""Takes a row's columns."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is the same for all rows."""

    value: Any


@dataclass(frozen=True, slots=True)
class Column:
    """A field path or an expression that the database fills for each row."""

    expression: Any


@dataclass(frozen=True, slots=True)
class Method:
    """A method that takes the object, or the item, and returns the value."""

    function: Callable[[Any], Any]


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
    date_column: str = ""
    """Where it is nothing but one date of the row: the name of its field."""
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
            raise MustBeCalled(
                f"calls reverse(): {error}", change="correct the name or the arguments of the URL"
            ) from error

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


Source = Constant | Column | Method | Formula

UNSET = Constant(None)
"""The source of an option that is not set."""


def source_of(value: Any, *, text_is_column: bool = False) -> Source:
    """Return the source of a declared value: Constant, Column, Method, or UNSET for None.

    With ``text_is_column``, text is a field path; otherwise it is a constant.
    """
    if value is None:
        return UNSET
    if hasattr(value, "resolve_expression"):
        return Column(value)
    if text_is_column and isinstance(value, str):
        return Column(F(value))
    if callable(value):
        return Method(value)
    return Constant(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What an option accepts, which option it needs, and the id of its system check."""

    takes: tuple[type, ...] = (Constant, Column, Method)
    """What its values may come from; a column only in a ``Section``."""
    one_of: tuple[Any, ...] = ()
    """The values that it may have; () for any."""
    text_is_column: bool = False
    """Whether text is a field path in a ``Section``."""
    needs: str = ""
    """The option without which it has no effect, or ""."""
    check: str = ""
    """The id of the check that reports another kind, or a value that is not allowed."""
    format_value: Callable[[Any], object] | None = None
    """What raises InvalidValue for a value that the protocol does not allow."""
    hint: str = ""
    """What to write instead; "" for a method."""
    in_fingerprint: bool = False
    """Whether a page is rendered again when the value changes, whatever its rows are.

    Not so for the values of entries: a constant is part of the fingerprint, the digest of a page's
    rows covers columns, and what methods return has to be rendered.
    """


_OF_LANGUAGES = Option(
    takes=(Constant,), needs="i18n", check="sitemapkit.E136", hint="Set a value, or a property."
)

OPTIONS: Mapping[str, Option] = {
    "lastmod": Option(
        text_is_column=True,
        check="sitemapkit.E123",
        format_value=format_lastmod,
        hint="Set a date, or name a date column.",
    ),
    "lastmod_precision": Option(
        takes=(Constant,),
        one_of=("second", DAY),
        check="sitemapkit.E146",
        hint='Set it to "second" or "day".',
        in_fingerprint=True,
    ),
    "changefreq": Option(
        check="sitemapkit.E124",
        format_value=format_changefreq,
        hint="Use always, hourly, daily, weekly, monthly, yearly or never.",
    ),
    "priority": Option(
        check="sitemapkit.E125",
        format_value=format_priority,
        hint="Use a number from 0.0 to 1.0.",
    ),
    "version": Option(in_fingerprint=True),
    "title": Option(takes=(Column, Method), text_is_column=True, check="sitemapkit.E129"),
    **dict.fromkeys(EXTENSIONS, Option(takes=(Method,), check="sitemapkit.E139")),
    "images": Option(takes=(Column, Method), text_is_column=True, check="sitemapkit.E139"),
    "languages": _OF_LANGUAGES,
    "object_languages": Option(
        takes=(Column, Method), text_is_column=True, needs="i18n", check="sitemapkit.E136"
    ),
    "alternates": replace(_OF_LANGUAGES, in_fingerprint=True),
    "x_default": replace(_OF_LANGUAGES, in_fingerprint=True),
    "language_hosts": _OF_LANGUAGES,
    "translations": Option(text_is_column=True),
    "language": Option(text_is_column=True),
}

IN_FINGERPRINT = tuple(name for name, option in OPTIONS.items() if option.in_fingerprint)
"""The options whose values are part of the fingerprint of every page."""

FIELD_PATHS = frozenset(name for name, option in OPTIONS.items() if option.text_is_column)
"""The options in which text is a field path."""
