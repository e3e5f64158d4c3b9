"""Django's log of what users did in the admin: how actions are recorded, and the page "Activity".

Django's ``LogEntry`` has one text for all readers. Of actions that are more than a change of
fields, it stores one of these sentences in English, so that entries can be found by it; the page
translates it. What a user has added is on the next line.
"""

import datetime as dt
import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.admin import AdminSite
from django.contrib.admin.models import ACTION_FLAG_CHOICES, ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import Count, Max, Min, Model, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.encoding import iri_to_uri
from django.utils.text import capfirst
from django.utils.translation import get_language, gettext, gettext_noop, ngettext, override
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.base import (
    BaseAdmin,
    csv_response,
    known_sites,
    link_to,
    may_view,
    number_text,
    paged_context,
    screen,
    without_origin,
)
from django_sitemapkit.models import (
    Build,
    BuildRequest,
    ExclusionRule,
    ExtraUrl,
    Place,
    Revision,
    SectionSettings,
    UrlOverride,
)
from django_sitemapkit.overrides.transfer import CSV_ROWS_PER_QUERY, csv_lines
from django_sitemapkit.registry import EXTRA_URLS

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

ACTIONS_PER_PAGE = 100
"""Entries on a page."""

MAX_LISTED_ENTRIES = 10_000
"""Entries that the pages list, so that a long log is not counted; the CSV file has all."""

OPERATED: tuple[type[Model], ...] = (Build, BuildRequest)
"""What is logged for users who may view builds, and so may see this page."""

EDITED: tuple[type[Model], ...] = (UrlOverride, ExtraUrl, ExclusionRule, SectionSettings)
"""What is logged for users who may view just that."""

COLUMNS = ("time", "user", "site", "kind", "name", "action", "note")
"""The columns of the CSV file."""

_DAY: dict[str, Any] = {
    "required": False,
    "widget": forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    # Within these years, a day can be stored in any time zone.
    "validators": [
        MinValueValidator(dt.date(2000, 1, 1)),
        MaxValueValidator(dt.date(2999, 12, 31)),
    ],
}

_FLAGS = dict(ACTION_FLAG_CHOICES)
_REQUESTED = Q(change_message__in=[*REQUEST_STARTED.values()])

ACTIONS: dict[str, tuple[Any, Q]] = {
    "excluded": (_("URL excluded"), Q(change_message=EXCLUDED)),
    "requested": (_("Build, check or cleanup requested"), _REQUESTED),
    "published": (_("Build published"), Q(change_message=PUBLISHED)),
    "rolled-back": (_("Rolled back"), Q(change_message=ROLLED_BACK)),
    "cancelled": (_("Build cancelled"), Q(change_message=BUILD_CANCELLED)),
    "discarded": (_("Build discarded"), Q(change_message=BUILD_DISCARDED)),
    "paused": (_("Publishing paused"), Q(change_message__startswith=f"{PAUSED}\n")),
    "resumed": (_("Publishing resumed"), Q(change_message=RESUMED)),
    "added": (_FLAGS[ADDITION], Q(action_flag=ADDITION) & ~_REQUESTED),
    "changed": (_FLAGS[CHANGE], Q(action_flag=CHANGE)),
    "deleted": (_FLAGS[DELETION], Q(action_flag=DELETION)),
}
"""By the name that the query string has for it: a kind of action, and which entries are of it."""


# Recording ----------------------------------------------------------------------------------------


def exclusion_message(row: Any, changed: Collection[str]) -> str:
    """Return ``EXCLUDED`` if ``include`` is among the changed fields and is now False, else ""."""
    return EXCLUDED if "include" in changed and row.include is False else ""


def log_rows(
    user: Any,
    rows: Sequence[Model],
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
    model: type[Model],
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


def _change_message(model: type[Model], flag: int, fields: Iterable[str]) -> str:
    """Return Django's own message on a change, as JSON that Django translates when it is shown."""
    if flag == ADDITION:
        return json.dumps([{"added": {}}])
    if flag != CHANGE:
        return ""
    with override(None):
        names = [str(getattr(model._meta.get_field(name), "verbose_name", name)) for name in fields]
    return json.dumps([{"changed": {"fields": names}}])


# The page "Activity" ------------------------------------------------------------------------------


class ActivityFilterForm(forms.Form):
    """The filters of the page "Activity"; an empty field filters nothing."""

    q = forms.CharField(label=_("Name"), required=False, widget=forms.SearchInput)
    user = forms.CharField(label=_("User"), required=False, widget=forms.SearchInput)
    kind = forms.ChoiceField(label=_("Kind"), required=False)
    action = forms.ChoiceField(
        label=_("Action"),
        required=False,
        choices=[("", _("All")), *((name, label) for name, (label, _condition) in ACTIONS.items())],
    )
    since = forms.DateField(label=_("From"), **_DAY)
    until = forms.DateField(label=_("To"), **_DAY)

    def __init__(self, *args: Any, kinds: Sequence[type[Model]], **options: Any) -> None:
        options |= {"auto_id": "sitemapkit-%s", "label_suffix": ""}
        super().__init__(*args, **options)
        self._models = {str(model._meta.model_name): model for model in kinds}
        names = [(name, capfirst(model._meta.verbose_name)) for name, model in self._models.items()]
        kind: Any = self.fields["kind"]
        kind.choices = [("", _("All")), *names]

    def clean_q(self) -> str:
        """Return the search text; of a full URL, only its path and query."""
        return without_origin(self.cleaned_data["q"])

    def filtered_entries(self, entries: QuerySet[LogEntry]) -> QuerySet[LogEntry]:
        """Return the log entries that match all filters; none if a value is invalid."""
        if not self.is_valid():
            return entries.none()
        values = self.cleaned_data
        if text := values["q"]:
            encoded = Q(object_repr__icontains=iri_to_uri(text))
            entries = entries.filter(Q(object_repr__icontains=text) | encoded)
        if values["user"]:
            name = f"user__{get_user_model().USERNAME_FIELD}__icontains"
            entries = entries.filter(**{name: values["user"]})
        if values["kind"]:
            type_of_kind = ContentType.objects.get_for_model(self._models[values["kind"]])
            entries = entries.filter(content_type=type_of_kind)
        if values["action"]:
            entries = entries.filter(ACTIONS[values["action"]][1])
        if values["since"]:
            entries = entries.filter(action_time__gte=_start_of_day(values["since"]))
        if values["until"]:
            entries = entries.filter(
                action_time__lt=_start_of_day(values["until"] + dt.timedelta(days=1))
            )
        return entries


def logged_actions(entries: Sequence[LogEntry]) -> list[dict[str, Any]]:
    """Return a template row for each log entry; it takes one query for each kind of object.

    ``obj`` is the object as it is now; None if it was deleted, or if the entry is about many.
    ``note`` is the object's note, or the reason of a build, as stored now.
    """
    kinds: dict[int | None, type[Model]] = {
        found.pk: model
        for model, found in ContentType.objects.get_for_models(*OPERATED, *EDITED).items()
    }
    objects: dict[tuple[int | None, str | None], Any] = {}
    for type_id, model in kinds.items():
        keys = [
            int(entry.object_id)
            for entry in entries
            if entry.content_type_id == type_id and entry.object_id and entry.object_id.isdecimal()
        ]
        found = model._default_manager.in_bulk(keys)
        objects |= {(type_id, str(pk)): obj for pk, obj in found.items()}
    logged = [(entry, objects.get((entry.content_type_id, entry.object_id))) for entry in entries]
    return [
        {
            "name": entry.object_repr,
            "time": entry.action_time,
            "minute": entry.action_time.replace(second=0, microsecond=0),
            "user": entry.user,
            "kind": str(capfirst(kinds[entry.content_type_id]._meta.verbose_name)),
            "obj": obj,
            "site": str(getattr(obj, "site", "")),
            "text": _action_text(entry),
            "note": str(getattr(obj, "note", "") or getattr(obj, "reason_text", "")),
        }
        for entry, obj in logged
    ]


def _action_text(entry: LogEntry) -> str:
    """Return what was done, translated."""
    message = entry.get_change_message()
    sentence, _newline, why = message.partition("\n")
    if sentence in HISTORY_SENTENCES:
        return f"{gettext(sentence)} {why}".rstrip()
    return message or str(_FLAGS.get(entry.action_flag, ""))


def edit_counts_context(
    request: HttpRequest, build: int, held: Build | None = None
) -> dict[str, Any]:
    """Return what editors changed since a build read the rows, as context of ``edits.html``.

    ``counts`` are the changed rows of each kind that the user may view. ``waits`` says whether
    anything has changed. ``exact`` says whether ``counts`` name every change; they do not if rows
    were deleted or changed more than once, or if some files are newer than others, as after
    "Exclude now", and may contain a counted change. Extra URLs are counted since their own files.

    The other values are revisions of the site: ``since`` and ``until`` of the build's oldest and
    newest files, ``latest`` of the last change, ``held_since`` of the oldest file of the build
    ``held``. It takes one query, or three if files differ in age.
    """
    visible = {str(model._meta.model_name): model for model in EDITED if may_view(request, model)}
    # Without OuterRef: SQLite would compute it again for each row.
    pages = Place.objects.filter(build=build).pages().order_by().values("build")
    since = Coalesce(Subquery(pages.values(first=Min("revision"))), 0)
    until = Coalesce(Subquery(pages.values(last=Max("revision"))), 0)
    extra = Subquery(pages.filter(section=EXTRA_URLS).values(first=Min("revision")))
    held_pages = Place.objects.filter(build=held).pages().order_by().values("build")
    counts: dict[str, Any] = {
        "latest": Subquery(
            Revision._default_manager.filter(site=OuterRef("site")).values("number")
        ),
        "held_since": Subquery(held_pages.values(first=Min("revision"))),
    }
    for name, model in visible.items():
        begin = Coalesce(extra, since) if model is ExtraUrl else since
        counts |= {
            name: _changed_rows_count(model, begin, Count("pk")),
            f"{name}_new": _changed_rows_count(model, until, Count("pk")),
            f"{name}_times": _changed_rows_count(model, until, Count("revision", distinct=True)),
        }
    found = (
        Build.objects.annotate(since=since, until=until, **counts)
        .values("site", "since", "until", *counts)
        .get(pk=build)
    )
    # With more of them the number is a bound.
    if found["since"] < found["until"] and found.get("urloverride") in range(1, MAX_LISTED_ENTRIES):
        found["urloverride"] -= _count_applied_overrides(build, found["site"], found["since"])
    times = sum(found[f"{name}_times"] or 0 for name in visible)
    named = {name: found[name] for name in visible if found[name]}
    return {
        **found,
        "waits": bool(named) or (found["latest"] or 0) > found["until"],
        # Each change has a revision of its own, and a row has that of its last one.
        "exact": (found["latest"] or 0) <= found["until"] + times
        and all(count == found[f"{name}_new"] for name, count in named.items()),
        "counts": [(visible[name]._meta, number_text(count)) for name, count in named.items()],
    }


def _changed_rows_count(model: type[Model], revision: Any, aggregate: Count) -> Subquery:
    """Return a subquery that counts the rows of a build's site that changed after a revision."""
    rows = model._default_manager.filter(site=OuterRef("site"), revision__gt=revision)
    return Subquery(rows.order_by().values("site").values(count=aggregate))


def _count_applied_overrides(build: int, site: str, since: int) -> int:
    """Return how many overrides that changed after a revision are applied in newer files.

    One newer file that knows the override is enough: most URLs are in one file only.
    """
    files = Place.objects.filter(build=build, revision__gt=since).exclude(override_hashes=b"")
    followed: dict[int, int] = {}
    for revision, known in files.order_by("revision").values_list("revision", "override_hashes"):
        followed |= dict.fromkeys(array("q", bytes(known)), revision)
    rows = UrlOverride.objects.filter(site=site, revision__gt=since).values_list("hash", "revision")
    return sum(followed.get(digest, 0) >= revision for digest, revision in rows)


@screen("activity/", "activity", "view")
def activity_view(model_admin: BaseAdmin, request: HttpRequest) -> HttpResponseBase:
    """Show the log entries that match the filters, newest first; send them as CSV with ``?csv``."""
    kinds = [*OPERATED, *(model for model in EDITED if may_view(request, model))]
    types = list(ContentType.objects.get_for_models(*kinds).values())
    entries = LogEntry.objects.filter(content_type__in=types).select_related("user")
    form = ActivityFilterForm(request.GET, kinds=kinds)
    found = form.filtered_entries(entries.order_by("-pk"))
    if "csv" in request.GET and form.is_valid():
        return csv_response(
            request, "sitemap-activity.csv", csv_lines(COLUMNS, _csv_rows(found, get_language()))
        )
    listed = paged_context(request, found[:MAX_LISTED_ENTRIES], ACTIONS_PER_PAGE)
    count = listed["page"].paginator.count
    text = ngettext("%(count)s change", "%(count)s changes", count) % {"count": number_text(count)}
    return model_admin.render_page(
        request,
        "activity",
        **listed,
        title=gettext("Activity"),
        form=form,
        several=len(known_sites(request)) != 1,
        count=text,
        is_cut=count == MAX_LISTED_ENTRIES,
        groups=list(_action_rows(model_admin.admin_site, listed["page"].object_list)),
    )


def _action_rows(admin_site: AdminSite, entries: Iterable[LogEntry]) -> Iterator[dict[str, Any]]:
    """Yield template rows of logged actions, newest first, with linked names of their objects.

    Entries about several objects are one row if user, minute, kind, site, text and note are equal.
    """
    what_is_equal = itemgetter("minute", "user", "kind", "site", "text", "note")
    for _key, same in groupby(logged_actions(list(entries)), what_is_equal):
        first, *others = same
        names = [_linked_name(admin_site, action) for action in (first, *others)]
        yield {"action": first, "name": names[0], "others": names[1:]}


def _linked_name(admin_site: AdminSite, action: Mapping[str, Any]) -> str:
    """Return the name of an action's object when it was logged, linked to its page if it exists.

    A build request is linked to the page of its build.
    """
    obj = action["obj"]
    if isinstance(obj, BuildRequest):
        obj = Build(pk=obj.build_id) if obj.build_id else None
    return action["name"] if obj is None else link_to(admin_site, obj, action["name"])


def _csv_rows(entries: QuerySet[LogEntry], language: str | None) -> Iterator[tuple[Any, ...]]:
    """Yield the CSV cells of each log entry, translated into a language; it reads in batches."""
    batch = list(entries[:CSV_ROWS_PER_QUERY])
    while batch:
        with override(language):
            rows = [
                (
                    *(action["time"], action["user"].get_username(), action["site"]),
                    *(action["kind"], action["name"], action["text"], action["note"]),
                )
                for action in logged_actions(batch)
            ]
        yield from rows
        batch = list(entries.filter(pk__lt=batch[-1].pk)[:CSV_ROWS_PER_QUERY])


def _start_of_day(day: dt.date) -> dt.datetime:
    """Return the first moment of a day in the current time zone."""
    moment = dt.datetime.combine(day, dt.time.min)
    return timezone.make_aware(moment) if settings.USE_TZ else moment
