"""Checks the extensions of each url: images, videos, news, links to other languages.

Each tag is checked as it ends; no more of the url is held than that takes. Or the extensions are
not checked, and kept as texts that can be compared.
"""

import datetime as dt
import re
from collections import Counter
from contextlib import suppress
from functools import lru_cache

from django_sitemapkit.audit.reader.entries import WHITE_SPACE, EntryChecker, normal_location
from django_sitemapkit.audit.reader.findings import FindingLog
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.dates import parse_w3c
from django_sitemapkit.protocol.extensions import format_hreflang, hreflang_doubt
from django_sitemapkit.protocol.extensions.rules import RULES, Check, on_same_host
from django_sitemapkit.protocol.limits import (
    IMAGE,
    MAX_IMAGES,
    MAX_NEWS,
    MAX_TAGS,
    MAX_TITLE,
    NAMESPACES,
    NEWS,
    VIDEO,
    XHTML,
)
from django_sitemapkit.protocol.locations import check_url, normalise_url

MAX_LINKS = 1_000
"""Links of one url that are compared with each other; there are fewer languages."""

MAX_NEWS_DAYS = 2
"""Days for which an article may be in a news sitemap.

https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap
"""

OPTION_OF_NAMESPACE = {XHTML: "alternates", IMAGE: "images", VIDEO: "videos", NEWS: "news"}
"""The option of a section that lists the extensions of each namespace."""

OTHER_OPTION = "elements"
"""The option for all other namespaces."""

_LINK = f"{XHTML} link"
_EXTENSION_TAGS = {f"{IMAGE} image": "image", f"{VIDEO} video": "video", f"{NEWS} news": "news"}
_MOST_OF_URL = {"image": MAX_IMAGES, "news": 1}
_PREFIXES = {namespace: prefix for prefix, namespace in NAMESPACES.items()}
# Common mistakes: https for http, another version, the address of a schema.
_ALIKE = re.compile(
    r"https?://(?:www\.)?(?:google\.com/schemas/sitemap-(image|video|news)\b|w3\.org/\S*(xhtml)).*",
    re.IGNORECASE,
)


class ExtensionChecker:
    """Checks the extensions of one document, an element at a time."""

    def __init__(self, log: FindingLog, now: dt.datetime, checker: EntryChecker) -> None:
        self._log, self._checker = log, checker
        self._oldest_news = now - dt.timedelta(days=MAX_NEWS_DAYS)
        self._line = 0
        self._location: str | None = None
        self._of_url: Counter[str] = Counter()
        self._news = 0
        self._codes: set[str] = set()
        self._hrefs: set[str] = set()
        self._kind = ""
        self._counts: Counter[str] = Counter()
        # Key and attributes of the open tags, by their depth within the extension.
        self._open: list[tuple[str, dict[str, str]]] = [("", {}), ("", {})]
        self._sources: list[tuple[str, str]] = []
        self._wrong: set[str] = set()

    def start_extension(
        self, name: str, attributes: dict[str, str], line: int, location: str | None
    ) -> bool:
        """Begin an extension of the entry in ``line``; return whether its tags are checked.

        ``location`` is the entry's ``loc`` without white space around it, if it came before.
        """
        self._line, self._location = line, location
        if name == _LINK:
            self._check_xhtml_link(attributes)
            return False
        kind = _EXTENSION_TAGS.get(name)
        if kind is None:
            self._report_other_tag(name)
            return False
        self._kind = kind
        self._counts.clear()
        self._sources.clear()
        self._of_url[kind] += 1
        if kind in _MOST_OF_URL and self._of_url[kind] == _MOST_OF_URL[kind] + 1:
            most = "one" if kind == "news" else f"{_MOST_OF_URL[kind]:,}"
            self._report_too_many(f"more than {most} <{kind}:{kind}> in one <url>")
        if kind == "news":
            self._news += 1
            if self._news == MAX_NEWS + 1:
                self._report_too_many(f"more than {MAX_NEWS:,} <news:news> in a file; use several")
        return True

    def start_tag(self, level: int, name: str, attributes: dict[str, str], _before: str) -> None:
        """Begin a tag within the extension; ``level`` is 0 for a child of the extension's tag."""
        if level > 1:
            return
        namespace, _, tag = name.rpartition(" ")
        key = tag if _PREFIXES.get(namespace) == self._kind else ""
        if level and key:
            key = f"{self._open[0][0]}/{key}"
        self._open[level] = key, attributes

    def end_tag(self, level: int, text: str) -> None:
        """Check a tag within the extension at its end, with its text."""
        key, attributes = self._open[level] if level < 2 else ("", {})
        rule = RULES[self._kind].get(key)
        if rule is None:
            return
        value = text.strip(WHITE_SPACE)
        if not value and rule.required:
            return  # It counts as missing.
        self._counts[key] += 1
        if key != "tag" and self._counts[key] > 1:
            if self._counts[key] == 2:
                self._report_too_many(
                    f"a second <{rule.name}> in one <{self._kind}:{self._kind}>; the first one is"
                    " used"
                )
            return
        is_valid = self._check_text(rule.name, rule.check, value)
        if is_valid and rule.name == "news:publication_date":
            self._check_news_age(value)
        if self._kind == "video":
            self._check_video_tag(key, rule.name, value, attributes)

    def _check_news_age(self, published: str) -> None:
        """Report a publication date of news that is more than two days ago."""
        moment, oldest = parse_w3c(published), self._oldest_news
        # A date is over everywhere only 36 hours after it begins in UTC.
        has_time = isinstance(moment, dt.datetime)
        if moment < (oldest if has_time else (oldest - dt.timedelta(hours=36)).date()):
            self._add_finding(
                "old-news",
                f"Old news: news:publication_date {quoted(published)} is more than"
                f" {MAX_NEWS_DAYS} days ago; remove the article from the news sitemap.",
            )

    def _check_video_tag(self, key: str, tag: str, value: str, attributes: dict[str, str]) -> None:
        """Check what is special to a tag of a video: its attributes, or the length of the title."""
        if key in {"restriction", "platform"}:
            relationship = attributes.get("relationship")
            if relationship is None:
                self._report_missing_attribute(tag, "relationship")
            elif relationship not in {"allow", "deny"}:
                self._report_invalid_attribute(
                    "relationship", tag, relationship, "is neither allow nor deny"
                )
        elif key == "uploader" and "info" in attributes:
            self._check_uploader(attributes["info"])
        elif key in {"content_loc", "player_loc"}:
            self._sources.append((tag, value))
        elif key == "title" and len(value) > MAX_TITLE:
            self._add_finding(
                "long-title",
                f"Long title: {tag} {quoted(value)} has more than {MAX_TITLE} characters.",
            )

    def _check_uploader(self, info: str) -> None:
        """Report an uploader's ``info`` that is not a valid URL on the host of the page."""
        is_valid = self._check_text("info of <video:uploader>", check_url, info)
        if is_valid and self._location and not on_same_host(info, self._location):
            self._report_invalid_attribute(
                "info", "video:uploader", info, "is not on the page's host"
            )

    def end_extension(self, _text: str) -> None:
        """End the extension; report missing tags, and faults of a video as a whole."""
        kind, counts = self._kind, self._counts
        for key, rule in RULES[kind].items():
            if rule.required and key not in counts:
                self._report_missing_tag(f"{kind}:{kind}", rule.name)
        if kind != "video":
            return
        if not self._sources:
            self._report_missing_tag("video:video", "video:content_loc> or <video:player_loc")
        for tag, source in self._sources:
            if source == self._location:
                self._add_finding(
                    "invalid-tag-value",
                    f"Invalid tag value: {tag}: {quoted(source)} is the page's own URL.",
                )
        if counts["tag"] > MAX_TAGS:
            self._report_too_many(f"more than {MAX_TAGS} <video:tag> in one <video:video>")

    def end_entry(self, location: str | None) -> str:
        """Check the language links of an entry at its end; return "", as no texts are kept."""
        if self._hrefs and location:
            self._location = location
            self._check_language_links(location)
        self._hrefs.clear()
        self._codes.clear()
        self._of_url.clear()
        return ""

    def _check_language_links(self, location: str) -> None:
        """Report an entry whose hreflang links lack itself; keep the links to find one-way ones."""
        if len(self._hrefs) >= MAX_LINKS:  # A missing one may be among those that are not held.
            self._checker.versions.is_complete = False
            return
        url = normal_location(location).encode()
        versions = frozenset(normal_location(href).encode() for href in self._hrefs)
        if url not in versions:
            self._add_finding(
                "missing-self-link",
                f"Missing self link: the hreflang links of {quoted(location)} do not list it;"
                " every version lists all versions, itself included.",
            )
        self._checker.versions.add({url: versions | {url}})

    def _check_xhtml_link(self, attributes: dict[str, str]) -> None:
        """Check the attributes of an ``<xhtml:link>``, and keep the link of a language."""
        rel, href = attributes.get("rel"), attributes.get("href")
        hreflang = attributes.get("hreflang")
        for name, value in (("rel", rel), ("hreflang", hreflang), ("href", href)):
            # A link to a page for small screens has a medium and no language.
            if not value and not (name == "hreflang" and "media" in attributes):
                self._report_missing_attribute("xhtml:link", name)
        if rel and rel != "alternate":
            self._report_invalid_attribute("rel", "xhtml:link", rel, "is not alternate")
        if href:
            self._check_text("href of <xhtml:link>", check_url, href)
        if hreflang:
            self._check_hreflang(hreflang)
            if href and len(self._hrefs) < MAX_LINKS:
                self._hrefs.add(href)

    def _check_hreflang(self, hreflang: str) -> None:
        """Report a language code that is invalid, doubtful or repeated in the entry."""
        try:
            # No code is that long, and what is cached should be short.
            code = format_hreflang(hreflang[:64])
        except InvalidValue as error:
            self._add_finding(error.code, str(error))
            return
        if doubt := _doubt_of(code):
            self._add_finding("doubtful-hreflang", f"Doubtful hreflang: {doubt}")
        if code in self._codes:
            self._add_finding(
                "duplicate-hreflang",
                f"Duplicate hreflang: {code} has two links; each language has one.",
            )
        elif len(self._codes) < MAX_LINKS:
            self._codes.add(code)

    def _report_other_tag(self, name: str) -> None:
        """Report a misplaced extension tag, or one with a misspelt extension namespace."""
        namespace, _, tag = name.rpartition(" ")
        if namespace in _PREFIXES:
            tag = f"{_PREFIXES[namespace]}:{tag[:80]}"
            self._add_finding("invalid-xml-tag", f"Invalid XML tag: <{tag}> is not allowed here.")
        elif namespace not in self._wrong and (alike := _ALIKE.fullmatch(namespace)):
            # One finding for each namespace, not for each tag in it.
            self._wrong.add(namespace)
            right = NAMESPACES[(alike[1] or alike[2]).lower()]
            self._add_finding(
                "wrong-namespace",
                f"Wrong namespace: <{tag[:80]}> has {quoted(namespace)}; write {right}.",
            )

    def _check_text(self, what: str, check: Check, text: str) -> bool:
        """Report a text if ``check`` rejects it; return whether it is valid."""
        try:
            check(text)
        except InvalidValue as error:
            self._add_finding(error.code, str(error.named(what)))
            return False
        return True

    def _report_too_many(self, what: str) -> None:
        self._add_finding("too-many-tags", f"Too many tags: {what}.")

    def _report_missing_tag(self, within: str, tag: str) -> None:
        self._add_finding("missing-xml-tag", f"Missing XML tag: a <{within}> has no <{tag}>.")

    def _report_missing_attribute(self, tag: str, name: str) -> None:
        self._add_finding("missing-xml-attribute", f"Missing XML attribute: <{tag}> has no {name}.")

    def _report_invalid_attribute(self, name: str, tag: str, value: str, why: str) -> None:
        self._add_finding(
            "invalid-attribute-value",
            f"Invalid attribute value: {name} of <{tag}> {quoted(value)} {why}.",
        )

    def _add_finding(self, code: str, message: str) -> None:
        """Add a finding at the current entry."""
        self._log.add(code, message, self._line, self._location)


class ExtensionContents:
    """Collects the content of each entry's extensions as text, without checks.

    Equal extensions have equal texts, whatever the order of their parts and the spelling of URLs.
    It has the methods of ``ExtensionChecker``.
    """

    def __init__(self) -> None:
        self._open: list[tuple[str, list[str], dict[str, str]]] = []
        """Of each open tag: its name, the pieces of its text so far and its attributes."""
        self._parts: list[str] = []
        self._lines: list[str] = []

    def start_extension(
        self, name: str, attributes: dict[str, str], _line: int, _location: str | None
    ) -> bool:
        """Begin an extension; return True, as all of its tags are read."""
        self._open = [(name, [], attributes)]
        return True

    def start_tag(self, _level: int, name: str, attributes: dict[str, str], before: str) -> None:
        """Begin a tag within the extension; ``before`` is text of the tag around it."""
        self._open[-1][1].append(before)
        self._open.append((name, [], attributes))

    def end_tag(self, _level: int, text: str) -> None:
        """End a tag, and keep its content; ``text`` is what follows its last inner tag."""
        name, before, attributes = self._open.pop()
        text = "".join([*before, text]).strip(WHITE_SPACE)
        self._parts += _element_texts(name.rpartition(" ")[2], attributes, text)

    def end_extension(self, text: str) -> None:
        """End the extension, and keep its content as a line for ``end_entry``."""
        namespace, _, tag = self._open[0][0].rpartition(" ")
        self.end_tag(0, text)
        says = ", ".join(sorted(self._parts)) or tag
        self._lines.append(
            " ".join([OPTION_OF_NAMESPACE.get(namespace, OTHER_OPTION), *says.split()])
        )
        self._parts.clear()

    def end_entry(self, _location: str | None) -> str:
        """Return the sorted lines of an entry's extensions, each with its option and content."""
        lines = sorted(self._lines)
        self._lines.clear()
        return "\n".join(lines)


def _element_texts(tag: str, attributes: dict[str, str], text: str) -> list[str]:
    """Return the content of an extension element as texts: a link, or its text and attributes."""
    if "href" in attributes:
        label = attributes.get("hreflang") or attributes.get("media", "")
        return [f"{label.lower()} {_normal_url(attributes['href'])}".lstrip()]
    parts = [f"{tag} {name}={value}" for name, value in attributes.items()]
    if text:
        parts.append(_normal_url(text) if tag == "loc" else f"{tag}={_normal_url(text)}")
    return parts


def _normal_url(text: str) -> str:
    """Return a valid http or https URL in normal form; any other text unchanged."""
    if text.startswith(("http://", "https://")):
        with suppress(InvalidValue):
            return normalise_url(text, "")
    return text


_doubt_of = lru_cache(maxsize=512)(hreflang_doubt)
