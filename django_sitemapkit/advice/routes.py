"""Finds a Route that gives the same URLs as a method, by resolving them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from keyword import iskeyword
from typing import Any
from urllib.parse import unquote, urlsplit

from django.db.models import Value
from django.urls import NoReverseMatch, Resolver404, resolve

from django_sitemapkit.advice.columns import Fit, Wanted, fitting
from django_sitemapkit.advice.evaluate import Answer, answers, first_difference, refusal_notes
from django_sitemapkit.advice.results import AdviceFinding
from django_sitemapkit.advice.sampling import Sample
from django_sitemapkit.reading import QuerySetReader
from django_sitemapkit.reading.routes import Candidate, compiled
from django_sitemapkit.sections import Route
from django_sitemapkit.sites import SitemapSite


class NoRoute(Exception):
    """No Route can replace a method, for this reason."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The view of a row's URL."""

    viewname: str
    """Its name, with namespaces."""
    arguments: Mapping[Any, Any]
    """What its pattern captured from the URL, by name or position."""


def route_finding(section: QuerySetReader, sample: Sample) -> tuple[AdviceFinding, Route | None]:
    """Return the finding about the locations, and a Route that gives them if there is one."""
    given = answers(section, "location", sample.keys)
    notes = refusal_notes(given)
    try:
        route, more_notes = _find(section, given, len(sample.first))
        _check_route(section, route, given)
    except NoRoute as reason:
        return AdviceFinding(
            about="location", message=f"no Route is advised: {reason}", notes=notes
        ), None
    message = f"a Route gives {sample.said}"
    line = f"location = {written(route)}"
    return AdviceFinding(
        about="location", message=message, declare=line, notes=notes + more_notes
    ), route


def _find(
    section: QuerySetReader, given: dict[Any, Answer], first: int
) -> tuple[Route, tuple[str, ...]]:
    """Return a Route of columns that fit, and notes about it."""
    with section.site.active():
        resolved = {
            key: _resolved(section.site, key, location)
            for key, location in given.items()
            if isinstance(location, str)
        }
    if not resolved:
        raise NoRoute("no examined row has a URL.")
    viewname, names = _only_view(resolved)
    wanted = _wanted(section, viewname, names, resolved)
    fits = fitting(section, wanted, sum(key in resolved for key in list(given)[:first]))
    columns, notes = [], []
    for want, fit in zip(wanted, fits, strict=True):
        column, note = _column(want, fit)
        columns.append(column)
        notes += note
    return _route(viewname, names, columns), tuple(notes)


def _resolved(site: SitemapSite, key: Any, location: str) -> Resolved:
    parts = urlsplit(location[len(site.origin) :])
    path = unquote(parts.path)
    where = f"row {key!r} is at {location}, "
    if parts.query:
        raise NoRoute(f"{where}and a Route has no query.")
    try:
        match = resolve(f"/{path[len(site.prefix) :]}", site.urlconf)
    except Resolver404:
        raise NoRoute(f"{where}which is not a view of the URLconf.") from None
    if not match.url_name or not isinstance(match.url_name, str):
        raise NoRoute(f"{where}whose pattern has no name.")
    # kwargs also has what patterns add, which is not in the URL. What an include() captures is
    # only there.
    added, captured = match.extra_kwargs or {}, match.captured_kwargs or {}  # type: ignore[attr-defined]
    named = {name: value for name, value in match.kwargs.items() if name not in added} | captured
    arguments = dict(enumerate(match.args)) or named
    return Resolved(match.view_name, arguments)


def _only_view(resolved: Mapping[Any, Resolved]) -> tuple[str, tuple[str | int, ...]]:
    """Return the view name and the arguments that all rows share."""
    kinds = Counter((row.viewname, tuple(row.arguments)) for row in resolved.values())
    if len(kinds) == 1:
        return next(iter(kinds))
    example: dict[Any, Any] = {}
    for key, row in resolved.items():
        example.setdefault((row.viewname, tuple(row.arguments)), key)
    views = ", ".join(
        f"{view!r} with ({', '.join(map(str, names))}) in {count:,} rows such as"
        f" {example[view, names]!r}"
        for (view, names), count in kinds.most_common(5)
    )
    raise NoRoute(f"the URLs lead to several views or arguments: {views}.")


def _wanted(
    section: QuerySetReader,
    viewname: str,
    names: Sequence[str | int],
    resolved: Mapping[Any, Resolved],
) -> list[Wanted]:
    try:
        with section.site.active():
            route = compiled(_route(viewname, names, ["pk"] * len(names)))
    except NoReverseMatch as error:
        raise NoRoute(f"the name of their view cannot be reversed: {error}") from error
    wanted = []
    for place, name in enumerate(names):
        values = {key: row.arguments[name] for key, row in resolved.items()}
        same = partial(_is_same, route.candidates, place)
        wanted.append(Wanted(name=str(name), values=values, origin="the URL has", same=same))
    return wanted


def _is_same(candidates: Sequence[Candidate], place: int, argument: Any, value: Any) -> bool:
    """Return whether two values are the same in a URL, by any pattern of its name."""
    return value is not None and any(
        text is not None and text == _text_in_url(candidate, place, value)
        for candidate in candidates
        for text in [_text_in_url(candidate, place, argument)]
    )


def _text_in_url(candidate: Candidate, place: int, value: Any) -> str | None:
    converter = candidate.converters.get(candidate.names[place])
    try:
        return str(value if converter is None else converter.to_url(value))
    except Exception:  # noqa: BLE001  a project's converter may raise anything on foreign values
        return None


def _column(want: Wanted, fit: Fit) -> tuple[Any, list[str]]:
    """Return what fills an argument, and notes about it. Raises NoRoute where nothing does."""
    argument = f"Argument {want.name!r}"
    values = list(want.values.values())
    constant = values.count(values[0]) == len(values)
    if not fit.columns:
        if constant:
            note = (
                f"{argument} is {values[0]!r} in all these rows, which does not prove that it"
                " always is."
            )
            return Value(values[0] if isinstance(values[0], int) else str(values[0])), [note]
        if not fit.nearest:
            raise NoRoute(f"argument {want.name!r} is not a column.")
        raise NoRoute(
            f"no column up to two relations away gives argument {want.name!r} for all rows."
            f" {fit.nearest}"
        )
    best, *others = fit.columns
    notes = []
    if others:
        notes.append(
            f"{argument}: {best} is used; the same in all these rows: {_name_list(others)}."
        )
    if constant and len(values) > 1:
        notes.append(f"{argument} is {values[0]!r} in all these rows, so its column is uncertain.")
    return best, notes


def _name_list(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"{', '.join(names[:8])}{more}"


def _route(viewname: str, names: Sequence[str | int], columns: Sequence[Any]) -> Route:
    if names and isinstance(names[0], int):
        return Route(viewname, *columns)
    return Route(viewname, **dict(zip(map(str, names), columns, strict=True)))


def _check_route(section: QuerySetReader, route: Route, given: dict[Any, Answer]) -> None:
    """Raise NoRoute where a Route gives another URL for a row than the method."""
    try:
        found = answers(section, "location", list(given), location=route)
    except NoReverseMatch as error:
        raise NoRoute(str(error)) from error
    if difference := first_difference(given, found):
        raise NoRoute(f"{route!r} {difference}")


def written(route: Route) -> str:
    """Return the source code of a Route."""
    arguments = [_source_code(argument) for argument in route.args]
    arguments += [
        f"**{{{_quoted(name)}: {_source_code(value)}}}"
        if iskeyword(name)
        else f"{name}={_source_code(value)}"
        for name, value in route.kwargs.items()
    ]
    return f"Route({', '.join([_quoted(route.viewname), *arguments])})"


def _source_code(value: Any) -> str:
    if isinstance(value, Value):
        constant = value.value
        return f"Value({_quoted(constant) if isinstance(constant, str) else repr(constant)})"
    return _quoted(value)


def _quoted(text: str) -> str:
    """Return text in double quotes, as the documentation writes it."""
    return json.dumps(text, ensure_ascii=False)
