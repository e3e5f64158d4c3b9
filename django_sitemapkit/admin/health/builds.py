"""What builds found, and what only a look at one site tells.

That is skipped rows, implausible lastmods, and builds that failed or are held; and which sections
fail, which files are lost, and what the index leaves out.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from django.db.models import Exists, Max, OuterRef, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.base import number_text, pause_text, request_text
from django_sitemapkit.admin.health import (
    HealthItem,
    Level,
    items_or_failure,
    register_health,
)
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.builds.report.due import due_by_section, files_missing_here
from django_sitemapkit.builds.report.published import rollback_states
from django_sitemapkit.builds.report.status import (
    INTERRUPTED,
    SiteState,
    states_by_build,
    states_of_sites,
)
from django_sitemapkit.models import Build, BuildRequest, Place
from django_sitemapkit.publishing import stored_bytes
from django_sitemapkit.rendering import external_problems
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import code_of, words_of

MAX_FILES_READ = 2_000
"""Files with problems whose problems are counted; of more files, those with the newest ids."""

MAX_EXAMPLES = 3
"""Problems that an item quotes."""

_Status = Build.Status
_CORRECT = _("Correct the value in the row, or what the section makes of it.")

NOTED_BYTES = 200_000_000
"""Bytes that the database may store without a note."""

STATES_READ = "_sitemapkit_states"
"""The attribute of a request with the states of the sites that its screen shows, once read."""

_NOW = _("Now")
_CORRECT_ERROR = _(
    "Correct the error. Until then builds fail, and the published build is still served."
)

PROBLEMS: dict[str, tuple[Any, Any]] = {
    "duplicate-url": (_("Duplicate URL"), _("Let only one row or section produce each URL.")),
    "escaped-twice": (_("URL escaped twice"), _("Correct what the section takes the URL from.")),
    "exception": (_("Error in a method"), _("Correct the method of the section or the model.")),
    "expired-video": (_("Expired video"), _CORRECT),
    "file-too-large": (_("Entry too large"), _("Give the URL fewer images, videos or languages.")),
    "future-date": (
        _("Date in the future"),
        _("Give the date of the last change. Until it has come, the URL is listed without it."),
    ),
    "invalid-attribute-value": (_("Invalid attribute value"), _CORRECT),
    "invalid-date": (_("Invalid date"), _CORRECT),
    "invalid-host": (_("Invalid host"), _("Correct the host that the section declares.")),
    "invalid-tag-value": (_("Invalid tag value"), _CORRECT),
    "invalid-url": (_("Invalid URL"), _("Correct what the section takes the URL from.")),
    "invalid-xml-tag": (_("Invalid XML tag"), _CORRECT),
    "missing-xml-tag": (_("Missing XML tag"), _("Give the image, video or news what it needs.")),
    "nested-index": (_("Nested index"), _("Name sitemaps in external sections, not indexes.")),
    "no-url": (_("No URL"), _("Give the object a URL, or leave it out of the queryset.")),
    "too-many-tags": (_("Too many tags"), _("Give the URL fewer of them.")),
    "url-not-allowed": (
        _("URL not allowed"),
        _("List URLs of this site only, below the folder of its sitemap."),
    ),
}
"""What each kind of problem is called, and what to do about it."""


@register_health(
    _("Builds"),
    help=_(
        "Rows that a build skipped, values that it left out, implausible lastmods, builds that"
        " failed or are held for review, paused publishing, and damaged files that “Check published"
        " files” found."
    ),
)
def build_items(request: HttpRequest, sites: Sequence[SitemapSite]) -> Iterator[HealthItem]:
    """Yield the health items that the recorded builds and requests of some sites give."""
    keys = [site.key for site in sites]
    states = getattr(request, STATES_READ, None) or states_of_sites(sites)
    yield from _held_build_items(states)
    yield from _undone_rollback_items(states)
    yield from _unfinished_build_items(keys)
    yield from _overdue_request_items(states)
    yield from _failed_request_items(keys)
    yield from _problem_items(
        each for state in states for each in (state.published, state.held) if each
    )
    for state in states:
        yield from _warning_items(state)
        yield from _pause_items(state)


def _overview_url(site: str, part: str) -> str:
    """Return the URL of a site's overview, at the part with an anchor; ``site`` is its key."""
    return f"{reverse('admin:sitemapkit_overview')}?{urlencode({'site': site})}#sitemapkit-{part}"


def _build_url(build: int) -> str:
    """Return the URL of the page of the build with an id."""
    return reverse("admin:sitemapkit_build_change", args=[build])


def _held_build_items(states: Iterable[SiteState]) -> Iterator[HealthItem]:
    """Yield an item for each site that has a build held for review, or a preview of one."""
    for build in (state.held for state in states if state.held):
        is_preview = build.outcome == "preview"
        yield HealthItem(
            site=build.site,
            title=_("A preview waits") if is_preview else _("Build held for review"),
            level=Level.NOTE if is_preview else Level.WARNING,
            found_at=build.ended_at or build.started_at,
            found_by=build,
            details=(build.reason_text,),
            advice=_("Look at its changes. Publish it, or leave it: the next build replaces it.")
            if is_preview
            else _("Look at its changes. Then publish it, or correct the cause and build again."),
            url=_build_url(build.pk),
        )


def _undone_rollback_items(states: Iterable[SiteState]) -> Iterator[HealthItem]:
    """Yield an item for each site whose next build undoes a roll-back."""
    for state, what in rollback_states(states):
        yield HealthItem(
            site=state.site,
            title=_("The next build undoes the roll-back from build %(build)s (%(urls)s URLs)")
            % {"build": what["build"], "urls": number_text(what["urls"])},
            found_at=state.published_at,
            found_by=state.published,
            details=(words_of(what),),
            advice=_("Correct the cause before you resume publishing.")
            if state.pause
            else _("Correct the cause before the next build, or pause publishing."),
            url=reverse("admin:sitemapkit_build_differences", args=[what["build"]]),
        )


def _unfinished_build_items(keys: Iterable[str]) -> Iterator[HealthItem]:
    """Yield an item for each site whose newest build failed, or was interrupted."""
    for build, state in newest_builds(
        Build.objects.filter(site__in=keys), _Status.FAILED, _Status.RUNNING
    ):
        if state == _Status.FAILED:
            yield HealthItem(
                site=build.site,
                title=_("Build failed"),
                level=Level.ERROR,
                found_at=build.ended_at or build.started_at,
                found_by=build,
                details=(build.reason_text,),
                advice=_("Correct the cause and build again. The published build is still served."),
                url=_build_url(build.pk),
            )
        elif state == INTERRUPTED:
            yield HealthItem(
                site=build.site,
                title=_("Build interrupted"),
                found_at=build.started_at,
                found_by=build,
                advice=_("Build again: the next build adopts its pages."),
                url=_build_url(build.pk),
            )


def newest_builds(builds: QuerySet[Build], *statuses: str) -> list[tuple[Build, str]]:
    """Return the newest build of each site if it has one of some statuses, and its state."""
    newest = builds.values("site").annotate(newest=Max("pk")).values("newest")
    found = list(Build.objects.filter(pk__in=newest, status__in=statuses))
    states = states_by_build(found)
    return [(build, states[build.pk]) for build in found]


def _overdue_request_items(states: Iterable[SiteState]) -> Iterator[HealthItem]:
    """Yield an item for each request that has long been open although nobody builds its site."""
    idle = (state for state in states if not state.is_running)
    for row in (row for state in idle for row in state.requests if row.is_overdue):
        yield HealthItem(
            site=row.site,
            title=_("%(request)s not started") % {"request": request_text(row)},
            found_at=row.requested_at,
            found_by=row.requested_by,
            advice=_("Check that workers run. The next scheduled build also does it."),
            url=_overview_url(row.site, "now"),
        )


def _failed_request_items(keys: Iterable[str]) -> Iterator[HealthItem]:
    """Yield an item for each site and kind of request if the last one failed.

    It is left out once a later build has succeeded.
    """
    ended = BuildRequest.objects.filter(site__in=keys).exclude(ended_at=None)
    ended = ended.exclude(kind=BuildRequest.Kind.COMPARE)  # Its own page shows it.
    newest = ended.values("site", "kind").annotate(newest=Max("pk")).values("newest")
    since = Build.objects.filter(
        site=OuterRef("site"),
        status__in=(_Status.PUBLISHED, _Status.UNCHANGED),
        ended_at__gte=OuterRef("ended_at"),
    )
    rows = BuildRequest.objects.filter(~Exists(since), pk__in=newest)
    for row in (row for row in rows if row.failed):
        yield HealthItem(
            site=row.site,
            title=_("%(request)s failed") % {"request": request_text(row)},
            level=Level.ERROR,
            found_at=row.ended_at or row.requested_at,
            found_by=_("Sitemaps overview"),
            details=row.outcome_text.splitlines(),
            advice=_("Ask your developers to run: validate_sitemaps --repair")
            if row.kind == BuildRequest.Kind.CHECK
            else _("Correct the cause, then click the button again."),
            url=_overview_url(row.site, "now"),
        )


def _problem_items(found: Iterable[Build]) -> Iterator[HealthItem]:
    """Yield an item for each kind of problem of the rows and values that some builds skipped."""
    builds = {build.pk: build for build in found}
    faulty = Place.objects.filter(build__in=builds).exclude(problems={})
    rows = list(faulty.order_by("-pk").values_list("build_id", "problems")[: MAX_FILES_READ + 1])
    counts: Counter[tuple[int, str]] = Counter()
    examples: dict[tuple[int, str], list[str]] = {}
    for pk, kinds in rows[:MAX_FILES_READ]:
        for code, kind in kinds.items():
            counts[pk, code] += kind["count"]
            examples.setdefault((pk, code), []).append(kind["examples"][0][1])
    for (pk, code), count in counts.items():
        build = builds[pk]
        title, advice = PROBLEMS.get(code, (code, _CORRECT))
        yield HealthItem(
            site=build.site,
            title=title,
            found_at=build.published_at or build.started_at,
            found_by=build,
            count=count,
            at_least=len(rows) > MAX_FILES_READ,
            details=examples[pk, code][-MAX_EXAMPLES:][::-1],
            advice=advice,
            url=f"{_build_url(pk)}#problems",
        )


WARNED = {"loss": "loss", "site-loss": "loss", "put-back": "put-back"}
"""The kind of each warning by its code; the others are about lastmods."""

WARNINGS = (
    (
        "loss",
        _("Many URLs gone"),
        _("Look at the differences. If the loss is a mistake, publish the previous build."),
    ),
    (
        "put-back",
        _("Rolled-back files published again"),
        _("If the roll-back had a reason, publish the previous build and pause publishing."),
    ),
    (
        "lastmod",
        _("Implausible lastmod"),
        _(
            "Take lastmod from the last significant change of the page, or leave it out. Search"
            " engines ignore dates that they cannot trust."
        ),
    ),
)
"""Kinds of warnings, their titles, and what to do about them."""


def _warning_items(state: SiteState) -> Iterator[HealthItem]:
    """Yield an item for each kind of warning of a site's published build."""
    build = state.published
    if build is None:
        return
    for kind, title, advice in WARNINGS:
        warnings = [each for each in build.warnings if WARNED.get(code_of(each), "lastmod") == kind]
        if warnings:
            yield HealthItem(
                site=state.site,
                title=title,
                found_at=build.published_at or build.started_at,
                found_by=build,
                details=list(map(words_of, warnings)),
                advice=advice,
                url=_build_url(build.pk),
            )


def _pause_items(state: SiteState) -> Iterator[HealthItem]:
    """Yield an item if publishing of a site is paused."""
    if pause := state.pause:
        yield HealthItem(
            site=state.site,
            title=_("Publishing paused"),
            found_at=pause.since,
            details=(pause_text(pause),),
            advice=_("Correct the cause. Then resume publishing on the overview."),
            url=_overview_url(state.site, "headline"),
        )


# What only a look at one site tells ---------------------------------------------------------------


def current_items(site: SitemapSite) -> list[HealthItem]:
    """Return items for what is wrong with a site now; no row of a section is read.

    They are about sections, stored files, external sitemaps, and the size of the database.
    """
    at = timezone.now()
    looks = (
        (_section_items, _("Sections cannot be read")),
        (_external_items, _("External sitemaps cannot be read")),
        (_storage_items, _("Stored files cannot be read")),
    )
    return [
        item
        for look, title in looks
        for item in items_or_failure(
            partial(look, site, at),
            [site],
            title=title,
            found_at=at,
            found_by=_NOW,
            advice=_CORRECT_ERROR,
        )
    ]


def _section_items(site: SitemapSite, at: dt.datetime) -> Iterator[HealthItem]:
    """Yield an item if sections of a site cannot be read, and one if stored files are missing."""
    overview = _overview_url(site.key, "sections")
    builds = SiteBuilds(site)
    dues = list(due_by_section(site, rows=False, builds=builds))
    failed = [item for item in dues if item.error]
    if failed:
        yield HealthItem(
            site=site.key,
            title=_("Section cannot be read"),
            level=Level.ERROR,
            found_at=at,
            found_by=_NOW,
            count=len(failed),
            details=[f"{item.section or _('Index')}: {item.error}" for item in failed],
            advice=_CORRECT_ERROR,
            url=overview,
        )
    if lost := sum(item.pages.get(Reason.LOST, 0) for item in dues):
        yield HealthItem(
            site=site.key,
            title=_("Stored file missing"),
            level=Level.ERROR,
            found_at=at,
            found_by=_NOW,
            count=lost,
            details=[words_of(missing)] if (missing := files_missing_here(builds)) else (),
            advice=_("Build again: the next build stores them. Find out what deletes files."),
            url=overview,
        )


def _external_items(site: SitemapSite, at: dt.datetime) -> Iterator[HealthItem]:
    """Yield an item if the index leaves out sitemaps of external sections."""
    if problems := external_problems(site):
        yield HealthItem(
            site=site.key,
            title=_("External sitemap not listed"),
            level=Level.ERROR,
            found_at=at,
            found_by=_NOW,
            count=len(problems),
            details=[str(problem) for problem in problems],
            advice=_("Correct the external section: the index leaves these out."),
        )


def _storage_items(site: SitemapSite, at: dt.datetime) -> Iterator[HealthItem]:
    """Yield an item if the database stores so much that another storage is better."""
    size = stored_bytes()
    if size > NOTED_BYTES:
        yield HealthItem(
            site=site.key,
            title=_("Large sitemap files in the database"),
            level=Level.NOTE,
            found_at=at,
            found_by=_NOW,
            details=[filesizeformat(size)],
            advice=_(
                "They make backups larger. A folder that all servers share, or S3, stores them"
                " outside the database: set “sitemaps” in STORAGES."
            ),
        )
