"""Show how each option of each section is read, and what would make it faster."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django_sitemapkit.inspection import OptionReading, ReadAs, SectionReading, reading_reports_of
from django_sitemapkit.management.base import PublishedCommand


class Command(PublishedCommand):
    """Show how sections are read, in at most ten lines each, without changing anything."""

    def run(self, options: dict[str, Any]) -> None:
        """Print how each option of each site's sections is read, and what to write instead."""
        found = {site: list(reading_reports_of(site)) for site in self.sites(options["site"])}
        self.write_json(
            [
                {"site": site.key, "sections": list(map(asdict, sections))}
                for site, sections in found.items()
            ]
        )
        for site, sections in found.items():
            self.stdout.write(f"Site {site.key!r} at {site.base}:")
            for line in (line for section in sections for line in _section_lines(section)):
                self.stdout.write(line)


def _section_lines(section: SectionReading) -> Iterator[str]:
    """Yield a line about a section, and one about each of its options."""
    because = f", because {section.why}" if section.why else ""
    text = f"is read {section.read_as.label}{because}. {section.instead}".rstrip()
    if section.read_as == ReadAs.FAILED:
        text = f"cannot be read: {section.why}"
    yield f"  {section.section} ({section.declared}) {text}"
    for option in section.options:
        yield f"    {option.option}: {option.read_as.value}{_option_details(option)}"


def _option_details(option: OptionReading) -> str:
    """Return what an option reads, why and where it calls a method, and what to write instead."""
    reads = f": {option.reads}" if option.reads else ""
    why = f": it {option.why}" if option.why else ""
    expression = f": {option.expression}" if option.expression else ""
    where = f" ({option.file}, line {option.line}{expression})" if option.file else ""
    instead = f". {option.instead}" if option.instead else ""
    return f"{reads}{why}{where}{instead}"
