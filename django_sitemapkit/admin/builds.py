"""The screens of builds: the list, a build with its manifest, and its stored files."""

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import unquote

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, Q, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_sitemapkit.admin.base import (
    CheckedListAdmin,
    ReadOnlyAdmin,
    SiteFilter,
    duration_text,
    known_site,
    known_sites,
    number,
    number_or_blank,
    paged,
    request_rows,
    screen,
)
from django_sitemapkit.admin.differences import URLS_PER_PAGE, differences_view
from django_sitemapkit.admin.health.builds import PROBLEMS
from django_sitemapkit.admin.publishing import (
    build_page,
    build_title,
    is_live,
    is_publishable,
    publish_error,
    publish_view,
)
from django_sitemapkit.admin.sections import SECTIONS_PER_PAGE
from django_sitemapkit.admin.url_counts import (
    UrlCounts,
    changes_of,
    total_change,
    url_counts,
)
from django_sitemapkit.builds.manifest import entry_of, keys_of, stored_entries_of
from django_sitemapkit.builds.report.changes import UrlChange, is_whole, live_before
from django_sitemapkit.builds.report.status import STATES, problem_counts, states_of
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.inspection import object_at
from django_sitemapkit.inspection.attempts import try_read
from django_sitemapkit.models import Build, BuildRequest, Place, Publication
from django_sitemapkit.models.builds import INDEX_ORDER, PlaceQuerySet
from django_sitemapkit.overrides import section_of
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import page_addresses
from django_sitemapkit.rendering.pages import page_problems
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import words_of

FILES_PER_PAGE = 100
"""Manifest rows on a page."""

MAX_FILES_WITH_PROBLEMS = 50
"""Files with problems that a build's page lists."""

MAX_BUILD_REQUESTS = 20
"""Requests that a build's page lists."""

DUPLICATE = "duplicate-url"
"""The kind of problem that depends on other pages than that of its row."""


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
    row = _file_of(obj, file)
    query = request.GET.get("q", "").strip()
    wanted = unquote(query).casefold()
    shared = {"title": _name_of(row), "query": query, "file": row, "problems": _kinds(row)}
    stored = stored_entries_of([row] if row.section and row.name else [], SitemapStorage())
    entries = map(entry_of, stored)
    try:
        found = [entry for entry in entries if wanted in unquote(entry.location).casefold()]
    except StorageFailure as error:
        return build_page(model_admin, request, obj, "file", failure=str(error), **shared)
    count = ngettext("%(count)s URL", "%(count)s URLs", len(found))
    shown = paged(request, found, URLS_PER_PAGE)
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


@screen("<path:object_id>/files/<int:file>/problems/<slug:code>/", "build_problems", "view")
def problems_view(
    model_admin: CheckedListAdmin, request: HttpRequest, obj: Build, file: int, code: str
) -> HttpResponseBase:
    """Show all rows of a file that have a kind of problem, by reading them from the database.

    A build keeps the first of each kind; these are shown if no row is found any more.
    """
    row = _file_of(obj, file)
    kind = next((each for each in _kinds(row) if each["code"] == code), None)
    if kind is None:
        raise Http404(_("This file has no such problem."))
    site, reason = known_site(request, obj.site)
    found: list[tuple[str, str]] | None = None
    # Which URLs other pages list is known during a build only.
    if site is not None and code != DUPLICATE:
        found, reason = try_read(lambda: _problems_now(site, row, code))
    kept = [(text, key) for _place, text, key in row.problems[code]["examples"]]
    shown = paged(request, found or kept, URLS_PER_PAGE)
    return build_page(
        model_admin,
        request,
        obj,
        "problems",
        **shown,
        title=f"{_name_of(row)}: {kind['title']}",
        kind=kind,
        total=number(kind["total"]),
        now=number(len(found)) if found else "",
        kept=number(len(kept)),
        failure=reason,
        rows=shown["page"].object_list,
    )


def _problems_now(site: SitemapSite, row: Place, code: str) -> list[tuple[str, str]]:
    section = section_of(site, row.section)
    if section is None:
        return []
    problems = page_problems(section, keys_of(row, section), site.scope())
    return [(str(each), str(each.key)) for each in problems if each.code == code]


def _file_of(build: Build, key: int) -> Place:
    """Return a place of a build with its stored page; raises Http404."""
    row = Place.objects.in_build(build).filter(pk=key).first()
    if row is None:
        raise Http404(_("This file does not exist."))
    return row


class BuildList(ChangeList):
    """A page of builds with their numbers of URLs and states."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the builds of the page, and add how many URLs they list and how they ended."""
        super().get_results(request)
        keys = [build.pk for build in self.result_list]
        changes = changes_of(self.result_list)
        live = set(Publication.objects.filter(build__in=keys).values_list("build", flat=True))
        states = states_of(self.result_list)
        for build in self.result_list:
            build.change = changes.get(build.pk, "-")
            build.is_live = build.pk in live
            build.state, build.state_text = states[build.pk], STATES[states[build.pk]]


@admin.register(Build)
class BuildAdmin(ReadOnlyAdmin):
    """Shows builds, which nobody adds, changes or deletes by hand."""

    screens = (object_view, publish_view, differences_view, file_view, problems_view)
    list_display = (
        *("name", "site", "shown_status", "url_count"),
        *("started_at", "duration"),
    )
    list_filter = (SiteFilter, "status", "started_at")
    search_fields = ("reason", "started_by")
    list_per_page = 50
    ordering = ("-pk",)
    show_full_result_count = False
    actions = None
    fields = ()
    """The page has a template of its own for what it shows of a build."""

    class Media:
        css = {"all": ["sitemapkit/theme.css", "sitemapkit/overview.css"]}

    # The list

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        """Return the change list that adds numbers of URLs and states."""
        return BuildList

    @admin.display(description=gettext_lazy("build"), ordering="pk")
    def name(self, build: Build) -> str:
        """Return the name of the build."""
        return build_title(build)

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def shown_status(self, build: Any) -> str:
        """Return the status, highlighted if the build is live, held or failed, and why."""
        context = {"build": build, "reason": Truncator(build.reason_text).chars(200)}
        return render_to_string("admin/sitemapkit/build/status.html", context)

    @admin.display(description=gettext_lazy("duration"))
    def duration(self, build: Build) -> str:
        """Return how long the build took."""
        return duration_text(build) or "-"

    @admin.display(description=gettext_lazy("URLs"))
    def url_count(self, build: Any) -> str:
        """Return how many URLs the build lists, and how that differs from the one before."""
        return str(build.change)

    # The page of one build

    def get_queryset(self, request: HttpRequest) -> QuerySet[Build]:
        """Return the builds with their previous builds."""
        return super().get_queryset(request).select_related("previous")

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Show the build with its manifest."""
        build = options["obj"]
        build.is_live, build.state = is_live(build), states_of([build])[build.pk]
        build.state_text = STATES[build.state]
        may_publish, before = request.user.has_perm("sitemapkit.publish_build"), build.previous
        is_back = may_publish and build.is_live and before and not publish_error(before)
        context |= {
            "title": build_title(build),
            "subtitle": None,
            "may_publish": may_publish and not publish_error(build),
            "roll_back_to": before if is_back else None,
            "several": [site.key for site in known_sites(request)] != [build.site],
            "duration": duration_text(build),
            "warnings": list(map(words_of, build.warnings)),
            **_manifest_context(request, build),
        }
        return super().render_change_form(request, context, *args, **options)


def _manifest_context(request: HttpRequest, build: Build) -> dict[str, Any]:
    """Return the template context of a build: totals, problems, and a page of its sections.

    With a section in the query string, it is a page of its files; of all files if it has no name.
    """
    manifest = Place.objects.in_build(build).defer("override_hashes")
    previous = live_before([build])[build.pk] if is_whole(build) else None
    before = url_counts([previous])[previous] or None
    totals = _section_totals(manifest, before)
    counts = {total["section"]: total["urls"].after for total in totals}
    section = request.GET.get("section")
    if section not in {None, *counts} or not counts:
        section = ""  # All of them.
    chosen = manifest.filter(section=section) if section else manifest
    if section is None:
        shown = paged(request, totals, SECTIONS_PER_PAGE)
    else:
        shown = paged(request, chosen.order_by(*INDEX_ORDER, "pk"), FILES_PER_PAGE)
        urls = _file_urls(request, build, shown["page"].object_list)
        shown["files"] = [_row(file, urls) for file in shown["page"].object_list]
        shown["count"] = number(shown["page"].paginator.count)
    faulty = manifest.exclude(problems={}, skipped=0).order_by(*INDEX_ORDER)
    faulty_files = list(faulty[: MAX_FILES_WITH_PROBLEMS + 1])
    problems = [row for file in faulty_files[:MAX_FILES_WITH_PROBLEMS] for row in _kinds(file)]
    asked = build.requests.exclude(kind=BuildRequest.Kind.COMPARE)
    return {
        "differs": is_publishable(build) and previous is not None,
        "section": section,
        **shown,
        "has_sections": bool(totals),
        "file_count": number(manifest.count()),
        "urls": total_change(counts, before),
        "size": sum(each["xml_bytes"] for each in totals),
        "problems": problems,
        "problem_count": number(sum(problem_counts(build).values())),
        "more_problems": len(faulty_files) > MAX_FILES_WITH_PROBLEMS,
        "requests": request_rows(asked.order_by("pk")[:MAX_BUILD_REQUESTS]),
    }


def _kinds(file: Place) -> list[dict[str, Any]]:
    """Return a row for each kind of problem of a file, the most frequent first."""
    kinds = sorted(file.problems.items(), key=lambda item: -item[1]["count"])
    rows = []
    for code, kind in kinds:
        title, advice = PROBLEMS.get(code, (code, ""))
        _place, text, key = kind["examples"][0]
        shown = {"title": title, "advice": advice, "text": text, "key": key}
        total = kind["count"]
        rows.append({"file": file, "name": _name_of(file), "code": code, "total": total, **shown})
    return rows


def _section_totals(manifest: PlaceQuerySet, before: UrlCounts | None) -> list[dict[str, Any]]:
    """Return the totals of each section, and how its URLs have changed since the build before."""
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
        "is_readable": file.status == Place.Status.DONE,
        "urls": number(file.urls),
        "skipped": number_or_blank(file.skipped),
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
