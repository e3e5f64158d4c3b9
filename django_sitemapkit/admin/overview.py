"""The pages of sites: "Sitemaps overview", with the buttons to build, and "Health"."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION
from django.db.models import Q
from django.http import (
    Http404,
    HttpRequest,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
)
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_sitemapkit.admin.activity import REQUEST_STARTED, edit_counts_context, log_rows
from django_sitemapkit.admin.base import (
    BaseAdmin,
    duration_text,
    id_or_none,
    number_or_blank,
    number_text,
    paged_context,
    pause_text,
    progress_text,
    request_rows,
    request_text,
    screen,
)
from django_sitemapkit.admin.differences import chart_context
from django_sitemapkit.admin.health import (
    attention_context,
    items_by_site,
    newest_first,
    sources,
)
from django_sitemapkit.admin.health.builds import STATES_READ, current_items, newest_builds
from django_sitemapkit.admin.sections import SECTIONS_PER_PAGE
from django_sitemapkit.builds import SiteStatus, prune, status_of
from django_sitemapkit.builds.lease import cancellable_lease, living_leases
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.report.differences import UrlChange
from django_sitemapkit.builds.report.status import (
    STATES,
    build_progress,
    states_of_sites,
)
from django_sitemapkit.builds.requests import record_request, start_processing_on_commit
from django_sitemapkit.inspection import try_read
from django_sitemapkit.models import Build, BuildRequest, Place, StoredPage
from django_sitemapkit.overrides import section_of
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import SitemapSite, all_sites
from django_sitemapkit.words import code_of, words_of

SITES_PER_PAGE = 50
"""Sites on a page of the list."""

RECENT_REQUESTS = 3
"""Finished requests that a site's page shows with their results."""

RequestKind = BuildRequest.Kind

BUTTONS: dict[str, dict[str, Any]] = {
    "changed": {"kind": RequestKind.BUILD},
    "full": {"kind": RequestKind.BUILD, "full": True},
    "section": {"kind": RequestKind.BUILD},
    "check": {"kind": RequestKind.CHECK},
    "preview": {"kind": RequestKind.PREVIEW},
    "prune": {"kind": RequestKind.PRUNE},
}
"""The request of each button."""


@screen("", "overview", "view")
def overview_view(model_admin: BaseAdmin, request: HttpRequest) -> HttpResponseBase:
    """Show the overview of the only or chosen site, or a list of all sites."""
    return _render_site_or_list(
        model_admin,
        request,
        "overview",
        title=_("Sitemaps overview"),
        site_context=partial(_overview_context, model_admin, request),
        list_context=partial(_overview_list_context, model_admin),
    )


@screen("health/", "health", "view")
def health_view(model_admin: BaseAdmin, request: HttpRequest) -> HttpResponseBase:
    """Show the health of the only or chosen site, or a list of all sites."""
    return _render_site_or_list(
        model_admin,
        request,
        "health",
        title=_("Health"),
        site_context=partial(_health_context, request),
        list_context=partial(_health_list_context, model_admin, request),
    )


def _render_site_or_list(
    model_admin: BaseAdmin,
    request: HttpRequest,
    folder: str,
    *,
    title: str,
    site_context: Callable[[SitemapSite], dict[str, Any]],
    list_context: Callable[[Sequence[SitemapSite]], dict[str, Any]],
) -> HttpResponseBase:
    """Return the response about the only or chosen site, or else with a page of the list of sites.

    The templates are in ``folder``. ``site_context`` returns the context of a site,
    ``list_context`` that of the sites on a page of the list.
    """
    sites, failure = try_read(all_sites)
    key = request.GET.get("site")
    if sites is None:
        return model_admin.render_page(request, "overview/failure", title=title, failure=failure)
    if key is None and len(sites) != 1:
        context = _site_page_context(request, sites)
        context |= list_context(list(context["page"].object_list))
        return model_admin.render_page(request, f"{folder}/sites", title=title, **context)
    site = next((site for site in sites if key in {None, site.key}), None)
    if site is None:
        raise Http404(_("This site does not exist."))
    context = {"site": site, "several": len(sites) > 1, **site_context(site)}
    return model_admin.render_page(request, f"{folder}/site", title=title, **context)


def _site_page_context(request: HttpRequest, sites: list[SitemapSite]) -> dict[str, Any]:
    """Return a page of the sites that match the search, as context of the list of sites.

    Sites whose newest build failed or is held for review come first.
    """
    query = request.GET.get("q", "").strip()
    found = [site for site in sites if query in site.key or query in site.origin + site.path]
    wanted = (Build.Status.HELD, Build.Status.FAILED)
    newest = newest_builds(Build.objects.all(), *wanted, Build.Status.RUNNING)
    first = {build.site for build, state in newest if state in wanted}
    found.sort(key=lambda site: site.key not in first)
    return {
        **paged_context(request, found, SITES_PER_PAGE),
        "query": query,
        "count": ngettext("%(count)s site", "%(count)s sites", len(found))
        % {"count": number_text(len(found))},
    }


def _overview_list_context(model_admin: BaseAdmin, sites: Sequence[SitemapSite]) -> dict[str, Any]:
    """Return a template row for each site, or why that cannot be read."""
    rows, failure = try_read(lambda: list(_overview_rows(model_admin, sites)))
    return {"rows": rows, "failure": failure}


def _overview_rows(
    model_admin: BaseAdmin, sites: Sequence[SitemapSite]
) -> Iterator[dict[str, Any]]:
    """Yield a template row with the published files of each site.

    The number of queries does not depend on the number of sites.
    """
    states = states_of_sites(sites)
    files = Place.objects.filter(build__in=[state.build for state in states if state.build])
    totals = {total["build"]: total for total in files.totals("build")}
    for state in states:
        total = totals.get(state.build, {"pages": 0, "urls": 0, "skipped": 0})
        yield {
            "state": state,
            "url": model_admin.screen_url("overview", site=state.site),
            "pages": number_text(total["pages"]),
            "urls": number_text(total["urls"]),
            "skipped": number_or_blank(total["skipped"]),
        }


@screen(
    "request/",
    "request",
    *("view", "sitemapkit.run_build"),
    methods=["POST"],
    needs_site=True,
)
def request_view(
    model_admin: BaseAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Record the build request of a button, start it, and redirect to the site's overview.

    The button that deletes old files first asks for confirmation.
    """
    button = request.POST.get("button", "")
    if button not in BUTTONS:
        raise Http404(_("This button does not exist."))
    if button == "prune" and "confirmed" not in request.POST:
        return _confirm_pruning(model_admin, request, site)
    section = request.POST.get("section", "") if button == "section" else ""
    if button == "section" and try_read(lambda: section_of(site, section))[0] is None:
        messages.error(request, _("Section “%(section)s” does not exist.") % {"section": section})
        return HttpResponseRedirect(model_admin.screen_url("overview", site=site.key))
    build_request = record_request(
        site, by=request.user.get_username(), section=section, **BUTTONS[button]
    )
    log_rows(request.user.pk, [build_request], ADDITION, message=REQUEST_STARTED[button])
    start_processing_on_commit(site, get_runner)
    return HttpResponseRedirect(
        model_admin.screen_url("overview", site=site.key, request=build_request.pk)
    )


def _confirm_pruning(
    model_admin: BaseAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Return a page that asks whether to delete old files: how many, and how large they are."""
    pruned, failure = try_read(lambda: prune(site, dry_run=True))
    sizes = dict(StoredPage.objects.filter(site=site.key).values_list("name", "stored_bytes"))
    return model_admin.render_page(
        request,
        "overview/prune",
        title=_("Delete old files?"),
        site=site,
        overview_url=model_admin.screen_url("overview", site=site.key),
        pruned=pruned,
        failure=failure,
        size=sum(sizes.get(name, 0) for name in (pruned.files if pruned else ())),
    )


@screen("progress/", "progress", "view", needs_site=True)
def progress_view(
    model_admin: BaseAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Return the state of a site and the progress of its build as JSON."""
    (state,), build = states_of_sites([site]), build_progress(site)
    return JsonResponse(
        {
            "state": state.stage,
            "text": progress_text(state, build),
            "done": build.done if build else 0,
            "total": build.total if build else 0,
        },
        headers={"Cache-Control": "no-store"},
    )


def _overview_context(
    model_admin: BaseAdmin, request: HttpRequest, site: SitemapSite
) -> dict[str, Any]:
    """Return the context of a site's overview: its status, what needs attention, and a message."""
    found, failure = try_read(lambda: _status_context(request, site))
    if found is not None:
        setattr(request, STATES_READ, [found["status"]])
    message, _reason = try_read(lambda: _request_message(site, request))
    return {
        "url": model_admin.screen_url("overview", site=site.key),
        "failure": failure,
        "message": message,
        **_level_context(found, attention_context(items_by_site(request, [site])[site.key])),
        **(found or {}),
    }


def _level_context(context: dict[str, Any] | None, attention: dict[str, Any]) -> dict[str, Any]:
    """Return what needs attention, the worst first, and the level of the whole site.

    The level is "error", "warning" or "ok". ``context`` is that of the site's status; None if it
    cannot be read.
    """
    attention["items"].sort(key=lambda item: item.level)  # Of a level, the newest stay first.
    status = context and context["status"]
    if attention["errors"] or (status and status.missing):
        return {"attention": attention, "level": "error"}
    is_calm = status and status.build and not attention["warnings"]
    return {"attention": attention, "level": "ok" if is_calm else "warning"}


def _health_list_context(
    model_admin: BaseAdmin, request: HttpRequest, sites: Sequence[SitemapSite]
) -> dict[str, Any]:
    """Return a template row for each site, with its numbers of errors and warnings."""
    rows = []
    for site, items in zip(sites, items_by_site(request, sites).values(), strict=True):
        attention = attention_context(items)
        rows.append(
            {
                "site": site,
                "url": model_admin.screen_url("health", site=site.key),
                "errors": number_or_blank(attention["errors"]),
                "warnings": number_or_blank(attention["warnings"]),
                "newest": next(iter(attention["items"]), None),
            }
        )
    return {"rows": rows}


def _health_context(request: HttpRequest, site: SitemapSite) -> dict[str, Any]:
    """Return the context of a site's health: its items, grouped by what found them and when.

    The group with the worst item comes first; of equal ones, the newest.
    """
    items = newest_first([*items_by_site(request, [site])[site.key], *current_items(site)])
    looks = groupby(
        items, key=lambda item: (item.found_at.replace(second=0, microsecond=0), str(item.found_by))
    )
    return {
        "looks": sorted((list(found) for _look, found in looks), key=lambda look: look[0].level),
        "attention": attention_context(items),
        "sources": sources,
    }


def _status_context(request: HttpRequest, site: SitemapSite) -> dict[str, Any]:
    """Return the context of a site's status: sections, builds, requests, progress, and a chart."""
    status = status_of(site, rows=False, export=False)
    # The page of the changes shows comparisons.
    ended = BuildRequest.objects.filter(site=site.key).exclude(
        Q(ended_at=None) | Q(kind=RequestKind.COMPARE)
    )
    sections = _section_rows(status)
    columns = {name: any(row.get(name) for row in sections) for name in ("change", "problems")}
    return {
        "index": site.address("index"),
        "change": status.change if status.build else None,
        "edits": edit_counts_context(request, status.build, status.held) if status.build else None,
        "chart": chart_context(site),
        "headline": words_of(status.headline),
        "files": number_text(status.files),
        "problems": number_or_blank(status.problems),
        "status": status,
        "served_live": ", ".join(
            section.name
            for section in status.sections
            if code_of(status.headline) == "live" and section.served_live
        ),
        **paged_context(request, sections, SECTIONS_PER_PAGE),
        # Optional columns that have a value, and how many the row of an unbuilt section spans.
        "columns": {
            **columns,
            "started_by": any(build.started_by for build in status.builds),
            "width": 4 + sum(columns.values()),
        },
        "progress": status.progress,
        "progress_text": progress_text(status, status.progress),
        "is_cancellable": bool(status.lease or status.progress)
        and cancellable_lease(site) is not None,
        # One that runs has no key any more; without a process, it waits for the next.
        "open": request_rows(row for row in status.queue if row.dedup_key or not status.is_running),
        "ended": request_rows(
            ended.select_related("build").order_by("-ended_at", "-pk")[:RECENT_REQUESTS]
        ),
        "missing": words_of(status.missing),
        "pause": pause_text(status.pause) if status.pause else "",
        "builds": [
            {
                "build": build,
                "status": STATES[build.state],
                "change": None if build.urls is None else UrlChange(build.urls, build.urls_before),
                "files": "" if build.files is None else number_text(build.files),
                "duration": duration_text(build),
                "warnings": list(map(words_of, build.warnings)),
            }
            for build in status.builds
        ],
    }


def _section_rows(status: SiteStatus) -> list[dict[str, Any]]:
    """Return a template row for each section of a site, also those switched off, and for the index.

    A row has the files that are due in the next build, and why.
    """
    dues = {item.section: item for item in status.due}
    rows: list[dict[str, Any]] = [
        {
            "name": section.name,
            "section": section,
            "off": section.name in status.switched_off,
            "pages": number_text(section.pages),
            "urls": section.change,
            "change": section.change.text,
            "problems": number_or_blank(section.problems),
            "due": dues.pop(section.name, None),
        }
        for section in status.sections
    ]
    known = {row["name"] for row in rows}
    rows += [{"name": name, "off": True} for name in status.switched_off if name not in known]
    if index := dues.pop("", None):
        rows.append({"name": _("Index"), "index": True, "due": index})
    for row in rows:
        row["why"] = _reasons_text(row["due"].pages) if row.get("due") else ""
    return rows


def _reasons_text(pages: Mapping[Reason, int]) -> str:
    """Return the reasons why files are due, each with its number of files, as text."""
    return ", ".join(
        ngettext("%(reason)s: %(count)s file", "%(reason)s: %(count)s files", count)
        % {"reason": reason.label, "count": number_text(count)}
        if count
        else str(reason.label)
        for reason, count in pages.items()
    )


def _request_message(site: SitemapSite, request: HttpRequest) -> dict[str, Any] | None:
    """Return a message on the build request that ``?request`` names; None without one.

    It is a dict of level and text; for a request that has finished, also its build.
    """
    pk = id_or_none(request.GET.get("request"))
    build_request = BuildRequest.objects.filter(site=site.key, pk=pk).first() if pk else None
    if build_request is None:
        return None
    values = {
        "request": request_text(build_request),
        "outcome": build_request.outcome_text,
        "who": build_request.requested_by or _("someone"),
    }
    if build_request.failed:
        return {"level": "error", "text": _("%(request)s failed. %(outcome)s") % values}
    if build_request.ended_at is not None:
        return {
            "level": "success",
            "text": _("%(request)s finished. %(outcome)s") % values,
            "build": build_request.build,
        }
    text = _("%(request)s queued.") % values
    if build_request.requested_by != request.user.get_username():
        text = _("%(request)s is already queued by %(who)s. It runs only once.") % values
    return {"level": "sitemapkit-queued", "text": f"{text} {_start_text(site, build_request)}"}


def _start_text(site: SitemapSite, build_request: BuildRequest) -> str:
    """Return a sentence that says when a queued request starts: now, or after what."""
    earlier = BuildRequest.objects.open(site).filter(pk__lt=build_request.pk)
    if earlier.exclude(kind=RequestKind.COMPARE).exists():
        return _("It starts when the earlier requests have finished.")
    if living_leases([site.key]).filter(acquired_at__lte=build_request.requested_at).exists():
        return _("It starts when the work in progress has finished.")
    return _("It starts now.")
