"""What all lists of the admin have in common: they refuse filters that mean nothing."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db import DatabaseError
from django.http import HttpRequest

from django_sitemapkit.admin.wording import apart

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin


class CheckedListAdmin(Base):
    """A screen whose list is never a server error, whatever its address asks for.

    Django leaves to the database what it cannot judge itself: a NUL, which PostgreSQL has in no
    text, a regular expression, a year.
    """

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return the list; raises IncorrectLookupParameters for what the database refuses."""
        try:
            with apart():
                return super().get_changelist_instance(request)
        except (DatabaseError, ValueError, OverflowError) as error:
            if not request.GET:
                raise
            raise IncorrectLookupParameters(str(error)) from error
