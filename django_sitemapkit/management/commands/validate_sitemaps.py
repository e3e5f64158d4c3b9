"""Read sitemaps as a search engine does, and say all that is wrong with them."""

from collections.abc import Iterable
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.builds import Examined, build, examine, examine_published
from django_sitemapkit.exceptions import BuildRunning, SitemapKitError
from django_sitemapkit.management.base import (
    Exit,
    Progress,
    PublishedCommand,
    caller,
    ending_cleanly,
    held_back,
)
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.sites import Site


class Command(PublishedCommand):
    """Validate what is published, or the addresses, files and folders named."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the sources and options."""
        super().add_arguments(parser)
        parser.add_argument(
            "sources",
            nargs="*",
            help="An address, whose index is followed; a file; a folder. Default: the published"
            " files, as they are stored.",
        )
        parser.add_argument(
            "--repair",
            action="store_true",
            help="Make the published files anew that are lost or damaged, and publish them.",
        )
        parser.add_argument(
            "--schema",
            metavar="PATH",
            help="Check by XML schemas too: a folder with sitemap.xsd and siteindex.xsd, or one"
            " .xsd file for all. It needs lxml, and no network.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Read everything, then tell."""
        self.verbosity = options["verbosity"]
        self.schemas = _schemas(options["schema"]) if options["schema"] else None
        if options["sources"]:
            if options["repair"]:
                raise CommandError("--repair is for published files.", returncode=Exit.USAGE)
            bad = [self._tell(self._read(source)) for source in options["sources"]]
            self._conclude(sum(map(len, bad)))
            return
        left = 0
        for site in self.sites(options["site"]):
            bad_files = self._tell(examine_published(site, self.schemas))
            if bad_files and options["repair"]:
                self._repair(site, bad_files)
                bad_files = self._tell(examine_published(site, self.schemas))
            left += len(bad_files)
        self._conclude(left)

    def _read(self, source: str) -> Iterable[Examined]:
        try:
            yield from examine(source, self.schemas)
        except (OSError, HTTPException, ValueError) as error:
            message = f"{source} cannot be read: {error}"
            raise CommandError(message, returncode=Exit.FAILED) from error

    def _tell(self, examined: Iterable[Examined]) -> list[Examined]:
        """Print a line for each document; return the invalid ones."""
        invalid = []
        for document in examined:
            if document.faults:
                invalid.append(document)
            word = "INVALID" if document.faults else "valid"
            if self.verbosity or document.faults:
                self.stdout.write(f"{document.source:<60} {word:<8} {document.urls:>9,} entries")
            for text in document.faults[:20]:
                self.stdout.write(f"  error: {text}")
            for text in document.warnings[:20] if self.verbosity else ():
                self.stdout.write(f"  warning: {text}")
        return invalid

    def _repair(self, site: Site, damaged: list[Examined]) -> None:
        if self.has_faults:
            message = "--repair builds, which needs all sections: fix the errors above first."
            raise CommandError(message, returncode=Exit.FAILED)
        # A damaged page of a section that has gone goes with the build: none names all.
        known = {section.get_name() for section in sections_of(site)}
        sections = {document.section for document in damaged} & known
        names = {document.stored for document in damaged}
        try:
            with ending_cleanly():
                result = build(
                    site,
                    sections=sections,
                    distrusted=names,
                    on_file=Progress(self, self.verbosity),
                    started_by=caller(),
                )
        except BuildRunning as error:
            raise CommandError(str(error), returncode=Exit.RUNNING) from error
        except SitemapKitError as error:
            raise CommandError(str(error), returncode=Exit.FAILED) from error
        if result.status == "held":
            self.stderr.write(held_back(result))

    def _conclude(self, invalid: int) -> None:
        if invalid:
            message = f"{invalid:,} documents are not valid."
            raise CommandError(message, returncode=Exit.FAILED)


def _schemas(path: str) -> Any:
    """Return the schemas at a path; raises CommandError where there are none, or no lxml is."""
    try:
        module = import_module("django_sitemapkit.builds.schemas")
        return module.Schemas(Path(path))
    except ModuleNotFoundError as error:
        message = "--schema needs lxml: pip install django-sitemapkit[schema]"
        raise CommandError(message, returncode=Exit.USAGE) from error
    except ValueError as error:
        raise CommandError(f"--schema: {error}.", returncode=Exit.USAGE) from error
