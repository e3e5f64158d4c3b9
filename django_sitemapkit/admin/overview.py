"""The pages of sites: "Sitemaps overview", with the buttons to build, and "Health"."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION
from django.db.models import Max, Q
from django.db.models.functions import Coalesce
from django.http import (
    Http404,
    HttpRequest,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
)
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_sitemapkit.admin.activity import edits_since
from django_sitemapkit.admin.base import (
    CheckedListAdmin,
    duration_text,
    id_or_none,
    number,
    number_or_blank,
    paged_context,
    pause_text,
    progress_text,
    request_rows,
    request_text,
    screen,
)
from django_sitemapkit.admin.health.builds import STATES_READ, live_items
from django_sitemapkit.admin.health.items import (
    attention_context,
    items_by_site,
    newest_first,
    sources,
)
from django_sitemapkit.admin.history import REQUEST_STARTED, log_rows
from django_sitemapkit.admin.sections import SECTIONS_PER_PAGE
from django_sitemapkit.admin.url_counts import (
    CHART_BUILDS,
    chart_context,
    url_counts_by_build,
)
from django_sitemapkit.builds import SiteStatus, prune, status_of
from django_sitemapkit.builds.lease import cancellable_lease, living_leases
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.report.changes import UrlChange
from django_sitemapkit.builds.report.status import (
    STATES,
    build_progress,
    states_by_build,
    states_of_sites,
)
from django_sitemapkit.builds.requests import process_on_commit, record_request
from django_sitemapkit.inspection.attempts import try_read
from django_sitemapkit.models import Build, BuildRequest, Place, StoredPage
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import SitemapSite, all_sites
from django_sitemapkit.words import words_of

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
def overview_view(model_admin: CheckedListAdmin, request: HttpRequest) -> HttpResponseBase:
    """Show the only site, the chosen one, or a list of all."""
    return _sites_screen(
        model_admin,
        request,
        "overview",
        title=_("Sitemaps overview"),
        of_site=partial(_site_context, model_admin, request),
        of_sites=partial(_sites_context, model_admin),
    )


@screen("health/", "health", "view")
def health_view(model_admin: CheckedListAdmin, request: HttpRequest) -> HttpResponseBase:
    """Show the only site, the chosen one, or a list of all."""
    return _sites_screen(
        model_admin,
        request,
        "health",
        title=_("Health"),
        of_site=partial(_health_context, request),
        of_sites=partial(_health_list_context, model_admin, request),
    )


def _sites_screen(
    model_admin: CheckedListAdmin,
    request: HttpRequest,
    folder: str,
    *,
    title: str,
    of_site: Callable[[SitemapSite], dict[str, Any]],
    of_sites: Callable[[Sequence[SitemapSite]], dict[str, Any]],
) -> HttpResponseBase:
    """Show one site, or a page of the list of all, from the templates in ``folder``.

    ``of_site`` and ``of_sites`` return the context of one site, and of those of a page.
    """
    sites, failure = try_read(all_sites)
    key = request.GET.get("site")
    if sites is None:
        return model_admin.render_page(request, "overview/failure", title=title, failure=failure)
    if key is None and len(sites) != 1:
        context = _site_list_context(request, sites)
        context |= of_sites(list(context["page"].object_list))
        return model_admin.render_page(request, f"{folder}/sites", title=title, **context)
    site = next((site for site in sites if key in {None, site.key}), None)
    if site is None:
        raise Http404(_("This site does not exist."))
    context = {"site": site, "several": len(sites) > 1, **of_site(site)}
    return model_admin.render_page(request, f"{folder}/site", title=title, **context)


def _site_list_context(request: HttpRequest, sites: list[SitemapSite]) -> dict[str, Any]:
    """Return a page of the sites that match the search, as context of its template.

    Those whose newest build is held, or failed, come first.
    """
    query = request.GET.get("q", "").strip()
    found = [site for site in sites if query in site.key or query in site.origin + site.path]
    first = _sites_to_look_at()
    found.sort(key=lambda site: site.key not in first)
    return {
        **paged_context(request, found, SITES_PER_PAGE),
        "query": query,
        "count": ngettext("%(count)s site", "%(count)s sites", len(found))
        % {"count": number(len(found))},
    }


def _sites_context(model_admin: CheckedListAdmin, sites: Sequence[SitemapSite]) -> dict[str, Any]:
    """Return a row for each site, by the same few queries for any number of them."""

    def read() -> list[dict[str, Any]]:
        states = states_of_sites(sites)
        files = Place.objects.filter(build__in=[state.build for state in states if state.build])
        totals = {total["build"]: total for total in files.totals("build")}
        nothing = {"pages": 0, "urls": 0, "skipped": 0}
        return [
            {
                "state": state,
                "url": overview_url(model_admin, state.site),
                "pages": number(totals.get(state.build, nothing)["pages"]),
                "urls": number(totals.get(state.build, nothing)["urls"]),
                "skipped": number_or_blank(totals.get(state.build, nothing)["skipped"]),
            }
            for state in states
        ]

    rows, failure = try_read(read)
    return {"rows": rows, "failure": failure}


@screen(
    "request/",
    "request",
    *("view", "sitemapkit.run_build"),
    methods=["POST"],
    of_site=True,
)
def request_view(
    model_admin: CheckedListAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Record the request of a button, start it, and redirect to the site's page.

    Before old files are deleted, ask for confirmation.
    """
    button = request.POST.get("button", "")
    if button not in BUTTONS:
        raise Http404(_("This button does not exist."))
    if button == "prune" and "confirmed" not in request.POST:
        return _confirm_pruning(model_admin, request, site)
    section = request.POST.get("section", "") if button == "section" else ""
    names, _why = try_read(lambda: [each.get_name() for each in sections_of(site)])
    if button == "section" and section not in (names or ()):
        messages.error(request, _("Section “%(section)s” does not exist.") % {"section": section})
        return HttpResponseRedirect(overview_url(model_admin, site.key))
    build_request = record_request(
        site, by=request.user.get_username(), section=section, **BUTTONS[button]
    )
    log_rows(request.user.pk, [build_request], ADDITION, message=REQUEST_STARTED[button])
    process_on_commit(site, get_runner)
    return HttpResponseRedirect(overview_url(model_admin, site.key, request=build_request.pk))


def _confirm_pruning(
    model_admin: CheckedListAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Show how many files would be deleted, and how large they are, and ask for confirmation."""
    pruned, failure = try_read(lambda: prune(site, dry_run=True))
    sizes = dict(StoredPage.objects.filter(site=site.key).values_list("name", "stored_bytes"))
    return model_admin.render_page(
        request,
        "overview/prune",
        title=_("Delete old files?"),
        site=site,
        overview_url=overview_url(model_admin, site.key),
        pruned=pruned,
        failure=failure,
        size=sum(sizes.get(name, 0) for name in (pruned.files if pruned else ())),
    )


@screen("progress/", "progress", "view", of_site=True)
def progress_view(
    model_admin: CheckedListAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Return the progress of a site's build as JSON."""
    (state,), build = states_of_sites([site]), build_progress(site)
    answer = {
        "state": state.stage,
        "text": progress_text(state, build),
        "done": build.done if build else 0,
        "total": build.total if build else 0,
    }
    return JsonResponse(answer, headers={"Cache-Control": "no-store"})


def overview_url(model_admin: CheckedListAdmin, site: str, **query: int) -> str:
    """Return the address of the page of the site with this key."""
    return model_admin.screen_url("overview", site=site, **query)


def _site_context(
    model_admin: CheckedListAdmin, request: HttpRequest, site: SitemapSite
) -> dict[str, Any]:
    """Return the context of a site's page."""
    found, failure = try_read(lambda: _status_context(request, site))
    if found is not None:
        setattr(request, STATES_READ, [found["status"]])
    message, _reason = try_read(lambda: _message_of_request(site, request))
    return {
        "url": overview_url(model_admin, site.key),
        "failure": failure,
        "message": message,
        **_level_context(found, attention_context(items_by_site(request, [site])[site.key])),
        **(found or {}),
    }


def _level_context(found: dict[str, Any] | None, attention: dict[str, Any]) -> dict[str, Any]:
    """Return what needs attention, the worst first, and the level of the whole site."""
    attention["items"].sort(key=lambda item: item.level)  # Of a level, the newest stay first.
    status = found and found["status"]
    if attention["errors"] or (status and status.missing):
        return {"attention": attention, "level": "error"}
    is_calm = status and status.build and not attention["warnings"]
    return {"attention": attention, "level": "ok" if is_calm else "warning"}


def _health_list_context(
    model_admin: CheckedListAdmin, request: HttpRequest, sites: Sequence[SitemapSite]
) -> dict[str, Any]:
    """Return a row for each site, with how much it needs attention."""
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
    """Return the context of a site's health: its items, by the build or audit that found them.

    The group with the gravest item comes first; of equal ones, the newest.
    """
    items = newest_first([*items_by_site(request, [site])[site.key], *live_items(site)])
    looks = groupby(
        items, key=lambda item: (item.found_at.replace(second=0, microsecond=0), str(item.found_by))
    )
    return {
        "looks": sorted((list(found) for _look, found in looks), key=lambda look: look[0].level),
        "attention": attention_context(items),
        "sources": sources,
    }


def _status_context(request: HttpRequest, site: SitemapSite) -> dict[str, Any]:
    """Return the template context of a site's page; all queries are made here."""
    status = status_of(site, rows=False, export=False)
    # The page of the changes shows comparisons.
    ended = BuildRequest.objects.filter(site=site.key).exclude(
        Q(ended_at=None) | Q(kind=RequestKind.COMPARE)
    )
    recent = _chart_builds(site)
    sections = _section_rows(status)
    return {
        "index": site.address("index"),
        "change": status.change if status.build else None,
        "edits": edits_since(request, status.build, status.held) if status.build else None,
        "chart": chart_context(recent, url_counts_by_build(build.pk for build in recent)),
        "headline": words_of(status.headline),
        "files": number(status.files),
        "problems": number_or_blank(status.problems),
        "status": status,
        "served_live": ", ".join(
            section.name for section in status.sections if status.build and section.served_live
        ),
        **paged_context(request, sections, SECTIONS_PER_PAGE),
        "columns": _columns_context(sections, status.builds),
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
                "files": "" if build.files is None else number(build.files),
                "duration": duration_text(build),
                "warnings": list(map(words_of, build.warnings)),
            }
            for build in status.builds
        ],
    }


def _chart_builds(site: SitemapSite) -> list[Build]:
    """Return the builds of the chart; those that went live or ended last come first."""
    whole = Q(published_at__isnull=False) | Q(status=Build.Status.HELD)
    found = Build.objects.filter(whole, site=site.key)
    return list(found.order_by(Coalesce("published_at", "ended_at").desc())[:CHART_BUILDS])


def _columns_context(
    sections: Sequence[Mapping[str, Any]], builds: Sequence[Any]
) -> dict[str, Any]:
    """Return which columns say anything, and how many stand between a section and what is due."""
    shown = {name: any(row.get(name) for row in sections) for name in ("change", "problems")}
    return {
        **shown,
        "started_by": any(build.started_by for build in builds),
        "width": 4 + sum(shown.values()),
    }


def _section_rows(status: SiteStatus) -> list[dict[str, Any]]:
    """Return a row for each section of the site, switched off or not, and that a build removes."""
    dues = {item.section: item for item in status.due}
    rows: list[dict[str, Any]] = [
        {
            "name": section.name,
            "section": section,
            "off": section.name in status.switched_off,
            "pages": number(section.pages),
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
    """Return why sitemap files of a section are due and how many of them, as text."""
    return ", ".join(
        ngettext("%(reason)s: %(count)s file", "%(reason)s: %(count)s files", count)
        % {"reason": reason.label, "count": number(count)}
        if count
        else str(reason.label)
        for reason, count in pages.items()
    )


def _message_of_request(site: SitemapSite, request: HttpRequest) -> dict[str, Any] | None:
    """Return level and text of a message on the request in the query string; None without one.

    Of one that finished, the message has the build, whose changes it links.
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
    """Return when a request starts: after earlier requests, and after what ran when it was made."""
    earlier = BuildRequest.objects.open(site).filter(pk__lt=build_request.pk)
    if earlier.exclude(kind=RequestKind.COMPARE).exists():
        return _("It starts when the earlier requests have finished.")
    if living_leases([site.key]).filter(acquired_at__lte=build_request.requested_at).exists():
        return _("It starts when the work in progress has finished.")
    return _("It starts now.")


def _sites_to_look_at() -> set[str]:
    """Return the keys of the sites whose newest build is held for review, or failed."""
    newest = Build.objects.values("site").annotate(newest=Max("pk")).values("newest")
    wanted = (Build.Status.HELD, Build.Status.FAILED)
    builds = list(Build.objects.filter(pk__in=newest, status__in=(*wanted, Build.Status.RUNNING)))
    states = states_by_build(builds)
    return {build.site for build in builds if states[build.pk] in wanted}
