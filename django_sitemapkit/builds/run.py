"""Building a site: ``build()`` makes its files and publishes them."""

from collections.abc import Collection

from django_sitemapkit.builds.events import announce_ended
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.make.page_builder import PagesMoved
from django_sitemapkit.builds.make.runner import InlineRunner, Runner
from django_sitemapkit.builds.results import (
    BuildResult,
    answered_by_build,
    close_requests,
    outcome_of,
)
from django_sitemapkit.builds.state import BuildState, OnFile
from django_sitemapkit.builds.steps import export_what_is_left, plan, run
from django_sitemapkit.conf import sites_kept
from django_sitemapkit.exceptions import BuildFailed, NothingToPublish
from django_sitemapkit.overrides import require_sections
from django_sitemapkit.sites import SitemapSite

MAX_MOVES = 4
"""How often a view may split a page of a build, so that it begins again, until the call fails."""


@sites_kept()
def build(
    site: SitemapSite,
    *,
    sections: Collection[str] = (),
    distrusted: Collection[str] = (),
    runner: Runner | None = None,
    on_file: OnFile | None = None,
    full: bool = False,
    strict: bool = False,
    started_by: str = "",
) -> BuildResult:
    """Make the files of a site and publish them; what ``build_sitemaps`` does.

    ``sections`` names those to build; the others keep the files they have. ``distrusted`` are
    stored names that are not to be reused. ``runner`` has the pages made; by default this process
    makes them. ``on_file`` is called with the result of each file, its place and how many there
    are. ``started_by`` names who asked for it.

    A page is rendered again if its fingerprint changed: its rows, its section, the code or the
    settings. With ``full`` all are; those that turn out the same keep their files. With ``strict``
    a build in which rows were skipped is held for review.

    What a build has stored that ended early, such as that of a killed process, is adopted if the
    declaration is still the same. If only rendering tells what some of these pages are, they are
    published as they are, and the site is built again, so that every change before the call is in
    what the call publishes. Open requests for such a build are closed by it.

    Raises BuildRunning if another process builds the site, ValueError for a section the site does
    not have, and BuildFailed, StorageFailure, LeaseLost or a database error if the build could not
    be finished. Then what was published still is, and the next call adopts its pages. Raises
    BuildCancelled if someone cancels the build; the next call starts a new one.
    """
    require_sections(site, sections)
    runner = runner or InlineRunner()
    runner.validate()
    with acquire(site, makes_build=True) as lease:
        answered = answered_by_build(site, sections, full=full)
        state = BuildState(
            site=site,
            lease=lease,
            chosen=sections,
            distrusted=frozenset(distrusted),
            runner=runner,
            on_file=on_file,
            full=full,
            strict=strict,
            started_by=started_by,
        )
        export_what_is_left(state)
        result = _build(state)
        if answered:
            close_requests(answered, outcome_of(result))
        return result


def _build(state: BuildState) -> BuildResult:
    """Build until a build has seen all of its pages; return what became of that one."""
    moves = 0
    while moves < MAX_MOVES:
        try:
            result = run(state, plan)
        except PagesMoved:
            moves += 1
        except NothingToPublish as error:
            if not state.has_unseen:
                raise
            state.abandoned, state.has_unseen = str(error), False
        else:
            if not state.has_unseen:
                return result
            state.has_unseen = False
        state.lease.begin_next()
        state.begin()
    key = state.site.key
    failed = BuildResult(site=key, build=None, status="failed", cause={"code": "pages-moved"})
    announce_ended(None, failed)
    raise BuildFailed(f"Site {key!r}: {failed.reason}.")
