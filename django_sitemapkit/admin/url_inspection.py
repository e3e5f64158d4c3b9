"""The page "Inspect a URL": is it published, what becomes of it with the next build, and why."""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import known_sites, link_to, number, try_read
from django_sitemapkit.admin.overrides import EXCLUDING
from django_sitemapkit.admin.overview import OverviewAdmin
from django_sitemapkit.builds import PublishedSearch, search_published
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import identity_of
from django_sitemapkit.inspection import UrlInspection, inspect_path, similar_path
from django_sitemapkit.models import ExclusionRule, UrlOverride, hash_of
from django_sitemapkit.overrides import section_of
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.reading.sources import TAGS
from django_sitemapkit.sites import SitemapSite

SECONDS = 0.5
"""How long published files are searched, unless all of them are asked for."""

MAX_CHOICES = 50
"""Sites to choose from, where a path may be of any of them."""


class InspectionAdmin(OverviewAdmin):
    """The view of the page, which belongs to the screens of builds."""

    def get_urls(self) -> list[URLPattern]:
        """Add the URL of the page."""
        view = self.admin_site.admin_view(self.inspection_view)
        return [path("inspect/", view, name="sitemapkit_inspect"), *super().get_urls()]

    def inspection_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show what becomes of the pasted URL; with ``all`` in the query string, search all files.

        For users who may view builds, or URL overrides.
        """
        may_view = request.user.has_perm("sitemapkit.view_urloverride")
        if not (may_view or self.has_view_permission(request)):
            raise PermissionDenied
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
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
            choices = [
                {"site": site, "url": _address(site, path)} for site, path in paths[:MAX_CHOICES]
            ]
            return {"choices": choices}
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
        found = inspect_path(site, path)
        seconds = None if "all" in request.GET else SECONDS
        search = search_published(
            site, location, section=found.section, pk=found.pk, seconds=seconds
        )
        published = next(iter(search.found), None)
        other = "" if found.listed or published else similar_path(site, path)
        override, links = self._set_for(site, path, found)
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
        is_listed = found.listed or published is not None
        return {
            "location": location,
            "path": path,
            "search": search,
            "published": published,
            "unread": number(search.unread) if search.unread and not published else "",
            "search_all": f"{_address(site, path)}&all=1",
            "found": found,
            "values": _values(search, found),
            "links": links,
            "suggestions": [{"text": other, "url": _address(site, other)}] if other else [],
            "actions": actions,
            "may_exclude": is_listed and user.has_perms(EXCLUDING),
            "is_due": found.section and _is_due(search, found),
        }

    def _set_for(
        self, site: SitemapSite, path: str, found: UrlInspection
    ) -> tuple[UrlOverride | None, list[dict[str, Any]]]:
        """Return the override of a URL, and links to all that decides about it."""
        links = []
        identities = [UrlOverride(path=path)]
        obj = _object_of(site, found)
        if obj is not None:
            links.append({"text": capfirst(obj._meta.verbose_name), "link": self._link(obj)})
            model, object_id = identity_of(obj)
            identities.append(UrlOverride(model=model, object_id=object_id))
        hashes = [hash_of(each.identity) for each in identities]
        overrides = UrlOverride.objects.filter(site=site.key, hash__in=hashes)
        by_path = sorted(overrides, key=lambda row: not row.path)
        links += [{"text": _("URL override"), "link": self._link(row)} for row in by_path]
        if found.rule:
            rules = ExclusionRule.objects.filter(site=site.key)
            rules = rules.filter(hash=hash_of(ExclusionRule(pattern=found.rule).identity))
            links += [{"text": _("Exclusion rule"), "link": self._link(row)} for row in rules]
        return next(iter(by_path), None), links

    def _link(self, row: Any) -> str:
        return link_to(self.admin_site, row)

    def _url_of(self, view: str, *arguments: Any) -> str:
        return reverse(f"admin:sitemapkit_{view}", args=list(map(quote, arguments)))


def _address(site: SitemapSite, text: str) -> str:
    """Return the address of the page for a URL of a site."""
    query = urlencode({"site": site.key, "url": text})
    return f"{reverse('admin:sitemapkit_inspect')}?{query}"


def _on_own_host(
    failures: Sequence[tuple[SitemapSite, InvalidValue]], text: str
) -> Iterator[dict[str, str]]:
    """Yield the same path on each site, if the pasted URL is on another host."""
    for site, error in failures[:MAX_CHOICES]:
        parts = urlsplit(text)
        path = parts._replace(scheme="", netloc="", fragment="").geturl()
        if error.code == "url-not-allowed" and parts.netloc and path.startswith(site.path + "/"):
            yield {"text": site.origin + path, "url": _address(site, path)}


def _object_of(site: SitemapSite, found: UrlInspection) -> Any:
    """Return the object that a URL is of, even if its section no longer lists it; or None."""
    section = section_of(site, found.section) if found.section and found.pk is not None else None
    if section is None or section.keyset is None:
        return None
    rows = section.keyset.queryset
    return rows.model._base_manager.using(rows.db).filter(pk=found.pk).first()


def _values(search: PublishedSearch, found: UrlInspection) -> list[dict[str, Any]]:
    """Return each tag's value as it is published, and after the next build."""
    published = search.found[0].values if search.found else {}
    values = []
    for tag in TAGS:
        origin = found.values.get(tag)
        after = origin.text if origin is not None and found.listed else None
        before = published.get(tag)
        values.append(
            {
                "tag": tag,
                "before": before,
                "after": after,
                "origin": origin.origin if origin is not None else "",
                "changes": bool(search.found and found.listed and before != after),
            }
        )
    return values


def _is_due(search: PublishedSearch, found: UrlInspection) -> bool:
    """Return whether the next build changes what is published of a URL, as far as is known."""
    is_known = bool(search.found) or not (search.unread or search.failures)
    if search.build is None or not is_known:
        return False
    is_changed = any(value["changes"] for value in _values(search, found))
    return bool(search.found) != found.listed or is_changed
