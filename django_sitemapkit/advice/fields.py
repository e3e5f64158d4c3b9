"""Which fields the methods of a section touch, and which are read for nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Field, Model, QuerySet

from django_sitemapkit.advice.asking import batches
from django_sitemapkit.advice.results import Finding
from django_sitemapkit.sections import Section
from django_sitemapkit.sections.chunks import INFRASTRUCTURE

HEAVY = 100
"""Bytes of a row that are worth an ``only``: a field it forgets costs a query for every row."""

Methods = Mapping[str, Callable[[Any], Any]]


@dataclass(slots=True)
class Look:
    """What was seen of the fields of some rows; names as ``only`` has them."""

    touched: set[str] = field(default_factory=set)
    """Those that a method asked for."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes in each one that the section reads, in all rows together."""
    alone: set[str] = field(default_factory=set)
    """Relations that are followed by a query for each row."""
    raised: list[str] = field(default_factory=list)
    """What methods raised."""
    rows: int = 0
    """Rows that were looked at."""


def only_finding(section: Section, methods: Methods, keys: Sequence[Any]) -> Finding | None:
    """Return what is read for nothing, or what is not read and should be; None for neither."""
    queryset = section.keyset.queryset
    followed = _followed(queryset)
    look = Look()
    with section.site.active():
        for batch in batches(keys):
            rows = queryset.filter(**{f"{section.key}__in": list(batch)})
            _touch(look, _bare(rows, section.key, followed), methods, list(followed))
            as_read = rows if section.only is None else rows.only(section.key, *section.only)
            _measure(look, as_read, list(followed))
    if look.rows == 0 or len(look.raised) == look.rows * len(methods):
        return None
    needed = sorted(look.touched | set(followed))
    if section.only is None:
        return _without_only(section, look, methods, needed)
    return _with_only(section, look, methods, needed)


def _without_only(
    section: Section, look: Look, methods: Methods, needed: list[str]
) -> Finding | None:
    known = {section.keyset.field.name, *needed}
    unread = {name: size for name, size in look.sizes.items() if name not in known}
    if sum(unread.values()) < HEAVY * look.rows:
        return None
    heavy = sorted(unread, key=lambda name: (-unread[name], name))
    shown = ", ".join(f"{name} ({unread[name] // look.rows:,})" for name in heavy[:5])
    more = f" and {len(heavy) - 5} more" if len(heavy) > 5 else ""
    return Finding(
        about="only",
        message=(
            f"{_list(methods)} touched {_list(needed)} in the {look.rows:,} rows looked at. Read"
            f" for nothing, with bytes in a row: {shown}{more}."
        ),
        declare=_line(needed),
        notes=_notes(look),
    )


def _with_only(section: Section, look: Look, methods: Methods, needed: list[str]) -> Finding | None:
    model = section.keyset.queryset.model
    declared = {_canonical(model, name) for name in section.only or ()}
    key = {section.keyset.field.name, model._meta.pk.name}
    idle, missing = sorted(declared - {*needed} - key), sorted({*needed} - declared)
    if not idle and not missing:
        return None
    told = []
    if idle:
        told.append(f"{_list(idle)} was never touched in the {look.rows:,} rows looked at.")
    if missing:
        told.append(f"{_list(methods)} touched {_list(missing)}, at the price of a query a row.")
    return Finding(about="only", message=" ".join(told), declare=_line(needed), notes=_notes(look))


def _line(names: Sequence[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in names)
    return f"only = [{listed}]"


def _list(names: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(names) or "nothing but the key"


def _notes(look: Look) -> tuple[str, ...]:
    notes = []
    if look.alone:
        names = ", ".join(sorted(look.alone))
        notes.append(f"Followed by a query for each row: {names}; load it with select_related().")
    if look.raised:
        notes.append(f"{len(look.raised):,} calls raised, such as {look.raised[0]}.")
    return tuple(notes)


def _followed(queryset: QuerySet[Any]) -> dict[str, type[Model]]:
    """Return the relations to one object that are loaded along, with their models."""
    asked = queryset.query.select_related
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
    """Return the rows with as few fields loaded as can be, so that each touch shows."""
    rows = rows.select_related(None)
    if followed:
        rows = rows.select_related(*followed)
    keys = [f"{path}__{model._meta.pk.name}" for path, model in followed.items()]
    return rows.only(key, *followed, *keys)


def _touch(look: Look, rows: QuerySet[Any], methods: Methods, followed: Sequence[str]) -> None:
    """Call the methods on each row, and see which fields they have loaded."""
    for row in rows:
        look.rows += 1
        known = {*row._state.fields_cache, *followed}
        for name, method in methods.items():
            try:
                method(row)
            except INFRASTRUCTURE:
                raise
            except Exception as error:  # noqa: BLE001  a project's method may raise anything
                look.raised.append(f"row {row.pk!r}: {name}: {type(error).__name__}: {error}")
        look.alone |= {
            name for name in row._state.fields_cache if name not in known and _is_to_one(row, name)
        }
        for prefix, loaded in _loaded(row, followed):
            look.touched |= {f"{prefix}{field.name}" for field in loaded if not field.primary_key}


def _is_to_one(row: Model, name: str) -> bool:
    try:
        return bool(row._meta.get_field(name).concrete)
    except FieldDoesNotExist:
        return False


def _measure(look: Look, rows: QuerySet[Any], followed: Sequence[str]) -> None:
    """Add up the bytes of what the section reads."""
    for row in rows:
        for prefix, loaded in _loaded(row, followed):
            for column in loaded:
                name = f"{prefix}{column.name}"
                look.sizes[name] = look.sizes.get(name, 0) + _size(_value(row, prefix, column))


def _value(row: Model, prefix: str, column: "Field[Any, Any]") -> Any:
    """Return what a row, or one that it refers to, has loaded."""
    found: Any = row
    for name in prefix.split("__")[:-1]:
        found = found._state.fields_cache[name]
    return found.__dict__[column.attname]


def _loaded(row: Model, followed: Sequence[str]) -> Iterator[tuple[str, list["Field[Any, Any]"]]]:
    """Yield the fields that are loaded of a row, and of those it was loaded with."""
    for path in ("", *followed):
        found: Any = row
        for name in path.split("__") if path else ():
            found = found._state.fields_cache.get(name) if found is not None else None
        if found is not None:
            deferred = found.get_deferred_fields()
            fields = [f for f in found._meta.concrete_fields if f.attname not in deferred]
            yield (f"{path}__" if path else "", fields)


def _size(value: Any) -> int:
    """Return about how many bytes a value takes on its way from the database."""
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
