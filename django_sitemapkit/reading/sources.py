"""Where the values of an option come from: a constant, a column, a method, or what it computes.

The table of options says which of them each may be, what it needs, and its check. Whatever reads or
checks an option, or tells whether it changed, looks there. What an option means is in the comment
above its default, in ``sections``. Those that say which rows a section has, and where it is, are
not in the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import F

from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.reading.formulas import Formula

TAGS = ("lastmod", "changefreq", "priority")
"""The optional tags of an entry, in the order the protocol asks for."""

DAY = "day"
"""The precision of a lastmod that is written as a date."""

PRECISIONS = ("second", DAY)
"""What ``lastmod_precision`` may be."""

PREFIXES = {"images": "image", "videos": "video", "news": "news"}
"""The options for Google's extensions, with the prefix of each one's namespace."""

EXTENSIONS = (*PREFIXES, "elements")
"""The options for what an entry has besides its tags, in the order they are written."""


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


_EXTENSION = Option(takes=(Method,), check="sitemapkit.E139")

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
        one_of=PRECISIONS,
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
    **dict.fromkeys(EXTENSIONS, _EXTENSION),
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
