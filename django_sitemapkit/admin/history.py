"""The history of editor settings, in the admin's log entries."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.db.models import Model
from django.utils.translation import override

__all__ = ["added", "changed_fields", "log_added", "log_changed", "log_deleted"]

Message = Sequence[dict[str, Any]]

added: Message = [{"added": {}}]
"""The change message of a new row."""


def changed_fields(model: type[Model], names: Iterable[str]) -> Message:
    """Return the change message for some fields, untranslated."""
    with override(None):
        fields = [str(getattr(model._meta.get_field(name), "verbose_name", name)) for name in names]
    return [{"changed": {"fields": fields}}]


def log_added(user: Any, rows: Sequence[Model]) -> None:
    """Record that the user with this primary key added rows."""
    _log(user, rows, ADDITION, added)


def log_changed(user: Any, rows: Sequence[Model], message: Message) -> None:
    """Record that the user with this primary key changed rows."""
    _log(user, rows, CHANGE, message)


def log_deleted(user: Any, rows: Sequence[Model]) -> None:
    """Record that the user with this primary key deletes rows."""
    _log(user, rows, DELETION, "")


def _log(user: Any, rows: Sequence[Model], flag: int, message: Any) -> None:
    if rows:
        LogEntry.objects.log_actions(user, rows, flag, message)
