"""Translated fields, as arguments of a Route."""


class Translated:
    """A translated field, as an argument of a Route.

    In each language it is what the row says in that language, and a row that says nothing in it,
    or the empty text, has no version. ``Translated("slug")`` reads the columns ``slug_en`` and
    ``slug_fr`` where the model has them, as django-modeltranslation adds them, or the translations
    of django-parler. ``relation`` names any other relation to rows that hold one translation each,
    and ``language`` their column with the code. A path over relations to one object may lead to
    the field: ``Translated("country__slug")``.

    ::

        location = Route("city", slug=Translated("slug"))
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
