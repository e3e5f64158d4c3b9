"""Patterns of exclusion rules, as in robots.txt (RFC 9309, 2.2.2 and 2.2.3)."""

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter

MAX_SEARCHED = 100
"""Patterns that are searched for in a text of all locations; of more, that would take minutes."""


class Pattern:
    """The start of a path, in which ``*`` matches anything and a final ``$`` matches the end.

    Matching takes linear time, without backtracking.
    """

    def __init__(self, text: str) -> None:
        """Parse the text of a pattern, which is in normal form."""
        self.text = text
        self.ends = text.endswith("$")
        self.head, *self.parts = text.removesuffix("$").split("*")

    @property
    def matches_everything(self) -> bool:
        """Whether the pattern matches any path."""
        return (
            self.head in {"", "/"} and not any(self.parts) and (not self.ends or bool(self.parts))
        )

    @property
    def expression(self) -> str:
        """A regular expression that matches the same paths, if they contain no ``<``."""
        head, *parts = map(re.escape, (self.head, *self.parts))
        end = "[^<]*+"
        if self.ends:
            end = f"[^<]*?{parts.pop()}" if parts else ""
        return head + "".join(f"(?>[^<]*?{part})" for part in parts) + end

    def may_match(self, prefix: str) -> bool:
        """Return whether the pattern may match any path that begins with ``prefix``."""
        return self.head.startswith(prefix) or prefix.startswith(self.head)

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches a path, which is normalised and has its query."""
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


def first_matching_patterns(
    patterns: Sequence[Pattern], origin: str, locations: Sequence[str]
) -> Iterator[tuple[int, Pattern]]:
    """Yield the index of each location that a pattern matches, with the first pattern that does.

    All locations begin with ``origin``.
    """
    if len(patterns) > MAX_SEARCHED:
        sizes = {len(origin) + len(pattern.head) for pattern in patterns}
        begins = {begin for size in sizes for begin in map(itemgetter(slice(size)), locations)}
        patterns = [pattern for pattern in patterns if origin + pattern.head in begins]
    text = "\n".join(locations)  # No location contains a line break.
    patterns = [
        pattern
        for pattern in patterns
        if origin + pattern.head in text and all(part in text for part in pattern.parts)
    ]
    heads = tuple(origin + pattern.head for pattern in patterns)
    if not heads:
        return
    for index, location in enumerate(locations):
        if location.startswith(heads):
            path = location[len(origin) :]
            for pattern in patterns:
                if pattern.matches(path):
                    yield index, pattern
                    break
