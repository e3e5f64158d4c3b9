"""Advice as values."""

from collections.abc import Iterator
from dataclasses import dataclass

from django_sitemapkit.printable import count_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceFinding:
    """One thing that was examined, and the result."""

    about: str
    """The option it is about, or "index"."""
    message: str
    """What was found, in a sentence."""
    declare: str = ""
    """The line to declare; "" where nothing is advised."""
    notes: tuple[str, ...] = ()
    """What to know before declaring it: what is not proven, and alternatives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionAdvice:
    """All findings about a section."""

    section: str
    """The section's name."""
    declared: str
    """The dotted path of its class."""
    head: str = ""
    """The first line of the class that declares the options."""
    model: str = ""
    """The model whose ``Meta`` the indexes belong to."""
    rows: int = 0
    """The number of rows examined."""
    obstacle: str = ""
    """Why its rows are read one by one; "" where many are read as one text."""
    findings: tuple[AdviceFinding, ...] = ()
    """The findings, by option."""
    gain: float | None = None
    """How many times as fast these rows are rendered as advised; None where not measured."""
    gain_rows: int = 0
    """Rows it was measured on."""
    not_examined: str = ""
    """Why the section was not examined; "" where it was."""

    @property
    def declarations(self) -> tuple[str, ...]:
        """The lines to write into the section's class, its first line included; () for none."""
        lines = [f"    {f.declare}" for f in self.findings if f.declare and f.about != "index"]
        return (self.head, *lines) if lines else ()

    @property
    def indexes(self) -> tuple[str, ...]:
        """The lines to write into the model's ``class Meta``."""
        lines = [f"    {f.declare}," for f in self.findings if f.declare and f.about == "index"]
        return ("indexes = [", *lines, "]") if lines else ()

    @property
    def is_advised(self) -> bool:
        """Whether there is anything to declare."""
        return bool(self.declarations or self.indexes)

    def lines(self) -> Iterator[str]:
        """Yield the advice as lines of text."""
        rows = count_of(self.rows, "row")
        yield f"  Advice for {self.section} ({self.declared}), {rows} examined:"
        if self.not_examined:
            yield f"    not examined: {self.not_examined}"
            return
        how = f"one by one, because {self.obstacle}" if self.obstacle else "as text, many at a time"
        yield f"    Rows are read {how}."
        for finding in self.findings:
            yield f"    {finding.about}: {finding.message}"
            yield from (f"      {note}" for note in finding.notes)
        if not self.is_advised:
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
