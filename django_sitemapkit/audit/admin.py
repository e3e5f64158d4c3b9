"""Audits in the admin: what was found, run by run, and what to do about it."""

import csv
from collections.abc import Iterator
from os.path import commonprefix
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect, StreamingHttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin import register_panel
from django_sitemapkit.admin.base import CheckedListAdmin, SiteFilter
from django_sitemapkit.admin.display import number
from django_sitemapkit.admin.history import changed_fields, log_added, log_changed
from django_sitemapkit.audit.kinds import ADVICE, FindingKind
from django_sitemapkit.audit.models import AuditFinding, AuditRun
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import UrlOverride, hash_of
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.sites import SitemapSite, all_sites

MAX_RULE_URLS = 1_000
"""Selected URLs whose common start becomes a rule."""


class ReadOnlyAdmin(CheckedListAdmin):
    """Shows rows that only audits write."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Return False: audits add rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: a finding says what was found."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: old audits are deleted by new ones."""
        return False


@admin.register(AuditRun)
class AuditRunAdmin(ReadOnlyAdmin):
    """The audits, newest first: their trend."""

    list_display = ("__str__", "site", "started_at", "status", "checked", "bad", "share", "source")
    list_filter = (SiteFilter, "status")
    ordering = ("-pk",)
    fields = (
        *("site", "status", "source", "sample", "live", "started_at", "ended_at"),
        *("checked", "bad", "share", "kinds"),
    )

    @admin.display(description=_("bad"))
    def share(self, run: AuditRun) -> str:
        """Return which part of the URLs is bad."""
        return f"{run.bad / run.checked:.1%}" if run.checked else "-"

    @admin.display(description=_("source"))
    def source(self, run: AuditRun) -> Any:
        """Return what was audited."""
        if run.build is None:
            return gettext("live pages")
        address = reverse("admin:sitemapkit_build_change", args=[run.build])
        return format_html('<a href="{}">{}</a>', address, gettext("Build %s") % run.build)

    @admin.display(description=_("findings"))
    def kinds(self, run: AuditRun) -> Any:
        """Return each kind with a link to its findings, and what to do about it."""
        rows = (
            (findings_of(run, kind), kind.label, number(run.counts[kind]), ADVICE[kind])
            for kind in FindingKind
            if run.counts.get(kind)
        )
        return format_html_join("", '<p><a href="{}">{}</a>: {}. {}</p>', rows) or "-"


def findings_of(run: AuditRun, kind: str) -> str:
    """Return the address of the list of an audit's findings of one kind."""
    query = urlencode({"run__id__exact": run.pk, "kind__exact": kind})
    return f"{reverse('admin:sitemapkit_audit_auditfinding_changelist')}?{query}"


class RunFilter(admin.SimpleListFilter):
    """Filters findings by audit; without a choice, the newest audit of each site."""

    title = _("audit")
    parameter_name = "run__id__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the audits, newest first."""
        runs = AuditRun.objects.order_by("-pk")[:100]
        return [(str(run.pk), f"{run} {run.started_at:%Y-%m-%d %H:%M}") for run in runs]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the findings of the chosen audit."""
        return queryset.filter(run=self.value()) if self.value() else queryset


@admin.register(AuditFinding)
class AuditFindingAdmin(ReadOnlyAdmin):
    """The findings, with filters, actions and a CSV export."""

    list_display = ("url", "kind", "detail", "section", "run")
    list_filter = ("kind", "section", RunFilter)
    list_select_related = ("run",)
    search_fields = ("url",)
    ordering = ("pk",)
    actions = ("exclude_them", "make_rule", "export_csv")

    def has_exclude_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may exclude many URLs."""
        user = request.user
        return user.has_perms(["sitemapkit.add_urloverride", "sitemapkit.bulk_urloverride"])

    def has_rule_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may add exclusion rules."""
        return request.user.has_perm("sitemapkit.add_exclusionrule")

    @admin.action(description=_("Exclude from the sitemap"), permissions=["exclude"])
    def exclude_them(self, request: HttpRequest, queryset: QuerySet[AuditFinding]) -> None:
        """Set an override that excludes each URL, from the next build on."""
        new, changed = [], []
        for site, url, kind in set(queryset.values_list("run__site", "url", "kind")):
            path = _path(site, url)
            if path is None:
                continue
            row = UrlOverride.objects.filter(site=site, hash=hash_of(path), path=path).first()
            if row is None:
                note = gettext("Audit: %s") % FindingKind(kind).label
                row = UrlOverride(site=site, path=path, include=False, note=note)
                new.append(row)
            elif row.include is not False:
                row.include = False
                changed.append(row)
            row.save()
        log_added(request.user.pk, new)
        log_changed(request.user.pk, changed, changed_fields(UrlOverride, ["include"]))
        count = len(new) + len(changed)
        text = ngettext(
            "%(count)s URL will be excluded by the next build.",
            "%(count)s URLs will be excluded by the next build.",
            count,
        )
        self.message_user(request, text % {"count": number(count)})

    @admin.action(description=_("Make an exclusion rule of these"), permissions=["rule"])
    def make_rule(
        self, request: HttpRequest, queryset: QuerySet[AuditFinding]
    ) -> HttpResponseRedirect | None:
        """Open the form of a rule with the common start of the selected URLs."""
        pairs = list(queryset.values_list("run__site", "url")[:MAX_RULE_URLS])
        sites = {site for site, _ in pairs}
        paths = [path for site, url in pairs if (path := _path(site, url)) is not None]
        if len(sites) != 1 or not paths:
            self.message_user(request, gettext("Select URLs of one site."), messages.ERROR)
            return None
        pattern = paths[0] + "$" if len(set(paths)) == 1 else commonprefix(paths)  # noqa: RUF071  rules match text
        query = urlencode({"site": sites.pop(), "pattern": pattern})
        address = reverse("admin:sitemapkit_exclusionrule_add")
        return HttpResponseRedirect(f"{address}?{query}")

    @admin.action(description=_("Export as CSV"), permissions=["view"])
    def export_csv(
        self, request: HttpRequest, queryset: QuerySet[AuditFinding]
    ) -> StreamingHttpResponse:
        """Return the selected findings as a CSV file."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        response = StreamingHttpResponse(_lines(queryset), content_type="text/csv; charset=utf-8")
        response.headers["Content-Disposition"] = 'attachment; filename="sitemap-findings.csv"'
        return response


class _Line:
    """What a CSV writer writes to: it returns each line."""

    def write(self, line: str) -> str:
        return line


def _lines(queryset: QuerySet[AuditFinding]) -> Iterator[str]:
    writer = csv.writer(_Line())
    columns = ("run__site", "run_id", "section", "kind", "url", "detail")
    yield writer.writerow(["site", "audit", *columns[2:]])
    for row in queryset.values_list(*columns).iterator(chunk_size=2_000):
        yield writer.writerow(map(_harmless, row))


def _harmless(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@")) else cell


def _path(site_key: str, url: str) -> str | None:
    """Return the path of a URL on a site, or None if the site cannot list it."""
    site = next((site for site in all_sites() if site.key == site_key), None)
    try:
        return pasted_path(site, url) if site else None
    except InvalidValue:
        return None


@register_panel(_("Audit"))
def last_audit(request: HttpRequest, site: SitemapSite) -> str:
    """Return what the last audit of a site found."""
    if not request.user.has_perm("sitemapkit_audit.view_auditrun"):
        return ""
    run = AuditRun.objects.filter(site=site.key).order_by("-pk").first()
    if run is None:
        return ""
    kinds = [
        {"label": kind.label, "count": run.counts[kind], "address": findings_of(run, kind)}
        for kind in FindingKind
        if run.counts.get(kind)
    ]
    context = {"run": run, "kinds": kinds}
    return render_to_string("admin/sitemapkit_audit/panel.html", context, request)
