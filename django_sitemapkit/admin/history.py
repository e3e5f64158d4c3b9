"""What Django's log, the history of rows, says of actions; and how they are recorded there.

Django's ``LogEntry`` has one text for all readers. Of actions that are more than a change of
fields, it stores one of these sentences in English, so that entries can be found by it; the page
"Activity" translates it. What a user has added is on the next line.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils.translation import gettext_noop, override

from django_sitemapkit.admin.base import number_text

MAX_LOGGED_ROWS = 1_000
"""Rows of an action that are logged one by one."""

EXCLUDED = gettext_noop("Excluded from the sitemap.")
INCLUDED = gettext_noop("Included in the sitemap.")
NO_LONGER_EXCLUDED = gettext_noop("No longer excluded by this override.")
SWITCHED_OFF = gettext_noop("Section switched off.")
PUBLISHED = gettext_noop("Published.")
ROLLED_BACK = gettext_noop("Rolled back to this build.")
PAUSED = gettext_noop("Publishing paused.")
"""Its reason is on the next line."""
RESUMED = gettext_noop("Publishing resumed.")
BUILD_CANCELLED = gettext_noop("Build cancelled.")
BUILD_DISCARDED = gettext_noop("Build discarded.")

REQUEST_STARTED = {
    "changed": gettext_noop("Build of changes requested."),
    "full": gettext_noop("Full build requested."),
    "section": gettext_noop("Build of a section requested."),
    "check": gettext_noop("File check requested."),
    "preview": gettext_noop("Preview of the next build requested."),
    "prune": gettext_noop("Cleanup requested."),
}
"""The sentence for each button of the overview."""

HISTORY_SENTENCES = frozenset(
    {
        EXCLUDED,
        INCLUDED,
        NO_LONGER_EXCLUDED,
        SWITCHED_OFF,
        PUBLISHED,
        ROLLED_BACK,
        PAUSED,
        RESUMED,
        BUILD_CANCELLED,
        BUILD_DISCARDED,
        *REQUEST_STARTED.values(),
    }
)
"""All sentences; any other message is Django's own."""


def exclusion_message(row: Any, changed: Collection[str]) -> str:
    """Return ``EXCLUDED`` if ``include`` is among the changed fields and is now False, else ""."""
    return EXCLUDED if "include" in changed and row.include is False else ""


def log_rows(
    user: Any,
    rows: Sequence[models.Model],
    flag: int,
    fields: Iterable[str] = (),
    message: str = "",
) -> None:
    """Record in Django's admin log that a user added, changed or deletes rows.

    ``user`` is the user's primary key, ``flag`` a constant of ``LogEntry``, ``fields`` the names
    of the changed fields; ``message`` replaces Django's own message. There is an entry for each
    row, or one for all if there are more than ``MAX_LOGGED_ROWS``.
    """
    if len(rows) > MAX_LOGGED_ROWS:
        log_bulk_action(user, type(rows[0]), len(rows), flag, fields, message)
    elif rows:
        LogEntry.objects.log_actions(
            user, rows, flag, message or _change_message(type(rows[0]), flag, fields)
        )


def log_bulk_action(
    user: Any,
    model: type[models.Model],
    count: int,
    flag: int,
    fields: Iterable[str] = (),
    message: str = "",
) -> None:
    """Record in one entry of Django's admin log what a user did to many rows of a model.

    The entry names only their number, and is not in the history of any row. For the arguments,
    see ``log_rows()``.
    """
    LogEntry.objects.create(
        user_id=user,
        content_type=ContentType.objects.get_for_model(model),
        object_repr=f"{number_text(count)} {model._meta.verbose_name_plural}",
        action_flag=flag,
        change_message=message or _change_message(model, flag, fields),
    )


def _change_message(model: type[models.Model], flag: int, fields: Iterable[str]) -> str:
    """Return Django's own message on a change, as JSON that Django translates when it is shown."""
    if flag == ADDITION:
        return json.dumps([{"added": {}}])
    if flag != CHANGE:
        return ""
    with override(None):
        names = [str(getattr(model._meta.get_field(name), "verbose_name", name)) for name in fields]
    return json.dumps([{"changed": {"fields": names}}])
