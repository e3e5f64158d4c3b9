"""The page "Inspect a URL": is it published, what becomes of it with the next build, and why."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import known_sites, link_to, may_view, screen, try_read
from django_sitemapkit.admin.overrides import EXCLUDING
from django_sitemapkit.admin.overview import OverviewAdmin
from django_sitemapkit.admin.url_state import SECONDS, state_of
from django_sitemapkit.builds.publication.gates import pause_of
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import identity_of
from django_sitemapkit.inspection import UrlInspection, inspect_all, similar_path
from django_sitemapkit.models import ExclusionRule, UrlOverride, hash_of
from django_sitemapkit.overrides import section_of
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.sites import SitemapSite

MAX_CHOICES = 50
"""Sites to choose from, where a path may be of any of them."""


FindOfUrl: TypeAlias = Callable[[HttpRequest, SitemapSite, str], Iterable[tuple[Any, Any]]]
"""Yields what is known of a URL: a title, and a text or link."""

_registered: list[FindOfUrl] = []


def register_inspection(find: FindOfUrl) -> FindOfUrl:
    """Register a function that contributes to the page "Inspect a URL"; also a decorator.

    It gets the request, the site and the URL, and yields a title and a text for all that the user
    may see. Put it in your app's ``admin.py``.

    Example::

        @register_inspection
        def errors_of_crawlers(request, site, url):
            for row in CrawlerError.objects.filter(url=url)[:5]:
                yield _("Crawlers"), row.text
    """
    _registered.append(find)
    return find


class InspectionAdmin(OverviewAdmin):
    """The view of the page, which belongs to the screens of builds."""

    def has_inspect_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may view builds, or URL overrides."""
        return self.has_view_permission(request) or request.user.has_perm(
            "sitemapkit.view_urloverride"
        )

    @screen("inspect/", "inspect", "inspect")
    def inspection_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show what becomes of the pasted URL; with ``all`` in the query string, search all files.

        For users who may view builds, or URL overrides.
        """
        text, key = request.GET.get("url", "").strip(), request.GET.get("site", "")
        context: dict[str, Any] = {"title": _("Inspect a URL"), "text": text, "key": key}
        if text:
            sites = [site for site in known_sites(request) if key in {"", site.key}]
            context |= self._found(request, sites, text)
        return self.overview_page(request, "url_inspection", context)

    def _found(
        self, request: HttpRequest, sites: Sequence[SitemapSite], text: str
    ) -> dict[str, Any]:
        """Return what a pasted text is about: a URL of a site, a choice of sites, or an error."""
        paths, failures = [], []
        for site in sites:
            try:
                paths.append((site, pasted_path(site, text)))
            except InvalidValue as error:
                failures.append((site, error))
        if len(paths) > 1:
            return {"choices": [{"site": site, "path": path} for site, path in paths[:MAX_CHOICES]]}
        if not paths:
            return {
                "failure": str(failures[0][1]) if failures else _("No site is known."),
                "suggestions": [*_on_own_host(failures, text)],
            }
        ((site, path),) = paths
        report, reason = try_read(lambda: self._report(request, site, path))
        return {"site": site, "failure": reason, **(report or {})}

    def _report(self, request: HttpRequest, site: SitemapSite, path: str) -> dict[str, Any]:
        location, user = site.origin + path, request.user
        found, *others = inspect_all(site, path)
        seconds = None if "all" in request.GET else SECONDS
        located = replace(found, location=location)  # It may be known without one.
        state = state_of(site, located, seconds)
        is_listed = found.listed or state.published is not None
        other = "" if is_listed else similar_path(site, path)
        override, links = self._set_for(request, site, path, found)
        also = _("Section that leaves it out") if settings.DEDUPLICATE else _("Also listed by")
        links += [{"text": also, "link": f"{row.section} ({row.page})"} for row in others]
        links += _contributed(request, site, location)
        query = urlencode({"site": site.key, "path": path})
        actions = []
        if override is not None and user.has_perm("sitemapkit.change_urloverride"):
            url = self._url_of("urloverride_change", override.pk)
            actions.append((_("Change its values"), url))
        elif override is None and user.has_perm("sitemapkit.add_urloverride"):
            url = f"{self._url_of('urloverride_add')}?{query}"
            actions.append((_("Change its values"), url))
        if not (found.section or found.listed) and user.has_perm("sitemapkit.add_extraurl"):
            actions.append((_("Add it as an extra URL"), f"{self._url_of('extraurl_add')}?{query}"))
        return {
            "location": location,
            "path": path,
            "state": state,
            "links": links,
            "suggestions": [{"text": other, "site": site, "path": other}] if other else [],
            "actions": actions,
            "may_exclude": is_listed and user.has_perms(EXCLUDING),
            "is_due": found.section and state.is_due and not pause_of(site),
        }

    def _set_for(
        self, request: HttpRequest, site: SitemapSite, path: str, found: UrlInspection
    ) -> tuple[UrlOverride | None, list[dict[str, Any]]]:
        """Return the override of a URL, and links to all that decides about it."""
        links = []
        identities = [UrlOverride(path=path)]
        obj = _object_of(site, found)
        if obj is not None:
            links.append(
                {"text": capfirst(obj._meta.verbose_name), "link": self._link(request, obj)}
            )
            model, object_id = identity_of(obj)
            identities.append(UrlOverride(model=model, object_id=object_id))
        hashes = [hash_of(each.identity) for each in identities]
        overrides = UrlOverride.objects.filter(site=site.key, hash__in=hashes)
        by_path = sorted(overrides, key=lambda row: not row.path)
        links += [{"text": _("URL override"), "link": self._link(request, row)} for row in by_path]
        if found.rule:
            rules = ExclusionRule.objects.filter(site=site.key)
            rules = rules.filter(hash=hash_of(ExclusionRule(pattern=found.rule).identity))
            links += [
                {"text": _("Exclusion rule"), "link": self._link(request, row)} for row in rules
            ]
        return next(iter(by_path), None), links

    def _link(self, request: HttpRequest, row: Any) -> str:
        """Return the name of a row, linked, or only its kind to who may not view it."""
        if may_view(request, row):
            return link_to(self.admin_site, row)
        return f"({row._meta.verbose_name})"

    def _url_of(self, view: str, *arguments: Any) -> str:
        return reverse(
            f"{self.admin_site.name}:sitemapkit_{view}", args=list(map(quote, arguments))
        )


def _contributed(
    request: HttpRequest, site: SitemapSite, location: str
) -> Iterator[dict[str, Any]]:
    """Yield what registered functions know of a URL, or why they cannot tell."""
    for find in _registered:
        found, reason = try_read(partial(_list_of, find, request, site, location))
        yield from ({"text": title, "link": text} for title, text in found or ())
        if reason:
            yield {"text": find.__name__, "link": reason}


def _list_of(
    find: FindOfUrl, request: HttpRequest, site: SitemapSite, location: str
) -> list[tuple[Any, Any]]:
    return list(find(request, site, location))


def _on_own_host(
    failures: Sequence[tuple[SitemapSite, InvalidValue]], text: str
) -> Iterator[dict[str, Any]]:
    """Yield the same path on each site, if the pasted URL is on another host."""
    for site, error in failures[:MAX_CHOICES]:
        parts = urlsplit(text)
        path = parts._replace(scheme="", netloc="", fragment="").geturl()
        if error.code == "url-not-allowed" and parts.netloc and path.startswith(site.path + "/"):
            yield {"text": site.origin + path, "site": site, "path": path}


def _object_of(site: SitemapSite, found: UrlInspection) -> Any:
    """Return the object that a URL is of, even if its section no longer lists it; or None."""
    section = section_of(site, found.section) if found.section and found.pk is not None else None
    if section is None or section.keyset is None:
        return None
    rows = section.keyset.queryset
    return rows.model._base_manager.using(rows.db).filter(pk=found.pk).first()
