"""Show which URLs a build adds, removes and changes."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import Difference, differences_of
from django_sitemapkit.builds.manifests import primary
from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.management.base import Exit, PublishedCommand
from django_sitemapkit.models import Build


class Command(PublishedCommand):
    """Print the URLs that a build adds (+), removes (-) and changes (~), one per line."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the build."""
        super().add_arguments(parser)
        parser.add_argument(
            "build",
            type=int,
            nargs="?",
            help="The build's id; default: the build held for review, else the published one.",
        )
        parser.add_argument(
            "--json", action="store_true", help="Print one JSON object per line, for programs."
        )

    def run(self, options: dict[str, Any]) -> None:
        """Compare the build of each site with the one published before it."""
        sites, build = self.sites(options["site"]), options["build"]
        if build is not None:
            keys = primary(Build).filter(pk=build).values_list("site", flat=True)
            sites = [site for site in sites if site.key in keys]
            if not sites:
                message = f"There is no build {build} of these sites."
                raise CommandError(message, returncode=Exit.USAGE)
        line = _json if options["json"] else str
        failed: list[str] = []
        for site in sites:
            try:
                for difference in differences_of(site, build):
                    self.stdout.write(line(difference))
            except SitemapKitError as error:
                failed.append(str(error))
        if failed:
            raise CommandError("\n".join(failed), returncode=Exit.FAILED)


def _json(difference: Difference) -> str:
    return json.dumps({"change": difference.kind.name.lower(), "url": difference.location})
