"""The manager of our own tables."""

from typing import Any, TypeVar

from django.db import models, router

Row = TypeVar("Row", bound=models.Model)


class PrimaryManager(models.Manager[Row]):
    """Reads where it is written to: a replica may not have yet what was written a moment before."""

    def get_queryset(self) -> "models.QuerySet[Row, Any]":
        """Return the rows of the database that is written to."""
        return super().get_queryset().using(self._db or router.db_for_write(self.model))
