"""Show what is published and what is being built, and check its age."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import SiteStatus, status_of
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.report.published import rollback_states
from django_sitemapkit.management.base import Exit, PublishedCommand, age_text, how_to_review
from django_sitemapkit.models import Build
from django_sitemapkit.printable import count_of
from django_sitemapkit.words import code_of, english_of

MAX_HOURS = 876_000
"""A hundred years, within the range of dates."""

NO_SCHEDULE = "No build has begun for a day: does a schedule run build_sitemaps?"


class Command(PublishedCommand):
    """Show the published build, sections and builds of each site, as the admin's overview does."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--quick`` and ``--max-age``."""
        super().add_arguments(parser)
        parser.add_argument(
            "--quick",
            action="store_true",
            help="Skip comparing rows, and looking for files in a storage that is no local disk.",
        )
        parser.add_argument(
            "--max-age",
            type=float,
            metavar="HOURS",
            help="Exit with 1 if a site has no published build, or a section was last built more"
            " than this many hours ago.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Print the status of each site.

        Raises CommandError if a site was not built within ``--max-age`` hours, or if that option is
        out of range; problems of the site raise nothing.
        """
        hours = options["max_age"]
        if hours is not None and not 0 <= hours <= MAX_HOURS:  # Nor is "nan" an age.
            raise CommandError(
                f"--max-age must be from 0 to {MAX_HOURS:,} hours, not {hours}.",
                returncode=Exit.USAGE,
            )
        sites = self.sites(options["site"])
        reports = [status_of(site, rows=not options["quick"]) for site in sites]
        self.write_json([report.as_dict() for report in reports])
        for report in reports:
            self._show_site(report)
            self._print_next_steps(report, quick=options["quick"])
        late = [_late_text(r, hours) for r in reports if hours is not None and r.is_older(hours)]
        if late:
            raise CommandError(
                f"Not built within {hours:g} hours: {', '.join(late)}.",
                returncode=Exit.FAILED,
            )

    def _show_site(self, report: SiteStatus) -> None:
        """Print the admin's overview of a site, in its order and words."""
        write, warning = self.stdout.write, self.style.WARNING
        write(f"Site {report.site!r} at {report.base_url}")
        text = english_of(report.headline)
        change = _change_with_percentage(report.urls, report.urls_before)
        if change and code_of(report.headline) == "live":
            text += f", {change} since build {report.replaced}"
        write(f"  {text}")
        for label, moment in (
            ("Published", report.published_at),
            ("Last successful build", report.succeeded_at),
            ("Compared with the database", report.checked_at),
        ):
            if moment is not None:
                write(f"  {label}: {_moment_text(moment, report)}")
        if report.counts_twice:
            write("  A URL that two sections list counts twice.")
        if report.problems:
            write(f"  Problems: {report.problems:,}", warning)
        self._show_activity(report)
        self._show_sections(report)
        self._show_due(report)
        if export := report.export:
            state = f"due: {export.due}"
            if export.exported_at and not export.due:
                state = f"complete since {_moment_text(export.exported_at, report)}"
            write(f"  Export to {export.storage!r}: {state}")
        self._show_builds(report)

    def _show_activity(self, report: SiteStatus) -> None:
        """Print a pause or a roll-back, the running build and the queued requests."""
        write, warning = self.stdout.write, self.style.WARNING
        if report.pause is not None:
            write(f"  Publishing is {report.pause.text}.", warning)
        for _report, returned in rollback_states([report]):
            write(f"  {english_of(returned)}", warning)
        for text in _running_lines(report):
            write(f"  Now: {text}")
        for asked in report.requests:
            what = " ".join(filter(None, (asked.kind, asked.section)))
            line = f"  Queued: {what}, {_moment_text(asked.requested_at, report)}"
            is_late = asked.is_overdue and not report.lease
            line += f", by {asked.requested_by}{', not started' if is_late else ''}"
            write(line, warning if is_late else None)

    def _show_sections(self, report: SiteStatus) -> None:
        """Print a table of the sections, and the sections by how duplicates are found in them."""
        self.stdout.write(
            f"  {'Section':<20}{'URLs':>11}{'Change':>20}{'Problems':>9}{'Files':>7}  Changed"
        )
        for section in report.sections:
            line = f"  {section.name:<20}"
            if not section.served_live:
                change = _change_with_percentage(section.urls, section.urls_before)
                problems = f"{section.problems:,}" if section.problems else ""
                line += f"{section.urls:>11,}{change:>20}{problems:>9}{section.pages:>7,}"
                if section.changed_at is not None:
                    line += f"  {age_text(section.changed_at, report.as_of)}"
            else:
                line += " Not built, served live"
            self.stdout.write(line, self.style.WARNING if section.problems else None)
        listed = {section.name for section in report.sections if section.built}
        for name in (name for name in report.switched_off if name not in listed):
            self.stdout.write(f"  {name:<20} Switched off in the section settings")
        for how in ("proven", "hashed"):
            if names := [
                each.name for each in report.sections if each.duplicates == how and not each.removed
            ]:
                self.stdout.write(f"  Duplicates, {how}: {', '.join(names)}")

    def _show_due(self, report: SiteStatus) -> None:
        """Print how many pages are due in each section, and why."""
        for item in report.due:
            reasons = ", ".join(
                f"{reason}: {count_of(count, 'file')}" if count else reason
                for reason, count in item.as_dict()["pages"].items()
            )
            text = ": ".join(filter(None, (item.section or "index", reasons, item.error)))
            self.stdout.write(f"  due: {text}", self.style.WARNING if item.error else None)

    def _show_builds(self, report: SiteStatus) -> None:
        """Print a line for each of the last builds, with the reason for its outcome."""
        if report.builds:
            self.stdout.write(f"  {'Build':<8}{'State':<19}{'URLs':>11}{'Change':>20}  Started")
        for build in report.builds:
            style = self.style.WARNING if build.state in {"held", "failed"} else None
            urls = "" if build.urls is None else f"{build.urls:,}"
            change = _change_with_percentage(build.urls or 0, build.urls_before)
            line = f"  {build.pk:<8}{build.state:<19}{urls:>11}{change:>20}"
            self.stdout.write(f"{line}  {age_text(build.started_at, report.as_of)}", style)
            if build.reason:
                self.stdout.write(f"    {english_of(build.reason)}", style)
            for text in map(english_of, build.warnings):
                self.stdout.write(f"    Warning: {text}", self.style.WARNING)

    def _print_next_steps(self, report: SiteStatus, *, quick: bool) -> None:
        """Print what to do next for a site, such as to review or to run a build."""
        write, style, held = self.stdout.write, self.style, report.held
        if report.missing:
            write(f"  {english_of(report.missing)}", style.WARNING)
        if held is not None:
            what = "a preview" if held.outcome == "preview" else "held for review"
            write(f"  Build {held.pk} is {what}:", style.WARNING)
            write(f"  {how_to_review(held.pk)}", style.WARNING)
            if report.pause is None and code_of(held.reason) == "paused":
                write(
                    "  The pause is over: run build_sitemaps to publish what is current.",
                    style.NOTICE,
                )
        if any(item.error for item in report.due):
            write("  A build would fail: correct what cannot be read.", style.WARNING)
        elif report.progress is not None and report.progress.state != Build.Status.RUNNING:
            write(
                f"  Run build_sitemaps: it adopts the pages of build {report.progress.build}.",
                style.NOTICE,
            )
        elif _is_build_due(report) and not report.lease:
            write("  Run build_sitemaps to build what is due.", style.NOTICE)
            if report.is_idle(hours=24):
                write(f"  {NO_SCHEDULE}", style.NOTICE)
        elif not (_is_build_due(report) or held):
            else_due = "Nothing else is due. Only a build tells whether these files change."
            what = else_due if report.due else "Nothing is due."
            looked = " Rows were not compared; files were looked for on a local disk only."
            write(f"  {what}{looked * quick}", style.SUCCESS)


def _is_build_due(report: SiteStatus) -> bool:
    """Return whether a page or the export is due.

    Pages that every build renders because methods are called do not count.
    """
    return any(item.pages.keys() - {Reason.METHODS} for item in report.due) or bool(
        report.export and report.export.due
    )


def _moment_text(moment: dt.datetime, report: SiteStatus) -> str:
    """Return a moment to the second, and its age in words."""
    return f"{moment.isoformat(timespec='seconds')} ({age_text(moment, report.as_of)})"


def _change_with_percentage(urls: int, before: int | None) -> str:
    """Return the difference of two numbers of URLs, with its percentage: ``+20 (+10 %)``.

    "" if ``before`` is unknown or the same.
    """
    if before in {None, urls}:
        return ""
    more = urls - (before or 0)
    percent = round(100 * more / before) if before else 0
    return f"{more:+,} ({percent:+} %)" if percent else f"{more:+,}"


def _running_lines(report: SiteStatus) -> Iterator[str]:
    """Yield who builds the site, and how far the build is, or that no build is running."""
    if report.running:
        yield f"built by {english_of(report.running)}"
    if report.progress is not None:
        progress = report.progress
        text = (
            f"build {progress.build}, {progress.done:,} of {count_of(progress.total, 'file')} done,"
            f" {count_of(progress.urls, 'URL')}"
        )
        if progress.state != Build.Status.RUNNING:
            text += f"; {progress.state}, the next build adopts its pages"
        rate = progress.urls_per_second
        yield text if rate is None else f"{text}; {rate:,} per second in new files"
    elif not report.running:
        yield "No build is running."


def _late_text(report: SiteStatus, hours: float) -> str:
    """Return the key of a site and, in parentheses unless all are late, its late sections."""
    sections = report.late_sections(hours)
    if len(sections) in {0, sum(section.built for section in report.sections)}:
        return report.site
    return f"{report.site} ({', '.join(sections)})"
