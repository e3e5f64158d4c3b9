"""What a reader finds wrong, kept in bounded memory however much is wrong."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Level = Literal["error", "warning"]

MAX_FINDINGS = 1_000
"""Findings kept as examples; the rest are only counted, so that memory stays bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault of a document that was read."""

    code: str
    """A short stable word for the kind of fault (``"invalid-date"``), fit for counting."""
    message: str
    """What is wrong, in the words Search Console uses, with the value and the way out."""
    line: int | None = None
    """The line it stands in, from 1; for a fault within an entry, where the entry begins."""
    location: str | None = None
    """The ``loc`` of the entry it concerns, 2,048 characters of it at most."""
    level: Level = "error"
    """``"error"``: the protocol is broken; ``"warning"``: some readers will stumble."""


class Fault(NamedTuple):
    """What a rule says of one value; where it stands is not the rule's business."""

    code: str
    message: str
    level: Level = "error"


class FindingLog:
    """The findings of one document: the first thousand in full, all of them by number."""

    __slots__ = ("counts", "errors", "examples")

    def __init__(self) -> None:
        self.examples: list[Finding] = []
        self.counts: dict[str, int] = {}
        self.errors = 0

    @property
    def total(self) -> int:
        """How many there are, whether kept or only counted."""
        return sum(self.counts.values())

    def add(self, fault: Fault, line: int | None = None, location: str | None = None) -> None:
        """Count a fault, and keep it while there is room, or as the first of its kind."""
        seen = self.counts.get(fault.code, 0)
        self.counts[fault.code] = seen + 1
        self.errors += fault.level == "error"
        if seen and len(self.examples) >= MAX_FINDINGS:
            return
        self.examples.append(
            Finding(
                code=fault.code,
                message=fault.message,
                line=line,
                location=location and location[:2_048],
                level=fault.level,
            )
        )


def shown(text: str) -> str:
    """Return ``text`` fit for a log line: quoted, escaped, and cut where it is long."""
    return ascii(text) if len(text) <= 120 else f"{text[:100]!a}..."
