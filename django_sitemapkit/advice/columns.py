"""Which columns give the same as something that is asked of each row."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import BinaryField, Field, JSONField, Model, SlugField

from django_sitemapkit.advice.asking import batches
from django_sitemapkit.sections import Section

HOPS = 2
"""Relations that a column may be away from the row."""

RELATIONS = 60
"""Relations that are followed at most; each is a join, and SQLite and MariaDB stop at 61 or 64."""

_UNFIT = (BinaryField, JSONField)
"""Fields whose values stand in no URL and no tag."""


@dataclass(frozen=True, slots=True)
class Path:
    """A column of the row, or of one that it refers to."""

    name: str
    """What is written in a declaration: ``shop__slug``."""
    field: "Field[Any, Any]"
    """The field at its end."""

    @property
    def relation(self) -> str:
        """The relation it is behind; "" for a column of the row itself."""
        return self.name.rpartition("__")[0]

    def rank(self, wanted: str) -> tuple[int, bool, bool, bool, bool]:
        """Return what the better of two columns that both fit is smaller by.

        Local before related; then the primary key, what is unique, a slug, the name asked for.
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
    """Something that a column is looked for."""

    name: str
    """The argument or the option."""
    values: dict[Any, Any]
    """What it is for each row, by the row's key."""
    same: Callable[[Any, Any], bool]
    """Whether a column's value, the second one, gives what the first one is."""
    takes: Callable[["Field[Any, Any]"], bool] = lambda _: True
    """Whether a field comes into question at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The columns that fit, or the one that came nearest."""

    columns: tuple[str, ...]
    """Those that give the same for all rows, the best one first."""
    nearest: str = ""
    """Where none does: the one that gives the same for the most rows; "" for no rows."""
    agreed: int = 0
    """For how many rows that one gives the same."""
    row: Any = None
    """The key of a row for which it does not."""
    wanted: Any = None
    """What was asked for in that row."""
    got: Any = None
    """What the column has there."""


def paths_of(model: type[Model]) -> list[Path]:
    """Return the columns of a model and of what it refers to, the nearest first."""
    found: list[Path] = []
    # Of each model the prefix of its columns, and the one that the row itself has already.
    level: list[tuple[str, Any, Any]] = [("", model, None)]
    relations = 0
    for _ in range(HOPS + 1):
        behind = []
        for prefix, owner, known in level:
            fields = [field for field in _columns(owner) if field is not known]
            found += [Path(prefix + _name(field), field) for field in fields]
            behind += [
                (f"{prefix}{field.name}__", field.related_model, field.target_field)
                for field in owner._meta.concrete_fields
                if (field.many_to_one or field.one_to_one) and not field.remote_field.parent_link
            ]
        level = behind[: RELATIONS - relations]
        relations += len(level)
    return found


def _columns(model: type[Model]) -> Iterator["Field[Any, Any]"]:
    """Yield a model's columns, but not the twins of its key in its parents."""
    meta = model._meta
    twins = {parent._meta.pk for parent in meta.get_parent_list()}
    for field in meta.concrete_fields:
        if field not in twins and not isinstance(field, _UNFIT):
            yield field


def _name(field: "Field[Any, Any]") -> str:
    return "pk" if field.primary_key else field.attname


def read(
    section: Section, paths: Iterable[Path], keys: Sequence[Any]
) -> Iterator[tuple[Path, dict[Any, Any]]]:
    """Yield each column with its values by row: a query for each relation and batch."""
    for _, group in groupby(paths, lambda path: path.relation):
        columns = list(group)
        values: list[dict[Any, Any]] = [{} for _ in columns]
        for batch in batches(keys):
            rows = section.keyset.queryset.filter(**{f"{section.key}__in": list(batch)})
            names = [path.name for path in columns]
            with section.site.active():
                for key, *row in rows.order_by().values_list(section.key, *names):
                    for column, value in zip(values, row, strict=True):
                        column[key] = value
        yield from zip(columns, values, strict=True)


def fitting(section: Section, wanted: Sequence[Wanted], first: int) -> list[Fit]:
    """Return for each thing that is wanted the columns that give it.

    All columns are read of the first rows, and of the others those that still fit.
    """
    paths = paths_of(section.keyset.queryset.model)
    found = [_match(section, want, paths, 0, first) for want in wanted]
    by_name = {path.name: path for path in paths}
    for place, (want, fit) in enumerate(zip(wanted, found, strict=True)):
        if fit.columns and len(want.values) > first:
            left = [by_name[name] for name in fit.columns]
            found[place] = _match(section, want, left, first, len(want.values))
    return found


def _match(section: Section, want: Wanted, paths: Sequence[Path], start: int, stop: int) -> Fit:
    keys = list(want.values)[start:stop]
    fits: list[Path] = []
    nearest = Fit(columns=(), agreed=-1)
    for path, values in read(section, [path for path in paths if want.takes(path.field)], keys):
        wrong = [key for key in keys if not want.same(want.values[key], values.get(key))]
        if not wrong:
            fits.append(path)
        elif len(keys) - len(wrong) > nearest.agreed:
            row, agreed = wrong[0], len(keys) - len(wrong)
            nearest = Fit(
                columns=(),
                nearest=path.name,
                agreed=agreed,
                row=row,
                wanted=want.values[row],
                got=values.get(row),
            )
    if not fits:
        return nearest
    fits.sort(key=lambda path: path.rank(want.name))
    return Fit(columns=tuple(path.name for path in fits))
