"""What all screens share: sites, lists that survive any query string, and texts."""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict
from functools import partial, wraps
from typing import Any, ClassVar, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import quote, unquote
from django.contrib.auth import get_permission_codename
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.core.paginator import Paginator
from django.db import DatabaseError
from django.db.models import Model, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponseBase,
    HttpResponseNotAllowed,
    StreamingHttpResponse,
)
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.builds import Pause
from django_sitemapkit.builds.report.status import STATES, BuildProgress, SiteState
from django_sitemapkit.conf import settings
from django_sitemapkit.inspection import savepoint_if_atomic, try_read
from django_sitemapkit.models import Build, BuildRequest
from django_sitemapkit.sites import SitemapSite, all_sites, site_by_key
from django_sitemapkit.words import words_of

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

MAX_LISTED_SITES = 100
"""Sites that a list of choices shows; it says that there are others, and how to find them."""

BUILDING = ("sitemapkit.view_build", "sitemapkit.run_build")
"""The permissions on which "Publish all waiting changes now" depends."""

EXCLUDING = (
    *("sitemapkit.add_urloverride", "sitemapkit.change_urloverride"),
    "sitemapkit.bulk_urloverride",
)
"""What a user has to have who may take any URL out of the sitemap at once."""

MAX_ID_DIGITS = 18
"""Digits of a number that fits a primary key on every database."""

_SITES = "_sitemapkit_sites"


def known_sites(request: HttpRequest) -> list[SitemapSite]:
    """Return all sites, read once for each request.

    If they cannot be read, add an error message to the page and return an empty list.
    """
    sites: list[SitemapSite] | None = getattr(request, _SITES, None)
    if sites is None:
        try:
            sites = all_sites()
        except ImproperlyConfigured as error:
            messages.error(request, str(error))
            sites = []
        setattr(request, _SITES, sites)
    return sites


def known_site_or_reason(request: HttpRequest, key: str) -> tuple[SitemapSite | None, str]:
    """Return `(site, "")` for the site with a key, or `(None, reason)` if there is none.

    The reason may also be that the sites cannot be read.
    """
    sites, reason = getattr(request, _SITES, None), ""
    if sites is None:
        sites, reason = try_read(all_sites)
    site = site_by_key(sites or (), key)
    if site is None and not reason:
        reason = gettext("Site “%(site)s” does not exist.") % {"site": key}
    return site, reason


class SiteFilter(admin.SimpleListFilter):
    """A list filter by site; its choices are the known sites, so that no query collects them."""

    title: Any = _("site")
    parameter_name = "site"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the first ``MAX_LISTED_SITES`` sites as choices, and the chosen one."""
        keys = [site.key for site in known_sites(request)]
        if len(keys) > MAX_LISTED_SITES:
            values = {"count": number_text(MAX_LISTED_SITES)}
            self.title = gettext("site (only the first %(count)s, search for others)") % values
        keys = keys[:MAX_LISTED_SITES]
        chosen = request.GET.get(self.parameter_name, "")
        return [(key, key) for key in (*keys, *({chosen} - {"", *keys}))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the chosen site; all rows if none is chosen."""
        return queryset.filter(site=self.value()) if self.value() else queryset


def screen(
    route: str,
    name: str,
    *permissions: str,
    methods: Collection[str] = ("GET", "HEAD"),
    needs_site: bool = False,
) -> Callable[[View], View]:
    """Return a decorator that makes a function an admin view at ``route``, below the change list.

    A model admin adds the view by listing it in ``screens``. The view is called with the model
    admin and the request. Its URL is named ``sitemapkit_`` plus ``name``, in which ``{model}``
    stands for the name of the admin's model.

    The user needs all of ``permissions``: one with a dot is the name of a permission; any other,
    such as "view", calls ``has_view_permission()``, as for Django's admin actions. Requests with
    other ``methods`` are answered with 405.

    If the route has an ``object_id``, the view gets that object as ``obj``. If it ``needs_site``,
    it gets the site that the parameter "site" names as ``site``. An unknown one is answered with
    404.

    Example::

        @screen("overview/", "overview", "view")
        def overview_view(model_admin, request): ...
    """

    def decorator(view: View) -> View:
        """Return the view with its checks, and its route and URL name as ``url``."""

        @wraps(view)
        def checked_view(
            model_admin: Any, request: HttpRequest, object_id: str = "", **arguments: Any
        ) -> HttpResponseBase:
            """Check permissions and method, find the object and the site, and call the view."""
            if not all(
                request.user.has_perm(each)
                if "." in each
                else getattr(model_admin, f"has_{each}_permission")(request)
                for each in permissions
            ):
                raise PermissionDenied
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            if object_id:
                arguments["obj"] = model_admin.get_object(request, unquote(object_id))
                if arguments["obj"] is None:
                    raise Http404(gettext("This object does not exist."))
            if needs_site:
                key = request.POST.get("site") or request.GET.get("site", "")
                arguments["site"], reason = known_site_or_reason(request, key)
                if reason:
                    raise Http404(reason)
            return view(model_admin, request, **arguments)

        checked_view.url = route, f"sitemapkit_{name}"  # type: ignore[attr-defined]
        return checked_view  # type: ignore[return-value]

    return decorator


class BaseAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Base class of the package's model admins: their screens, and lists that never fail.

    Django leaves some values of a query string for the database to reject: a NUL, which PostgreSQL
    stores in no text, a regular expression, a year. Here they cause no server error. With one site,
    the list does not show the site.
    """

    screens: ClassVar[Sequence[Any]] = ()
    """Its views besides those of Django: functions decorator with ``screen``."""

    class Media:
        css = {"all": ["sitemapkit/theme.css"]}

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return the change list; raises IncorrectLookupParameters if the database rejects it."""
        try:
            with savepoint_if_atomic():
                return super().get_changelist_instance(request)
        except (DatabaseError, ValueError, OverflowError) as error:
            if not request.GET:
                raise
            raise IncorrectLookupParameters(str(error)) from error

    def get_urls(self) -> list[URLPattern]:
        """Return Django's URLs of a model admin, after those of ``screens``."""
        own = [
            path(
                view.url[0],
                self.admin_site.admin_view(partial(view, self)),
                name=view.url[1].format(model=self.opts.model_name),
            )
            for view in self.screens
        ]
        return [*own, *super().get_urls()]

    def screen_url(self, name: str, *arguments: Any, **query: Any) -> str:
        """Return the URL named ``sitemapkit_`` plus ``name`` in this admin site, with ``query``."""
        url = reverse(
            f"{self.admin_site.name}:sitemapkit_{name}", args=[quote(each) for each in arguments]
        )
        return f"{url}?{urlencode(query)}" if query else url

    def view_url(self, view: str, *arguments: Any) -> str:
        """Return the URL of a view of this model, such as "changelist" or "change"."""
        return self.screen_url(f"{self.opts.model_name}_{view}", *arguments)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns of the list, without the site if there is a single site."""
        return self._without_single_site(request, super().get_list_display(request), "site")

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """Return the filters of the list, without the site if there is a single site."""
        return self._without_single_site(request, super().get_list_filter(request), SiteFilter)

    def get_search_fields(self, request: HttpRequest) -> Any:
        """Return the fields to search, and the site if its filter cannot list all sites."""
        fields = super().get_search_fields(request)
        is_cut = SiteFilter in self.list_filter and len(known_sites(request)) > MAX_LISTED_SITES
        return [*fields, "=site"] if is_cut else fields

    def _without_single_site(self, request: HttpRequest, items: Any, site_item: Any) -> list[Any]:
        """Return ``items``, without ``site_item`` if there is a single site."""
        return [item for item in items if item != site_item or len(known_sites(request)) != 1]

    def render_page(self, request: HttpRequest, name: str, **context: Any) -> TemplateResponse:
        """Return a response from the template ``name``, with the context that all pages need."""
        shared = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "may_build": request.user.has_perm("sitemapkit.run_build"),
            "may_publish": request.user.has_perm("sitemapkit.publish_build"),
        }
        return TemplateResponse(request, f"admin/sitemapkit/{name}.html", {**shared, **context})


def render_build_page(
    model_admin: BaseAdmin, request: HttpRequest, build: Build, name: str, **context: Any
) -> HttpResponseBase:
    """Return a response about a build from the template ``name``, with ``build_url`` as context."""
    return model_admin.render_page(
        request,
        f"build/{name}",
        build=build,
        build_url=model_admin.view_url("change", build.pk),
        counts_twice=not settings.DEDUPLICATE,
        **context,
    )


def without_origin(text: str) -> str:
    """Return a pasted URL without its scheme and host; other text unchanged."""
    return re.sub("^(https?:)?//[^/]+", "", text, flags=re.IGNORECASE)


def paged_context(request: HttpRequest, items: Any, per_page: int) -> dict[str, Any]:
    """Return the page of ``items`` that ``?p`` names and the page numbers, for ``pages.html``."""
    page = Paginator(items, per_page).get_page(request.GET.get("p"))
    return {"page": page, "range": page.paginator.get_elided_page_range(page.number)}


class ReadOnlyAdmin(BaseAdmin):
    """Base class of model admins for rows that only the package writes."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: nobody adds, changes or deletes these rows by hand."""
        return False

    has_change_permission = has_delete_permission = has_add_permission


def number_text(value: int | None) -> str:
    """Return a number with thousands separators; "-" for None."""
    return "-" if value is None else number_format(value, use_l10n=True, force_grouping=True)


def number_or_blank(count: int) -> str:
    """Return a number with thousands separators; "" for 0."""
    return number_text(count) if count else ""


def duration_text(build: Build) -> str:
    """Return how long a build took, such as "4.2 s" or "0:03:20"; "" if it has not ended."""
    if build.ended_at is None:
        return ""
    seconds = (build.ended_at - build.started_at).total_seconds()
    if seconds < 60:
        return gettext("%(seconds)s s") % {
            "seconds": f"{seconds:.1f}" if seconds >= 0.1 else "<0.1"
        }
    return str(dt.timedelta(seconds=round(seconds)))


REQUESTED = {
    ("build", "changes"): _("Build of changes"),
    ("build", "full"): _("Full build"),
    ("build", "section"): _("Build of section “%(section)s”"),
    ("check", "changes"): _("File check"),
    ("compare", "changes"): _("Changes in build %(build)s"),
    ("preview", "changes"): _("Preview (what would change)"),
    ("prune", "changes"): _("Cleanup"),
}
"""What a request asks for, by its kind and scope."""


def request_text(request: BuildRequest) -> str:
    """Return a translated name of what a build request asks for, such as "Full build"."""
    wide = "full" if request.full else "changes"
    text = REQUESTED[request.kind, "section" if request.section else wide]
    return text % {"section": request.section, "build": request.build_id}


def request_rows(requests: Iterable[BuildRequest]) -> list[dict[str, Any]]:
    """Return a template row for each build request: its text, and the state of its build now."""
    return [
        {
            "request": request,
            "text": request_text(request),
            "state": STATES[request.build.outcome] if request.build else "",
        }
        for request in requests
    ]


def pause_text(pause: Pause) -> str:
    """Return a sentence that says who paused publishing, until when, and why."""
    values = {"who": pause.by, "why": pause.reason}
    if pause.until is None:
        return gettext("Publishing is paused by %(who)s until someone resumes it: %(why)s") % values
    values["until"] = moment_text(pause.until)
    return gettext("Publishing is paused by %(who)s until %(until)s: %(why)s") % values


def moment_text(moment: dt.datetime, form: str = "DATETIME_FORMAT") -> str:
    """Return a date and time as localized text, in the current time zone."""
    return date_format(timezone.localtime(moment) if timezone.is_aware(moment) else moment, form)


def csv_response(request: HttpRequest, name: str, lines: Iterable[str]) -> StreamingHttpResponse:
    """Return a response that sends lines as a CSV file; for a HEAD request they are not read."""
    return StreamingHttpResponse(
        () if request.method == "HEAD" else lines,
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def id_or_none(text: str | None) -> int | None:
    """Return the text of a parameter as an integer primary key, or None if it cannot be one."""
    valid = text is not None and text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS
    return int(text or 0) if valid else None


def may_view(request: HttpRequest, model: type[Model] | Model) -> bool:
    """Return whether the user has the permission to view or to change rows of a model."""
    opts = model._meta
    names = (get_permission_codename(action, opts) for action in ("view", "change"))
    return any(request.user.has_perm(f"{opts.app_label}.{name}") for name in names)


def progress_text(state: SiteState, progress: BuildProgress | None) -> str:
    """Return a sentence that says what a site does now: it is idle, queued, planning or building.

    ``progress`` is that of the site's running build; None if none runs.
    """
    name = "planning" if state.lease else "idle"
    if progress is not None:
        name = progress.state if progress.urls_per_second is None else "at-rate"
    if state.queue and not state.lease:
        name = "queued"
    return words_of({"code": f"progress-{name}", **(asdict(progress) if progress else {})})


def link_to(admin_site: admin.AdminSite, obj: Any, name: str = "") -> str:
    """Return HTML with a name, by default the object's, linked to its change page if it has one."""
    name = name or str(obj) or str(obj.pk)
    url = change_url(admin_site, obj)
    return format_html('<a href="{}">{}</a>', url, name) if url else format_html("{}", name)


def change_url(admin_site: admin.AdminSite, obj: Any) -> str:
    """Return the URL of an object's change page; "" if the admin site does not have its model."""
    opts = obj._meta
    try:
        return reverse(
            f"{admin_site.name}:{opts.app_label}_{opts.model_name}_change", args=[quote(obj.pk)]
        )
    except NoReverseMatch:
        return ""
