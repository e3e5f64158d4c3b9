"""Delete the files of builds that are over, and what killed builders left."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import prune
from django_sitemapkit.exceptions import BuildRunning, SitemapKitError
from django_sitemapkit.management.base import Exit, PublishedCommand


class Command(PublishedCommand):
    """Delete files past their grace period; every build does so by itself."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument(
            "--dry-run", action="store_true", help="Say what would be deleted; delete nothing."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Prune each site."""
        for site in self.sites(options["site"]):
            try:
                pruned = prune(site, dry_run=options["dry_run"])
            except BuildRunning as error:
                raise CommandError(str(error), returncode=Exit.RUNNING) from error
            except SitemapKitError as error:
                raise CommandError(str(error), returncode=Exit.FAILED) from error
            for name in (*pruned.files, *pruned.orphans) if options["verbosity"] else ():
                self.stdout.write(name)
            verb = "would go" if options["dry_run"] else "deleted"
            if options["verbosity"]:
                self.stdout.write(
                    f"Site {site.key!r}: {len(pruned.files):,} files and"
                    f" {len(pruned.orphans):,} orphans {verb}."
                )
            if not pruned.swept:
                self.stderr.write(
                    "The storage cannot list its files, so orphans were not looked for."
                )
