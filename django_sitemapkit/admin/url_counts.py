"""How many URLs builds list, and how that has changed since the build before."""

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import moment_text, number
from django_sitemapkit.builds.report.changes import UrlChange, is_complete
from django_sitemapkit.builds.report.matches import UrlMatches
from django_sitemapkit.models import Build, Place

CHART_BUILDS = 30
"""Builds that a chart shows."""

CHART_TOP, CHART_BOTTOM = 12, 120
"""Where the highest and the lowest line of a chart are, in pixels."""

UrlCounts = dict[str, int]
"""URLs by section."""


def url_counts_by_build(builds: Iterable[int | None]) -> dict[int | None, UrlCounts]:
    """Return how many URLs builds list, given their ids; by one query."""
    found: dict[int | None, UrlCounts] = {pk: {} for pk in builds}
    files = Place.objects.filter(build__in=[pk for pk in found if pk is not None])
    for total in files.totals("build", "section"):
        if total["pages"]:
            found[total["build"]][total["section"]] = total["urls"]
    return found


def total_change(after: UrlCounts, before: UrlCounts | None) -> UrlChange:
    """Return the change of all sections; ``before`` is None if there is no build before."""
    return UrlChange(sum(after.values()), None if before is None else sum(before.values()))


def section_changes(after: UrlCounts, before: UrlCounts | None) -> dict[str, UrlChange]:
    """Return the change of each section, of those too that only the build before has."""
    return {
        name: UrlChange(after.get(name, 0), None if before is None else before.get(name, 0))
        for name in sorted(after.keys() | (before or {}).keys())
    }


def changes_by_build(builds: Collection[Build]) -> dict[int, UrlChange]:
    """Return how many URLs each build lists, and how many the site served before it first did.

    Of a build that was neither published nor held for review, nothing is compared; one that has
    no files is left out.
    """
    before = {build.pk: build.previous_id for build in builds if is_complete(build)}
    counts = url_counts_by_build([*(build.pk for build in builds), *before.values()])
    return {
        build.pk: total_change(counts[build.pk], counts.get(before.get(build.pk)) or None)
        for build in builds
        if counts[build.pk]
    }


def chart_context(
    builds: Iterable[Build], counts: dict[int | None, UrlCounts]
) -> dict[str, Any] | None:
    """Return what an SVG shows of the URLs of the last builds; None of fewer than two.

    A line leads through the published ones, in the order in which they went live last; those held
    for review stand beside it. Places are shares of the width, so that it fits any screen; a text
    says the same. ``counts`` are those of the builds.
    """
    shown = [build for build in builds if is_complete(build) and counts[build.pk]]
    shown.sort(key=lambda build: build.published_at or build.ended_at or build.started_at)
    shown = shown[-CHART_BUILDS:]  # The live one is the last but those held after it.
    if len(shown) < 2:
        return None
    urls = {build.pk: sum(counts[build.pk].values()) for build in shown}
    low, step, lines = _scale(list(urls.values()))

    def height(value: int) -> str:
        return f"{CHART_BOTTOM - (CHART_BOTTOM - CHART_TOP) * (value - low) / (step * lines):.1f}"

    points = [
        {
            "x": f"{1 + 98 * place / (len(shown) - 1):.1f}%",
            "y": height(urls[build.pk]),
            "held": build.status == Build.Status.HELD,
            "date": date_format(
                timezone.localtime(build.published_at or build.started_at), "SHORT_DATE_FORMAT"
            ),
            "name": _("build %(build)s, %(urls)s")
            % {"build": build.pk, "urls": number(urls[build.pk])},
        }
        for place, build in enumerate(shown)
    ]
    line = [point for point in points if not point["held"]]
    held = ", ".join(str(point["name"]) for point in points if point["held"])
    text = _("URLs of the last %(builds)s builds: %(first)s to %(last)s.") % {
        "builds": len(points),
        "first": points[0]["name"],
        "last": points[-1]["name"],
    }
    return {
        "points": points,
        "segments": list(pairwise(line)),
        "lines": [
            {"y": height(low + step * each), "text": number(low + step * each)}
            for each in range(lines + 1)
        ],
        "held": held,
        "last": points[-1],
        "text": " ".join(filter(None, (text, held and f"{_('Not published:')} {held}"))),
    }


def _scale(values: Sequence[int]) -> tuple[int, int, int]:
    """Return the lowest line of a chart, the URLs between two of them, and how many follow it."""
    least = max((max(values) - min(values)) / 2, max(values) / 20, 1)
    power = 10 ** (len(str(int(least))) - 1)
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least)
    low = min(values) // step * step
    return low, step, max(-(-(max(values) - low) // step), 1)


def match_texts(matches: UrlMatches) -> dict[str, Any]:
    """Return the numbers of a count as text, when what was counted was published, and the URLs.

    Of these, it is each as a link, and as people read it.
    """
    percent = 100 * matches.matched / max(matches.read, 1)
    return {
        "matched": number(matches.matched),
        "total": number(matches.total),
        "read": number(matches.read),
        "percent": "<1" if 0 < percent < 0.5 else f"{percent:.0f}",
        "locations": [(each, unquote(each)) for each in matches.locations],
        "published": moment_text(matches.build.published_at) if matches.build else "",  # type: ignore[arg-type]
    }
