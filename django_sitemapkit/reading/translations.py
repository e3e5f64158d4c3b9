"""Where the tables of a project keep translated fields.

Found by what a model looks like, so that neither django-modeltranslation nor django-parler has to
be installed.
"""

from dataclasses import dataclass

from django.core.exceptions import FieldDoesNotExist, FieldError
from django.db.models import Model

from django_sitemapkit._django import LOOKUP_SEP
from django_sitemapkit.sections import Translated


@dataclass(frozen=True, slots=True)
class RelatedTranslation:
    """A translated value that related rows hold, one row for each language."""

    value: str
    """The path to it."""
    language: str
    """The path to the code of its language."""


def translation_column(
    field: Translated, model: type[Model], code: str
) -> str | RelatedTranslation:
    """Return the field path of a field's value in one language, or the related rows that hold it.

    Raises FieldError if the model has no translation of the field.
    """
    before, _, name = field.path.rpartition(LOOKUP_SEP)
    target = _model_at_path(model, before)
    if field.relation is not None:
        return _related_translation(before, field.relation, name, field.language)
    own = f"{name}_{code.replace('-', '_')}"
    # django-modeltranslation's name for Indonesian: foreign keys have columns that end in _id.
    for column in (f"{name}_ind", own) if code == "id" else (own,):
        if _has_field(target, column):
            return _join_path(before, column)
    for translations in getattr(target, "_parler_meta", None) or ():
        if name in translations.get_translated_fields():
            return _related_translation(before, translations.rel_name, name, field.language)
    raise FieldError(
        f"{target.__name__} has neither a field {own!r} nor translations of {name!r};"
        " name the relation that holds them."
    )


def _related_translation(
    before: str, relation: str, name: str, language: str
) -> RelatedTranslation:
    """Return where the rows behind a relation hold a value and its language."""
    rows = _join_path(before, relation)
    return RelatedTranslation(_join_path(rows, name), _join_path(rows, language))


def _model_at_path(model: type[Model], path: str) -> type[Model]:
    """Return the model at the end of a path over relations."""
    for name in path.split(LOOKUP_SEP) if path else ():
        found = model._meta.get_field(name).related_model
        if not isinstance(found, type):
            raise FieldError(f"{path!r}: {name!r} is not a relation of {model.__name__}.")
        model = found
    return model


def _has_field(model: type[Model], name: str) -> bool:
    try:
        return bool(model._meta.get_field(name).concrete)
    except FieldDoesNotExist:
        return False


def _join_path(before: str, name: str) -> str:
    return f"{before}{LOOKUP_SEP}{name}" if before else name
