"""Finds the columns that have the same values as an option or an argument."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import BinaryField, Field, JSONField, Model, SlugField

from django_sitemapkit import _django
from django_sitemapkit.advice.evaluate import key_batches, rows_of
from django_sitemapkit.reading import QuerySetReader

MAX_HOPS = 2
"""Relations between the row and a column, at most."""

MAX_RELATIONS = 60
"""Relations that are followed; each is a join, and SQLite and MariaDB allow only 61 or 64."""

_UNFIT = (BinaryField, JSONField)
"""Fields whose values cannot be in URLs or tags."""


@dataclass(frozen=True, slots=True)
class Path:
    """A column of the row, or of a related row."""

    name: str
    """The field path: ``shop__slug``."""
    field: "Field[Any, Any]"
    """The field at its end."""

    @property
    def relation(self) -> str:
        """The path of its relation; "" for a column of the row itself."""
        return self.name.rpartition("__")[0]

    def rank(self, wanted: str) -> tuple[int, bool, bool, bool, bool]:
        """Return a sort key: of two columns that both fit, the better one is smaller.

        Local before related; then the primary key, unique fields, slugs, the wanted name.
        """
        field = self.field
        return (
            self.name.count("__"),
            not field.primary_key,
            not field.unique,
            not (isinstance(field, SlugField) or field.name == "slug"),
            field.name != wanted,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Values for which a column is wanted."""

    name: str
    """The argument or the option."""
    values: dict[Any, Any]
    """The value of each row, by the row's key."""
    origin: str
    """Where the values come from, for messages: "the URL has"."""
    same: Callable[[Any, Any], bool]
    """Whether the second value, a column's, gives the first one."""
    takes: Callable[["Field[Any, Any]"], bool] = lambda _: True
    """Whether a field is of a suitable type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The columns that fit, or the one that fits best."""

    columns: tuple[str, ...]
    """Those with the wanted values for all rows, the best one first."""
    nearest: str = ""
    """Where none fits: a sentence about the one that fits the most rows; "" without rows."""


def paths_of(model: type[Model]) -> list[Path]:
    """Return the columns of a model and of related models, the nearest first."""
    found: list[Path] = []
    # For each model: the prefix of its columns, and the one that the row already has.
    level: list[tuple[str, Any, Any]] = [("", model, None)]
    relations = 0
    for _ in range(MAX_HOPS + 1):
        behind = []
        for prefix, owner, known in level:
            fields = [field for field in _own_columns(owner) if field is not known]
            found += [
                Path(prefix + ("pk" if field.primary_key else field.attname), field)
                for field in fields
            ]
            behind += [
                (f"{prefix}{field.name}__", field.related_model, field.target_field)
                for field in owner._meta.concrete_fields
                if (field.many_to_one or field.one_to_one) and not field.remote_field.parent_link
            ]
        level = behind[: MAX_RELATIONS - relations]
        relations += len(level)
    return found


def _own_columns(model: type[Model]) -> Iterator["Field[Any, Any]"]:
    """Yield a model's columns, without the copies of its key in its parents."""
    meta = model._meta
    twins = {parent._meta.pk for parent in _django.concrete_parents(model)}
    for field in meta.concrete_fields:
        if field not in twins and not isinstance(field, _UNFIT):
            yield field


def read_columns(
    section: QuerySetReader, paths: Iterable[Path], keys: Sequence[Any]
) -> Iterator[tuple[Path, dict[Any, Any]]]:
    """Yield each column with its values by row, with a query for each relation and batch."""
    for _, group in groupby(paths, lambda path: path.relation):
        columns = list(group)
        values: list[dict[Any, Any]] = [{} for _ in columns]
        for batch in key_batches(keys):
            names = [path.name for path in columns]
            rows = rows_of(section, batch).order_by().values_list(section.options.key, *names)
            with section.site.active():
                for key, *row in rows:
                    for column, value in zip(values, row, strict=True):
                        column[key] = value
        yield from zip(columns, values, strict=True)


def fitting(section: QuerySetReader, wanted: Sequence[Wanted], first: int) -> list[Fit]:
    """Return the columns that fit each wanted thing.

    All columns are read for the first rows; for the others only those that still fit.
    """
    paths = paths_of(section.keyset.queryset.model)
    found = [_fit(section, want, paths, 0, first) for want in wanted]
    by_name = {path.name: path for path in paths}
    for place, (want, fit) in enumerate(zip(wanted, found, strict=True)):
        if fit.columns and len(want.values) > first:
            left = [by_name[name] for name in fit.columns]
            found[place] = _fit(section, want, left, first, len(want.values))
    return found


def _fit(
    section: QuerySetReader, want: Wanted, paths: Sequence[Path], start: int, stop: int
) -> Fit:
    keys = list(want.values)[start:stop]
    fits: list[Path] = []
    nearest, most = "", -1
    for path, values in read_columns(
        section, [path for path in paths if want.takes(path.field)], keys
    ):
        wrong = [key for key in keys if not want.same(want.values[key], values.get(key))]
        if not wrong:
            fits.append(path)
        elif len(keys) - len(wrong) > most:
            most, row = len(keys) - len(wrong), wrong[0]
            nearest = (
                f"The nearest is {path.name}; in row {row!r} {want.origin} {want.values[row]!r},"
                f" and the column {values.get(row)!r}."
            )
    fits.sort(key=lambda path: path.rank(want.name))
    return Fit(columns=tuple(path.name for path in fits), nearest="" if fits else nearest)
