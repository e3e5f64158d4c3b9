"""Finds which fields the methods of a section use, and which are read without need."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Field, Model, QuerySet

from django_sitemapkit import _django
from django_sitemapkit.advice.evaluate import as_read, key_batches, rows_of
from django_sitemapkit.advice.results import AdviceFinding
from django_sitemapkit.reading import QuerySetReader
from django_sitemapkit.reading.chunks import INFRASTRUCTURE

MIN_UNREAD_BYTES = 100
"""Unused bytes of a row that are worth an ``only``: a missing field costs a query a row."""

Methods = Mapping[str, Callable[[Any], Any]]


@dataclass(slots=True)
class FieldUse:
    """The use of the fields in some rows; names are as in ``only``."""

    touched: set[str] = field(default_factory=set)
    """Those that a method used."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each one that the section reads, in all rows together."""
    alone: set[str] = field(default_factory=set)
    """Relations that cost a query for each row."""
    raised: list[str] = field(default_factory=list)
    """What methods raised."""
    rows: int = 0
    """The number of rows examined."""


def only_finding(
    section: QuerySetReader, methods: Methods, keys: Sequence[Any]
) -> AdviceFinding | None:
    """Return which fields are read without need, or missing; None for neither."""
    followed = _followed(section.keyset.queryset)
    use = FieldUse()
    with section.site.active():
        for batch in key_batches(keys):
            rows = rows_of(section, batch)
            _touch(use, _bare(rows, section.options.key, followed), methods, list(followed))
            _measure(use, as_read(section, rows), list(followed))
    if use.rows == 0 or len(use.raised) == use.rows * len(methods):
        return None
    needed = sorted(use.touched | set(followed))
    if section.options.only is None:
        return _without_only(section, use, methods, needed)
    return _with_only(section, use, methods, needed)


def _without_only(
    section: QuerySetReader, use: FieldUse, methods: Methods, needed: list[str]
) -> AdviceFinding | None:
    known = {section.keyset.field.name, *needed}
    unread = {name: size for name, size in use.sizes.items() if name not in known}
    if sum(unread.values()) < MIN_UNREAD_BYTES * use.rows:
        return None
    heavy = sorted(unread, key=lambda name: (-unread[name], name))
    shown = ", ".join(f"{name} ({unread[name] // use.rows:,})" for name in heavy[:5])
    more = f" and {len(heavy) - 5} more" if len(heavy) > 5 else ""
    return AdviceFinding(
        about="only",
        message=(
            f"{_list(methods)} used {_list(needed)} in {use.rows:,} rows. Read without need, with"
            f" bytes per row: {shown}{more}."
        ),
        declare=_only_line(needed),
        notes=_notes(use),
    )


def _with_only(
    section: QuerySetReader, use: FieldUse, methods: Methods, needed: list[str]
) -> AdviceFinding | None:
    model = section.keyset.queryset.model
    declared = {_canonical(model, name) for name in section.options.only or ()}
    key = {section.keyset.field.name, model._meta.pk.name}
    idle, missing = sorted(declared - {*needed} - key), sorted({*needed} - declared)
    if not idle and not missing:
        return None
    sentences = []
    if idle:
        sentences.append(f"{_list(idle)} was not used in {use.rows:,} rows.")
    if missing:
        sentences.append(
            f"{_list(methods)} used {_list(missing)}, which costs a query for each row."
        )
    return AdviceFinding(
        about="only", message=" ".join(sentences), declare=_only_line(needed), notes=_notes(use)
    )


def _only_line(names: Sequence[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in names)
    return f"only = [{listed}]"


def _list(names: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(names) or "only the key"


def _notes(use: FieldUse) -> tuple[str, ...]:
    notes = []
    if use.alone:
        names = ", ".join(sorted(use.alone))
        notes.append(f"A query for each row: {names}; load it with select_related().")
    if use.raised:
        notes.append(f"{len(use.raised):,} calls raised, such as {use.raised[0]}.")
    return tuple(notes)


def _followed(queryset: QuerySet[Any]) -> dict[str, type[Model]]:
    """Return the relations that select_related() loads, with their models."""
    asked = _django.select_related_of(queryset)
    found: dict[str, type[Model]] = {}

    def walk(prefix: str, model: type[Model], names: Mapping[str, Any]) -> None:
        for name, below in names.items():
            relation = model._meta.get_field(name)
            if relation.concrete and isinstance(relation.related_model, type):
                found[f"{prefix}{name}"] = relation.related_model
                walk(f"{prefix}{name}__", relation.related_model, below)

    walk("", queryset.model, asked if isinstance(asked, dict) else {})
    return found


def _bare(rows: QuerySet[Any], key: str, followed: Mapping[str, type[Model]]) -> QuerySet[Any]:
    """Return the rows with as few fields as possible, so that each use shows."""
    rows = rows.select_related(None)
    if followed:
        rows = rows.select_related(*followed)
    keys = [f"{path}__{model._meta.pk.name}" for path, model in followed.items()]
    return rows.only(key, *followed, *keys)


def _touch(use: FieldUse, rows: QuerySet[Any], methods: Methods, followed: Sequence[str]) -> None:
    """Call the methods on each row, and record which fields they load."""
    for row in rows:
        use.rows += 1
        known = {*_django.loaded_relations(row), *followed}
        for name, method in methods.items():
            try:
                method(row)
            except INFRASTRUCTURE:
                raise
            except Exception as error:  # noqa: BLE001  a project's method may raise anything
                use.raised.append(f"row {row.pk!r}: {name}: {type(error).__name__}: {error}")
        own = {field.name for field in row._meta.concrete_fields}
        use.alone |= own.intersection(_django.loaded_relations(row)) - known
        for prefix, _owner, loaded in _loaded(row, followed):
            use.touched |= {f"{prefix}{field.name}" for field in loaded if not field.primary_key}


def _measure(use: FieldUse, rows: QuerySet[Any], followed: Sequence[str]) -> None:
    """Add up the bytes that the section reads."""
    for row in rows:
        for prefix, owner, loaded in _loaded(row, followed):
            for column in loaded:
                name = f"{prefix}{column.name}"
                size = _size(owner.__dict__[column.attname])
                use.sizes[name] = use.sizes.get(name, 0) + size


def _loaded(
    row: Model, followed: Sequence[str]
) -> Iterator[tuple[str, Model, list["Field[Any, Any]"]]]:
    """Yield a row, and the rows loaded with it, by path and with their loaded fields."""
    for path in ("", *followed):
        found: Any = row
        for name in path.split("__") if path else ():
            found = _django.loaded_relations(found).get(name) if found is not None else None
        if found is not None:
            deferred = found.get_deferred_fields()
            fields = [f for f in found._meta.concrete_fields if f.attname not in deferred]
            yield (f"{path}__" if path else "", found, fields)


def _size(value: Any) -> int:
    """Return roughly how many bytes the database sends for a value."""
    if isinstance(value, bytes | memoryview):
        return len(value)
    return 1 if value is None else len(str(value).encode(errors="replace"))


def _canonical(model: type[Model], name: str) -> str:
    """Return a name of ``only`` as the field's own: "shop" for "shop_id"."""
    prefix, _, last = name.rpartition("__")
    owner: Any = model
    for part in filter(None, prefix.split("__")):
        owner = owner._meta.get_field(part).related_model
    field = owner._meta.pk if last == "pk" else owner._meta.get_field(last)
    return f"{prefix}__{field.name}" if prefix else str(field.name)
