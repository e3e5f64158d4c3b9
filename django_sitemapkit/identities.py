"""How overrides identify an object: by a model label and the text of its primary key."""

from collections.abc import Iterable, Set
from typing import Any
from uuid import UUID

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db.models import Model


def identity_model(model: type[Model]) -> type[Model]:
    """Return the model by whose label overrides identify the objects of ``model``.

    This is the concrete model of a proxy, and the parent of a multi-table child: the same object,
    whichever of these models a section lists or an editor opens.
    """
    model = model._meta.concrete_model or model
    while (link := model._meta.pk.remote_field) is not None and link.parent_link:
        model = link.model
    return model


def label_of(model: type[Model]) -> str:
    """Return the label that identifies objects of ``model`` in overrides: ``shop.product``."""
    return identity_model(model)._meta.label_lower


def identity_of(obj: Model) -> tuple[str, str]:
    """Return an object's identity: the label of its model, and the text of its primary key.

    The key is written as the database returns it. A form may have set an equal one with another
    text: a datetime in another time zone, 1.5 for 1.50.
    """
    key = obj.pk
    if type(key) not in {int, str, UUID}:
        rows = type(obj)._base_manager.using(obj._state.db).filter(pk=key)
        stored = rows.values_list("pk", flat=True).first()
        key = key if stored is None else stored
    return label_of(type(obj)), str(key)


def verbose_name_of(label: str) -> str:
    """Return the verbose name of the model with a label; the label if there is no such model."""
    try:
        return str(apps.get_model(label)._meta.verbose_name)
    except (LookupError, ValueError):
        return label


def model_by_label(label: str) -> type[Model] | None:
    """Return the model with a label; None if there is none, or another identifies its objects."""
    try:
        model = apps.get_model(label)
    except (LookupError, ValueError):
        return None
    return model if label_of(model) == label else None


def objects_by_key(model: type[Model], texts: Iterable[str]) -> dict[str, Any]:
    """Return the objects of a model that have one of the keys ``texts``, by the text given.

    A text may differ from the database's: "007", or a UUID without hyphens.
    """
    keys: dict[str, Any] = {}
    for text in texts:
        try:
            keys[text] = model._meta.pk.to_python(text)
        except (ValidationError, OverflowError):
            continue
    rows = _rows_by_key(model, set(keys.values()))
    return {text: rows[key] for text, key in keys.items() if key in rows}


def _rows_by_key(model: type[Model], keys: Set[Any]) -> dict[Any, Any]:
    """Return those rows that have one of these keys, by key; ignores what no key can be."""
    try:
        return {row.pk: row for row in model._base_manager.filter(pk__in=keys)}
    except (ValueError, OverflowError):  # The database rejects one of the keys.
        each = (_rows_by_key(model, {key}) for key in keys) if len(keys) > 1 else ()
        return {key: row for rows in each for key, row in rows.items()}


def object_by_key(label: str, text: str) -> Any:
    """Return the object that a model's label and the text of a key identify, or None."""
    model = model_by_label(label)
    return objects_by_key(model, [text]).get(text) if model else None
