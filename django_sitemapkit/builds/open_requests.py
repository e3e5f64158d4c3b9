"""Recorded requests as builds see them: which are open, and which of them a build answers."""

from collections.abc import Collection, Sequence

from django.utils import timezone

from django_sitemapkit.builds.manifest import BuildResult
from django_sitemapkit.models import BuildRequest
from django_sitemapkit.printable import printable_lines
from django_sitemapkit.sites import SitemapSite


def answered_by_build(site: SitemapSite, sections: Collection[str], *, full: bool) -> list[int]:
    """Return the ids of the open requests that are done when a build that begins now is.

    What is asked for while it runs is not among them: it may have passed those rows already.
    """
    rows = BuildRequest.objects.open(site).filter(kind=BuildRequest.Kind.BUILD)
    if sections:
        rows = rows.filter(section__in=sections)
    if not full:
        rows = rows.filter(full=False)
    return list(rows.values_list("pk", flat=True))


def close_requests(
    requests: Sequence[int], outcome: str, *, build: int | None = None, failed: bool = False
) -> None:
    """Record what became of some requests; those that someone else has closed stay as they are."""
    if requests:
        text = printable_lines(outcome)
        BuildRequest.objects.filter(pk__in=requests, ended_at=None).update(
            ended_at=timezone.now(), dedup_key=None, build=build, failed=failed, outcome=text
        )


def summary_of(result: BuildResult) -> str:
    """Return what a build came to, in one or two sentences."""
    if result.status == "held":
        return f"Build {result.build} is held for review: {result.reason}."
    text = (
        f"Build {result.build}: {result.status}; {result.urls:,} URLs in {len(result.files):,}"
        f" files, {result.stored:,} stored."
    )
    skipped = sum(file.skipped for file in result.files)
    return f"{text} {skipped:,} rows were left out." if skipped else text
