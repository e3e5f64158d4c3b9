"""Translated fields: where the tables of a project keep what a row is called in each language.

Found by what a model looks like, so that neither django-modeltranslation nor django-parler has to
be there.
"""

from dataclasses import dataclass

from django.core.exceptions import FieldDoesNotExist, FieldError
from django.db.models import Model
from django.db.models.constants import LOOKUP_SEP


@dataclass(frozen=True, slots=True)
class Related:
    """A value that other rows hold, one for each language."""

    value: str
    """The path to it."""
    language: str
    """The path to the code of its language."""


class Translated:
    """A translated field, as an argument of a Route: ``Route("city", slug=Translated("slug"))``.

    In each language it is what the row says in that language, and a row that says nothing in it,
    or the empty text, has no version. ``Translated("slug")`` reads the columns ``slug_en`` and
    ``slug_fr`` where the model has them, as django-modeltranslation adds them, or the translations
    of django-parler. ``relation`` names any other relation to rows that hold one translation each,
    and ``language`` their column with the code. A path over relations to one object may lead to
    the field: ``Translated("country__slug")``.
    """

    def __init__(
        self, path: str, *, relation: str | None = None, language: str = "language_code"
    ) -> None:
        self.path = path
        self.relation = relation
        self.language = language

    def __repr__(self) -> str:
        relation = "" if self.relation is None else f", relation={self.relation!r}"
        return f"Translated({self.path!r}{relation})"

    def column(self, model: type[Model], code: str) -> str | Related:
        """Return where the value in one language is: a field path, or rows beside the row.

        Raises FieldError where the model has no translation of the field.
        """
        before, _, name = self.path.rpartition(LOOKUP_SEP)
        target = _target(model, before)
        if self.relation is not None:
            return self._related(before, self.relation, name)
        own = f"{name}_{code.replace('-', '_')}"
        # django-modeltranslation's name for Indonesian: foreign keys have columns that end in _id.
        for column in (f"{name}_ind", own) if code == "id" else (own,):
            if _has_field(target, column):
                return _joined(before, column)
        for translations in getattr(target, "_parler_meta", None) or ():
            if name in translations.get_translated_fields():
                return self._related(before, translations.rel_name, name)
        raise FieldError(
            f"{target.__name__} has neither a field {own!r} nor translations of {name!r};"
            " name the relation that holds them."
        )

    def _related(self, before: str, relation: str, name: str) -> Related:
        rows = _joined(before, relation)
        return Related(_joined(rows, name), _joined(rows, self.language))


def _target(model: type[Model], path: str) -> type[Model]:
    """Return the model at the end of a path over relations."""
    for name in path.split(LOOKUP_SEP) if path else ():
        found = model._meta.get_field(name).related_model
        if not isinstance(found, type):
            raise FieldError(f"{path!r}: {name!r} is no relation of {model.__name__}.")
        model = found
    return model


def _has_field(model: type[Model], name: str) -> bool:
    try:
        return bool(model._meta.get_field(name).concrete)
    except FieldDoesNotExist:
        return False


def _joined(before: str, name: str) -> str:
    return f"{before}{LOOKUP_SEP}{name}" if before else name
