"""Publish a build that is stored: one that was held back, or the one before."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import publish
from django_sitemapkit.builds.manifests import primary, published_build
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import BuildRunning, SitemapKitError
from django_sitemapkit.management.base import Exit, PublishedCommand, files_exported
from django_sitemapkit.models import Build
from django_sitemapkit.sites import Site


class Command(PublishedCommand):
    """Let a site serve another build, whose files are all still stored."""

    help = __doc__ or ""

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
            help="Roll back: publish the build that was published before this one.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Publish the build of each site."""
        sites = self.sites(options["site"])
        for site, build in self._builds(sites, options["build"]):
            try:
                exported = publish(site, build)
            except BuildRunning as error:
                raise CommandError(str(error), returncode=Exit.RUNNING) from error
            except SitemapKitError as error:
                raise CommandError(str(error), returncode=Exit.FAILED) from error
            if options["verbosity"]:
                copied = f" {files_exported(exported)}" if settings.EXPORT else ""
                self.stdout.write(f"Site {site.key!r} now serves build {build}.{copied}")

    def _builds(self, sites: list[Site], build: int | None) -> list[tuple[Site, int]]:
        """Return the sites with the build that each is to serve."""
        if build is None:
            return [(site, self._previous(site)) for site in sites]
        key = primary(Build).filter(pk=build).values_list("site", flat=True).first()
        found = [(site, build) for site in sites if site.key == key]
        if not found:
            message = f"There is no build {build} of these sites."
            raise CommandError(message, returncode=Exit.USAGE)
        return found

    def _previous(self, site: Site) -> int:
        """Return the build that was published before the one that a site serves."""
        live = published_build(site)
        if live is None or live.previous_id is None:
            message = f"Site {site.key!r}: no build was published before the one it serves."
            raise CommandError(message, returncode=Exit.FAILED)
        return live.previous_id
