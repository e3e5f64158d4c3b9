"""What the overview says of a button that was pressed: queued, waiting for what, done or failed."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_sitemapkit.admin.wording import request_text
from django_sitemapkit.builds.manifests import primary
from django_sitemapkit.builds.settling import open_requests
from django_sitemapkit.builds.status import is_being_built
from django_sitemapkit.models import Build, BuildRequest
from django_sitemapkit.sites import Site

MAX_ID_DIGITS = 18
"""Digits of a number that can be a row's id on every database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMessage:
    """What is said of a request, for people."""

    level: str
    """The class of the message: "sitemapkit-queued", "success" or "error"."""
    text: str
    """What was asked for, and what becomes of it."""


def work_in_progress(site: Site) -> int | None:
    """Return the id of the build that keeps a site busy, 0 for other work; None for neither."""
    if not is_being_built(site):
        return None
    running = primary(Build).filter(site=site.key, status=Build.Status.RUNNING)
    return running.order_by("-pk").values_list("pk", flat=True).first() or 0


def message_of_request(site: Site, request: HttpRequest) -> RequestMessage | None:
    """Return what is to be said of the request that an address names; None if it names none."""
    pk = _id(request.GET.get("request"))
    asked = primary(BuildRequest).filter(site=site.key, pk=pk).first() if pk else None
    if asked is None:
        return None
    who = asked.requested_by or _("someone")
    values = {"what": request_text(asked), "outcome": asked.outcome, "who": who}
    if asked.failed:
        return RequestMessage(level="error", text=_("%(what)s: failed. %(outcome)s") % values)
    if asked.ended_at is not None:
        return RequestMessage(level="success", text=_("%(what)s: done. %(outcome)s") % values)
    text = _("%(what)s: queued.") % values
    if asked.requested_by != request.user.get_username():
        text = _("%(what)s: already queued by %(who)s. It is done once.") % values
    start = _start_of(site, asked, _id(request.GET.get("after")))
    return RequestMessage(level="sitemapkit-queued", text=f"{text} {start}")


def _start_of(site: Site, asked: BuildRequest, after: int | None) -> str:
    """Return when a request starts that was queued while ``after`` kept the site busy."""
    if open_requests(site).filter(pk__lt=asked.pk).exists():
        return _("It starts when what was queued before it has finished.")
    if after is None or work_in_progress(site) != after:
        return _("It starts now.")
    if after:
        return _("It starts when build %(build)s has finished.") % {"build": after}
    return _("It starts when the work in progress has finished.")


def _id(text: str | None) -> int | None:
    """Return the number that an address has; None if it has none that a row can have."""
    valid = text is not None and text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS
    return int(text or 0) if valid else None
