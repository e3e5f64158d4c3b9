"""What a build reports: to commands and callers, to the log, and to those who requested it."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.dispatch import Signal
from django.utils import timezone

from django_sitemapkit.builds.lease import CANCELLED
from django_sitemapkit.exceptions import BuildCancelled, SitemapKitError
from django_sitemapkit.models import Build, BuildRequest, Place
from django_sitemapkit.printable import count_of, logger, printable, printable_lines
from django_sitemapkit.signals import build_ended, build_started, page_built
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State, code_of, english_of

LEVELS = {"held": logging.WARNING, "abandoned": logging.WARNING, "failed": logging.ERROR}
"""The levels of builds that ended, by status; of others it is INFO."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """The result of one file of a build."""

    section: str
    """The section's name; "" for an index."""
    number: int
    """The page's number; 0 for the index."""
    state: str
    """"stored", "same" where the stored file holds it already, or "empty"."""
    urls: int = 0
    """Entries in it."""
    xml_bytes: int = 0
    """Bytes of XML."""
    stored_bytes: int = 0
    """Bytes in storage."""
    seconds: float = 0.0
    """How long it took."""
    problems: Sequence[str] = ()
    """The first problems of each kind, in words."""
    kinds: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """How many problems there are of each kind, and the first of them, by their code."""
    skipped: int = 0
    """Rows that were skipped."""

    @property
    def duplicates(self) -> int:
        """How many of the problems are URLs that this page or an earlier one already lists."""
        return self.kinds["duplicate-url"][0] if "duplicate-url" in self.kinds else 0


def result_of_row(row: Place) -> FileResult:
    """Return the result of a page as its row records it; its state is "same" or "empty"."""
    kinds = row.problems.items()
    return FileResult(
        section=row.section,
        number=row.number,
        state="same" if row.status == Place.Status.DONE else "empty",
        urls=row.urls,
        xml_bytes=row.xml_bytes,
        stored_bytes=row.page.stored_bytes if row.status == Place.Status.DONE else 0,
        problems=tuple(row.problem_examples),
        kinds={code: (kind["count"], kind["examples"][0][1]) for code, kind in kinds},
        skipped=row.skipped,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """The result of a build."""

    site: str
    """The site's key."""
    build: int | None
    """The build's id; None for a dry run."""
    status: str
    """"published", "unchanged", "held", "dry-run", or "running" by another process.

    The signal ``build_ended`` also has "failed" and "abandoned".
    """
    files: Sequence[FileResult] = field(default_factory=tuple)
    """All files of the build in the order they were made."""
    seconds: float = 0.0
    """How long it took."""
    adopted: int = 0
    """Pages that it has taken over from interrupted builds."""
    abandoned: str = ""
    """Why a build before it was abandoned; "" if none was."""
    cause: State = ""
    """Why it is held for review, failed or was abandoned, as a code and its values; else ""."""
    warnings: Sequence[str] = ()
    """Large losses of URLs, and implausible lastmods."""
    new_warnings: Sequence[str] = ()
    """Those among them that neither the published build nor the one held for review has."""
    exported: int | None = None
    """Files that were copied to the export; None where there is none."""

    @property
    def reason(self) -> str:
        """Why it is held for review, failed or was abandoned, in English; else ""."""
        return english_of(self.cause)

    @property
    def code(self) -> str:
        """The code of the reason, such as "shrinkage"; "other" for the text of a gate or error."""
        return code_of(self.cause)

    @property
    def urls(self) -> int:
        """URLs in its pages, also in reused ones; sections not asked for do not count."""
        return sum(file.urls for file in self.files if file.section)

    @property
    def pages(self) -> int:
        """Files that list a URL; the index does not count."""
        return sum(file.state != "empty" for file in self.files if file.section)

    @property
    def rendered_urls(self) -> int:
        """URLs in the pages that were rendered; reused files do not count."""
        return sum(
            file.urls
            for file in self.files
            if file.section and (file.seconds or file.state == "stored")
        )

    @property
    def xml_bytes(self) -> int:
        """Bytes of XML in its pages, also in reused ones; sections not asked for do not count."""
        return sum(file.xml_bytes for file in self.files if file.section)

    @property
    def stored(self) -> int:
        """Files that were sent to the storage."""
        return sum(file.state == "stored" for file in self.files)

    @property
    def problems(self) -> int:
        """Files with problems, also reused ones."""
        return sum(bool(file.problems) for file in self.files)

    @property
    def skipped(self) -> int:
        """Rows that were skipped in its pages, also in reused ones."""
        return sum(file.skipped for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemKind:
    """A kind of problem in a section."""

    section: str
    """The section's name."""
    code: str
    """The code of the kind."""
    count: int
    """How many problems of it there are."""
    example: str
    """The first of them, in words."""

    def __str__(self) -> str:
        times = f" ({self.count:,} times)" if self.count > 1 else ""
        return f"Problem{times}: {self.example}"


def problem_kinds(files: Iterable[FileResult]) -> list[ProblemKind]:
    """Return how many problems there are of each kind in each section, and the first of them."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for file in files:
        for code, (count, example) in file.kinds.items():
            counts[file.section, code] += count
            first.setdefault((file.section, code), example)
    return [
        ProblemKind(section=section, code=code, count=count, example=first[section, code])
        for (section, code), count in counts.items()
    ]


def outcome_of(result: BuildResult) -> Mapping[str, Any]:
    """Return the outcome of a build as a state: how it ended, the reason, and its numbers."""
    cause = result.cause
    name = "previewed" if result.code.startswith("preview") else result.status
    return {
        "code": name if result.build else "ended",
        "build": result.build,
        "reason": cause.removesuffix(".") if isinstance(cause, str) else cause,
        "urls": result.urls,
        "files": result.pages,
        "stored": result.stored,
        "more": {"code": "rows-skipped", "rows": result.skipped} if result.skipped else "",
    }


def take_requests_for_build(
    site: SitemapSite, sections: Collection[str], *, full: bool, preview: bool = False
) -> list[int]:
    """Return the ids of the open requests that a build, or preview, beginning now will fulfil.

    From now on, the same request is recorded as a new one: the build may have passed those rows
    already.
    """
    kind = BuildRequest.Kind.PREVIEW if preview else BuildRequest.Kind.BUILD
    rows = BuildRequest.objects.open(site).filter(kind=kind)
    if sections:
        rows = rows.filter(section__in=sections)
    if not full:
        rows = rows.filter(full=False)
    keys = list(rows.values_list("pk", flat=True))
    BuildRequest.objects.filter(pk__in=keys).update(dedup_key=None)
    return keys


def close_requests(requests: Sequence[int], outcome: State) -> None:
    """Record the outcome of some requests; those already closed stay unchanged.

    If the outcome names no build, a request keeps the build it is about.
    """
    state = {"text": printable_lines(outcome)} if isinstance(outcome, str) else outcome
    BuildRequest.objects.filter(pk__in=requests, ended_at=None).update(
        ended_at=timezone.now(),
        dedup_key=None,
        outcome=state.get("text", state),
        **({"build": state["build"]} if "build" in state else {}),
    )


def send_signal(name: str, signal: Signal, sender: type, *, site: str, **values: Any) -> None:
    """Send a signal about a site; what a receiver raises is logged with the signal's ``name``."""
    for receiver, error in signal.send_robust(sender, site=site, **values):
        if isinstance(error, Exception):
            logger.error(
                "The receiver %r of %s failed for site %r.",
                *(receiver, name, site),
                exc_info=error,
            )


def announce_started(build: Build, *, pages: int, adopted: int) -> None:
    """Announce, by signal and log, that a build begins to make ``pages`` pages.

    ``adopted`` is how many it has adopted.
    """
    send_signal(
        *("build_started", build_started, Build),
        site=build.site,
        build=build.pk,
        pages=pages,
        adopted=adopted,
    )
    log_event(
        *(logging.INFO, "build_started", build.site, build.pk),
        f"Build {build.pk} started: {count_of(pages, 'page')}.",
        pages=pages,
        adopted=adopted,
        started_by=printable(build.started_by),
    )


def announce_page(site: str, build: int, file: FileResult) -> None:
    """Announce, by signal and log, that a page was rendered, and stored or found to be the same."""
    if page_built.has_listeners(Build):
        send_signal("page_built", page_built, Build, site=site, build=build, file=file)
    if logger.isEnabledFor(logging.INFO):
        log_event(
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
    """Announce, by signal and log, how a build ended.

    ``result`` names another build if that is held for review and identical. Problems and warnings
    are logged, unless the build ``is_followed`` at once by one that has them too.
    """
    send_signal(
        *("build_ended", build_ended, Build),
        site=result.site,
        build=build,
        result=result,
    )
    if not logger.hasHandlers():  # Then nobody reads the words.
        return
    if not is_followed:
        _log_problems(build, result)
        for warning in result.new_warnings:
            log_event(logging.WARNING, "warning", result.site, build, warning)
    log_event(
        LEVELS.get(result.status, logging.INFO),
        *("build_ended", result.site, build),
        english_of(outcome_of(result)),
        status=result.status,
        reason=printable(result.reason),
        code=result.code,
        urls=result.urls,
        files=result.pages,
        stored=result.stored,
        skipped=result.skipped,
        seconds=round(result.seconds, 3),
    )


def reason_of(error: BaseException, site: str) -> State:
    """Return the reason to record for a build of a site that ended with an error."""
    if isinstance(error, BuildCancelled):
        return {"code": CANCELLED, "by": error.by}
    if isinstance(error, SitemapKitError):
        return str(error).removeprefix(f"Site {site!r}: ")
    if not isinstance(error, Exception):  # Such as Ctrl-C, or SIGTERM in a command.
        return {"code": "interrupted"}
    return f"{type(error).__name__}: {printable(error)}"


def _log_problems(build: int | None, result: BuildResult) -> None:
    """Log the problems of a build: one message for each kind in each section."""
    for kind in problem_kinds(result.files):
        log_event(
            *(logging.WARNING, "problem", result.site, build),
            str(kind),
            section=kind.section,
            problem=kind.code,
            count=kind.count,
            reason=printable(kind.example),
        )


def log_event(
    level: int, event: str, site: str, build: int | None, text: str, **values: Any
) -> None:
    """Log an event of a build, with its values as attributes of the record."""
    if logger.isEnabledFor(level) and logger.hasHandlers():
        extra = {"event": event, "site": site, "build": build, **values}
        logger.log(level, "Site %r: %s", site, text, extra=extra)
