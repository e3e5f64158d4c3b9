"""What names an object, whatever its model and key: a label and the text of its key."""

from django.db.models import Model


def identity_model(model: type[Model]) -> type[Model]:
    """Return the model that names the objects of ``model``.

    That of a proxy is what it is a proxy of, that of a child is the parent that it shares its key
    with: whichever of them a section lists or an editor opens, it is the same object.
    """
    model = model._meta.concrete_model or model
    while (link := model._meta.pk.remote_field) is not None and link.parent_link:
        model = link.model
    return model


def label_of(model: type[Model]) -> str:
    """Return the label that names the objects of ``model``: ``shop.product``."""
    return identity_model(model)._meta.label_lower


def identity_of(obj: Model) -> tuple[str, str]:
    """Return the label of an object's model, and the text of its key."""
    return label_of(type(obj)), str(obj.pk)
