"""lastmod, changefreq and priority: from values to ready text, a column at a time."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import day_of, format_lastmod, moment_of
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.protocol.writers import TagColumn
from django_sitemapkit.rendering.entry_columns import EntryColumns
from django_sitemapkit.rendering.problems import ProblemLog


@dataclass(slots=True)
class Lastmods:
    """A summary of a page's lastmods."""

    oldest: str = ""
    """The least text; "" where there is none."""
    newest: str = ""
    """The greatest text."""
    dated: int = 0
    """Entries that have one."""
    _find_key: Callable[[], Any] = lambda: None

    @property
    def newest_key(self) -> Any:
        """The key of a row that has the greatest text; it may have to be asked for."""
        return self._find_key()

    def add(self, entries: EntryColumns) -> None:
        """Take in the lastmods of some entries."""
        column = entries.tags.get("lastmod")
        if isinstance(column, str):
            column = [column] * len(entries.keys)
        texts = [text for text in column if text] if column and None in column else column
        if not column or not texts:
            return
        newest: str = max(texts)  # type: ignore[assignment, type-var]
        key = entries.keys[column.index(newest)]
        self.add_summary(min(texts), newest, len(texts), lambda: key)  # type: ignore[type-var, arg-type]

    def add_summary(
        self, oldest: str, newest: str, dated: int, find_key: Callable[[], Any]
    ) -> None:
        """Take in the lastmods of some entries, of which at least one has one."""
        self.dated += dated
        self.oldest = min(self.oldest or oldest, oldest)
        if newest > self.newest:
            self.newest, self._find_key = newest, find_key


class TagFormatter:
    """Formats the optional tags of one page; an invalid value costs its row the tag only.

    With ``by_day`` a lastmod is its day in TIME_ZONE, and in the future from the next day on.
    """

    def __init__(self, problems: ProblemLog, *, by_day: bool = False) -> None:
        self.comes_at: dt.datetime | None = None
        """When the first lastmod comes that was left out because it is in the future."""
        self._problems = problems
        self._by_day = by_day
        self._zone = timezone.get_default_timezone()
        self._formatters: dict[str, Callable[[Any], str | None]] = {
            "lastmod": lambda value: format_lastmod(value, self._zone),
            "changefreq": format_changefreq,
            "priority": format_priority,
        }
        self.read_clock()

    def read_clock(self) -> None:
        """Take the time by which a lastmod is in the future."""
        self._now = dt.datetime.now(dt.UTC)
        self._now_text = self._now.isoformat(timespec="seconds")
        self._today = self._now.astimezone(self._zone).date().isoformat()
        # In no time zone is a moment in the future whose text is less.
        self._day_ago = (self._now - dt.timedelta(days=1)).isoformat()

    def constants(self, values: Mapping[str, Any]) -> dict[str, TagColumn]:
        """Return the texts of values that all rows have; an invalid one is reported once."""
        texts: dict[str, TagColumn] = {}
        for tag, value in values.items():
            (text,) = self.column(tag, [value], [tag])
            if text is not None:
                texts[tag] = text
        return texts

    def column(
        self,
        tag: str,
        values: Sequence[Any],
        keys: Sequence[Any],
        unlisted: Set[int] = frozenset(),
        *,
        are_texts: bool = False,
    ) -> list[str | None]:
        """Return the texts of a tag; None where a value is invalid, and a problem.

        ``unlisted`` rows have no text and no problem. ``are_texts`` says that the values are
        lastmods as they are written.
        """
        if are_texts:
            texts = list(values)
        else:
            texts = self._formatted(tag, values, keys, unlisted)
        if tag == "lastmod":
            for row, text in enumerate(texts):
                if text and text > self._day_ago and row not in unlisted and self._is_future(text):
                    self._report_future(keys[row], text)
                    texts[row] = None
        return texts

    def _formatted(
        self, tag: str, values: Sequence[Any], keys: Sequence[Any], unlisted: Set[int]
    ) -> list[str | None]:
        if tag == "lastmod" and self._by_day:
            values = [day_of(value, self._zone) for value in values]
        if not unlisted:
            with suppress(InvalidValue):
                return list(map(self._formatters[tag], values))
        return [
            None if row in unlisted else self._text(tag, value, keys[row])
            for row, value in enumerate(values)
        ]

    def latest(self, newest: str) -> str:
        """Return the greatest text of the same kind as ``newest`` that is not in the future."""
        return self._now_text if len(newest) > len(self._today) else self._today

    def _text(self, tag: str, value: Any, key: Any) -> str | None:
        try:
            if isinstance(value, InvalidValue):  # What the section's method raised.
                raise value
            return self._formatters[tag](value)
        except InvalidValue as refusal:
            self._problems.add(key, refusal, skipped=False)
            return None

    def _is_future(self, text: str) -> bool:
        if len(text) == len(self._today):
            return text > self._today
        return dt.datetime.fromisoformat(text) > self._now

    def _report_future(self, key: Any, text: str) -> None:
        future = InvalidValue("future-date", f"Invalid date: lastmod {text} is in the future.")
        self._problems.add(key, future, skipped=False)
        with suppress(OverflowError):  # A "never", such as 9999-12-31: it does not come.
            comes_at = moment_of(text, self._zone).astimezone(dt.UTC)
            self.comes_at = min(filter(None, (self.comes_at, comes_at)))
