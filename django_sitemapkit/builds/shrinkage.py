"""Holding back a build in which so much is gone that someone should look at it first."""

from collections import Counter
from decimal import Decimal

from django_sitemapkit.builds.manifests import pages
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build


def shrinkage(live: Build, record: Build) -> str:
    """Return in what a build has too few URLs beside the published one, or "".

    More than SITEMAPKIT_MAX_SHRINK of a section's URLs would be gone. Where no section loses so
    much, the site does not either.
    """
    allowed = Decimal(str(settings.MAX_SHRINK))  # 0.29 of 100 is 29, and not a little less.
    before, after = _urls(live), _urls(record)
    for name in sorted(before):
        if before[name] - after[name] > before[name] * allowed:
            return (
                f"section {name!r} would go from {before[name]:,} URLs to {after[name]:,}, and"
                f" SITEMAPKIT_MAX_SHRINK allows it to lose {float(allowed * 100):g}%"
            )
    return ""


def _urls(build: Build) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, urls in pages(build).values_list("section", "urls"):
        counts[name] += urls
    return counts
