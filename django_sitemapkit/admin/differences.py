"""How builds differ: their numbers of URLs, as texts and as a chart; which URLs a build changes."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from django.db.models import Q
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.base import (
    BaseAdmin,
    csv_response,
    id_or_none,
    known_site_or_reason,
    moment_text,
    number_or_blank,
    number_text,
    paged_context,
    render_build_page,
    screen,
)
from django_sitemapkit.builds.report.differences import (
    MAX_COMPARED_AT_ONCE,
    MAX_KEPT,
    OTHER_FOLDERS,
    Difference,
    DifferenceKind,
    UrlChange,
    counts_by_folder,
    first_folder_of,
    kept_differences,
    stored_or_quick_differences,
)
from django_sitemapkit.builds.report.published import UrlMatches, is_complete, sections_served_live
from django_sitemapkit.builds.requests import record_request, start_processing_on_commit
from django_sitemapkit.exceptions import BuildRunning, SitemapKitError
from django_sitemapkit.models import Build, BuildDifferences, BuildRequest, Place
from django_sitemapkit.overrides.transfer import csv_lines
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import SitemapSite

MAX_GROUPS_SHOWN = 50
"""Folders that the page counts by themselves."""

URLS_PER_PAGE = 200
"""URLs on a page."""

REFRESH_SECONDS = 2
"""Seconds after which a page that waits for the comparison is loaded again."""

CHART_BUILDS = 30
"""Builds that a chart shows."""

CHART_TOP, CHART_BOTTOM = 12, 120
"""Where the highest and the lowest line of a chart are, in pixels."""

UrlCounts = dict[str, int]
"""URLs by section."""

KINDS: dict[str, tuple[DifferenceKind, Any]] = {
    "removed": (DifferenceKind.REMOVED, _("Removed")),
    "added": (DifferenceKind.ADDED, _("Added")),
    "changed": (DifferenceKind.CHANGED, _("Changed")),
}
"""By the name that the query string has for it: the kind, and its title."""

COMPARE = BuildRequest.Kind.COMPARE


# Numbers of URLs ----------------------------------------------------------------------------------


def url_counts_by_build(build_ids: Iterable[int | None]) -> dict[int | None, UrlCounts]:
    """Return the numbers of URLs by section of the builds with some ids; it takes one query.

    Builds without files, and the id None, have no sections.
    """
    found: dict[int | None, UrlCounts] = {pk: {} for pk in build_ids}
    files = Place.objects.filter(build__in=[pk for pk in found if pk is not None])
    for total in files.totals("build", "section"):
        if total["pages"]:
            found[total["build"]][total["section"]] = total["urls"]
    return found


def total_change(after: UrlCounts, before: UrlCounts | None) -> UrlChange:
    """Return how the number of URLs of all sections changed; ``before`` None compares nothing."""
    return UrlChange(sum(after.values()), None if before is None else sum(before.values()))


def section_changes(after: UrlCounts, before: UrlCounts | None) -> dict[str, UrlChange]:
    """Return how the number of URLs of each section changed, by name.

    Sections that only the build before has are included. ``before`` None compares nothing.
    """
    return {
        name: UrlChange(after.get(name, 0), None if before is None else before.get(name, 0))
        for name in sorted(after.keys() | (before or {}).keys())
    }


def changes_by_build(builds: Collection[Build]) -> dict[int, UrlChange]:
    """Return how many URLs each build lists, and how many its previous build lists, by id.

    A build that was neither published nor held for review is compared with nothing; one without
    files is left out.
    """
    before = {build.pk: build.previous_id for build in builds if is_complete(build)}
    counts = url_counts_by_build([*(build.pk for build in builds), *before.values()])
    return {
        build.pk: total_change(counts[build.pk], counts.get(before.get(build.pk)) or None)
        for build in builds
        if counts[build.pk]
    }


def chart_context(site: SitemapSite) -> dict[str, Any] | None:
    """Return the context of an SVG chart of a site's last builds; None for fewer than two.

    A line connects the published builds, in the order in which they went live last; builds held for
    review are points beside it. ``x`` is a share of the width, so that the chart fits any screen.
    ``text`` says the same.
    """
    whole = Q(published_at__isnull=False) | Q(status=Build.Status.HELD)
    newest_first = Coalesce("published_at", "ended_at").desc()
    builds = list(Build.objects.filter(whole, site=site.key).order_by(newest_first)[:CHART_BUILDS])
    counts = url_counts_by_build(build.pk for build in builds)
    shown = [build for build in reversed(builds) if counts[build.pk]]
    if len(shown) < 2:
        return None
    urls = {build.pk: sum(counts[build.pk].values()) for build in shown}
    low, step, lines = _chart_scale(list(urls.values()))

    def y_position(value: int) -> str:
        """Return the y coordinate of a number of URLs, as text."""
        return f"{CHART_BOTTOM - (CHART_BOTTOM - CHART_TOP) * (value - low) / (step * lines):.1f}"

    points = [
        {
            "x": f"{1 + 98 * place / (len(shown) - 1):.1f}%",
            "y": y_position(urls[build.pk]),
            "held": build.status == Build.Status.HELD,
            "date": moment_text(build.published_at or build.started_at, "SHORT_DATE_FORMAT"),
            "name": gettext("build %(build)s, %(urls)s")
            % {"build": build.pk, "urls": number_text(urls[build.pk])},
        }
        for place, build in enumerate(shown)
    ]
    line = [point for point in points if not point["held"]]
    held = ", ".join(str(point["name"]) for point in points if point["held"])
    text = gettext("URLs of the last %(builds)s builds: %(first)s to %(last)s.") % {
        "builds": len(points),
        "first": points[0]["name"],
        "last": points[-1]["name"],
    }
    return {
        "points": points,
        "segments": list(pairwise(line)),
        "lines": [
            {"y": y_position(low + step * each), "text": number_text(low + step * each)}
            for each in range(lines + 1)
        ],
        "held": held,
        "last": points[-1],
        "text": " ".join(filter(None, (text, held and f"{gettext('Not published:')} {held}"))),
    }


def _chart_scale(values: Sequence[int]) -> tuple[int, int, int]:
    """Return the scale of a chart: the value of its lowest line, the step, and how many steps."""
    least = max((max(values) - min(values)) / 2, max(values) / 20, 1)
    power = 10 ** (len(str(int(least))) - 1)
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least)
    low = min(values) // step * step
    return low, step, max(-(-(max(values) - low) // step), 1)


def match_texts(matches: UrlMatches) -> dict[str, Any]:
    """Return the numbers of a count of matches as text, and the first URLs, for templates.

    ``locations`` are pairs of each URL and its readable form; ``published`` is when the counted
    build was published, or "".
    """
    percent = 100 * matches.matched / max(matches.read, 1)
    return {
        "matched": number_text(matches.matched),
        "total": number_text(matches.total),
        "read": number_text(matches.read),
        "percent": "<1" if 0 < percent < 0.5 else f"{percent:.0f}",
        "locations": [(each, unquote(each)) for each in matches.locations],
        "published": moment_text(matches.build.published_at) if matches.build else "",  # type: ignore[arg-type]
    }


# Which URLs a build changes -----------------------------------------------------------------------


@screen("<path:object_id>/differences/", "build_differences", "view")
def differences_view(model_admin: BaseAdmin, request: HttpRequest, obj: Build) -> HttpResponseBase:
    """Show which URLs a build adds, removes and changes; with ``?csv``, send them as a CSV file.

    It is compared with the build whose id is ``?before``, or else with its previous build.
    """
    other = Build.objects.filter(site=obj.site, pk=id_or_none(request.GET.get("before")) or 0)
    before = other.first() or obj.previous
    here = f"{request.path}?before={before.pk}" if before else request.path
    stored = obj.differences.filter(before=before).first()
    if stored is not None and "csv" in request.GET:
        return _csv_download(request, stored)
    context = _stored_context(request, stored) if stored else _compare_or_wait(request, obj, before)
    page = render_build_page(
        model_admin,
        request,
        obj,
        "differences",
        title=_("Changes in build %(build)s") % {"build": obj.pk},
        here=here,
        before=before,
        **context,
    )
    if "waiting" in context:
        # Without JavaScript, and not in the page: readers of screens may stop it there.
        page.headers["Refresh"] = f"{REFRESH_SECONDS}; url={here}"
    return page


def _compare_or_wait(request: HttpRequest, build: Build, before: Build | None) -> dict[str, Any]:
    """Compare two builds, or request it if that takes long, and return the context.

    The context has the differences, a failure, or "waiting" while another process compares. If
    ``before`` is None, the failure says that there is no previous build.
    """
    site, reason = known_site_or_reason(request, build.site)
    if site is None:
        return {"failure": reason}
    last = build.requests.filter(kind=COMPARE, before=before).order_by("-pk").first()
    if last is not None and last.failed and "again" not in request.GET:
        return {"failure": last.outcome_text, "again": True}
    try:
        if last is None or last.ended_at is not None:
            if stored := stored_or_quick_differences(site, build, before, MAX_COMPARED_AT_ONCE):
                return _stored_context(request, stored)
            record_request(
                site, COMPARE, about=build, before=before, by=request.user.get_username()
            )
    except BuildRunning:
        pass  # Another process compares a build of the site.
    except (SitemapKitError, OSError) as error:
        return {"failure": str(error)}
    # Again: its process may have ended meanwhile.
    start_processing_on_commit(site, get_runner, kinds=(COMPARE,))
    return {"waiting": True}


def _csv_download(request: HttpRequest, stored: BuildDifferences) -> StreamingHttpResponse:
    """Return a CSV response with the stored differences that the query string selects."""
    names = {kind: name for name, (kind, _title) in KINDS.items()}
    rows = (
        (names[found.kind], found.section, found.location, tags)
        for found, tags in _chosen_differences(request, stored)
    )
    is_cut = any(stored.count(kind.value) > MAX_KEPT for kind in names)
    return csv_response(
        request,
        f"sitemap-build-{stored.build_id}-changes{f'-first-{MAX_KEPT}' * is_cut}.csv",
        csv_lines(("change", "section", "url", "tags"), rows),
    )


def _stored_context(request: HttpRequest, stored: BuildDifferences) -> dict[str, Any]:
    """Return the context of stored differences: totals, folders, and a page of selected URLs."""
    found = list(_chosen_differences(request, stored))
    shown = paged_context(request, found, URLS_PER_PAGE)
    totals = [(name, title, stored.count(kind.value)) for name, (kind, title) in KINDS.items()]
    groups = _folder_rows(stored, request.GET.get("below") or "/")
    return {
        "totals": [(name, title, number_text(count)) for name, title, count in totals],
        "were_live": ", ".join(
            sorted(sections_served_live(stored.before, sorted({row["section"] for row in groups})))
        ),
        "groups": groups[:MAX_GROUPS_SHOWN],
        "more_groups": len(groups) > MAX_GROUPS_SHOWN,
        "filters": {
            name: request.GET[name]
            for name in ("kind", "section", "below", "folder")
            if request.GET.get(name)
        },
        "query": request.GET.get("q", "").strip(),
        **shown,
        "count": ngettext("%(count)s URL", "%(count)s URLs", len(found))
        % {"count": number_text(len(found))},
        "is_cut": any(count > MAX_KEPT for *_, count in totals),
        "rows": [
            {
                "difference": difference,
                "title": dict(KINDS.values())[difference.kind],
                "shown": unquote(difference.location),
                "tags": tags.replace("xhtml:link", gettext("links to other languages")),
            }
            for difference, tags in shown["page"].object_list
        ],
        "kept": number_text(MAX_KEPT),
    }


def _chosen_differences(
    request: HttpRequest, stored: BuildDifferences
) -> Iterator[tuple[Difference, str]]:
    """Yield the stored differences that the query string selects, each with its changed tags.

    The removed URLs come first, then the added and the changed ones.
    """
    kinds = [KINDS[name][0] for name in KINDS if request.GET.get("kind") in {None, "", name}]
    section, folder, below = map(request.GET.get, ("section", "folder", "below"))
    wanted = unquote(request.GET.get("q", "").strip()).casefold()
    kept = [
        (difference, tags)
        for difference, tags in kept_differences(stored, below or "/")
        if (not section or difference.section == section)
        and (not folder or first_folder_of(difference.location, below or "/") == folder)
        and (not wanted or wanted in unquote(difference.location).casefold())
    ]
    for kind in kinds:
        yield from (each for each in kept if each[0].kind is kind)


def _folder_rows(stored: BuildDifferences, below: str) -> list[dict[str, Any]]:
    """Return a template row for each section and folder directly below a folder, largest first.

    It has the numbers of URLs by kind. ``below`` is the path of the folder. URLs directly in it,
    and those of folders that were not counted separately, are in rows marked ``is_leaf``. Below any
    folder but "/", only the differences that are kept count.
    """
    groups: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for kind, section, folder, count in counts_by_folder(stored, below):
        groups[section, folder][kind] = count
    rows = sorted(groups.items(), key=lambda item: (-sum(item[1].values()), *item[0]))
    return [
        {
            "section": section,
            "folder": "" if folder == OTHER_FOLDERS else folder,
            "shown": unquote(folder),
            "is_leaf": folder in {below, OTHER_FOLDERS},
            "counts": [
                (name, title, number_or_blank(counts.get(kind.value, 0)))
                for name, (kind, title) in KINDS.items()
            ],
        }
        for (section, folder), counts in rows
    ]
