"""How many URLs builds list, and how that has changed since the build before."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import moment_text, number
from django_sitemapkit.builds.report.matches import UrlMatches
from django_sitemapkit.builds.report.status import is_whole, live_before
from django_sitemapkit.models import Build, Place

LOSS = 0.05
"""The share of its URLs that a site or section may lose before that is marked."""

CHART_BUILDS = 30
"""Published builds that a chart shows."""

CHART_WIDTH, CHART_HEIGHT = 180, 30

MINUS = "\N{MINUS SIGN}"

UrlCounts = dict[str, int]
"""URLs by section."""


@dataclass(frozen=True, slots=True)
class UrlChange:
    """A number of URLs, and what it was in the build before.

    Example::

        UrlChange(after=1330, before=1000).text  # "+330 (+33 %)"
    """

    after: int
    """How many there are."""
    before: int | None
    """How many there were; None if there is no build before."""

    @property
    def count(self) -> str:
        """How many there are, as text."""
        return number(self.after)

    @property
    def text(self) -> str:
        """The difference, with its share if that is a percent or more; "" if there is none."""
        if self.before is None or self.after == self.before:
            return ""
        more = self.after - self.before
        text = _signed(more)
        percent = round(100 * more / self.before) if self.before else 0
        if not percent:
            return text
        return _("%(change)s (%(percent)s %%)") % {"change": text, "percent": _signed(percent)}

    @property
    def is_loss(self) -> bool:
        """Whether so many are gone that somebody should look."""
        return bool(self.before) and self.before - self.after > LOSS * self.before  # type: ignore[operator]

    def __str__(self) -> str:
        """Return both as HTML."""
        if not self.text:
            return self.count
        kind = "sitemapkit-loss" if self.is_loss else "quiet"
        return format_html('{} <span class="{}">{}</span>', self.count, kind, self.text)


def _signed(value: int) -> str:
    return f"{'+' if value > 0 else MINUS}{number(abs(value))}"


def url_counts(builds: Iterable[int | None]) -> dict[int | None, UrlCounts]:
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
    names = sorted(after.keys() | (before or {}).keys())
    return {
        name: UrlChange(after.get(name, 0), None if before is None else before.get(name, 0))
        for name in names
    }


def changes_of(builds: Collection[Build]) -> dict[int, UrlChange]:
    """Return how many URLs each build lists, and how many the site served before it.

    Of a build that was neither published nor held for review, nothing is compared; one that has
    no files is left out.
    """
    before = live_before([build for build in builds if is_whole(build)])
    counts = url_counts([*(build.pk for build in builds), *before.values()])
    return {
        build.pk: total_change(counts[build.pk], counts.get(before.get(build.pk)) or None)
        for build in builds
        if counts[build.pk]
    }


def chart_of(builds: Iterable[Build], changes: dict[int, UrlChange]) -> dict[str, Any] | None:
    """Return the points of a line through the URLs of the last published builds; None of few.

    They are for an SVG of the size of the chart, and a text says the same.
    """
    keys = sorted(build.pk for build in builds if build.published_at is not None)[-CHART_BUILDS:]
    totals = [changes[pk].after for pk in keys if pk in changes]  # Others have no files.
    if len(totals) < 2:
        return None
    top, step = max(*totals, 1), CHART_WIDTH / (len(totals) - 1)
    inner = CHART_HEIGHT - 2
    points = [
        f"{place * step:.1f},{1 + inner - inner * total / top:.1f}"
        for place, total in enumerate(totals)
    ]
    text = _("URLs of the last %(builds)s published builds: from %(first)s to %(last)s.")
    values = {"builds": len(totals), "first": number(totals[0]), "last": number(totals[-1])}
    return {
        "points": " ".join(points),
        "text": text % values,
        "width": CHART_WIDTH,
        "height": CHART_HEIGHT,
    }


def texts_of(matches: UrlMatches) -> dict[str, str]:
    """Return the numbers of a count as text, and when what was counted was published."""
    percent = 100 * matches.matched / max(matches.read, 1)
    return {
        "matched": number(matches.matched),
        "total": number(matches.total),
        "read": number(matches.read),
        "percent": "<1" if 0 < percent < 0.5 else f"{percent:.0f}",
        "published": moment_text(matches.build.published_at) if matches.build else "",  # type: ignore[arg-type]
    }
