"""The objects that overrides name: found by a label and the text of a key."""

from collections.abc import Iterable, Set
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db.models import Model

from django_sitemapkit.sections.objects import identity_model


def named_model(label: str) -> type[Model] | None:
    """Return the model that names objects by ``label``, or None where no model does."""
    try:
        model = apps.get_model(label)
    except (LookupError, ValueError):
        return None
    return model if identity_model(model)._meta.label_lower == label else None


def named_objects(model: type[Model], texts: Iterable[str]) -> dict[str, Any]:
    """Return the objects with these keys, by the texts; where there is none, nothing.

    A key may be spelt otherwise than the database spells it: "007", a UUID without hyphens.
    """
    keys: dict[str, Any] = {}
    for text in texts:
        try:
            keys[text] = model._meta.pk.to_python(text)
        except (ValidationError, OverflowError):
            continue
    rows = _rows(model, set(keys.values()))
    return {text: rows[key] for text, key in keys.items() if key in rows}


def _rows(model: type[Model], keys: Set[Any]) -> dict[Any, Any]:
    try:
        return {row.pk: row for row in model._base_manager.filter(pk__in=keys)}
    except (ValueError, OverflowError):  # One of them no database takes.
        each = (_rows(model, {key}) for key in keys) if len(keys) > 1 else ()
        return {key: row for rows in each for key, row in rows.items()}


def named_object(label: str, text: str) -> Any:
    """Return the object of that label and key, or None."""
    model = named_model(label)
    return named_objects(model, [text]).get(text) if model else None
