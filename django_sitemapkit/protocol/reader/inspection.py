"""One entry at its end: its values are checked, and it comes out as a value."""

import datetime as dt
from collections.abc import Callable, Iterable
from functools import partial

from django_sitemapkit.protocol.entries import Entry, IndexEntry
from django_sitemapkit.protocol.limits import CHANGEFREQS, MAX_LOCATION, MIN_LOCATION
from django_sitemapkit.protocol.reader import rules
from django_sitemapkit.protocol.reader.findings import Fault, FindingLog

MAX_TEXT = 8_192
"""Characters of one value that are looked at; no valid one has more than 2,047."""

Rule = Callable[[str], Iterable[Fault]]

_CODES = {"loc": "invalid-url", "lastmod": "invalid-date"}


class Inspection:
    """The checks of all entries of one document, which share their scopes and a present moment."""

    __slots__ = ("_in_quick_form", "_log", "_now", "_of_pages", "_of_sitemaps", "_past")

    def __init__(
        self,
        log: FindingLog,
        now: dt.datetime,
        scope: rules.Scope | None,
        of_sitemaps: rules.Scope | None,
    ) -> None:
        self._log, self._now = log, now
        self._of_pages = partial(rules.location_faults, scope=scope)
        self._of_sitemaps = partial(rules.location_faults, scope=of_sitemaps)
        self._in_quick_form = (scope.quick if scope else rules.QUICK_LOCATION).fullmatch
        # What is two days old in UTC is past in every zone, whatever zone the text names.
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
            priority = self._check("priority", priority, rules.priority_faults, line, location)
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

    def _location(self, text: str | None, line: int, rule: Rule | None = None) -> str | None:
        if text is None:
            fault = Fault("missing-xml-tag", "Missing XML tag: an entry has no <loc>.")
            self._log.add(fault, line)
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
        return self._check("lastmod", text, self._lastmod_faults, line, location)

    def _lastmod_faults(self, lastmod: str) -> Iterable[Fault]:
        return rules.lastmod_faults(lastmod, self._now)

    def _changefreq(self, text: str, line: int, location: str | None) -> str:
        value = self._check("changefreq", text, rules.changefreq_faults, line, location)
        if value in CHANGEFREQS:
            # sitemap.xsd derives changefreq from xsd:string, which keeps its white space.
            self._log.add(rules.spaced_changefreq(value), line, location)
        return value

    def _check(self, tag: str, text: str, rule: Rule, line: int, location: str | None) -> str:
        """Put what ``rule`` says of a value on record; return it without its white space."""
        value = text.lstrip(rules.WHITE_SPACE)
        if len(value) > MAX_TEXT:
            code = _CODES.get(tag, "invalid-tag-value")
            faults: Iterable[Fault] = [rules.too_long(code, tag, MAX_TEXT)]
        else:
            value = value.rstrip(rules.WHITE_SPACE)
            faults = rule(value)
        for fault in faults:
            self._log.add(fault, line, location)
        return value[:MAX_TEXT]
