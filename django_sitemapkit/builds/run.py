"""Building a site: ``build()`` makes its files and publishes them."""

from collections.abc import Collection

from django_sitemapkit.builds.builder import Builder, OnFile
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
from django_sitemapkit.conf import sites_kept
from django_sitemapkit.exceptions import (
    BuildFailed,
    NothingToPublish,
    SitemapKitError,
)
from django_sitemapkit.overrides import require_sections
from django_sitemapkit.sites import SitemapSite

MAX_RUNS = 4
"""How often a call builds: once to resume a build, once to make a new one, and twice more.

A view may split a page meanwhile.
"""


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

    A build that a killed process left is resumed and published first; then the site is built as it
    is now, so that every change before the call is in what the call publishes. Open requests for
    such a build are closed by it.

    Raises BuildRunning if another process builds the site, ValueError for a section the site does
    not have, and BuildFailed, StorageFailure, LeaseLost or a database error if the build could not
    be finished. Then what was published still is, and the next call resumes it. Raises
    BuildCancelled if someone cancels the build; the next call starts a new one.
    """
    require_sections(site, sections)
    runner = runner or InlineRunner()
    runner.validate()
    with acquire(site, makes_build=True) as lease:
        answered = answered_by_build(site, sections, full=full)
        builder = Builder(
            site,
            lease,
            sections,
            distrusted,
            runner,
            on_file,
            full=full,
            strict=strict,
            started_by=started_by,
        )
        builder.export_what_is_left()
        for run in range(MAX_RUNS):
            if run:
                lease.begin_next()
            try:
                result = builder.run()
            except PagesMoved:
                continue
            except SitemapKitError as error:
                if builder.continued and isinstance(error, NothingToPublish):
                    builder.stop(str(error))  # What is there now may well be published.
                    continue
                raise
            if not builder.continued:
                if answered:
                    close_requests(answered, outcome_of(result))
                return result
            builder.resumed = result.build
    failed = BuildResult(site=site.key, build=None, status="failed", cause={"code": "pages-moved"})
    announce_ended(None, failed)
    raise BuildFailed(f"Site {site.key!r}: {failed.reason}.")
