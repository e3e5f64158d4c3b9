"""The screens of builds: the list, a build with its manifest, and its stored files."""

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import unquote

from django.contrib import admin
from django.contrib.admin.utils import flatten, quote
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, Q, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.template.defaultfilters import filesizeformat
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_sitemapkit.admin.activity import activity_view
from django_sitemapkit.admin.base import (
    CheckedListAdmin,
    ReadOnlyAdmin,
    SiteFilter,
    duration_text,
    known_site,
    known_sites,
    link_to,
    number,
    number_or_blank,
    paged,
    request_rows,
    screen,
)
from django_sitemapkit.admin.differences import differences_view
from django_sitemapkit.admin.overview import (
    health_view,
    overview_view,
    progress_view,
    request_view,
)
from django_sitemapkit.admin.publishing import (
    build_page,
    build_title,
    cancel_view,
    is_live,
    is_publishable,
    pause_view,
    publish_error,
    publish_view,
    resume_view,
)
from django_sitemapkit.admin.url_counts import (
    UrlChange,
    changes_of,
    url_counts,
)
from django_sitemapkit.admin.url_inspection import inspection_view
from django_sitemapkit.builds.manifest import entry_of, stored_entries_of
from django_sitemapkit.builds.report.status import STATES, is_whole, live_before, states_of
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.inspection import object_at
from django_sitemapkit.inspection.attempts import try_read
from django_sitemapkit.models import Build, BuildRequest, Place, Publication
from django_sitemapkit.models.builds import INDEX_ORDER, PlaceQuerySet
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import page_addresses
from django_sitemapkit.words import words_of

FILES_PER_PAGE = 100
"""Manifest rows on a page."""

MAX_FILES_WITH_PROBLEMS = 50
"""Files with problems that a build's page lists."""

MAX_BUILD_REQUESTS = 20
"""Requests that a build's page lists."""

BUILDS_PER_PAGE = 200
"""URLs of a file on a page."""


@screen("<path:object_id>/object/", "build_object", "view")
def object_view(
    model_admin: CheckedListAdmin, request: HttpRequest, obj: Build
) -> HttpResponseBase:
    """Redirect to the object that a problem is about, given by its section and paging key.

    To its page in the admin or, if it has none, its own.
    """
    site, reason = known_site(request, obj.site)
    found = None
    if site is not None:
        section, key = request.GET.get("section", ""), request.GET.get("key", "")
        found, reason = try_read(lambda: object_at(site, section, key))
    if found is None:
        raise Http404(reason or _("This object does not exist."))
    opts = found._meta
    name = f"{model_admin.admin_site.name}:{opts.app_label}_{opts.model_name}_change"
    try:
        url = reverse(name, args=[quote(found.pk)])
    except NoReverseMatch:
        url = found.get_absolute_url() if hasattr(found, "get_absolute_url") else ""
    if not url:
        raise Http404(_("This object has no page."))
    return HttpResponseRedirect(url)


@screen("<path:object_id>/files/<int:file>/", "build_file", "view")
def file_view(
    model_admin: CheckedListAdmin, request: HttpRequest, obj: Build, file: int
) -> HttpResponseBase:
    """Show the URLs of a stored file that match a search, some at a time.

    The search is for a part of a URL, percent-encoded or not.
    """
    row = Place.objects.in_build(obj).pages().filter(pk=file).first()
    if row is None:
        raise Http404(_("This file does not exist."))
    query = request.GET.get("q", "").strip()
    wanted = unquote(query).casefold()
    shared = {"title": _name_of(row), "query": query}
    entries = map(entry_of, stored_entries_of([row], SitemapStorage()))
    try:
        found = [entry for entry in entries if wanted in unquote(entry.location).casefold()]
    except StorageFailure as error:
        return build_page(model_admin, request, obj, "file", failure=str(error), **shared)
    count = ngettext("%(count)s URL", "%(count)s URLs", len(found))
    shown = paged(request, found, BUILDS_PER_PAGE)
    return build_page(
        model_admin,
        request,
        obj,
        "file",
        **shared,
        **shown,
        count=count % {"count": number(len(found))},
        entries=[
            {"location": entry.location, "shown": unquote(entry.location), "tags": entry.tags}
            for entry in shown["page"].object_list
        ],
    )


class BuildList(ChangeList):
    """A page of builds with the totals of their files, by one more query."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the builds of the page, and add the totals of their files."""
        super().get_results(request)
        keys = [build.pk for build in self.result_list]
        totals = Place.objects.filter(build__in=keys).totals("build")
        by_build = {total["build"]: total for total in totals}
        changes = changes_of(self.result_list)
        live = set(Publication.objects.filter(build__in=keys).values_list("build", flat=True))
        states = states_of(self.result_list)
        for build in self.result_list:
            build.totals = by_build.get(build.pk, {})
            build.change = changes.get(build.pk, "-")
            build.is_live = build.pk in live
            build.state = states[build.pk]


@admin.register(Build)
class BuildAdmin(ReadOnlyAdmin):
    """Shows builds, which nobody adds, changes or deletes by hand."""

    screens = (
        object_view,
        *(overview_view, request_view, progress_view, activity_view, health_view, inspection_view),
        *(pause_view, resume_view, cancel_view, publish_view, differences_view, file_view),
    )
    list_display = (
        *("name", "site", "shown_status", "started_at", "duration"),
        *("url_count", "file_count", "size", "started_by", "short_reason"),
    )
    list_filter = (SiteFilter, "status", "started_at")
    search_fields = ("reason", "started_by")
    list_per_page = 50
    ordering = ("-pk",)
    show_full_result_count = False
    actions = None
    fields = (
        *("site", "shown_status", "shown_reason", "shown_findings"),
        *("shown_warnings", "started_by"),
        ("started_at", "ended_at", "duration"),
        ("published_at", "replaced_at"),
        *("pruned_at", "shown_previous"),
    )
    readonly_fields = flatten(fields)

    class Media:
        css = {"all": ["sitemapkit/theme.css", "sitemapkit/overview.css"]}

    def has_inspect_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may view builds, or URL overrides."""
        return self.has_view_permission(request) or request.user.has_perm(
            "sitemapkit.view_urloverride"
        )

    # The list

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        """Return the change list that adds the totals of files."""
        return BuildList

    @admin.display(description=gettext_lazy("build"), ordering="pk")
    def name(self, build: Build) -> str:
        """Return the name of the build."""
        return build_title(build)

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def shown_status(self, build: Any) -> str:
        """Return the status, highlighted if the build is held or failed, and the live one."""
        status = _status_html(build.state, str(STATES[build.state]))
        is_live = getattr(build, "is_live", False)
        return format_html("{} {}", status, _status_html("live", _("live"))) if is_live else status

    @admin.display(description=gettext_lazy("duration"))
    def duration(self, build: Build) -> str:
        """Return how long the build took."""
        return duration_text(build) or "-"

    @admin.display(description=gettext_lazy("URLs"))
    def url_count(self, build: Any) -> str:
        """Return how many URLs the build lists, and how that differs from the one before."""
        return str(build.change)

    @admin.display(description=gettext_lazy("files"))
    def file_count(self, build: Any) -> str:
        """Return how many files the build has."""
        return number(build.totals.get("pages"))

    @admin.display(description=gettext_lazy("size"))
    def size(self, build: Any) -> str:
        """Return how large the XML of its files is."""
        size = build.totals.get("xml_bytes")
        return "-" if size is None else filesizeformat(size)

    @admin.display(description=gettext_lazy("reason"))
    def short_reason(self, build: Build) -> str:
        """Return why the build ended with its status."""
        return Truncator(build.reason_text).chars(200)

    # The page of one build

    @admin.display(description=gettext_lazy("reason"))
    def shown_reason(self, build: Build) -> str:
        """Return why the build ended with its status, in full."""
        return build.reason_text

    @admin.display(description=gettext_lazy("bad URLs"))
    def shown_findings(self, build: Build) -> str:
        """Return the URLs that hold the build, each with what to do and a link to inspect it."""
        rows = (
            (self.url_to("inspect", site=build.site, url=url), url, text)
            for url, text in build.findings
        )
        return format_html_join("", '<div><a href="{}">{}</a> {}</div>', rows)

    @admin.display(description=gettext_lazy("warnings"))
    def shown_warnings(self, build: Build) -> str:
        """Return a line for each implausible lastmod."""
        return "\n".join(map(words_of, build.warnings))

    @admin.display(description=gettext_lazy("previous build"))
    def shown_previous(self, build: Build) -> str:
        """Return a link to the build that was published when this one finished."""
        previous = build.previous
        if previous is None:
            return "-"
        return link_to(self.admin_site, previous, build_title(previous))

    def get_fieldsets(self, request: HttpRequest, obj: Build | None = None) -> Any:
        """Return the fields that have a value for this build."""
        fields = [
            row
            for row in self.fields
            if getattr(obj, flatten([row])[0].removeprefix("shown_"), None)
        ]
        if [site.key for site in known_sites(request)] == [getattr(obj, "site", None)]:
            fields.remove("site")
        return [(None, {"fields": fields})]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Build]:
        """Return the builds with their previous builds."""
        return super().get_queryset(request).select_related("previous")

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Show the build with its manifest."""
        build = options["obj"]
        build.is_live, build.state = is_live(build), states_of([build])[build.pk]
        context |= {
            "title": build_title(build),
            "subtitle": None,
            "may_publish": request.user.has_perm("sitemapkit.publish_build")
            and not publish_error(build),
            "differs": is_publishable(build) and build.previous is not None,
            **_manifest_context(request, build),
        }
        return super().render_change_form(request, context, *args, **options)


def _status_html(status: str, text: str) -> str:
    return format_html('<span class="sitemapkit-status sitemapkit-{}">{}</span>', status, text)


def _manifest_context(request: HttpRequest, build: Build) -> dict[str, Any]:
    """Return the template context of a build: totals, problems, and a page of its files."""
    manifest = Place.objects.in_build(build).defer("override_hashes")
    totals = _section_totals(build, manifest)
    section = request.GET.get("section", "")
    if section not in {total["section"] for total in totals}:
        section = ""
    chosen = manifest.filter(section=section) if section else manifest
    files = chosen.order_by(*INDEX_ORDER, "pk")
    shown = paged(request, files, FILES_PER_PAGE)
    faulty = manifest.exclude(problems={}, skipped=0).order_by(*INDEX_ORDER)
    problems = list(faulty[: MAX_FILES_WITH_PROBLEMS + 1])
    urls = _file_urls(request, build, shown["page"].object_list)
    asked = build.requests.exclude(kind=BuildRequest.Kind.COMPARE)
    return {
        "sections": totals,
        "section": section,
        **shown,
        "files": [_row(file, urls) for file in shown["page"].object_list],
        "problems": [_row(file, {}) for file in problems[:MAX_FILES_WITH_PROBLEMS]],
        "more_problems": len(problems) > MAX_FILES_WITH_PROBLEMS,
        "requests": request_rows(asked.order_by("pk")[:MAX_BUILD_REQUESTS]),
    }


def _section_totals(build: Build, manifest: PlaceQuerySet) -> list[dict[str, Any]]:
    """Return the totals of each section, and how its URLs have changed since the build before."""
    previous = live_before([build])[build.pk] if is_whole(build) else None
    before = url_counts([previous])[previous] or None
    return [
        {
            **total,
            "pages": number(total["pages"]),
            "pending": number_or_blank(total["pending"]),
            "urls": UrlChange(
                total["urls"], None if before is None else before.get(total["section"], 0)
            ),
            "skipped": number_or_blank(total["skipped"]),
        }
        for total in manifest.totals(
            "section", pending=Count("pk", filter=Q(status=Place.Status.PENDING))
        )
    ]


def _name_of(file: Place) -> str:
    """Return what a file is called on the screens."""
    return f"{file.section or _('index')} {file.number or ''}".rstrip()


def _row(file: Place, urls: Mapping[int, str]) -> dict[str, Any]:
    return {
        "file": file,
        "name": _name_of(file),
        "url": urls.get(file.pk, ""),
        "is_readable": file.section and file.status == Place.Status.DONE,
        "urls": number(file.urls),
        "skipped": number_or_blank(file.skipped),
        "duplicates": number_or_blank(file.duplicates),
        "problems": file.problem_rows,
    }


def _file_urls(request: HttpRequest, build: Build, files: Iterable[Place]) -> dict[int, str]:
    """Return the URLs of files by id; none if the site serves another build."""
    site = known_site(request, build.site)[0] if is_live(build) else None
    if site is None:
        return {}

    def read() -> dict[int, str]:
        urls_of = cache(partial(page_addresses, site))
        return {
            file.pk: urls_of(file.section)(file.number) if file.section else site.address("index")
            for file in files
            if file.status == Place.Status.DONE
        }

    return try_read(read)[0] or {}
