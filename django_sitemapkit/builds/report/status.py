"""What is published and what is going on, as values."""

import datetime as dt
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django_sitemapkit.builds.make.compared_page import hashed_sections
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.builds.publication.export import ExportStatus, export_status
from django_sitemapkit.builds.report.due import SectionDue, due, missing_here
from django_sitemapkit.builds.report.running import BuildProgress, build_progress, states_of
from django_sitemapkit.builds.report.state import SiteState, values_of
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, Place
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
    changed_at: dt.datetime | None = None
    """When the newest of its files became what it is."""
    checked_at: dt.datetime | None = None
    """When the last build ended that compared its files with the rows; None if it is not built."""
    duplicates: str = ""
    """How it lists each URL once: "proven" by declarations, or "hashed"; "" where it need not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteStatus(SiteState):
    """A site with its publication, sections and builds."""

    checked_at: dt.datetime | None
    """When the oldest of its sections was last built; None if nothing is published."""
    progress: BuildProgress | None
    """How far the build is that has not ended; None if there is none, or it is being planned."""
    sections: Sequence[SectionStatus]
    """The sections the site has now."""
    due: Sequence[SectionDue]
    """What the next build will render again, and why; only sections with such pages."""
    builds: Sequence[Any]
    """The last builds, the newest first, with their ``state``: see ``states_of()``."""
    missing: State = ""
    """That this server's disk lacks published files; "" if it does not."""
    export: ExportStatus | None = None
    """The export; None if there is none, or nothing is published, or it was not asked for."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it, in English."""
        found: dict[str, Any] = json.loads(
            json.dumps(
                {
                    "site": self.site,
                    "base_url": self.base_url,
                    "build": self.build,
                    "published_at": self.published_at,
                    "checked_at": self.checked_at,
                    "as_of": self.as_of,
                    "running": english_of(self.running),
                    "progress": self.progress and asdict(self.progress),
                    "sections": list(map(asdict, self.sections)),
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
                },
                default=dt.datetime.isoformat,
            )
        )
        return found

    def is_older(self, hours: float) -> bool:
        """Return whether a section was last built longer ago than that, or nothing is published."""
        return self.checked_at is None or self._is_older(self.checked_at, hours)

    def is_idle(self, hours: float) -> bool:
        """Return whether the last build, however it ended, began longer ago than that."""
        return bool(self.builds) and self._is_older(self.builds[0].started_at, hours)

    def late_sections(self, hours: float) -> list[str]:
        """Return the names of the sections that were last built longer ago than that."""
        return [
            section.name
            for section in self.sections
            if section.checked_at is not None and self._is_older(section.checked_at, hours)
        ]

    def _is_older(self, moment: dt.datetime, hours: float) -> bool:
        return (self.as_of or moment) - moment > dt.timedelta(hours=hours)


def status_of(site: SitemapSite, *, rows: bool = True, export: bool = True) -> SiteStatus:
    """Return what is published of a site, what is due and what is going on.

    Without ``rows``, no row is looked at, and none is said to have changed. Without ``export``,
    nothing is read from the storage that the files are exported to.
    """
    (state,) = values_of([site])
    builds = SiteBuilds(site)
    builds.publication = state["publication"]  # It is read already.
    newest: list[Any] = list(Build.objects.filter(site=site.key).order_by("-pk")[:SHOWN_BUILDS])
    states = states_of(newest)
    for build in newest:
        build.state = states[build.pk]
    sections, checked_at = _sections(site, builds.published)
    return SiteStatus(
        **state,
        checked_at=checked_at,
        progress=build_progress(site),
        sections=sections,
        due=tuple(item for item in due(site, rows=rows, builds=builds) if item.pages),
        builds=newest,
        missing=missing_here(builds),
        export=export_status(site) if export else None,
    )


def _sections(
    site: SitemapSite, build: Build | None
) -> tuple[list[SectionStatus], dt.datetime | None]:
    """Return the sections as they are published, and when the oldest of all was last built."""
    rows = Place.objects.in_build(build).totals("section") if build else ()
    found = {total.pop("section"): total for total in rows}
    checked = _checked(build, found) if build else {}
    readers = sections_of(site)
    hashed = hashed_sections(readers)
    others = "proven" if settings.DEDUPLICATE else ""
    sections = [
        SectionStatus(
            name=name,
            built=name in found,
            checked_at=checked.get(name),
            duplicates="hashed" if name in hashed else others,
            **found.get(name, {}),
        )
        for name in (reader.get_name() for reader in readers)
    ]
    return sections, min(checked.values(), default=None)


def _checked(build: Build, sections: Collection[str]) -> dict[str, dt.datetime]:
    """Return when the builds ended that last compared these sections with their rows."""
    checkers = build.checkers_of(sections)
    ended = Build.objects.filter(pk__in=set(checkers.values())).exclude(ended_at=None)
    moments: dict[int, Any] = dict(ended.values_list("pk", "ended_at"))
    return {name: moments[pk] for name, pk in checkers.items() if pk in moments}
