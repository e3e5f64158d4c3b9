"""How many URLs of each section Google has indexed, as far as they were inspected."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count

from django_sitemapkit.intervals import share_interval
from django_sitemapkit.models import Place, Publication
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.submission.models import InspectedUrl


@dataclass(slots=True, kw_only=True)
class SectionIndexing:
    """Counts of a section's inspected URLs by their state in Google's index."""

    section: str
    """The name of the section."""
    urls: int
    """URLs that it lists."""
    states: Counter[str] = field(default_factory=Counter)
    """How many of those inspected have each state."""
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many have each state and what Google says of it."""

    @property
    def inspected(self) -> int:
        """The number of inspected URLs."""
        return sum(self.states.values())

    @property
    def indexed(self) -> int:
        """The number of inspected URLs that are indexed."""
        return self.states[InspectedUrl.State.INDEXED]

    @property
    def indexed_share_interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the share of indexed URLs among all of the section.

        It is the lower and the upper bound, from 0 to 1.
        """
        return share_interval(self.indexed, self.inspected, self.urls)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and the interval for JSON."""
        return {
            "section": self.section,
            "urls": self.urls,
            "inspected": self.inspected,
            "states": dict(self.states),
            "reasons": [
                {"state": state, "reason": reason, "urls": count}
                for (state, reason), count in self.reasons.most_common()
            ],
            "indexed_share": [round(share, 4) for share in self.indexed_share_interval],
        }


def indexing_by_section(site: SitemapSite) -> list[SectionIndexing]:
    """Return the counts of each section that the site publishes and has an inspected URL."""
    published = Publication.objects.filter(site=site.key).values("build")
    found = {
        total["section"]: SectionIndexing(section=total["section"], urls=total["urls"])
        for total in Place.objects.filter(build__in=published).totals("section")
    }
    rows = InspectedUrl.objects.filter(site=site.key, section__in=found).exclude(state="")
    counted = rows.order_by().values_list("section", "state", "coverage_state")
    for section, state, reason, count in counted.annotate(urls=Count("pk")):
        found[section].states[state] += count
        found[section].reasons[state, reason] += count
    return [each for each in found.values() if each.inspected]
