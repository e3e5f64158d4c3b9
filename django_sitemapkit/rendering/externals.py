"""What the index lists beside the site's own pages: checked here, and left out where it is wrong.

A file that the index lists stands on the same site, in the same folder or a deeper one; on another
host only where that is declared (sitemaps.org/protocol.html, "Sitemap file location" and
"Sitemaps & Cross Submits"). No index lists another.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse
from django.utils.functional import Promise

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.protocol.locations import Scope, normalise_base, resolve_scheme
from django_sitemapkit.reading.chunks import each
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering.problems import Problem, ProblemLog
from django_sitemapkit.rendering.tags import TagFormatter
from django_sitemapkit.sections import External, ExternalSection
from django_sitemapkit.sites import SitemapSite, all_sites

logger = logging.getLogger("django_sitemapkit")


def external_entries(site: SitemapSite) -> Iterator[IndexEntry]:
    """Yield the sitemaps and feeds of a site's external sections, in the order of registration.

    What the protocol forbids is left out and logged.
    """
    for section, entries, problems in _listed(site):
        yield from entries
        if problems:
            logger.warning("%r: %s", section, problems.summary())


def external_problems(site: SitemapSite) -> list[Problem]:
    """Return why the index leaves out sitemaps of a site's external sections: the first reasons."""
    return [problem for *_, problems in _listed(site) for problem in problems.examples]


def _listed(site: SitemapSite) -> Iterator[tuple[ExternalSection, list[IndexEntry], ProblemLog]]:
    """Yield each external section with its entries, and with what they leave out."""
    listed: set[str] = set()
    for section in registry.externals(site):
        problems = ProblemLog(section.get_name())
        yield section, list(_section_entries(section, listed, problems)), problems


def _section_entries(
    section: ExternalSection, listed: set[str], problems: ProblemLog
) -> Iterator[IndexEntry]:
    """Yield the entries of a section that are not ``listed`` yet."""
    places = Places(section)
    for host, why in places.refused:
        problems.add(host, why, skipped=False)
    with section.site.active():
        items = list(section.sitemaps() if callable(section.sitemaps) else section.sitemaps)
        addresses = each(lambda item: places.address(locate(item)), items, "sitemaps")
        lastmods = each(partial(_lastmod_of, section), items, "lastmod")
    refused = {row for row, one in enumerate(addresses) if isinstance(one, InvalidValue)}
    texts = TagFormatter(problems).column("lastmod", lastmods, items, refused)
    for item, address, lastmod in zip(items, addresses, texts, strict=True):
        if isinstance(address, InvalidValue):
            problems.add(item, address)
        elif address in listed:
            message = f"Duplicate: {address} is already in the index."
            problems.add(address, InvalidValue("duplicate-url", message))
        else:
            listed.add(address)
            yield IndexEntry(location=address, lastmod=lastmod)


def _lastmod_of(section: ExternalSection, item: Any) -> Any:
    if isinstance(item, External) and item.lastmod is not None:
        return item.lastmod
    return section.lastmod(item) if callable(section.lastmod) else section.lastmod


def locate(item: Any) -> str:
    """Return the path or absolute URL that an item of ``sitemaps`` stands for.

    Raises InvalidValue where it is neither, and NoReverseMatch for an unknown URL name.
    """
    location = item.location if isinstance(item, External) else item
    if not isinstance(location, (str, Promise)) or not location:
        raise InvalidValue(
            "invalid-url",
            f"Invalid URL: {item!a} is not a URL name, path, absolute URL or External.",
        )
    text = str(location)
    return text if "/" in text else reverse(text)


class Places:
    """Where the files of an external section may stand: on its site, and on hosts it declares."""

    def __init__(self, section: ExternalSection) -> None:
        self._own = section.site.scope()
        self._hosts: dict[str, Scope] = {}
        self._indexes = list(_index_patterns(section.site))
        self.refused: list[tuple[Any, InvalidValue]] = []
        """The hosts that are none, and why."""
        for host in section.hosts:
            try:
                origin = _host_origin(host)
            except InvalidValue as refusal:
                self.refused.append((host, refusal))
            else:
                self._hosts[origin] = Scope(origin)

    def address(self, location: str) -> str:
        """Return the address of a file as the index lists it.

        Raises InvalidValue where the protocol does not let it be listed.
        """
        scope = self._own
        location = resolve_scheme(location, scope.origin)
        if not location.startswith("/"):
            scope = self._hosts.get(Scope.of(location).origin, scope)
        address = scope.normalise(location)
        if any(index.fullmatch(address.partition("?")[0]) for index in self._indexes):
            raise InvalidValue(
                "nested-index", f"Nested index: {address} is an index, and no index lists another."
            )
        return address


def _host_origin(host: Any) -> str:
    if not isinstance(host, str):
        raise InvalidValue("invalid-host", f"Invalid host: {host!a} is not a string.")
    origin, path = normalise_base(host)
    if path:
        message = f"Invalid host: {host!a} has a path; write only {origin!r}."
        raise InvalidValue("invalid-host", message)
    return origin


def _index_patterns(site: SitemapSite) -> Iterator[re.Pattern[str]]:
    """Yield what the addresses of indexes look like, of all sites that are known."""
    sites = {site}
    with suppress(ImproperlyConfigured):
        sites.update(all_sites())
    for known in sites:
        with suppress(ImproperlyConfigured):
            yield re.compile(re.escape(known.address("index")))
