"""The page "Sitemaps overview": what is published, what is due, and the buttons to have it done."""

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    JsonResponse,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_sitemapkit.admin.queued import message_of_request, work_in_progress
from django_sitemapkit.admin.wording import (
    known_site,
    number,
    reasons,
    request_text,
    told,
    unless_none,
)
from django_sitemapkit.builds import SiteStatus, status_of
from django_sitemapkit.builds.manifests import held_build, primary
from django_sitemapkit.builds.progress import SiteProgress, glances_of, progress_of
from django_sitemapkit.builds.requests import begin
from django_sitemapkit.builds.requests import request as record_request
from django_sitemapkit.models import Build, BuildRequest
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import Site, all_sites

if TYPE_CHECKING:
    from django_sitemapkit.admin.builds import BuildAdmin

SITES_PER_PAGE = 50
"""Sites in the list, where there are several."""

SHOWN_REQUESTS = 5
"""The last requests a site's page shows, with what they came to."""

Kind = BuildRequest.Kind

ASKED: dict[str, dict[str, Any]] = {
    "changed": {"kind": Kind.BUILD},
    "full": {"kind": Kind.BUILD, "full": True},
    "section": {"kind": Kind.BUILD},
    "check": {"kind": Kind.CHECK},
    "prune": {"kind": Kind.PRUNE},
}
"""What the buttons ask for."""


class Overview:
    """The views of the overview; they belong to the builds' admin."""

    def __init__(self, model_admin: "BuildAdmin") -> None:
        self.admin = model_admin

    def urls(self) -> list[URLPattern]:
        """Return the addresses of the views."""
        wrap = self.admin.admin_site.admin_view
        return [
            path("overview/", wrap(self.show), name="sitemapkit_overview"),
            path("overview/ask/", wrap(self.ask), name="sitemapkit_ask"),
            path("overview/progress/", wrap(self.progress), name="sitemapkit_progress"),
        ]

    # The views

    def show(self, request: HttpRequest) -> HttpResponseBase:
        """Show the one site, the one that is chosen, or all at a glance."""
        self._require_view(request)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        sites, why = told(all_sites)
        key = request.GET.get("site")
        if sites is None:
            return self._page(request, "failure", {"failure": why})
        if key is None and len(sites) != 1:
            return self._show_sites(request, sites)
        chosen = [site for site in sites if key in {None, site.key}]
        if not chosen:
            raise Http404(_("There is no such site."))
        return self._show_site(request, chosen[0], several=len(sites) > 1)

    def ask(self, request: HttpRequest) -> HttpResponseBase:
        """Record what is asked for, have it begun, and go back to the site's page."""
        self._require_view(request)
        if not self.admin.has_build_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        site, why = known_site(request.POST.get("site", ""))
        what = request.POST.get("what", "")
        if site is None or what not in ASKED:
            raise Http404(why or _("There is no such button."))
        section = request.POST.get("section", "") if what == "section" else ""
        queued = {}
        if what == "section" and section not in _section_names(site):
            text = _("There is no section “%(section)s” any more.") % {"section": section}
            messages.error(request, text)
        else:
            queued = self._record(request, site, section=section, **ASKED[what])
        return HttpResponseRedirect(self._address(site, **queued))

    def progress(self, request: HttpRequest) -> HttpResponseBase:
        """Return as JSON how far the build of a site is."""
        self._require_view(request)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        site, why = known_site(request.GET.get("site", ""))
        if site is None:
            raise Http404(why)
        progress = progress_of(site)
        answer = {
            "state": progress.state,
            "text": _progress_text(progress),
            "done": progress.done,
            "total": progress.total,
        }
        return JsonResponse(answer, headers={"Cache-Control": "no-store"})

    # Their parts

    def _require_view(self, request: HttpRequest) -> None:
        if not self.admin.has_view_permission(request):
            raise PermissionDenied

    def _address(self, site: Site, **more: int) -> str:
        address = reverse(f"{self.admin.admin_site.name}:sitemapkit_overview")
        query: dict[str, str | int] = {"site": site.key, **more}
        return f"{address}?{urlencode(query)}"

    def _record(self, request: HttpRequest, site: Site, **asked_for: Any) -> dict[str, int]:
        """Record a request and have it begun; return what the page is told of it."""
        before = work_in_progress(site)
        asked = record_request(site, by=request.user.get_username(), **asked_for)
        begin(site, get_runner)
        queued = {"request": asked.pk}
        return queued if before is None else {**queued, "after": before}

    def _page(self, request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
        several = context.get("several", False)
        return TemplateResponse(
            request,
            f"admin/sitemapkit/overview/{name}.html",
            {
                **self.admin.admin_site.each_context(request),
                "title": _("Sitemaps overview"),
                "opts": self.admin.opts,
                "several": several,
                "may_build": self.admin.has_build_permission(request),
                **context,
            },
        )

    def _show_sites(self, request: HttpRequest, sites: list[Site]) -> HttpResponse:
        """Show many sites, a page at a time."""
        wanted = request.GET.get("q", "").strip()
        found = [site for site in sites if wanted in site.key or wanted in site.origin + site.path]
        page = Paginator(found, SITES_PER_PAGE).get_page(request.GET.get("p"))
        glances, why = told(lambda: glances_of(list(page.object_list)))
        rows = [
            {
                "glance": glance,
                "address": self._address(glance.site),
                "pages": number(glance.pages),
                "urls": number(glance.urls),
                "skipped": unless_none(glance.skipped),
            }
            for glance in glances or ()
        ]
        context = {
            "rows": rows,
            "page": page,
            "range": page.paginator.get_elided_page_range(page.number),
            "wanted": wanted,
            "failure": why,
            "count": ngettext("%(count)s site", "%(count)s sites", len(found))
            % {"count": number(len(found))},
        }
        return self._page(request, "sites", context)

    def _show_site(self, request: HttpRequest, site: Site, *, several: bool) -> HttpResponse:
        """Show one site; with ``rows`` in the address, its rows are looked at too."""
        rows = "rows" in request.GET
        found, why = told(lambda: _site_context(site, rows=rows))
        message, _why = told(lambda: message_of_request(site, request))
        context = {
            "site": site,
            "several": several,
            "looked_at_rows": rows,
            "address": self._address(site),
            "failure": why,
            "message": message,
            **(found or {}),
        }
        return self._page(request, "site", context)


def _site_context(site: Site, *, rows: bool) -> dict[str, Any]:
    """Return all that a site's page shows; every query is made here."""
    status = status_of(site, rows=rows, export=False)
    progress = progress_of(site)
    ended = primary(BuildRequest).filter(site=site.key).exclude(ended_at=None)
    return {
        "status": status,
        "published_at": _moment(status.published_at),
        "checked_at": _moment(status.checked_at),
        "sections": _sections(status),
        "progress": progress,
        "progress_text": _progress_text(progress),
        "open": [_asked(asked) for asked in progress.requests],
        "ended": [_asked(asked) for asked in ended.order_by("-ended_at", "-pk")[:SHOWN_REQUESTS]],
        "held": held_build(site),
        "builds": [
            {
                "build": build,
                "status": Build.Status(build.status).label,
                "started_at": _moment(build.started_at),
            }
            for build in status.builds
        ],
    }


def _asked(asked: BuildRequest) -> dict[str, Any]:
    return {"request": asked, "what": request_text(asked)}


def _sections(status: SiteStatus) -> list[dict[str, Any]]:
    """Return a row for each section the site has, and for each that goes with the next build."""
    dues = {item.section: item for item in status.due}
    rows: list[dict[str, Any]] = [
        {
            "name": section.name,
            "built": section.built,
            "pages": number(section.pages),
            "urls": number(section.urls),
            "bytes": section.bytes,
            "skipped": unless_none(section.skipped),
            "changed_at": _moment(section.changed_at),
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
        row["why"] = reasons(item.pages) if item else ""
        row["error"] = item.error if item else ""
    return rows


def _section_names(site: Site) -> list[str]:
    names, _why = told(lambda: [section.get_name() for section in sections_of(site)])
    return names or []


def _progress_text(progress: SiteProgress) -> str:
    """Return how far it is, in a few words."""
    if progress.running and progress.build is not None:
        text = _("Build %(build)s: %(done)s of %(total)s files.")
        return text % {
            "build": progress.build.pk,
            "done": number(progress.done),
            "total": number(progress.total),
        }
    if progress.running:
        return _("The pages are being planned, or files cleared away.")
    if progress.requests:
        return _("Nobody builds at the moment. What is open is begun in the background.")
    if progress.build is not None:
        text = _("Build %(build)s was left unfinished: the next build goes on with it.")
        return text % {"build": progress.build.pk}
    return _("Nothing is going on.")


def _moment(text: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if text else None
