"""Examine some rows of each section, and show what would make it faster."""

import time
from dataclasses import asdict
from typing import Any

from django_sitemapkit.advice.advisor import advise
from django_sitemapkit.management.base import PublishedCommand
from django_sitemapkit.printable import count_of


class Command(PublishedCommand):
    """Advise routes, columns, fields and indexes for each section; change nothing."""

    help = __doc__ or ""

    def run(self, options: dict[str, Any]) -> None:
        """Advise each site."""
        began = time.monotonic()
        advice = {site: list(advise(site)) for site in self.sites(options["site"])}
        if options["json"]:
            found = [
                {"site": site.key, "sections": list(map(asdict, sections))}
                for site, sections in advice.items()
            ]
            self.write_json(found)
            return
        for site, sections in advice.items():
            self.stdout.write(f"Site {site.key!r} at {site.base}:")
            for line in (line for section in sections for line in section.lines()):
                self.stdout.write(line)
        every = [section for sections in advice.values() for section in sections]
        advised = sum(section.is_advised for section in every)
        self.stdout.write(
            f"{count_of(len(every), 'section')} examined in {time.monotonic() - began:.1f} s, with"
            f" advice for {advised:,}. Nothing was changed.",
            self.style.SUCCESS,
        )
