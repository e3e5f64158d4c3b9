"""Read sitemaps as a search engine does, and report their errors."""

import time
from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.audit.fetching import MAX_SECONDS
from django_sitemapkit.audit.management.base import parse_kinds, positive_number
from django_sitemapkit.audit.reader.duplicates import ListedUrls
from django_sitemapkit.audit.reader.findings import ERROR_KINDS, WARNING_KINDS
from django_sitemapkit.audit.validation import (
    DocumentReport,
    validate_published,
    validate_source,
)
from django_sitemapkit.builds import build
from django_sitemapkit.extras import import_extra
from django_sitemapkit.management.base import (
    Exit,
    Progress,
    PublishedCommand,
    exiting_on_sigterm,
    held_text,
    started_by_text,
)
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.printable import count_of, printable
from django_sitemapkit.sites import SitemapSite

if TYPE_CHECKING:
    from django_sitemapkit.audit.schemas import Schemas

MAX_LISTED_ISSUES = 20
"""Errors, and warnings, printed of one document; JSON has up to a thousand."""

PROGRESS_SECONDS = 0.2
"""The least time between two changes of the progress line."""


@dataclass(slots=True)
class Totals:
    """The totals over all documents that were validated."""

    invalid: int = 0
    """Documents that have errors."""
    damaged: list[tuple[str, str]] = field(default_factory=list)
    """Of those, the name and section of each published file."""
    documents: int = 0
    """Documents read."""
    urls: int = 0
    """Entries in them."""
    bytes: int = 0
    """Their bytes, uncompressed."""
    counts: Counter[str] = field(default_factory=Counter)
    """Findings by kind."""

    def add(self, document: DocumentReport) -> None:
        """Add the numbers of one document to the totals."""
        self.documents += 1
        self.urls += document.urls
        self.bytes += document.bytes
        self.counts.update(document.counts)
        if document.error_count:
            self.invalid += 1
            self.damaged += [(document.stored, document.section)] if document.stored else []

    def finding_count(self, kinds: Iterable[str]) -> int:
        """Return the number of findings of these kinds."""
        return sum(self.counts[kind] for kind in kinds)


class Command(PublishedCommand):
    """Validate the published sitemaps, or the given URLs, files and folders."""

    more_exit_codes = (Exit.RUNNING, Exit.PROBLEMS)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the sources and options."""
        super().add_arguments(parser)
        parser.add_argument(
            "sources",
            nargs="*",
            help="URLs of sitemaps and indexes, files, folders, or - for standard input. Default:"
            " the published files in the storage.",
        )
        parser.add_argument(
            "--repair",
            action="store_true",
            help="Rebuild missing and damaged published files, and publish them.",
        )
        parser.add_argument(
            "--schema",
            metavar="PATH",
            help="Also validate against XML schemas: a folder with sitemap.xsd and siteindex.xsd,"
            " or one .xsd file for all documents. Needs lxml, but no network.",
        )
        parser.add_argument(
            "--max-seconds",
            type=positive_number,
            default=MAX_SECONDS,
            metavar="SECONDS",
            help="Time limit for a URL and all sitemaps of its index; default: %(default)s.",
        )
        parser.add_argument(
            "--fail-on",
            default="",
            metavar="KINDS",
            help="Exit with 5 if there are findings of these kinds, separated by commas; errors and"
            " warnings stand for all kinds.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Validate and report each document.

        Raises CommandError if any is not valid, or has findings of the kinds in ``--fail-on``.
        """
        fail_on = parse_kinds(
            options["fail_on"],
            sorted(ERROR_KINDS | WARNING_KINDS),
            {"errors": ERROR_KINDS, "warnings": WARNING_KINDS},
        )
        self.schemas = _load_schemas(options["schema"]) if options["schema"] else None
        if options["sources"] and options["repair"]:
            raise CommandError("--repair cannot be combined with sources.", returncode=Exit.USAGE)
        self.began = self.shown = time.monotonic()
        self.totals, listed = Totals(), ListedUrls()
        try:
            if options["sources"]:
                for source in options["sources"]:
                    self._report(
                        validate_source(
                            source,
                            self.schemas,
                            # No timer waits longer.
                            seconds=min(options["max_seconds"], TIMEOUT_MAX),
                            on_progress=self._show_reading_progress,
                            listed=listed,
                        )
                    )
            else:
                self._validate_and_repair_published(options)
        finally:
            self.replace_progress_line("")
        self._conclude(
            fail_on,
            options["fail_on"],
            is_repairable=not options["sources"] and not options["repair"],
        )

    def _validate_and_repair_published(self, options: dict[str, Any]) -> None:
        """Report the published files of each site.

        With ``--repair``, damaged files are rebuilt, and the site is reported again.
        """
        for site in self.sites(options["site"]):
            before = deepcopy(self.totals)
            reports = partial(
                validate_published, site, self.schemas, on_progress=self._show_reading_progress
            )
            self._report(reports())
            if options["repair"] and self.totals.invalid > before.invalid:
                with self.collecting_failures():
                    self._repair(site, self.totals.damaged[len(before.damaged) :])
                    self.totals = before
                    self._report(reports())

    def _report(self, documents: Iterable[DocumentReport]) -> None:
        """Print a line for each document, and add it to the totals."""
        for document in documents:
            self.totals.add(document)
            self.replace_progress_line("")
            self.write_json(document.as_dict())
            self._print_document(document)

    def _print_document(self, document: DocumentReport) -> None:
        """Print a line for a document, and its errors and warnings."""
        word = "INVALID" if document.error_count else "valid"
        if self.verbosity or document.error_count:
            line = f"{document.source:<56} {word:<8} {_entry_count_text(document.urls)}"
            self.stdout.write(line, self.style.ERROR if document.error_count else None)
        self._print_findings(document, "error", document.error_count)
        if self.verbosity:
            self._print_findings(document, "warning", document.warning_count)

    def _print_findings(self, document: DocumentReport, level: str, count: int) -> None:
        """Print the first errors or warnings of a document, and how many more there are."""
        style = self.style.ERROR if level == "error" else self.style.WARNING
        texts = document.texts(level)[:MAX_LISTED_ISSUES]
        for text in texts:
            self.stdout.write(f"  {level}: {text}", style)
        if count > len(texts):
            self.stdout.write(f"  and {count_of(count - len(texts), f'more {level}')}", style)

    def _show_reading_progress(self, urls: int, size: int) -> None:
        """Show how much was read, at most five times a second.

        ``urls`` and ``size`` are those of the document that is being read.
        """
        now = time.monotonic()
        if self.terminal and self.verbosity and now - self.shown >= PROGRESS_SECONDS:
            self.shown = now
            self.replace_progress_line(self._progress_text(urls, size))

    def _progress_text(self, urls: int = 0, size: int = 0) -> str:
        """Return the numbers read so far, including a document that is still being read."""
        seconds = time.monotonic() - self.began
        megabytes = (self.totals.bytes + size) / 1_000_000
        documents = count_of(self.totals.documents, "document")
        return (
            f"{documents}, {_entry_count_text(self.totals.urls + urls)}, {megabytes:,.1f} MB in"
            f" {seconds:,.1f} s ({megabytes / max(seconds, 0.001):,.1f} MB/s)"
        )

    def _repair(self, site: SitemapSite, damaged: list[tuple[str, str]]) -> None:
        """Rebuild the damaged files of a site, names with sections, by a build of the sections.

        Raises CommandError if a section has faults. A build held for review is only a warning.
        """
        if self.has_faults:
            raise CommandError(
                "--repair builds the site, which needs all sections: fix the errors above.",
                returncode=Exit.FAILED,
            )
        # The build drops a damaged page of a section that no longer exists.
        known = {section.get_name() for section in sections_of(site)}
        with exiting_on_sigterm(), Progress(self) as progress:
            result = build(
                site,
                sections={section for _, section in damaged} & known,
                distrusted={name for name, _ in damaged},
                on_file=progress,
                started_by=started_by_text(),
            )
        if result.status == "held":
            for line in held_text(result).split("\n"):
                self.stderr.write(line, self.style.WARNING)

    def _conclude(self, fail_on: Iterable[str], fail_on_text: str, *, is_repairable: bool) -> None:
        """Print the totals; raise CommandError for invalid documents or findings in ``fail_on``.

        ``fail_on_text`` is the option as it was given. ``is_repairable`` says that ``--repair``
        could have been given.
        """
        totals = self.totals
        errors, warnings = totals.finding_count(ERROR_KINDS), totals.finding_count(WARNING_KINDS)
        self.write_json(
            {
                "documents": totals.documents,
                "invalid": totals.invalid,
                "urls": totals.urls,
                "bytes": totals.bytes,
                "errors": errors,
                "warnings": warnings,
                "counts": totals.counts,
                "seconds": round(time.monotonic() - self.began, 3),
            }
        )
        found = f"{count_of(errors, 'error')}, {count_of(warnings, 'warning')}"
        style = self.style.WARNING if warnings else self.style.SUCCESS
        self.say(f"{self._progress_text()}: {found}.", self.style.ERROR if errors else style)
        self.raise_failures()
        if found_kinds := totals.finding_count(fail_on):
            raise CommandError(
                f"{count_of(found_kinds, 'finding')} of {fail_on_text}.", returncode=Exit.PROBLEMS
            )
        if totals.invalid:
            verb, pronoun = ("is", "it") if totals.invalid == 1 else ("are", "them")
            message = f"{count_of(totals.invalid, 'document')} {verb} not valid."
            if is_repairable:
                message += f" --repair rebuilds {pronoun}."
            raise CommandError(message, returncode=Exit.FAILED)


def _entry_count_text(count: int) -> str:
    """Return a number of entries as text, such as "1 entry"."""
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


def _load_schemas(path: str) -> "Schemas":
    """Load the schemas at a path; raise CommandError if there is none, or MissingExtra."""
    module = import_extra("django_sitemapkit.audit.schemas", "schema")
    try:
        schemas: Schemas = module.Schemas(Path(path))
    except ValueError as error:
        raise CommandError(f"--schema: {printable(error)}.", returncode=Exit.USAGE) from error
    return schemas
