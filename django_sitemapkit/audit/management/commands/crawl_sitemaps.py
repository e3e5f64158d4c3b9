"""Crawl the site by following links, and report broken links and what the sitemaps miss."""

from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.audit.kinds import CRAWL_KINDS, FindingKind
from django_sitemapkit.audit.management.base import (
    FindingsCommand,
    import_audit_module,
    positive_integer,
    positive_number,
)
from django_sitemapkit.audit.models import MAX_CRAWLED_URLS, AuditRun
from django_sitemapkit.exceptions import InvalidValue, StorageFailure
from django_sitemapkit.management.base import Exit, exiting_on_sigterm
from django_sitemapkit.printable import count_of
from django_sitemapkit.sites import SitemapSite


class Command(FindingsCommand):
    """Crawl each site, and print a paragraph for each kind of finding."""

    interrupted = "Interrupted. Run the same command again to continue the crawl."
    kinds = CRAWL_KINDS
    bad_stands_for = "broken-link"

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument(
            "starts",
            nargs="*",
            metavar="START",
            help="URLs or paths to start at; default: the home page of each site.",
        )
        parser.add_argument(
            "--below",
            default="",
            metavar="FOLDER",
            help="Crawl only URLs below this path, such as /products/, and start there.",
        )
        parser.add_argument(
            "--max-urls",
            type=positive_integer,
            default=MAX_CRAWLED_URLS,
            metavar="URLS",
            help="End after this many URLs; default: %(default)s.",
        )
        parser.add_argument(
            "--max-depth",
            type=positive_integer,
            metavar="LINKS",
            help="Fetch no URL more than this many links away from a start.",
        )
        parser.add_argument(
            "--max-seconds", type=positive_number, metavar="SECONDS", help="End after this time."
        )
        parser.add_argument(
            "--external",
            action="store_true",
            help="With --live: also check links to other sites and files there, with at most one"
            " request a second to each host.",
        )
        parser.add_argument(
            "--output",
            type=Path,
            metavar="FOLDER",
            help="Write the pages as XML, text and HTML sitemaps, and all URLs and broken links"
            " as CSV, into this folder.",
        )
        parser.add_argument(
            "--save",
            action="store_true",
            help="Save the pages that no section lists, for the sitemap's CrawledSection.",
        )
        parser.add_argument(
            "--diff", action="store_true", help="Show the changes since the previous crawl."
        )

    def run(self, options: dict[str, Any]) -> None:
        """Crawl each site; the output folder stays locked until the end."""
        with ExitStack() as self._reserved:
            super().run(options)

    def sites_of(self, options: dict[str, Any]) -> list[SitemapSite]:
        """Return the sites to crawl; with starts, only the sites that these belong to.

        Also stores the starts of each site, and locks the output folder. Raises CommandError for a
        start that belongs to no site, or if what the options need is missing.
        """
        starts = options["starts"] or list(filter(None, [options["below"]]))
        sites = self._sites_with_starts(super().sites_of(options), starts, options["below"])
        try:
            self._prepare_save_and_output(sites, options)
        except (ImproperlyConfigured, StorageFailure) as error:
            raise CommandError(str(error), returncode=Exit.USAGE) from error
        return sites

    def _sites_with_starts(
        self, sites: list[SitemapSite], starts: list[str], below: str
    ) -> list[SitemapSite]:
        """Return the sites that have a start, or all without starts; store the starts by site.

        Raises CommandError for a start that belongs to no site.
        """
        self._starts: dict[str, list[str]] = {}
        if not starts:
            return sites
        scope_of = import_audit_module("crawl.outcome").CrawlScope.of
        for start in starts:
            refusals = []
            for site in sites:
                try:
                    found = scope_of(site, sites, below).start_urls([start])
                    self._starts.setdefault(site.key, []).extend(found)
                except InvalidValue as error:
                    refusals.append(str(error))
            if len(refusals) == len(sites):
                raise CommandError(refusals[0], returncode=Exit.USAGE)
        return [site for site in sites if site.key in self._starts]

    def _prepare_save_and_output(self, sites: list[SitemapSite], options: dict[str, Any]) -> None:
        """Lock the output folder; raise an error if saving or writing would fail later."""
        if options["save"]:
            for site in sites:
                import_audit_module("crawl.saving").require_crawled_section(site)
        if options["output"]:
            if len(sites) > 1:
                raise ImproperlyConfigured(
                    "--output is for one site. Choose it with --site:"
                    f" {', '.join(site.key for site in sites)}."
                )
            if not self.is_standalone:
                self._reserved.enter_context(
                    import_audit_module("crawl.output").reserved_folder(options["output"])
                )

    def examine(self, site: SitemapSite, options: dict[str, Any], **arguments: Any) -> AuditRun:
        """Crawl a site and write the output; return the run, which is finished only then."""
        if options["output"]:
            arguments["deliver"] = partial(self._write_output, site, options["output"])
        run: AuditRun = import_audit_module("crawl").crawl(
            site,
            starts=self._starts.get(site.key, ()),
            below=options["below"],
            max_urls=options["max_urls"],
            max_depth=options["max_depth"],
            max_seconds=options["max_seconds"],
            **arguments,
        )
        return run

    def report_and_save(self, site: SitemapSite, run: AuditRun, options: dict[str, Any]) -> None:
        """Print the findings and changes of a crawl; with ``--save``, store the pages it crawled.

        With ``--output``, say what was written; raises CommandError if no sitemap was.
        """
        super().report_and_save(site, run, options)
        with exiting_on_sigterm():
            if options["diff"]:
                self._report_changes(run)
            if options["save"]:
                saved = import_audit_module("crawl.saving").save_pages(site, run)
                self._report_result(run, {"saved": asdict(saved)}, f"Saved pages: {saved}.")
            if options["output"]:
                self._report_result(
                    run,
                    {"files": self._files},
                    f"{count_of(len(self._files), 'file')} written to {options['output']}.",
                )
                if import_audit_module("crawl.output").INDEX not in self._files:
                    raise CommandError("The crawl found no web page, so it wrote no sitemap.")

    def _write_output(self, site: SitemapSite, folder: Path, run: AuditRun) -> None:
        """Write the output files of a crawl, and store their names for the report."""
        self._files = import_audit_module("crawl.output").write_output(site, run, folder)

    def _report_result(self, run: AuditRun, result: Any, text: str) -> None:
        """Write ``result`` as a line of JSON with ``--json``; print ``text`` without it."""
        self.write_json({"site": run.site, "crawl": run.pk, **result})
        self.say(f"  {text}")

    def _report_changes(self, run: AuditRun) -> None:
        """Report the changes since the previous crawl: all in JSON, else a summary."""
        differences = import_audit_module("crawl.differences")
        earlier = differences.previous_crawl(run)
        if earlier is None:
            self._report_result(
                run,
                {"since": None},
                "There is no earlier crawl with these starts to compare with.",
            )
            return
        summary = differences.ChangeSummary(earlier=earlier, later=run)
        for difference in differences.crawl_differences(earlier, run):
            summary.add(difference)
            self.write_json({"site": run.site, **asdict(difference)})
        counts = {change.value: count for change, count in summary.counts.items()}
        self._report_result(run, {"since": earlier.pk, "changes": counts}, str(summary))
        for line in summary.lines():
            self.say(f"    {line}")

    def heading(self, run: AuditRun) -> str:
        """Return how many URLs were fetched, and what they were compared with, if anything."""
        source = f"build {run.build}" if run.build else "live pages"
        compared = f"; compared with {source}" if run.options["compares"] else ""
        left = run.crawled.filter(outcome="file", status=None).count()
        # No more URLs than the limit and one are stored.
        more = " or more" if run.checked + run.pending > run.options["max_urls"] else ""
        counts = (
            (run.pending, f"{run.pending:,}{more} not fetched"),
            (run.undetermined, f"{run.undetermined:,} not determined"),
            (run.others_checked, f"{count_of(run.others_checked, 'other')} checked"),
            (left, f"{count_of(left, 'file')} left to the web server"),
        )
        texts = [f"{count_of(run.checked, 'URL')} crawled"]
        texts += [text for count, text in counts if count]
        texts.append(count_of(run.counts.get(FindingKind.BROKEN_LINK, 0), "broken link"))
        return f"{', '.join(texts)}{compared}."

    def summary(self, run: AuditRun) -> dict[str, Any]:
        """Return the totals of a crawl for JSON."""
        return {
            **super().summary(run),
            "others_checked": run.others_checked,
            "pending": run.pending,
        }
