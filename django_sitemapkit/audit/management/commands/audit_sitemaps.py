"""Fetch the web pages that the sitemaps list, and report what search engines will not index."""

import time
from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser

from django_sitemapkit.audit.kinds import ADVICE, BAD_KINDS, FindingKind
from django_sitemapkit.audit.models import AuditRun
from django_sitemapkit.exceptions import BuildRunning, SitemapKitError
from django_sitemapkit.management.base import (
    CLEAR_LINE,
    Exit,
    PublishedCommand,
    ending_cleanly,
)
from django_sitemapkit.printable import count_of

CONCURRENCY = 4
"""Requests at a time over HTTP, by default."""

MAX_LISTED_URLS = 3
"""URLs of each kind that are printed; JSON and the admin have all."""


class Command(PublishedCommand):
    """Audit each site and print what was found, a paragraph for each kind."""

    help = __doc__ or ""
    interrupted = "Interrupted. Run the same command again to continue the audit."
    more_exit_codes = (Exit.RUNNING, Exit.PROBLEMS)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        size = parser.add_mutually_exclusive_group()
        size.add_argument(
            "--sample",
            type=_positive,
            default=200,
            metavar="URLS",
            help="URLs of each section, spread over all of it; default: %(default)s.",
        )
        size.add_argument("--full", action="store_true", help="Audit all URLs.")
        parser.add_argument(
            "--restart", action="store_true", help="Do not continue an interrupted audit."
        )
        parser.add_argument(
            "--fail-on",
            default="",
            metavar="KINDS",
            help="Exit with 5 if findings of these kinds exist, separated by commas; bad stands for"
            " all that keep a URL out of an index.",
        )
        parser.add_argument(
            "--live",
            action="store_true",
            help="Fetch the pages over HTTP, and not within this process. Needs the extra audit.",
        )
        parser.add_argument(
            "--concurrency",
            type=_positive,
            metavar="REQUESTS",
            help=f"With --live: requests at a time; default: {CONCURRENCY}.",
        )
        parser.add_argument(
            "--rate",
            type=_rate,
            metavar="REQUESTS",
            help="With --live: requests a second, at most.",
        )
        parser.add_argument(
            "--allow-private",
            action="store_true",
            help="With --live: also fetch from private and local addresses.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Audit each site, in-process or over HTTP."""
        audit = _module("auditing").audit
        if not options["live"]:
            for name in ("concurrency", "rate", "allow_private"):
                if options[name]:
                    option = name.replace("_", "-")
                    raise CommandError(f"--{option} needs --live.", returncode=Exit.USAGE)
            self._audit(audit, options)
            return
        live = _module("web.live")
        with live.LiveFetcher(
            allow_private=options["allow_private"], rate=options["rate"]
        ) as fetcher:
            concurrency = options["concurrency"] or CONCURRENCY
            self._audit(partial(audit, fetch=fetcher.fetch, concurrency=concurrency), options)

    def _audit(self, audit: Callable[..., AuditRun], options: dict[str, Any]) -> None:
        fail_on = _kinds(options["fail_on"])
        failed, code, found = [], Exit.FAILED, 0
        for site in self.sites(options["site"]):
            began = time.monotonic()
            try:
                with ending_cleanly():
                    run = audit(
                        site,
                        sample=None if options["full"] else options["sample"],
                        restart=options["restart"],
                        on_progress=lambda run, began=began: self._progress(run, began),
                    )
            except ImproperlyConfigured as error:
                raise CommandError(str(error), returncode=Exit.USAGE) from error
            except SitemapKitError as error:
                failed.append(str(error))
                code = Exit.RUNNING if isinstance(error, BuildRunning) else Exit.FAILED
                continue
            finally:
                if self.terminal:
                    self.stdout.write(ending=CLEAR_LINE)
            found += sum(run.counts.get(kind, 0) for kind in fail_on)
            if options["json"]:
                self._write_json(run)
            elif options["verbosity"]:
                self._print(run)
        if failed:
            raise CommandError("\n".join(failed), returncode=code)
        if found:
            message = f"{count_of(found, 'finding')} of {options['fail_on']}."
            raise CommandError(message, returncode=Exit.PROBLEMS)

    def _progress(self, run: AuditRun, began: float) -> None:
        if self.terminal:
            rate = run.checked / max(time.monotonic() - began, 0.001)
            line = f"{count_of(run.checked, 'URL')}, {rate:,.0f} a second, {run.bad:,} bad"
            self.stdout.write(CLEAR_LINE + line, ending="\r")
            self.stdout.flush()

    def _write_json(self, run: AuditRun) -> None:
        findings = run.findings.order_by("pk").values("section", "kind", "url", "detail")
        for finding in findings.iterator(chunk_size=2_000):
            self.write_json({"site": run.site, **finding})
        self.write_json(
            {
                "site": run.site,
                "audit": run.pk,
                "build": run.build,
                "checked": run.checked,
                "bad": run.bad,
                "counts": run.counts,
            }
        )

    def _print(self, run: AuditRun) -> None:
        write = self.stdout.write
        source = f"build {run.build}" if run.build else "live pages"
        write(f"Site {run.site!r}: {count_of(run.checked, 'URL')} of {source}, {run.bad:,} bad.")
        for kind in FindingKind:
            if count := run.counts.get(kind):
                write(f"  {kind.label}: {count:,}. {ADVICE[kind]}")
                for finding in run.findings.filter(kind=kind).order_by("pk")[:MAX_LISTED_URLS]:
                    write(f"    {finding.url}  {finding.detail}".rstrip())
                if count > MAX_LISTED_URLS:
                    write(f"    and {count - MAX_LISTED_URLS:,} more")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate < float("inf"):
        raise ValueError(text)
    return rate


def _kinds(text: str) -> Collection[str]:
    """Return the kinds of ``--fail-on``."""
    kinds = {kind.strip() for kind in text.split(",") if kind.strip()}
    if "bad" in kinds:
        kinds = kinds - {"bad"} | BAD_KINDS
    if unknown := sorted(kinds - set(FindingKind.values)):
        known = ", ".join(FindingKind.values)
        raise CommandError(
            f"Unknown kinds: {', '.join(unknown)}. Known kinds: bad, {known}.",
            returncode=Exit.USAGE,
        )
    return kinds


def _module(name: str) -> Any:
    """Return a module of the app that needs the extra ``audit``."""
    try:
        return import_module(f"django_sitemapkit.audit.{name}")
    except ImportError as error:
        raise CommandError(
            f'{error}. Install the extra: pip install "django-sitemapkit[audit]".',
            returncode=Exit.USAGE,
        ) from error
