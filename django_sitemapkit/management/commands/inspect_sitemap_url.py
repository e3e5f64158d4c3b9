"""Explain one URL: which published files list it, and whether the next build does."""

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import search_published
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.inspection import UrlInspection, inspect_path, similar_path
from django_sitemapkit.management.base import Exit, PublishedCommand
from django_sitemapkit.sites import SitemapSite


class Command(PublishedCommand):
    """Show where a URL is published, and whether the next build lists it or why not."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the URL."""
        super().add_arguments(parser)
        parser.add_argument("url", help="An absolute URL, or a path from the root of the host.")

    def run(self, options: dict[str, Any]) -> None:
        """Inspect the URL on each site that may list it."""
        url = options["url"]
        errors: list[InvalidValue] = []
        reports: list[dict[str, Any]] = []
        sites = self.sites(options["site"])
        for site in sites:
            try:
                reports.append(_report(site, url))
            except InvalidValue as error:  # It may be a URL of another site.
                errors.append(error)
        if not reports:
            raise CommandError(f"{url}: {errors[0]}", returncode=Exit.USAGE)
        if options["json"]:
            self.write_json(reports)
        for line in () if options["json"] else _lines(reports):
            self.stdout.write(line)
        if not any(report["published"] for report in reports):
            failures = [report["error"] for report in reports if report["error"]]
            message = failures[0] if failures else f"No published file lists {url}."
            raise CommandError(message, returncode=Exit.FAILED)


def _report(site: SitemapSite, url: str) -> dict[str, Any]:
    """Return a report on a URL of a site, for JSON."""
    location = site.scope().normalise(url)
    path = location.removeprefix(site.origin)
    search, found = search_published(site, location), inspect_path(site, path)
    is_known = found.listed or search.found
    return {
        "site": site.key,
        "url": location,
        "published": [
            {
                "file": each.address,
                "changed_at": each.changed_at and each.changed_at.isoformat(),
                "values": each.values,
            }
            for each in search.found
        ],
        "error": next(iter(search.failures), ""),
        "next_build": {
            "listed": found.listed,
            "section": found.section,
            "reason": found.why,
            "values": _values(found),
        },
        "similar": "" if is_known else similar_path(site, path),
    }


def _values(found: UrlInspection) -> dict[str, dict[str, str]]:
    return {
        tag: {"value": value.text, "origin": value.origin}
        for tag, value in found.values.items()
        if value.text is not None
    }


def _lines(reports: list[dict[str, Any]]) -> Iterator[str]:
    for report in reports:
        yield f"{report['url']} (site {report['site']!r})"
        for each in report["published"]:
            yield f"  published in {each['file']}"
            for tag, text in each["values"].items():
                yield f"    {tag}: {text}"
        if not report["published"]:
            yield "  not published"
        following = report["next_build"]
        if following["listed"]:
            yield f"  next build: listed by section {following['section']!r}"
        else:
            yield f"  next build: not listed: {following['reason']}"
        for tag, value in following["values"].items():
            yield f"    {tag}: {value['value']} ({value['origin']})"
        if report["similar"]:
            yield f"  {report['similar']} is listed"
