"""The manifest of a build on its page, and what the build changes: both bounded."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, Max, Q, QuerySet, Sum
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_sitemapkit.admin.wording import known_site, number, request_text, told, unless_none
from django_sitemapkit.builds import differences_of
from django_sitemapkit.builds.differences import Kind, changed_pages
from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.models import Build, BuildFile, Publication
from django_sitemapkit.rendering import index_address, page_addresses

FILES_PER_PAGE = 100
"""Lines of the manifest on a page."""

SHOWN_PROBLEMS = 50
"""Files with problems that a build's page tells of."""

SHOWN_REQUESTS = 20
"""Requests that a build's page tells of."""

SHOWN_DIFFERENCES = 200
"""URLs of each kind that are shown as added, removed or changed."""

COMPARED = 2_000_000
"""URLs in files that a page compares; it takes seconds."""

_SHOWN = (
    *("section", "number", "status", "name", "urls", "bytes", "size"),
    *("lastmod", "skipped", "duplicates", "problems", "position"),
)


def manifest_context(request: HttpRequest, build: Build) -> dict[str, Any]:
    """Return the manifest of a build for its page: sums, problems, and a page of its files."""
    lines = BuildFile.objects.filter(build=build)
    sums = _sums(lines)
    section = request.GET.get("section", "")
    if section not in {total["section"] for total in sums}:
        section = ""
    chosen = lines.filter(section=section) if section else lines
    files = chosen.order_by("position", "number", "pk").only(*_SHOWN)
    page = Paginator(files, FILES_PER_PAGE).get_page(request.GET.get("p"))
    faulty = lines.exclude(problems="", skipped=0).order_by("position", "number").only(*_SHOWN)
    problems = list(faulty[: SHOWN_PROBLEMS + 1])
    addresses = _addresses(build, page.object_list)
    return {
        "sections": sums,
        "section": section,
        "page": page,
        "range": page.paginator.get_elided_page_range(page.number),
        "files": [_row(line, addresses) for line in page.object_list],
        "problems": [_row(line, {}) for line in problems[:SHOWN_PROBLEMS]],
        "more_problems": len(problems) > SHOWN_PROBLEMS,
        "requests": [
            {"request": asked, "what": request_text(asked)}
            for asked in build.requests.order_by("pk")[:SHOWN_REQUESTS]
        ],
    }


def _sums(lines: QuerySet[BuildFile]) -> list[dict[str, Any]]:
    """Return what each section has, by one query."""
    done = Q(status=BuildFile.Status.DONE)
    totals = (
        lines.exclude(section="")
        .order_by("section")
        .values("section")
        .annotate(
            files=Count("pk", filter=done),
            pending=Count("pk", filter=Q(status=BuildFile.Status.PENDING)),
            urls=Sum("urls", filter=done, default=0),
            bytes=Sum("bytes", filter=done, default=0),
            skipped=Sum("skipped", default=0),
            changed_at=Max("lastmod", filter=done),
        )
    )
    return [
        {
            **total,
            "files": number(total["files"]),
            "pending": unless_none(total["pending"]),
            "urls": number(total["urls"]),
            "skipped": unless_none(total["skipped"]),
        }
        for total in totals
    ]


def _row(line: BuildFile, addresses: Mapping[int, str]) -> dict[str, Any]:
    return {
        "line": line,
        "name": f"{line.section or _('index')} {line.number or ''}".rstrip(),
        "address": addresses.get(line.pk, ""),
        "urls": number(line.urls),
        "skipped": unless_none(line.skipped),
        "duplicates": unless_none(line.duplicates),
        "problems": line.problems.splitlines(),
    }


def _addresses(build: Build, lines: Iterable[BuildFile]) -> dict[int, str]:
    """Return where some files are, by their ids; nowhere where the site serves another build."""
    if not Publication.objects.filter(site=build.site, build=build).exists():
        return {}
    site, _why = known_site(build.site)
    if site is None:
        return {}

    @cache
    def of(section: str) -> Callable[[int], str]:
        return page_addresses(site, section)

    def read() -> dict[int, str]:
        done = (line for line in lines if line.status == BuildFile.Status.DONE)
        return {
            line.pk: of(line.section)(line.number)
            if line.section
            else index_address(site, line.number)
            for line in done
        }

    return told(read)[0] or {}


def differences_context(build: Build) -> dict[str, Any]:
    """Return the first URLs that a build adds, removes and changes, and how many there are."""
    site, why = known_site(build.site)
    if site is None:
        return {"failure": why}
    if build.previous is not None:
        compared = sum(line.urls for line in changed_pages(build.previous, build))
        if compared > COMPARED:
            text = _(
                "The files that changed have %(count)s URLs, too many to compare while you wait."
                " Use the command: diff_sitemaps %(build)s"
            )
            return {"failure": text % {"count": number(compared), "build": build.pk}}
    totals: Counter[Kind] = Counter()
    shown: dict[Kind, list[str]] = {kind: [] for kind in Kind}
    try:
        for difference in differences_of(site, build.pk):
            totals[difference.kind] += 1
            if len(shown[difference.kind]) < SHOWN_DIFFERENCES:
                shown[difference.kind].append(difference.location)
    except (SitemapKitError, OSError) as error:
        return {"failure": str(error)}
    titles = {Kind.REMOVED: _("Removed"), Kind.ADDED: _("Added"), Kind.CHANGED: _("Changed")}
    return {
        "groups": [
            {
                "title": title,
                "count": number(totals[kind]),
                "locations": shown[kind],
                "more": totals[kind] > len(shown[kind]),
            }
            for kind, title in titles.items()
        ]
    }
