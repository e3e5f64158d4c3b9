"""Show what is published and what is being built, and check its age."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import SiteStatus, status_of
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.report.status import SectionStatus
from django_sitemapkit.management.base import Exit, PublishedCommand, age_of, how_to_review
from django_sitemapkit.models import Build
from django_sitemapkit.printable import count_of
from django_sitemapkit.words import code_of, english_of

MAX_HOURS = 876_000
"""A hundred years, within the range of dates."""

NO_SCHEDULE = "No build has begun for a day: does a schedule run build_sitemaps?"


class Command(PublishedCommand):
    """Show each site's sections: pages, URLs, bytes, problems; and its builds."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument(
            "--quick",
            action="store_true",
            help="Do not compare rows; files that are due only because rows changed are not shown.",
        )
        parser.add_argument(
            "--max-age",
            type=float,
            metavar="HOURS",
            help="Exit with 1 if a site has no published build, or the last build of a section is"
            " more than this many hours old.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Show each site."""
        _require_hours(options["max_age"])
        sites = self.sites(options["site"])
        reports = [status_of(site, rows=not options["quick"]) for site in sites]
        self.write_json([report.as_dict() for report in reports])
        for report in reports:
            self._show(report)
            self._conclude(report, quick=options["quick"])
        hours = options["max_age"]
        late = [_late(r, hours) for r in reports if hours is not None and r.is_older(hours)]
        if late:
            raise CommandError(
                f"Not built within {hours:g} hours: {', '.join(late)}.",
                returncode=Exit.FAILED,
            )

    def _show(self, report: SiteStatus) -> None:
        """Print what is published of a site, what is due, and the last builds."""
        write = self.stdout.write
        write(f"Site {report.site!r} at {report.base_url}")
        if report.published_at is None:
            write("  published: nothing")
        else:
            write(f"  published: build {report.build}, {_when(report.published_at, report)}")
        for text in _current_states(report):
            write(f"  {text}")
        for section in report.sections:
            self._show_section(section)
        for asked in report.requests:
            what = " ".join(filter(None, (asked.kind, asked.section)))
            line = f"  requested: {what}, {_when(asked.requested_at, report)}"
            is_late = asked.is_overdue and not report.lease
            line += f", by {asked.requested_by}{', not started' if is_late else ''}"
            self.stdout.write(line, self.style.WARNING if is_late else None)
        if report.export is not None:
            export = report.export
            state = f"due: {export.due}"
            if export.exported_at and not export.due:
                state = f"complete since {_when(export.exported_at, report)}"
            write(f"  export to {export.storage!r}: {state}")
        for item in report.due:
            reasons = ", ".join(
                f"{reason}: {count_of(count, 'page')}" if count else reason
                for reason, count in item.as_dict()["pages"].items()
            )
            name = item.section or "index"
            style = self.style.ERROR if item.error else None
            write(f"  due: {name}: {': '.join(filter(None, (reasons, item.error)))}", style)
        for kept in report.builds:
            self._show_build(kept, report)

    def _show_section(self, section: SectionStatus) -> None:
        """Print a section, as it is published."""
        if not section.built:
            self.stdout.write(f"  {section.name:<22} not built: served live")
            return
        self.stdout.write(
            f"  {section.name:<22} pages: {section.pages:>6,}  URLs: {section.urls:>11,}"
            f"  bytes: {section.xml_bytes:>14,}"
        )
        if section.duplicates:
            self.stdout.write(f"    duplicates: {section.duplicates}")
        if section.skipped:
            self.stdout.write(f"    {count_of(section.skipped, 'row')} skipped", self.style.WARNING)

    def _show_build(self, build: Any, report: SiteStatus) -> None:
        """Print a build, with the reason for its outcome and its warnings."""
        styles = {"held": self.style.WARNING, "failed": self.style.ERROR}
        style = styles.get(build.state)
        line = f"  build {build.pk}: {build.state}, {_when(build.started_at, report)}"
        self.stdout.write(line, style)
        if build.reason:
            self.stdout.write(f"    {english_of(build.reason)}", style)
        for warning in map(english_of, build.warnings):
            self.stdout.write(f"    warning: {warning}", self.style.WARNING)

    def _conclude(self, report: SiteStatus, *, quick: bool) -> None:
        """Print what to do next at a site."""
        if report.missing:
            self.stdout.write(f"  {english_of(report.missing)}", self.style.ERROR)
        if held := report.held:
            self.stdout.write(f"  Build {held.pk} is held for review:", self.style.WARNING)
            self.stdout.write(f"  {how_to_review(held.pk)}", self.style.WARNING)
            if report.pause is None and code_of(held.reason) == "paused":
                text = "The pause is over: run build_sitemaps to publish what is current."
                self.stdout.write(f"  {text}", self.style.NOTICE)
        if any(item.error for item in report.due):
            text = "A build would fail: correct what cannot be read."
            self.stdout.write(f"  {text}", self.style.ERROR)
        elif report.progress is not None and report.progress.state != Build.Status.RUNNING:
            text = f"Run build_sitemaps: it adopts the pages of build {report.progress.build}."
            self.stdout.write(f"  {text}", self.style.NOTICE)
        elif _is_due(report) and not report.lease:
            self.stdout.write("  Run build_sitemaps to build what is due.", self.style.NOTICE)
            if report.is_idle(hours=24):
                self.stdout.write(f"  {NO_SCHEDULE}", self.style.NOTICE)
        elif not (_is_due(report) or held):
            what = "Nothing else" if report.due else "Nothing"
            compared = " Rows were not compared." if quick else ""
            self.stdout.write(f"  {what} is due.{compared}", self.style.SUCCESS)


def _is_due(report: SiteStatus) -> bool:
    """Return whether a build has anything to do, besides what every build renders."""
    return any(item.pages.keys() - {Reason.METHODS} for item in report.due) or bool(
        report.export and report.export.due
    )


def _when(moment: dt.datetime, report: SiteStatus) -> str:
    """Return a moment to the second, and its age in words."""
    return f"{moment.isoformat(timespec='seconds')} ({age_of(moment, report.as_of)})"


def _current_states(report: SiteStatus) -> Iterator[str]:
    """Yield that publishing is paused, who builds the site, and how far the build is."""
    if report.pause is not None:
        yield f"publishing is {report.pause.text}"
    if report.running:
        yield f"being built by {english_of(report.running)}"
    if report.progress is not None:
        progress = report.progress
        text = (
            f"build {progress.build}: {progress.done:,} of {count_of(progress.total, 'file')} done,"
            f" {count_of(progress.urls, 'URL')}"
        )
        if progress.state != Build.Status.RUNNING:
            text += f"; {progress.state}, the next build adopts its pages"
        rate = progress.urls_per_second
        yield text if rate is None else f"{text}; {rate:,} per second in new files"


def _late(report: SiteStatus, hours: float) -> str:
    """Return the late sections of a site, or the whole site."""
    sections = report.late_sections(hours)
    if len(sections) in {0, sum(section.built for section in report.sections)}:
        return report.site
    return f"{report.site} ({', '.join(sections)})"


def _require_hours(hours: float | None) -> None:
    """Reject a number that is not an age, such as "nan"."""
    if hours is not None and not 0 <= hours <= MAX_HOURS:
        raise CommandError(
            f"--max-age must be from 0 to {MAX_HOURS:,} hours, not {hours}.", returncode=Exit.USAGE
        )
