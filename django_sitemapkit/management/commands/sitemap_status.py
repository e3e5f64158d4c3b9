"""Say what is published, what is being built, and whether that is recent enough."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.advice import SectionAdvice, advise
from django_sitemapkit.builds import SiteStatus, differences_of, find_url, status_of
from django_sitemapkit.builds.manifests import primary
from django_sitemapkit.exceptions import RefusedValue, SitemapKitError, StorageFailure
from django_sitemapkit.management.base import Exit, PublishedCommand
from django_sitemapkit.models import Build


class Command(PublishedCommand):
    """Show each site's sections: pages, URLs, bytes, problems; and its builds."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="Print JSON, for programs.")
        parser.add_argument(
            "--quick",
            action="store_true",
            help="Do not look at the rows: what is due because of them is not told.",
        )
        parser.add_argument(
            "--max-age",
            type=float,
            metavar="HOURS",
            help="Exit with 1 if a site has nothing published, or a section was last built longer"
            " ago.",
        )
        either = parser.add_mutually_exclusive_group()
        either.add_argument(
            "--find", metavar="URL", help="Say which published file lists this URL; exit 1 if none."
        )
        either.add_argument(
            "--diff",
            type=int,
            nargs="?",
            const=0,
            metavar="BUILD",
            help="Print the URLs that a build adds (+), removes (-) and changes (~): the one held"
            " back, else the published one.",
        )
        either.add_argument(
            "--advise",
            action="store_true",
            help="Look at some rows of each section, and say what would make it faster.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Show each site."""
        asked = options["find"] or options["diff"] is not None
        if asked and (options["json"] or options["quick"] or options["max_age"] is not None):
            message = "--json, --quick and --max-age do not go with --find and --diff."
            raise CommandError(message, returncode=Exit.USAGE)
        sites = self.sites(options["site"])
        if options["find"]:
            self._find(sites, options["find"])
            return
        if options["diff"] is not None:
            self._diff(sites, options["diff"] or None)
            return
        reports = [status_of(site, rows=not options["quick"]) for site in sites]
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
        late = [_late(r, hours) for r in reports if hours is not None and r.is_older(hours)]
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

    def _diff(self, sites: list[Any], build: int | None) -> None:
        if build is not None:
            keys = primary(Build).filter(pk=build).values_list("site", flat=True)
            sites = [site for site in sites if site.key in keys]
            if not sites:
                message = f"There is no build {build} of the sites asked for."
                raise CommandError(message, returncode=Exit.USAGE)
        failed: list[str] = []
        for site in sites:
            try:
                for difference in differences_of(site, build):
                    self.stdout.write(str(difference))
            except SitemapKitError as error:
                failed.append(str(error))
        if failed:
            raise CommandError("\n".join(failed), returncode=Exit.FAILED)

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
        if report.export is not None:
            export = report.export
            state = f"due: {export.due}" if export.due else f"complete since {export.exported_at}"
            write(f"  export to {export.storage!r}: {state}")
        for item in report.due:
            reasons = ", ".join(
                f"{what}: {count:,} pages" if count else what for what, count in item.pages.items()
            )
            name = item.section or "index"
            write(f"  due: {name}: {': '.join(filter(None, (reasons, item.error)))}")
        for kept in report.builds:
            reason = f": {kept.reason}" if kept.reason else ""
            write(f"  build {kept.build}: {kept.status}, {kept.started_at}{reason}")
            for warning in kept.warnings:
                write(f"    warning: {warning}")


def _late(report: SiteStatus, hours: float) -> str:
    """Return what is late of a site: some of its sections, or all of it."""
    sections = report.late_sections(hours)
    if len(sections) in {0, sum(section.built for section in report.sections)}:
        return report.site
    return f"{report.site} ({', '.join(sections)})"


def _as_dict(report: SiteStatus, advice: list[SectionAdvice] | None) -> dict[str, Any]:
    """Return a site as JSON takes it, with the advice where it was asked for."""
    if advice is None:
        return report.as_dict()
    return report.as_dict() | {"advice": [section.as_dict() for section in advice]}
