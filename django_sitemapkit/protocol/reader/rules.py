"""The rules for one value: a location, a date, a changefreq, a priority.

Each rule has a quick form, a compiled pattern or a set, that takes nearly all valid values, and
a slow one that decides the others and says what is wrong. Only the slow ones are complete.
"""

import datetime as dt
import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from urllib.parse import quote

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.dates import parse_w3c
from django_sitemapkit.protocol.limits import CHANGEFREQS, MAX_LOCATION, MIN_LOCATION
from django_sitemapkit.protocol.locations import normal_escapes
from django_sitemapkit.protocol.reader.findings import Fault, shown

WHITE_SPACE = " \t\r\n"
"""XML's white space; ``str.strip()`` alone would take away U+00A0 and others too."""

_SAFE = "!$&'()*+,;=:@/?"
_UNRESERVED = r"[A-Za-z0-9\-._~!$&'()*+,;=:@/?]*"
_REST = rf"{_UNRESERVED}(?:%[0-9A-Fa-f]{{2}}{_UNRESERVED})*"
_LABEL = "[A-Za-z0-9_-]{1,63}"
_ABSOLUTE = re.compile(r"(https?)://([^/?#]*)([^#]*)(#?)", re.IGNORECASE)
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]+\])(?::([0-9]{{1,5}}))?")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNSAFE = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]")
_DOT_SEGMENT = re.compile(r"/(?:\.|%2e){1,2}(?=[/?]|\Z)", re.IGNORECASE)
_PATH_BEGINS = re.compile(r"(?=[/?])")
_DEFAULT_PORTS = {"http": "80", "https": "443"}

_QUICK_HOST = r"https?://(?:[a-z0-9-]{1,63}\.)+[a-z0-9-]{1,63}"

QUICK_LOCATION = re.compile(rf"{_QUICK_HOST}/{_REST}")

# With a port, but neither too long nor with a dot segment, which may be encoded.
QUICK_URL = re.compile(
    rf"(?!.*/(?:\.|%2)|.{{{MAX_LOCATION + 1}}}){_QUICK_HOST}(?::[1-9][0-9]{{1,3}})?/{_REST}"
)

QUICK_LASTMOD = re.compile(
    r"[12][0-9]{3}-"
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]))?"
)

QUICK_PRIORITIES = frozenset({"0", "1", "1.00"} | {f"{n / 10:.1f}" for n in range(11)})

_EVERYWHERE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00))?"
)
DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


class Scope:
    """Where a sitemap stands, and so what it may list (sitemaps.org/protocol.html#location).

    ``hosts`` are further origins, in normal form, of which it may list everything.
    """

    __slots__ = ("directory", "hosts", "origin", "quick")

    def __init__(self, address: str, hosts: Collection[str] = ()) -> None:
        self.hosts = frozenset(hosts)
        address = quote(address.partition("#")[0], safe=_SAFE + "%[]", errors="replace")
        if why := _why_broken(address):
            raise RefusedValue(
                "invalid-url", f"Invalid URL: the sitemap's address {shown(address)}: {why}."
            )
        self.origin, path = _split(address)
        path = path.partition("?")[0]
        self.directory = path[: path.rindex("/") + 1]
        self.quick = re.compile(re.escape(self.origin + self.directory) + _REST)
        """What takes most locations of this scope at once; the others are not yet wrong."""

    def faults(self, location: str) -> Iterator[Fault]:
        """Yield what keeps a valid ``location`` out of this scope."""
        origin, path = _split(location)
        if origin != self.origin:
            if origin not in self.hosts:
                yield _not_allowed(
                    location,
                    f"it is not on {self.origin}; scheme, host and port must be the sitemap's",
                )
        elif not path.startswith(self.directory):
            yield _not_allowed(
                location,
                f"it is not below {shown(self.directory)}, where the sitemap stands;"
                " move the sitemap to a higher directory",
            )


def location_faults(location: str, scope: Scope | None) -> Iterator[Fault]:
    """Yield what is wrong with the text of a ``loc``, white space around it already gone."""
    if why := _why_broken(location):
        yield Fault("invalid-url", f"Invalid URL: {shown(location)}: {why}.")
        return
    if scope is not None:
        yield from scope.faults(location)
    if len(location) < MIN_LOCATION:
        yield Fault(
            "short-url",
            f"Short URL: {shown(location)} has {len(location)} characters; sitemap.xsd asks for"
            f" {MIN_LOCATION}, readers do not.",
            "warning",
        )


def url_faults(what: str, url: str) -> Iterator[Fault]:
    """Yield what is wrong with a URL that need not be within a scope, such as an image's."""
    if not QUICK_URL.fullmatch(url) and (why := _why_broken(url)):
        yield Fault("invalid-url", f"Invalid URL: {what} {shown(url)}: {why}.")


def normal_location(location: str) -> str:
    """Return a URL in normal form, in which two spellings of one are equal; or, broken, itself."""
    return location if _why_broken(location) else "".join(_split(location))


def lastmod_faults(lastmod: str, now: dt.datetime) -> Iterator[Fault]:
    """Yield what is wrong with the text of a ``lastmod``; ``now`` is an aware datetime."""
    try:
        # No date is this long, and the error quotes what it was given in full.
        moment = parse_w3c(lastmod if len(lastmod) <= 64 else lastmod[:64] + "...")
    except RefusedValue as error:
        way_out = "Write YYYY-MM-DD or YYYY-MM-DDThh:mm:ss+00:00."
        yield Fault("invalid-date", f"{error} {way_out}")
        return
    if not _EVERYWHERE.fullmatch(lastmod):
        yield Fault(
            "uncommon-date",
            f"Uncommon date: some readers refuse {shown(lastmod)}; write YYYY-MM-DD, or a time in"
            " whole seconds with its zone.",
            "warning",
        )
    if _lies_ahead(moment, now):
        yield Fault(
            "future-date",
            f"Future date: {shown(lastmod)} is yet to come; lastmod is when the page last changed,"
            " leave it out where that is unknown.",
            "warning",
        )


def changefreq_faults(changefreq: str) -> Iterator[Fault]:
    """Yield what is wrong with the text of a ``changefreq``, white space around it gone."""
    if changefreq not in CHANGEFREQS:
        words = "always, hourly, daily, weekly, monthly, yearly, never"
        yield Fault(
            "invalid-tag-value",
            f"Invalid tag value: changefreq {shown(changefreq)} is not one of {words}.",
        )


def priority_faults(priority: str) -> Iterator[Fault]:
    """Yield what is wrong with the text of a ``priority``, white space around it gone."""
    if not DECIMAL.fullmatch(priority) or not 0 <= Decimal(priority) <= 1:
        yield Fault(
            "invalid-tag-value",
            f"Invalid tag value: priority {shown(priority)} is not a decimal number from 0.0 to"
            " 1.0.",
        )


def spaced_changefreq(changefreq: str) -> Fault:
    """Return the fault of a ``changefreq`` that is right but for white space around it.

    sitemap.xsd derives it from ``xsd:string``, whose white space stands; the other values are
    of types that collapse it.
    """
    return Fault(
        "invalid-tag-value",
        f"Invalid tag value: white space around changefreq {shown(changefreq)} is part of it;"
        " leave it out.",
    )


def too_many(what: str, limit: int) -> Fault:
    """Return the fault of a file that lists more "URLs" or "sitemaps" than it may."""
    return Fault(
        f"too-many-{what.lower()}",
        f"Too many {what}: a file lists at most {limit:,}; write several.",
    )


def too_long(code: str, tag: str, limit: int) -> Fault:
    """Return the fault of a value that no reader would take in."""
    words = code.replace("-", " ").capitalize().replace("url", "URL")
    return Fault(code, f"{words}: {tag} has more than {limit:,} characters.")


def _lies_ahead(moment: dt.date | dt.datetime, now: dt.datetime) -> bool:
    if isinstance(moment, dt.datetime):
        return moment > now
    # A date has no zone: it lies ahead only where it has begun nowhere, not even at UTC+14.
    return moment > (now + dt.timedelta(hours=14)).date()


def _why_broken(url: str) -> str | None:
    """Return why ``url`` is no percent-encoded absolute http(s) URL, or None if it is one."""
    parts = _ABSOLUTE.match(url)
    if parts is None:
        return "it is not an absolute http(s) URL; write scheme and host, as in https://"
    if len(url) > MAX_LOCATION:
        return f"it has {len(url):,} characters, {MAX_LOCATION:,} at most"
    _, authority, rest, fragment = parts.groups()
    if fragment:
        return "it has a fragment (#), which search engines drop"
    return _why_broken_host(authority) or _why_broken_path(rest)


def _why_broken_host(authority: str) -> str | None:
    if "@" in authority:
        return "it carries a user name"
    host = _HOST.fullmatch(authority)
    if host is None:
        return f"{shown(authority)} is no host; beyond ASCII, write it in punycode"
    if host[1] and not 0 < int(host[1]) < 65_536:
        return f"{host[1]} is no port"
    return None


def _why_broken_path(path: str) -> str | None:
    if unsafe := _UNSAFE.search(path):
        # Not one code point is beyond this: expat lets no surrogate through.
        return f"{shown(unsafe[0])} must be percent-encoded; write {quote(unsafe[0])}"
    if _LONE_PERCENT.search(path):
        return "a % begins no escape; write %25"
    if _DOT_SEGMENT.search(path.partition("?")[0]):
        return "it has a . or .. segment, which readers resolve; write the resolved path"
    return None


def _split(url: str) -> tuple[str, str]:
    """Return the origin and the rest of an unbroken URL in normal form (RFC 3986, 6.2.2)."""
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    authority, *path = _PATH_BEGINS.split(rest, maxsplit=1)
    authority = authority.lower().removesuffix(":" + _DEFAULT_PORTS[scheme])
    normal = normal_escapes("".join(path))
    return f"{scheme}://{authority}", normal if normal.startswith("/") else "/" + normal


def _not_allowed(location: str, why: str) -> Fault:
    return Fault("url-not-allowed", f"URL not allowed: {shown(location)}: {why}.")
