"""From what a project calls a URL to what may stand in ``loc``: normalise, or refuse by name.

A location is an absolute URL in its one normal form: scheme and host in lower case, host in
ASCII, no default port, percent-encoded as RFC 3986 asks: escapes in upper case, and none for a
character that needs none. It is not yet entity-escaped: that is the writer's part.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from string import ascii_letters, digits
from urllib.parse import quote, urlsplit

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.limits import MAX_LOCATION

DEFAULT_PORTS = {"http": 80, "https": 443}

SAFE = "!$&'()*+,;=:@/?"
"""What RFC 3986 lets stand unencoded in a path or query, beside letters, digits and ``-._~``."""

UNSAFE = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters no URL of a page has a use for: controls, surrogates, noncharacters."""

_RESERVED_ESCAPE = (
    "%(?:[01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF]|[89A-F][0-9A-F])"  # %41 is "A"
)
_CLEAN_PATH = re.compile(rf"/(?:[\w\-.~!$&'()*+,;=:@/?]|{_RESERVED_ESCAPE})*", re.ASCII)
_DOT_SEGMENT = re.compile(r"/\.{1,2}(?=[/?]|\Z)")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = {f"%{ord(one):02X}": one for one in ascii_letters + digits + "-._~"}
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?|\[[0-9a-f:.]+\]")


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a sitemap file stands, and so what it may list (sitemaps.org, "location")."""

    origin: str
    """Scheme, host and port in normal form: ``https://www.example.com:8443``."""
    directory: str = "/"
    """The folder of the file, percent-encoded, with a slash at both ends: ``/catalog/``."""

    @classmethod
    def of(cls, address: str) -> "Scope":
        """Return the scope of the sitemap at ``address``, an absolute URL.

        Raises RefusedValue where ``address`` is no absolute http or https URL.
        """
        origin, rest = _split_origin(address)
        path = _encode(rest).partition("?")[0]
        return cls(origin, path[: path.rindex("/") + 1])

    def normalise(self, url: object) -> str:
        """Return ``url`` as a location within this scope.

        ``url`` is a rooted path (``/catalog/show?item=12``) or an absolute URL, which may leave
        out the scheme, or have ``http`` where the origin has ``https``. Raises RefusedValue where
        it is none, or lies outside, or is 2,048 characters long or longer.
        """
        if not isinstance(url, str):
            raise _invalid(url, "it is not text; return a path or an absolute URL")
        if url.startswith("/") and not url.startswith("//"):
            return self.enclose(_normal_path(url))
        return self.enclose(_normal_path(self._strip_origin(url)))

    def enclose(self, path: str) -> str:
        """Return the location of ``path``, which is in normal form already.

        Raises RefusedValue where it lies outside of this scope, or makes the URL too long.
        """
        if not path.startswith(self.directory):
            raise RefusedValue(
                "url-not-allowed",
                f"URL not allowed: {shown(path)} is not below {self.directory}, where the sitemap"
                " stands; include the sitemap's URLs in a higher directory.",
            )
        return _bounded(self.origin + path)

    def enclose_all(
        self, paths: Sequence[str | None]
    ) -> tuple[list[str | None], dict[int, RefusedValue]]:
        """Return the locations of paths in normal form, and why some of them are refused.

        A path of None stays None. It asks each question of all paths at once before it asks
        them one by one.
        """
        if None not in paths and paths:
            room = MAX_LOCATION - len(self.origin)
            fits = max(map(len, paths)) <= room  # type: ignore[arg-type]
            if fits and self.directory == "/" and "/." not in "\n".join(paths):  # type: ignore[arg-type]
                origin = self.origin
                return [origin + path for path in paths], {}  # type: ignore[operator]
        locations: list[str | None] = []
        refusals: dict[int, RefusedValue] = {}
        for path in paths:
            location = None
            if path is not None:
                try:
                    _refuse_dot_segments(path)
                    location = self.enclose(path)
                except RefusedValue as refusal:
                    refusals[len(locations)] = refusal
            locations.append(location)
        return locations, refusals

    def _strip_origin(self, url: str) -> str:
        if url.startswith(self.origin + "/"):
            return url[len(self.origin) :]
        origin, rest = _split_origin(resolve_scheme(url, self.origin))
        if origin != self.origin and not self._is_own_host(url, origin):
            names_host = "it begins with two slashes and so names a host; "
            raise RefusedValue(
                "url-not-allowed",
                f"URL not allowed: {shown(url)} is not on {self.origin};"
                f" {names_host if url.startswith('//') else ''}"
                "scheme, host and port must be those of the sitemap.",
            )
        return rest

    def _is_own_host(self, url: str, origin: str) -> bool:
        """Return whether a URL names this host by the scheme or port that a proxy in front hides.

        That is how a project behind TLS sees itself: by plain ``http``, or on port 80. A port that
        the site names itself is another server's where it is not the same.
        """
        scheme, _, host = self.origin.partition("://")
        if not url.startswith("//") and not origin.startswith("http:"):
            return False
        port = f":{DEFAULT_PORTS[scheme]}"
        return origin.partition("://")[2].removesuffix(port).removesuffix(":80") == host


def resolve_scheme(url: str, origin: str) -> str:
    """Return ``url`` with the scheme of ``origin`` where it begins with ``//`` (RFC 3986, 4.2)."""
    return f"{origin.partition(':')[0]}:{url}" if url.startswith("//") else url


def normalise_url(url: object, origin: str) -> str:
    """Return ``url`` as an absolute URL of any host: what a page shows may be stored elsewhere.

    ``url`` is an absolute http or https URL, which may leave out the scheme of ``origin``, or a
    rooted path on ``origin``. Raises RefusedValue where it is neither, or is 2,048 characters long
    or longer.
    """
    if not isinstance(url, str):
        raise _invalid(url, "it is not text; give a path or an absolute URL")
    path: str = resolve_scheme(url, origin)
    if not path.startswith("/"):
        origin, path = _split_origin(path)
    return _bounded(origin + _normal_path(path))


def normalise_path(path: str) -> str:
    """Return a rooted path in normal form: percent-encoded where needed, escapes in upper case.

    Raises RefusedValue where it cannot be part of a location.
    """
    if not path.startswith("/"):
        raise _invalid(path, "it does not begin with /")
    if path.startswith("//"):
        raise _invalid(path, "it begins with two slashes and so names a host")
    return _normal_path(path)


def _normal_path(path: str) -> str:
    """Return in normal form what follows a host; behind one it may begin with two slashes."""
    if not _CLEAN_PATH.fullmatch(path):
        path = _encode(path)
    if "/." in path:
        _refuse_dot_segments(path)
    return path


def normalise_pattern(text: str) -> str:
    """Return a pattern, as robots.txt has them, in the normal form that paths have.

    Raises RefusedValue where it begins neither with ``/`` nor with ``*``, or would match no
    location at all.
    """
    text = text.strip()
    if not text.startswith(("/", "*")):
        raise RefusedValue(
            "invalid-pattern", f"Invalid pattern: {shown(text)} begins with neither / nor *."
        )
    # Something stands before and behind it: "*/a" is no host, and "/." begins "/.well-known".
    before = "/x" if text.startswith("*") else ""
    behind = "" if text.endswith("$") else "x"
    return normalise_path(f"{before}{text}{behind}")[len(before) :].removesuffix(behind)


def normal_escapes(path: str) -> str:
    """Give two spellings of one URL one form: ``%C3`` and ``p`` (RFC 3986, 6.2.2), not ``%70``."""
    return _ESCAPE.sub(_normal_escape, path)


def _normal_escape(escape: re.Match[str]) -> str:
    text = escape[0].upper()
    return _UNRESERVED.get(text, text)


def normalise_base(url: str) -> tuple[str, str]:
    """Return ``url`` as (origin, path): ``("https://www.example.com", "/shop")``.

    The path has no slash at its end. Raises RefusedValue unless ``url`` is an absolute http or
    https URL without query and fragment.
    """
    origin, rest = _split_origin(url)
    path = _encode(rest)
    if "?" in path:
        raise _invalid(url, "a base URL has no query")
    path = path.rstrip("/")
    if path.startswith("//"):
        raise _invalid(url, "its path begins with two slashes, which by themselves name a host")
    return origin, path


def _split_origin(url: str) -> tuple[str, str]:
    """Return the normalised origin of an absolute URL, and its path and query as they stand."""
    if unsafe := UNSAFE.search(url):
        raise _invalid(url, f"it contains U+{ord(unsafe[0]):04X}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _invalid(url, str(error)) from error
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS or not parts.hostname:
        raise _invalid(url, "write a path that begins with / or an absolute http(s) URL")
    if "@" in parts.netloc:
        raise _invalid(url, "it carries a user name")
    if port == 0:
        raise _invalid(url, "0 is no port")
    origin = f"{scheme}://{_ascii_host(parts.hostname, url)}"
    if port is not None and port != DEFAULT_PORTS[scheme]:
        origin += f":{port}"
    rest = url[url.index("//") + 2 + len(parts.netloc) :]
    return origin, rest if rest.startswith("/") else f"/{rest}"


def _ascii_host(host: str, url: str) -> str:
    if ":" in host:
        host = f"[{host}]"
    if not host.isascii():
        host = _international_or_refuse(host, url)
    if not _HOST.fullmatch(host):
        raise _invalid(url, f"{host!r} is no host name")
    return host


def _international_or_refuse(host: str, url: str) -> str:
    try:
        return _international(host)
    except ModuleNotFoundError as error:
        raise _invalid(
            url, f"write the host {host!r} in punycode, or install django-sitemapkit[idna]"
        ) from error
    except UnicodeError as error:
        raise _invalid(url, f"the host {host!r} is not allowed by IDNA 2008") from error


@lru_cache(maxsize=256)
def _international(host: str) -> str:
    return str(import_module("django_sitemapkit.protocol.international").to_ascii(host))


def _encode(path: str) -> str:
    """Percent-encode a rooted path and query; what is encoded already is not encoded twice."""
    if unsafe := UNSAFE.search(path):
        raise _invalid(path, f"it contains U+{ord(unsafe[0]):04X}")
    if "#" in path:
        raise _invalid(path, "it has a fragment (#), which search engines drop")
    return normal_escapes(quote(_LONE_PERCENT.sub("%25", path), safe=SAFE + "%"))


def _refuse_dot_segments(path: str) -> None:
    if _DOT_SEGMENT.search(path.partition("?")[0]):
        raise _invalid(path, "it has a . or .. segment, which readers resolve")


def _bounded(location: str) -> str:
    if len(location) > MAX_LOCATION:
        raise _invalid(location, f"it has {len(location):,} characters, {MAX_LOCATION:,} at most")
    return location


def _invalid(url: object, why: str) -> RefusedValue:
    return RefusedValue("invalid-url", f"Invalid URL: {shown(url)}: {why}.")


def shown(value: object) -> str:
    """Return ``value`` fit for a log line: escaped, and cut where it is long."""
    text = ascii(value)
    return text if len(text) <= 120 else f"{text[:100]}...{text[-16:]}"
