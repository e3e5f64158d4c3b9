"""Reads a path from what editors paste: a URL from a browser, a path, or part of one."""

import re

from django.utils.translation import gettext as _

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.protocol.locations import (
    UNSAFE,
    Scope,
    has_dot_segment,
    normalise_path,
    resolve_scheme,
    split_origin,
)
from django_sitemapkit.sites import SitemapSite

MAX_PASTED = 4 * MAX_LOCATION
"""Maximum number of characters, before percent-encoding adds more."""

_WEB_ADDRESS = re.compile(r"https?://", re.IGNORECASE)


def pasted_path(site: SitemapSite, text: str) -> str:
    """Return the normalised path on ``site``, with its query, of a text that an editor entered.

    ``text`` is a URL of the site or a path. The URL can be http or https, and its host can be in
    upper case, have the default port, or be internationalised. The path can be percent-encoded or
    not; its leading slash is optional if the text can only be a path. Raises InvalidValue for any
    other text, and for paths outside the scope of the site.
    """
    text = text.strip()
    if not text:
        raise _invalid_url(_("Enter a path such as /about/, or paste a URL of the site."))
    if len(text) > MAX_PASTED:
        raise _invalid_url(_too_long_message())
    if unsafe := UNSAFE.search(text):
        raise _invalid_url(
            _("It contains a character that URLs cannot contain: U+%(code)04X.")
            % {"code": ord(unsafe[0])}
        )
    if "#" in text:
        raise _invalid_url(
            _("It has a fragment, which search engines ignore. Remove the part from # on.")
        )
    path = _path_from_root(site, text)
    if has_dot_segment(path):
        raise _invalid_url(_("It has a . or .. segment. Enter the path it leads to."))
    return _checked_path(site.scope(), normalise_path(path))


def _path_from_root(site: SitemapSite, text: str) -> str:
    """Return the path in ``text``, with a leading slash, not normalised; raises InvalidValue."""
    if text.startswith("//") or _WEB_ADDRESS.match(text):
        return _without_host(site, text)
    if text.startswith("/"):
        return text
    first = re.split("[/?]", text, maxsplit=1)[0]
    if first.lower() == _host_and_port(site.origin):
        return _without_host(site, f"//{text}")
    if ":" in first:
        raise _invalid_url(_not_a_web_address_message())
    if not first or "." in first or " " in first:
        raise _invalid_url(_("This may be a host, or other text. Start a path with a slash."))
    return f"/{text}"


def _without_host(site: SitemapSite, url: str) -> str:
    """Return the path and query of a URL of the site, whose scheme may be missing.

    Raises InvalidValue if its host is another, if it is not a web address, or if its path begins
    with two slashes.
    """
    try:
        origin, rest = split_origin(resolve_scheme(url, site.origin))
    except InvalidValue as error:
        raise _invalid_url(_not_a_web_address_message()) from error
    if _host_and_port(origin) != _host_and_port(site.origin):
        raise InvalidValue(
            "url-not-allowed",
            _("It is on another host. The site is %(origin)s.") % {"origin": site.origin},
        )
    if rest.startswith("//"):  # As a stored path it would look like a host.
        raise _invalid_url(_not_a_web_address_message())
    return rest


def _host_and_port(origin: str) -> str:
    """Return an origin without its scheme: a pasted URL may have http for https."""
    return origin.partition("://")[2]


def _checked_path(scope: Scope, path: str) -> str:
    """Return a normalised path; raises InvalidValue if it is outside the scope or too long."""
    if not path.startswith(scope.directory):
        raise InvalidValue(
            "url-not-allowed",
            _("It is not below %(directory)s, the directory of the sitemap.")
            % {"directory": scope.directory},
        )
    if len(scope.origin) + len(path) > MAX_LOCATION:
        raise _invalid_url(_too_long_message())
    return path


def _not_a_web_address_message() -> str:
    return _("It is not a web address. Enter a path, or a URL with http or https.")


def _too_long_message() -> str:
    return _("It is too long: a percent-encoded URL has at most %(count)s characters.") % {
        "count": f"{MAX_LOCATION:,}"
    }


def _invalid_url(message: str) -> InvalidValue:
    """Return an InvalidValue, to be raised, for a text that is not a URL or path."""
    return InvalidValue("invalid-url", message)
