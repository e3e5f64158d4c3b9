"""Problems of single rows: all are counted, the first of each kind are kept as examples."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import printable, writable

EXAMPLES_PER_KIND = 20
"""Problems kept as examples of each kind; all of them are counted."""

LISTED_AS_DECLARED = {"escaped-twice", "expired-video"}
"""The codes of problems because of which nothing is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a row or value was left out of a sitemap, or is listed although it looks wrong."""

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
        """Return one line: the section, key and message, and whether the row is listed."""
        is_whole = self.code in LISTED_AS_DECLARED
        left_out = "skipped" if self.skipped else "listed" if is_whole else "listed without it"
        return printable(f"{self.section} {self.key!a}: {self.message} ({left_out})")


class ProblemLog:
    """Collects the problems of one rendering: counts all, keeps the first of each kind."""

    def __init__(self, section: str) -> None:
        self.section = section
        self.examples_per_kind: float = EXAMPLES_PER_KIND
        """How many problems of each kind are kept as examples."""
        self.counts: Counter[str] = Counter()
        """How many problems there were, by code."""
        self.skipped = 0
        """How many rows were left out."""
        self.examples: list[Problem] = []
        """The first problems of each code."""

    def __len__(self) -> int:
        """Return the number of all problems."""
        return self.counts.total()

    def add(self, key: Any, error: InvalidValue, *, skipped: bool = True) -> None:
        """Count the problem of a row, and keep it if it is among the first of its code.

        ``skipped`` says that the whole row is left out, not only a value.
        """
        self.counts[error.code] += 1
        self.skipped += skipped
        if self.counts[error.code] <= self.examples_per_kind:
            self.examples.append(
                Problem(
                    section=self.section,
                    key=writable(key),
                    code=error.code,
                    message=str(error),
                    skipped=skipped,
                )
            )

    def by_code(self) -> dict[str, dict[str, Any]]:
        """Return the form in which a database stores the problems: by code, count and examples.

        An example is a list: its position among all examples, since the database does not keep the
        order of codes; its text; and the key of its row as text.
        """
        found: dict[str, dict[str, Any]] = {
            code: {"count": count, "examples": []} for code, count in self.counts.items()
        }
        for place, problem in enumerate(self.examples):
            found[problem.code]["examples"].append([place, str(problem), str(problem.key)])
        return found

    def summary(self) -> str:
        """Return one line of text: for each code, the number of problems and the first of them."""
        first = {problem.code: problem for problem in reversed(self.examples)}
        return "; ".join(f"{count:,} x {first[code]}" for code, count in self.counts.items())
