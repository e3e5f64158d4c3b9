"""Compiled routes: paths of many rows without a ``reverse()`` for each.

``reverse()`` spends its ten microseconds a URL on finding the patterns of the name, converting,
checking and quoting. All that does not depend on the row is done here once for each URLconf,
language and prefix; what is left for a row is done with Django's own converters, expressions and
quoting. The result always equals ``reverse()``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from string import ascii_letters, digits
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.urls import (
    NoReverseMatch,
    URLResolver,
    get_resolver,
    get_script_prefix,
    get_urlconf,
)
from django.utils.translation import get_language

from django_sitemapkit import _django
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.locations import UNSAFE
from django_sitemapkit.reading.chunks import call_for_each
from django_sitemapkit.sections import Route

_QUOTE_SAFE = _django.RFC3986_SUBDELIMS + "/~:@"
_HOLE = re.compile(r"%\((\w+)\)s")
_WORD = ascii_letters + digits + "_"
_TEXT = _WORD + "-.~!$&'()*+,;=:@"
UNQUOTED = {
    _django.IntConverter: digits.encode(),
    _django.SlugConverter: f"{_WORD}-".encode(),
    _django.StringConverter: _TEXT.encode(),
    _django.PathConverter: f"{_TEXT}/".encode(),
    _django.UUIDConverter: b"",
}
"""Of which characters a value consists that its converter takes and ``quote()`` leaves alone."""


def compile_route(route: Route) -> "CompiledRoute":
    """Return a route compiled for the URLconf, language and prefix active in this thread.

    Raises NoReverseMatch if the URLconf has no pattern of that name with these arguments.
    """
    return _compile(
        *(route.viewname, tuple(route.kwargs), len(route.args), route.suffix),
        *(get_resolver(get_urlconf()), get_language(), get_script_prefix()),
    )


@dataclass(frozen=True, slots=True)
class Candidate:
    """One URL pattern that may give a route's URLs; ``reverse()`` takes the first that fits."""

    names: tuple[str, ...]
    """The pattern's argument names, in the order of the route's columns."""
    template: str
    """The prefix and the pattern with ``%(name)s`` in its holes, decoded."""
    converters: Mapping[str, Any]
    """The converters of the pattern, by argument name."""
    pattern: re.Pattern[str]
    """What a filled template must match."""
    required: Mapping[str, Any]
    """Values the pattern's extra arguments ask of columns that fill no hole."""
    suffix: str = ""
    """What follows the path that ``reverse()`` gives; nothing in it is to be quoted."""
    fast: "FastPattern | None" = None
    """The quick way, where the pattern is known to be nothing but text and converters."""

    def fill(self, values: Sequence[Any]) -> str | None:
        """Return the path of a row's values, or None if they do not fit the pattern.

        It is the body of the loop in ``URLResolver._reverse_with_prefix()``.
        """
        given = dict(zip(self.names, values, strict=True))
        if any(given.get(name, value) != value for name, value in self.required.items()):
            return None
        try:
            texts = {
                name: self.converters[name].to_url(value) if name in self.converters else str(value)
                for name, value in given.items()
            }
        except ValueError:
            return None
        path = self.template % texts
        if not self.pattern.search(path):
            return None
        return _django.escape_leading_slashes(quote(path, safe=_QUOTE_SAFE)) + self.suffix


@dataclass(frozen=True, slots=True)
class FastPattern:
    """A URL pattern of nothing but text and Django's own converters.

    If each value matches its converter, the whole matches the pattern, and quoting the parts
    gives the quoted whole. So whole columns are checked, and plain values not even touched.
    """

    template: str
    """Prefix and pattern, quoted, with ``%s`` in the holes."""
    order: tuple[int, ...]
    """The route's columns that fill the holes, in their order."""
    converters: tuple[Any, ...]
    """The holes' converters."""

    def paths(self, columns: Sequence[Sequence[Any]], rows: int) -> list[str | None]:
        """Return the path of each row; None if a value does not match its converter."""
        filled = [
            _quoted_texts(columns[index], converter)
            for index, converter in zip(self.order, self.converters, strict=True)
        ]
        texts = [part.replace("%%", "%") for part in self.template.split("%s")]
        if any(None in column for column in filled):
            return [
                None if None in values else self.template % values
                for values in zip(*filled, strict=True)
            ]
        parts: list[Iterable[Any]] = [repeat(texts[0], rows)]
        for column, text in zip(filled, texts[1:], strict=True):
            parts += [column, repeat(text)]
        return list(map("".join, zip(*parts, strict=False)))


def _quoted_texts(column: Sequence[Any], converter: Any) -> list[str | None]:
    """Return the quoted texts of a column's values; None for a value the converter refuses."""
    kind = type(converter)
    if kind is _django.UUIDConverter and all(type(value) is UUID for value in column):
        return list(map(str, column))
    values = column if set(map(type, column)) == {str} else list(map(str, column))
    texts: list[str | None] = list(values)
    odd: Iterable[int] = range(len(values))
    joined = "".join(values)
    if _is_plain(joined, UNQUOTED[kind]) and None not in column and "" not in values:
        if joined.isascii():
            return texts
        odd = [row for row, text in enumerate(values) if not text.isascii()]
    takes = re.compile(converter.regex).fullmatch
    for row in odd:
        text = values[row]
        if column[row] is None or not takes(text) or UNSAFE.search(text):
            texts[row] = None
        elif not (text.isascii() and _is_plain(text, UNQUOTED[kind])):
            texts[row] = quote(text, safe=_QUOTE_SAFE)
    return texts


def _is_plain(text: str, plain: bytes) -> bool:
    """Return whether all ASCII characters of a text are among ``plain``."""
    # To delete them is quicker than to match them.
    return not text.encode("ascii", "ignore").translate(None, plain)


@dataclass(frozen=True, slots=True)
class CompiledRoute:
    """The URL patterns of a route, in the order in which ``reverse()`` tries them."""

    viewname: str
    """The URL name, for messages."""
    candidates: tuple[Candidate, ...]
    """At least one."""

    def paths(self, columns: Sequence[Sequence[Any]], rows: int) -> list[Any]:
        """Return the path of each row from its columns; an InvalidValue for a row without one."""
        fast = self.candidates[0].fast
        paths: list[Any] = fast.paths(columns, rows) if fast else [None] * rows
        missing = [row for row, path in enumerate(paths) if path is None] if None in paths else []
        values = ([column[row] for column in columns] for row in missing)
        for row, path in zip(missing, call_for_each(self.path, values, "location"), strict=True):
            paths[row] = path
        return paths

    def path(self, values: Sequence[Any]) -> str:
        """Return what ``reverse()`` returns for one row's values.

        Raises InvalidValue for characters that no URL has, and NoReverseMatch if no pattern takes
        the values or one is None, for which ``reverse()`` would return the address ``/None/``.
        """
        for value in values:
            if unsafe := UNSAFE.search(str(value)):
                raise InvalidValue(
                    "invalid-url", f"Invalid URL: {value!a} contains U+{ord(unsafe[0]):04X}."
                )
        if None not in values:
            for candidate in self.candidates:
                if (path := candidate.fill(values)) is not None:
                    return path
        shown = ", ".join(map(ascii, values))
        raise NoReverseMatch(f"no pattern of {self.viewname!r} matches the values ({shown})")


@lru_cache(maxsize=1024)
def _compile(
    viewname: str,
    names: tuple[str, ...],
    positional: int,
    suffix: str,
    resolver: URLResolver,
    language: str | None,
    prefix: str,
) -> CompiledRoute:
    """Return the CompiledRoute of a URL name and its arguments, from a cache if possible.

    Raises NoReverseMatch if no pattern of the name takes them.
    """
    view, resolver = _django.within_namespaces(viewname, resolver)
    candidates = []
    taken = []
    for template, params, pattern, defaults, converters in _django.reverse_patterns(resolver, view):
        taken.append(_arguments_text(params))
        if positional:
            if len(params) != positional:
                continue
            own = tuple(params)
            required = {}
        else:
            # reverse() also tries a pattern whose own default stands for a hole; it breaks.
            if not set(params) <= set(names) <= {*params, *defaults}:
                continue
            own = names
            required = {k: v for k, v in defaults.items() if k in names and k not in params}
        fast = None if required else _fast_pattern(own, template, pattern, converters, prefix)
        if fast is not None:
            fast = replace(fast, template=fast.template + suffix)
        whole = re.compile(f"^{re.escape(prefix)}{pattern}")
        text = prefix.replace("%", "%%") + template
        candidates.append(Candidate(own, text, converters, whole, required, suffix, fast))
    if not candidates:
        if not taken:
            raise NoReverseMatch(f"The URLconf has no pattern named {viewname!r}.")
        given = f"{positional} positional arguments" if positional else ", ".join(names) or "none"
        raise NoReverseMatch(
            f"The pattern {viewname!r} takes the arguments: {' or: '.join(dict.fromkeys(taken))};"
            f" the Route gives: {given}."
        )
    return CompiledRoute(viewname, tuple(candidates))


def _arguments_text(params: Sequence[str]) -> str:
    """Return the arguments of a pattern as words for an error message."""
    if params and all(name.startswith("_") for name in params):
        return f"{len(params)} positional arguments"
    return ", ".join(params) or "none"


def _fast_pattern(
    names: tuple[str, ...], template: str, pattern: str, converters: Mapping[str, Any], prefix: str
) -> FastPattern | None:
    """Return a URL pattern as a FastPattern; None if it has more than text and Django's converters.

    The pattern is built again from the texts of ``template`` and the converters' expressions: if
    the result is ``pattern``, nothing else decides what matches.
    """
    holes = _HOLE.findall(template)
    texts = _HOLE.split(template)[::2]
    own = [converters.get(name) for name in holes]
    if any(type(converter) not in UNQUOTED for converter in own):
        return None
    if any("%" in text for text in texts):  # reverse() formats with it, and so never writes it
        return None
    expected = re.escape(texts[0])
    for name, converter, text in zip(holes, own, texts[1:], strict=True):
        expected += f"(?P<{name}>{converter.regex}){re.escape(text)}"  # type: ignore[union-attr]
    head = prefix + texts[0]
    if pattern != expected + r"\Z" or _may_name_a_host(head, own):
        return None
    quoted = [quote(text, safe=_QUOTE_SAFE).replace("%", "%%") for text in (head, *texts[1:])]
    return FastPattern("%s".join(quoted), tuple(map(names.index, holes)), tuple(own))


def _may_name_a_host(head: str, converters: Sequence[Any]) -> bool:
    """Return whether a path could begin with two slashes, which ``reverse()`` escapes."""
    return head.startswith("//") or (
        head == "/" and bool(converters) and type(converters[0]) is _django.PathConverter
    )
