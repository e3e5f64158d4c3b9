"""What is published and what goes on at sites, as values: a few queries for any number of them."""

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, Subquery, Sum
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.builds.lease import held_leases, is_being_built, living_leases
from django_sitemapkit.builds.make.deduplication import hashed_sections
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.builds.publication.export import ExportStatus, export_status
from django_sitemapkit.builds.publication.gates import Pause, pause_at
from django_sitemapkit.builds.report.differences import UrlChange
from django_sitemapkit.builds.report.due import SectionDue, due_by_section, files_missing_here
from django_sitemapkit.builds.report.published import (
    checked_at_by_section,
    is_complete,
    problems_by_section,
    sections_served_live,
)
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, BuildRequest, Place, Publication, StoredNow, lease_name
from django_sitemapkit.models.builds import rolled_back_among
from django_sitemapkit.overrides import disabled_sections_of, overrides_of, sections_of
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State, code_of, english_of

MIN_RATE_SECONDS = 1.0
"""How long a build has to run before a rate says anything."""

INTERRUPTED = "interrupted"
"""The state of a build that has not ended and that no process works on."""

STATES = {
    **dict(Build.Status.choices),
    # A filter has fewer states, as the database does.
    Build.Status.RUNNING: _("running"),
    Build.Status.HELD: _("held"),
    INTERRUPTED: _("interrupted"),
    "live": _("live"),
    "preview": _("preview"),
    "replaced": _("replaced"),
}
"""What the states of builds are called."""

SHOWN_BUILDS = 5
"""Builds a status lists, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildProgress:
    """The progress of a build that has not ended, as its processes have recorded it."""

    build: int
    """Its id."""
    state: str
    """"running", or "interrupted" or "failed" if no process works on it."""
    started_by: str
    """Who asked for it."""
    done: int
    """Its files that are rendered or reused."""
    total: int
    """All its files, with the index."""
    urls: int
    """URLs in the files that are done."""
    urls_per_second: int | None
    """URLs in the files it has stored, per second since it began; reused files do not count.

    None in its first second, before the first file, and if nobody works on it.
    """


def build_progress(site: SitemapSite) -> BuildProgress | None:
    """Return the progress of a site's build; None if there is none, or it is being planned.

    If no process builds the site, it is that of a build that a process left unfinished, as its
    ``state`` says.
    """
    builds = Build.objects.filter(site=site.key, status=Build.Status.RUNNING)
    age = ExpressionWrapper(StoredNow() - F("started_at"), output_field=DurationField())
    build = builds.annotate(age=age).order_by("-pk").first()
    state = states_by_build([build])[build.pk] if build else INTERRUPTED
    if build is None or (state != Build.Status.RUNNING and is_being_built(site)):
        return None
    totals = Place.objects.in_build(build).totals(
        "build",
        all=Count("pk"),
        pending=Count("pk", filter=Q(status=Place.Status.PENDING)),
        # The name of a file has the build that stored it.
        stored=Sum("page__urls", filter=Q(page__name__contains=f"-{build.pk}."), default=0),
    )
    counts = defaultdict(int, totals.first() or {})
    stored, seconds = counts["stored"], build.age.total_seconds()
    is_at_work = state == Build.Status.RUNNING and seconds >= MIN_RATE_SECONDS
    return BuildProgress(
        build=build.pk,
        state=state,
        started_by=build.started_by,
        done=counts["all"] - counts["pending"],
        total=counts["all"] + 1,
        urls=counts["urls"],
        urls_per_second=round(stored / seconds) if stored and is_at_work else None,
    )


def states_by_build(builds: Collection[Build]) -> dict[int, str]:
    """Return by id the state of each build: its outcome once it has ended.

    Until then, it is "running" as long as the process that makes it holds the lease, else "failed"
    if that process recorded the reason, or "interrupted". The next build adopts the pages of both,
    if it can.
    """
    states = {build.pk: build.outcome for build in builds}
    left = [build for build in builds if build.status == Build.Status.RUNNING]
    alive = set(living_leases({build.site for build in left}).values_list("name", "fence"))
    for build in left:
        if (lease_name(build.site), build.fence) not in alive:
            states[build.pk] = Build.Status.FAILED if build.reason else INTERRUPTED
    return states


def unpublished_state() -> State:
    """Return what is served of a site that serves no build: all of it live, or nothing."""
    codes = {"auto": "not-live", "live": "only-live", "published": "unpublished"}
    return {"code": codes[settings.SERVE_FROM]}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteState:
    """What a site serves, who builds it, its held build and its open requests."""

    site: str
    """The site's key."""
    base_url: str
    """Where the site is."""
    publication: Publication | None
    """Which build it serves; None if nothing is published."""
    build: int | None
    """The build it serves; None if nothing is published."""
    published_at: dt.datetime | None
    """When that was published."""
    as_of: dt.datetime | None
    """The database's time of this state; None if nothing is published."""
    pause: Pause | None
    """Who paused publishing, and why; None if it is not paused."""
    lease: Any
    """The lease of who builds it, with ``is_alive``; None if nobody does."""
    held: Build | None
    """The last build that is held for review and may still be published."""
    rolled_back: Build | None
    """The newest build that a roll-back left behind, which the next build brings back."""
    requests: Sequence[Any]
    """What is requested and not done, the oldest first, with ``is_overdue``."""

    @property
    def published(self) -> Build | None:
        """The build that it serves; None if nothing is published."""
        return self.publication.build if self.publication else None

    @property
    def running(self) -> State:
        """Who builds since when, as a code and its values; "" if nobody does."""
        if self.lease is None:
            return ""
        holder: State = self.lease.holder
        return holder if self.lease.is_alive else {"code": "silent", "holder": holder}

    @property
    def is_running(self) -> bool:
        """Whether a process that is alive builds the site."""
        return self.lease is not None and self.lease.is_alive

    @property
    def queue(self) -> Sequence[BuildRequest]:
        """The requests besides comparisons, which have a page of their own."""
        return [row for row in self.requests if row.kind != BuildRequest.Kind.COMPARE]

    @property
    def stage(self) -> str:
        """A text that changes with the queue of requests and, while that is empty, with a build.

        Also when a request begins, which then has no key any more.
        """
        waits = (f"{row.pk}{'' if row.dedup_key else ' runs'}" for row in self.queue)
        return ",".join(waits) or ("running" if self.lease else "idle")


def states_of_sites(sites: Sequence[SitemapSite]) -> list[SiteState]:
    """Return the state of each site: builds, requests and publication."""
    keys = [site.key for site in sites]
    rows = Publication.objects.filter(site__in=keys).select_related("build")
    publications: dict[str, Any] = {row.site: row for row in rows.annotate(now=StoredNow())}
    builds = defaultdict(list)
    for build in Build.objects.publishable(*keys):
        builds[build.site].append(build)
    leases = {lease.name: lease for lease in held_leases(keys)}
    requests = list(BuildRequest.objects.open(*sites))
    states = []
    for site in sites:
        publication = publications.get(site.key)
        live = publication and publication.build
        held = [build for build in builds[site.key] if build.status == Build.Status.HELD]
        states.append(
            SiteState(
                site=site.key,
                base_url=site.base,
                publication=publication,
                build=live and live.pk,
                published_at=live and live.published_at,
                as_of=publication and publication.now,
                pause=publication and pause_at(publication, publication.now),
                lease=leases.get(lease_name(site.key)),
                held=held[-1] if held else None,
                rolled_back=rolled_back_among(builds[site.key], live),
                requests=[request for request in requests if request.site == site.key],
            )
        )
    return states


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionStatus:
    """The published state of a section."""

    name: str
    """The section's name."""
    built: bool
    """Whether the published build has it."""
    removed: bool = False
    """Whether the site no longer has it."""
    served_live: bool = False
    """Whether it is served live, because no published build has it."""
    pages: int = 0
    """Its files that list any URL."""
    urls: int = 0
    """URLs in them."""
    xml_bytes: int = 0
    """Bytes of XML in them."""
    skipped: int = 0
    """Rows that were left out."""
    problems: int = 0
    """These rows, and the values that were left out of others."""
    changed_at: dt.datetime | None = None
    """When the newest of its files became what it is."""
    checked_at: dt.datetime | None = None
    """When the last build ended that compared its files with the rows; None if it is not built."""
    urls_before: int | None = None
    """URLs of it in the build that was live before; None if none was."""
    duplicates: str = ""
    """How it lists each URL once: "proven" by declarations, or "hashed"; "" where it need not."""

    @property
    def change(self) -> UrlChange:
        """Its URLs, and how they have changed."""
        return UrlChange(self.urls, self.urls_before)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteStatus(SiteState):
    """A site with its publication, sections and builds."""

    checked_at: dt.datetime | None
    """When the rows of all its sections were last compared; None if nothing is published."""
    succeeded_at: dt.datetime | None
    """When the last build ended that was published or found nothing changed; None without one.

    Previews do not count.
    """
    files: int
    """Its files that list any URL; the index does not count."""
    problems: int
    """Rows and values that the published build left out."""
    urls: int
    """URLs that it serves, of all sections that the published build has."""
    urls_before: int | None
    """URLs that it served before the published build; None if it served none."""
    replaced: int | None
    """The build that was live before the published one first was."""
    progress: BuildProgress | None
    """How far the build is that has not ended; None if there is none, or it is being planned."""
    sections: Sequence[SectionStatus]
    """The sections the site has now, and then those that only the published build has, or had
    the build before it."""
    switched_off: Sequence[str]
    """The sections that the section settings switch off."""
    due: Sequence[SectionDue]
    """What the next build will render again, and why; only sections with such pages."""
    builds: Sequence[Any]
    """The last builds and the published one, newest first; ``state`` is from ``states_by_build()``.

    Each also has its ``files`` and ``urls``, and the ``urls_before`` that were live before it; None
    if it has no files, or is not compared.
    """
    missing: State = ""
    """That this server's disk lacks published files; "" if it does not."""
    export: ExportStatus | None = None
    """The export; None if there is none, or nothing is published, or it was not asked for."""

    def as_dict(self) -> dict[str, Any]:
        """Return the status as JSON takes it, in English."""
        values = {
            "site": self.site,
            "base_url": self.base_url,
            "build": self.build,
            "published_at": self.published_at,
            "checked_at": self.checked_at,
            "succeeded_at": self.succeeded_at,
            "files": self.files,
            "problems": self.problems,
            "urls": self.urls,
            "urls_before": self.urls_before,
            "as_of": self.as_of,
            "running": english_of(self.running),
            "progress": self.progress and asdict(self.progress),
            "sections": list(map(asdict, self.sections)),
            "switched_off": self.switched_off,
            "due": [item.as_dict() for item in self.due],
            "missing": english_of(self.missing),
            "builds": [
                {
                    "build": build.pk,
                    "status": build.state,
                    "started_at": build.started_at.replace(microsecond=0),
                    "reason": english_of(build.reason),
                    "code": code_of(build.reason),
                    "warnings": list(map(english_of, build.warnings)),
                    "urls": build.urls,
                    "urls_before": build.urls_before,
                }
                for build in self.builds
            ],
            "export": self.export and asdict(self.export),
            "pause": self.pause and asdict(self.pause),
            "requests": [
                {
                    "kind": row.kind,
                    "section": row.section,
                    "requested_by": row.requested_by,
                    "requested_at": row.requested_at.replace(microsecond=0),
                    "is_overdue": row.is_overdue,
                }
                for row in self.requests
            ],
        }
        return dict(json.loads(json.dumps(values, default=dt.datetime.isoformat)))

    @property
    def headline(self) -> State:
        """The published build and its size, as a code and its values."""
        if self.build is None or settings.SERVE_FROM == "live":
            return unpublished_state()
        return {"code": "live", "build": self.build, "urls": self.urls, "files": self.files}

    @property
    def change(self) -> UrlChange:
        """The URLs that it serves, and how they have changed."""
        return UrlChange(self.urls, self.urls_before)

    @property
    def counts_twice(self) -> bool:
        """Whether a URL that two sections list counts twice, as nothing deduplicates them."""
        built = [section for section in self.sections if section.built]
        return len(built) > 1 and not all(section.duplicates for section in built)

    def is_older(self, hours: float) -> bool:
        """Return whether a section was last built over ``hours`` ago, or nothing is published."""
        return self.checked_at is None or self._is_longer_ago(self.checked_at, hours)

    def is_idle(self, hours: float) -> bool:
        """Return whether the last build, however it ended, began more than ``hours`` ago."""
        return bool(self.builds) and self._is_longer_ago(self.builds[0].started_at, hours)

    def late_sections(self, hours: float) -> list[str]:
        """Return the names of the sections that were last built more than ``hours`` ago."""
        return [
            section.name
            for section in self.sections
            if section.checked_at is not None and self._is_longer_ago(section.checked_at, hours)
        ]

    def _is_longer_ago(self, moment: dt.datetime, hours: float) -> bool:
        """Return whether a moment is more than ``hours`` before the time of this status."""
        return (self.as_of or moment) - moment > dt.timedelta(hours=hours)


def status_of(site: SitemapSite, *, rows: bool = True, export: bool = True) -> SiteStatus:
    """Return the status of a site: what is published, what is due and what is going on.

    Without ``rows``, no row is looked at, and none is said to have changed. Without ``export``,
    nothing is read from the storage that the files are exported to.
    """
    (state,) = states_of_sites([site])
    builds = SiteBuilds(site)
    builds.publication = state.publication  # These are read already.
    builds.running_or_held = [state.held] if state.held else []
    of_site = Build.objects.filter(site=site.key)
    # Only an unchanged preview has a reason: it says nothing of what builds the site.
    unchanged = Q(status=Build.Status.UNCHANGED, reason="")
    good = of_site.filter(Q(status=Build.Status.PUBLISHED) | unchanged)
    newest: list[Any] = list(
        of_site.annotate(
            good_at=Subquery(good.order_by("-ended_at").values("ended_at")[:1]),
        ).order_by("-pk")[:SHOWN_BUILDS]
    )
    published = state.published
    if published is not None and published not in newest:
        newest.append(published)
    states = states_by_build(newest)
    before = {each.pk: each.previous_id for each in newest if is_complete(each)}
    # Not the one before it when it was new: someone may have gone back to it.
    gone = of_site.filter(replaced_at=published.published_at) if published else of_site.none()
    replaced = gone.values_list("pk", flat=True).first()
    wanted = {*states, *before.values(), replaced} - {None}
    counts: dict[Any, dict[str, Any]] = defaultdict(dict)
    for total in Place.objects.filter(build__in=wanted).totals("build", "section"):
        counts[total.pop("build")][total.pop("section")] = total
    for build in newest:
        build.state = states[build.pk]
        build.files = _sum_over_sections(counts[build.pk], "pages")
        build.urls = _sum_over_sections(counts[build.pk], "urls")
        build.urls_before = _sum_over_sections(counts[before.get(build.pk)], "urls")
    overrides = overrides_of(site)
    sections, off = sections_of(site, overrides), disabled_sections_of(site, overrides)
    dues = due_by_section(site, rows=rows, builds=builds, sections=sections)
    return SiteStatus(
        **{field.name: getattr(state, field.name) for field in fields(state)},
        **_published_status_values(sections, published, counts[state.build], counts[replaced]),
        replaced=replaced,
        succeeded_at=newest[0].good_at if newest else None,
        progress=build_progress(site),
        switched_off=[each.get_name() for each in off if each.options.enabled],
        due=[item for item in dues if item.pages],
        builds=newest,
        missing=files_missing_here(builds),
        export=export_status(site, state.publication) if export else None,
    )


def _sum_over_sections(totals: dict[str, Any], name: str) -> int | None:
    """Return the sum of a total over all sections; None if there are no files."""
    return sum(total[name] for total in totals.values()) if totals else None


def _published_status_values(
    readers: Sequence[Any], build: Build | None, now: dict[str, Any], before: dict[str, Any]
) -> dict[str, Any]:
    """Return the fields of a SiteStatus that are about its sections and their totals.

    ``now`` has the totals of the published build by section, ``before`` those of the build that was
    live before it.
    """
    checked = checked_at_by_section(build, now) if build else {}
    problems = problems_by_section(build) if build else {}
    hashed = hashed_sections(readers)
    others = "proven" if settings.DEDUPLICATE else ""
    names = [reader.get_name() for reader in readers]
    missing = {*names}.difference(now)
    live = sections_served_live(build, sorted(missing))
    sections = [
        SectionStatus(
            name=name,
            built=name in now,
            removed=name not in names,
            served_live=name in live,
            problems=problems.get(name, 0),
            checked_at=checked.get(name),
            duplicates="hashed" if name in hashed else others,
            urls_before=before[name]["urls"] if name in before else 0 if before else None,
            **now.get(name, {}),
        )
        for name in dict.fromkeys([*names, *now, *before])
    ]
    return {
        "sections": sections,
        "checked_at": min(checked.values(), default=None),
        "files": _sum_over_sections(now, "pages") or 0,
        "problems": sum(problems.values()),
        "urls": _sum_over_sections(now, "urls") or 0,
        "urls_before": _sum_over_sections(before, "urls"),
    }
