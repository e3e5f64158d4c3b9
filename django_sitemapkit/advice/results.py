"""What is advised, as values."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at, and what came of it."""

    about: str
    """The option it is about, or "index"."""
    message: str
    """What was seen, in a sentence."""
    declare: str = ""
    """The line to write; "" where nothing is advised."""
    notes: tuple[str, ...] = ()
    """What else to know before writing it: what is not proven, what would do as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionAdvice:
    """All that was found about a section."""

    section: str
    """The section's name."""
    declared: str
    """The dotted path of its class."""
    head: str = ""
    """The line of the class that the options belong to."""
    model: str = ""
    """The model whose ``Meta`` the indexes belong to."""
    rows: int = 0
    """Rows that were looked at."""
    findings: tuple[Finding, ...] = ()
    """What was found, by option."""
    gain: float | None = None
    """How many times as fast these rows are rendered as advised; None where not measured."""
    gain_rows: int = 0
    """Rows it was measured on."""
    passed_over: str = ""
    """Why the section was not looked at; "" where it was."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return asdict(self)

    @property
    def declarations(self) -> tuple[str, ...]:
        """The lines to write into the section's class, its head first; none to write, none."""
        return self._block(self.head, [f for f in self.findings if f.about != "index"])

    @property
    def indexes(self) -> tuple[str, ...]:
        """The lines to write into the model's ``class Meta``."""
        return self._block(
            "indexes = [", [f for f in self.findings if f.about == "index"], ",", "]"
        )

    def lines(self) -> Iterator[str]:
        """Yield it as lines of text."""
        yield f"  Advice for {self.section} ({self.declared}), {self.rows:,} rows looked at:"
        if self.passed_over:
            yield f"    passed over: {self.passed_over}"
            return
        for finding in self.findings:
            yield f"    {finding.about}: {finding.message}"
            yield from (f"      {note}" for note in finding.notes)
        if not self.declarations and not self.indexes:
            yield "    Nothing is advised."
        if self.declarations:
            yield from ("    Declare:", *(f"      {line}" for line in self.declarations))
        if self.gain is not None:
            yield (
                f"    Gain: {self.gain:.1f} times as fast, measured on {self.gain_rows:,} of these"
                " rows on this machine."
            )
        if self.indexes:
            yield f"    In class Meta of {self.model}, then makemigrations:"
            yield from (f"      {line}" for line in self.indexes)

    @staticmethod
    def _block(
        head: str, findings: list[Finding], comma: str = "", end: str = ""
    ) -> tuple[str, ...]:
        lines = [f"    {finding.declare}{comma}" for finding in findings if finding.declare]
        return (head, *lines, *filter(None, [end])) if lines else ()
