"""Sections whose URLs are rows of the database."""

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet

from django_sitemapkit.sections.base import BaseSection


class Section(BaseSection):
    """A section over a queryset, read by key: memory stays constant, whatever the number of rows.

    Only the columns that the options name are read. As soon as one option is a method, or
    ``location`` is left to ``get_absolute_url()``, the objects themselves are read: name the fields
    they need in ``only``.

    ::

        @register
        class Products(Section):
            queryset = Product.objects.filter(public=True)
            location = Route("product", shop="shop__slug", slug="slug")
            lastmod = "updated_at"
            changefreq = "weekly"
    """

    #: The rows. The queryset must not be sliced or combined; its order does not matter.
    queryset: QuerySet[Any] | None = None

    #: A ``Route``, an expression, or a method that gets the object: a path from the root of the
    #: host, or an absolute URL. Default: the object's ``get_absolute_url()``.
    location: Any = None

    #: The field that the pages are cut by: unique, not null, local to the model.
    key: str = "pk"

    #: Where objects have to be read: the fields that the methods need.
    only: Sequence[str] | None = None

    def get_queryset(self) -> QuerySet[Any]:
        """Return the rows for ``self.site``; by default ``queryset``."""
        if self.queryset is None:
            raise ImproperlyConfigured(
                f"Section {self.get_name()!r}: set queryset, or override get_queryset()."
            )
        if not hasattr(self.queryset, "all"):
            return self.queryset  # A check says that it is not a queryset.
        return self.queryset.all()
