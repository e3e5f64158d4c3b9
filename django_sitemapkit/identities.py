"""How overrides identify an object: by a model label and the text of its primary key."""

from uuid import UUID

from django.apps import apps
from django.db.models import Model


def identity_model(model: type[Model]) -> type[Model]:
    """Return the model that identifies the objects of ``model``.

    This is the concrete model of a proxy, and the parent of a multi-table child: the same object,
    whichever of these models a section lists or an editor opens.
    """
    model = model._meta.concrete_model or model
    while (link := model._meta.pk.remote_field) is not None and link.parent_link:
        model = link.model
    return model


def label_of(model: type[Model]) -> str:
    """Return the label that identifies the objects of ``model``, such as ``shop.product``."""
    return identity_model(model)._meta.label_lower


def identity_of(obj: Model) -> tuple[str, str]:
    """Return the label of an object's model, and the text of its primary key.

    The key is written as the database returns it. A form may have set an equal one with another
    text: a datetime in another time zone, 1.5 for 1.50.
    """
    key = obj.pk
    if type(key) not in {int, str, UUID}:
        rows = type(obj)._base_manager.using(obj._state.db).filter(pk=key)
        stored = rows.values_list("pk", flat=True).first()
        key = key if stored is None else stored
    return label_of(type(obj)), str(key)


def model_name(label: str) -> str:
    """Return the verbose name of the model with that label, or the label if there is none."""
    try:
        return str(apps.get_model(label)._meta.verbose_name)
    except (LookupError, ValueError):
        return label
