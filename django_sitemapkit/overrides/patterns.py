"""Patterns of exclusion rules, as robots.txt has them (RFC 9309, 2.2.2 and 2.2.3)."""

from collections.abc import Iterable, Iterator, Sequence

from django_sitemapkit.protocol.locations import normalise_pattern

__all__ = ["Pattern", "Patterns", "normalise_pattern"]


class Pattern:
    """A path that others begin with; ``*`` stands for anything, ``$`` at its end for the end.

    The time that a match takes grows with the length of both, never faster: no pattern and no
    location makes it go back.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.ends = text.endswith("$")
        self.head, *self.parts = text.removesuffix("$").split("*")

    def matches(self, path: str) -> bool:
        """Return whether a normalised path, with its query, matches."""
        if not path.startswith(self.head):
            return False
        begin, end = len(self.head), len(path)
        parts = self.parts
        if self.ends:
            if not parts:
                return begin == end
            *parts, tail = parts
            if not path.endswith(tail) or end - len(tail) < begin:
                return False
            end -= len(tail)
        for part in parts:
            found = path.find(part, begin, end)
            if found < 0:
                return False
            begin = found + len(part)
        return True


class Patterns:
    """Many patterns, asked at once."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._patterns = list(patterns)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def find(self, origin: str, locations: Sequence[str]) -> Iterator[tuple[int, Pattern]]:
        """Yield the places of locations that match, and the first pattern each of them matches."""
        heads = tuple(origin + pattern.head for pattern in self._patterns)
        for place, location in enumerate(locations):
            if location.startswith(heads):
                path = location[len(origin) :]
                for pattern in self._patterns:
                    if pattern.matches(path):
                        yield place, pattern
                        break
