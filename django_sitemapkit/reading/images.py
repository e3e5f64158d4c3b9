"""Images from a column: of the rows themselves, or of related rows."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from django.core.exceptions import FieldError
from django.core.files.storage import FileSystemStorage
from django.db.models import FileField, QuerySet

from django_sitemapkit import _django
from django_sitemapkit._django import LOOKUP_SEP
from django_sitemapkit.reading.chunks import INFRASTRUCTURE, invalid_value_of

RelatedReader = Callable[[Sequence[Any], Sequence[str], Sequence[str]], list[tuple[Any, ...]]]
"""Reads values behind relations, by keys, paths and order."""


class ImagePath:
    """The column of a section's images: a file field, whose storage knows the URLs, or URLs.

    If the path follows a relation to many rows, a row has all their images, in key order.
    """

    def __init__(self, queryset: QuerySet[Any], expression: Any) -> None:
        self.path: Any = getattr(expression, "name", expression)
        """What to read: a field path, or an expression."""
        self.is_of_many = False
        """Whether a row may have any number of images, each in a row of its own."""
        self._file: FileField | None = None
        if isinstance(self.path, str):
            # It may be an annotation of the queryset, or a mistake that the checks report.
            with suppress(FieldError):
                field, self.is_of_many = _django.field_at_path(queryset, self.path)
                self._file = field if isinstance(field, FileField) else None

    def images(
        self, keys: Sequence[Any], texts: Sequence[Any] | None, read_related: RelatedReader
    ) -> list[list[Any]]:
        """Return a list of image URLs for each row, with the error for one that the storage lacks.

        ``texts`` are the values of the column. Without them, ``read_related`` reads those of
        related rows by ``keys``.
        """
        if texts is not None:
            return [[self._image_url(text)] if text else [] for text in texts]
        found: dict[Any, list[Any]] = {}
        order = LOOKUP_SEP.join([*self.path.split(LOOKUP_SEP)[:-1], "pk"])
        for key, text in read_related(keys, (self.path,), (order,)):
            if text:
                found.setdefault(key, []).append(self._image_url(text))
        return [found.get(key, []) for key in keys]

    def url_prefix(self) -> str:
        """Return the part of image URLs before the file's name; "" if it is not known.

        It is known only for Django's own storage of local files: for a name of plain segments,
        ``url()`` joins the two.
        """
        storage = None if self._file is None or self.is_of_many else self._file.storage
        if storage.__class__ is not FileSystemStorage:  # The default one is of a class of proxies.
            return ""
        url = self._image_url("x")
        return url.removesuffix("x") if isinstance(url, str) and url.endswith("/x") else ""

    def storage_url(self) -> str:
        """Return a sample URL of the storage, without a query; "" if the storage has none.

        It changes if the storage starts to serve its files at other URLs.
        """
        with suppress(Exception):  # Some know only the files that they have.
            return str(self._file and self._file.storage.url("x")).partition("?")[0]
        return ""

    def _image_url(self, text: Any) -> Any:
        """Return the URL of a value: made by the storage, which may raise, or the value itself."""
        if self._file is None:
            return text
        try:
            return self._file.storage.url(text)
        except INFRASTRUCTURE:
            raise
        except Exception as error:  # noqa: BLE001  a project's storage may raise anything
            return invalid_value_of(error, "images")
