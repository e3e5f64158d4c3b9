"""The manifest of a build and its stored files, both shown in pages."""

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import unquote

from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_sitemapkit.admin.base import (
    known_site,
    number,
    number_or_blank,
    request_rows,
    try_read,
)
from django_sitemapkit.admin.url_counts import UrlChange, is_whole, url_counts
from django_sitemapkit.builds.manifest import entry_of, stored_entries_of
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Build, BuildRequest, Place, Publication
from django_sitemapkit.models.builds import INDEX_ORDER, PlaceQuerySet
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import page_addresses

FILES_PER_PAGE = 100
"""Manifest rows on a page."""

MAX_FILES_WITH_PROBLEMS = 50
"""Files with problems that a build's page lists."""

MAX_BUILD_REQUESTS = 20
"""Requests that a build's page lists."""

ENTRIES_PER_PAGE = 200
"""URLs of a file on a page."""


def manifest_context(request: HttpRequest, build: Build) -> dict[str, Any]:
    """Return the template context of a build: totals, problems, and a page of its files."""
    manifest = Place.objects.in_build(build).defer("override_hashes")
    totals = _section_totals(build, manifest)
    section = request.GET.get("section", "")
    if section not in {total["section"] for total in totals}:
        section = ""
    chosen = manifest.filter(section=section) if section else manifest
    files = chosen.order_by(*INDEX_ORDER, "pk")
    page = Paginator(files, FILES_PER_PAGE).get_page(request.GET.get("p"))
    faulty = manifest.exclude(problems={}, skipped=0).order_by(*INDEX_ORDER)
    problems = list(faulty[: MAX_FILES_WITH_PROBLEMS + 1])
    urls = _file_urls(build, page.object_list)
    asked = build.requests.exclude(kind=BuildRequest.Kind.COMPARE)
    return {
        "sections": totals,
        "section": section,
        "page": page,
        "range": page.paginator.get_elided_page_range(page.number),
        "files": [_row(file, urls) for file in page.object_list],
        "problems": [_row(file, {}) for file in problems[:MAX_FILES_WITH_PROBLEMS]],
        "more_problems": len(problems) > MAX_FILES_WITH_PROBLEMS,
        "requests": request_rows(asked.order_by("pk")[:MAX_BUILD_REQUESTS]),
    }


def _section_totals(build: Build, manifest: PlaceQuerySet) -> list[dict[str, Any]]:
    """Return the totals of each section, and how its URLs have changed since the build before."""
    previous = build.previous_id if is_whole(build) else None
    before = url_counts([previous])[previous] or None
    return [
        {
            **total,
            "pages": number(total["pages"]),
            "pending": number_or_blank(total["pending"]),
            "urls": UrlChange(
                total["urls"], None if before is None else before.get(total["section"], 0)
            ),
            "skipped": number_or_blank(total["skipped"]),
        }
        for total in manifest.totals(
            "section", pending=Count("pk", filter=Q(status=Place.Status.PENDING))
        )
    ]


def name_of(file: Place) -> str:
    """Return what a file is called on the screens."""
    return f"{file.section or _('index')} {file.number or ''}".rstrip()


def _row(file: Place, urls: Mapping[int, str]) -> dict[str, Any]:
    return {
        "file": file,
        "name": name_of(file),
        "url": urls.get(file.pk, ""),
        "is_readable": file.section and file.status == Place.Status.DONE,
        "urls": number(file.urls),
        "skipped": number_or_blank(file.skipped),
        "duplicates": number_or_blank(file.duplicates),
        "problems": file.problem_texts,
    }


def file_context(request: HttpRequest, file: Place) -> dict[str, Any]:
    """Return the template context of a stored file: the URLs that match a search, some at a time.

    The search is for a part of a URL, percent-encoded or not.
    """
    query = request.GET.get("q", "").strip()
    wanted = unquote(query).casefold()
    entries = map(entry_of, stored_entries_of([file], SitemapStorage()))
    try:
        found = [entry for entry in entries if wanted in unquote(entry.location).casefold()]
    except StorageFailure as error:
        return {"failure": str(error), "query": query}
    page = Paginator(found, ENTRIES_PER_PAGE).get_page(request.GET.get("p"))
    return {
        "query": query,
        "page": page,
        "range": page.paginator.get_elided_page_range(page.number),
        "count": ngettext("%(count)s URL", "%(count)s URLs", len(found))
        % {"count": number(len(found))},
        "entries": [
            {"location": entry.location, "shown": unquote(entry.location), "tags": entry.tags}
            for entry in page.object_list
        ],
    }


def _file_urls(build: Build, files: Iterable[Place]) -> dict[int, str]:
    """Return the URLs of files by id; none if the site serves another build."""
    if not Publication.objects.filter(site=build.site, build=build).exists():
        return {}
    site, _reason = known_site(build.site)
    if site is None:
        return {}

    def read() -> dict[int, str]:
        urls_of = cache(partial(page_addresses, site))
        return {
            file.pk: urls_of(file.section)(file.number) if file.section else site.address("index")
            for file in files
            if file.status == Place.Status.DONE
        }

    return try_read(read)[0] or {}
