"""What a mistake in a declaration is, and what a project's code raised."""

import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from traceback import walk_tb
from typing import Any

from django_sitemapkit.printable import printable, writable

NOT_OF_PROJECT = frozenset({"django", "django_sitemapkit", *sys.stdlib_module_names})
"""The packages whose code is not a project's."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in a declaration or a setting, with its id and hint: what all checks yield.

    ::

        Mistake("sitemapkit.E103", "its queryset is sliced", "Filter the rows instead.")
    """

    identifier: str
    """The id of its system check, which is documented."""
    message: str
    """What is wrong."""
    hint: str
    """What to write instead."""
    obj: Any = None
    """The class that the message names, if that is not known otherwise."""

    @property
    def sentence(self) -> str:
        """The mistake as one sentence that ends with a single full stop."""
        return f"{self.message.rstrip('.')}."

    @property
    def text(self) -> str:
        """The sentence and the hint in one text, for an exception."""
        return f"{self.sentence} {self.hint}"

    def with_name(self, name: str, obj: Any = None) -> "Mistake":
        """Return the mistake with a name before its message, and ``obj`` as what it is about."""
        return replace(self, message=printable(f"{name}: {self.sentence}"), obj=obj)

    def downgraded(self, warnings: Collection[str]) -> "Mistake":
        """Return the mistake as a warning if ``warnings`` has the id of that; else unchanged."""
        identifier = self.identifier.replace(".E", ".W")
        return replace(self, identifier=identifier) if identifier in warnings else self


def mistake_of_crash(error: Exception) -> Mistake:
    """Return the mistake (W100) that the project's code raised an error.

    It names the function and the line, and says when the function must work.
    """
    what, place = "its code", ""
    for frame, line in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in NOT_OF_PROJECT:
            name = frame.f_code.co_name
            what = f"{name}()" if name.isidentifier() else name
            place = f" ({module}, line {line})"
            break
    reason = ": ".join(filter(None, [type(error).__name__, str(writable(error))]))
    return Mistake(
        "sitemapkit.W100",
        f"{what} raised {reason}{place}",
        f"Let {what} work whenever it is called: before tables have rows, without a request, and"
        " while other services are down.",
    )
