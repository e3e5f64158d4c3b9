"""Look at some rows of each section, and say what would make it faster."""

import json
from typing import Any

from django.core.management.base import CommandParser

from django_sitemapkit.advice.advisor import advise
from django_sitemapkit.management.base import PublishedCommand


class Command(PublishedCommand):
    """Advise routes, columns, fields and indexes for each section; write nothing."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="Print JSON, for programs.")

    def run(self, options: dict[str, Any]) -> None:
        """Advise each site."""
        advice = {site: list(advise(site)) for site in self.sites(options["site"])}
        if options["json"]:
            found = [
                {"site": site.key, "sections": [section.as_dict() for section in sections]}
                for site, sections in advice.items()
            ]
            for line in json.dumps(found, indent=2).splitlines():
                self.stdout.write(line)
            return
        for site, sections in advice.items():
            self.stdout.write(f"Site {site.key!r} at {site.base}:")
            for line in (line for section in sections for line in section.lines()):
                self.stdout.write(line)
