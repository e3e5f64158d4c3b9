"""The extensions of each url as they are read: images, videos, news, links to other languages.

What Google asks of them is checked tag by tag, and of the open url no more is held than that takes.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from urllib.parse import urlsplit

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.dates import parse_w3c
from django_sitemapkit.protocol.extensions import (
    IMAGE,
    NAMESPACES,
    NEWS,
    VIDEO,
    XHTML,
    format_hreflang,
    hreflang_doubt,
)
from django_sitemapkit.protocol.extensions.elements import NEWS_LANGUAGE, PLATFORMS
from django_sitemapkit.protocol.limits import (
    MAX_DESCRIPTION,
    MAX_DURATION,
    MAX_IMAGES,
    MAX_NEWS,
    MAX_RATING,
    MAX_TAGS,
    MAX_UPLOADER,
)
from django_sitemapkit.protocol.reader.findings import Fault, FindingLog, shown
from django_sitemapkit.protocol.reader.rules import (
    DECIMAL,
    QUICK_URL,
    WHITE_SPACE,
    normal_location,
    url_faults,
)

MAX_LINKS = 1_000
"""Links of one url that are compared with each other; there are not that many languages."""

MAX_TITLE = 100
"""Characters of a video's title beyond which some readers cut it."""

Rule = Callable[[str, str], Iterable[Fault]]
"""What is wrong with the text of a tag, by the tag's name and the text."""

_LINK = f"{XHTML} link"
_KINDS = {f"{IMAGE} image": "image", f"{VIDEO} video": "video", f"{NEWS} news": "news"}
_PREFIXES = {namespace: prefix for prefix, namespace in NAMESPACES.items()}
# What people write instead: https for http, another version, the address of a schema.
_ALIKE = re.compile(
    r"https?://(?:www\.)?(?:google\.com/schemas/sitemap-(image|video|news)\b|w3\.org/\S*(xhtml)).*",
    re.IGNORECASE,
)
_COUNTRIES = re.compile(r"[A-Z]{2}(?:\s+[A-Z]{2})*")
_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)


class Extensions:
    """The extensions of one document, an element at a time."""

    __slots__ = (
        "_all_news",
        "_attributes",
        "_counts",
        "_images",
        "_keys",
        "_kind",
        "_line",
        "_links",
        "_location",
        "_log",
        "_news",
        "_sources",
        "_wrong",
    )

    def __init__(self, log: FindingLog) -> None:
        self._log = log
        self._line = 0
        self._location: str | None = None
        self._images = self._news = self._all_news = 0
        self._links: dict[str, str] = {}
        self._kind = ""
        self._counts: dict[str, int] = {}
        # The tags that stand open, by their depth within the extension, and their attributes.
        self._keys: list[str] = ["", ""]
        self._attributes: list[list[str]] = [[], []]
        self._sources: list[tuple[str, str]] = []
        self._wrong: set[str] = set()

    def start(self, name: str, attributes: list[str], line: int, location: str | None) -> bool:
        """Begin an extension of the url in ``line``; return whether its inside is of interest.

        ``location`` is the url's ``loc`` without white space around it, if that came before.
        """
        self._line, self._location = line, location
        if name == _LINK:
            self._link(dict(zip(attributes[::2], attributes[1::2], strict=True)))
            return False
        kind = _KINDS.get(name)
        if kind is None:
            self._other(name)
            return False
        self._kind = kind
        self._counts.clear()
        self._sources.clear()
        if kind == "image":
            self._images += 1
            if self._images == MAX_IMAGES + 1:
                self._too_many(f"more than {MAX_IMAGES:,} <image:image> in one <url>")
        elif kind == "news":
            self._news += 1
            self._all_news += 1
            if self._news == 2:
                self._too_many("more than one <news:news> in one <url>")
            if self._all_news == MAX_NEWS + 1:
                self._too_many(f"more than {MAX_NEWS:,} <news:news> in one file; write several")
        return True

    def start_tag(self, level: int, name: str, attributes: list[str]) -> None:
        """Begin a tag within the extension; ``level`` is 0 for its children, 1 for theirs."""
        if level > 1:
            return
        namespace, _, tag = name.rpartition(" ")
        key = tag if _PREFIXES.get(namespace) == self._kind else ""
        if level and key:
            key = f"{self._keys[0]}/{key}"
        self._keys[level] = key
        self._attributes[level] = attributes

    def end_tag(self, level: int, text: str) -> None:
        """End a tag within the extension, which has that text."""
        key = self._keys[level] if level < 2 else ""
        rule = _RULES[self._kind].get(key)
        if rule is None:
            return
        value = text.strip(WHITE_SPACE)
        if not value and key in _REQUIRED[self._kind]:
            return  # as if it were not there
        count = self._counts[key] = self._counts.get(key, 0) + 1
        tag = self._tag(key)
        if count == 2 and key != "tag":
            self._too_many(f"a second <{tag}> in one <{self._kind}:{self._kind}>; the first counts")
        if count > 1 and key != "tag":
            return
        self._add(rule(tag, value))
        if self._kind == "video":
            attributes = self._attributes[level]
            pairs = dict(zip(attributes[::2], attributes[1::2], strict=True))
            if key in {"restriction", "platform"}:
                self._add(_relationship_faults(tag, pairs))
            elif key == "uploader" and "info" in pairs:
                self._add(_info_faults(pairs["info"], self._location))
            elif key in {"content_loc", "player_loc"}:
                self._sources.append((tag, value))

    def end(self) -> None:
        """End the extension, in which all must be that is required."""
        kind, counts = self._kind, self._counts
        for key in _REQUIRED[kind]:
            if key not in counts:
                self._add([_missing(f"{kind}:{kind}", self._tag(key))])
        if kind != "video":
            return
        if not self._sources:
            self._add([_missing("video:video", "video:content_loc> or <video:player_loc")])
        for tag, source in self._sources:
            if source == self._location:
                self._add([_invalid(tag, source, "is the page's own URL")])
        if counts.get("tag", 0) > MAX_TAGS:
            self._too_many(f"more than {MAX_TAGS} <video:tag> in one <video:video>")

    def end_url(self, location: str | None) -> None:
        """End the url, at ``location`` without white space around it."""
        links = self._links
        # Beyond the first thousand the missing one may be among those that are not held.
        if links and location and len(links) < MAX_LINKS and location not in links.values():
            normal = normal_location(location)
            if normal not in map(normal_location, links.values()):
                self._location = location
                self._add(
                    [
                        Fault(
                            "missing-self-link",
                            f"Missing self link: the hreflang links of {shown(location)} do not"
                            " list it; every version lists all versions, itself included.",
                            "warning",
                        )
                    ]
                )
        links.clear()
        self._images = self._news = 0

    def _link(self, attributes: dict[str, str]) -> None:
        rel, href = attributes.get("rel"), attributes.get("href")
        hreflang = attributes.get("hreflang")
        if rel != "alternate" or not hreflang or not href:
            self._add(_link_faults(attributes))
        if href and not QUICK_URL.fullmatch(href):
            self._add(url_faults("href of <xhtml:link>", href))
        if hreflang:
            self._language(hreflang, href or "")

    def _language(self, hreflang: str, href: str) -> None:
        # No code is that long, and what is cached should be short.
        code, fault = _language_fault(hreflang[:64])
        if fault is not None:
            self._add([fault])
        if code in self._links:
            message = f"Duplicate hreflang: {code} has two links; each language has one."
            self._add([Fault("duplicate-hreflang", message)])
        elif code and len(self._links) < MAX_LINKS:
            self._links[code] = href

    def _other(self, name: str) -> None:
        namespace, _, tag = name.rpartition(" ")
        if namespace in _PREFIXES:
            tag = f"{_PREFIXES[namespace]}:{tag[:80]}"
            message = f"Invalid XML tag: <{tag}> has no place here."
            self._add([Fault("invalid-xml-tag", message)])
        elif namespace not in self._wrong and (alike := _ALIKE.fullmatch(namespace)):
            # One finding for each namespace, not one for each tag in it.
            self._wrong.add(namespace)
            right = NAMESPACES[(alike[1] or alike[2]).lower()]
            message = f"Wrong namespace: <{tag[:80]}> has {shown(namespace)}; write {right}."
            self._add([Fault("wrong-namespace", message)])

    def _tag(self, key: str) -> str:
        return f"{self._kind}:{key.rpartition('/')[2]}"

    def _too_many(self, what: str) -> None:
        self._add([Fault("too-many-tags", f"Too many tags: {what}.")])

    def _add(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self._log.add(fault, self._line, self._location)


@lru_cache(maxsize=512)
def _language_fault(hreflang: str) -> tuple[str, Fault | None]:
    """Return a code of hreflang as Google writes it, ``""`` if it is none, and what is wrong."""
    try:
        code, doubt = format_hreflang(hreflang), hreflang_doubt(hreflang)
    except RefusedValue as refusal:
        return "", Fault(refusal.code, str(refusal))
    if doubt:
        return code, Fault("doubtful-hreflang", f"Doubtful hreflang: {doubt}", "warning")
    return code, None


def _link_faults(attributes: dict[str, str]) -> Iterator[Fault]:
    for name in ("rel", "hreflang", "href"):
        # A link to a page for small screens has a medium and no language.
        if not attributes.get(name) and not (name == "hreflang" and "media" in attributes):
            yield Fault(
                "missing-xml-attribute", f"Missing XML attribute: <xhtml:link> has no {name}."
            )
    rel = attributes.get("rel")
    if rel and rel != "alternate":
        yield _invalid_attribute("rel", "xhtml:link", rel, "is not alternate")


def _any(_tag: str, _text: str) -> Iterable[Fault]:
    return ()


def _title_faults(tag: str, text: str) -> Iterator[Fault]:
    if len(text) > MAX_TITLE:
        yield Fault(
            "long-title",
            f"Long title: {tag} {shown(text)} has more than {MAX_TITLE} characters.",
            "warning",
        )


def _at_most(most: int) -> Rule:
    def length_faults(tag: str, text: str) -> Iterator[Fault]:
        if len(text) > most:
            yield _invalid(tag, text, f"has more than {most:,} characters")

    return length_faults


def _date_faults(tag: str, text: str) -> Iterator[Fault]:
    try:
        # No date is this long, and the error quotes what it was given in full.
        parse_w3c(text if len(text) <= 64 else text[:64] + "...")
    except RefusedValue as refusal:
        yield Fault(refusal.code, f"Invalid date: {tag}: {str(refusal).partition(': ')[2]}")


def _duration_faults(tag: str, text: str) -> Iterator[Fault]:
    if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= MAX_DURATION:
        yield _invalid(tag, text, f"is not from 1 to {MAX_DURATION:,} whole seconds")


def _rating_faults(tag: str, text: str) -> Iterator[Fault]:
    if not DECIMAL.fullmatch(text) or not 0 <= Decimal(text) <= MAX_RATING:
        yield _invalid(tag, text, f"is not a decimal number from 0.0 to {MAX_RATING}.0")


def _views_faults(tag: str, text: str) -> Iterator[Fault]:
    if not _WHOLE.fullmatch(text):
        yield _invalid(tag, text, "is not a whole number from 0 on")


def _yes_or_no_faults(tag: str, text: str) -> Iterator[Fault]:
    if text.lower() not in {"yes", "no"}:
        yield _invalid(tag, text, "is neither yes nor no")


def _restriction_faults(tag: str, text: str) -> Iterator[Fault]:
    if not _COUNTRIES.fullmatch(text):
        yield _invalid(tag, text, "is no list of countries, two capital letters each")


def _platform_faults(tag: str, text: str) -> Iterator[Fault]:
    if not text or not PLATFORMS.issuperset(text.lower().split()):
        yield _invalid(tag, text, "is no list of web, mobile, tv")


def _language_faults(tag: str, text: str) -> Iterator[Fault]:
    if not NEWS_LANGUAGE.fullmatch(text.lower()):
        yield _invalid(tag, text, "is neither a code of ISO 639 nor zh-cn or zh-tw")


def _relationship_faults(tag: str, attributes: dict[str, str]) -> Iterator[Fault]:
    relationship = attributes.get("relationship")
    if relationship is None:
        yield Fault("missing-xml-attribute", f"Missing XML attribute: <{tag}> has no relationship.")
    elif relationship not in {"allow", "deny"}:
        yield _invalid_attribute("relationship", tag, relationship, "is neither allow nor deny")


def _info_faults(info: str, location: str | None) -> Iterator[Fault]:
    faults = [*url_faults("info of <video:uploader>", info)]
    yield from faults
    if not faults and location and _host(info) != _host(location):
        yield _invalid_attribute("info", "video:uploader", info, "is not on the page's host")


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _missing(within: str, tag: str) -> Fault:
    return Fault("missing-xml-tag", f"Missing XML tag: a <{within}> has no <{tag}>.")


def _invalid(tag: str, text: str, why: str) -> Fault:
    return Fault("invalid-tag-value", f"Invalid tag value: {tag} {shown(text)} {why}.")


def _invalid_attribute(name: str, tag: str, value: str, why: str) -> Fault:
    return Fault(
        "invalid-attribute-value",
        f"Invalid attribute value: {name} of <{tag}> {shown(value)} {why}.",
    )


# Tags that are not here are passed over: Google has dropped many, and drops them without a word.
_RULES: dict[str, dict[str, Rule]] = {
    "image": {"loc": url_faults},
    "video": {
        "thumbnail_loc": url_faults,
        "title": _title_faults,
        "description": _at_most(MAX_DESCRIPTION),
        "content_loc": url_faults,
        "player_loc": url_faults,
        "duration": _duration_faults,
        "expiration_date": _date_faults,
        "rating": _rating_faults,
        "view_count": _views_faults,
        "publication_date": _date_faults,
        "family_friendly": _yes_or_no_faults,
        "restriction": _restriction_faults,
        "platform": _platform_faults,
        "requires_subscription": _yes_or_no_faults,
        "uploader": _at_most(MAX_UPLOADER),
        "live": _yes_or_no_faults,
        "tag": _any,
    },
    "news": {
        "publication": _any,
        "publication/name": _any,
        "publication/language": _language_faults,
        "publication_date": _date_faults,
        "title": _any,
    },
}
_REQUIRED: dict[str, tuple[str, ...]] = {
    "image": ("loc",),
    "video": ("thumbnail_loc", "title", "description"),
    "news": ("publication/name", "publication/language", "publication_date", "title"),
}
