"""Print a first sitemaps.py: sections for the models and pages that no section lists yet."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.management.base import Exit, SiteCommand
from django_sitemapkit.scaffold import propose_module, write_module


class Command(SiteCommand):
    """Print a module ``sitemaps`` or write it into an app, and say what to do next."""

    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--write``."""
        parser.add_argument(
            "--write",
            metavar="APP",
            help="Write the module into this app of your project, unless it has one.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Print or write the module, and what to do next."""
        app, (module, steps) = options["write"], propose_module()
        lines = str(module).splitlines()
        if app and module.sections:
            try:
                lines = [f"Wrote {write_module(app, str(module))}."]
            except (LookupError, OSError) as error:
                raise CommandError(str(error), returncode=Exit.USAGE) from error
        for line in lines:
            self.stdout.write(line)
        # Not on stdout: what is printed may go into a file.
        for line in steps if options["verbosity"] and module.sections else ():
            self.stderr.write(line, self.style.NOTICE)
