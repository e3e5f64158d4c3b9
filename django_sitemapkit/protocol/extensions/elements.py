"""Writes images, videos, news and other elements as XML.

Each function returns one element, and raises InvalidValue where a value is not valid; the message
has the field, the value and the limit. What is wrong with an optional part of a video goes to the
caller's ``report``, and costs that part alone. The rules are those of ``rules``.
"""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.extensions.languages import news_language
from django_sitemapkit.protocol.extensions.rules import (
    RULES,
    TagRule,
    check_country,
    check_platform,
    on_same_host,
)
from django_sitemapkit.protocol.extensions.values import (
    Allow,
    Deny,
    Element,
    Image,
    News,
    Restriction,
    Video,
)
from django_sitemapkit.protocol.limits import ILLEGAL_XML, MAX_TAGS
from django_sitemapkit.protocol.locations import Scope, normalise_url
from django_sitemapkit.protocol.writers import escaped

Returned = TypeVar("Returned")

Report = Callable[[InvalidValue], object]
"""Takes what is wrong with a part that is left out; it may raise it."""

_IMAGE, _VIDEO, _NEWS = RULES["image"], RULES["video"], RULES["news"]
# XML allows names beyond ASCII too, but no reader of sitemaps is known to have met one.
_LOCAL_NAME = r"[A-Za-z_][A-Za-z0-9._-]*"
_XML_NAME = re.compile(rf"(?:({_LOCAL_NAME}):)?({_LOCAL_NAME})")
# A parser turns a carriage return into a line feed, and in an attribute both into spaces.
_IN_TEXT = str.maketrans({"\r": "&#13;"})
_IN_ATTRIBUTE = str.maketrans({"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})


def image_element(image: Image, scope: Scope) -> str:
    """Return an ``image:image``; a path in it is on the origin of ``scope``, the sitemap's."""
    return f"<image:image>{_url_tag(_IMAGE['loc'], image.location, scope)}</image:image>"


def _raised(error: InvalidValue) -> None:
    raise error


def _optional(report: Report, write: Callable[..., str], *arguments: Any) -> str:
    """Return what ``write`` returns; "" if it refuses the value, which is reported."""
    try:
        return write(*arguments)
    except InvalidValue as error:
        report(error)
        return ""


def video_element(
    video: Video, scope: Scope, location: str, zone: dt.tzinfo, report: Report = _raised
) -> str:
    """Return a ``video:video`` of the page at ``location``, which is in normal form.

    A path in it is on the origin of ``scope``, the sitemap's; a naive datetime is in ``zone``. A
    title of more than 100 characters is written: the validator only warns of it. An optional part
    that is not valid is given to ``report``, and left out unless that raises.
    """
    optional = partial(_optional, report)
    required = (
        _url_tag(_VIDEO["thumbnail_loc"], video.thumbnail, scope)
        + _text_tag(_VIDEO["title"], video.title)
        + _text_tag(_VIDEO["description"], video.description)
    )
    refusals: list[InvalidValue] = []
    source = partial(_optional, refusals.append, _source_tag)
    content = source(_VIDEO["content_loc"], video.content, scope, location)
    player = source(_VIDEO["player_loc"], video.player, scope, location)
    if not content and not player:
        missing = "Missing XML tag: a video has neither content nor player; give one of them."
        raise next(iter(refusals), InvalidValue("missing-xml-tag", missing))
    for refusal in refusals:
        report(refusal)
    xml = (
        required
        + content
        + player
        + optional(_duration, video.duration)
        + optional(_date_tag, _VIDEO["expiration_date"], video.expires, zone)
        + optional(_rating, video.rating)
        + optional(_whole, _VIDEO["view_count"], video.views)
        + optional(_date_tag, _VIDEO["publication_date"], video.published, zone)
        + optional(_tags, video.tags, report)
        + optional(_yes_or_no, _VIDEO["family_friendly"], video.family_friendly)
        + optional(_restriction, _VIDEO["restriction"], video.restriction, report)
        + optional(_yes_or_no, _VIDEO["requires_subscription"], video.requires_subscription)
        + optional(_uploader, video, scope, location, report)
        + optional(_restriction, _VIDEO["platform"], video.platform, report)
        + optional(_yes_or_no, _VIDEO["live"], video.live)
    )
    return f"<video:video>{xml}</video:video>"


def news_element(news: News, zone: dt.tzinfo) -> str:
    """Return a ``news:news``; a naive datetime is in ``zone``.

    Its language may be a code as Django has it: ``en-us`` is written as ``en``. The age of the
    article is not checked here: an article that grows old stays valid.
    """
    publication = _text_tag(_NEWS["publication/name"], news.publication) + _text_tag(
        _NEWS["publication/language"], news_language(news.language)
    )
    return (
        f"<news:news><news:publication>{publication}</news:publication>"
        f"{_date_tag(_NEWS['publication_date'], news.published, zone)}"
        f"{_text_tag(_NEWS['title'], news.title)}</news:news>"
    )


def own_element(element: Element, prefixes: Collection[str]) -> str:
    """Return an element of a project's own; ``prefixes`` are those declared on the root.

    An attribute has one of them, or ``xml``, or none.
    """
    name = _checked_name("element", element.name, prefixes)
    xml = f"<{name}"
    for key, value in element.attributes.items():
        attribute = _checked_name(f"attribute of {name}", key, {*prefixes, "xml", ""})
        text = _checked_text(f"{attribute} of {name}", value, may_be_empty=True)
        xml += f' {attribute}="{_escaped(text, _IN_ATTRIBUTE)}"'
    inner = "".join(own_element(child, prefixes) for child in element.children)
    if element.text is not None:
        inner = _escaped(_checked_text(f"text of {name}", element.text, may_be_empty=True)) + inner
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


def _source_tag(rule: TagRule, url: str | None, scope: Scope, location: str) -> str:
    if not url:
        return ""
    source = _normal_url(rule.field, url, scope)
    if source == location:
        raise _invalid_field(rule.field, url, "is the page's own URL")
    return _element(rule, source)


def _uploader(video: Video, scope: Scope, location: str, report: Report) -> str:
    rule = _VIDEO["uploader"]
    if not video.uploader:
        if video.uploader_info:
            raise _missing_field(rule.field, "; uploader_info says more about one")
        return ""
    info = _optional(report, _uploader_info, video.uploader_info, scope, location)
    return _text_tag(rule, video.uploader, info)


def _uploader_info(info: str | None, scope: Scope, location: str) -> str:
    if not info:
        return ""
    what = "uploader_info of a video"
    url = _normal_url(what, info, scope)
    if not on_same_host(url, location):
        raise _invalid_field(what, url, "is not on the host of the video's page")
    return f' info="{_escaped(url)}"'


def _tags(tags: Iterable[str] | None, report: Report) -> str:
    if isinstance(tags, str):
        raise _invalid_field("tags of a video", tags, "is a single string; give a list of strings")
    if tags is not None and not isinstance(tags, Iterable):
        raise _invalid_field("tags of a video", tags, "is not a list of strings")
    written: list[str] = []
    for tag in tags or ():
        if len(written) == MAX_TAGS:
            message = f"tags of a video: the limit is {MAX_TAGS}; the rest are skipped."
            report(InvalidValue("too-many-tags", f"Too many tags: {message}"))
            break
        if text := _optional(report, _text_tag, _VIDEO["tag"], tag):
            written.append(text)
    return "".join(written)


def _restriction(rule: TagRule, restriction: Restriction | None, report: Report) -> str:
    if restriction is None:
        return ""
    if not isinstance(restriction, (Allow, Deny)):
        raise _invalid_field(rule.field, restriction, "is neither Allow(...) nor Deny(...)")
    if not restriction.values:
        raise _missing_field(rule.field, "; omit it, or name something to allow or deny")
    values = [_optional(report, _restricted, rule, value) for value in restriction.values]
    text = " ".join(filter(None, values))
    relationship = f' relationship="{restriction.relationship}"'
    return _element(rule, text, relationship) if text else ""


def _restricted(rule: TagRule, value: object) -> str:
    if not isinstance(value, str):
        raise _invalid_field(rule.field, value, "is not a string")
    _named(rule.field, check_platform if rule is _VIDEO["platform"] else check_country, value)
    return value


def _duration(duration: object) -> str:
    if isinstance(duration, dt.timedelta):
        duration //= dt.timedelta(seconds=1)
    return _whole(_VIDEO["duration"], duration)


def _whole(rule: TagRule, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _invalid_field(rule.field, value, "is not a whole number")
    if abs(value) >= 10**18:  # Python refuses to write a number of thousands of digits.
        raise InvalidValue(
            "invalid-tag-value", f"Invalid tag value: {rule.field}: it has more than 18 digits."
        )
    text = str(int(value))
    _named(rule.field, rule.check, text)
    return f"<{rule.name}>{text}</{rule.name}>"


def _rating(rating: object) -> str:
    rule = _VIDEO["rating"]
    if rating is None:
        return ""
    if not isinstance(rating, (int, float, Decimal)) or isinstance(rating, bool):
        raise _invalid_field(rule.field, rating, "is not a number")
    exact = Decimal(repr(float(rating)) if isinstance(rating, float) else rating)
    # A huge exponent would be written out.
    text = f"{exact:f}" if exact.is_finite() and exact.adjusted() < 9 else str(exact)
    _named(rule.field, rule.check, text)
    return f"<{rule.name}>{abs(float(rating)):.1f}</{rule.name}>"


def _yes_or_no(rule: TagRule, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, bool):
        raise _invalid_field(rule.field, value, "is neither True nor False")
    return f"<{rule.name}>{'yes' if value else 'no'}</{rule.name}>"


def _date_tag(rule: TagRule, value: object, zone: dt.tzinfo) -> str:
    text = _named(rule.field, format_lastmod, value, zone)
    if text is None and rule.required:
        raise _missing_field(rule.field)
    return "" if text is None else f"<{rule.name}>{text}</{rule.name}>"


def _url_tag(rule: TagRule, url: object, scope: Scope) -> str:
    return _element(rule, _normal_url(rule.field, url, scope))


def _normal_url(what: str, url: object, scope: Scope) -> str:
    if url is None or url == "":
        raise _missing_field(what)
    return _named(what, normalise_url, url, scope.origin)


def _text_tag(rule: TagRule, text: object, attributes: str = "") -> str:
    """Return a tag with a text that the rule of the tag allows."""
    content = _checked_text(rule.field, text)
    _named(rule.field, rule.check, content)
    return _element(rule, content, attributes)


def _named(what: str, function: Callable[..., Returned], *arguments: Any) -> Returned:
    """Call a function whose errors are about ``what``."""
    try:
        return function(*arguments)
    except InvalidValue as error:
        raise error.named(what) from error


def _checked_text(what: str, text: object, *, may_be_empty: bool = False) -> str:
    """Return a text that XML can hold."""
    if text is None:
        raise _missing_field(what)
    if not isinstance(text, str):
        raise _invalid_field(what, text, "is not a string")
    if not may_be_empty and not text.strip():
        raise _missing_field(what)
    if illegal := ILLEGAL_XML.search(text):
        raise _invalid_field(what, text, f"contains U+{ord(illegal[0]):04X}, which XML forbids")
    return text


def _checked_name(what: str, name: object, prefixes: Collection[str]) -> str:
    match = _XML_NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None or match[0] == "xmlns":
        raise InvalidValue(
            "invalid-xml-tag", f"Invalid XML tag: {what} {quoted(name)} is not an XML name."
        )
    if (match[1] or "") not in prefixes:
        raise InvalidValue(
            "wrong-namespace",
            f"Wrong namespace: {what} {quoted(name)}: its prefix is not declared; declare it in the"
            " section's namespaces.",
        )
    return match[0]


def _element(rule: TagRule, text: str, attributes: str = "") -> str:
    return f"<{rule.name}{attributes}>{_escaped(text)}</{rule.name}>"


def _escaped(text: str, more: dict[int, str] = _IN_TEXT) -> str:
    return escaped([text])[0].translate(more)


def _invalid_field(what: str, value: object, why: str) -> InvalidValue:
    return InvalidValue("invalid-tag-value", f"Invalid tag value: {what}: {quoted(value)} {why}.")


def _missing_field(what: str, way_out: str = "") -> InvalidValue:
    return InvalidValue("missing-xml-tag", f"Missing XML tag: {what} is empty{way_out}.")
