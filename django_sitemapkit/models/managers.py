"""The manager of our own tables."""

from typing import Any, TypeVar

from django.db import models, router

_Row = TypeVar("_Row", bound=models.Model)


class PrimaryManager(models.Manager[_Row]):
    """Reads from the database for writes: a replica may lag behind."""

    def get_queryset(self) -> "models.QuerySet[_Row, Any]":
        """Return the rows of the database for writes."""
        return super().get_queryset().using(self._db or router.db_for_write(self.model))
