"""Fetch the web pages that the sitemaps list, and report what search engines will not index."""

from typing import Any

from django.core.management.base import CommandParser

from django_sitemapkit.audit.kinds import AUDIT_KINDS
from django_sitemapkit.audit.management.base import (
    FindingsCommand,
    import_audit_module,
    positive_integer,
)
from django_sitemapkit.audit.models import AuditRun
from django_sitemapkit.printable import count_of
from django_sitemapkit.sites import SitemapSite


class Command(FindingsCommand):
    """Audit each site, and print a paragraph for each kind of finding."""

    interrupted = "Interrupted. Run the same command again to continue the audit."
    kinds = AUDIT_KINDS

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        size = parser.add_mutually_exclusive_group()
        size.add_argument(
            "--sample",
            type=positive_integer,
            default=200,
            metavar="URLS",
            help="Number of URLs of each section, spread over the section; default: %(default)s.",
        )
        size.add_argument("--full", action="store_true", help="Audit all URLs.")

    def examine(self, site: SitemapSite, options: dict[str, Any], **arguments: Any) -> AuditRun:
        """Audit a site, or a sample of each of its sections; return the finished run."""
        run: AuditRun = import_audit_module("auditing").audit(
            site, sample=None if options["full"] else options["sample"], **arguments
        )
        return run

    def heading(self, run: AuditRun) -> str:
        """Return how many URLs were audited, of which build, and how many are bad."""
        source = f"build {run.build}" if run.build else "live pages"
        unknown = f", {run.undetermined:,} not determined" if run.undetermined else ""
        return f"{count_of(run.checked, 'URL')} of {source}, {run.bad:,} bad{unknown}."
