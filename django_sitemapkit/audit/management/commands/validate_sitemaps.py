"""Read sitemaps as a search engine does, and report their errors."""

from collections.abc import Iterable
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.audit.fetching import MAX_SECONDS
from django_sitemapkit.audit.validation import DocumentReport, validate_published, validate_source
from django_sitemapkit.builds import build
from django_sitemapkit.management.base import (
    Exit,
    Progress,
    PublishedCommand,
    caller,
    ending_cleanly,
    held_back,
)
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.printable import count_of, printable
from django_sitemapkit.sites import SitemapSite

if TYPE_CHECKING:
    from django_sitemapkit.audit.schemas import Schemas

MAX_LISTED_ISSUES = 20
"""Errors, and warnings, printed of one document; JSON has all of them."""


class Command(PublishedCommand):
    """Validate what is published, or the given URLs, files and folders."""

    help = __doc__ or ""
    more_exit_codes = (Exit.RUNNING,)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the sources and options."""
        super().add_arguments(parser)
        parser.add_argument(
            "sources",
            nargs="*",
            help="The URL of a sitemap or of an index with its sitemaps, a file or a folder."
            " Default: the published files as they are stored.",
        )
        parser.add_argument(
            "--repair",
            action="store_true",
            help="Rebuild the published files that are missing or damaged, and publish them.",
        )
        parser.add_argument(
            "--schema",
            metavar="PATH",
            help="Also validate against XML schemas: a folder with sitemap.xsd and siteindex.xsd,"
            " or one .xsd file for all documents. Needs lxml, but no network.",
        )
        parser.add_argument(
            "--max-seconds",
            type=_seconds,
            default=MAX_SECONDS,
            metavar="SECONDS",
            help="Time limit for a URL, including all that its index lists; default: %(default)s.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Validate and report each document; raise CommandError if any is not valid."""
        self.max_seconds = options["max_seconds"]
        self.verbosity = options["verbosity"]
        self.json = options["json"]
        self.schemas = _schemas(options["schema"]) if options["schema"] else None
        if options["sources"]:
            if options["repair"]:
                raise CommandError(
                    "--repair cannot be combined with sources.", returncode=Exit.USAGE
                )
            invalid = [self._report(self._read(source)) for source in options["sources"]]
            self._conclude(sum(map(len, invalid)))
            return
        left = 0
        for site in self.sites(options["site"]):
            damaged = self._report(validate_published(site, self.schemas))
            if damaged and options["repair"]:
                self._repair(site, damaged)
                damaged = self._report(validate_published(site, self.schemas))
            left += len(damaged)
        self._conclude(left)

    def _read(self, source: str) -> Iterable[DocumentReport]:
        try:
            yield from validate_source(source, self.schemas, seconds=self.max_seconds)
        except (OSError, HTTPException, ValueError) as error:
            message = printable(f"{source} cannot be read: {error}")
            raise CommandError(message, returncode=Exit.FAILED) from error

    def _report(self, documents: Iterable[DocumentReport]) -> list[DocumentReport]:
        """Print a line for each document; return the invalid ones."""
        invalid = []
        for document in documents:
            if document.errors:
                invalid.append(document)
            if self.json:
                self.write_json(document.as_dict())
            else:
                self._print(document)
        return invalid

    def _print(self, document: DocumentReport) -> None:
        word = "INVALID" if document.errors else "valid"
        if self.verbosity or document.errors:
            noun = "entry" if document.urls == 1 else "entries"
            self.stdout.write(f"{document.source:<60} {word:<8} {document.urls:>9,} {noun}")
        for text in document.errors[:MAX_LISTED_ISSUES]:
            self.stdout.write(f"  error: {text}")
        for text in document.warnings[:MAX_LISTED_ISSUES] if self.verbosity else ():
            self.stdout.write(f"  warning: {text}")

    def _repair(self, site: SitemapSite, damaged: list[DocumentReport]) -> None:
        if self.has_faults:
            message = "--repair builds the site, which needs all sections: fix the errors above."
            raise CommandError(message, returncode=Exit.FAILED)
        # The build drops a damaged page of a section that no longer exists.
        known = {section.get_name() for section in sections_of(site)}
        sections = {document.section for document in damaged} & known
        names = {document.stored for document in damaged}
        verbosity = 0 if self.json else self.verbosity
        with ending_cleanly(), Progress(self, verbosity) as progress:
            result = build(
                site,
                sections=sections,
                distrusted=names,
                on_file=progress,
                started_by=caller(),
            )
        if result.status == "held":
            self.stderr.write(held_back(result))

    def _conclude(self, invalid: int) -> None:
        if invalid:
            verb = "is" if invalid == 1 else "are"
            message = f"{count_of(invalid, 'document')} {verb} not valid."
            raise CommandError(message, returncode=Exit.FAILED)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= TIMEOUT_MAX:  # NaN is neither.
        raise ValueError(text)
    return seconds


def _schemas(path: str) -> "Schemas":
    """Return the schemas at a path. Raises CommandError where there are none, or no lxml."""
    try:
        schemas: Schemas = import_module("django_sitemapkit.audit.schemas").Schemas(Path(path))
    except ModuleNotFoundError as error:
        message = "--schema needs lxml: pip install django-sitemapkit[schema]"
        raise CommandError(message, returncode=Exit.USAGE) from error
    except ValueError as error:
        raise CommandError(f"--schema: {printable(error)}.", returncode=Exit.USAGE) from error
    return schemas
