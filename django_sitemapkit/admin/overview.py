"""The page "Sitemaps overview": what is published and due, and the buttons to build it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION
from django.core.paginator import Paginator
from django.db.models import Max, Q
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
)
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_sitemapkit.admin.base import (
    ReadOnlyAdmin,
    duration_text,
    number,
    number_or_blank,
    pause_text,
    progress_text,
    request_rows,
    request_text,
    screen,
    site_or_404,
    try_read,
)
from django_sitemapkit.admin.editor_settings import log_rows
from django_sitemapkit.admin.health.items import attention_of, items_of
from django_sitemapkit.admin.log_messages import REQUESTED
from django_sitemapkit.admin.url_counts import (
    CHART_BUILDS,
    UrlCounts,
    changes_of,
    chart_of,
    counts_of,
    section_changes,
)
from django_sitemapkit.builds import SiteStatus, status_of
from django_sitemapkit.builds.lease import cancellable_lease, living_leases
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.report.status import (
    STATES,
    build_progress,
    states_of,
    states_of_sites,
)
from django_sitemapkit.builds.requests import begin
from django_sitemapkit.builds.requests import request as record_request
from django_sitemapkit.models import Build, BuildRequest, Place
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import SitemapSite, all_sites
from django_sitemapkit.words import words_of

SITES_PER_PAGE = 50
"""Sites on a page of the list."""

RECENT_REQUESTS = 3
"""Finished requests that a site's page shows with their results."""

MAX_ID_DIGITS = 18
"""Digits of a number that fits a primary key on every database."""

RequestKind = BuildRequest.Kind

BUTTONS: dict[str, dict[str, Any]] = {
    "changed": {"kind": RequestKind.BUILD},
    "full": {"kind": RequestKind.BUILD, "full": True},
    "section": {"kind": RequestKind.BUILD},
    "check": {"kind": RequestKind.CHECK},
    "prune": {"kind": RequestKind.PRUNE},
}
"""The request of each button."""


class OverviewAdmin(ReadOnlyAdmin):
    """The views of the overview, which belong to the screens of builds."""

    def has_run_build_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may build, check and prune sitemaps."""
        return request.user.has_perm("sitemapkit.run_build")

    def has_publish_build_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may publish held and earlier builds, and pause publishing."""
        return request.user.has_perm("sitemapkit.publish_build")

    @screen("overview/", "overview", "view")
    def overview_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show the only site, the chosen one, or a list of all."""
        title = _("Sitemaps overview")
        return self.view_of_sites(request, self._show_sites, self._show_site, title)

    def view_of_sites(
        self,
        request: HttpRequest,
        show_sites: Callable[..., HttpResponse],
        show_site: Callable[..., HttpResponse],
        title: str,
    ) -> HttpResponseBase:
        """Show one site by ``show_site``, or all by ``show_sites``."""
        sites, reason = try_read(all_sites)
        key = request.GET.get("site")
        if sites is None:
            return self.overview_page(
                request, "overview/failure", {"failure": reason, "title": title}
            )
        if key is None and len(sites) != 1:
            return show_sites(request, sites)
        chosen = [site for site in sites if key in {None, site.key}]
        if not chosen:
            raise Http404(_("This site does not exist."))
        return show_site(request, chosen[0], several=len(sites) > 1)

    @screen("overview/request/", "request", "view", "run_build", methods=["POST"])
    def request_view(self, request: HttpRequest) -> HttpResponseBase:
        """Record the request of a button, start it, and redirect to the site's page."""
        site, button = site_or_404(request.POST.get("site", "")), request.POST.get("button", "")
        if button not in BUTTONS:
            raise Http404(_("This button does not exist."))
        section = request.POST.get("section", "") if button == "section" else ""
        queued = {}
        if button == "section" and section not in _section_names(site):
            text = _("Section “%(section)s” does not exist.") % {"section": section}
            messages.error(request, text)
        else:
            queued = self._record(request, site, button, section)
        return HttpResponseRedirect(self._overview_url(site, **queued))

    @screen("overview/progress/", "progress", "view")
    def progress_view(self, request: HttpRequest) -> HttpResponseBase:
        """Return the progress of a site's build as JSON."""
        site = site_or_404(request.GET.get("site", ""))
        (state,), build = states_of_sites([site]), build_progress(site)
        answer = {
            "state": state.stage,
            "text": progress_text(state, build),
            "done": build.done if build else 0,
            "total": build.total if build else 0,
        }
        return JsonResponse(answer, headers={"Cache-Control": "no-store"})

    def _overview_url(self, site: SitemapSite, **more: int) -> str:
        url = reverse(f"{self.admin_site.name}:sitemapkit_overview")
        query: dict[str, str | int] = {"site": site.key, **more}
        return f"{url}?{urlencode(query)}"

    def _record(
        self, request: HttpRequest, site: SitemapSite, button: str, section: str
    ) -> dict[str, int]:
        """Record the request of a button and start it; return the query parameters that name it."""
        before = _work_in_progress(site)
        name = request.user.get_username()
        build_request = record_request(site, by=name, section=section, **BUTTONS[button])
        log_rows(request.user.pk, [build_request], ADDITION, message=REQUESTED[button])
        begin(site, get_runner)
        queued = {"request": build_request.pk}
        return queued if before is None else {**queued, "after": before}

    def overview_page(
        self, request: HttpRequest, name: str, context: dict[str, Any]
    ) -> HttpResponse:
        """Return a page from the template ``name``, with what the pages of sites share."""
        shared = {
            "title": _("Sitemaps overview"),
            "may_build": self.has_run_build_permission(request),
            "may_publish": self.has_publish_build_permission(request),
        }
        return self.render_page(request, name, {**shared, **context})

    def page_of_sites(self, request: HttpRequest, sites: list[SitemapSite]) -> dict[str, Any]:
        """Return a page of the sites that match the search, as context of its template.

        Those whose newest build is held, or failed, come first.
        """
        query = request.GET.get("q", "").strip()
        found = [site for site in sites if query in site.key or query in site.origin + site.path]
        first = _sites_to_look_at()
        found.sort(key=lambda site: site.key not in first)
        page = Paginator(found, SITES_PER_PAGE).get_page(request.GET.get("p"))
        return {
            "page": page,
            "range": page.paginator.get_elided_page_range(page.number),
            "query": query,
            "count": ngettext("%(count)s site", "%(count)s sites", len(found))
            % {"count": number(len(found))},
        }

    def _show_sites(self, request: HttpRequest, sites: list[SitemapSite]) -> HttpResponse:
        """Show a page of the list of sites."""
        context = self.page_of_sites(request, sites)
        rows, reason = try_read(lambda: self._rows(list(context["page"].object_list)))
        return self.overview_page(
            request, "overview/sites", {**context, "rows": rows, "failure": reason}
        )

    def _rows(self, sites: Sequence[SitemapSite]) -> list[dict[str, Any]]:
        """Return a row for each site, by the same few queries for any number of them."""
        states = states_of_sites(sites)
        files = Place.objects.filter(build__in=[state.build for state in states if state.build])
        totals = {total["build"]: total for total in files.totals("build")}
        nothing = {"pages": 0, "urls": 0, "skipped": 0}
        return [
            {
                "state": state,
                "url": self._overview_url(site),
                "pages": number(totals.get(state.build, nothing)["pages"]),
                "urls": number(totals.get(state.build, nothing)["urls"]),
                "skipped": number_or_blank(totals.get(state.build, nothing)["skipped"]),
            }
            for site, state in zip(sites, states, strict=True)
        ]

    def _show_site(self, request: HttpRequest, site: SitemapSite, *, several: bool) -> HttpResponse:
        """Show one site; with ``rows`` in the query string, compare its rows too."""
        rows = "rows" in request.GET
        found, reason = try_read(lambda: _site_context(site, rows=rows))
        message, _reason = try_read(lambda: _message_of_request(site, request))
        context = {
            "site": site,
            "several": several,
            "rows_compared": rows,
            "url": self._overview_url(site),
            "failure": reason,
            "message": message,
            "attention": attention_of(items_of(request, [site])[site.key]),
            **(found or {}),
        }
        return self.overview_page(request, "overview/site", context)


def _site_context(site: SitemapSite, *, rows: bool) -> dict[str, Any]:
    """Return the template context of a site's page; all queries are made here."""
    status = status_of(site, rows=rows, export=False)
    ended = BuildRequest.objects.filter(site=site.key).exclude(ended_at=None)
    ended = ended.exclude(kind=RequestKind.COMPARE)  # The page of the changes shows it.
    live = status.publication.build if status.publication else None
    recent = _recent(site, live, [build.pk for build in status.builds])
    counts = counts_of(recent.values())
    changes = changes_of(recent.values(), counts)
    return {
        "index": site.address("index"),
        "change": changes.get(live.pk) if live else None,
        "chart": chart_of(recent.values(), counts),
        "status": status,
        "sections": _sections(status, live, counts),
        "progress": status.progress,
        "progress_text": progress_text(status, status.progress),
        "is_cancellable": bool(status.lease or status.progress)
        and cancellable_lease(site) is not None,
        "open": request_rows(status.queue),
        "ended": request_rows(ended.order_by("-ended_at", "-pk")[:RECENT_REQUESTS]),
        "missing": words_of(status.missing),
        "pause": pause_text(status.pause) if status.pause else "",
        "builds": [
            {
                "build": build,
                "status": STATES[build.state],
                "change": changes.get(build.pk),
                "duration": duration_text(build),
                "warnings": list(map(words_of, build.warnings)),
            }
            for build in status.builds
        ],
    }


def _recent(site: SitemapSite, live: Build | None, shown: Sequence[int]) -> dict[int, Build]:
    """Return the live build, those shown, and those of the chart, by id."""
    rows = Build.objects.filter(Q(pk__in=shown) | Q(published_at__isnull=False))
    rows = rows.filter(site=site.key).order_by("-pk")[: CHART_BUILDS + len(shown)]
    return {build.pk: build for build in (*rows, *([live] if live else []))}


def _sections(
    status: SiteStatus, live: Build | None, counts: dict[int | None, UrlCounts]
) -> list[dict[str, Any]]:
    """Return a row for each section of the site, and for each that the next build removes."""
    urls = {}
    if live is not None:
        urls = section_changes(counts[live.pk], counts[live.previous_id] or None)
    dues = {item.section: item for item in status.due}
    rows: list[dict[str, Any]] = [
        {
            "name": section.name,
            "built": section.built,
            "pages": number(section.pages),
            "urls": urls.get(section.name) or number(section.urls),
            "bytes": section.xml_bytes,
            "skipped": number_or_blank(section.skipped),
            "changed_at": section.changed_at,
            "due": dues.pop(section.name, None),
        }
        for section in status.sections
    ]
    index = dues.pop("", None)
    rows += [{"name": name, "gone": True, "due": item} for name, item in dues.items()]
    if index is not None:
        rows.append({"name": _("Index"), "index": True, "due": index})
    for row in rows:
        item = row["due"]
        row["why"] = _reasons_text(item.pages) if item else ""
        row["error"] = item.error if item else ""
    return rows


def _reasons_text(pages: Mapping[Reason, int]) -> str:
    """Return why sitemap files of a section are due and how many of them, as text."""
    return ", ".join(
        ngettext("%(reason)s: %(count)s file", "%(reason)s: %(count)s files", count)
        % {"reason": reason.label, "count": number(count)}
        if count
        else str(reason.label)
        for reason, count in pages.items()
    )


def _section_names(site: SitemapSite) -> list[str]:
    names, _why = try_read(lambda: [section.get_name() for section in sections_of(site)])
    return names or []


def _work_in_progress(site: SitemapSite) -> int | None:
    """Return the id of the running build, 0 for other work, or None for neither."""
    lease = living_leases([site.key]).first()
    if lease is None:
        return None
    running = Build.objects.filter(site=site.key, status=Build.Status.RUNNING, fence=lease.fence)
    return running.values_list("pk", flat=True).first() or 0


def _message_of_request(site: SitemapSite, request: HttpRequest) -> dict[str, str] | None:
    """Return the level and text of a message about the request that a query string names."""
    pk = _id(request.GET.get("request"))
    build_request = BuildRequest.objects.filter(site=site.key, pk=pk).first() if pk else None
    if build_request is None:
        return None
    who = build_request.requested_by or _("someone")
    values = {
        "request": request_text(build_request),
        "outcome": build_request.outcome_text,
        "who": who,
    }
    if build_request.failed:
        return {"level": "error", "text": _("%(request)s failed. %(outcome)s") % values}
    if build_request.ended_at is not None:
        return {"level": "success", "text": _("%(request)s finished. %(outcome)s") % values}
    text = _("%(request)s queued.") % values
    if build_request.requested_by != request.user.get_username():
        text = _("%(request)s is already queued by %(who)s. It runs only once.") % values
    start = _start_of(site, build_request, _id(request.GET.get("after")))
    return {"level": "sitemapkit-queued", "text": f"{text} {start}"}


def _start_of(site: SitemapSite, build_request: BuildRequest, after: int | None) -> str:
    """Return when a request starts that was queued while ``after`` was running."""
    earlier = BuildRequest.objects.open(site).filter(pk__lt=build_request.pk)
    if earlier.exclude(kind=RequestKind.COMPARE).exists():
        return _("It starts when the earlier requests have finished.")
    if after is None or _work_in_progress(site) != after:
        return _("It starts now.")
    if after:
        return _("It starts when build %(build)s has finished.") % {"build": after}
    return _("It starts when the work in progress has finished.")


def _id(text: str | None) -> int | None:
    """Return a query parameter as a primary key, or None if it cannot be one."""
    valid = text is not None and text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS
    return int(text or 0) if valid else None


def _sites_to_look_at() -> set[str]:
    """Return the keys of the sites whose newest build is held for review, or failed."""
    newest = Build.objects.values("site").annotate(newest=Max("pk")).values("newest")
    wanted = (Build.Status.HELD, Build.Status.FAILED)
    builds = list(Build.objects.filter(pk__in=newest, status__in=(*wanted, Build.Status.RUNNING)))
    states = states_of(builds)
    return {build.site for build in builds if states[build.pk] in wanted}
