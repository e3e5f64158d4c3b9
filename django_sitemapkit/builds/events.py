"""What happens to builds, as signals and as records of the log.

Each record has an ``event`` and further attributes besides its message, for handlers that write
JSON; docs/watching.md lists them. If the log has no handler, nothing is logged: Python would print
warnings and errors besides what a command prints.
"""

import logging
from typing import Any

from django.dispatch import Signal

from django_sitemapkit.builds.lease import CANCELLED
from django_sitemapkit.builds.results import BuildResult, FileResult, outcome_of, problem_kinds
from django_sitemapkit.exceptions import BuildCancelled, SitemapKitError
from django_sitemapkit.models import Build
from django_sitemapkit.printable import count_of, printable
from django_sitemapkit.signals import build_ended, build_started, page_built
from django_sitemapkit.words import State, english_of

logger = logging.getLogger("django_sitemapkit")

LEVELS = {"held": logging.WARNING, "abandoned": logging.WARNING, "failed": logging.ERROR}
"""The levels of builds that ended, by status; of others it is INFO."""


def send(name: str, signal: Signal, sender: type, *, site: str, **values: Any) -> None:
    """Send a signal about a site; what a receiver raises is logged with the signal's ``name``."""
    for receiver, error in signal.send_robust(sender, site=site, **values):
        if isinstance(error, Exception):
            logger.error(
                "The receiver %r of %s failed for site %r.",
                *(receiver, name, site),
                exc_info=error,
            )


def announce_started(build: Build, *, pages: int, adopted: int) -> None:
    """Announce that a build begins to make ``pages`` pages, and how many it has adopted."""
    send(
        *("build_started", build_started, Build),
        site=build.site,
        build=build.pk,
        pages=pages,
        adopted=adopted,
    )
    _log(
        *(logging.INFO, "build_started", build.site, build.pk),
        f"Build {build.pk} started: {count_of(pages, 'page')}.",
        pages=pages,
        adopted=adopted,
        started_by=printable(build.started_by),
    )


def announce_page(site: str, build: int, file: FileResult) -> None:
    """Announce that a page was rendered, and stored or found to be the same."""
    if page_built.has_listeners(Build):
        send("page_built", page_built, Build, site=site, build=build, file=file)
    if logger.isEnabledFor(logging.INFO):
        _log(
            *(logging.INFO, "page_built", site, build),
            f"{file.section} {file.number}: {file.state}, {count_of(file.urls, 'URL')},"
            f" {file.seconds:.2f} s.",
            section=file.section,
            page=file.number,
            state=file.state,
            urls=file.urls,
            skipped=file.skipped,
            xml_bytes=file.xml_bytes,
            stored_bytes=file.stored_bytes,
            seconds=round(file.seconds, 3),
        )


def announce_ended(build: int | None, result: BuildResult, *, is_followed: bool = False) -> None:
    """Announce how a build ended; ``result`` names another one if it equals one that is held.

    Its problems are logged, unless it ``is_followed`` at once by a build that has them too.
    """
    send(
        *("build_ended", build_ended, Build),
        site=result.site,
        build=build,
        result=result,
    )
    if not logger.hasHandlers():  # Then nobody reads the words.
        return
    if not is_followed:
        _log_problems(build, result)
    _log(
        LEVELS.get(result.status, logging.INFO),
        *("build_ended", result.site, build),
        english_of(outcome_of(result)),
        status=result.status,
        reason=printable(result.reason),
        code=result.code,
        urls=result.urls,
        files=len(result.files),
        stored=result.stored,
        skipped=result.skipped,
        seconds=round(result.seconds, 3),
    )


def log_published(site: str, build: int) -> None:
    """Log that a site serves a build from now on; the signal follows after the export."""
    _log(logging.INFO, "published", site, build, f"Build {build} is published.")


def reason_of(error: BaseException, site: str) -> State:
    """Return why a build of a site failed."""
    if isinstance(error, BuildCancelled):
        return {"code": CANCELLED, "by": error.by}
    if isinstance(error, SitemapKitError):
        return str(error).removeprefix(f"Site {site!r}: ")
    if not isinstance(error, Exception):  # Such as Ctrl-C, or SIGTERM in a command.
        return {"code": "interrupted"}
    return f"{type(error).__name__}: {printable(error)}"


def _log_problems(build: int | None, result: BuildResult) -> None:
    """Log what was skipped: once for each kind in each section."""
    for kind in problem_kinds(result.files):
        _log(
            *(logging.WARNING, "problem", result.site, build),
            str(kind),
            section=kind.section,
            problem=kind.code,
            count=kind.count,
            reason=printable(kind.example),
        )


def _log(level: int, event: str, site: str, build: int | None, text: str, **values: Any) -> None:
    if logger.isEnabledFor(level) and logger.hasHandlers():
        extra = {"event": event, "site": site, "build": build, **values}
        logger.log(level, "Site %r: %s", site, text, extra=extra)
