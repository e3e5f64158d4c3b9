"""Publish a stored build: one that is held for review, or an earlier one."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import publish
from django_sitemapkit.conf import settings
from django_sitemapkit.management.base import Exit, PublishedCommand
from django_sitemapkit.models import Build
from django_sitemapkit.printable import count_of
from django_sitemapkit.sites import SitemapSite


class Command(PublishedCommand):
    """Publish another build, whose files are all still stored."""

    help = __doc__ or ""
    more_exit_codes = (Exit.RUNNING,)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the build."""
        super().add_arguments(parser)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "build", type=int, nargs="?", help="The build's id, as sitemap_status shows it."
        )
        which.add_argument(
            "--previous",
            action="store_true",
            help="Roll back: publish the build that was published before the current one.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Publish one build per site."""
        sites = self.sites(options["site"])
        for site, build in self._builds(sites, options["build"]):
            exported = publish(site, build)
            if options["json"]:
                self.write_json({"site": site.key, "build": build, "exported": exported})
            elif options["verbosity"]:
                text = f"Site {site.key!r} now serves build {build}."
                if settings.EXPORT_STORAGE:
                    text += f" {count_of(exported, 'file')} exported."
                self.stdout.write(text)

    def _builds(self, sites: list[SitemapSite], build: int | None) -> list[tuple[SitemapSite, int]]:
        """Return the sites, each with the build to publish."""
        if build is None:
            return [(site, self._previous(site)) for site in sites]
        key = Build.objects.filter(pk=build).values_list("site", flat=True).first()
        found = [(site, build) for site in sites if site.key == key]
        if not found:
            message = f"None of these sites has a build {build}."
            raise CommandError(message, returncode=Exit.USAGE)
        return found

    def _previous(self, site: SitemapSite) -> int:
        """Return the build that was published before the current one."""
        live = Build.objects.published(site)
        if live is None or live.previous_id is None:
            message = f"Site {site.key!r} has no earlier published build."
            raise CommandError(message, returncode=Exit.FAILED)
        return live.previous_id
