"""Images, videos, news and elements of the project's own: from what methods return to XML."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from django.db.models.fields.files import FieldFile
from django.utils import timezone

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import format_lastmod, moment_of
from django_sitemapkit.protocol.extensions import (
    Element,
    Image,
    News,
    Video,
    image_element,
    news_element,
    own_element,
    video_element,
)
from django_sitemapkit.protocol.extensions.elements import Report
from django_sitemapkit.protocol.limits import MAX_IMAGES, NEWS_WINDOW
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.chunks import INFRASTRUCTURE, refusal_of
from django_sitemapkit.rendering.problems import ProblemLog

MAX_VALUES = {"images": MAX_IMAGES, "news": 1}
"""Values of one entry that are written, by option."""


class ExtensionFormatter:
    """What the entries of a section say beyond their tags."""

    def __init__(self, section: SectionReader, scope: Scope, problems: ProblemLog) -> None:
        self._scope = scope
        self._problems = problems
        self._namespaces = section.options.namespaces
        self._zone = timezone.get_default_timezone()
        self._write: dict[str, Callable[[Any, str, Report], str]] = {
            "images": self._image,
            "videos": self._video,
            "news": self._news,
            "elements": self._own,
        }
        self.changes_at: dt.datetime | None = None
        """When an article comes that is in the future, or is two days old and no news any more."""

    def texts(
        self, columns: dict[str, Sequence[Any]], keys: Sequence[Any], locations: Sequence[Any]
    ) -> list[str]:
        """Return the elements of each row as XML; of a row that is refused, nothing."""
        written = [option for option in self._write if option in columns]
        if not written:  # What is declared is neither a method nor a column, as a check tells.
            return [""] * len(keys)
        rows = zip(*(columns[option] for option in written), strict=True)
        return [
            "".join(
                xml
                for option, value in zip(written, values, strict=True)
                for xml in self._elements(option, value, key, location)
            )
            if location is not None
            else ""
            for key, location, values in zip(keys, locations, rows, strict=True)
        ]

    def _elements(self, option: str, value: Any, key: Any, location: str) -> Iterator[str]:
        """Yield the elements of one row; what is wrong with a value costs that value alone."""
        most, report = MAX_VALUES.get(option), partial(self._problems.add, key, skipped=False)
        for number, one in enumerate(_several(value)):
            if number == most:
                message = (
                    f"Too many tags: {option} has more than {most:,} values for one URL; the"
                    " rest are skipped."
                )
                report(InvalidValue("too-many-tags", message))
                return
            try:
                # Each entry is one line, as tools that compare files expect.
                yield self._write[option](one, location, report).replace("\n", "&#10;")
            except INFRASTRUCTURE:
                raise
            except Exception as error:  # noqa: BLE001  a project's storage may raise anything
                report(refusal_of(error, option))

    def _image(self, value: Any, location: str, report: Report) -> str:
        if isinstance(value, FieldFile):
            value = value.url
        image = Image(location=value) if isinstance(value, str) else value
        return image_element(_of(Image, image, "images"), self._scope)

    def _video(self, value: Any, location: str, report: Report) -> str:
        video = _of(Video, value, "videos")
        if future := self._future("published of a video", video.published):
            video = replace(video, published=None)
        xml = video_element(video, self._scope, location, self._zone, report)
        if future:
            report(future)
        with suppress(InvalidValue, OverflowError):  # An invalid date is reported already.
            text = format_lastmod(video.expires, self._zone)
            # A video may be seen on the whole day on which it expires.
            rest = dt.timedelta(days=bool(text) and len(text) == len("YYYY-MM-DD"))
            if text and moment_of(text, self._zone) + rest <= dt.datetime.now(dt.UTC):
                message = f"Expired video: expires of a video: {text} is in the past."
                report(InvalidValue("expired-video", message))
        return xml

    def _news(self, value: Any, location: str, report: Report) -> str:
        article = _of(News, value, "news")
        xml = news_element(article, self._zone)
        if future := self._future("published of news", article.published):
            raise future
        # Its own text is right: the element would have been refused otherwise.
        begin = moment_of(format_lastmod(article.published, self._zone) or "", self._zone)
        until = begin.astimezone(dt.UTC) + NEWS_WINDOW
        if until < dt.datetime.now(dt.UTC):
            return ""
        self._changes(until)
        return xml

    def _future(self, what: str, value: Any) -> InvalidValue | None:
        """Return what is wrong with a date that is in the future; None for any other value."""
        with suppress(InvalidValue):
            text = format_lastmod(value, self._zone)
            moment = moment_of(text, self._zone) if text else None
            if moment and moment > dt.datetime.now(dt.UTC):
                with suppress(OverflowError):  # A "never", such as 9999-12-31: it does not come.
                    self._changes(moment.astimezone(dt.UTC))
                message = f"Invalid date: {what}: {text} is in the future."
                return InvalidValue("future-date", message)
        return None

    def _changes(self, moment: dt.datetime) -> None:
        self.changes_at = min(filter(None, (self.changes_at, moment)))

    def _own(self, value: Any, location: str, report: Report) -> str:
        return own_element(_of(Element, value, "elements"), self._namespaces)


def _several(value: Any) -> Iterator[Any]:
    """Yield the values that stand for one row: none, one, or those of a collection."""
    many = isinstance(value, Iterable) and not isinstance(value, (str, bytes, FieldFile))
    for one in value if many else (value,):
        if one is not None and one != "" and not (isinstance(one, FieldFile) and not one):
            yield one


def _of(kind: type[Any], value: Any, option: str) -> Any:
    if isinstance(value, InvalidValue):  # What a method or a storage raised.
        raise value
    if not isinstance(value, kind):
        raise InvalidValue(
            "invalid-tag-value",
            f"Invalid tag value: {option}: {value!a} is not an instance of {kind.__name__}.",
        )
    return value
