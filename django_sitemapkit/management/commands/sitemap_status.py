"""Show what is published and what is being built, and check its age."""

import datetime as dt
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import SiteStatus, status_of
from django_sitemapkit.management.base import Exit, PublishedCommand
from django_sitemapkit.printable import count_of

MAX_HOURS = 876_000
"""A hundred years, within the range of dates."""


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
        if options["json"]:
            self.write_json([report.as_dict() for report in reports])
        else:
            for report in reports:
                self._show(report)
        hours = options["max_age"]
        late = [_late(r, hours) for r in reports if hours is not None and r.is_older(hours)]
        if late:
            raise CommandError(
                f"Not built within {hours:g} hours: {', '.join(late)}.",
                returncode=Exit.FAILED,
            )

    def _show(self, report: SiteStatus) -> None:
        write = self.stdout.write
        published = "nothing"
        if report.published_at is not None:
            at = dt.datetime.fromisoformat(report.published_at).isoformat(timespec="seconds")
            published = f"build {report.build}, {at}"
        write(f"Site {report.site!r} at {report.base_url}: published: {published}")
        if report.running:
            write(f"  being built by {report.running}")
        for section in report.sections:
            line = (
                f"  {section.name:<26} pages: {section.pages:>6,}  URLs: {section.urls:>12,}"
                f"  bytes: {section.xml_bytes:>14,}"
            )
            if section.duplicates:
                line += f"  duplicates: {section.duplicates}"
            if section.skipped:
                line += f"  {count_of(section.skipped, 'row')} skipped"
            write(line if section.built else f"  {section.name:<26} not built: served live")
        if report.export is not None:
            export = report.export
            state = f"due: {export.due}" if export.due else f"complete since {export.exported_at}"
            write(f"  export to {export.storage!r}: {state}")
        for item in report.due:
            reasons = ", ".join(
                f"{reason}: {count_of(count, 'page')}" if count else reason
                for reason, count in item.pages.items()
            )
            name = item.section or "index"
            write(f"  due: {name}: {': '.join(filter(None, (reasons, item.error)))}")
        for kept in report.builds:
            reason = f": {kept.reason}" if kept.reason else ""
            write(f"  build {kept.build}: {kept.status}, {kept.started_at}{reason}")
            for warning in kept.warnings:
                write(f"    warning: {warning}")


def _late(report: SiteStatus, hours: float) -> str:
    """Return the late sections of a site, or the whole site."""
    sections = report.late_sections(hours)
    if len(sections) in {0, sum(section.built for section in report.sections)}:
        return report.site
    return f"{report.site} ({', '.join(sections)})"


def _require_hours(hours: float | None) -> None:
    """Reject a number that is not an age, such as "nan"."""
    if hours is not None and not 0 <= hours <= MAX_HOURS:
        message = f"--max-age must be from 0 to {MAX_HOURS:,} hours, not {hours}."
        raise CommandError(message, returncode=Exit.USAGE)
