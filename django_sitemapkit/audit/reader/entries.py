"""Checks the values of the entries of a document, and keeps the entries until they are taken.

The rules are those of ``protocol``, which writers keep too. For the common forms of valid values
there is a quick check each, a compiled pattern or a set; all others are parsed.
"""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from urllib.parse import quote

from django_sitemapkit.audit.reader.duplicates import DuplicateFinder, LanguageVersions, ListedUrls
from django_sitemapkit.audit.reader.findings import FindingLog, Issue
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.http_headers import http_moment
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.dates import is_common, parse_w3c
from django_sitemapkit.protocol.entries import IndexEntry, UrlEntry
from django_sitemapkit.protocol.limits import CHANGEFREQS, MAX_LOCATION, MIN_LOCATION
from django_sitemapkit.protocol.locations import ENCODED, QUICK_URL, SAFE, Scope, normalise_written
from django_sitemapkit.protocol.values import check_priority, format_changefreq

MAX_TEXT = 8_192
"""Characters of one value that are checked; no valid one has more than 2,047."""

WHITE_SPACE = " \t\r\n"
"""XML's white space; ``str.strip()`` without it would also remove U+00A0 and others."""

FEED_DATES = {
    "pubDate": "Mon, 01 Jan 2024 00:00:00 GMT",
    "updated": "2024-01-01T00:00:00Z",
    "published": "2024-01-01T00:00:00Z",
}
"""The dates of an item of a feed, and an example of each."""

ValueRule = Callable[[str], Iterable[Issue] | None]
"""Raises InvalidValue for a text without white space around it, or returns what else is wrong."""

QUICK_LASTMOD = re.compile(
    r"[12][0-9]{3}-"
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]))?"
)
QUICK_PRIORITIES = frozenset({"0", "1", "1.00"} | {f"{n / 10:.1f}" for n in range(11)})
_CODES = {"loc": "invalid-url", "lastmod": "invalid-date"}


class ListingScope:
    """The URLs that the sitemap at an address may list (sitemaps.org/protocol.html#location).

    ``hosts`` are further origins, in normal form, of which it may list everything.
    """

    def __init__(self, address: str, hosts: Collection[str] = ()) -> None:
        encoded = quote(address.partition("#")[0], safe=SAFE + "%[]", errors="replace")
        try:
            self._scope = Scope.of(normalise_written(encoded))
        except InvalidValue as error:
            raise error.named("the sitemap's address") from error
        origin, directory = self._scope.origin, self._scope.directory
        self._hosts = tuple(f"{host}/" for host in hosts if host != origin)
        self.prefixes = (origin + directory, *self._hosts)
        """All locations of this scope begin with one of these."""
        self.quick = re.compile(re.escape(origin + directory) + ENCODED)
        """Matches most locations of this scope; the others are not necessarily invalid."""

    def check(self, location: str) -> None:
        """Raise InvalidValue if a URL in normal form is outside this scope."""
        if not location.startswith(self._hosts):
            self._scope.check(location)


class EntryChecker:
    """Checks the entries of one document, and logs what is wrong with them.

    ``scope`` is where its pages may be, and ``of_sitemaps`` where its sitemaps may be, if it is an
    index.
    """

    def __init__(
        self,
        log: FindingLog,
        now: dt.datetime,
        max_urls: int,
        scope: ListingScope | None,
        of_sitemaps: ListingScope | None,
        earlier: ListedUrls,
    ) -> None:
        self.urls = 0
        """Entries so far, valid or not."""
        self.entries: list[UrlEntry | IndexEntry] = []
        """Those with a ``loc``, however much is wrong with them; the reader takes them out."""
        self.duplicates = DuplicateFinder(earlier.sources)
        """The URLs or sitemaps so far."""
        self.versions = LanguageVersions()
        """What the entries so far say of their language versions."""
        self._earlier = earlier
        self.max_urls = max_urls
        """Entries that a file may have."""
        self.keeps_urls = True
        """Whether entries are kept that are no sitemaps of an index."""
        self.prefixes = scope.prefixes if scope else ()
        """Locations of pages must begin with one of these, if there are any."""
        # What is two days old in UTC is past in every zone.
        self.past = (now - dt.timedelta(days=2)).date().isoformat()
        """A date; each text of a date or time that sorts before it is past in every zone."""
        self._log = log
        self._scopes = {"URL": scope, "sitemap": of_sitemaps}
        self._now = now
        self._in_quick_form = (scope.quick if scope else QUICK_URL).fullmatch

    def count_entry(self, line: Callable[[], int], what: str = "URLs") -> None:
        """Count an entry; report the first one beyond the limit of a file.

        ``what`` is "URLs" or "sitemaps" for the message. ``line`` returns the current line.
        """
        if self.urls == self.max_urls:
            self._log.add(
                f"too-many-{what.lower()}",
                f"Too many {what}: a file lists at most {self.max_urls:,}; write several.",
                line(),
            )
        self.urls += 1

    def check_url(self, values: list[str | None], line: int, extensions: str = "") -> None:
        """Check the four values of a ``<url>`` that begins in ``line``, and keep it in ``entries``.

        ``extensions`` is the text of its extensions to keep with it. It is not kept without a
        location, or if ``keeps_urls`` is off.
        """
        location, lastmod, changefreq, priority = values
        location = self._checked_location(location, line, "URL")
        if lastmod is not None:
            lastmod = self._checked_lastmod(lastmod, line, location)
        if changefreq is not None and changefreq not in CHANGEFREQS:
            changefreq = self._checked_value(
                "changefreq", changefreq, _changefreq_issues, line, location
            )
        if priority is not None and priority not in QUICK_PRIORITIES:
            priority = self._checked_value("priority", priority, check_priority, line, location)
        if location is not None and self.keeps_urls:
            self.entries.append(
                UrlEntry(
                    location=location,
                    lastmod=lastmod,
                    changefreq=changefreq,
                    priority=priority,
                    extensions=extensions or None,
                )
            )

    def check_sitemap(self, values: list[str | None], line: int) -> None:
        """Check the values of a ``<sitemap>`` that begins in ``line``, and keep it in ``entries``.

        It is not kept without a location.
        """
        location, lastmod, *_ = values
        location = self._checked_location(location, line, "sitemap")
        if lastmod is not None:
            lastmod = self._checked_lastmod(lastmod, line, location)
        if location is not None:
            self.entries.append(IndexEntry(location=location, lastmod=lastmod))

    def finish(self) -> None:
        """Report language versions that do not link back, after the last entry."""
        issues = self._earlier.link_issues(self.versions, self.duplicates.digests)
        for location, code, message in issues:
            self._log.add(code, message, location=location)
        self.versions = LanguageVersions()  # Expat's handlers keep a reader for a while.

    def check_feed_date(self, tag: str, text: str, line: int) -> None:
        """Report an invalid or future date of a feed's item, which begins in ``line``.

        It is the ``pubDate`` of RSS (RFC 822) or a date of Atom (RFC 3339).
        """
        text = text.strip(WHITE_SPACE)
        moment: dt.date | None = None
        if len(text) <= 100:
            with suppress(InvalidValue):
                moment = http_moment(text) if tag == "pubDate" else parse_w3c(text)
        if not isinstance(moment, dt.datetime):
            self._log.add(
                "invalid-feed-date",
                f"Invalid date: {tag} {quoted(text)}; write it as {FEED_DATES[tag]}.",
                line,
            )
        elif moment > self._now:
            self._log.add(
                "future-date", f"Future date: {tag} {quoted(text)} is in the future.", line
            )

    def _checked_location(self, text: str | None, line: int, what: str) -> str | None:
        """Check a location, also for duplicates; return it without white space around it.

        Returns None if it is missing. ``what`` is "URL" or "sitemap".
        """
        if text is None:
            self._log.add(
                "missing-xml-tag",
                "Missing XML tag: an entry has no <loc>, or as an item of a feed no link.",
                line,
            )
            return None
        if (
            self._in_quick_form(text)
            and MIN_LOCATION <= len(text) <= MAX_LOCATION
            # A dot segment may follow; "%2" begins an encoded one.
            and "/." not in text
            and "/%2" not in text
            and self.duplicates.add_quickly([text.encode()])
        ):
            return text
        rule = partial(_location_issues, scope=self._scopes[what])
        location = self._checked_value("loc", text, rule, line, text.strip(WHITE_SPACE)[:MAX_TEXT])
        for issue in self.duplicates.check_and_add(location, what):
            self._log.add(*issue, line, location)
        return location

    def _checked_lastmod(self, text: str, line: int, location: str | None) -> str:
        """Check a lastmod; return it without white space around it."""
        if QUICK_LASTMOD.fullmatch(text) and text < self.past:
            return text
        return self._checked_value("lastmod", text, self._lastmod_issues, line, location)

    def _lastmod_issues(self, lastmod: str) -> Iterator[Issue]:
        """Yield the issues of a lastmod: invalid, uncommon or in the future."""
        try:
            moment = parse_w3c(lastmod)
        except InvalidValue as error:
            yield error.code, f"{error} Write YYYY-MM-DD or YYYY-MM-DDThh:mm:ss+00:00."
            return
        if not is_common(lastmod):
            yield (
                "uncommon-date",
                (
                    f"Uncommon date: some readers reject {quoted(lastmod)}; write YYYY-MM-DD, or a"
                    " time in whole seconds with its zone."
                ),
            )
        # A date has no zone: it is in the future only if it has begun nowhere, not even at UTC+14.
        has_time = isinstance(moment, dt.datetime)
        if moment > (self._now if has_time else (self._now + dt.timedelta(hours=14)).date()):
            yield (
                "future-date",
                (
                    f"Future date: {quoted(lastmod)} is in the future; lastmod is when the page"
                    " last changed. Omit it if that is unknown."
                ),
            )

    def _checked_value(
        self, tag: str, text: str, rule: ValueRule, line: int, location: str | None
    ) -> str:
        """Log what ``rule`` finds wrong with a value; return it without white space around it."""
        value = text.lstrip(WHITE_SPACE)
        if len(value) > MAX_TEXT:
            issue = too_long_issue(_CODES.get(tag, "invalid-tag-value"), tag)
            self._log.add(*issue, line, location)
            return value[:MAX_TEXT]
        value = value.rstrip(WHITE_SPACE)
        try:
            for issue in rule(value) or ():
                self._log.add(*issue, line, location)
        except InvalidValue as error:
            self._log.add(error.code, str(error), line, location)
        return value


def too_long_issue(code: str, what: str) -> Issue:
    """Return the issue of a text that has more characters than are checked."""
    words = code.replace("-", " ").capitalize().replace("url", "URL")
    return code, f"{words}: {what} has more than {MAX_TEXT:,} characters."


def normal_location(location: str) -> str:
    """Return a URL in normal form, so that two spellings compare equal; an invalid one as is."""
    if "%" not in location and QUICK_URL.fullmatch(location):
        return location
    try:
        return normalise_written(location)
    except InvalidValue:
        return location


def _location_issues(location: str, scope: ListingScope | None) -> Iterator[Issue]:
    """Yield the issues of a valid location: outside the scope, or too short.

    Raises InvalidValue if it is invalid.
    """
    normal = normalise_written(location)
    if scope is not None:
        try:
            scope.check(normal)
        except InvalidValue as error:
            yield error.code, str(error)
    if len(location) < MIN_LOCATION:
        yield (
            "short-url",
            (
                f"Short URL: {quoted(location)} has {len(location)} characters; sitemap.xsd"
                f" requires {MIN_LOCATION}, search engines do not."
            ),
        )


def _changefreq_issues(changefreq: str) -> Iterator[Issue]:
    """Yield the issue of a valid changefreq with white space around it.

    Raises InvalidValue for an invalid one. sitemap.xsd derives changefreq from ``xsd:string``,
    which keeps white space; the other values are of types that collapse it.
    """
    format_changefreq(changefreq)
    yield (
        "invalid-tag-value",
        (
            f"Invalid tag value: remove the white space around changefreq {quoted(changefreq)}; it"
            " is part of the value."
        ),
    )
