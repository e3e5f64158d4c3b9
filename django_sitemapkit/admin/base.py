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
from django_sitemapkit.inspection.attempts import savepoint_if_atomic, try_read
from django_sitemapkit.models import Build, BuildRequest
from django_sitemapkit.sites import SitemapSite, all_sites, site_by_key
from django_sitemapkit.words import words_of

Read = TypeVar("Read")
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
    """Return all sites; if they cannot be determined, a message on the page says why."""
    sites: list[SitemapSite] | None = getattr(request, _SITES, None)
    if sites is None:
        try:
            sites = all_sites()
        except ImproperlyConfigured as error:
            messages.error(request, str(error))
            sites = []
        setattr(request, _SITES, sites)
    return sites


def site_or_reason(request: HttpRequest, key: str) -> tuple[SitemapSite | None, str]:
    """Return `(site, "")` for the site with a key, or `(None, reason)` if none is found."""
    sites, reason = getattr(request, _SITES, None), ""
    if sites is None:
        sites, reason = try_read(all_sites)
    site = site_by_key(sites or (), key)
    if site is None and not reason:
        reason = gettext("Site “%(site)s” does not exist.") % {"site": key}
    return site, reason


class SiteFilter(admin.SimpleListFilter):
    """Filters rows by site, without a query for the choices."""

    title: Any = _("site")
    parameter_name = "site"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the sites to choose from."""
        keys = [site.key for site in known_sites(request)]
        if len(keys) > MAX_LISTED_SITES:
            values = {"count": number(MAX_LISTED_SITES)}
            self.title = gettext("site (only the first %(count)s, search for others)") % values
        keys = keys[:MAX_LISTED_SITES]
        chosen = request.GET.get(self.parameter_name, "")
        return [(key, key) for key in (*keys, *({chosen} - {"", *keys}))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the chosen site."""
        return queryset.filter(site=self.value()) if self.value() else queryset


def screen(
    route: str,
    name: str,
    *permissions: str,
    methods: Collection[str] = ("GET", "HEAD"),
    of_site: bool = False,
) -> Callable[[View], View]:
    """Make a function the view of ``route``, relative to the list of the model admins it is for.

    It gets the model admin, which names it in ``screens``, and the request. Its URL has the name
    ``sitemapkit_`` and ``name``, in which ``{model}`` is the name of the admin's model. As for
    Django's admin actions, "view" in ``permissions`` calls ``has_view_permission()``; a name with a
    dot is that of a permission. A user needs all of them. Other ``methods`` are answered with 405.

    If the route has an ``object_id``, the view gets the object as ``obj``; with ``of_site`` it gets
    the site that the request names as ``site``. An unknown one is answered with 404.

    Example::

        @screen("overview/", "overview", "view")
        def overview_view(model_admin, request): ...
    """

    def decorated(view: View) -> View:
        @wraps(view)
        def checked(
            model_admin: Any, request: HttpRequest, object_id: str = "", **arguments: Any
        ) -> HttpResponseBase:
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
            if of_site:
                key = request.POST.get("site") or request.GET.get("site", "")
                arguments["site"], reason = site_or_reason(request, key)
                if reason:
                    raise Http404(reason)
            return view(model_admin, request, **arguments)

        checked.url = route, f"sitemapkit_{name}"  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorated


class CheckedListAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A screen whose list never fails with a server error, whatever its query string.

    Django leaves some values for the database to reject: a NUL, which PostgreSQL stores in no
    text, a regular expression, a year. With one site, the list does not show the site.
    """

    screens: ClassVar[Sequence[Any]] = ()
    """Its views besides those of Django: functions decorated with ``screen``."""

    class Media:
        css = {"all": ["sitemapkit/theme.css"]}

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return the list; raises IncorrectLookupParameters for what the database rejects."""
        try:
            with savepoint_if_atomic():
                return super().get_changelist_instance(request)
        except (DatabaseError, ValueError, OverflowError) as error:
            if not request.GET:
                raise
            raise IncorrectLookupParameters(str(error)) from error

    def get_urls(self) -> list[URLPattern]:
        """Add the URLs of ``screens``."""
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
        """Return the URL of a screen in this admin site, given its name without ``sitemapkit_``."""
        url = reverse(
            f"{self.admin_site.name}:sitemapkit_{name}", args=[quote(each) for each in arguments]
        )
        return f"{url}?{urlencode(query)}" if query else url

    def view_url(self, view: str, *arguments: Any) -> str:
        """Return the URL of a view of this model, such as "changelist"."""
        return self.screen_url(f"{self.opts.model_name}_{view}", *arguments)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns; the site is among them only if there are several sites."""
        return self._without_single_site(request, super().get_list_display(request), "site")

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """Return the filters; the site is among them only if there are several sites."""
        return self._without_single_site(request, super().get_list_filter(request), SiteFilter)

    def get_search_fields(self, request: HttpRequest) -> Any:
        """Return the fields to search; the site is one of them if the filter lists only some."""
        fields = super().get_search_fields(request)
        is_cut = SiteFilter in self.list_filter and len(known_sites(request)) > MAX_LISTED_SITES
        return [*fields, "=site"] if is_cut else fields

    def _without_single_site(self, request: HttpRequest, items: Any, site_item: Any) -> list[Any]:
        several = len(known_sites(request)) != 1
        return [item for item in items if several or item != site_item]

    def render_page(self, request: HttpRequest, name: str, **context: Any) -> TemplateResponse:
        """Return a page of the screen besides those of Django, from the template ``name``."""
        shared = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "may_build": request.user.has_perm("sitemapkit.run_build"),
            "may_publish": request.user.has_perm("sitemapkit.publish_build"),
        }
        template = f"admin/sitemapkit/{name}.html"
        return TemplateResponse(request, template, {**shared, **context})


def render_build_page(
    model_admin: CheckedListAdmin, request: HttpRequest, build: Build, name: str, **context: Any
) -> HttpResponseBase:
    """Return a page about a build from the template ``name``."""
    return model_admin.render_page(
        request,
        f"build/{name}",
        build=build,
        build_url=model_admin.view_url("change", build.pk),
        **context,
    )


def without_host(text: str) -> str:
    """Return the path of a pasted URL, or the text as it is."""
    return re.sub("^(https?:)?//[^/]+", "", text, flags=re.IGNORECASE)


def paged_context(request: HttpRequest, items: Any, per_page: int) -> dict[str, Any]:
    """Return the page of some items that the query string names, as context of ``pages.html``."""
    page = Paginator(items, per_page).get_page(request.GET.get("p"))
    return {"page": page, "range": page.paginator.get_elided_page_range(page.number)}


class ReadOnlyAdmin(CheckedListAdmin):
    """A screen of rows that the package writes, and nobody adds, changes or deletes by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False."""
        return False

    has_change_permission = has_delete_permission = has_add_permission


def number(value: int | None) -> str:
    """Return a number with thousands separators; "-" for None."""
    return "-" if value is None else number_format(value, use_l10n=True, force_grouping=True)


def number_or_blank(count: int) -> str:
    """Return a number with thousands separators; "" for 0."""
    return number(count) if count else ""


def duration_text(build: Build) -> str:
    """Return how long a build took, as text; "" if it has not ended."""
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
    """Return what a request asks for, as text."""
    wide = "full" if request.full else "changes"
    text = REQUESTED[request.kind, "section" if request.section else wide]
    return text % {"section": request.section, "build": request.build_id}


def request_rows(requests: Iterable[BuildRequest]) -> list[dict[str, Any]]:
    """Return requests with their texts and the states of their builds now, for templates."""
    return [
        {
            "request": request,
            "text": request_text(request),
            "state": STATES[request.build.outcome] if request.build else "",
        }
        for request in requests
    ]


def pause_text(pause: Pause) -> str:
    """Return who paused publishing until when and why, as text."""
    values = {"who": pause.by, "why": pause.reason}
    if pause.until is None:
        return gettext("Publishing is paused by %(who)s until someone resumes it: %(why)s") % values
    values["until"] = moment_text(pause.until)
    return gettext("Publishing is paused by %(who)s until %(until)s: %(why)s") % values


def moment_text(moment: dt.datetime) -> str:
    """Return a moment as text, in the current time zone."""
    return date_format(
        timezone.localtime(moment) if timezone.is_aware(moment) else moment, "DATETIME_FORMAT"
    )


def csv_response(request: HttpRequest, name: str, lines: Iterable[str]) -> StreamingHttpResponse:
    """Return a CSV file to download; its lines are not read for a HEAD request."""
    return StreamingHttpResponse(
        lines if request.method == "GET" else (),
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def id_or_none(text: str | None) -> int | None:
    """Return a parameter as a primary key, or None if it cannot be one."""
    valid = text is not None and text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS
    return int(text or 0) if valid else None


def may_view(request: HttpRequest, model: type[Model] | Model) -> bool:
    """Return whether the user may view or change the rows of a model."""
    opts = model._meta
    names = (get_permission_codename(action, opts) for action in ("view", "change"))
    return any(request.user.has_perm(f"{opts.app_label}.{name}") for name in names)


def progress_text(state: SiteState, build: BuildProgress | None) -> str:
    """Return a sentence on the running work of a site; ``build`` is its build's progress."""
    name = "planning" if state.lease else "idle"
    if build is not None:
        name = build.state if build.urls_per_second is None else "at-rate"
    if state.queue and not state.lease:
        name = "queued"
    return words_of({"code": f"progress-{name}", **(asdict(build) if build else {})})


def link_to(site: admin.AdminSite, obj: Any, name: str = "") -> str:
    """Return a name, by default the object's, linked to its page in the admin if it has one."""
    name = name or str(obj) or str(obj.pk)
    url = change_url(site, obj)
    return format_html('<a href="{}">{}</a>', url, name) if url else format_html("{}", name)


def change_url(site: admin.AdminSite, obj: Any) -> str:
    """Return the address of an object's page in the admin; "" if it has none."""
    opts = obj._meta
    try:
        return reverse(
            f"{site.name}:{opts.app_label}_{opts.model_name}_change", args=[quote(obj.pk)]
        )
    except NoReverseMatch:
        return ""
