"""Formats the values of entries, except their location, as text: a column at a time.

Tags are lastmod, changefreq and priority; extensions are images, videos, news and elements of the
project's own, as XML.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db.models.fields.files import FieldFile
from django.utils import timezone

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.dates import day_of, format_lastmod, moment_of
from django_sitemapkit.protocol.extensions import (
    image_element,
    news_element,
    own_element,
    video_element,
)
from django_sitemapkit.protocol.extensions.elements import ReportRefusal
from django_sitemapkit.protocol.extensions.values import Element, Image, News, Video
from django_sitemapkit.protocol.limits import MAX_IMAGES, NEWS_WINDOW
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.protocol.writers import TagColumn
from django_sitemapkit.reading import INFRASTRUCTURE, SectionReader, invalid_value_of
from django_sitemapkit.rendering.entries import EntryColumns
from django_sitemapkit.rendering.problems import ProblemLog

MAX_VALUES = {"images": MAX_IMAGES, "news": 1}
"""How many values of an option are written for one entry."""


@dataclass(slots=True)
class LastmodSummary:
    """The oldest and newest lastmod of a page, and how many entries have one."""

    oldest: str = ""
    """The oldest lastmod as text; "" if there is none."""
    newest: str = ""
    """The newest lastmod as text; "" if there is none."""
    dated: int = 0
    """How many entries have a lastmod."""
    find_key: Callable[[], Any] = lambda: None
    """Returns the key of a row that has the newest lastmod; it may run a query."""

    def add(self, entries: EntryColumns) -> None:
        """Include the lastmods of entries in the summary."""
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
        """Include another summary, given by the attributes of this class; ``dated`` is not 0."""
        self.dated += dated
        self.oldest = min(self.oldest or oldest, oldest)
        if newest > self.newest:
            self.newest, self.find_key = newest, find_key


class TagFormatter:
    """Formats the optional tags of one page; for an invalid value only the tag is left out.

    With ``by_day`` a lastmod is written as its day in TIME_ZONE, and tomorrow is in the future.
    """

    def __init__(self, problems: ProblemLog, *, by_day: bool = False) -> None:
        self.changes_at: dt.datetime | None = None
        """The first time at which entries change although no row does; None if there is none.

        Then a date is no longer in the future, an article is too old for news, or a video expires.
        """
        self.problems = problems
        self._by_day = by_day
        self.zone = timezone.get_default_timezone()
        self._formatters: dict[str, Callable[[Any], str | None]] = {
            "lastmod": lambda value: format_lastmod(value, self.zone),
            "changefreq": format_changefreq,
            "priority": format_priority,
        }
        self.read_clock()

    def read_clock(self) -> None:
        """Read the clock again: a lastmod after this time is in the future."""
        self._now = dt.datetime.now(dt.UTC)
        self._today = self._now.astimezone(self.zone).date().isoformat()
        # Whatever its time zone, a moment whose text is less is past.
        self._day_ago = (self._now - dt.timedelta(days=1)).isoformat()

    def format_constants(self, values: Mapping[str, Any]) -> dict[str, TagColumn]:
        """Return the texts of values that all rows have, by tag; an invalid one is left out.

        Its problem is recorded once.
        """
        texts = {tag: self.format_column(tag, [value], [tag])[0] for tag, value in values.items()}
        return {tag: text for tag, text in texts.items() if text is not None}

    def format_column(
        self,
        tag: str,
        values: Sequence[Any],
        keys: Sequence[Any],
        unlisted: Set[int] = frozenset(),
        *,
        are_texts: bool = False,
    ) -> list[str | None]:
        """Return the texts of a tag for some rows; None for no value or an invalid one.

        Each invalid value is recorded as a problem of its row's key, and so is a lastmod in the
        future. Rows with an index in ``unlisted`` get no text and no problem. ``are_texts`` says
        that the values are formatted lastmods.
        """
        texts = list(values) if are_texts else self._format_values(tag, values, keys, unlisted)
        if tag == "lastmod":
            for row, text in enumerate(texts):
                if text and text > self._day_ago and row not in unlisted and self._is_future(text):
                    self.problems.add(keys[row], self.record_future("lastmod", text), skipped=False)
                    texts[row] = None
        return texts

    def _format_values(
        self, tag: str, values: Sequence[Any], keys: Sequence[Any], unlisted: Set[int]
    ) -> list[str | None]:
        """Format the values of a tag; None for ``unlisted`` rows and invalid values."""
        if tag == "lastmod" and self._by_day:
            values = [day_of(value, self.zone) for value in values]
        if not unlisted:
            with suppress(InvalidValue):
                return list(map(self._formatters[tag], values))
        return [
            None if row in unlisted else self._format_or_report(tag, value, keys[row])
            for row, value in enumerate(values)
        ]

    def now_in_form_of(self, text: str) -> str:
        """Return the current time as text, or the current day if ``text`` is only a day."""
        self.read_clock()
        return (
            self._today
            if len(text) == len(self._today)
            else self._now.isoformat(timespec="seconds")
        )

    def _format_or_report(self, tag: str, value: Any, key: Any) -> str | None:
        """Return the text of a value; for an invalid one None, with a problem of its row."""
        try:
            if isinstance(value, InvalidValue):  # What the section's method raised.
                raise value
            return self._formatters[tag](value)
        except InvalidValue as refusal:
            self.problems.add(key, refusal, skipped=False)
            return None

    def _is_future(self, text: str) -> bool:
        """Return whether a formatted lastmod is in the future; a day is from tomorrow on."""
        if len(text) == len(self._today):
            return text > self._today
        return dt.datetime.fromisoformat(text) > self._now

    def record_future(self, what: str, text: str) -> InvalidValue:
        """Let ``changes_at`` consider when a date in the future has come; return the error for it.

        ``what`` names the date before its ``text`` in the message: "lastmod", "published of news:".
        """
        with suppress(OverflowError):  # A "never", such as 9999-12-31: it does not come.
            self.note_change(moment_of(text, self.zone).astimezone(dt.UTC))
        return InvalidValue("future-date", f"Invalid date: {what} {text} is in the future.")

    def note_change(self, moment: dt.datetime) -> None:
        """Set ``changes_at`` to a moment, unless it is earlier already."""
        self.changes_at = min(filter(None, (self.changes_at, moment)))


class ExtensionFormatter:
    """Formats images, videos, news and the project's own elements of entries as XML."""

    def __init__(self, section: SectionReader, scope: Scope, tags: TagFormatter) -> None:
        self._scope = scope
        self._tags = tags
        self._namespaces = section.options.namespaces
        self._write: dict[str, Callable[[Any, str, ReportRefusal], str]] = {
            "images": self._image_xml,
            "videos": self._video_xml,
            "news": self._news_xml,
            "elements": self._own_xml,
        }

    def format_rows(
        self, columns: dict[str, Sequence[Any]], keys: Sequence[Any], locations: Sequence[Any]
    ) -> list[str]:
        """Return all extension elements of each row as XML; "" for a row without a location.

        ``columns`` has the values of each option, such as ``images``, for all rows.
        """
        written = [option for option in self._write if option in columns]
        if not written:  # What is declared is neither a method nor a column, as a check tells.
            return [""] * len(keys)
        rows = zip(*(columns[option] for option in written), strict=True)
        return [
            "".join(
                xml
                for option, value in zip(written, values, strict=True)
                for xml in self._elements_of_option(option, value, key, location)
            )
            if location is not None
            else ""
            for key, location, values in zip(keys, locations, rows, strict=True)
        ]

    def _elements_of_option(
        self, option: str, value: Any, key: Any, location: str
    ) -> Iterator[str]:
        """Yield the XML element of each value of an option for one row.

        An invalid value is skipped, and recorded as a problem of the row's key; so are values that
        exceed the number in MAX_VALUES.
        """
        most, report = MAX_VALUES.get(option), partial(self._tags.problems.add, key, skipped=False)
        for number, one in enumerate(_nonempty_values(value)):
            if number == most:
                report(
                    InvalidValue(
                        "too-many-tags",
                        f"Too many tags: {option} has more than {most:,} values for one URL; the"
                        " rest are skipped.",
                    )
                )
                return
            try:
                # Each entry is one line, as tools that compare files expect.
                yield self._write[option](one, location, report).replace("\n", "&#10;")
            except INFRASTRUCTURE:
                raise
            except Exception as error:  # noqa: BLE001  a project's storage may raise anything
                report(invalid_value_of(error, option))

    def _image_xml(self, value: Any, location: str, report: ReportRefusal) -> str:
        """Return the element of an image, given as an Image, a URL or the file of a field."""
        if isinstance(value, FieldFile):
            value = value.url
        image = Image(location=value) if isinstance(value, str) else value
        return image_element(_require_type(Image, image, "images"), self._scope)

    def _video_xml(self, value: Any, location: str, report: ReportRefusal) -> str:
        """Return the element of a Video on the page at ``location``.

        Reports a publication date in the future, an invalid optional tag, and that the video has
        expired. Raises InvalidValue if ``value`` is not a valid Video.
        """
        video = _require_type(Video, value, "videos")
        if future := self._future_error("published of a video", video.published):
            video = replace(video, published=None)
        xml = video_element(video, self._scope, location, self._tags.zone, report)
        if future:
            report(future)
        with suppress(InvalidValue, OverflowError):  # An invalid date is reported already.
            text = format_lastmod(video.expires, self._tags.zone)
            # A video may be seen on the whole day on which it expires.
            rest = dt.timedelta(days=len(text or "") == len("YYYY-MM-DD"))
            end = moment_of(text, self._tags.zone) + rest if text else None
            if end and end <= dt.datetime.now(dt.UTC):
                message = f"Expired video: expires of a video: {text} is in the past."
                report(InvalidValue("expired-video", message))
            elif end:
                self._tags.note_change(end.astimezone(dt.UTC))
        return xml

    def _news_xml(self, value: Any, _location: str, _report: ReportRefusal) -> str:
        """Return the element of a News article; "" if it is too old for Google News.

        Raises InvalidValue if it is not a valid News or is published in the future.
        """
        article = _require_type(News, value, "news")
        xml = news_element(article, self._tags.zone)
        if future := self._future_error("published of news", article.published):
            raise future
        # Its own text is right: the element would have been refused otherwise.
        begin = moment_of(format_lastmod(article.published, self._tags.zone) or "", self._tags.zone)
        until = begin.astimezone(dt.UTC) + NEWS_WINDOW
        if until < dt.datetime.now(dt.UTC):
            return ""
        self._tags.note_change(until)
        return xml

    def _future_error(self, what: str, value: Any) -> InvalidValue | None:
        """Return ``TagFormatter.record_future()`` for a valid date in the future, else None."""
        with suppress(InvalidValue):
            text = format_lastmod(value, self._tags.zone)
            if text and moment_of(text, self._tags.zone) > dt.datetime.now(dt.UTC):
                return self._tags.record_future(f"{what}:", text)
        return None

    def _own_xml(self, value: Any, location: str, report: ReportRefusal) -> str:
        """Return the XML of an Element, in a namespace that the section declares."""
        return own_element(_require_type(Element, value, "elements"), self._namespaces)


def _nonempty_values(value: Any) -> Iterator[Any]:
    """Yield a value of an option, or each of several, except None, "" and empty file fields."""
    many = isinstance(value, Iterable) and not isinstance(value, (str, bytes, FieldFile))
    for one in value if many else (value,):
        if one is not None and one != "" and not (isinstance(one, FieldFile) and not one):
            yield one


def _require_type(kind: type[Any], value: Any, option: str) -> Any:
    """Return a value of an option; raise InvalidValue unless it is an instance of ``kind``."""
    if isinstance(value, InvalidValue):  # What a method or a storage raised.
        raise value
    if not isinstance(value, kind):
        raise InvalidValue(
            "invalid-tag-value",
            f"Invalid tag value: {option}: {quoted(value)} is not an instance of {kind.__name__}.",
        )
    return value
