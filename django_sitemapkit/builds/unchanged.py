"""A build that changes nothing, as most do: recorded without a manifest of its own.

A manifest exists for a build to be resumed, and here is nothing to resume. That saves a third of
the queries, which is most of what a small site costs.
"""

from copy import copy

from django_sitemapkit.builds.make.page_builder import PageBuilder
from django_sitemapkit.builds.manifest import Draft, SiteBuilds, page_rows_of
from django_sitemapkit.builds.publication.gates import FinishedBuild
from django_sitemapkit.builds.publication.publishing import Outcome, end_if_unchanged
from django_sitemapkit.models import Place
from django_sitemapkit.publishing import SitemapStorage


def record_unchanged(
    draft: Draft, builds: SiteBuilds, builder: PageBuilder, storage: SitemapStorage
) -> tuple[Outcome, list[Place]] | None:
    """Record a build of all sections that has what is published, and return its rows.

    None, and nothing is recorded, if any page has to be rendered or the index is another.
    ``builder`` belongs to the build, which is not saved yet.
    """
    rows = _kept_rows(draft, builder) if builds.published else None
    if rows is None:
        return None
    finished = FinishedBuild(
        site=builds.site,
        build=builder.record_of_build,
        rows=rows,
        published=page_rows_of(builds.rows_of(builds.published)),
    )
    outcome = end_if_unchanged(finished, builds, builder.lease, storage)
    return None if outcome is None else (outcome, rows)


def _kept_rows(draft: Draft, builder: PageBuilder) -> list[Place] | None:
    """Return the rows of a draft with the files that are stored; None if any has to be rendered.

    The draft keeps the fingerprints that had to be computed.
    """
    if draft.lost:
        return None
    rows = list(map(copy, draft.rows))
    pairs = sorted(zip(draft.rows, rows, strict=True), key=lambda pair: not pair[0].fingerprint)
    for row, kept in pairs:  # Those first whose fingerprints are known.
        if row.status == Place.Status.PENDING:
            kept.fingerprint = row.fingerprint = row.fingerprint or builder.fingerprint_of(row)
            if not builder.can_keep(kept):
                return None
    return rows
