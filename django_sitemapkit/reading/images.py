"""Images from a column: of the rows themselves, or of related rows."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from django.core.exceptions import FieldError
from django.core.files.storage import FileSystemStorage
from django.db.models import FileField, QuerySet

from django_sitemapkit import _django
from django_sitemapkit._django import LOOKUP_SEP
from django_sitemapkit.reading.chunks import INFRASTRUCTURE, refusal_for

RelatedReader = Callable[[Sequence[Any], Sequence[str], Sequence[str]], list[tuple[Any, ...]]]
"""Reads values behind relations, by keys, paths and order."""


class ImagePath:
    """A path to images: a file field, whose storage knows the URLs, or a column of URLs.

    Behind a relation to many rows, all their images are the row's, in the order of their keys.
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
        self, keys: Sequence[Any], texts: Sequence[Any] | None, related: RelatedReader
    ) -> list[list[Any]]:
        """Return the URLs of each row's images; what a storage raises takes the place of its URL.

        ``texts`` are those that were read with the rows; None where they are ``related``.
        """
        if texts is not None:
            return [[self._url(text)] if text else [] for text in texts]
        found: dict[Any, list[Any]] = {}
        order = LOOKUP_SEP.join([*self.path.split(LOOKUP_SEP)[:-1], "pk"])
        for key, text in related(keys, (self.path,), (order,)):
            if text:
                found.setdefault(key, []).append(self._url(text))
        return [found.get(key, []) for key in keys]

    def prefix(self) -> str:
        """Return the part of image URLs before the file's name; "" if it is not known.

        It is known only for Django's own storage of local files: for a name of plain segments,
        ``url()`` joins the two.
        """
        storage = None if self._file is None or self.is_of_many else self._file.storage
        if storage.__class__ is not FileSystemStorage:  # The default one is of a class of proxies.
            return ""
        url = self._url("x")
        return url.removesuffix("x") if isinstance(url, str) and url.endswith("/x") else ""

    def base(self) -> str:
        """Return text that changes when the storage starts to serve its files at other URLs."""
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
            return refusal_for(error, "images")
