"""What is published and what is going on, as values."""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.db.models import Count, Max, Q, Sum

from django_sitemapkit.builds.make.deduplication import hashed_sections
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.builds.publication.export import ExportStatus, export_status
from django_sitemapkit.builds.publication.pausing import Pause, pause_at
from django_sitemapkit.builds.report.due import SectionDue, due
from django_sitemapkit.builds.report.running import (
    BuildProgress,
    build_progress,
    states_of,
    who_builds,
)
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, BuildFile, BuildRequest
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State, code_of, english_of

SHOWN_BUILDS = 5
"""Builds a status lists, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionStatus:
    """A section as it is published."""

    name: str
    """The section's name."""
    built: bool
    """Whether the published build has it."""
    pages: int = 0
    """Its files that list any URL."""
    urls: int = 0
    """URLs in them."""
    xml_bytes: int = 0
    """Bytes of XML in them."""
    skipped: int = 0
    """Rows that were left out."""
    changed_at: str | None = None
    """When the newest of its files became what it is."""
    checked_at: str | None = None
    """When the last build ended that compared its files with the rows; None if it is not built."""
    duplicates: str = ""
    """How it lists each URL once: "proven" by declarations, or "hashed"; "" where it need not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStatus:
    """One of a site's builds."""

    build: int
    """Its id."""
    status: str
    """What became of it; of one that has not ended, "running", "interrupted" or "failed"."""
    started_at: str
    """When it began."""
    cause: State
    """Why it ended as it did, as a code and its values; often ""."""
    doubts: Sequence[State]
    """What its lastmods say that can hardly be true, as codes and their values."""

    @property
    def reason(self) -> str:
        """Why it ended as it did, in English; often ""."""
        return english_of(self.cause)

    @property
    def warnings(self) -> Sequence[str]:
        """What its lastmods say that can hardly be true, in English."""
        return list(map(english_of, self.doubts))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return {
            "build": self.build,
            "status": self.status,
            "started_at": self.started_at,
            "reason": self.reason,
            "code": code_of(self.cause),
            "warnings": self.warnings,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteStatus:
    """A site with its publication, sections and builds."""

    site: str
    """The site's key."""
    base_url: str
    """Where the site is."""
    build: int | None
    """The build it serves; None if nothing is published."""
    published_at: str | None
    """When that was published."""
    checked_at: str | None
    """The earliest such moment of its sections; None if nothing is published."""
    as_of: str | None
    """The database's time of this status; None if nothing is published."""
    running: str
    """Who builds since when; "" if nobody does."""
    progress: BuildProgress | None
    """How far the build is that has not ended; None if there is none, or it is being planned."""
    sections: Sequence[SectionStatus]
    """The sections the site has now."""
    due: Sequence[SectionDue]
    """What the next build will render again, and why; only sections with such pages."""
    builds: Sequence[BuildStatus]
    """The last builds, the newest first."""
    export: ExportStatus | None = None
    """The export; None if there is none, or nothing is published, or it was not asked for."""
    pause: Pause | None = None
    """Who paused publishing, and why; None if it is not paused."""
    requests: Sequence[Mapping[str, Any]] = ()
    """What is requested and not done, the oldest first: its kind, section, and who asked when.

    ``is_overdue`` says whether that is so long ago that a message to a worker counts as lost.
    """

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return {
            **asdict(self),
            "builds": [build.as_dict() for build in self.builds],
            "due": [item.as_dict() for item in self.due],
            "pause": self.pause.as_dict() if self.pause else None,
        }

    def is_older(self, hours: float) -> bool:
        """Return whether a section was last built longer ago than that, or nothing is published."""
        return self.checked_at is None or self._is_older(self.checked_at, hours)

    def late_sections(self, hours: float) -> list[str]:
        """Return the names of the sections that were last built longer ago than that."""
        return [
            section.name
            for section in self.sections
            if section.checked_at is not None and self._is_older(section.checked_at, hours)
        ]

    def _is_older(self, moment: str, hours: float) -> bool:
        age = dt.datetime.fromisoformat(self.as_of or moment) - dt.datetime.fromisoformat(moment)
        return age > dt.timedelta(hours=hours)


def status_of(
    site: SitemapSite,
    *,
    rows: bool = True,
    export: bool = True,
    builds: SiteBuilds | None = None,
) -> SiteStatus:
    """Return what is published of a site, what is due and what is going on.

    Without ``rows``, no row is looked at, and none is said to have changed. Without ``export``,
    nothing is read from the storage that the files are exported to. ``builds`` are the site's
    builds, if they are read already.
    """
    builds = builds or SiteBuilds(site)
    publication: Any = builds.publication
    newest = list(Build.objects.filter(site=site.key).order_by("-pk")[:SHOWN_BUILDS])
    states = states_of(newest)
    sections, checked_at = _sections(site, publication.build if publication else None)
    return SiteStatus(
        site=site.key,
        base_url=f"{site.origin}{site.path}",
        build=publication.build_id if publication else None,
        published_at=_text(publication.published_at) if publication else None,
        checked_at=checked_at,
        as_of=_text(publication.now) if publication else None,
        running=who_builds(site),
        progress=build_progress(site),
        sections=sections,
        due=tuple(item for item in due(site, rows=rows, builds=builds) if item.pages),
        builds=tuple(
            BuildStatus(
                build=build.pk,
                status=states[build.pk],
                started_at=build.started_at.isoformat(timespec="seconds"),
                cause=build.reason,
                doubts=build.warnings,
            )
            for build in newest
        ),
        export=export_status(site) if export else None,
        pause=pause_at(publication, publication.now) if publication else None,
        requests=tuple(
            {**asked, "requested_at": asked["requested_at"].isoformat(timespec="seconds")}
            for asked in BuildRequest.objects.open(site).values(
                "kind", "section", "requested_by", "requested_at", "is_overdue"
            )
        ),
    )


def _sections(
    site: SitemapSite, build: Build | None
) -> tuple[tuple[SectionStatus, ...], str | None]:
    """Return the sections as they are published, and when the oldest of all was last built."""
    rows = (
        BuildFile.objects.in_build(build).exclude(section="") if build else BuildFile.objects.none()
    )
    done = Q(status=BuildFile.Status.DONE)
    totals: Any = rows.values("section").annotate(
        pages=Count("pk", filter=done),
        urls=Sum("urls", filter=done, default=0),
        xml_bytes=Sum("xml_bytes", filter=done, default=0),
        skipped=Sum("skipped", default=0),
        changed_at=Max("lastmod", filter=done),
    )
    found = {total.pop("section"): total for total in totals}
    checked = _checked(build, found) if build else {}
    known = {
        name: SectionStatus(
            name=name,
            built=True,
            changed_at=_text(total.pop("changed_at")),
            checked_at=_text(checked.get(name)),
            **total,
        )
        for name, total in found.items()
    }
    readers = sections_of(site)
    names = [section.get_name() for section in readers]
    sections = [known.get(name, SectionStatus(name=name, built=False)) for name in names]
    if settings.DEDUPLICATE:
        hashed = hashed_sections(readers)
        sections = [
            replace(each, duplicates="hashed" if each.name in hashed else "proven")
            for each in sections
        ]
    return tuple(sections), _text(min(checked.values(), default=None))


def _checked(build: Build, sections: Collection[str]) -> dict[str, dt.datetime]:
    """Return when the builds ended that last compared these sections with their rows."""
    checkers = build.checkers_of(sections)
    ended = Build.objects.filter(pk__in=set(checkers.values())).exclude(ended_at=None)
    moments: dict[int, Any] = dict(ended.values_list("pk", "ended_at"))
    return {name: moments[pk] for name, pk in checkers.items() if pk in moments}


def _text(moment: dt.datetime | None) -> str | None:
    return moment.isoformat() if moment else None
