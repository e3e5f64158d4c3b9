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
    invalid_text,
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

TextOf = Callable[[Any], Any]
"""Returns the text of a value. Raises InvalidValue, without a name, for a value that has none."""

ReportRefusal = Callable[[InvalidValue], object]
"""Takes what is wrong with a part that is left out; it may raise it."""

_IMAGE, _VIDEO, _NEWS = RULES["image"], RULES["video"], RULES["news"]
# XML allows names beyond ASCII too, but no reader of sitemaps is known to have met one.
_LOCAL_NAME = r"[A-Za-z_][A-Za-z0-9._-]*"
_XML_NAME = re.compile(rf"(?:({_LOCAL_NAME}):)?({_LOCAL_NAME})")
# A parser turns a carriage return into a line feed, and in an attribute both into spaces.
_IN_TEXT = str.maketrans({"\r": "&#13;"})
_IN_ATTRIBUTE = str.maketrans({"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})


def image_element(image: Image, scope: Scope) -> str:
    """Return an image as an ``image:image`` element.

    If its location is a path, it is on the origin of ``scope``, the sitemap's.
    """
    url = partial(normalise_url, origin=scope.origin)
    return f"<image:image>{_tag(_IMAGE['loc'], url, image.location or None)}</image:image>"


def _raise(error: InvalidValue) -> None:
    """Raise an error: this is the default for ``report``."""
    raise error


def _xml_or_report(report: ReportRefusal, write: Callable[..., str], *arguments: Any) -> str:
    """Call ``write`` and return its XML; report an invalid value and return "" instead."""
    try:
        return write(*arguments)
    except InvalidValue as error:
        report(error)
        return ""


def video_element(
    video: Video, scope: Scope, location: str, zone: dt.tzinfo, report: ReportRefusal = _raise
) -> str:
    """Return a video of the page at ``location`` as a ``video:video`` element.

    ``location`` is in normal form. A URL of the video that is a path is on the origin of ``scope``,
    the sitemap's; a naive datetime is in ``zone``. A title of more than 100 characters is written:
    the validator only warns of it. An optional part that is not valid is omitted, and its
    InvalidValue is passed to ``report``, which raises it by default.
    """
    url = partial(normalise_url, origin=scope.origin)
    date = partial(format_lastmod, zone=zone)
    required = (
        _tag(_VIDEO["thumbnail_loc"], url, video.thumbnail or None)
        + _tag(_VIDEO["title"], _xml_text, video.title)
        + _tag(_VIDEO["description"], _xml_text, video.description)
    )
    refusals: list[InvalidValue] = []
    source = partial(_xml_or_report, refusals.append, _source_tag)
    content = source(_VIDEO["content_loc"], video.content, url, location)
    player = source(_VIDEO["player_loc"], video.player, url, location)
    if not content and not player:
        missing = "Missing XML tag: a video has neither content nor player; give one of them."
        raise next(iter(refusals), InvalidValue("missing-xml-tag", missing))
    for refusal in refusals:
        report(refusal)

    def optional_tag(tag: str, text_of: TextOf, value: object) -> str:
        """Return the tag of an optional value, or "" for None."""
        return "" if value is None else _xml_or_report(report, _tag, _VIDEO[tag], text_of, value)

    xml = (
        required
        + content
        + player
        + optional_tag("duration", _duration_text, video.duration)
        + optional_tag("expiration_date", date, video.expires)
        + optional_tag("rating", _rating_text, video.rating)
        + optional_tag("view_count", _whole_number_text, video.views)
        + optional_tag("publication_date", date, video.published)
        + _xml_or_report(report, _video_tags, video.tags, report)
        + optional_tag("family_friendly", _yes_or_no_of_bool, video.family_friendly)
        + _xml_or_report(report, _restriction_tag, _VIDEO["restriction"], video.restriction, report)
        + optional_tag("requires_subscription", _yes_or_no_of_bool, video.requires_subscription)
        + _xml_or_report(report, _uploader_tag, video, url, location, report)
        + _xml_or_report(report, _restriction_tag, _VIDEO["platform"], video.platform, report)
        + optional_tag("live", _yes_or_no_of_bool, video.live)
    )
    return f"<video:video>{xml}</video:video>"


def news_element(news: News, zone: dt.tzinfo) -> str:
    """Return a news article as a ``news:news`` element; a naive datetime is in ``zone``.

    Its language may be a code as Django has it: ``en-us`` is written as ``en``. The age of the
    article is not checked here: an article that grows old stays valid.
    """
    date = partial(format_lastmod, zone=zone)
    return (
        f"<news:news><news:publication>"
        f"{_tag(_NEWS['publication/name'], _xml_text, news.publication)}"
        f"{_tag(_NEWS['publication/language'], _xml_text, news_language(news.language))}"
        "</news:publication>"
        f"{_tag(_NEWS['publication_date'], date, news.published)}"
        f"{_tag(_NEWS['title'], _xml_text, news.title)}</news:news>"
    )


def own_element(element: Element, prefixes: Collection[str]) -> str:
    """Return an element of a project's own namespace as XML, with its attributes and children.

    ``prefixes`` are the namespaces' prefixes that the document declares. Each element has one of
    them; an attribute has one, or ``xml``, or none. Raises InvalidValue otherwise.
    """
    name = _checked_xml_name("element", element.name, prefixes)
    xml = f"<{name}"
    for key, value in element.attributes.items():
        attribute = _checked_xml_name(f"attribute of {name}", key, {*prefixes, "xml", ""})
        text = _call_naming(f"{attribute} of {name}", _xml_text, value)
        xml += f' {attribute}="{_escaped(text, _IN_ATTRIBUTE)}"'
    inner = "".join(own_element(child, prefixes) for child in element.children)
    if element.text is not None:
        inner = _escaped(_call_naming(f"text of {name}", _xml_text, element.text)) + inner
    return f"{xml}>{inner}</{name}>" if inner else f"{xml}/>"


def alternate_elements(links: Sequence[tuple[str, str]]) -> str:
    """Return an ``xhtml:link`` for each language version of a page.

    Each of ``links`` is a code, as ``format_hreflang`` returns it, and a location in normal form.
    """
    urls = escaped([location for _, location in links])
    return "".join(
        f'<xhtml:link rel="alternate" hreflang="{code}" href="{url}"/>'
        for (code, _), url in zip(links, urls, strict=True)
    )


def _source_tag(rule: TagRule, source: str | None, url: TextOf, location: str) -> str:
    """Return the tag of a video's file or player, whose URL must not be the page's location."""
    xml = _tag(rule, url, source or None)
    if xml and url(source) == location:
        raise _invalid_field(rule.field, source, "is the page's own URL")
    return xml


def _uploader_tag(video: Video, url: TextOf, location: str, report: ReportRefusal) -> str:
    """Return the tag of a video's uploader, with ``uploader_info`` as an attribute; "" for none."""
    rule = _VIDEO["uploader"]
    if video.uploader_info and not video.uploader:
        raise _missing_field(rule.field, "; uploader_info says more about one")
    info = _xml_or_report(
        report, _uploader_info_attribute, video.uploader_info or None, url, location
    )
    return _tag(rule, _xml_text, video.uploader or None, info)


def _uploader_info_attribute(info_url: str | None, normalise: TextOf, location: str) -> str:
    """Return the attribute with the URL about a video's uploader; "" for None.

    Raises InvalidValue if the URL is invalid, as "" is, or is not on the host of ``location``, the
    video's page.
    """
    if info_url is None:
        return ""
    what = "uploader_info of a video"
    address = _call_naming(what, normalise, info_url)
    if not on_same_host(address, location):
        raise _invalid_field(what, address, "is not on the host of the video's page")
    return f' info="{_escaped(address)}"'


def _video_tags(tags: Iterable[str] | None, report: ReportRefusal) -> str:
    """Return a ``video:tag`` for each keyword of a video, up to 32.

    An InvalidValue goes to ``report`` for each that is not valid, and one for all beyond 32.
    """
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
        if text := _xml_or_report(report, _tag, _VIDEO["tag"], _xml_text, tag):
            written.append(text)
    return "".join(written)


def _restriction_tag(rule: TagRule, restriction: Restriction | None, report: ReportRefusal) -> str:
    """Return the tag of the countries or platforms in which a video is allowed or denied.

    "" for None. Single values that are not valid are passed to ``report``.
    """
    if restriction is None:
        return ""
    if not isinstance(restriction, (Allow, Deny)):
        raise _invalid_field(rule.field, restriction, "is neither Allow(...) nor Deny(...)")
    if not restriction.values:
        raise _missing_field(rule.field, "; omit it, or name something to allow or deny")
    values = [
        _xml_or_report(report, _checked_restriction_value, rule, value)
        for value in restriction.values
    ]
    return _tag(
        rule,
        str,
        " ".join(filter(None, values)) or None,
        f' relationship="{restriction.relationship}"',
    )


def _checked_restriction_value(rule: TagRule, value: object) -> str:
    """Return a country or platform as it is. Raises InvalidValue if it is not one."""
    if not isinstance(value, str):
        raise _invalid_field(rule.field, value, "is not a string")
    _call_naming(rule.field, check_platform if rule is _VIDEO["platform"] else check_country, value)
    return value


def _duration_text(duration: object) -> str:
    """Return a duration, a whole number of seconds or a timedelta, as text in whole seconds.

    Raises InvalidValue for another type, or more than 18 digits.
    """
    if isinstance(duration, dt.timedelta):
        duration //= dt.timedelta(seconds=1)
    return _whole_number_text(duration)


def _whole_number_text(value: object) -> str:
    """Return an int as text. Raises InvalidValue for another type, or more than 18 digits."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise invalid_text(value, "is not a whole number")
    if abs(value) >= 10**18:  # Python refuses to write a number of thousands of digits.
        raise InvalidValue("invalid-tag-value", "it has more than 18 digits.", "Invalid tag value")
    return str(int(value))


def _rating_text(rating: object) -> str:
    """Return a rating with one decimal. Raises InvalidValue unless it is from 0.0 to 5.0."""
    if not isinstance(rating, (int, float, Decimal)) or isinstance(rating, bool):
        raise invalid_text(rating, "is not a number")
    exact = Decimal(repr(float(rating)) if isinstance(rating, float) else rating)
    # A huge exponent would be written out.
    _VIDEO["rating"].check(
        f"{exact:f}" if exact.is_finite() and exact.adjusted() < 9 else str(exact)
    )
    return f"{abs(float(rating)):.1f}"


def _yes_or_no_of_bool(value: object) -> str:
    """Return "yes" for True and "no" for False. Raises InvalidValue for anything else."""
    if not isinstance(value, bool):
        raise invalid_text(value, "is neither True nor False")
    return "yes" if value else "no"


def _xml_text(text: object) -> str:
    """Return a text as it is. Raises InvalidValue if it is no string that XML can have."""
    if not isinstance(text, str):
        raise invalid_text(text, "is not a string")
    if illegal := ILLEGAL_XML.search(text):
        raise invalid_text(text, f"contains U+{ord(illegal[0]):04X}, which XML forbids")
    return text


def _tag(rule: TagRule, text_of: TextOf, value: object, attributes: str = "") -> str:
    """Return the tag of a rule with the text of a value; "" for None, unless the tag is required.

    ``text_of`` returns the text, and ``attributes`` are written into the tag as they are. Raises
    InvalidValue, with the name of the field, for a value that has no text, and for a text that is
    empty or that the rule does not allow.
    """
    if value is None and not rule.required:
        return ""
    text = "" if value is None else _call_naming(rule.field, text_of, value)
    if not text.strip():
        raise _missing_field(rule.field)
    _call_naming(rule.field, rule.check, text)
    return f"<{rule.name}{attributes}>{_escaped(text)}</{rule.name}>"


def _call_naming(what: str, function: Callable[..., Returned], *arguments: Any) -> Returned:
    """Return what a function returns; an InvalidValue that it raises gets the name ``what``."""
    try:
        return function(*arguments)
    except InvalidValue as error:
        raise error.named(what) from error


def _checked_xml_name(what: str, name: object, prefixes: Collection[str]) -> str:
    """Return the name of an element or attribute as it is.

    Raises InvalidValue if it is no XML name or its prefix is not one of ``prefixes``; ``what`` says
    in the message whose name it is.
    """
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


def _escaped(text: str, more: dict[int, str] = _IN_TEXT) -> str:
    """Return a text escaped for XML; ``more`` are the references of other characters to escape."""
    text = escaped([text])[0]
    # translate() looks each character up, which took a third of the time of an image.
    return text if text.isprintable() else text.translate(more)


def _invalid_field(what: str, value: object, why: str) -> InvalidValue:
    return InvalidValue("invalid-tag-value", f"Invalid tag value: {what}: {quoted(value)} {why}.")


def _missing_field(what: str, way_out: str = "") -> InvalidValue:
    return InvalidValue("missing-xml-tag", f"Missing XML tag: {what} is empty{way_out}.")
