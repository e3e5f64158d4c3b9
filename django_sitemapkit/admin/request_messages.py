"""The overview's message about a request: queued, done, or failed."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_sitemapkit.admin.display import request_text
from django_sitemapkit.builds.report.status import is_being_built
from django_sitemapkit.models import Build, BuildRequest
from django_sitemapkit.sites import SitemapSite

MAX_ID_DIGITS = 18
"""Digits of a number that fits a primary key on every database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMessage:
    """A message about a request."""

    level: str
    """The class of the message: "sitemapkit-queued", "success" or "error"."""
    text: str
    """The request and its state."""


def work_in_progress(site: SitemapSite) -> int | None:
    """Return the id of the running build, 0 for other work, or None for neither."""
    if not is_being_built(site):
        return None
    running = Build.objects.filter(site=site.key, status=Build.Status.RUNNING)
    return running.order_by("-pk").values_list("pk", flat=True).first() or 0


def message_of_request(site: SitemapSite, request: HttpRequest) -> RequestMessage | None:
    """Return the message about the request that a query string names, or None."""
    pk = _id(request.GET.get("request"))
    build_request = BuildRequest.objects.filter(site=site.key, pk=pk).first() if pk else None
    if build_request is None:
        return None
    who = build_request.requested_by or _("someone")
    values = {"request": request_text(build_request), "outcome": build_request.outcome, "who": who}
    if build_request.failed:
        return RequestMessage(level="error", text=_("%(request)s failed. %(outcome)s") % values)
    if build_request.ended_at is not None:
        return RequestMessage(level="success", text=_("%(request)s finished. %(outcome)s") % values)
    text = _("%(request)s queued.") % values
    if build_request.requested_by != request.user.get_username():
        text = _("%(request)s: already queued by %(who)s, so it runs once.") % values
    start = _start_of(site, build_request, _id(request.GET.get("after")))
    return RequestMessage(level="sitemapkit-queued", text=f"{text} {start}")


def _start_of(site: SitemapSite, build_request: BuildRequest, after: int | None) -> str:
    """Return when a request starts that was queued while ``after`` was running."""
    if BuildRequest.objects.open(site).filter(pk__lt=build_request.pk).exists():
        return _("It starts when the earlier requests have finished.")
    if after is None or work_in_progress(site) != after:
        return _("It starts now.")
    if after:
        return _("It starts when build %(build)s has finished.") % {"build": after}
    return _("It starts when the work in progress has finished.")


def _id(text: str | None) -> int | None:
    """Return a query parameter as a primary key, or None if it cannot be one."""
    valid = text is not None and text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS
    return int(text or 0) if valid else None
