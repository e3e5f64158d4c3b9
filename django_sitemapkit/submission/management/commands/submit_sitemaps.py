"""Submit changed URLs to IndexNow, and sitemap indexes to Google Search Console."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from django_sitemapkit.management.base import (
    Exit,
    PublishedCommand,
    exiting_on_sigterm,
)
from django_sitemapkit.printable import count_of
from django_sitemapkit.submission.options import submit_options
from django_sitemapkit.submission.submit import SubmissionResult, submit


class Command(PublishedCommand):
    """Submit each site to IndexNow and Search Console, and print their answers."""

    interrupted = "Interrupted. The next run sends what has not been sent."
    more_exit_codes = (Exit.RUNNING,)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--since``, ``--retry`` and ``--dry-run``."""
        super().add_arguments(parser)
        parser.add_argument(
            "--since",
            type=int,
            metavar="BUILD",
            help="Submit the changes since this build, even if they were already submitted.",
        )
        parser.add_argument(
            "--retry",
            action="store_true",
            help="Also send rejected and failed batches again; correct the cause first.",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Show the submission without sending or recording anything.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Submit each site; raise CommandError if one fails or has problems."""
        if options["retry"] and options["dry_run"]:
            raise CommandError("--retry cannot be combined with --dry-run.", returncode=Exit.USAGE)
        try:
            submitted = submit_options()
        except ImproperlyConfigured as error:
            raise CommandError(str(error), returncode=Exit.USAGE) from error
        if not submitted.indexnow_key and not submitted.google_credentials:
            raise CommandError(
                'Set SITEMAPKIT_SUBMIT = {"indexnow_key": "…"} or {"google_credentials": "…"}.',
                returncode=Exit.USAGE,
            )
        if not submitted.indexnow_key and (options["retry"] or options["since"] is not None):
            raise CommandError(
                "--since and --retry are for IndexNow, and SITEMAPKIT_SUBMIT has no"
                ' "indexnow_key". Search Console gets the sitemap without them.',
                returncode=Exit.USAGE,
            )
        for site in self.sites(options["site"]):
            with self.collecting_failures():
                with exiting_on_sigterm():
                    result = submit(
                        site,
                        since=options["since"],
                        dry_run=options["dry_run"],
                        retry=options["retry"],
                    )
                at = result.wait_until and result.wait_until.isoformat()
                self.write_json({**asdict(result), "wait_until": at, "dry_run": options["dry_run"]})
                self._print_result(result, dry_run=options["dry_run"])
                self.failures += [(Exit.FAILED, problem) for problem in result.problems]
        self.raise_failures()

    def _print_result(self, result: SubmissionResult, *, dry_run: bool) -> None:
        """Print what was submitted of one site, or in a dry run what would be, and what waits."""
        self.say(f"Site {result.site!r}:")
        changes = ", ".join(f"{count:,} {kind}" for kind, count in result.changes.items() if count)
        if changes:
            self.say(f"  Changed URLs: {changes}.")
        if dry_run:
            self.say(f"  Would send {count_of(result.requests, 'request')} to IndexNow.")
        elif result.requests:
            self.say(
                f"  IndexNow: {count_of(result.requests, 'request')},"
                f" {count_of(result.accepted, 'URL')} accepted.",
                self.style.SUCCESS if result.accepted else None,
            )
        if result.rejected:
            self.say(
                f"  IndexNow: {count_of(result.rejected, 'URL')} rejected. Correct the cause, then"
                " use --retry.",
                self.style.ERROR,
            )
        if result.pending:
            at = result.wait_until
            if at is not None and settings.USE_TZ:
                at = timezone.localtime(at)
            when = f", not before {at:%Y-%m-%d %H:%M:%S}" if at else ""
            self.say(
                f"  To be sent by the next run{when}: {count_of(result.pending, 'URL')}.",
                self.style.WARNING,
            )
        if result.sitemaps:
            self.say(
                f"  Search Console: {count_of(result.sitemaps, 'sitemap')} submitted.",
                self.style.SUCCESS,
            )
        for line in (*_indexing_lines(result), *result.notes):
            self.say(f"  {line}")
        done = result.requests, result.pending, result.sitemaps, result.indexing, result.notes
        if not (dry_run or any(done)):
            self.say("  Nothing to submit.")


def _indexing_lines(result: SubmissionResult) -> Iterator[str]:
    """Yield lines about the URLs of each section that Google was asked about.

    They have the number and the share of indexed ones, the 95% confidence interval of that share
    among all URLs of the section, and the count of each state and Google's explanation of it.
    """
    for section in result.indexing:
        inspected, urls = section["inspected"], section["urls"]
        indexed, (least, greatest) = section["states"].get("indexed", 0), section["indexed_share"]
        text = (
            f"Google, section {section['section']!r}: {indexed:,} of {inspected:,} inspected URLs"
            f" are indexed: {indexed / inspected:.1%}"
        )
        if inspected < urls:
            text += f", with 95% confidence {least:.1%} to {greatest:.1%} of all {urls:,}"
        yield f"{text}."
        for each in section["reasons"]:
            yield f"  {each['urls']:,} {each['state']}: {each['reason']}"
