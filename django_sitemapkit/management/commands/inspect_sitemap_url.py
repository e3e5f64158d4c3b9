"""Explain one URL: which published files list it, and whether the next build does."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import override

from django_sitemapkit.builds import search_published
from django_sitemapkit.builds.report.published import is_served_live
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.inspection import inspect_listings, similar_path
from django_sitemapkit.management.base import Exit, PublishedCommand
from django_sitemapkit.sites import SitemapSite


class Command(PublishedCommand):
    """Show where a URL is published, and whether the next build lists it, or why not."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the URL."""
        super().add_arguments(parser)
        parser.add_argument("url", help="An absolute URL, or a path from the root of the host.")

    def run(self, options: dict[str, Any]) -> None:
        """Inspect the URL on each site that may list it."""
        url = options["url"]
        errors: list[InvalidValue] = []
        reports: list[dict[str, Any]] = []
        for site in self.sites(options["site"]):
            try:
                reports.append(_url_report(site, url))
            except InvalidValue as error:  # It may be a URL of another site.
                errors.append(error)
        if not reports:
            raise CommandError(f"{url}: {errors[0]}", returncode=Exit.USAGE)
        self.write_json(reports)
        for report in reports:
            self._print_report(report)
        if not any(report["published"] for report in reports):
            failures = [report["error"] for report in reports if report["error"]]
            if failures:
                raise CommandError(failures[0], returncode=Exit.FAILED)
            message = f"No published file lists {url}."
            if any(report["next_build"]["listed"] for report in reports):
                message += " The next build lists it: run build_sitemaps."
            raise CommandError(message, returncode=Exit.FAILED)

    def _print_report(self, report: dict[str, Any]) -> None:
        """Print the report on one URL of a site."""
        write, style = self.stdout.write, self.style
        write(f"{report['url']} (site {report['site']!r})")
        for each in report["published"]:
            times = f", {each['times']} times" if each["times"] > 1 else ""
            write(f"  published in {each['file']}{times}", style.SUCCESS)
            for tag, text in each["values"].items():
                write(f"    {tag}: {text}")
        if report["served_live"]:
            write("  served live, not from a published file", style.SUCCESS)
        elif not report["published"]:
            write("  not published", style.WARNING)
        self._print_next_build(report["next_build"])
        if report["similar"]:
            write(f"  {report['similar']} is listed", style.NOTICE)

    def _print_next_build(self, following: dict[str, Any]) -> None:
        """Print what the next build lists, or why not, and which other sections list it."""
        write, style = self.stdout.write, self.style
        if following["listed"]:
            write(f"  next build: listed by section {following['section']!r}", style.SUCCESS)
        else:
            write(f"  next build: not listed: {following['reason']}", style.WARNING)
        for tag, value in following["values"].items():
            write(f"    {tag}: {value['value']} ({value['origin']})")
        for text in following["problems"]:
            write(f"    {text}", style.WARNING)
        for each in following["also"]:
            verb = "left out" if settings.DEDUPLICATE else "also listed"
            row = f" (row {each['row']})" if each["row"] else ""
            text = f"  next build: {verb} by section {each['section']!r}{row}, in {each['file']}"
            write(text, style.WARNING)


@override("en")
def _url_report(site: SitemapSite, url: str) -> dict[str, Any]:
    """Return where a site publishes a URL and whether its next build lists it, for JSON.

    Raises InvalidValue for a URL that the site may not list.
    """
    location = site.scope().normalise(url)
    path = location.removeprefix(site.origin)
    search, (found, *others) = search_published(site, location), inspect_listings(site, path)
    return {
        "site": site.key,
        "url": location,
        "published": [
            {
                "file": each.address,
                "changed_at": each.changed_at and each.changed_at.isoformat(),
                "values": each.values,
                "times": each.times,
            }
            for each in search.found
        ],
        "served_live": found.listed and is_served_live(site, found.section),
        "error": next(iter(search.failures), ""),
        "next_build": {
            "listed": found.listed,
            "section": found.section,
            "reason": found.why,
            "problems": list(found.problems),
            "values": {
                tag: {"value": value.text, "origin": value.origin}
                for tag, value in found.values.items()
                if value.text is not None
            },
            "also": [
                {"section": each.section, "row": str(each.pk or ""), "file": each.page}
                for each in others
            ],
        },
        "similar": "" if found.listed or search.found else similar_path(site, path),
    }
