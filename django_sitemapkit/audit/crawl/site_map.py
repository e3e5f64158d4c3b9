"""The HTML site map of a crawl, for people: links by folder, on pages that link to each other."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from operator import methodcaller
from pathlib import Path

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.paginator import Paginator
from django.template import TemplateDoesNotExist
from django.template.loader import get_template
from django.utils import translation
from django.utils.encoding import uri_to_iri
from django.utils.formats import number_format

from django_sitemapkit.audit.sorting import sorted_on_disk
from django_sitemapkit.printable import without_controls
from django_sitemapkit.sites import SitemapSite

LINKS_PER_PAGE = 500
"""Links on one page of the site map: more are hard to read, for people and browsers."""

DEEPEST_GROUP = 3
"""Folders in a folder at most that are a group of links of their own."""

LINKS_PER_GROUP = 4
"""Links that the groups of a page have on average, at least; else larger folders are groups."""

TEMPLATE = "sitemapkit_audit/sitemap.html"


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link on the HTML site map."""

    folder: str
    """The path of its folder, with a slash at both ends."""
    path: str
    """Its path, with its query."""
    title: str
    """Its title; "" without one."""

    @property
    def text(self) -> str:
        """The text of the link: the title, or without one the decoded path."""
        return without_controls(self.title.strip() or uri_to_iri(self.path))

    def folder_at(self, depth: int) -> str:
        """Return the folder's path, cut to its first ``depth`` levels."""
        found = re.match(f"/(?:[^/]*/){{0,{depth}}}", self.folder)
        return found[0] if found else "/"


def require_template() -> None:
    """Raise ImproperlyConfigured if the template of the HTML site map cannot be loaded."""
    try:
        get_template(TEMPLATE)
    except TemplateDoesNotExist as error:
        raise ImproperlyConfigured(
            f"The site map for people needs the template {TEMPLATE}. Set TEMPLATES to an engine"
            ' with "APP_DIRS": True.'
        ) from error


def write_site_map(
    pages: Iterable[tuple[str, str]], count: int, temporary: Path, site: SitemapSite
) -> list[str]:
    """Write ``count`` URLs with their titles as an HTML site map; return the file names.

    The names are in the order in which to publish the files: the first page, which leads to the
    others, comes last. The project can replace the template ``sitemapkit_audit/sitemap.html``.
    """
    template = get_template(TEMPLATE)
    links = _page_links(pages, site.origin)
    paginator = Paginator(range(count), LINKS_PER_PAGE)
    names = []
    with translation.override(django_settings.LANGUAGE_CODE):
        for number in paginator.page_range:
            page = paginator.page(number)
            context = {
                "origin": site.origin,
                "host": site.origin.partition("://")[2],
                "home": f"{site.base}/",
                "groups": _links_by_folder(list(islice(links, LINKS_PER_PAGE))),
                "total": _count_text(count),
                "first": _count_text(page.start_index()),
                "last": _count_text(page.end_index()),
                "page": page,
                "previous": page_file_name(number - 1),
                "next": page_file_name(number + 1),
                "numbers": [
                    (each, page_file_name(each) if isinstance(each, int) else "")
                    for each in paginator.get_elided_page_range(number, on_each_side=2)
                ],
            }
            names.append(page_file_name(number))
            (temporary / names[-1]).write_text(template.render(context), encoding="utf-8")
    return names[::-1]


def _count_text(count: int) -> str:
    """Return a number with the thousands separators of the active language."""
    return number_format(count, use_l10n=True, force_grouping=True)


def page_file_name(number: int) -> str:
    """Return the file name of a page of the site map; page 1 is ``sitemap.html``."""
    return "sitemap.html" if number == 1 else f"sitemap-{number}.html"


def _page_links(pages: Iterable[tuple[str, str]], origin: str) -> Iterator[PageLink]:
    """Return the links to pages, given as URL and title, sorted by folder and path."""
    paths = ((url.removeprefix(origin), title) for url, title in pages)
    rows = ((_folder_of(path), path, title) for path, title in paths)
    return (PageLink(*row) for row in sorted_on_disk(rows))


def _folder_of(path: str) -> str:
    """Return the path of the folder of a page: ``/a/`` for ``/a/b/`` and ``/a/b``."""
    return path.partition("?")[0].rstrip("/").rpartition("/")[0] + "/"


def _links_by_folder(links: list[PageLink]) -> list[tuple[str, list[PageLink]]]:
    """Group sorted links by folder, as deep as groups have 4 links or more on average."""
    for depth in range(DEEPEST_GROUP, -1, -1):
        groups = [
            (without_controls(uri_to_iri(folder)), list(group))
            for folder, group in groupby(links, methodcaller("folder_at", depth))
        ]
        if len(groups) * LINKS_PER_GROUP <= len(links):
            break
    return groups
