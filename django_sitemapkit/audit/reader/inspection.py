"""Checks the values of one entry, and returns it as a value object."""

import datetime as dt
from collections.abc import Callable, Iterable
from functools import partial

from django_sitemapkit.audit.reader import rules
from django_sitemapkit.audit.reader.findings import FindingLog, Issue
from django_sitemapkit.protocol.entries import Entry, IndexEntry
from django_sitemapkit.protocol.limits import CHANGEFREQS, MAX_LOCATION, MIN_LOCATION
from django_sitemapkit.protocol.locations import QUICK_URL
from django_sitemapkit.protocol.values import check_changefreq, check_priority

MAX_TEXT = 8_192
"""Characters of one value that are checked; no valid one has more than 2,047."""

ValueRule = Callable[[str], Iterable[Issue]]

_CHANGEFREQ: ValueRule = partial(rules.issues_of, check_changefreq)
_PRIORITY: ValueRule = partial(rules.issues_of, check_priority)
_CODES = {"loc": "invalid-url", "lastmod": "invalid-date"}


class Inspection:
    """Checks the entries of one document, with its scopes and the present time."""

    __slots__ = ("_in_quick_form", "_log", "_now", "_of_pages", "_of_sitemaps", "_past")

    def __init__(
        self,
        log: FindingLog,
        now: dt.datetime,
        scope: rules.ListingScope | None,
        of_sitemaps: rules.ListingScope | None,
    ) -> None:
        self._log, self._now = log, now
        self._of_pages = partial(rules.location_issues, scope=scope)
        self._of_sitemaps = partial(rules.location_issues, scope=of_sitemaps)
        self._in_quick_form = (scope.quick if scope else QUICK_URL).fullmatch
        # What is two days old in UTC is past in every zone.
        self._past = (now - dt.timedelta(days=2)).date().isoformat()

    def url(self, values: list[str | None], line: int, keep: bool) -> Entry | None:
        """Check the four values of a ``<url>`` that begins in ``line``.

        Returns the entry if it is to be kept and has a ``loc``, however much is wrong with it.
        """
        location, lastmod, changefreq, priority = values
        location = self._location(location, line)
        if lastmod is not None:
            lastmod = self._lastmod(lastmod, line, location)
        if changefreq is not None and changefreq not in CHANGEFREQS:
            changefreq = self._changefreq(changefreq, line, location)
        if priority is not None and priority not in rules.QUICK_PRIORITIES:
            priority = self._check("priority", priority, _PRIORITY, line, location)
        if location is None or not keep:
            return None
        return Entry(location=location, lastmod=lastmod, changefreq=changefreq, priority=priority)

    def sitemap(self, values: list[str | None], line: int, keep: bool) -> IndexEntry | None:
        """Check the two values of a ``<sitemap>`` that begins in ``line``; as ``url()``."""
        location = self._location(values[0], line, self._of_sitemaps)
        lastmod = values[1]
        if lastmod is not None:
            lastmod = self._lastmod(lastmod, line, location)
        if location is None or not keep:
            return None
        return IndexEntry(location=location, lastmod=lastmod)

    def _location(self, text: str | None, line: int, rule: ValueRule | None = None) -> str | None:
        if text is None:
            issue = Issue("missing-xml-tag", "Missing XML tag: an entry has no <loc>.")
            self._log.add(issue, line)
            return None
        if (
            self._in_quick_form(text)
            and MIN_LOCATION <= len(text) <= MAX_LOCATION
            # A dot segment may follow; "%2" begins an encoded one.
            and "/." not in text
            and "/%2" not in text
        ):
            return text
        location = text.strip(rules.WHITE_SPACE)[:MAX_TEXT]
        return self._check("loc", text, rule or self._of_pages, line, location)

    def _lastmod(self, text: str, line: int, location: str | None) -> str:
        if rules.QUICK_LASTMOD.fullmatch(text) and text < self._past:
            return text
        return self._check("lastmod", text, self._lastmod_issues, line, location)

    def _lastmod_issues(self, lastmod: str) -> Iterable[Issue]:
        return rules.lastmod_issues(lastmod, self._now)

    def _changefreq(self, text: str, line: int, location: str | None) -> str:
        value = self._check("changefreq", text, _CHANGEFREQ, line, location)
        if value in CHANGEFREQS:
            # sitemap.xsd derives changefreq from xsd:string, which keeps its white space.
            self._log.add(rules.spaced_changefreq(value), line, location)
        return value

    def _check(self, tag: str, text: str, rule: ValueRule, line: int, location: str | None) -> str:
        """Log what ``rule`` finds in a value; return the value without white space around it."""
        value = text.lstrip(rules.WHITE_SPACE)
        if len(value) > MAX_TEXT:
            code = _CODES.get(tag, "invalid-tag-value")
            issues: Iterable[Issue] = [rules.too_long(code, tag, MAX_TEXT)]
        else:
            value = value.rstrip(rules.WHITE_SPACE)
            issues = rule(value)
        for issue in issues:
            self._log.add(issue, line, location)
        return value[:MAX_TEXT]
