"""Delete the files of replaced builds and of builders that were killed."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from django_sitemapkit.builds import prune
from django_sitemapkit.management.base import Exit, PublishedCommand
from django_sitemapkit.printable import count_of
from django_sitemapkit.sites import SitemapSite


class Command(PublishedCommand):
    """Delete files past their grace period; every build also does this."""

    more_exit_codes = (Exit.RUNNING,)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--dry-run``."""
        super().add_arguments(parser)
        parser.add_argument(
            "--dry-run", action="store_true", help="List the files without deleting them."
        )

    def run(self, options: dict[str, Any]) -> None:
        """Delete each site's files past their grace period; list them with ``--dry-run``."""
        for site in self.sites(options["site"]):
            with self.collecting_failures():
                self._prune_site(site, dry_run=options["dry_run"])
        self.raise_failures()

    def _prune_site(self, site: SitemapSite, *, dry_run: bool) -> None:
        """Delete a site's files past their grace period, and print their names."""
        pruned = prune(site, dry_run=dry_run)
        self.write_json({"site": site.key, "dry_run": dry_run, **asdict(pruned)})
        for name in (*pruned.files, *pruned.orphans):
            self.say(name)
        verb = "would be deleted" if dry_run else "deleted"
        self.say(
            f"Site {site.key!r}: {count_of(len(pruned.files), 'file')} and"
            f" {count_of(len(pruned.orphans), 'orphan')} {verb}.",
            self.style.SUCCESS,
        )
        if not pruned.swept:
            self.stderr.write(
                "The storage cannot list its files, so orphans were not searched for.",
                self.style.WARNING,
            )
