"""What the commands of the app share: their options, and how they print findings."""

import time
from abc import abstractmethod
from argparse import ArgumentTypeError
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser
from django.utils.translation import override

from django_sitemapkit import __version__
from django_sitemapkit.audit.kinds import ADVICE, BAD_KINDS, FindingKind
from django_sitemapkit.audit.models import AuditRun
from django_sitemapkit.audit.options import audit_options
from django_sitemapkit.exceptions import MissingExtra
from django_sitemapkit.extras import import_extra
from django_sitemapkit.management.base import (
    Exit,
    PublishedCommand,
    exiting_on_sigterm,
)
from django_sitemapkit.printable import count_of, quoted
from django_sitemapkit.reading.keysets import read_by_key
from django_sitemapkit.sites import SitemapSite

CONCURRENCY = 4
"""Requests at a time over HTTP, by default."""

EXTERNAL_RATE = 1.0
"""Requests a second to each host that is not the site's."""

MAX_LISTED_URLS = 3
"""URLs of each kind that are printed; JSON and the admin have all."""


class FindingsCommand(PublishedCommand):
    """A command that audits or crawls each site, and prints what it found.

    A subclass implements `examine` and `heading`.
    """

    kinds: ClassVar[tuple[FindingKind, ...]] = ()
    """The kinds of findings that it may report."""
    bad_stands_for = "all kinds that keep a URL out of an index"
    """What the help of ``--fail-on`` says of the kinds among them that are bad."""
    more_exit_codes = (Exit.RUNNING, Exit.PROBLEMS)
    is_standalone = False
    """Whether the console script runs it: for one site without a name, its folder reserved."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options that these commands share."""
        super().add_arguments(parser)
        parser.add_argument(
            "--restart", action="store_true", help="Do not continue an interrupted run."
        )
        parser.add_argument(
            "--fail-on",
            default="",
            metavar="KINDS",
            help="Exit with 5 if findings of these kinds exist, separated by commas; bad stands for"
            f" {self.bad_stands_for}.",
        )
        parser.add_argument(
            "--live",
            action="store_true",
            help="Fetch the pages over HTTP instead of within this process. Needs the extra audit.",
        )
        parser.add_argument(
            "--concurrency",
            type=positive_integer,
            metavar="REQUESTS",
            help=f"With --live: requests at a time; default: {CONCURRENCY}.",
        )
        parser.add_argument(
            "--rate",
            type=positive_number,
            metavar="REQUESTS",
            help="With --live: maximum requests a second to a host; default: 10, or no limit for"
            " this machine.",
        )
        parser.add_argument(
            "--allow-private",
            action="store_true",
            help="With --live: also fetch from private and local addresses.",
        )

    @abstractmethod
    def examine(self, site: SitemapSite, options: dict[str, Any], **arguments: Any) -> AuditRun:
        """Audit or crawl a site with these arguments; return the finished run."""

    @abstractmethod
    def heading(self, run: AuditRun) -> str:
        """Return the line with the totals of a run, which is printed before its findings."""

    def summary(self, run: AuditRun) -> dict[str, Any]:
        """Return the totals of a run for JSON."""
        return {
            run.kind: run.pk,
            "build": run.build,
            "checked": run.checked,
            "bad": run.bad,
            "undetermined": run.undetermined,
            "counts": run.counts,
        }

    def run(self, options: dict[str, Any]) -> None:
        """Examine each site, and report its findings.

        Raises CommandError if a site could not be examined, a result is partial, or there are
        findings of the kinds in ``--fail-on``.
        """
        fail_on = self.kinds_to_fail_on(options)
        found = partial = 0
        self._unfinished = self.interrupted
        for site in self.sites_of(options):
            with self.collecting_failures():
                try:
                    with self._fetch_arguments(site, options) as fetching:
                        run = self._examine_with_progress(site, options, fetching)
                    self.report_and_save(site, run, options)
                except (ImproperlyConfigured, MissingExtra) as error:
                    raise CommandError(str(error), returncode=Exit.USAGE) from error
                found += sum(run.counts.get(kind, 0) for kind in fail_on)
                partial += run.undetermined if run.is_partial else 0
        self.raise_failures()
        if partial:
            raise CommandError(
                f"{count_of(partial, 'URL')} could not be determined: the result is partial."
            )
        if found:
            raise CommandError(
                f"{count_of(found, 'finding')} of {options['fail_on']}.", returncode=Exit.PROBLEMS
            )

    def kinds_to_fail_on(self, options: dict[str, Any]) -> frozenset[str]:
        """Return the kinds of ``--fail-on``. Raises CommandError for an unknown one."""
        return parse_kinds(
            options["fail_on"], self.kinds, {"bad": BAD_KINDS.intersection(self.kinds)}
        )

    def report_and_save(self, site: SitemapSite, run: AuditRun, options: dict[str, Any]) -> None:
        """Print the findings and the totals of a run; a subclass may also save what it found."""
        if self.json:
            self._write_findings_as_json(run)
        elif self.verbosity:
            self._print_findings(run)

    def sites_of(self, options: dict[str, Any]) -> list[SitemapSite]:
        """Return the sites to examine."""
        return self.sites(options["site"])

    @contextmanager
    def _fetch_arguments(
        self, site: SitemapSite, options: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Give the arguments of ``audit()`` and ``crawl()`` that say how pages are fetched.

        This is a context manager: with ``--live``, it keeps connections open. Raises CommandError
        for an option that needs ``--live``.
        """
        if not options["live"]:
            for name in ("concurrency", "rate", "allow_private", "external"):
                if options.get(name):
                    raise CommandError(
                        f"--{name.replace('_', '-')} needs --live.", returncode=Exit.USAGE
                    )
            yield {}
            return
        fetcher_of = partial(
            import_audit_module("web.live").LiveFetcher,
            allow_private=options["allow_private"],
            user_agent=f"django-sitemapkit/{__version__} (+{site.base}/)",
            robots_agent=audit_options().user_agent,
        )
        with fetcher_of(rate=options["rate"]) as own, fetcher_of(rate=EXTERNAL_RATE) as others:
            external = {"external": others.fetch} if options.get("external") else {}
            yield {
                "fetch": own.fetch,
                "concurrency": options["concurrency"] or CONCURRENCY,
                **external,
            }

    def _examine_with_progress(
        self, site: SitemapSite, options: dict[str, Any], fetching: dict[str, Any]
    ) -> AuditRun:
        """Examine a site, show progress and measure the time; return the finished run."""
        self.interrupted = self._unfinished  # The site before this one is finished.
        self._progress: tuple[float, int] | None = None
        began = time.monotonic()
        try:
            with exiting_on_sigterm():
                run = self.examine(
                    site,
                    options,
                    restart=options["restart"],
                    on_progress=self._show_run_progress,
                    **fetching,
                )
        finally:
            self.replace_progress_line("")
        self._seconds = time.monotonic() - began
        self.interrupted = "Interrupted. All URLs had been fetched, and the findings are recorded."
        return run

    def _show_run_progress(self, run: AuditRun) -> None:
        """Show the counts of a run, and its URLs a second since the first call, on a terminal."""
        now = time.monotonic()
        # A run that is continued has fetched some URLs before.
        asked = run.checked + run.others_checked
        began, before = self._progress = self._progress or (now, asked)
        rate = (asked - before) / (now - began) if now > began else 0
        urls = count_of(asked, "URL")
        left = f", {run.pending:,} left" if run.pending else ""
        self.replace_progress_line(f"{urls}, {rate:,.0f} a second, {run.bad:,} bad{left}")

    def _write_findings_as_json(self, run: AuditRun) -> None:
        """Write each finding of a run as a line of JSON, then the totals."""
        columns = ("section", "kind", "url", "detail")
        for values in read_by_key(run.findings.all(), *columns):
            self.write_json({"site": run.site, **dict(zip(columns, values, strict=True))})
        self.write_json({"site": run.site, **self.summary(run)})

    @override("en")
    def _print_findings(self, run: AuditRun) -> None:
        """Print the totals of a run, and its findings by kind: the first three of each."""
        write, style = self.stdout.write, self.style
        partial = "PARTIAL: " if run.is_partial else ""
        site = "" if self.is_standalone else f"Site {run.site!r}: "
        write(f"{site}{partial}{self.heading(run)}")
        for kind in self.kinds:
            if count := run.counts.get(kind):
                shade = style.ERROR if kind in BAD_KINDS else style.WARNING
                write(f"  {kind.label}: {count:,}. {ADVICE[kind]}", shade)
                for finding in run.findings.filter(kind=kind).order_by("pk")[:MAX_LISTED_URLS]:
                    write(f"    {finding.url}  {finding.detail}".rstrip())
                if count > MAX_LISTED_URLS:
                    write(f"    and {count - MAX_LISTED_URLS:,} more")
        found = sum(run.counts.values())
        text = f"  {count_of(found, 'finding')} in {self._seconds:.1f} s."
        if any(count > MAX_LISTED_URLS for count in run.counts.values()):
            text += " --json prints all of them."
        write(text, style.WARNING if found else style.SUCCESS)


def parse_kinds(
    text: str, known: Collection[str], groups: Mapping[str, Collection[str]]
) -> frozenset[str]:
    """Parse kinds separated by commas; a name in ``groups`` stands for several kinds.

    Raises CommandError for a kind that is neither ``known`` nor a group.
    """
    names = {name.strip() for name in text.split(",") if name.strip()}
    if unknown := sorted(names - set(known) - set(groups)):
        raise CommandError(
            f"Unknown kinds: {', '.join(unknown)}. Known kinds: {', '.join([*groups, *known])}.",
            returncode=Exit.USAGE,
        )
    return frozenset().union(*(groups.get(name, [name]) for name in names))


def positive_integer(text: str) -> int:
    """Parse an option's whole number from 1 to a billion.

    Raises ArgumentTypeError for anything else.
    """
    with suppress(ValueError):
        if 1 <= (number := int(text)) <= 1_000_000_000:
            return number
    raise ArgumentTypeError(f"{quoted(text)} is not a whole number from 1 to 1,000,000,000.")


def positive_number(text: str) -> float:
    """Parse an option's number from a millionth to a billion.

    Raises ArgumentTypeError for anything else.
    """
    with suppress(ValueError):
        if 0.000_001 <= (number := float(text)) <= 1_000_000_000:
            return number
    raise ArgumentTypeError(f"{quoted(text)} is not a number from 0.000001 to 1,000,000,000.")


def import_audit_module(name: str) -> Any:
    """Import and return a module of this app; raise MissingExtra without the extra ``audit``."""
    return import_extra(f"django_sitemapkit.audit.{name}", "audit")
