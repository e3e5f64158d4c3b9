"""Images that stand in a column: of the rows themselves, or of rows beside them."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.core.exceptions import FieldError
from django.db.models import FileField
from django.db.models.constants import LOOKUP_SEP

from django_sitemapkit.sections.chunks import INFRASTRUCTURE, refusal_of

if TYPE_CHECKING:
    from django_sitemapkit.sections.querysets import Section


class ImagePath:
    """A path to images: a file field, whose storage knows the URLs, or a column of URLs.

    Behind a relation to many rows, all their images are the row's, in the order of their keys.
    """

    def __init__(self, section: "Section", expression: Any) -> None:
        self.section = section
        self.path: Any = getattr(expression, "name", expression)
        """What to read: a field path, or an expression."""
        self.is_of_many = False
        """Whether a row may have any number of images, each in a row of its own."""
        self._order = ""
        self._file: FileField | None = None
        if isinstance(self.path, str):
            self._look_up(self.path)

    def _look_up(self, path: str) -> None:
        rows = self.section.keyset.queryset
        try:
            steps, field, *_ = rows.query.names_to_path(path.split(LOOKUP_SEP), rows.model._meta)
        except FieldError:
            return  # An annotation of the queryset, or a mistake that the checks tell.
        self.is_of_many = any(step.m2m for step in steps)
        self._order = LOOKUP_SEP.join([*path.split(LOOKUP_SEP)[:-1], "pk"])
        self._file = field if isinstance(field, FileField) else None

    def images(self, keys: Sequence[Any], texts: Sequence[Any] | None) -> list[list[Any]]:
        """Return the URLs of each row's images.

        ``texts`` are those that were read with the rows; None where they stand behind a relation.
        What a storage raises stands in the place of its URL.
        """
        if texts is not None:
            return [[self._url(text)] if text else [] for text in texts]
        found: dict[Any, list[Any]] = {}
        for key, text in self.section.related(keys, (self.path,), (self._order,)):
            if text:
                found.setdefault(key, []).append(self._url(text))
        return [found.get(key, []) for key in keys]

    def base(self) -> str:
        """Return text that changes when the storage gives its files other URLs."""
        with suppress(Exception):  # Some know only the files that they have.
            return str(self._file and self._file.storage.url("x")).partition("?")[0]
        return ""

    def _url(self, text: Any) -> Any:
        if self._file is None:
            return text
        try:
            return self._file.storage.url(text)
        except INFRASTRUCTURE:
            raise
        except Exception as error:  # noqa: BLE001  a project's storage may raise anything
            return refusal_of(error, "images")
