"""A mistake in a declaration, as a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with a declaration, and the way out."""

    message: str
    """What is wrong."""
    hint: str
    """What to write instead."""

    @property
    def sentence(self) -> str:
        """What is wrong, with one full stop, whatever it quotes ends with."""
        return f"{self.message.rstrip('.')}."

    @property
    def text(self) -> str:
        """Both, for an error."""
        return f"{self.sentence} {self.hint}"
