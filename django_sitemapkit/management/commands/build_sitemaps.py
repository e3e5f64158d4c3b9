"""Make the sitemaps' files and publish them."""

from collections.abc import Collection
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import BuildResult, FileResult, Runner, build, preview
from django_sitemapkit.builds.requests import carry_out
from django_sitemapkit.builds.results import problem_kinds, problem_lines
from django_sitemapkit.builds.run import require_sections
from django_sitemapkit.exceptions import BuildRunning, SitemapKitError
from django_sitemapkit.management.base import (
    Exit,
    Progress,
    SiteCommand,
    caller,
    count_of,
    ending_cleanly,
    files_exported,
    held_back,
)
from django_sitemapkit.models import BuildRequest
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import refresh
from django_sitemapkit.printable import printable
from django_sitemapkit.rendering.problems import REMEMBERED
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import Site


class Command(SiteCommand):
    """Make the files of all sections, or of those named, and publish them at once."""

    help = __doc__ or ""
    interrupted = "Interrupted. What was published stays; the next run goes on."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the sections and options."""
        super().add_arguments(parser)
        parser.add_argument(
            "sections", nargs="*", help="Make only these anew; the others keep their files."
        )
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument(
            "--plan-only",
            action="store_true",
            help="Bring the stored plans of pages up to date; build nothing.",
        )
        mode.add_argument(
            "--dry-run",
            action="store_true",
            help="Render everything and say what would be stored; write nothing.",
        )
        parser.add_argument(
            "--full",
            action="store_true",
            help="Render all pages, those too whose rows did not change.",
        )
        parser.add_argument(
            "--strict", action="store_true", help="Exit with 5 if any row had to be left out."
        )
        parser.add_argument(
            "--skip-if-running",
            action="store_true",
            help="Exit with 0 instead of 4 if another process builds the site.",
        )
        parser.add_argument(
            "--runner",
            metavar="NAME",
            help="Who makes the pages: inline, processes, or a runner's dotted path.",
        )
        parser.add_argument(
            "--workers",
            type=int,
            metavar="N",
            help="Processes that make pages; more than one asks for the runner processes.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Build each site."""
        self.verbosity = options["verbosity"]
        sites = self.sites(options["site"])
        self._require(sites, options["sections"])
        self.runner = self._runner(options)
        left_out = 0
        self.held: list[str] = []
        with ending_cleanly():
            for site in sites:
                try:
                    left_out += self._build(site, options)
                except BuildRunning as error:
                    if not options["skip_if_running"]:
                        raise self._ended(error, Exit.RUNNING) from error
                    if self.verbosity:
                        self.stdout.write(f"Skipped: {error}")
                except (SitemapKitError, ImproperlyConfigured) as error:
                    raise self._ended(error, Exit.FAILED) from error
        if self.held:
            raise CommandError("\n".join(self.held), returncode=Exit.HELD)
        if left_out and options["strict"]:
            message = f"{count_of(left_out, 'row')} had to be left out."
            raise CommandError(message, returncode=Exit.PROBLEMS)

    def _ended(self, error: Exception, code: Exit) -> CommandError:
        """Return what ends the command; what was held back before it is told all the same."""
        return CommandError("\n".join([*self.held, str(error)]), returncode=code)

    def _require(self, sites: list[Site], names: list[str]) -> None:
        """Refuse an unknown section before anything is done."""
        for site in sites:
            try:
                require_sections(site, names)
            except ValueError as error:
                raise CommandError(printable(error), returncode=Exit.USAGE) from error

    def _runner(self, options: dict[str, Any]) -> Runner:
        name, workers = options["runner"], options["workers"]
        asked = (name, workers) != (None, None) or options["full"]
        if (options["plan_only"] or options["dry_run"]) and asked:
            message = (
                "--full, --runner and --workers are for builds, not --plan-only and --dry-run."
            )
            raise CommandError(message, returncode=Exit.USAGE)
        try:
            return get_runner(name, workers)
        except (ImportError, ImproperlyConfigured, TypeError, ValueError) as error:
            raise CommandError(f"Runner: {printable(error)}", returncode=Exit.USAGE) from error

    def _build(self, site: Site, options: dict[str, Any]) -> int:
        """Do what is asked for one site; return how many rows were left out."""
        if options["plan_only"]:
            self._plan(site, options["sections"])
            return 0
        progress = Progress(self, self.verbosity)
        try:
            with progress:
                result = self._made(site, options, progress)
        except SitemapKitError:  # What was left out may be why nothing is published.
            self._tell_problems(progress.files.values())
            raise
        self._tell_problems(result.files)
        for warning in result.warnings:
            self.stderr.write(f"Warning: {warning}", self.style.WARNING)
        if result.status == "held":
            self.held.append(held_back(result))
        if self.verbosity:
            self.stdout.write(self._total(result))
        if not options["dry_run"]:
            self._carry_out_what_is_open(site)
        return result.skipped

    def _made(self, site: Site, options: dict[str, Any], progress: Progress) -> BuildResult:
        """Make the files, or render them for a dry run."""
        sections = options["sections"]
        if options["dry_run"]:
            return preview(site, sections=sections, on_file=progress)
        return build(
            site,
            sections=sections,
            runner=self.runner,
            on_file=progress,
            full=options["full"],
            started_by=caller(),
        )

    def _tell_problems(self, files: Collection[FileResult]) -> None:
        """Print a line for each kind of problem; where each one is printed they stand already."""
        if self.verbosity != 1:
            return
        for line in problem_lines(files):
            self.stderr.write(line, self.style.WARNING)
        if any(count > 1 for count, _ in problem_kinds(files)):
            self.stderr.write(
                f"--verbosity 2 prints the first {REMEMBERED} of each kind in each file."
            )

    def _carry_out_what_is_open(self, site: Site) -> None:
        """Build what was asked for in the admin and is still open."""
        kinds = [BuildRequest.Kind.BUILD]
        for asked in carry_out(site, lambda: self.runner, kinds=kinds, patience=0):
            if asked.failed:
                self.stderr.write(f"Asked for in the admin: {asked.outcome}", self.style.WARNING)
            elif self.verbosity:
                self.stdout.write(f"Asked for in the admin: {asked.outcome}")

    def _plan(self, site: Site, names: list[str]) -> None:
        for section in sections_of(site):
            if names and section.get_name() not in names:
                continue
            change = refresh(section)
            line = f"{section.get_name():<28} {change.pages:>6,} pages"
            if change.added or change.retired:
                line += f", {len(change.added):,} new, {len(change.retired):,} retired"
            if change.planned_anew:
                line += f" (planned anew: {change.planned_anew})"
            if self.verbosity:
                self.stdout.write(line)

    def _total(self, result: BuildResult) -> str:
        rate = result.urls / result.seconds if result.seconds else 0
        label = f"Build {result.build}" if result.build else "Dry run"
        text = (
            f"{label} of site {result.site!r}: {result.status}; {result.urls:,} URLs in"
            f" {len(result.files):,} files, {result.stored:,} stored,"
            f" {result.seconds:.2f} s, {rate:,.0f} URLs per second."
        )
        if left_out := _left_out(result):
            text = f"{text} Left out: {left_out}."
        if result.exported is not None:
            text += f" {files_exported(result.exported)}"
        if result.finished:
            text = f"Build {result.finished}, which a killed process left, was finished. {text}"
        return f"{text} One was abandoned: {result.stopped}." if result.stopped else text


def _left_out(result: BuildResult) -> str:
    """Return how many rows, and values of rows that are listed, were left out."""
    values = sum(count for count, _ in problem_kinds(result.files)) - result.skipped
    counts = ((result.skipped, "row"), (max(values, 0), "value"))
    return " and ".join(count_of(count, thing) for count, thing in counts if count)
