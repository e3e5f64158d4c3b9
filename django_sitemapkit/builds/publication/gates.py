"""Publish gates: what holds a build for review, because someone should look at it first."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from django_sitemapkit.builds.manifest import page_rows_of
from django_sitemapkit.builds.report.differences import DifferenceKind, compare
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Build, Place
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State


@dataclass(frozen=True, kw_only=True)
class FinishedBuild:
    """A build of which all pages are stored, as a publish gate judges it."""

    site: SitemapSite
    """The site that was built."""
    build: Build
    """The build; it is not published yet."""
    rows: Sequence[Place]
    """The rows of its manifest, with URLs or without; the indexes are not among them."""
    published: Sequence[Place] = ()
    """The pages with URLs that the site serves now."""
    leaving: Mapping[str, int] = field(default_factory=dict)
    """How many URLs of a section are meant to go."""
    chosen: Collection[str] = ()
    """The sections that were built; empty if all were."""
    strict: bool = False
    """Whether a build in which rows were skipped is held."""
    heartbeat: Callable[[], None] = lambda: None
    """What a gate that takes long has to call between two steps, or the lease expires."""

    @cached_property
    def pages(self) -> list[Place]:
        """Its pages with URLs, in the order of the index."""
        return page_rows_of(self.rows)


Gate = Callable[[FinishedBuild], State]


def shrinkage(finished: FinishedBuild) -> State:
    """Return in what a build has too few URLs compared with the published one, or "".

    More than SITEMAPKIT_MAX_SHRINK of a section's URLs would be gone. If no section loses so much,
    the site does not either. A URL that another section lists is not gone: to find that out, files
    are read, and only if a section would shrink by so much.
    """
    allowed = Decimal(str(settings.MAX_SHRINK))  # 0.29 of 100 is 29, and not a little less.
    before, after = _urls(finished.published), _urls(finished.pages)
    for name in sorted(before):
        leaving, bound = finished.leaving.get(name, 0), before[name] * allowed
        lost = before[name] - after[name]
        if lost - leaving <= bound:
            continue
        gone = min(lost, _gone(finished, name, lost))
        if gone - leaving > bound:
            return {
                "code": "shrinkage-besides-moved" if gone < lost else "shrinkage",
                "section": name,
                "before": before[name],
                "urls": after[name],
                "moved": lost - gone,
                "allowed": f"{float(allowed * 100):g}",
            }
    return ""


def skipped_rows(finished: FinishedBuild) -> State:
    """Return how many rows of which section were skipped, in a strict build, or ""."""
    if not finished.strict:
        return ""
    counts: Counter[str] = Counter()
    problems: dict[str, str] = {}
    for row in finished.rows:
        if row.skipped and (not finished.chosen or row.section in finished.chosen):
            counts[row.section] += row.skipped
            problems.setdefault(row.section, next(iter(row.problem_texts), ""))
    sections = [
        {"code": "skipped", "section": name, "rows": count, "problem": problems[name]}
        for name, count in sorted(counts.items())
    ]
    return {"code": "skipped-rows", "sections": sections} if sections else ""


_gates: list[Gate] = [shrinkage, skipped_rows]


def register_gate(gate: Gate) -> None:
    """Have builds judged by ``gate`` before they are published.

    It gets a FinishedBuild and returns "" or the reason to hold the build for review: a text that
    is shown as it is. It is called under the lease of the site: if it takes longer than a few
    seconds, it must call ``finished.heartbeat()`` now and then. What it raises fails the build.
    Register it in ``AppConfig.ready()``::

        from django_sitemapkit.builds import FinishedBuild, register_gate


        def keep_the_shop(finished: FinishedBuild) -> str:
            urls = sum(page.urls for page in finished.pages if page.section == "products")
            return "" if urls else "the shop would be gone"


        register_gate(keep_the_shop)
    """
    if gate not in _gates:
        _gates.append(gate)


def reason_to_hold(finished: FinishedBuild) -> State:
    """Return why a build is held for review, or ""."""
    return next((reason for gate in _gates if (reason := gate(finished))), "")


def _gone(finished: FinishedBuild, section: str, lost: int) -> int:
    """Return how many published URLs of a section no page of a build lists; ``lost`` if unknown."""
    try:
        found = compare(finished.published, finished.pages)
        return sum(one.kind is DifferenceKind.REMOVED and one.section == section for one in found)
    except StorageFailure:
        return lost


def _urls(pages: Iterable[Place]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in pages:
        counts[row.section] += row.page.urls
    return counts
