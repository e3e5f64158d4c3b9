"""Build the sitemap files and publish them."""

import time
from collections.abc import Collection, Iterator
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import BuildResult, FileResult, Runner, build, preview
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.builds.publication.gates import pause_of
from django_sitemapkit.builds.requests import process_requests
from django_sitemapkit.builds.results import problem_kinds
from django_sitemapkit.exceptions import BuildRunning, SitemapKitError
from django_sitemapkit.management.base import (
    Exit,
    Progress,
    SiteCommand,
    exiting_on_sigterm,
    held_findings,
    held_text,
    started_by_text,
)
from django_sitemapkit.models import BuildRequest
from django_sitemapkit.overrides import require_sections, sections_of
from django_sitemapkit.planning import refresh_plan
from django_sitemapkit.printable import count_of, printable
from django_sitemapkit.rendering.problems import EXAMPLES_PER_KIND
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import english_of

OPTIONS = {
    "--full": "Render all pages, including unchanged ones.",
    "--strict": "Hold the build for review, and exit with 3, if rows were skipped.",
    "--fail-on-skipped": "Publish the build, but exit with 5, if rows were skipped.",
    "--skip-if-running": "Exit with 0 instead of 4 if another process is building the site.",
}
"""Options that take no value, and what they do."""


class Command(SiteCommand):
    """Build the files of all sections, or of the given ones, and publish them atomically."""

    interrupted = "Interrupted. The published files stay; the next run adopts its pages."
    more_exit_codes = (Exit.HELD, Exit.RUNNING, Exit.PROBLEMS, Exit.CANCELLED)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the names of sections and the options."""
        super().add_arguments(parser)
        parser.add_argument(
            "sections", nargs="*", help="Build only these; the other sections keep their files."
        )
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument(
            "--plan-only",
            action="store_true",
            help="Update the stored plans, without building.",
        )
        mode.add_argument(
            "--dry-run",
            action="store_true",
            help="Render everything and show what would be stored, without writing.",
        )
        for option, meaning in OPTIONS.items():
            parser.add_argument(option, action="store_true", help=meaning)
        parser.add_argument(
            "--runner",
            metavar="NAME",
            help="The runner that renders the pages: inline, processes, celery, tasks, or a dotted"
            " path.",
        )
        parser.add_argument(
            "--workers",
            type=int,
            metavar="N",
            help="Number of worker processes; more than one selects the runner 'processes'.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Build each site, even if an earlier one fails.

        Raises CommandError if a build fails or is held for review, and with ``--strict`` or
        ``--fail-on-skipped`` if rows were skipped.
        """
        sites = self.sites(options["site"])
        self._require_known_sections(sites, options["sections"])
        self.runner = self._runner_from_options(options)
        skipped = 0
        with exiting_on_sigterm():
            for site in sites:
                with self.collecting_failures():
                    skipped += self._build_or_skip_site(site, options)
                if any(code == Exit.CANCELLED for code, _ in self.failures):
                    break
        self.raise_failures()
        # A build without a change is not held: there would be nothing to publish.
        if skipped and (options["fail_on_skipped"] or options["strict"]):
            raise CommandError(f"{count_of(skipped, 'row')} skipped.", returncode=Exit.PROBLEMS)

    def _build_or_skip_site(self, site: SitemapSite, options: dict[str, Any]) -> int:
        """Build a site; return how many rows were skipped.

        With ``--skip-if-running``, only report that another process builds it.
        """
        try:
            return self._build_site(site, options)
        except (SitemapKitError, ImproperlyConfigured) as error:
            status = "running" if isinstance(error, BuildRunning) else "failed"
            ended = BuildResult(site=site.key, build=None, status=status, cause=str(error))
            self.write_json(_result_document(ended))
            if status == "failed" or not options["skip_if_running"]:
                raise
            self.say(f"Site {site.key!r} skipped: {error}", self.style.WARNING)
            return 0

    def _require_known_sections(self, sites: list[SitemapSite], names: list[str]) -> None:
        """Raise CommandError if a site does not have one of the sections."""
        for site in sites:
            try:
                require_sections(site, names)
            except ValueError as error:
                raise CommandError(printable(error), returncode=Exit.USAGE) from error

    def _runner_from_options(self, options: dict[str, Any]) -> Runner:
        """Return the runner that the options choose.

        Raises CommandError if it cannot be used, or options cannot be combined.
        """
        name, workers = options["runner"], options["workers"]
        for_builds = (name, workers) != (None, None) or options["full"] or options["strict"]
        if (options["plan_only"] or options["dry_run"]) and for_builds:
            raise CommandError(
                "--full, --strict, --runner and --workers cannot be combined with --plan-only or"
                " --dry-run.",
                returncode=Exit.USAGE,
            )
        if options["plan_only"] and options["fail_on_skipped"]:
            raise CommandError(
                "--fail-on-skipped cannot be combined with --plan-only, which renders nothing.",
                returncode=Exit.USAGE,
            )
        try:
            return get_runner(name, workers)
        except (ImportError, ImproperlyConfigured, TypeError, ValueError) as error:
            raise CommandError(
                f"The runner cannot be used: {printable(error)}", returncode=Exit.USAGE
            ) from error

    def _build_site(self, site: SitemapSite, options: dict[str, Any]) -> int:
        """Build, render or plan one site; return how many rows were skipped."""
        sections = options["sections"]
        if options["plan_only"]:
            self._update_plans(site, sections)
            return 0
        progress = Progress(self)
        try:
            with progress:
                if options["dry_run"]:
                    result = preview(site, sections=sections, on_file=progress)
                else:
                    result = build(
                        site,
                        sections=sections,
                        runner=self.runner,
                        on_file=progress,
                        full=options["full"],
                        strict=options["strict"],
                        started_by=started_by_text(),
                    )
        except SitemapKitError:  # Skipped rows may be the cause.
            self._print_problems(progress.files.values())
            raise
        self._print_problems(result.files)
        for warning in result.new_warnings if self.verbosity else ():
            self.stderr.write(f"Warning: {warning}", self.style.WARNING)
        if result.status == "held":
            self.failures.append((Exit.HELD, held_text(result)))
        self.write_json(_result_document(result))
        is_good = result.status != "held" and not _skipped_text(result)
        for line in _summary_lines(result):
            self.say(line, self.style.SUCCESS if is_good else self.style.WARNING)
        if not options["dry_run"] and (result.status != "held" or pause_of(site)):
            self._run_queued_requests(site)
        return result.skipped

    def _print_problems(self, files: Collection[FileResult]) -> None:
        """Print a line for each kind of problem in the files, at the default verbosity.

        A higher one prints each problem with its file.
        """
        if self.verbosity != 1:
            return
        kinds = problem_kinds(files)
        for kind in kinds:
            self.stderr.write(str(kind), self.style.WARNING)
        if any(kind.count > 1 for kind in kinds):
            self.stderr.write(
                f"--verbosity 2 prints the first {EXAMPLES_PER_KIND} of each kind in each file.",
                self.style.WARNING,
            )

    def _run_queued_requests(self, site: SitemapSite) -> None:
        """Run the site's queued requests for builds, and overdue requests of other kinds.

        Print the outcome of each.
        """
        queued = BuildRequest.objects.open(site)
        kinds = {BuildRequest.Kind.BUILD, *(each.kind for each in queued if each.is_overdue)}
        for asked in process_requests(site, lambda: self.runner, kinds=kinds, wait_seconds=0):
            line = f"Requested by {asked.requested_by}: {english_of(asked.outcome)}"
            if asked.failed:
                self.stderr.write(line, self.style.WARNING)
            else:
                self.say(line)

    def _update_plans(self, site: SitemapSite, names: list[str]) -> None:
        """Update the stored plans of these sections, or of all if none is named, and print them."""
        began = time.perf_counter()
        builds = SiteBuilds(site)
        plans: list[dict[str, Any]] = []
        for section in sections_of(site):
            name = section.get_name()
            if names and name not in names:
                continue
            change = refresh_plan(section, sizes=builds.page_sizes_of(name))
            plans.append(
                {
                    "section": name,
                    "pages": change.pages,
                    "added": change.added,
                    "retired": change.retired,
                    "replanned": change.replanned,
                }
            )
            line = f"{name:<28} {change.pages:>6,} {'page' if change.pages == 1 else 'pages'}"
            if change.added or change.retired:
                line += f", {len(change.added):,} new, {len(change.retired):,} retired"
            self.say(line)
            if change.replanned:
                self.say(f"  replanned: {change.replanned}")
        self.write_json({"site": site.key, "plans": plans})
        pages = count_of(sum(plan["pages"] for plan in plans), "page")
        self.say(
            f"Plans of site {site.key!r} updated: {pages} in"
            f" {count_of(len(plans), 'section')}, {time.perf_counter() - began:.2f} s.",
            self.style.SUCCESS,
        )


def _summary_lines(result: BuildResult) -> Iterator[str]:
    """Yield the last lines of a build's output: its status, counts and duration."""
    if result.adopted:
        yield f"{count_of(result.adopted, 'page')} of interrupted builds adopted."
    if result.abandoned:
        yield f"A build was abandoned: {result.abandoned}."
    label = f"Build {result.build}" if result.build else "Dry run"
    yield (
        f"{label} of site {result.site!r}: {result.status}; {count_of(result.urls, 'URL')} in"
        f" {count_of(result.pages, 'file')} and the index, {result.stored:,} new."
    )
    text = f"It took {result.seconds:.2f} s."
    if (rendered := result.rendered_urls) and result.seconds:
        rate = f"{rendered / result.seconds:,.0f} per second"
        text = f"{text[:-1]}; {count_of(rendered, 'URL')} rendered, {rate}."
    if skipped := _skipped_text(result):
        text += f" Skipped: {skipped}."
    if result.exported is not None:
        text += f" {count_of(result.exported, 'file')} exported."
    yield text


def _skipped_text(result: BuildResult) -> str:
    """Return how many rows, and how many values of listed rows, were skipped; "" for none."""
    values = sum(kind.count for kind in problem_kinds(result.files)) - result.skipped
    counts = ((result.skipped, "row"), (max(values, 0), "value"))
    return " and ".join(count_of(count, thing) for count, thing in counts if count)


def _result_document(result: BuildResult) -> dict[str, Any]:
    """Return the result of a build for ``--json``."""
    return {
        "site": result.site,
        "build": result.build,
        "status": result.status,
        "reason": result.reason,
        "code": result.code,
        "findings": [{"url": url, "text": text} for url, text in held_findings(result)],
        "urls": result.urls,
        "files": result.pages,
        "stored": result.stored,
        "skipped": result.skipped,
        "problems": list(map(str, problem_kinds(result.files))),
        "warnings": list(result.warnings),
        "exported": result.exported,
        "adopted": result.adopted,
        "abandoned": result.abandoned,
        "seconds": round(result.seconds, 3),
    }
