"""Find the object of an override, by model label and the text of a primary key."""

from collections.abc import Iterable, Set
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db.models import Model

from django_sitemapkit.identities import identity_model


def named_model(label: str) -> type[Model] | None:
    """Return the model that identifies objects by ``label``, or None."""
    try:
        model = apps.get_model(label)
    except (LookupError, ValueError):
        return None
    return model if identity_model(model)._meta.label_lower == label else None


def named_objects(model: type[Model], texts: Iterable[str]) -> dict[str, Any]:
    """Return the existing objects with these keys, by the given texts.

    A text may differ from the database's: "007", or a UUID without hyphens.
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
    except (ValueError, OverflowError):  # The database rejects one of the keys.
        each = (_rows(model, {key}) for key in keys) if len(keys) > 1 else ()
        return {key: row for rows in each for key, row in rows.items()}


def named_object(label: str, text: str) -> Any:
    """Return the object with that label and key, or None."""
    model = named_model(label)
    return named_objects(model, [text]).get(text) if model else None
