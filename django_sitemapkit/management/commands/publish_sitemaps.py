"""Publish a build that is stored: one that was held back, or the one before."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import publish
from django_sitemapkit.builds.manifests import primary
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import BuildRunning, SitemapKitError
from django_sitemapkit.management.base import Exit, PublishedCommand, files_exported
from django_sitemapkit.models import Build


class Command(PublishedCommand):
    """Let a site serve another build, whose files are all still stored."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the build."""
        parser.add_argument("build", type=int, help="The build's id, as sitemap_status shows it.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Publish the build."""
        record = primary(Build).filter(pk=options["build"]).first()
        if record is None:
            message = f"There is no build {options['build']}."
            raise CommandError(message, returncode=Exit.USAGE)
        site = self.sites([record.site])[0]
        try:
            exported = publish(site, record.pk)
        except BuildRunning as error:
            raise CommandError(str(error), returncode=Exit.RUNNING) from error
        except SitemapKitError as error:
            raise CommandError(str(error), returncode=Exit.FAILED) from error
        if options["verbosity"]:
            copied = f" {files_exported(exported)}" if settings.EXPORT else ""
            self.stdout.write(f"Site {site.key!r} now serves build {record.pk}.{copied}")
