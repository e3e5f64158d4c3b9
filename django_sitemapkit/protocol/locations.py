"""The grammar of URLs: normalise what a project gives, and check what a document holds.

A location is an absolute URL in normal form: scheme and host in lower case, host in ASCII, no
default port, percent-encoded as RFC 3986 asks (escapes in upper case, and only where a character
needs one). Escaping of XML entities is left to the writer.

``Scope.normalise``, ``normalise_url`` and ``normalise_path`` take URLs that may still need
encoding. ``normalise_written`` takes a URL as a document states it, where nothing may be missing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from string import ascii_letters, digits
from typing import Any
from urllib.parse import quote, urlsplit

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.extras import how_to_install
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.limits import MAX_LOCATION

DEFAULT_PORTS = {"http": 80, "https": 443}

SAFE = "!$&'()*+,;=:@/?"
"""What RFC 3986 allows unencoded in a path or query, besides letters, digits and ``-._~``."""

UNSAFE = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters no URL of a page needs: controls, surrogates, noncharacters."""

UNENCODED = rf"A-Za-z0-9\-._~{SAFE}"
"""All that RFC 3986 allows unencoded in a path or query, for a class of a regular expression."""

ESCAPE = "%[0-9A-Fa-f]{2}"
"""A regular expression for a percent-encoded byte."""

ENCODED = rf"[{UNENCODED}]*(?:{ESCAPE}[{UNENCODED}]*)*"
"""A regular expression for a path and query in which nothing is left to encode."""

_NOT_ENCODED = re.compile(rf"[^{UNENCODED}%]|(?!{ESCAPE})%")

_RESERVED_ESCAPE = (
    "%(?:[01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF]|[89A-F][0-9A-F])"  # %41 is "A"
)
_CLEAN_PATH = re.compile(rf"/(?:[{UNENCODED}]|{_RESERVED_ESCAPE})*")
_CLEAN_PATHS = re.compile(rf"(?:/(?!/)(?:[{UNENCODED}]++|{_RESERVED_ESCAPE})*+(?:\n|\Z))+")
_DOT_SEGMENT = re.compile(r"/(?:\.|%2e){1,2}(?=[/?]|\Z)", re.IGNORECASE)
# A label begins with a letter or digit (RFC 1123, 2.1). It must not end with a hyphen either, but
# hosts that do are in use, and browsers open them.
_LABEL = "[a-z0-9][a-z0-9-]{0,62}+"

QUICK_ORIGIN = rf"https?://{_LABEL}(?:\.{_LABEL})++(?::(?!443/|80/)[1-9][0-9]{{1,3}})?+"
"""A regular expression for most origins in normal form, before a path."""

PERHAPS_DOTS = r"\.|%2"
"""A regular expression for how a dot segment begins, encoded or not; others begin so too."""

# Most valid URLs: neither too long nor with a dot segment, which may be encoded.
QUICK_URL = re.compile(
    rf"(?!.*/(?:{PERHAPS_DOTS})|.{{{MAX_LOCATION + 1}}}){QUICK_ORIGIN}/{ENCODED}"
)
"""Matches most valid URLs: neither too long nor with a dot segment."""

_ESCAPED_ENTITY = re.compile(
    "(?:&|%26)(?:amp|lt|gt|quot|apos|(?:#|%23)(?:[0-9]+|x[0-9a-f]+))(?:;|%3B)", re.IGNORECASE
)
# Of what has to be escaped alone: "/100%2550/" is "100%50". Bytes beyond ASCII come in pairs.
_ESCAPED_ESCAPE = re.compile(
    "%25(?:2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCD]|[C-F][0-9A-F]%25[89AB][0-9A-F])", re.IGNORECASE
)
_HOLDS_URL = re.compile("[/:]|%2F|%3A", re.IGNORECASE)

_AUTHORITY = re.compile(r"https?://([^/?#]+)", re.IGNORECASE)
_ESCAPE = re.compile(ESCAPE)
_UNRESERVED_ESCAPES = {f"%{ord(one):02X}": one for one in ascii_letters + digits + "-._~"}
_LONE_PERCENT = re.compile(rf"(?!{ESCAPE})%")
_HOST = re.compile(r"[a-z0-9_][a-z0-9_-]{0,62}(?:\.[a-z0-9_][a-z0-9_-]{0,62})*\.?|\[[0-9a-f:.]+\]")


@dataclass(frozen=True, slots=True)
class Scope:
    """The origin and directory of a sitemap file, which may list only URLs in that directory.

    The rule is that of sitemaps.org, "location".
    """

    origin: str
    """Scheme, host and port in normal form: ``https://www.example.com:8443``."""
    directory: str = "/"
    """The folder of the file, percent-encoded, with a slash at both ends: ``/catalog/``."""

    @classmethod
    def of(cls, address: str) -> "Scope":
        """Return the scope of the sitemap at ``address``, an absolute URL.

        Raises InvalidValue if ``address`` is not an absolute http or https URL.
        """
        origin, rest = split_origin(address)
        path = _encode(rest).partition("?")[0]
        return cls(origin, path[: path.rindex("/") + 1])

    def normalise(self, url: object) -> str:
        """Return ``url`` as a location within this scope: absolute, and in normal form.

        ``url`` is a rooted path (``/catalog/show?item=12``) or an absolute URL, which may omit the
        scheme, or have ``http`` if the origin has ``https``. Raises InvalidValue if it is neither,
        lies outside this scope, or has 2,048 characters or more.
        """
        if not isinstance(url, str):
            raise _invalid_url(url, "it is not a string; return a path or an absolute URL")
        is_rooted = url.startswith("/") and not url.startswith("//")
        path = _normal_path(url if is_rooted else self._path_on_origin(url))
        self._check_directory(path)
        return check_length(self.origin + path)

    def normalise_all(self, urls: Sequence[Any]) -> list[Any]:
        """Return for each URL its location, or the InvalidValue that `normalise` raises for it.

        None, and an InvalidValue, are returned as they are. If all are rooted paths of plain
        characters, they are checked at once.
        """
        if set(map(type, urls)) == {str}:
            text = "\n".join(urls)
            if text.count("\n") == len(urls) - 1 and _CLEAN_PATHS.fullmatch(text):
                return self.enclose_all(urls)
        return list(map(self._normalised_or_error, urls))

    def enclose_all(self, paths: Sequence[Any]) -> list[Any]:
        """Return for each path its location, or the InvalidValue that `normalise` raises for it.

        The paths are rooted and in normal form already. None, and an InvalidValue, are returned as
        they are. Each rule is checked for all paths at once, and one by one only if that fails.
        """
        if set(map(type, paths)) == {str}:
            origin, directory = self.origin, self.directory
            fits = max(map(len, paths)) <= MAX_LOCATION - len(origin)
            is_inside = directory == "/" or all(path.startswith(directory) for path in paths)
            if fits and is_inside and "/." not in "\n".join(paths):
                return [origin + path for path in paths]
        return list(map(self._normalised_or_error, paths))

    def _normalised_or_error(self, url: Any) -> Any:
        """Return the location of a URL, or the InvalidValue; None and an InvalidValue stay."""
        if url is None or isinstance(url, InvalidValue):
            return url
        try:
            return self.normalise(url)
        except InvalidValue as refusal:
            return refusal

    def check(self, location: str) -> None:
        """Raise InvalidValue if ``location``, a URL in normal form, lies outside this scope."""
        if not location.startswith(self.origin + "/"):
            raise self._not_on_origin(location)
        self._check_directory(location[len(self.origin) :])

    def _path_on_origin(self, url: str) -> str:
        """Return the path and query, unchanged, of a URL on this origin.

        Its scheme or port may be those that a proxy hides. Raises InvalidValue if it is on another
        origin or has none.
        """
        if url.startswith(self.origin + "/"):
            return url[len(self.origin) :]
        origin, rest = split_origin(resolve_scheme(url, self.origin))
        if origin != self.origin and not self._is_own_host(url, origin):
            raise self._not_on_origin(url)
        return rest

    def _check_directory(self, path: str) -> None:
        """Raise InvalidValue unless a path is below the sitemap's directory."""
        if not path.startswith(self.directory):
            raise InvalidValue(
                "url-not-allowed",
                f"URL not allowed: {quoted(path)} is not below {self.directory}, the sitemap's"
                " directory; move the sitemap to a higher one.",
            )

    def _not_on_origin(self, url: str) -> InvalidValue:
        """Return the error for a URL that is on another origin."""
        names_host = "two slashes at the beginning mean a host; " if url.startswith("//") else ""
        return InvalidValue(
            "url-not-allowed",
            f"URL not allowed: {quoted(url)} is not on {self.origin}; {names_host}scheme, host and"
            " port must be those of the sitemap.",
        )

    def _is_own_host(self, url: str, origin: str) -> bool:
        """Return whether a URL has this origin but for a scheme or port that a proxy hides.

        ``origin`` is that of ``url``. A project behind TLS sees itself under plain ``http``, or on
        port 80. If the site's own URL has a port, another port belongs to another server.
        """
        scheme, _, host = self.origin.partition("://")
        if not url.startswith("//") and not origin.startswith("http:"):
            return False
        port = f":{DEFAULT_PORTS[scheme]}"
        return origin.partition("://")[2].removesuffix(port).removesuffix(":80") == host


def resolve_scheme(url: str, origin: str) -> str:
    """Return ``url`` with the scheme of ``origin`` if it begins with ``//`` (RFC 3986, 4.2)."""
    return f"{origin.partition(':')[0]}:{url}" if url.startswith("//") else url


def normalise_url(url: object, origin: str) -> str:
    """Return ``url`` as an absolute URL in normal form, on any host.

    ``url`` is an absolute http or https URL, which may omit the scheme of ``origin``, or a rooted
    path on ``origin``. Raises InvalidValue if it is neither, or has 2,048 characters or more.
    """
    if not isinstance(url, str):
        raise _invalid_url(url, "it is not a string; give a path or an absolute URL")
    path: str = resolve_scheme(url, origin)
    if not path.startswith("/"):
        origin, path = split_origin(path)
    return check_length(origin + _normal_path(path))


def normalise_written(url: str) -> str:
    """Return the normal form of a URL that is written in a document.

    Raises InvalidValue unless it is absolute and percent-encoded, with a host in ASCII, and for
    what ``normalise_url`` does not accept either.
    """
    authority = _AUTHORITY.match(url)
    if authority is None:
        raise _invalid_url(url, "it is not an absolute http(s) URL; write https:// and the host")
    if not authority[0].isascii():
        raise _invalid_url(url, "its host is not ASCII; write it in punycode")
    if authority[0].endswith(":"):
        raise _invalid_url(url, "it has a colon without a port")
    rest = check_length(url)[authority.end() :].partition("#")[0]
    if unencoded := _NOT_ENCODED.search(rest):
        character = unencoded[0]
        raise _invalid_url(url, f"{character!a} must be percent-encoded; write {quote(character)}")
    return normalise_url(url, "")


def check_url(url: str) -> None:
    """Raise InvalidValue unless ``url`` is one that ``normalise_written`` accepts."""
    if not QUICK_URL.fullmatch(url):
        normalise_written(url)


def normalise_path(path: str) -> str:
    """Return a rooted path in normal form: percent-encoded where needed, escapes in upper case.

    Raises InvalidValue if it cannot be part of a location.
    """
    if not path.startswith("/"):
        raise _invalid_url(path, "it does not begin with /")
    if path.startswith("//"):
        raise _invalid_url(path, "two slashes at the beginning mean a host")
    return _normal_path(path)


def _normal_path(path: str) -> str:
    """Return a path with its query, percent-encoded in normal form; it may begin with two slashes.

    Raises InvalidValue for a . or .. segment.
    """
    if not _CLEAN_PATH.fullmatch(path):
        path = _encode(path)
    if "/." in path and has_dot_segment(path):
        raise _invalid_url(path, "it has a . or .. segment; write the path that it resolves to")
    return path


def normalise_pattern(text: str) -> str:
    """Return a path pattern in the syntax of robots.txt, percent-encoded as paths in normal form.

    Raises InvalidValue if it begins with neither ``/`` nor ``*``, or cannot match any location.
    """
    text = text.strip()
    if not text.startswith(("/", "*")):
        raise InvalidValue(
            "invalid-pattern", f"Invalid pattern: {quoted(text)} begins with neither / nor *."
        )
    # It is checked within a longer path: "*/a" names no host, and "/." begins "/.well-known".
    before = "/x" if text.startswith("*") else ""
    behind = "" if text.endswith("$") else "x"
    return normalise_path(f"{before}{text}{behind}")[len(before) :].removesuffix(behind)


def _normal_escape(escape: re.Match[str]) -> str:
    """Return an escape in normal form: ``%C3``, and ``p``, not ``%70`` (RFC 3986, 6.2.2)."""
    text = escape[0].upper()
    return _UNRESERVED_ESCAPES.get(text, text)


def normalise_base(url: str) -> tuple[str, str]:
    """Return the base URL of a site as origin and path: ``("https://www.example.com", "/shop")``.

    The path does not end with a slash. Raises InvalidValue unless ``url`` is an absolute http or
    https URL without a query and a fragment.
    """
    origin, rest = split_origin(url)
    path = _encode(rest)
    if "?" in path:
        raise _invalid_url(url, "a base URL has no query")
    path = path.rstrip("/")
    if path.startswith("//"):
        raise _invalid_url(url, "its path begins with two slashes, which would mean a host")
    return origin, path


def split_origin(url: str) -> tuple[str, str]:
    """Return the origin of an absolute URL in normal form, and the rest of the URL unchanged.

    The rest begins with a slash. Raises InvalidValue if ``url`` is not an absolute http or https
    URL.
    """
    if unsafe := UNSAFE.search(url):
        raise _invalid_url(url, f"it contains U+{ord(unsafe[0]):04X}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _invalid_url(url, str(error)) from error
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS or not parts.hostname:
        raise _invalid_url(url, "write a path that begins with / or an absolute http(s) URL")
    if "@" in parts.netloc:
        raise _invalid_url(url, "it contains a user name")
    if port == 0:
        raise _invalid_url(url, "0 is not a port")
    if "[" in parts.netloc and ":" not in parts.hostname:
        raise _invalid_url(url, f"{parts.netloc!r} is not an IPv6 address")
    origin = f"{scheme}://{_ascii_host(parts.hostname, url)}"
    if port is not None and port != DEFAULT_PORTS[scheme]:
        origin += f":{port}"
    rest = url[url.index("//") + 2 + len(parts.netloc) :]
    return origin, rest if rest.startswith("/") else f"/{rest}"


def _ascii_host(host: str, url: str) -> str:
    """Return a host in ASCII, an IPv6 address in brackets.

    Raises InvalidValue, with ``url`` in its message, for what is not a host name.
    """
    if ":" in host:
        host = f"[{host}]"
    if not host.isascii():
        try:
            host = _idna_host(host)
        except ModuleNotFoundError as error:
            raise _invalid_url(
                url, f"write the host {host!r} in punycode, or {how_to_install('idna')}"
            ) from error
        except UnicodeError as error:
            raise _invalid_url(url, f"the host {host!r} is not allowed by IDNA 2008") from error
    if not _HOST.fullmatch(host):
        raise _invalid_url(url, f"{host!r} is not a host name")
    return host


@lru_cache(maxsize=256)
def _idna_host(host: str) -> str:
    """Return a host beyond ASCII as IDNA 2008 (RFC 5891) writes it: ``xn--bcher-kva.example``.

    Raises UnicodeError if IDNA does not allow it, and ImportError without the package ``idna``.
    """
    return str(import_module("idna").encode(host, uts46=True).decode("ascii"))


def _encode(path: str) -> str:
    """Percent-encode a rooted path and query; nothing is encoded twice.

    Raises InvalidValue for a fragment and for control characters.
    """
    if unsafe := UNSAFE.search(path):
        raise _invalid_url(path, f"it contains U+{ord(unsafe[0]):04X}")
    if "#" in path:
        raise _invalid_url(path, "it has a fragment (#), which search engines drop")
    return _ESCAPE.sub(_normal_escape, quote(_LONE_PERCENT.sub("%25", path), safe=SAFE + "%"))


def has_dot_segment(path: str) -> bool:
    """Return whether a path with its query has a ``.`` or ``..`` segment, encoded or not."""
    return _DOT_SEGMENT.search(path.partition("?")[0]) is not None


def is_escaped_twice(location: str) -> bool:
    """Return whether a URL looks escaped twice: ``?a=1&amp;b=2`` or ``/caf%25C3%25A9``.

    ``location`` is without the escaping of XML. A parameter that holds a URL has escapes that are
    escaped, which is right.
    """
    if "%25" not in location and ";" not in location and "%3" not in location:
        return False
    if _ESCAPED_ENTITY.search(location):
        return True
    path, _, query = location.partition("?")
    texts = [path, *(text for text in query.split("&") if not _HOLDS_URL.search(text))]
    return any(map(_ESCAPED_ESCAPE.search, texts))


def check_length(location: str) -> str:
    """Return a location as it is. Raises InvalidValue if it is too long."""
    if len(location) > MAX_LOCATION:
        raise _invalid_url(
            location, f"it has {len(location):,} characters, {MAX_LOCATION:,} at most"
        )
    return location


def _invalid_url(url: object, why: str) -> InvalidValue:
    return InvalidValue("invalid-url", f"{quoted(url)}: {why}.", "Invalid URL")
