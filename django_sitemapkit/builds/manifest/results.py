"""What a build reports: objects, for commands and callers alike."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

logger = logging.getLogger("django_sitemapkit")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """What became of one file of a build."""

    section: str
    """The section's name; "" for an index."""
    number: int
    """The page's number; 0 for the first index, and 2, 3 and so on for further ones."""
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
    """Rows that were left out."""
    duplicates: int = 0
    """Those among them whose URL is listed already, by this page or by one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """What became of a build."""

    site: str
    """The site's key."""
    build: int | None
    """The build's id; None for a dry run."""
    status: str
    """"published", "unchanged", "held", "dry-run", or "running" by another process."""
    files: Sequence[FileResult] = field(default_factory=tuple)
    """All files of the build in the order they were made."""
    seconds: float = 0.0
    """How long it took."""
    finished: int | None = None
    """The id of a killed build that was finished first; None if there was none."""
    stopped: str = ""
    """Why a build before it was abandoned; "" if none was."""
    reason: str = ""
    """Why it is held for review; "" if it is not."""
    warnings: Sequence[str] = ()
    """What its lastmods say that can hardly be true."""
    exported: int | None = None
    """Files that were copied to the export; None where there is none."""

    @property
    def urls(self) -> int:
        """URLs in the pages it made; sections that were not asked for do not count."""
        return sum(file.urls for file in self.files if file.section)

    @property
    def xml_bytes(self) -> int:
        """Bytes of XML in the pages it made."""
        return sum(file.xml_bytes for file in self.files if file.section)

    @property
    def stored(self) -> int:
        """Files that were sent to the storage."""
        return sum(file.state == "stored" for file in self.files)

    @property
    def problems(self) -> int:
        """Files in which something was left out."""
        return sum(bool(file.problems) for file in self.files)

    @property
    def skipped(self) -> int:
        """Rows that were left out of the pages it made."""
        return sum(file.skipped for file in self.files)


def problem_kinds(files: Iterable[FileResult]) -> list[tuple[int, str]]:
    """Return how many problems there are of each kind in each section, and the first of them."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for file in files:
        for code, (count, example) in file.kinds.items():
            counts[file.section, code] += count
            first.setdefault((file.section, code), example)
    return [(count, first[kind]) for kind, count in counts.items()]


def problem_lines(files: Iterable[FileResult]) -> list[str]:
    """Return a line for each kind of problem in each section."""
    return [
        f"Problem ({count:,} times): {example}" if count > 1 else f"Problem: {example}"
        for count, example in problem_kinds(files)
    ]


def log_problems(site: str, files: Iterable[FileResult]) -> None:
    """Log what was skipped; if there is no log, Python would print it besides the command."""
    if logger.hasHandlers():
        for line in problem_lines(files):
            logger.warning("Site %r: %s", site, line)
