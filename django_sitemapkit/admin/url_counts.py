"""How many URLs builds list, and how that has changed since the build before."""

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import moment_text, number_text
from django_sitemapkit.builds.report.differences import UrlChange
from django_sitemapkit.builds.report.published import UrlMatches, is_complete
from django_sitemapkit.models import Build, Place

CHART_BUILDS = 30
"""Builds that a chart shows."""

CHART_TOP, CHART_BOTTOM = 12, 120
"""Where the highest and the lowest line of a chart are, in pixels."""

UrlCounts = dict[str, int]
"""URLs by section."""


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


def chart_context(
    builds: Iterable[Build], counts: dict[int | None, UrlCounts]
) -> dict[str, Any] | None:
    """Return the context of an SVG chart of the URLs of the last builds; None for fewer than two.

    A line connects the published builds, in the order in which they went live last; builds held for
    review are points beside it. ``x`` is a share of the width, so that the chart fits any screen.
    ``text`` says the same. ``counts`` are the numbers of URLs by build.
    """
    shown = [build for build in builds if is_complete(build) and counts[build.pk]]
    shown.sort(key=lambda build: build.published_at or build.ended_at or build.started_at)
    shown = shown[-CHART_BUILDS:]  # The live one is the last but those held after it.
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
            "name": _("build %(build)s, %(urls)s")
            % {"build": build.pk, "urls": number_text(urls[build.pk])},
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
            {"y": y_position(low + step * each), "text": number_text(low + step * each)}
            for each in range(lines + 1)
        ],
        "held": held,
        "last": points[-1],
        "text": " ".join(filter(None, (text, held and f"{_('Not published:')} {held}"))),
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
