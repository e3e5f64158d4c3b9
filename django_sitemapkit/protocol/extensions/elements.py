"""From values to elements: each formatter returns one element as XML, or refuses it by name.

Google's pages ask for no order of a video's tags; theirs is that of sitemap-video.xsd, for readers
that go by it. Every formatter raises RefusedValue, whose message says which field of what, its
value, and the limit.
"""

import datetime as dt
import math
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import TypeGuard
from urllib.parse import urlsplit

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.extensions.values import (
    Allow,
    Deny,
    Element,
    Image,
    News,
    Restriction,
    Video,
)
from django_sitemapkit.protocol.limits import (
    ILLEGAL_XML,
    MAX_DESCRIPTION,
    MAX_DURATION,
    MAX_RATING,
    MAX_TAGS,
    MAX_UPLOADER,
)
from django_sitemapkit.protocol.locations import Scope, normalise_url, shown
from django_sitemapkit.protocol.writers import escaped

PLATFORMS = frozenset({"web", "mobile", "tv"})
"""What a video can be restricted to beside countries."""

NEWS_LANGUAGE = re.compile("[a-z]{2,3}|zh-cn|zh-tw")
"""What the language of a publication can be, in lower case."""

_COUNTRY = re.compile("[A-Z]{2}")
# Names beyond ASCII are valid XML too, but no reader of sitemaps is known to have seen one.
_LOCAL_NAME = r"[A-Za-z_][A-Za-z0-9._-]*"
_NAME = re.compile(rf"(?:({_LOCAL_NAME}):)?({_LOCAL_NAME})")
# A parser makes a line feed of a carriage return, and a space of either in an attribute.
_IN_TEXT = str.maketrans({"\r": "&#13;"})
_IN_ATTRIBUTE = str.maketrans({"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})


def image_element(image: Image, scope: Scope) -> str:
    """Return an ``image:image``; a path in it is on the origin of ``scope``, the sitemap's."""
    location = _url("location of an image", image.location, scope)
    return f"<image:image>{_tag('image:loc', location)}</image:image>"


def video_element(video: Video, scope: Scope, location: str, zone: dt.tzinfo) -> str:
    """Return a ``video:video`` of the page at ``location``, which is in normal form.

    A path in it is on the origin of ``scope``, the sitemap's; a naive datetime is in ``zone``. A
    title of more than 100 characters is not refused: it is worth a warning, no more.
    """
    xml = (
        _tag("video:thumbnail_loc", _url("thumbnail of a video", video.thumbnail, scope))
        + _tag("video:title", _text("title of a video", video.title))
        + _tag(
            "video:description",
            _text("description of a video", video.description, MAX_DESCRIPTION),
        )
        + _sources(video, scope, location)
    )
    if video.duration is not None:
        xml += _tag("video:duration", _duration(video.duration))
    xml += _date("video:expiration_date", "expires of a video", video.expires, zone)
    if video.rating is not None:
        xml += _tag("video:rating", _rating(video.rating))
    if video.views is not None:
        xml += _tag("video:view_count", _views(video.views))
    xml += (
        _date("video:publication_date", "published of a video", video.published, zone)
        + _tags(video)
        + _yes_or_no("family_friendly", video.family_friendly)
        + _restriction("restriction", video.restriction)
        + _yes_or_no("requires_subscription", video.requires_subscription)
        + _uploader(video, scope, location)
        + _restriction("platform", video.platform)
        + _yes_or_no("live", video.live)
    )
    return f"<video:video>{xml}</video:video>"


def news_element(news: News, zone: dt.tzinfo) -> str:
    """Return a ``news:news``; a naive datetime is in ``zone``.

    How old the article is does not matter here: what was news becomes none without a fault.
    """
    publication = _tag("news:name", _text("publication of news", news.publication))
    language = _text("language of news", news.language).lower()
    if not NEWS_LANGUAGE.fullmatch(language):
        raise _invalid(
            "language of news",
            news.language,
            "neither a code of ISO 639, two or three letters, nor zh-cn or zh-tw",
        )
    if news.published is None:
        raise _missing("published of news")
    return (
        f"<news:news><news:publication>{publication}{_tag('news:language', language)}"
        "</news:publication>"
        f"{_date('news:publication_date', 'published of news', news.published, zone)}"
        f"{_tag('news:title', _text('title of news', news.title))}</news:news>"
    )


def own_element(element: Element, prefixes: Collection[str]) -> str:
    """Return an element of a project's own; ``prefixes`` are those declared on the root.

    An attribute may have one of them too, or ``xml``, or none.
    """
    name = _name("element", element.name, prefixes)
    xml = f"<{name}"
    for key, value in element.attributes.items():
        attribute = _name(f"attribute of {name}", key, {*prefixes, "xml", ""})
        text = _text(f"{attribute} of {name}", value, empty=True)
        xml += f' {attribute}="{_escaped(text, _IN_ATTRIBUTE)}"'
    inner = "".join(own_element(child, prefixes) for child in element.children)
    if element.text is not None:
        inner = _escaped(_text(f"text of {name}", element.text, empty=True)) + inner
    return f"{xml}>{inner}</{name}>" if inner else f"{xml}/>"


def alternate_elements(links: Sequence[tuple[str, str]]) -> str:
    """Return an ``xhtml:link`` for each version of a page.

    ``links`` are codes as ``format_hreflang`` returns them, and locations in normal form.
    """
    urls = escaped([location for _, location in links])
    return "".join(
        f'<xhtml:link rel="alternate" hreflang="{code}" href="{url}"/>'
        for (code, _), url in zip(links, urls, strict=True)
    )


def _sources(video: Video, scope: Scope, location: str) -> str:
    if not video.content and not video.player:
        raise RefusedValue(
            "missing-xml-tag",
            "Missing XML tag: a video has neither content nor player; give one of them.",
        )
    xml = ""
    for field, tag, url in (
        ("content", "video:content_loc", video.content),
        ("player", "video:player_loc", video.player),
    ):
        if url:
            source = _url(f"{field} of a video", url, scope)
            if source == location:
                raise _invalid(f"{field} of a video", url, "the page's own URL")
            xml += _tag(tag, source)
    return xml


def _uploader(video: Video, scope: Scope, location: str) -> str:
    if not video.uploader:
        if video.uploader_info:
            raise _missing("uploader of a video", "; uploader_info says more about one")
        return ""
    name = _escaped(_text("uploader of a video", video.uploader, MAX_UPLOADER))
    info = ""
    if video.uploader_info:
        url = _url("uploader_info of a video", video.uploader_info, scope)
        if urlsplit(url).hostname != urlsplit(location).hostname:
            raise _invalid("uploader_info of a video", url, "not on the host of the video's page")
        info = f' info="{_escaped(url)}"'
    return f"<video:uploader{info}>{name}</video:uploader>"


def _tags(video: Video) -> str:
    if isinstance(video.tags, str):
        raise _invalid("tags of a video", video.tags, "one text; give a list of them")
    if len(video.tags) > MAX_TAGS:
        raise RefusedValue(
            "too-many-tags",
            f"Too many tags: tags of a video: there are {len(video.tags):,}, {MAX_TAGS} at most.",
        )
    return "".join(_tag("video:tag", _text("tag of a video", tag)) for tag in video.tags)


def _restriction(field: str, restriction: Restriction | None) -> str:
    if restriction is None:
        return ""
    what = f"{field} of a video"
    if not isinstance(restriction, (Allow, Deny)):
        raise _invalid(what, restriction, "neither Allow(...) nor Deny(...)")
    relationship, values = restriction.relationship, restriction.values
    if not values:
        raise _missing(what, "; leave it out, or name something to allow or deny")
    for value in values:
        if not isinstance(value, str):
            raise _invalid(what, value, "not text")
        if field == "platform" and value not in PLATFORMS:
            raise _invalid(what, value, "not one of web, mobile, tv")
        if field == "restriction" and not _COUNTRY.fullmatch(value):
            raise _invalid(what, value, "no country of ISO 3166-1: two capital letters")
    return f'<video:{field} relationship="{relationship}">{" ".join(values)}</video:{field}>'


def _duration(duration: object) -> str:
    seconds = duration
    if isinstance(duration, dt.timedelta):
        seconds = duration // dt.timedelta(seconds=1)
    if not _is_whole(seconds) or not 1 <= seconds <= MAX_DURATION:
        why = f"not from 1 to {MAX_DURATION:,} whole seconds"
        raise _invalid("duration of a video", duration, why)
    return str(int(seconds))


def _rating(rating: object) -> str:
    number = math.nan
    if isinstance(rating, (int, float, Decimal)) and not isinstance(rating, bool):
        with suppress(OverflowError, ValueError):
            number = float(rating)
    if not 0 <= number <= MAX_RATING:  # as NaN is not
        raise _invalid("rating of a video", rating, f"not a number from 0.0 to {MAX_RATING}.0")
    return f"{abs(number):.1f}"


def _views(views: object) -> str:
    if not _is_whole(views) or views < 0:
        raise _invalid("views of a video", views, "not a whole number from 0 on")
    return str(int(views))


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _yes_or_no(field: str, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, bool):
        raise _invalid(f"{field} of a video", value, "neither True nor False")
    return _tag(f"video:{field}", "yes" if value else "no")


def _date(tag: str, what: str, value: object, zone: dt.tzinfo) -> str:
    if isinstance(value, str) and len(value) > 64:
        raise RefusedValue("invalid-date", f"Invalid date: {what}: {shown(value)}.")
    try:
        text = format_lastmod(value, zone)
    except RefusedValue as refusal:
        raise _named(what, refusal) from refusal
    return "" if text is None else _tag(tag, text)


def _url(what: str, url: object, scope: Scope) -> str:
    if url is None or url == "":
        raise _missing(what)
    try:
        return normalise_url(url, scope.origin)
    except RefusedValue as refusal:
        raise _named(what, refusal) from refusal


def _text(what: str, text: object, most: int | None = None, *, empty: bool = False) -> str:
    if text is None:
        raise _missing(what)
    if not isinstance(text, str):
        raise _invalid(what, text, "not text")
    if not empty and not text.strip():
        raise _missing(what)
    if illegal := ILLEGAL_XML.search(text):
        raise _invalid(what, text, f"not free of U+{ord(illegal[0]):04X}, which XML forbids")
    if most is not None and len(text) > most:
        raise _invalid(what, text, f"{len(text):,} characters long, {most:,} at most")
    return text


def _name(what: str, name: object, prefixes: Collection[str]) -> str:
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None or match[0] == "xmlns":
        raise RefusedValue(
            "invalid-xml-tag", f"Invalid XML tag: {what} {shown(name)} is no XML name."
        )
    if (match[1] or "") not in prefixes:
        raise RefusedValue(
            "wrong-namespace",
            f"Wrong namespace: {what} {shown(name)}: its prefix is not declared; name the section's"
            " namespaces.",
        )
    return match[0]


def _tag(tag: str, text: str) -> str:
    return f"<{tag}>{_escaped(text)}</{tag}>"


def _escaped(text: str, more: dict[int, str] = _IN_TEXT) -> str:
    return escaped([text])[0].translate(more)


def _invalid(what: str, value: object, why: str) -> RefusedValue:
    return RefusedValue("invalid-tag-value", f"Invalid tag value: {what}: {shown(value)} is {why}.")


def _missing(what: str, way_out: str = "") -> RefusedValue:
    return RefusedValue("missing-xml-tag", f"Missing XML tag: {what} is empty{way_out}.")


def _named(what: str, refusal: RefusedValue) -> RefusedValue:
    """Say of a refused URL or date what it belongs to: ``Invalid URL: player of a video: ...``."""
    kind, _, why = str(refusal).partition(": ")
    return RefusedValue(refusal.code, f"{kind}: {what}: {why}")
