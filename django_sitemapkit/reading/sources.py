"""Where the values of an option come from: a constant, a column, a method, or what it computes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import F

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
    """A method that gets the object, or the item, and returns the value."""

    function: Callable[[Any], Any]


Source = Constant | Column | Method | Formula

UNSET = Constant(None)
"""The source of an option that is not set."""


def source_of(value: Any, *, text_is_column: bool = False) -> Source:
    """Return what ``value`` is as it is declared.

    Text is a constant, but a field path where the option's documentation says so.
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
