"""What audits and crawls contribute to the page "Health"."""

import datetime as dt
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby, product, takewhile
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin import HealthItem, Level, register_health, register_inspection
from django_sitemapkit.admin.base import moment_text, number_text
from django_sitemapkit.audit.kinds import ADVICE, BAD_KINDS, FindingKind
from django_sitemapkit.audit.models import AuditFinding, AuditRun
from django_sitemapkit.sites import SitemapSite

MAX_FINDINGS_OF_URL = 10
"""Findings of one URL that its inspection shows."""


NEVER = (
    (AuditRun.Kind.AUDIT, _("Never audited"), _("Ask your developers to run: audit_sitemaps")),
    (AuditRun.Kind.CRAWL, _("Never crawled"), _("Ask your developers to run: crawl_sitemaps")),
)
"""What is said of a site without a finished run of a kind."""


@register_health(
    _("Audits and crawls"),
    help=_(
        "What is wrong with the web pages that the sitemap lists, and with the links of the site."
        " Your developers run audit_sitemaps and crawl_sitemaps, for example each night."
    ),
)
def finding_items(request: HttpRequest, sites: Sequence[SitemapSite]) -> Iterator[HealthItem]:
    """Yield items for the newest finished audit and crawls of each site: totals, then findings."""
    if not request.user.has_perm("sitemapkit_audit.view_auditrun"):
        return
    may_see_findings = request.user.has_perm("sitemapkit_audit.view_auditfinding")
    keys = [site.key for site in sites]
    runs = AuditRun.objects.filter(site__in=keys).exclude(kind=AuditRun.Kind.GATE)
    by_kind = groupby(runs.order_by("site", "kind", "-pk"), lambda run: (run.site, run.kind))
    finished_kinds: set[tuple[str, str]] = set()
    for _site_and_kind, group in by_kind:
        newest, *earlier = group
        if newest.status == AuditRun.Status.RUNNING:
            yield HealthItem(
                site=newest.site,
                title=_("It is running, or was interrupted."),
                level=Level.NOTE,
                found_at=newest.started_at,
                found_by=_run_name(newest),
                advice=_("If it was interrupted, run the same command again: it continues."),
                url=_run_url(newest),
            )
        finished = [run for run in (newest, *earlier) if run.status == AuditRun.Status.FINISHED]
        finished_kinds.update((run.site, run.kind) for run in finished)
        for same in grouped_by_starts(finished):
            yield from _newest_run_items(same, may_see_findings=may_see_findings)
    yield from _never_run_items(keys, finished_kinds)


def _never_run_items(
    site_keys: Iterable[str], finished: Container[tuple[str, str]]
) -> Iterator[HealthItem]:
    """Yield a note for each site and kind of run that is not in ``finished``."""
    now = timezone.now()
    for key, (kind, title, advice) in product(site_keys, NEVER):
        if (key, kind) not in finished:
            yield HealthItem(
                site=key,
                title=title,
                level=Level.NOTE,
                found_at=now,
                found_by=_("Now"),
                advice=advice,
            )


@register_inspection
def findings_of_url(
    request: HttpRequest, site: SitemapSite, location: str
) -> Iterator[tuple[Any, str]]:
    """Yield, for the inspection of a URL, the newest findings on it: the run, and a link as HTML.

    The runs are the newest finished audit and the newest finished crawls.
    """
    if not request.user.has_perm("sitemapkit_audit.view_auditfinding"):
        return
    runs = AuditRun.objects.filter(site=site.key, status=AuditRun.Status.FINISHED).order_by("-pk")
    kinds = (AuditRun.Kind.AUDIT, AuditRun.Kind.CRAWL)
    newest = [same[0].pk for kind in kinds for same in grouped_by_starts(runs.filter(kind=kind))]
    found = AuditFinding.objects.filter(run__in=newest, url=location).select_related("run")
    for finding in found.order_by("-run", "pk")[:MAX_FINDINGS_OF_URL]:
        if finding.url == location:  # To some databases, other letters are the same.
            text = f"{finding.get_kind_display()}: {finding.detail}".removesuffix(": ")
            moment = moment_text(finding.run.ended_at or finding.run.started_at)
            yield (
                f"{_run_name(finding.run)}, {moment}",
                format_html('<a href="{}">{}</a>', findings_url(finding.run, finding.kind), text),
            )


def grouped_by_starts(runs: Iterable[AuditRun]) -> list[list[AuditRun]]:
    """Return runs of one site and kind, given newest first, in groups with equal starts and folder.

    Crawls of a part of the site are left out if a later crawl covers all of it.
    """
    groups: dict[Any, list[AuditRun]] = {}
    for run in runs:
        groups.setdefault(run.starts_and_folder, []).append(run)
    newest = [group[0] for group in groups.values()]
    covering = max((run.pk for run in newest if run.covers_site), default=0)
    return [group for group in groups.values() if group[0].pk >= covering]


def findings_url(run: AuditRun, kind: str) -> str:
    """Return the address of the admin's list of a run's findings of one kind."""
    query = urlencode({"run__id__exact": run.pk, "kind__exact": kind})
    return f"{reverse('admin:sitemapkit_audit_auditfinding_changelist')}?{query}"


def _run_name(run: AuditRun) -> str:
    """Return the kind and id of a run, with its starts if it does not cover the site."""
    name = f"{capfirst(run.get_kind_display())} {run.pk}"
    return name if run.covers_site else f"{name} ({' '.join(filter(None, run.starts_and_folder))})"


def _run_url(run: AuditRun) -> str:
    """Return the address of a run in the admin."""
    return reverse("admin:sitemapkit_audit_auditrun_change", args=[run.pk])


def _newest_run_items(runs: Sequence[AuditRun], *, may_see_findings: bool) -> Iterator[HealthItem]:
    """Yield items for the first of comparable runs: its totals, then each kind of finding.

    The earlier runs only show since when there are findings of a kind.
    """
    run = runs[0]
    at = run.ended_at or run.started_at
    yield HealthItem(
        site=run.site,
        title=gettext("%(checked)s URLs checked, %(bad)s bad")
        % {"checked": number_text(run.checked), "bad": number_text(run.bad)},
        level=Level.NOTE,
        found_at=at,
        found_by=_run_name(run),
        url=_run_url(run),
    )
    for kind in FindingKind:
        if run.counts.get(kind):
            yield HealthItem(
                site=run.site,
                title=kind.label,
                level=Level.ERROR if kind in BAD_KINDS else Level.WARNING,
                found_at=at,
                since=_found_since(runs, kind),
                found_by=_run_name(run),
                count=run.counts[kind],
                advice=ADVICE[kind],
                url=findings_url(run, kind) if may_see_findings else "",
            )


def _found_since(runs: Sequence[AuditRun], kind: str) -> dt.datetime | None:
    """Return when the earliest run of an unbroken series with findings of a kind ended.

    The series goes back from the newest run. None if the run before it has no such finding.
    """
    first = list(takewhile(lambda run: run.counts.get(kind), runs))[-1]
    return None if first is runs[0] else first.ended_at or first.started_at
