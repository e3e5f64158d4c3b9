"""The page "Inspect a URL": is it published, what becomes of it with the next build, and why."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from time import monotonic
from typing import Any, TypeAlias

from django.http import HttpRequest, HttpResponseBase
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from django_sitemapkit.admin.activity import edit_counts_context
from django_sitemapkit.admin.base import (
    EXCLUDING,
    BaseAdmin,
    known_sites,
    link_to,
    may_view,
    number_text,
    paged_context,
    screen,
    without_origin,
)
from django_sitemapkit.builds import PublishedSearch, search_published
from django_sitemapkit.builds.publication.gates import pause_of
from django_sitemapkit.builds.report.published import (
    PublishedUrl,
    is_served_live,
    last_build_with,
)
from django_sitemapkit.builds.report.status import unpublished_state
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import identity_of
from django_sitemapkit.inspection import (
    UrlInspection,
    all_rows,
    inspect_listings,
    similar_path,
    try_read,
)
from django_sitemapkit.models import Build, ExclusionRule, UrlOverride, hash_of
from django_sitemapkit.overrides import overrides_of, pasted_path, section_of
from django_sitemapkit.reading.sources import TAGS
from django_sitemapkit.registry import EXTRA_URLS
from django_sitemapkit.scaffold.discovery import NOT_FOR_SEARCH, why_no_page_at
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import words_of

CHOICES_PER_PAGE = 50
"""Sites on a page, where a path may be of any of them."""

SECONDS = 1.0
"""How long published files are searched for the URLs of a page that sections list."""

UNLISTED_SECONDS = 3.0
"""How long for one that none lists: the sections do not tell which file may still have it."""

MAX_URLS_SHOWN = 5
"""URLs of an object, which may have one in each language, whose state a page shows."""

FindOfUrl: TypeAlias = Callable[[HttpRequest, SitemapSite, str], Iterable[tuple[Any, Any]]]
"""Yields what is known of a URL: a title, and a text or link."""

_registered: list[FindOfUrl] = []


def register_inspection(find: FindOfUrl) -> FindOfUrl:
    """Register a function that adds results to the page "Inspect a URL"; usable as a decorator.

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


@screen("inspect/", "inspect", "inspect")
def inspection_view(model_admin: BaseAdmin, request: HttpRequest) -> HttpResponseBase:
    """Show whether the pasted URL is published, whether the next build lists it, and why.

    With ``?all``, all published files are searched without a time limit. It is for users who may
    view builds or URL overrides.
    """
    text, key = request.GET.get("url", "").strip(), request.GET.get("site", "")
    context: dict[str, Any] = {"title": _("Inspect a URL"), "text": text, "key": key}
    if text:
        sites = [site for site in known_sites(request) if key in {"", site.key}]
        context |= _search_context(model_admin, request, sites, text)
    return model_admin.render_page(request, "url_inspection", **context)


def _search_context(
    model_admin: BaseAdmin, request: HttpRequest, sites: Sequence[SitemapSite], text: str
) -> dict[str, Any]:
    """Return the context for a pasted text: the inspection of its URL, or a choice of sites.

    If no site can have the URL, the context has the reason.
    """
    paths, failures = [], []
    for site in sites:
        try:
            # A fragment is a place on the same page.
            paths.append((site, pasted_path(site, text.partition("#")[0])))
        except InvalidValue as error:
            failures.append((site, error))
    if len(paths) > 1:
        return paged_context(request, paths, CHOICES_PER_PAGE)
    if not paths:
        return {
            "failure": str(failures[0][1]) if failures else _("No site is known."),
            "suggestions": [*_same_path_on_sites(failures, text)],
        }
    ((site, path),) = paths
    report, reason = try_read(lambda: _url_explanation_context(model_admin, request, site, path))
    is_other = text.lower().startswith("http:" if site.origin.startswith("https:") else "https:")
    return {"site": site, "failure": reason, "is_other_scheme": is_other, **(report or {})}


def _url_explanation_context(
    model_admin: BaseAdmin, request: HttpRequest, site: SitemapSite, path: str
) -> dict[str, Any]:
    """Return the context that explains whether and why a site lists the URL at a path."""
    location, user = site.origin + path, request.user
    found, *others = inspect_listings(site, path)
    if found.section == EXTRA_URLS and why_no_page_at(site, path):
        found = replace(
            found,
            problems=(
                *found.problems,
                _("The site probably has no public page at this address."),
            ),
        )
    state = url_state(
        site,
        replace(found, location=location),  # It may be known without one.
        None if "all" in request.GET else SECONDS if found.listed else UNLISTED_SECONDS,
        every=True,
    )
    is_listed = found.listed or state.published is not None
    other = "" if is_listed else similar_path(site, path)
    set_for = list(_deciding_rows(site, path, found))
    links: dict[str, list[dict[str, Any]]] = {"row": [], "rules": [], "file": []}
    for row in set_for:
        name = "rules" if isinstance(row, (UrlOverride, ExclusionRule)) else "row"
        links[name].append(_link_context(model_admin, request, row))
    if found.page:
        links["file"].append({"link": format_html('<a href="{0}">{0}</a>', found.page)})
    links["file"] += _other_sections(state, others)
    return {
        "location": location,
        "path": path,
        "state": state,
        "listed_by": last_build_with(site, location, state.search.build, seconds=SECONDS)
        if state.search.build and state.is_known and not is_listed
        else None,
        "sections": ", ".join(row.section for row in (found, *others) if not settings.DEDUPLICATE),
        "steps": list(_steps(found, links)),
        "links": list(_contributed_results(request, site, location)),
        "suggestions": [{"text": other, "site": site, "path": other}] if other else [],
        "has_off": found.step == "section"
        and False in overrides_of(site).enabled_by_section.values(),
        "without_query": "?" in path and "?" not in other,
        "actions": [
            (label, model_admin.screen_url(name, *arguments, **query))
            for label, name, arguments, query in _actions_for(site, path, found, set_for, is_listed)
            if user.has_perm("sitemapkit.{1}_{0}".format(*name.split("_")))
        ],
        "may_exclude": is_listed and user.has_perms(EXCLUDING),
        "rule_url": model_admin.screen_url("exclusionrule_add", site=site.key, pattern=path)
        if is_listed and path.endswith("/") and user.has_perm("sitemapkit.add_exclusionrule")
        else "",
        "may_include": found.step == "rules" and user.has_perms(EXCLUDING),
        "edits": edit_counts_context(request, state.search.build.pk)
        if state.search.build and (is_listed or found.step == "rules") and user.has_perms(EXCLUDING)
        else None,
        # No build of one section takes out one that is off.
        "is_due": found.section and found.step != "section" and state.is_due and not pause_of(site),
    }


def _other_sections(state: "UrlState", others: Iterable[UrlInspection]) -> Iterator[dict[str, Any]]:
    """Yield a template row for each other section that lists a URL, with its sitemap file."""
    published = {each.section for each in state.search.found}
    also = _("Section that leaves it out") if settings.DEDUPLICATE else _("Also listed by")
    for row in others:
        is_late = state.search.build and not (
            settings.DEDUPLICATE
            or row.section in published
            or is_served_live(state.site, row.section)
        )
        yield {
            "text": _("After the next build also listed by") if is_late else also,
            "link": f"{row.section} ({row.page})",
        }


def _actions_for(
    site: SitemapSite, path: str, found: UrlInspection, set_for: Sequence[Any], is_listed: bool
) -> Iterator[tuple[str, str, list[Any], dict[str, Any]]]:
    """Yield what can be done with a URL: label, name of the screen, its arguments and its query.

    That is to change the values of its override, which is in ``set_for`` if it has one, or to add
    it as an extra URL. The caller checks the permissions.
    """
    query: dict[str, Any] = {"site": site.key, "path": path}
    if found.listed or found.step == "rules":
        override = next((row for row in set_for if isinstance(row, UrlOverride)), None)
        yield (
            _("Change its values"),
            "urloverride_change" if override else "urloverride_add",
            [override.pk] if override else [],
            {} if override else query,
        )
    no_page = "?" in path or NOT_FOR_SEARCH.search(path) or why_no_page_at(site, path)
    if not (found.section or is_listed or no_page):
        yield _("Add it as an extra URL"), "extraurl_add", [], query


def _steps(found: UrlInspection, links: dict[str, list[dict[str, Any]]]) -> Iterator[Any]:
    """Yield template rows of the steps that decide whether a URL is listed, in their order.

    The last one is the step that leaves it out. ``links`` are rows to add, by step.
    """
    for name, (title, said) in _titles_and_texts_by_step(found, links).items():
        items = [{"text": text} for text in said if text] + links.get(name, [])
        level = "warning" if name == "values" and found.problems else ""
        if name == found.step:
            items.insert(0, {"text": found.why})
            # A search that finds nothing ends at the object of a section, or without a section.
            last = "row" if found.section else "section"
            level = "unknown" if found.pk is None and name == last else "error"
        if items:
            yield {"title": title, "items": items, "level": level}
        if name == found.step:
            return


def _titles_and_texts_by_step(
    found: UrlInspection, links: dict[str, list[dict[str, Any]]]
) -> dict[str, tuple[Any, Sequence[Any]]]:
    """Return the title and the texts of each step, by its name; they do not contain ``links``."""
    valid = _("All declared values are valid.") if found.step in {"", "values", "rules"} else ""
    return {
        "section": (_("Section"), [found.section if found.step != "section" else ""]),
        "row": (_("Object"), []),
        "language": (_("Language"), [found.language]),
        "values": (_("Values"), found.problems or [valid if found.section else ""]),
        "rules": (
            _("Rules and overrides"),
            [] if links["rules"] else [_("No rule or override is about it.")],
        ),
        "file": (_("Sitemap file"), []),
    }


def _deciding_rows(site: SitemapSite, path: str, found: UrlInspection) -> Iterator[Any]:
    """Yield the rows that decide about a URL: its object, its overrides, and the rule on it.

    The object may be one that its section no longer lists. An override by path comes before one by
    object.
    """
    section = section_of(site, found.section) if found.section and found.pk is not None else None
    obj = all_rows(section).filter(pk=found.pk).first() if section and section.keyset else None
    overrides = [UrlOverride(path=path)]
    if obj is not None:
        yield obj
        model, object_id = identity_of(obj)
        overrides.append(UrlOverride(model=model, object_id=object_id))
    stored = UrlOverride.objects.filter(
        site=site.key, hash__in=[hash_of(each.identity) for each in overrides]
    )
    yield from sorted(stored, key=lambda row: not row.path)
    if found.rule:
        yield from ExclusionRule.objects.filter(
            site=site.key, hash=hash_of(ExclusionRule(pattern=found.rule).identity)
        )


def _link_context(model_admin: BaseAdmin, request: HttpRequest, row: Any) -> dict[str, Any]:
    """Return the kind of a row, and its linked name if the user may view it, else no name."""
    return {
        "text": capfirst(row._meta.verbose_name),
        "link": link_to(model_admin.admin_site, row)
        if may_view(request, row)
        else f"({row._meta.verbose_name})",
    }


def _contributed_results(
    request: HttpRequest, site: SitemapSite, location: str
) -> Iterator[dict[str, Any]]:
    """Yield a template row for each result of the registered functions, or for their error."""
    for find in _registered:
        found, reason = try_read(lambda find=find: [*find(request, site, location)])  # type: ignore[misc]
        yield from ({"text": title, "link": text} for title, text in found or ())
        if reason:
            yield {"text": find.__name__, "link": reason}


def _same_path_on_sites(
    failures: Sequence[tuple[SitemapSite, InvalidValue]], text: str
) -> Iterator[dict[str, Any]]:
    """Yield the same path on each site, if the pasted URL was rejected because of its host."""
    path = without_origin(text.partition("#")[0])
    for site, error in failures:
        if error.code == "url-not-allowed" and path.startswith(site.path + "/"):
            yield {"text": site.origin + path, "site": site, "path": path}


# The state of a URL -----------------------------------------------------------------------------


@dataclass(frozen=True)
class UrlState:
    """Whether and how a URL is published, and what the next build makes of it."""

    site: SitemapSite
    """The site."""
    found: UrlInspection
    """What becomes of it."""
    search: PublishedSearch
    """The look at the published files."""

    @property
    def published(self) -> PublishedUrl | None:
        """The URL as a published file lists it; None if none was found."""
        return next(iter(self.search.found), None)

    @property
    def unpublished(self) -> str:
        """What is served of the site if no build is, as a text; "" if one is."""
        return "" if self.search.build else words_of(unpublished_state())

    @property
    def is_all_live(self) -> bool:
        """Whether all sections of the site are served live."""
        return self.search.build is None and settings.SERVE_FROM != "published"

    @cached_property
    def is_served_live(self) -> bool:
        """Whether the URL is served live, as the published build does not have its section."""
        listed = self.found.listed and not self.published and self.search.build is not None
        return listed and is_served_live(self.site, self.found.section)

    @property
    def unread(self) -> str:
        """How many files were not searched, as text; "" if all were, or the URL was found."""
        return number_text(self.search.unread) if self.search.unread and not self.published else ""

    @cached_property
    def values(self) -> list[dict[str, Any]]:
        """A template row for each tag: its published value, the next build's value, its origin."""
        published = self.published.values if self.published else {}
        values = []
        for tag in TAGS:
            origin = self.found.values.get(tag)
            after = origin.text if origin is not None and self.found.listed else None
            before = published.get(tag)
            values.append(
                {
                    "tag": tag,
                    "before": before,
                    "after": after,
                    "origin": origin.origin if origin is not None else "",
                    "changes": self.published and self.found.listed and before != after,
                }
            )
        return values

    @property
    def is_known(self) -> bool:
        """Whether the search could tell if a published file lists the URL."""
        return bool(self.published) or not (self.search.unread or self.search.failures)

    @property
    def verdict(self) -> tuple[str, str]:
        """A level, and a sentence: whether the URL is in the sitemap, now and after a build."""
        listed, published = self.found.listed, bool(self.published)
        if published == listed or self.is_all_live or self.is_served_live:
            if listed:
                return "warning" if self.found.problems else "ok", _("It is in the sitemap.")
            if self.is_known:
                return "error", _("It is not in the sitemap.")
            return "warning", _("The next build does not list it.")
        if published:
            return "warning", _("It is in the sitemap until the next published build.")
        if self.is_known:
            return "warning", _("It is not in the sitemap yet. The next published build adds it.")
        return "warning", _("The next build lists it.")

    @property
    def is_due(self) -> bool:
        """Whether the next build changes what is published of the URL; False if it is not known."""
        if self.search.build is None or not self.is_known or self.is_served_live:
            return False
        return bool(self.published) != self.found.listed or any(
            value["changes"] for value in self.values
        )


def url_state(
    site: SitemapSite,
    found: UrlInspection,
    seconds: float | None = SECONDS,
    *,
    every: bool = False,
) -> UrlState:
    """Search the published files for an inspected URL, and return its state.

    ``seconds`` and ``every`` limit the search as those of ``search_published()``.
    """
    if settings.SERVE_FROM == "live":  # Then no file is served.
        search = PublishedSearch(build=None)
    elif found.location is None:  # Then nobody knows what to look for.
        search = PublishedSearch(build=Build.objects.published(site))
    else:
        search = search_published(
            *(site, found.location),
            section=found.section,
            pk=found.pk,
            seconds=seconds,
            every=every,
        )
    return UrlState(site, found, search)


def inspection_states_context(
    site: SitemapSite, inspections: Iterable[UrlInspection]
) -> dict[str, Any]:
    """Return the states of the first inspected URLs, as context of ``explanations.html``.

    The searches of published files share ``SECONDS``.
    """
    shown = list(islice(inspections, MAX_URLS_SHOWN + 1))
    end = monotonic() + SECONDS
    states = [url_state(site, each, max(0.0, end - monotonic())) for each in shown[:MAX_URLS_SHOWN]]
    return {
        "states": states,
        "is_cut": len(shown) > MAX_URLS_SHOWN,
        "may_be_published": any(state.published or not state.is_known for state in states),
    }
