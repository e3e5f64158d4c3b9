"""Say what is published, what is being built, and whether that is recent enough."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.advice import SectionAdvice, advise
from django_sitemapkit.builds.status import SiteStatus, find_url, status_of
from django_sitemapkit.exceptions import RefusedValue, StorageFailure
from django_sitemapkit.management.base import Exit, SiteCommand


class Command(SiteCommand):
    """Show each site's sections: pages, URLs, bytes, problems; and its builds."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="Print JSON, for programs.")
        parser.add_argument(
            "--max-age",
            type=float,
            metavar="HOURS",
            help="Exit with 1 if a site has nothing published, or the last build is older.",
        )
        parser.add_argument(
            "--find", metavar="URL", help="Say which published file lists this URL; exit 1 if none."
        )
        parser.add_argument(
            "--advise",
            action="store_true",
            help="Look at some rows of each section, and say what would make it faster.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Show each site."""
        sites = self.sites(options["site"])
        if options["find"]:
            self._find(sites, options["find"])
            return
        reports = [status_of(site) for site in sites]
        advice = [list(advise(site)) if options["advise"] else None for site in sites]
        if options["json"]:
            told = map(_as_dict, reports, advice)
            self.stdout.write(json.dumps(list(told), indent=2))
        else:
            for report, advised in zip(reports, advice, strict=True):
                self._show(report)
                for line in (line for section in advised or () for line in section.lines()):
                    self.stdout.write(line)
        hours = options["max_age"]
        late = [r.site for r in reports if hours is not None and r.is_older(hours)]
        if late:
            raise CommandError(
                f"Not built within {hours:g} hours: {', '.join(late)}.",
                returncode=Exit.FAILED,
            )

    def _find(self, sites: list[Any], url: str) -> None:
        found = 0
        refused: list[RefusedValue] = []
        lost: list[StorageFailure] = []
        for site in sites:
            try:
                for address in find_url(site, url):
                    self.stdout.write(address)
                    found += 1
            except RefusedValue as error:  # It may be another site's.
                refused.append(error)
            except StorageFailure as error:
                lost.append(error)
        if len(refused) == len(sites):
            raise CommandError(f"{url}: {refused[0]}", returncode=Exit.USAGE)
        if lost and not found:
            raise CommandError(str(lost[0]), returncode=Exit.FAILED)
        if not found:
            raise CommandError(f"No published file lists {url}.", returncode=Exit.FAILED)

    def _show(self, report: SiteStatus) -> None:
        write = self.stdout.write
        published = f"build {report.build}, {report.published_at}" if report.build else "nothing"
        write(f"Site {report.site!r} at {report.base_url}: published: {published}")
        if report.running:
            write(f"  being built by {report.running}")
        for section in report.sections:
            line = (
                f"  {section.name:<26} {section.pages:>6,} pages {section.urls:>12,} URLs"
                f" {section.bytes:>14,} bytes"
            )
            if section.skipped:
                line += f"  {section.skipped:,} rows left out"
            write(line if section.built else f"  {section.name:<26} not built: served live")
        for kept in report.builds:
            reason = f": {kept.reason}" if kept.reason else ""
            write(f"  build {kept.build}: {kept.status}, {kept.started_at}{reason}")


def _as_dict(report: SiteStatus, advice: list[SectionAdvice] | None) -> dict[str, Any]:
    """Return a site as JSON takes it, with the advice where it was asked for."""
    if advice is None:
        return report.as_dict()
    return report.as_dict() | {"advice": [section.as_dict() for section in advice]}
