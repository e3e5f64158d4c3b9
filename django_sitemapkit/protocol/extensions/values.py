"""Images, videos, news and elements of one's own, as values: what a project says of a page.

They hold what they are given; the formatters check it. What Google dropped in 2022 is not here:
captions, titles, places and licences of images; categories, galleries and prices of videos.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, Literal

Date = dt.date | dt.datetime | str
"""A date, a datetime or a W3C datetime as text; a naive datetime is in the project's zone."""


@dataclass(frozen=True, slots=True, init=False)
class Restriction:
    """Where a video is shown, or is not: use its children, as in ``Allow("IE", "GB")``."""

    relationship: ClassVar[Literal["allow", "deny"]]

    values: tuple[str, ...]
    """Countries (ISO 3166-1, two capital letters), or platforms (``web``, ``mobile``, ``tv``)."""

    def __init__(self, *values: str) -> None:
        object.__setattr__(self, "values", values)


class Allow(Restriction):
    """The video is shown there, and nowhere else."""

    __slots__ = ()
    relationship = "allow"


class Deny(Restriction):
    """The video is shown everywhere else."""

    __slots__ = ()
    relationship = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image on a page, ``image:image``; a page has at most 1,000."""

    location: str
    """A rooted path, or an absolute URL of any host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """One video on a page, ``video:video``; it has ``content``, ``player`` or both.

    What is None is left out, and so is an optional text that is empty.
    """

    thumbnail: str
    """The image that stands for it: a rooted path, or an absolute URL of any host."""
    title: str
    """Its title; of more than 100 characters Google may cut some, which is no fault."""
    description: str
    """What it shows, 2,048 characters at most."""
    content: str | None = None
    """The media file: a rooted path, or an absolute URL of any host, but not the page's."""
    player: str | None = None
    """A player of this video: a rooted path, or an absolute URL of any host, but not the page's."""
    duration: int | dt.timedelta | None = None
    """How long it is, from one second to eight hours (28,800 seconds)."""
    expires: Date | None = None
    """From when on it is not shown any more."""
    rating: float | Decimal | None = None
    """From 0 to 5, the best; one decimal is kept."""
    views: int | None = None
    """How often it has been seen."""
    published: Date | None = None
    """When it was first published."""
    family_friendly: bool | None = None
    """False where only searches without a filter may find it."""
    restriction: Restriction | None = None
    """The countries it is shown in, or is not."""
    platform: Restriction | None = None
    """The platforms it is shown on, or is not: ``web``, ``mobile``, ``tv``."""
    requires_subscription: bool | None = None
    """Whether only subscribers can see it."""
    uploader: str | None = None
    """Who uploaded it, 255 characters at most."""
    uploader_info: str | None = None
    """A page about the uploader, on the host of the video's page."""
    live: bool | None = None
    """Whether it is a live stream."""
    tags: Sequence[str] = ()
    """Short words on what it shows, 32 at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """The news article that a page is, ``news:news``: one of a page, 1,000 of a file."""

    publication: str
    """The name of the publication, as in Google News."""
    language: str
    """The language of the publication: ISO 639, two or three letters, or zh-cn, or zh-tw."""
    published: Date
    """When the article was first published; Google takes those of the last two days."""
    title: str
    """The title of the article."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """An element of a project's own namespace; its text comes first, its children follow."""

    name: str
    """The name with its prefix, as in ``shop:price``; letters, digits, ``.``, ``-``, ``_``."""
    text: str | None = None
    """Its text, unescaped."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Its attributes, unescaped: names, with a prefix or without, and what they say."""
    children: Sequence["Element"] = ()
    """The elements within it."""
