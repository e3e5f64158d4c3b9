"""What people paste where a path is asked for: a URL out of a browser, a path, a bit of either."""

import re
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.protocol.locations import UNSAFE, Scope, normalise_path
from django_sitemapkit.sites import Site

MAX_PASTED = 4 * MAX_LOCATION
"""Characters looked at: percent-encoding only makes them more."""

_WEB_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_DOT_SEGMENT = re.compile(r"/(?:\.|%2e){1,2}(?=[/?]|\Z)", re.IGNORECASE)


def pasted_path(site: Site, text: str, scope: Scope | None = None) -> str:
    """Return the path in normal form, with its query, that ``text`` means on ``site``.

    ``text`` is a URL of the site, http or https, be the host in upper case, with its default port
    or in its own script; or a path, percent-encoded or not. A slash may be missing at its
    beginning where the text can mean nothing but a path. ``scope`` is the site's, for callers with
    many texts. Raises RefusedValue for anything else,
    and for a path that the site's sitemap may not list.
    """
    text = text.strip()
    if not text:
        raise _refused(_("Write a path, such as /about/, or paste a URL of the site."))
    if len(text) > MAX_PASTED:
        raise _refused(_too_long())
    if unsafe := UNSAFE.search(text):
        raise _refused(
            _("It contains a character that no URL has: U+%(code)04X.") % {"code": ord(unsafe[0])}
        )
    if "#" in text:
        raise _refused(
            _("It has a fragment (#), which search engines drop; leave out what begins with #.")
        )
    path = _rooted(site, text)
    if _DOT_SEGMENT.search(path.partition("?")[0]):
        raise _refused(_("It has a . or .. segment; write the path that it leads to."))
    return _within_scope(scope or site.scope(), normalise_path(path))


def _rooted(site: Site, text: str) -> str:
    """Return the path in ``text``, from the root of the host on, as it stands there."""
    if text.startswith("//"):
        return _without_host(site, f"{site.origin.partition(':')[0]}:{text}")
    if text.startswith("/"):
        return text
    if _WEB_ADDRESS.match(text):
        return _without_host(site, text)
    first = re.split("[/?]", text, maxsplit=1)[0]
    if first.lower() == _host(site.origin):
        return _without_host(site, f"{site.origin.partition(':')[0]}://{text}")
    if ":" in first:
        raise _refused(_no_address())
    if not first or "." in first:
        raise _refused(_("It may be a path or a host; begin a path with a slash."))
    return f"/{text}"


def _without_host(site: Site, url: str) -> str:
    """Return what follows the host in a URL of the site."""
    try:
        origin = Scope.of(url).origin
    except RefusedValue as refusal:
        raise _refused(_no_address()) from refusal
    if _host(origin) != _host(site.origin):
        raise RefusedValue(
            "url-not-allowed",
            _("It is on another host; the site is %(origin)s.") % {"origin": site.origin},
        )
    rest = url[url.index("//") + 2 + len(urlsplit(url).netloc) :]
    if rest.startswith("//"):  # A path, such as is stored, that by itself would name a host.
        raise _refused(_no_address())
    return rest if rest.startswith("/") else f"/{rest}"


def _host(origin: str) -> str:
    """Return host and port: what is pasted may be http where the site is https by now."""
    return origin.partition("://")[2]


def _within_scope(scope: Scope, path: str) -> str:
    if not path.startswith(scope.directory):
        raise RefusedValue(
            "url-not-allowed",
            _("It is not below %(directory)s, where the sitemap stands.")
            % {"directory": scope.directory},
        )
    if len(scope.origin) + len(path) > MAX_LOCATION:
        raise _refused(_too_long())
    return path


def _no_address() -> str:
    return _("It is no web address; write a path, or a URL with http or https.")


def _too_long() -> str:
    return _("It is too long: a URL has %(count)s characters at most, percent-encoded.") % {
        "count": f"{MAX_LOCATION:,}"
    }


def _refused(message: str) -> RefusedValue:
    return RefusedValue("invalid-url", message)
