"""Show which URLs a build adds, removes and changes."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import differences_of
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

    def run(self, options: dict[str, Any]) -> None:
        """Compare the build of each site with the previous one."""
        sites, build = self.sites(options["site"]), options["build"]
        if build is not None:
            keys = Build.objects.filter(pk=build).values_list("site", flat=True)
            sites = [site for site in sites if site.key in keys]
            if not sites:
                message = f"None of these sites has a build {build}."
                raise CommandError(message, returncode=Exit.USAGE)
        failed: list[str] = []
        for site in sites:
            try:
                for difference in differences_of(site, build):
                    if options["json"]:
                        kind = difference.kind.name.lower()
                        self.write_json({"change": kind, "url": difference.location})
                    else:
                        self.stdout.write(str(difference))
            except SitemapKitError as error:
                failed.append(str(error))
        if failed:
            raise CommandError("\n".join(failed), returncode=Exit.FAILED)
