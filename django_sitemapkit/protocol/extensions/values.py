"""Images, videos, news and a project's own elements, as values.

They are checked when they are written. What Google dropped in 2022 is missing: captions, titles,
places and licences of images; categories, galleries and prices of videos.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, Literal

Date = dt.date | dt.datetime | str
"""A date, a datetime or a W3C datetime as text; a naive datetime is in the project's time zone."""


@dataclass(frozen=True, slots=True, init=False)
class Restriction:
    """Where a video is shown, or is not: use the subclasses, as in ``Allow("IE", "GB")``."""

    relationship: ClassVar[Literal["allow", "deny"]]

    values: tuple[str, ...]
    """Countries (ISO 3166-1, two capital letters), or platforms (``web``, ``mobile``, ``tv``)."""

    def __init__(self, *values: str) -> None:
        object.__setattr__(self, "values", values)


class Allow(Restriction):
    """The video is shown only in these countries or on these platforms: ``Allow("IE", "GB")``."""

    __slots__ = ()
    relationship = "allow"


class Deny(Restriction):
    """The video is not shown in these countries or on these platforms: ``Deny("tv")``."""

    __slots__ = ()
    relationship = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image on a page, ``image:image``; a page has at most 1,000.

    ::

        Image(location="/media/front.jpg")
    """

    location: str
    """A rooted path, or an absolute URL of any host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """One video on a page, ``video:video``; it has ``content``, ``player`` or both.

    Values that are None, and empty optional texts, are omitted. ::

        Video(
            thumbnail="/media/tour.jpg",
            title="A tour",
            description="Around the harbour in three minutes.",
            content="/media/tour.mp4",
            duration=180,
        )
    """

    thumbnail: str
    """Its preview image: a rooted path, or an absolute URL of any host."""
    title: str
    """Its title; Google may shorten one of more than 100 characters."""
    description: str
    """Its description, at most 2,048 characters."""
    content: str | None = None
    """The media file: a rooted path, or an absolute URL of any host, but not the page's."""
    player: str | None = None
    """A player of this video: a rooted path, or an absolute URL of any host, but not the page's."""
    duration: int | dt.timedelta | None = None
    """Its length, from one second to eight hours (28,800 seconds)."""
    expires: Date | None = None
    """When it stops being shown."""
    rating: float | Decimal | None = None
    """From 0 to 5, the best; it is rounded to one decimal."""
    views: int | None = None
    """The number of views."""
    published: Date | None = None
    """When it was first published."""
    family_friendly: bool | None = None
    """False where only searches without a filter may find it."""
    restriction: Restriction | None = None
    """The countries where it is shown, or is not."""
    platform: Restriction | None = None
    """The platforms on which it is shown, or is not: ``web``, ``mobile``, ``tv``."""
    requires_subscription: bool | None = None
    """Whether only subscribers can see it."""
    uploader: str | None = None
    """The name of the uploader, at most 255 characters."""
    uploader_info: str | None = None
    """A page about the uploader, on the host of the video's page."""
    live: bool | None = None
    """Whether it is a live stream."""
    tags: Sequence[str] = ()
    """Keywords, at most 32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """The news article of a page, ``news:news``: one per page, at most 1,000 per file.

    ::

        News(publication="The Example", language="en", published=date(2026, 1, 31), title="Rain")
    """

    publication: str
    """The name of the publication, as in Google News."""
    language: str
    """The language of the publication: a code of ISO 639, or one as Django has it, ``en-us``."""
    published: Date
    """When the article was first published; Google lists those of the last two days."""
    title: str
    """The title of the article."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """An element of a project's own namespace: its text, then its children.

    ::

        Element(name="shop:price", text="12.50", attributes={"currency": "EUR"})
    """

    name: str
    """The name with its prefix, as in ``shop:price``; letters, digits, ``.``, ``-``, ``_``."""
    text: str | None = None
    """Its text, unescaped."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Its attributes, unescaped: names, with or without a prefix, and values."""
    children: Sequence["Element"] = ()
    """The elements within it."""
