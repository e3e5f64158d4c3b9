"""Holding back a build in which so much is gone that someone should look at it first."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType

from django_sitemapkit.conf import settings
from django_sitemapkit.models import BuildFile

NOTHING: Mapping[str, int] = MappingProxyType({})
"""No section, and no URL of it."""


def shrinkage(
    published: Iterable[BuildFile],
    pages: Iterable[BuildFile],
    leaving: Mapping[str, int] = NOTHING,
) -> str:
    """Return in what a build's pages have too few URLs beside the published ones, or "".

    More than SITEMAPKIT_MAX_SHRINK of a section's URLs would be gone. Where no section loses so
    much, the site does not either. ``leaving`` says how many of a section's are meant to go.
    """
    allowed = Decimal(str(settings.MAX_SHRINK))  # 0.29 of 100 is 29, and not a little less.
    before, after = _urls(published), _urls(pages)
    for name in sorted(before):
        lost = before[name] - after[name] - leaving.get(name, 0)
        if lost > before[name] * allowed:
            return (
                f"section {name!r} would go from {before[name]:,} URLs to {after[name]:,}, and"
                f" SITEMAPKIT_MAX_SHRINK allows it to lose {float(allowed * 100):g}%"
            )
    return ""


def _urls(pages: Iterable[BuildFile]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in pages:
        counts[line.section] += line.urls
    return counts
