"""lastmod, changefreq and priority: from values to ready text, a column at a time."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import day_of, format_lastmod, moment_of, parse_w3c
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
    ) -> list[str | None]:
        """Return the texts of a tag; None where a value is invalid, and a problem.

        ``unlisted`` rows have no text and no problem.
        """
        texts: list[str | None] | None = None
        if tag == "lastmod" and self._by_day:
            values = [day_of(value, self._zone) for value in values]
        if not unlisted:
            with suppress(InvalidValue):
                texts = list(map(self._formatters[tag], values))
        if texts is None:
            texts = [
                None if row in unlisted else self._text(tag, value, keys[row])
                for row, value in enumerate(values)
            ]
        if tag == "lastmod":
            for row in self._future(values, texts):
                self._report_future(keys[row], texts[row])
                texts[row] = None
        return texts

    def past(
        self, texts: Sequence[str | None], keys: Sequence[Any], unlisted: Set[int]
    ) -> Sequence[str | None]:
        """Return lastmods without those in the future; as texts they are in the order of time."""
        newest = max(filter(None, texts), default="")
        now = self.latest(newest)
        if newest <= now:
            return texts
        for row, text in enumerate(texts):
            if text is not None and text > now and row not in unlisted:
                self._report_future(keys[row], text)
        return [None if text is not None and text > now else text for text in texts]

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

    def _future(self, values: Sequence[Any], texts: Sequence[str | None]) -> list[int]:
        """Return the places of the dates that lie in the future; none if the latest does not."""
        present = {
            row: value
            for row, (value, text) in enumerate(zip(values, texts, strict=True))
            if text is not None
        }
        with suppress(TypeError):
            # The greatest text is not the latest moment: zones may differ.
            latest = max(present.values(), default=None)
            if not isinstance(latest, str) and not is_future(latest, self._now, self._zone):
                return []
        return [row for row, value in present.items() if is_future(value, self._now, self._zone)]

    def _report_future(self, key: Any, text: str | None) -> None:
        future = InvalidValue("future-date", f"Invalid date: lastmod {text} is in the future.")
        self._problems.add(key, future, skipped=False)
        comes_at = None
        with suppress(OverflowError):  # A "never", such as 9999-12-31: it does not come.
            comes_at = moment_of(text, self._zone).astimezone(dt.UTC) if text else None
        if comes_at is not None and (self.comes_at is None or comes_at < self.comes_at):
            self.comes_at = comes_at


def is_future(value: Any, now: dt.datetime, zone: dt.tzinfo) -> bool:
    """Return whether a lastmod lies after ``now``; a date or naive datetime is one of ``zone``."""
    if isinstance(value, str):
        value = parse_w3c(value)
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=zone)) > now
    return isinstance(value, dt.date) and value > now.astimezone(zone).date()
