"""What robots meta tags and the headers ``X-Robots-Tag``, ``Link`` and ``Refresh`` say."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from django_sitemapkit.http_headers import http_moment

MAX_HEADER = 16_384
"""Characters of a header or meta tag that are read."""

AGENTS = ("robots", "googlebot")
"""The names whose rules count: all robots, and Google's. Rules for another robot do not.

Googlebot-News, Googlebot-Image and Googlebot-Video keep a page out of one kind of results only.
"""

_WITH_VALUE = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)
_WEEKDAY = re.compile(
    r"\s*(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\s*", re.IGNORECASE
)

_LINK = re.compile(
    r"<([^<>]*+)>((?:\s*+;\s*+[\w*-]++\s*+(?:=\s*+(?:\"[^\"]*+\"|[^\",;\s]*+)\s*+)?+)*+)"
)
_PARAMETER = re.compile(r";\s*+([\w*-]++)\s*+=\s*+(?:\"([^\"]*+)\"|([^\",;\s]*+))")

_REFRESH = re.compile(
    r"\s*+[\d.]++[\s;,]++(?:url\s*+=\s*+)?+([\"']?+)(.*)", re.IGNORECASE | re.DOTALL
)


class RobotsDirectives:
    """Collects the robots rules of one web page, from its meta tags and headers."""

    def __init__(self, now: datetime | None = None) -> None:
        self._now = now or datetime.now(UTC)
        self._noindex: dict[str, str] = {}
        self.nofollow = False

    @property
    def noindex(self) -> str:
        """The tag or header that asks not to index the page, such as "meta robots"; or "".

        One for all robots comes before one for Google's.
        """
        return next((self._noindex[agent] for agent in AGENTS if agent in self._noindex), "")

    def add_meta(self, name: str, content: str) -> None:
        """Add a meta tag; it counts only if it is for all robots or for Google's."""
        agent = name.strip().lower()
        if agent in AGENTS:
            for _, rule, value in _parsed_rules(content):
                self._add_rule(agent, rule, value, f"meta {agent}")

    def add_header(self, content: str) -> None:
        """Add an ``X-Robots-Tag`` header; only rules for all robots or for Google's count."""
        for agent, rule, value in _parsed_rules(content):
            if agent in {"", "*", "robots"}:
                self._add_rule("robots", rule, value, "X-Robots-Tag")
            elif agent in AGENTS:
                self._add_rule(agent, rule, value, f"X-Robots-Tag: {agent}")

    def _add_rule(self, agent: str, rule: str, value: str, where: str) -> None:
        """Apply a rule for ``agent``; ``where`` is the tag or header that has it."""
        if rule in {"noindex", "none"}:
            self._noindex.setdefault(agent, where)
        elif rule == "unavailable_after" and self._is_past(value):
            self._noindex.setdefault(agent, f"{where} (unavailable_after)")
        if rule in {"nofollow", "none"}:
            self.nofollow = True

    def _is_past(self, value: str) -> bool:
        """Return whether a date, as in HTTP or ISO 8601, is in the past; False if invalid."""
        moment = http_moment(value)
        with suppress(ValueError):
            moment = datetime.fromisoformat(value)
        if moment is not None and moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment is not None and moment < self._now


def _parsed_rules(content: str) -> Iterator[tuple[str, str, str]]:
    """Yield (user agent, rule, value) for each rule; agent and value may be ""."""
    agent = ""
    parts = iter(content[:MAX_HEADER].split(","))
    for part in parts:
        rule, colon, value = part.partition(":")
        if colon and rule.strip().lower() not in _WITH_VALUE:
            agent = rule.strip().lower()
            rule, _, value = value.partition(":")
        if _WEEKDAY.fullmatch(value):  # Of a date as in RFC 850: "Friday, 25-Jun-10 15:00:00 GMT".
            value += "," + next(parts, "")
        yield agent, rule.strip().lower(), value.strip()


def header_links(content: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the target and the parameters of each link in a ``Link`` header (RFC 8288)."""
    for link in _LINK.finditer(content[:MAX_HEADER]):
        parameters: dict[str, str] = {}
        for name, in_quotes, bare in _PARAMETER.findall(link[2]):
            parameters.setdefault(name.lower(), in_quotes or bare)
        yield link[1].strip(), parameters


def refresh_target(content: str) -> str:
    """Return the URL in a refresh such as ``5; url=/next/``, or ""."""
    found = _REFRESH.fullmatch(content)
    if found is None:
        return ""
    quote, target = found.groups()
    return (target.partition(quote)[0] if quote else target).strip()
