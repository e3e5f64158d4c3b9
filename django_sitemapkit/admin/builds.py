"""The screens of builds: the list, a build with its manifest, and its stored files."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import unquote

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_sitemapkit.admin.base import (
    BaseAdmin,
    ReadOnlyAdmin,
    SiteFilter,
    change_url,
    duration_text,
    known_site_or_reason,
    known_sites,
    number_or_blank,
    number_text,
    paged_context,
    render_build_page,
    request_rows,
    screen,
)
from django_sitemapkit.admin.differences import (
    URLS_PER_PAGE,
    UrlCounts,
    changes_by_build,
    differences_view,
    section_changes,
    total_change,
    url_counts_by_build,
)
from django_sitemapkit.admin.health.builds import PROBLEMS
from django_sitemapkit.admin.publishing import (
    is_older_than_published,
    publish_error,
    publish_view,
)
from django_sitemapkit.admin.sections import SECTIONS_PER_PAGE
from django_sitemapkit.builds.manifest import key_range_of, parse_xml_line, stored_entries_of
from django_sitemapkit.builds.report.published import is_complete, problems_by_section
from django_sitemapkit.builds.report.status import STATES, states_by_build
from django_sitemapkit.inspection import object_by_paging_key, try_read
from django_sitemapkit.models import INDEX_ORDER, Build, BuildRequest, Place, PlaceQuerySet
from django_sitemapkit.overrides import section_of
from django_sitemapkit.rendering import page_address_getter, page_problems
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
def problem_object_view(
    model_admin: BaseAdmin, request: HttpRequest, obj: Build
) -> HttpResponseBase:
    """Redirect to the object that a problem is about, given by ``?section`` and its paging ``key``.

    The page is the object's change page in the admin or, without one, its own page.
    """
    site, reason = known_site_or_reason(request, obj.site)
    found = None
    if site is not None:
        section, key = request.GET.get("section", ""), request.GET.get("key", "")
        found, reason = try_read(lambda: object_by_paging_key(site, section, key))
    if found is None:
        raise Http404(reason or _("This object does not exist."))
    url = change_url(model_admin.admin_site, found) or getattr(found, "get_absolute_url", str)()
    if not url:
        raise Http404(_("This object has no page."))
    return HttpResponseRedirect(url)


@screen("<path:object_id>/files/<int:file>/", "build_file", "view")
def file_view(
    model_admin: BaseAdmin, request: HttpRequest, obj: Build, file: int
) -> HttpResponseBase:
    """Show the URLs of a stored file of a build, those that contain ``?q`` if it is given.

    The search text may be percent-encoded or not.
    """
    row = get_object_or_404(Place.objects.in_build(obj), pk=file)
    query = request.GET.get("q", "").strip()
    wanted = unquote(query).casefold()
    stored = stored_entries_of([row] if row.section and row.name else [])
    found, failure = try_read(
        lambda: [
            entry
            for entry in map(parse_xml_line, stored)
            if wanted in unquote(entry.location).casefold()
        ]
    )
    found = found or []
    shown = paged_context(request, found, URLS_PER_PAGE)
    return render_build_page(
        model_admin,
        request,
        obj,
        "file",
        title=_display_name(row),
        query=query,
        file=row,
        problems=list(_problem_rows(row)),
        failure=failure,
        **shown,
        count=ngettext("%(count)s URL", "%(count)s URLs", len(found))
        % {"count": number_text(len(found))},
        entries=[
            {"location": entry.location, "shown": unquote(entry.location), "tags": entry.tags}
            for entry in shown["page"].object_list
        ],
    )


@screen("<path:object_id>/files/<int:file>/problems/<slug:code>/", "build_problems", "view")
def problems_view(
    model_admin: BaseAdmin, request: HttpRequest, obj: Build, file: int, code: str
) -> HttpResponseBase:
    """Show all rows of a file that have one kind of problem now, read from the database.

    If no row has it now, or they cannot be read, show the examples that the build stored.
    """
    row = get_object_or_404(Place.objects.in_build(obj), pk=file)
    kind = next((each for each in _problem_rows(row) if each["code"] == code), None)
    if kind is None:
        raise Http404(_("This file has no such problem."))
    site, reason = known_site_or_reason(request, obj.site)
    found: list[tuple[str, str]] | None = None
    # Which URLs other pages list is known during a build only.
    if site is not None and code != DUPLICATE:
        found, reason = try_read(lambda: _current_problems(site, row, code))
    kept = [(text, key) for _place, text, key in row.problems[code]["examples"]]
    shown = paged_context(request, found or kept, URLS_PER_PAGE)
    return render_build_page(
        model_admin,
        request,
        obj,
        "problems",
        **shown,
        title=f"{_display_name(row)}: {kind['title']}",
        kind=kind,
        total=number_text(kind["total"]),
        now=number_text(len(found)) if found else "",
        kept=number_text(len(kept)),
        failure=reason,
        rows=shown["page"].object_list,
    )


def _current_problems(site: SitemapSite, row: Place, code: str) -> list[tuple[str, str]]:
    """Return message and key of each row of a file that has a kind of problem now."""
    section = section_of(site, row.section)
    if section is None:
        return []
    problems = page_problems(section, key_range_of(row, section))
    return [(str(each), str(each.key)) for each in problems if each.code == code]


class BuildChangeList(ChangeList):
    """The change list of builds, which adds numbers of URLs and states to the builds of a page."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the builds of the page, and set ``change``, ``state`` and ``state_text`` on each."""
        super().get_results(request)
        changes, states = changes_by_build(self.result_list), states_by_build(self.result_list)
        for build in self.result_list:
            build.change = changes.get(build.pk, "-")
            build.state, build.state_text = states[build.pk], STATES[states[build.pk]]


@admin.register(Build)
class BuildAdmin(ReadOnlyAdmin):
    """The admin of builds: a list, a page for each build, and its screens; builds are read-only."""

    screens = (problem_object_view, publish_view, differences_view, file_view, problems_view)
    list_display = (
        *("__str__", "site", "shown_status", "url_count"),
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

    # The list

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        """Return the class of the change list, BuildChangeList."""
        return BuildChangeList

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def shown_status(self, build: Any) -> str:
        """Return HTML of the build's status and reason; live, held and failed are highlighted."""
        return render_to_string(
            "admin/sitemapkit/build/status.html",
            {"build": build, "reason": Truncator(build.reason_text).chars(200)},
        )

    @admin.display(description=gettext_lazy("duration"))
    def duration(self, build: Build) -> str:
        """Return how long the build took, as text; "-" if it has not ended."""
        return duration_text(build) or "-"

    @admin.display(description=gettext_lazy("URLs"))
    def url_count(self, build: Any) -> str:
        """Return HTML of how many URLs the build lists and how that changed, with a link."""
        if getattr(build.change, "before", None) is None:
            return str(build.change)
        return format_html(
            '{}<div><a href="{}">{}</a></div>',
            *(str(build.change), self.view_url("differences", build.pk), _("Show changes")),
        )

    # The page of one build

    def get_queryset(self, request: HttpRequest) -> QuerySet[Build]:
        """Return the builds with ``previous``, and ``newer``: the id of a newer build, or None.

        A newer build was published after this one ended, or began later and is held for review.
        """
        newer = Build.objects.filter(
            Q(published_at__gt=OuterRef("ended_at"))
            | Q(pk__gt=OuterRef("pk"), status=Build.Status.HELD),
            site=OuterRef("site"),
            pruned_at=None,
        )
        rows: QuerySet[Build] = super().get_queryset(request).select_related("previous")
        return rows.annotate(newer=Subquery(newer.order_by("-pk").values("pk")[:1]))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Render the page of a build: its state, its manifest, and what the user may do with it."""
        build = options["obj"]
        build.state = states_by_build([build])[build.pk]
        build.state_text = STATES[build.state]
        may_publish, before = request.user.has_perm("sitemapkit.publish_build"), build.previous
        is_back = may_publish and build.outcome == "live" and before and not publish_error(before)
        context |= {
            "title": str(build),
            "subtitle": None,
            "may_publish": may_publish and not publish_error(build),
            "is_older": is_older_than_published(build),
            "roll_back_to": before if is_back else None,
            "several": [site.key for site in known_sites(request)] != [build.site],
            "duration": duration_text(build),
            "warnings": list(map(words_of, build.warnings)),
            **_manifest_context(request, build),
        }
        return super().render_change_form(request, context, *args, **options)


def _manifest_context(request: HttpRequest, build: Build) -> dict[str, Any]:
    """Return the context of a build's manifest: totals, problems, requests, a page of its sections.

    With ``?section`` in the query string, it has a page of that section's files instead; of all
    files if the name is empty or unknown.
    """
    manifest = Place.objects.in_build(build).defer("override_hashes")
    previous = build.previous_id if is_complete(build) else None
    before = url_counts_by_build([previous])[previous] or None
    totals = _section_totals(manifest, before)
    counts = {total["section"]: total["urls"].after for total in totals}
    section = request.GET.get("section")
    if section not in {None, *counts} or not counts:
        section = ""  # All of them.
    chosen = manifest.filter(section=section) if section else manifest
    if section is None:
        shown = paged_context(request, totals, SECTIONS_PER_PAGE)
    else:
        shown = paged_context(request, chosen.order_by(*INDEX_ORDER, "pk"), FILES_PER_PAGE)
        urls = _file_urls(request, build, shown["page"].object_list)
        shown |= {
            "files": [_file_row(file, urls) for file in shown["page"].object_list],
            "count": number_text(shown["page"].paginator.count),
        }
    faulty = manifest.exclude(problems={}, skipped=0).order_by(*INDEX_ORDER)
    faulty_files = list(faulty[: MAX_FILES_WITH_PROBLEMS + 1])
    problems = [
        row for file in faulty_files[:MAX_FILES_WITH_PROBLEMS] for row in _problem_rows(file)
    ]
    asked = build.requests.exclude(kind=BuildRequest.Kind.COMPARE)
    return {
        "differs": previous is not None and build.pruned_at is None,
        "section": section,
        **shown,
        "has_sections": bool(totals),
        "file_count": number_text(manifest.count()),
        "urls": total_change(counts, before),
        "size": sum(each["xml_bytes"] for each in totals),
        "problems": problems,
        "problem_count": number_text(sum(problems_by_section(build).values())),
        "more_problems": len(faulty_files) > MAX_FILES_WITH_PROBLEMS,
        "requests": request_rows(asked.order_by("pk")[:MAX_BUILD_REQUESTS]),
    }


def _problem_rows(file: Place) -> Iterator[dict[str, Any]]:
    """Yield a template row for each kind of problem of a file, the most frequent first."""
    for code, kind in sorted(file.problems.items(), key=lambda item: -item[1]["count"]):
        title, advice = PROBLEMS.get(code, (code, ""))
        _place, text, key = kind["examples"][0]
        yield {
            "file": file,
            "name": _display_name(file),
            "code": code,
            "total": kind["count"],
            "title": title,
            "advice": advice,
            "text": text,
            "key": key,
        }


def _section_totals(manifest: PlaceQuerySet, before: UrlCounts | None) -> list[dict[str, Any]]:
    """Return a template row for each section: its totals, and how its number of URLs changed.

    ``before`` are the counts of the previous build; None to compare with nothing.
    """
    pending = Count("pk", filter=Q(status=Place.Status.PENDING))
    totals = {each["section"]: each for each in manifest.totals("section", pending=pending)}
    urls = {name: total["urls"] for name, total in totals.items()}
    return [
        {
            **(total := totals.get(name, {"pages": 0, "pending": 0, "xml_bytes": 0, "skipped": 0})),
            "section": name,
            "pages": number_text(total["pages"]),
            "pending": number_or_blank(total["pending"]),
            "urls": change,
            "skipped": number_or_blank(total["skipped"]),
        }
        # Of a build without files, nothing is known to be gone.
        for name, change in section_changes(urls, before if urls else None).items()
    ]


def _display_name(file: Place) -> str:
    """Return the name of a file on the screens: its section, or "index", and its number."""
    return f"{file.section or _('index')} {file.number or ''}".rstrip()


def _file_row(file: Place, urls: Mapping[int, str]) -> dict[str, Any]:
    """Return the template row of a file; ``urls`` are the public URLs by the files' ids."""
    return {
        "file": file,
        "name": _display_name(file),
        "url": urls.get(file.pk, ""),
        "is_readable": file.status == Place.Status.DONE,
        "urls": number_text(file.urls),
        "skipped": number_or_blank(file.skipped),
    }


def _file_urls(request: HttpRequest, build: Build, files: Iterable[Place]) -> dict[int, str]:
    """Return the public URLs of files by their ids; none unless the site serves this build."""
    site = known_site_or_reason(request, build.site)[0] if build.outcome == "live" else None
    if site is None:
        return {}

    def public_urls_by_file_id() -> dict[int, str]:
        """Return the URLs of the files that are stored; raises what a section raises."""
        urls_of = cache(partial(page_address_getter, site))
        return {
            file.pk: urls_of(file.section)(file.number) if file.section else site.address("index")
            for file in files
            if file.status == Place.Status.DONE
        }

    return try_read(public_urls_by_file_id)[0] or {}
