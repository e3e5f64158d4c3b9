"""What was wrong with single rows: counted all, remembered some."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import printable

EXAMPLES_PER_KIND = 20
"""Problems kept as examples of each kind; all of them are counted."""

LISTED_AS_DECLARED = {"escaped-twice", "expired-video"}
"""The codes of doubts: nothing is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One row or value that was left out of a sitemap, or that is listed and is doubtful."""

    section: str
    """The section's name."""
    key: Any
    """The row's paging key, or the item."""
    code: str
    """A short stable word for the kind of fault: ``url-not-allowed``, ``invalid-date``."""
    message: str
    """What is wrong and what to do, in the words Search Console uses."""
    skipped: bool = True
    """Whether the whole row was left out, or only the value."""

    def __str__(self) -> str:
        is_whole = self.code in LISTED_AS_DECLARED
        left_out = "skipped" if self.skipped else "listed" if is_whole else "listed without it"
        return printable(f"{self.section} {self.key!a}: {self.message} ({left_out})")


class ProblemLog:
    """The problems of one rendering, in bounded memory."""

    def __init__(self, section: str) -> None:
        self.section = section
        self.most: float = EXAMPLES_PER_KIND
        """How many problems of each kind are kept as examples."""
        self.counts: Counter[str] = Counter()
        """How many problems there were, by code."""
        self.skipped = 0
        """How many rows were left out."""
        self.examples: list[Problem] = []
        """The first problems of each code."""

    def __len__(self) -> int:
        return self.counts.total()

    def add(self, key: Any, error: InvalidValue, *, skipped: bool = True) -> None:
        """Count a problem, and remember it if it is among the first of its kind."""
        self.counts[error.code] += 1
        self.skipped += skipped
        if self.counts[error.code] <= self.most:
            found = {"key": key, "code": error.code, "message": str(error)}
            self.examples.append(Problem(section=self.section, skipped=skipped, **found))

    def by_code(self) -> dict[str, dict[str, Any]]:
        """Return the stored form: for each code, the number of problems and the first of them.

        Each of these has its place among all, since a database does not keep the order of codes,
        its words, and the key of its row as text.
        """
        found: dict[str, dict[str, Any]] = {
            code: {"count": count, "examples": []} for code, count in self.counts.items()
        }
        for place, problem in enumerate(self.examples):
            found[problem.code]["examples"].append([place, str(problem), str(problem.key)])
        return found

    def summary(self) -> str:
        """Return one line of text: the number of problems of each kind, with the first of them."""
        first = {problem.code: problem for problem in reversed(self.examples)}
        return "; ".join(f"{count:,} x {first[code]}" for code, count in self.counts.items())
