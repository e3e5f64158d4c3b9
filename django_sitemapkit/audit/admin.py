"""Audits and crawls in the admin: what was found, run by run, and what to do about it."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from os.path import commonprefix
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect, StreamingHttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin import Level
from django_sitemapkit.admin.activity import EXCLUDED, log_rows
from django_sitemapkit.admin.base import (
    EXCLUDING,
    ReadOnlyAdmin,
    SiteFilter,
    csv_response,
    number_text,
)
from django_sitemapkit.audit.health import findings_url, grouped_by_starts
from django_sitemapkit.audit.kinds import ADVICE, BAD_KINDS, FindingKind
from django_sitemapkit.audit.models import AuditFinding, AuditRun, SavedPage
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import UrlOverride, hash_of
from django_sitemapkit.overrides import csv_lines, pasted_path
from django_sitemapkit.reading.keysets import read_by_key
from django_sitemapkit.sites import all_sites

MAX_SELECTED = 1_000
"""Findings that one action may change something for."""


@admin.register(AuditRun)
class AuditRunAdmin(ReadOnlyAdmin):
    """Lists the audits and crawls, newest first, and shows what each of them found."""

    list_display = (
        *("__str__", "kind", "site", "started_at", "status"),
        *("checked", "bad", "bad_share", "source"),
    )
    list_filter = (SiteFilter, "kind", "status", "started_at")
    ordering = ("-pk",)
    fields = (
        *(
            "findings_by_kind",
            ("checked", "bad", "bad_share", "undetermined"),
            ("kind", "site", "status"),
        ),
        *(("started_at", "ended_at"), ("source", "live")),
    )

    def get_fields(self, request: HttpRequest, obj: AuditRun | None = None) -> Any:
        """Return the fields of a run: with a crawl's starts and limits, or an audit's sample."""
        is_crawl = obj is not None and obj.kind == AuditRun.Kind.CRAWL
        return (
            *self.fields,
            *((("others_checked", "pending"), "starts", "limits") if is_crawl else ("sample",)),
        )

    @admin.display(description=_("starts"))
    def starts(self, run: AuditRun) -> str:
        """Return the URLs at which a crawl started, separated by commas; "" for an audit."""
        return ", ".join(run.options.get("starts", ()))

    @admin.display(description=_("limits"))
    def limits(self, run: AuditRun) -> str:
        """Return a crawl's maximum number of URLs and depth as text; "-" if it has neither."""
        urls, depth = run.options.get("max_urls"), run.options.get("max_depth")
        texts = []
        if urls:
            texts.append(ngettext("%s URL", "%s URLs", urls) % number_text(urls))
        if depth:
            texts.append(ngettext("%s link deep", "%s links deep", depth) % number_text(depth))
        return ", ".join(texts) or "-"

    @admin.display(description=_("share of bad URLs"))
    def bad_share(self, run: AuditRun) -> str:
        """Return the share of bad URLs as a percentage; "-" if no URL was checked."""
        return f"{run.bad / run.checked:.1%}" if run.checked else "-"

    @admin.display(description=_("source"))
    def source(self, run: AuditRun) -> Any:
        """Return a link to the build that was audited or compared, or the text "live pages"."""
        if run.build is None:
            return gettext("live pages")
        return format_html(
            '<a href="{}">{}</a>',
            self.screen_url("build_change", run.build),
            gettext("Build %s") % run.build,
        )

    @admin.display(description=_("findings"))
    def findings_by_kind(self, run: AuditRun) -> Any:
        """Return the kinds of findings as an HTML list; kinds of bad URLs come first.

        Each has its number of findings, a link to them, and advice. "-" if there are no findings.
        """
        rows = (
            (
                *(("error", Level.ERROR) if kind in BAD_KINDS else ("warning", Level.WARNING)),
                *(findings_url(run, kind), kind.label, number_text(run.counts[kind]), ADVICE[kind]),
            )
            for kind in sorted(FindingKind, key=lambda kind: kind not in BAD_KINDS)
            if run.counts.get(kind)
        )
        kinds = format_html_join(
            "",
            '<div><dt><span class="sitemapkit-status sitemapkit-level-{}">{}</span>'
            ' <a href="{}">{}</a>: {}</dt><dd>{}</dd></div>',
            ((name, level.label, *others) for name, level, *others in rows),
        )
        return format_html('<dl class="sitemapkit-problems">{}</dl>', kinds) if kinds else "-"


def newest_run_ids() -> list[int]:
    """Return the ids of the newest run of each site and kind, of crawls that from each start."""
    grouped: dict[tuple[str, str], list[AuditRun]] = {}
    for run in AuditRun.objects.order_by("-pk").defer("counts"):
        grouped.setdefault((run.site, run.kind), []).append(run)
    return [same[0].pk for runs in grouped.values() for same in grouped_by_starts(runs)]


class RunFilter(admin.SimpleListFilter):
    """Filters findings by run; without a choice, shows those of the newest runs of each site."""

    title = _("audit")
    parameter_name = "run__id__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the ids and labels of the newest 100 runs, newest first."""
        return [
            (str(run.pk), f"{run} {run.get_kind_display()} {run.started_at:%Y-%m-%d %H:%M}")
            for run in AuditRun.objects.order_by("-pk")[:100]
        ]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the choices for the template; the first one is labelled "Newest", not "All"."""
        first, *others = super().choices(changelist)
        yield {**first, "display": _("Newest")}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the findings of the chosen run; without a choice, those of the newest runs."""
        if self.value():
            return queryset.filter(run=self.value())
        return queryset.filter(run__in=newest_run_ids())


class SectionFilter(admin.SimpleListFilter):
    """Filters findings by section; offers the sections with findings in the newest runs."""

    title = _("section")
    parameter_name = "section__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the section names among the findings of the newest runs, as choices."""
        rows = AuditFinding.objects.filter(run__in=newest_run_ids()).exclude(section="")
        rows = rows.order_by("section")
        return [(name, name) for name in rows.values_list("section", flat=True).distinct()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the findings of the chosen section; without a choice, all of them."""
        return queryset.filter(section=self.value()) if self.value() else queryset


@admin.register(AuditFinding)
class AuditFindingAdmin(ReadOnlyAdmin):
    """The findings, with filters, actions and a CSV export."""

    list_display = ("url", "kind", "what_to_do", "detail", "section")
    list_filter = ("kind", SectionFilter, RunFilter)
    fields = ("url", ("kind", "what_to_do"), "detail", ("section", "run"))
    list_select_related = ("run",)
    search_fields = ("url",)
    ordering = ("pk",)
    actions = ("exclude_urls", "open_rule_form", "export_csv")

    @admin.display(description=_("what to do"))
    def what_to_do(self, finding: AuditFinding) -> Any:
        """Return advice on a finding, with a link to the inspection of its URL, as HTML."""
        return format_html(
            '{} <a href="{}">{}</a>',
            ADVICE[FindingKind(finding.kind)],
            self.screen_url("inspect", site=finding.run.site, url=finding.url),
            gettext("Inspect"),
        )

    def has_exclude_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may add, change and bulk-edit overrides to exclude URLs."""
        return request.user.has_perms(EXCLUDING)

    def has_rule_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may add exclusion rules."""
        return request.user.has_perm("sitemapkit.add_exclusionrule")

    @admin.action(description=_("Exclude from the sitemap"), permissions=["exclude"])
    def exclude_urls(self, request: HttpRequest, queryset: QuerySet[AuditFinding]) -> None:
        """Exclude the URLs of the selected findings, by an override for each URL."""
        if self._reject_too_many(request, queryset):
            return
        new: list[UrlOverride] = []
        changed: list[UrlOverride] = []
        for site, path, kind in _listable_paths(queryset):
            note = gettext("Audit: %s") % FindingKind(kind).label
            rows = UrlOverride.objects.filter(site=site, hash=hash_of(path), path=path)
            row = rows.first() or UrlOverride(site=site, path=path, note=note)
            if row.include is not False:
                (changed if row.pk else new).append(row)
                row.include = False
                row.save()
        log_rows(request.user.pk, new, ADDITION, message=EXCLUDED)
        log_rows(request.user.pk, changed, CHANGE, message=EXCLUDED)
        count = len(new) + len(changed)
        has_others = self._warn_of_other_findings(request, queryset)
        if count or not has_others:
            text = ngettext(
                "%(count)s URL will be excluded by the next build.",
                "%(count)s URLs will be excluded by the next build.",
                count,
            )
            self.message_user(request, text % {"count": number_text(count)})

    @admin.action(description=_("Make an exclusion rule of these"), permissions=["rule"])
    def open_rule_form(
        self, request: HttpRequest, queryset: QuerySet[AuditFinding]
    ) -> HttpResponseRedirect | None:
        """Redirect to the form for a new exclusion rule that matches the selected URLs.

        Returns None, and shows a message, if the URLs are of several sites or share no folder.
        """
        if self._reject_too_many(request, queryset):
            return None
        found = _listable_paths(queryset)
        pattern = _common_pattern({path for _, path, _ in found})
        if not found and self._warn_of_other_findings(request, queryset):
            return None
        if len({site for site, _, _ in found}) != 1 or not pattern:
            self.message_user(
                request,
                gettext("Select URLs of one site that have a folder in common, without * and $."),
                messages.ERROR,
            )
            return None
        return HttpResponseRedirect(
            self.screen_url("exclusionrule_add", site=found[0][0], pattern=pattern)
        )

    def _reject_too_many(self, request: HttpRequest, queryset: QuerySet[AuditFinding]) -> bool:
        """Show an error if over 1,000 findings are selected; return whether that is so."""
        if queryset[MAX_SELECTED : MAX_SELECTED + 1].exists():
            self.message_user(
                request,
                gettext("Select at most %s findings at a time.") % number_text(MAX_SELECTED),
                messages.ERROR,
            )
            return True
        return False

    def _warn_of_other_findings(
        self, request: HttpRequest, queryset: QuerySet[AuditFinding]
    ) -> bool:
        """Warn of selected findings that are not about entries; return whether there are any."""
        others = queryset.filter(section="").count()
        if others:
            text = ngettext(
                "%s finding is not about an entry of the sitemap: there is nothing to exclude.",
                "%s findings are not about entries of the sitemap: there is nothing to exclude.",
                others,
            )
            self.message_user(request, text % number_text(others), messages.WARNING)
        return bool(others)

    @admin.action(description=_("Export as CSV"), permissions=["view"])
    def export_csv(
        self, request: HttpRequest, queryset: QuerySet[AuditFinding]
    ) -> StreamingHttpResponse:
        """Return the selected findings as a CSV file."""
        columns = ("run__site", "run_id", "section", "kind", "url", "detail")
        lines = csv_lines(("site", "audit", *columns[2:]), read_by_key(queryset, *columns))
        return csv_response(request, "sitemap-findings.csv", lines)


def _listable_paths(queryset: QuerySet[AuditFinding]) -> list[tuple[str, str, str]]:
    """Return (site key, path, kind) for each URL of the findings that its sitemap may list.

    Each path is returned once, with the kind of its first finding. Findings of crawls that are not
    about entries of the sitemap are left out.
    """
    sites = {site.key: site for site in all_sites()}
    found: dict[tuple[str, str], str] = {}
    rows = queryset.exclude(section="").order_by("pk")
    for key, url, kind in rows.values_list("run__site", "url", "kind"):
        with suppress(InvalidValue, KeyError):
            found.setdefault((key, pasted_path(sites[key], url)), kind)
    return [(key, path, kind) for (key, path), kind in found.items()]


def _common_pattern(paths: Collection[str]) -> str:
    """Return the pattern of an exclusion rule that matches all paths.

    It is the one path, or the folder that the paths have in common. "" if they have none, or if a
    path contains * or $.
    """
    if not paths or any("*" in path or "$" in path for path in paths):
        return ""
    if len(paths) == 1:
        return f"{next(iter(paths))}$"
    folder = commonprefix(list(paths)).rpartition("/")[0]  # noqa: RUF071  cut at a slash
    return f"{folder}/" if folder else ""


@admin.register(SavedPage)
class SavedPageAdmin(ReadOnlyAdmin):
    """The pages that crawls found and no other section lists."""

    list_display = ("path", "site", "title", "first_seen", "last_seen")
    list_filter = (SiteFilter, "first_seen", "last_seen")
    search_fields = ("path", "title")
    ordering = ("-pk",)
    fields = ("site", "path", "title", "lastmod", "first_seen", "last_seen")
