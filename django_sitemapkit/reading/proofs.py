"""Which sections give no URL twice, and none that another gives: proven by declarations alone.

A **shape** is how URLs look: their path by segment, each a text or a hole for one value without a
slash. Two URLs of different shapes differ if the shapes have another number of segments, or another
text in one of them. Two rows differ in a URL of one shape if no hole can take what belongs to
another, and the database holds no two rows with the same values.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import Any

from django.db.models import (
    CharField,
    F,
    Field,
    ForeignKey,
    Model,
    OneToOneField,
    SlugField,
    TextField,
    UniqueConstraint,
    UUIDField,
)
from django.urls import NoReverseMatch

from django_sitemapkit import _django
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading import QuerySetReader, SectionReader, StaticReader
from django_sitemapkit.reading.digests import INTEGERS
from django_sitemapkit.reading.keysets import field_named
from django_sitemapkit.reading.routes import FastPattern
from django_sitemapkit.sections import StaticSection

UrlShape = tuple[str | None, ...]
"""The segments of a path; None is a hole."""

MAX_STATIC_ITEMS = 1000
"""Items of a static section that are compared with what others list."""

_HOLE = "%s"

_FAITHFUL = {
    *INTEGERS,
    *(CharField, SlugField, TextField, UUIDField),
}
"""Fields of which two values have the same text only where the database holds them to be equal.

A class derived from one of them may make anything of its values.
"""


def sections_with_proven_urls(sections: Collection[SectionReader]) -> frozenset[str]:
    """Return the names of the sections whose URLs are proven to be listed only once."""
    shapes = {section.get_name(): _shapes_of(section) for section in sections}
    if None in shapes.values():  # It may list anything.
        return frozenset()
    meeting: set[str] = set()
    for one, other in combinations(shapes, 2):
        if _may_have_equal_urls(shapes[one] or (), shapes[other] or ()):
            meeting |= {one, other}
    return frozenset(
        section.get_name()
        for section in sections
        if section.get_name() not in meeting and _has_unique_urls(section)
    )


def _may_have_equal_urls(shapes: Sequence[UrlShape], other_shapes: Sequence[UrlShape]) -> bool:
    """Return whether a URL of one of the shapes may also be of one of the other shapes."""
    return any(
        len(one) == len(other)
        and all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))
        for one in shapes
        for other in other_shapes
    )


def _shapes_of(section: SectionReader) -> Sequence[UrlShape] | None:
    """Return the URL shapes of a section, as path segments with holes; None if not known."""
    if isinstance(section, StaticReader):
        paths = _static_paths(section)
        return None if paths is None else [tuple(path.split("/")) for path in paths]
    patterns = _slashless_patterns(section)
    if patterns is None:
        return None
    return [
        tuple(None if _HOLE in text else text.replace("%%", "%") for text in segments)
        for segments in (pattern.template.split("/") for pattern in patterns)
    ]


def _has_unique_urls(section: SectionReader) -> bool:
    """Return whether no two rows or items of a section, of known shapes, have the same URL."""
    if isinstance(section, StaticReader):
        paths = _static_paths(section) or []
        return len(set(paths)) == len(paths)
    patterns = _slashless_patterns(section) or ()
    if len(patterns) != 1 or not isinstance(section, QuerySetReader) or not section.locator:
        return False
    (pattern,) = patterns
    if any(text.count(_HOLE) > 1 for text in pattern.template.split("/")):
        return False  # "a-b" and "c" make the same as "a" and "b-c".
    rows = section.keyset.queryset
    shape = _django.QueryShape(rows)
    if shape.is_sliced or shape.has_extra_columns or shape.changes_values:
        return False
    (route,) = section.locator.language_routes
    columns = [route.arguments[place] for place in pattern.order]
    paths = [
        name
        for column in columns
        if isinstance(column, int)
        and (name := _field_path_of(section.locator.columns[column]))
        and name not in shape.annotations
    ]
    return _are_unique(rows.model, paths)


def _slashless_patterns(section: SectionReader) -> Sequence[FastPattern] | None:
    """Return the URL patterns of a section's Route.

    None without a Route or with ``i18n``, or if a value may contain a slash.
    """
    if not isinstance(section, QuerySetReader) or section.languages is not None:
        return None
    locator = section.locator
    if locator is None or locator.related or len(locator.language_routes) != 1:
        return None
    found = [candidate.fast for candidate in locator.language_routes[0].route.candidates]
    slashless = [
        pattern
        for pattern in found
        if pattern and _django.PathConverter not in map(type, pattern.converters)
    ]
    return slashless if len(slashless) == len(found) else None


def _static_paths(section: StaticReader) -> list[str] | None:
    """Return the paths of a static section whose items are fixed texts; None for any other."""
    options = section.options
    is_plain = type(options).location is StaticSection.location and section.languages is None
    items = options.items
    if (
        not is_plain
        or not isinstance(items, list | tuple)
        or len(items) > MAX_STATIC_ITEMS
        or not all(isinstance(item, str) for item in items)
    ):
        return None
    scope = section.site.scope()
    with section.site.active():
        try:
            locations = [scope.normalise(options.location(item)) for item in items]
        except (InvalidValue, NoReverseMatch):
            return None  # Rendering names it.
    return [location.removeprefix(scope.origin) for location in locations]


def _field_path_of(column: Any) -> str:
    """Return the field path that a column names, or ""."""
    if isinstance(column, str):
        return column
    return str(column.name) if type(column) in {F, _django.LeftJoined} else ""


def _are_unique(model: type[Model], paths: Iterable[str]) -> bool:
    """Return whether no two rows of a model have equal texts at all of these field paths."""
    distinct: set[str] = set()
    behind: dict[str, list[str]] = {}
    for path in paths:
        name, _, rest = path.partition("__")
        field = field_named(model, name)
        if field is None:
            continue
        if rest:
            behind.setdefault(field.name, []).append(rest)
        elif _has_distinct_texts(field):
            distinct.add(field.name)
    for name, rest_of in behind.items():
        field = field_named(model, name)
        related = getattr(field, "related_model", None)
        if type(field) in {ForeignKey, OneToOneField} and related and _are_unique(related, rest_of):
            distinct.add(name)  # Another row behind it is another value of the key.
    return any(unique <= distinct for unique in _unique_sets(model))


def _has_distinct_texts(field: "Field[Any, Any]") -> bool:
    """Return whether different values of a field always have different texts in a URL."""
    while type(field) in {ForeignKey, OneToOneField}:
        field = field.target_field  # type: ignore[attr-defined]
    return type(field) in _FAITHFUL


def _unique_sets(model: type[Model]) -> list[set[str]]:
    """Return the sets of field names that the database requires to be unique together."""
    found: list[set[str]] = []
    concrete = model._meta.concrete_model or model
    if not concrete._meta.managed:  # A view, perhaps, that has a row twice.
        return found
    for kind in (concrete, *_django.concrete_parents(concrete)):
        meta = kind._meta
        if not meta.managed:
            continue
        found += [{field.name} for field in meta.local_concrete_fields if field.unique]
        found += [set(names) for names in meta.unique_together]
        found += [
            set(constraint.fields)
            for constraint in meta.constraints
            if isinstance(constraint, UniqueConstraint) and _is_always_enforced(constraint)
        ]
    return found


def _is_always_enforced(constraint: UniqueConstraint) -> bool:
    """Return whether every database enforces a constraint at once, for all rows.

    Some databases ignore constraints with options such as a condition.
    """
    options = ("expressions", "condition", "deferrable", "include", "opclasses", "nulls_distinct")
    return all(getattr(constraint, name, None) in (None, ()) for name in options)
