"""The rules for one value of a document: a location, a date, a changefreq, a priority.

The rules themselves are those of ``protocol``, which writers keep too. For the common forms of
valid values there is a quick check each, a compiled pattern or a set; all others are parsed.
"""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterator
from urllib.parse import quote

from django_sitemapkit.audit.reader.findings import Issue
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.dates import is_common, parse_w3c
from django_sitemapkit.protocol.limits import MIN_LOCATION
from django_sitemapkit.protocol.locations import ENCODED, SAFE, Scope, normalise_written

WHITE_SPACE = " \t\r\n"
"""XML's white space; ``str.strip()`` without it would also remove U+00A0 and others."""

QUICK_LASTMOD = re.compile(
    r"[12][0-9]{3}-"
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]))?"
)

QUICK_PRIORITIES = frozenset({"0", "1", "1.00"} | {f"{n / 10:.1f}" for n in range(11)})


class ListingScope:
    """What the sitemap at an address may list (sitemaps.org/protocol.html#location).

    ``hosts`` are further origins, in normal form, of which it may list everything.
    """

    __slots__ = ("_hosts", "_scope", "quick")

    def __init__(self, address: str, hosts: Collection[str] = ()) -> None:
        encoded = quote(address.partition("#")[0], safe=SAFE + "%[]", errors="replace")
        try:
            self._scope = Scope.of(normalise_written(encoded))
        except InvalidValue as error:
            raise error.named("the sitemap's address") from error
        origin, directory = self._scope.origin, self._scope.directory
        self._hosts = tuple(f"{host}/" for host in hosts if host != origin)
        self.quick = re.compile(re.escape(origin + directory) + ENCODED)
        """Matches most locations of this scope; the others are not necessarily invalid."""

    def check(self, location: str) -> None:
        """Raise InvalidValue where a URL in normal form is outside this scope."""
        if not location.startswith(self._hosts):
            self._scope.check(location)


def location_issues(location: str, scope: ListingScope | None) -> Iterator[Issue]:
    """Yield what is wrong with the text of a ``loc``, without white space around it."""
    try:
        normal = normalise_written(location)
        if scope is not None:
            scope.check(normal)
    except InvalidValue as error:
        yield Issue.of(error)
        if error.code == "invalid-url":
            return
    if len(location) < MIN_LOCATION:
        yield Issue(
            "short-url",
            f"Short URL: {quoted(location)} has {len(location)} characters; sitemap.xsd asks for"
            f" {MIN_LOCATION}, readers do not.",
            "warning",
        )


def normal_location(location: str) -> str:
    """Return a URL in normal form, so that two spellings compare equal; an invalid one as is."""
    try:
        return normalise_written(location)
    except InvalidValue:
        return location


def lastmod_issues(lastmod: str, now: dt.datetime) -> Iterator[Issue]:
    """Yield what is wrong with the text of a ``lastmod``; ``now`` is an aware datetime."""
    try:
        moment = parse_w3c(lastmod)
    except InvalidValue as error:
        yield Issue(error.code, f"{error} Write YYYY-MM-DD or YYYY-MM-DDThh:mm:ss+00:00.")
        return
    if not is_common(lastmod):
        yield Issue(
            "uncommon-date",
            f"Uncommon date: some readers refuse {quoted(lastmod)}; write YYYY-MM-DD, or a time in"
            " whole seconds with its zone.",
            "warning",
        )
    if _is_future(moment, now):
        yield Issue(
            "future-date",
            f"Future date: {quoted(lastmod)} is in the future; lastmod is when the page last"
            " changed. Omit it where that is unknown.",
            "warning",
        )


def issues_of(check: Callable[[str], None], text: str) -> Iterator[Issue]:
    """Yield what a rule of the protocol finds wrong with a text."""
    try:
        check(text)
    except InvalidValue as error:
        yield Issue.of(error)


def spaced_changefreq(changefreq: str) -> Issue:
    """Return the issue of a ``changefreq`` that is valid but for white space around it.

    sitemap.xsd derives it from ``xsd:string``, which keeps white space; the other values are of
    types that collapse it.
    """
    return Issue(
        "invalid-tag-value",
        f"Invalid tag value: remove the white space around changefreq {quoted(changefreq)}; it is"
        " part of the value.",
    )


def too_many(what: str, limit: int) -> Issue:
    """Return the issue of a file that lists more "URLs" or "sitemaps" than it may."""
    return Issue(
        f"too-many-{what.lower()}",
        f"Too many {what}: a file lists at most {limit:,}; write several.",
    )


def too_long(code: str, tag: str, limit: int) -> Issue:
    """Return the issue of a value that no reader would accept."""
    words = code.replace("-", " ").capitalize().replace("url", "URL")
    return Issue(code, f"{words}: {tag} has more than {limit:,} characters.")


def _is_future(moment: dt.date | dt.datetime, now: dt.datetime) -> bool:
    if isinstance(moment, dt.datetime):
        return moment > now
    # A date has no zone: it is in the future only if it has begun nowhere, not even at UTC+14.
    return moment > (now + dt.timedelta(hours=14)).date()
