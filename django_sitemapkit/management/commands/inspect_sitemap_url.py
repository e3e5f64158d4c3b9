"""Explain one URL: which published files list it, and whether the next build does."""

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import find_url
from django_sitemapkit.exceptions import InvalidValue, StorageFailure
from django_sitemapkit.inspection import UrlInspection, inspect_path
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
    published: list[str] = []
    error = ""
    try:
        published.extend(find_url(site, url))
    except StorageFailure as failure:
        error = str(failure)
    found = inspect_path(site, location.removeprefix(site.origin))
    return {
        "site": site.key,
        "url": location,
        "published": published,
        "error": error,
        "next_build": {
            "listed": found.listed,
            "section": found.section,
            "reason": found.why,
            "values": _values(found),
        },
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
        for address in report["published"]:
            yield f"  published in {address}"
        if not report["published"]:
            yield "  not published"
        following = report["next_build"]
        if following["listed"]:
            yield f"  next build: listed by section {following['section']!r}"
        else:
            yield f"  next build: not listed: {following['reason']}"
        for tag, value in following["values"].items():
            yield f"    {tag}: {value['value']} ({value['origin']})"
