"""The steps of a build, in their order: from the plan to the files that are published.

``build()`` and *Exclude now* go through the same steps, over one state. Whatever ends one of them,
what is published stays complete; docs/guarantees.md says what is left behind.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from django_sitemapkit.builds.make.deduplication import (
    PageComparison,
    hashed_sections,
    prove_unchanged_by_digests,
)
from django_sitemapkit.builds.make.page_builder import BuildMustRestart, PageBuilder
from django_sitemapkit.builds.make.reuse import Reuse
from django_sitemapkit.builds.manifest import (
    DECIDED,
    SPACING,
    PageName,
    StoredFiles,
    copy_file_facts,
    covers,
    key_range_of,
    page_name_of,
    page_rows_of,
    planned_rows_of,
    rows_in_batches,
    rows_in_index_order,
    unsaved_copy,
)
from django_sitemapkit.builds.publication.delivery import export_and_announce, prune
from django_sitemapkit.builds.publication.publishing import (
    end_if_unchanged,
    publish_finished,
)
from django_sitemapkit.builds.results import (
    BuildResult,
    announce_ended,
    announce_started,
    reason_of,
    result_of_row,
)
from django_sitemapkit.builds.state import BuildState
from django_sitemapkit.exceptions import BuildFailed, LeaseLost
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import refresh_plan, renumber_pages
from django_sitemapkit.printable import logger
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.validation import naming_section
from django_sitemapkit.words import State


def run_steps(state: BuildState, draft: Callable[[BuildState], None]) -> BuildResult:
    """Run all steps of a build; announce it and return its result.

    ``draft`` sets the record and the rows of the build; neither is recorded yet. Raises
    BuildMustRestart if the site must be built once more; that build adopts the files that this one
    has stored.
    """
    try:
        draft(state)
        result = end_if_unchanged(state) if _has_nothing_to_make(state) else None
        if result is None:
            start_drafted_build(state)
            make_pages(state)
            rebuild_lost_pages(state)
            result = end_if_unchanged(state) or publish_finished(state)
        _give_up_unfinished(state)
        export_and_announce(state, everything=state.full and not state.has_unseen)
        _prune_or_log(state)
    except BaseException as error:
        _end_with_error(state, error)
        raise
    result = state.result(result.status, result.cause, result.build)  # As of now.
    announce_ended(state.build.pk, result, is_followed=state.has_unseen)
    return result


def plan_build(state: BuildState) -> None:
    """Bring the plans up to date, and draft a build of their pages.

    Sections that were not chosen keep the files that are published, if they have any. A page that
    lost rows to another one gets a new number, also in the plan: readers of the published index ask
    for the old one, and for all of its rows.
    """
    builds, published = state.builds, state.builds.published
    state.sections = sections_of(state.site)
    state.hashed = hashed_sections(state.sections, builds_all=not state.chosen)
    reuse = Reuse(state.site, state.stored_files, hashed=state.hashed)
    fingerprints = reuse.fingerprints
    unseen: list[str] = []
    for section in state.sections:
        heartbeat()
        name = section.get_name()
        stored = [row for row in builds.rows_of(published) if row.section == name]
        if stored and state.chosen and name not in state.chosen:
            state.rows += map(unsaved_copy, stored)
            unseen.append(name)
            continue
        with naming_section(section):
            pages = refresh_plan(
                section,
                counts=fingerprints.prefetch if published and not state.full else None,
                sizes=builds.page_sizes_of(name),
            ).planned
        rows = planned_rows_of(section, pages)
        if lost := _numbers_that_lost_rows(section, rows, stored):
            with state.lease.fenced_transaction():
                numbers = renumber_pages(section, lost)
            for row in rows:
                row.number = numbers.get(row.number, row.number)
        state.rows += rows
    for place, row in enumerate(state.rows):
        row.position = place * SPACING
    declaration = fingerprints.declaration_digest_of(state.sections, state.chosen)
    # What a build of other sections has stored waits for a build of all.
    state.unfinished = [
        left
        for left in state.builds.running_or_held
        if left.status == Build.Status.RUNNING
        and (state.covers_all_sections or left.options.get("declaration") == declaration)
    ]
    for left in state.unfinished:
        state.distrusted.update(left.options.get("distrusted", ()))
    state.record = state.unsaved_build(declaration)
    state.record.checked_by = published.checking_build_ids(unseen) if published else {}
    adopt_and_reuse(state, reuse)


def adopt_and_reuse(state: BuildState, reuse: Reuse) -> None:
    """Let pages that are unchanged keep their stored files.

    The files are those of the published build, of the one held for review, and of builds that ended
    early with the same declaration, whose pages are adopted. Adopted pages that only rendering can
    judge, and all of a full build, are published as they are; a build that has to follow at once
    renders them.
    """
    adoptable = {
        build.pk for build in state.unfinished if _fate_of_pages(state, build) == "adopted"
    }
    stored = _reusable_rows_by_page(state, adoptable)
    sections = {section.get_name(): section for section in state.sections}
    for row in state.pending if stored else ():
        heartbeat()
        section, candidates = sections[row.section], stored[page_name_of(row)]
        keys = key_range_of(row, section)
        previous, _why = reuse.find_reusable(section, keys, candidates, adopts=adoptable)
        if previous is None:
            continue
        if previous.build_id in adoptable:
            state.adopted += 1
            is_judged = previous.fingerprint and not state.full
            is_seen = is_judged or previous.build_id in state.begun
            state.has_unseen = state.has_unseen or not is_seen
        copy_file_facts(row, previous)
        row.revision = section.overrides.revision
        state.report_file(result_of_row(row), len(state.rows) + 1)


def start_drafted_build(state: BuildState) -> None:
    """Store the drafted build, as running, and its rows; announce that it has started.

    Gives up builds that ended early. Afterwards ``state.rows`` are the stored rows.
    """
    record = state.build
    with state.lease.fenced_transaction():
        record.save()
        for row in state.rows:
            row.build = record
        for some in rows_in_batches(state.rows):
            Place.objects.bulk_create(some)
    _give_up_unfinished(state)
    state.begun.add(record.pk)
    state.rows = rows_in_index_order(record)
    announce_started(record, pages=len(state.pending), adopted=state.adopted)


def make_pages(state: BuildState) -> None:
    """Have the runner make the pending pages, until none is pending.

    Those of ``state.hashed`` are compared, and made again until each of their URLs is listed once.
    """
    builder = PageBuilder(
        *(state.builds, state.build, state.lease, state.sections), hashed=state.hashed
    )
    with builder:
        comparison = None
        if state.hashed:
            sections = set(state.hashed)
            if state.chosen:  # The published files may be of sections that are gone.
                sections |= {row.section for row in state.rows if row.section}
            comparison = PageComparison(builder.keep_hashes(), sections, state.chosen)
        while True:
            if comparison is not None and comparison.is_due(state.rows):
                compare_pages(state, comparison)
            if not (pending := state.pending):
                return
            total = len(state.files) + len(pending) + 1
            for result in state.runner.run(builder, pending):
                state.report_file(result, total)
            if state.pending or builder.has_split:  # Or other processes have recorded them.
                state.rows = rows_in_index_order(state.build)
                builder.has_split = False


def compare_pages(state: BuildState, comparison: PageComparison) -> None:
    """Compare the URLs of all pages; a page that repeats URLs of an earlier one becomes pending."""
    again, changed = comparison.compare(state.rows)
    for some in rows_in_batches(changed):
        with state.lease.fenced_transaction():
            Place.objects.bulk_update(some, ["prefix_digest", "urls_digest"])
    if comparison.damaged:
        known = state.build.options["distrusted"]
        known += comparison.damaged.difference(known)  # The builder looks at this very list.
        with state.lease.fenced_transaction():
            state.build.save(update_fields=["options"])
    if again:
        _set_pending(state, again)
        return
    Place.objects.filter(build=state.build, url_hashes__isnull=False).update(url_hashes=None)


def rebuild_lost_pages(state: BuildState) -> None:
    """Make pages again whose files are missing in the storage.

    They may be those of a process that was killed, or of sections that the build leaves as they are
    published. Raises BuildFailed if a file is missing afterwards.
    """
    if lost := _lost_pages(state):
        _set_pending(state, lost)
        make_pages(state)
        if lost := _lost_pages(state):
            raise BuildFailed(f"{lost[0].page.name} was stored, but is missing from the storage.")


def _numbers_that_lost_rows(
    section: SectionReader,
    rows: Sequence[Place],
    stored: Sequence[Place],
) -> list[int]:
    """Return the numbers of planned pages that lack rows which are published under that number."""
    published = {row.number: row for row in stored if row.status == Place.Status.DONE}
    keyset = section.keyset
    if keyset is None:
        return []
    lost: list[int] = []
    for row in rows:
        heartbeat()
        if row.number in published and not covers(row, published[row.number], keyset):
            lost.append(row.number)
    return lost


def _reusable_rows_by_page(
    state: BuildState, adoptable: Collection[int]
) -> dict[PageName, list[Place]]:
    """Return by page its rows whose files may be reused, the preferred one first.

    Published comes first, then held, then those of builds that ended early, the newest first.
    """
    pages = defaultdict(list) if state.full else state.builds.finished_pages()
    made = Place.objects.filter(build__in=adoptable).exclude(status=Place.Status.PENDING)
    for row in made.exclude(section="").select_related("page").order_by("-build"):
        pages[page_name_of(row)].append(row)
    return pages


def _has_nothing_to_make(state: BuildState) -> bool:
    """Return whether no page has to be made or compared.

    Then the build may change nothing, as most do, and its rows are not recorded before that is
    known: this saves a third of the queries, which is most of what a small site costs.
    """
    if state.pending or state.chosen or state.distrusted:
        return False
    return prove_unchanged_by_digests([row for row in state.rows if row.section in state.hashed])


def _set_pending(state: BuildState, rows: Sequence[Place]) -> None:
    """Set rows to pending, so that their pages are made again, and reload all rows.

    Earlier results of these pages are removed from the result of the build.
    """
    for row in rows:
        row.status, row.page, row.fingerprint, row.skipped = Place.Status.PENDING, None, "", 0
        row.url_hashes = None
    changed = ("status", "page", "fingerprint", "skipped", "url_hashes", *DECIDED)
    for some in rows_in_batches(rows):
        with state.lease.fenced_transaction():
            Place.objects.bulk_update(some, changed)
    again = set(map(page_name_of, rows))
    state.files = [file for file in state.files if (file.section, file.number) not in again]
    state.rows = rows_in_index_order(state.build)


def _lost_pages(state: BuildState) -> list[Place]:
    """Return the pages whose files are not stored."""
    return StoredFiles().lost(page_rows_of(state.rows))


def _prune_or_log(state: BuildState) -> None:
    """Delete the files of builds that are over; an error is logged, not raised."""
    known = {row.name for row in (*state.rows, *state.builds.rows_of(state.builds.published))}
    try:
        prune(state.site, state.lease, state.storage, export=state.export, known=known)
    except LeaseLost as error:
        logger.info("Site %r: %s It deletes the old files.", state.site.key, error)
    except Exception:  # The build is published: the next one deletes what is left.
        logger.exception(
            "Site %r: old files could not be deleted; the next build tries again.", state.site.key
        )


def _fate_of_pages(state: BuildState, left: Build) -> str:
    """Return "adopted" if the pages of an unfinished build may be adopted, or a code why not.

    It is "changed" if it had another declaration, of code or settings, and "interrupted" if this
    build renders all pages, which that one did not.
    """
    if left.options.get("declaration") != state.build.options["declaration"]:
        return "changed"
    return "adopted" if left.options["full"] or not state.full else "interrupted"


def _give_up_unfinished(state: BuildState) -> None:
    """Give up the builds that ended early: their usable pages are adopted by now."""
    for left in state.unfinished:
        code = _fate_of_pages(state, left)
        reason = left.reason or {"code": code}
        state.lease.abandon_builds([left.pk], reason)
        if code == "changed":
            state.abandoned = reason
        if not left.reason:  # Else its end is announced.
            ended = BuildResult(
                site=state.site.key, build=left.pk, status="abandoned", cause=reason
            )
            announce_ended(left.pk, ended, is_followed=True)
    state.unfinished = ()


def _end_with_error(state: BuildState, error: BaseException) -> None:
    """Announce that a build ended with an error; record why, unless it lost its lease.

    Its row stays as running, so that the next build adopts its pages. A build that was not stored
    yet is stored as failed. An error while recording is ignored.
    """
    reason = reason_of(error, state.site.key)
    if isinstance(error, BuildMustRestart):
        state.abandoned = reason = str(error)
    # Cancelled, or taken over by another process, or followed at once: nothing failed.
    status = "abandoned" if isinstance(error, LeaseLost | BuildMustRestart) else "failed"
    if isinstance(error, Exception) and not isinstance(error, LeaseLost):
        with suppress(Exception):  # The database may be what failed.
            _record_failure(state, status, reason)
    build = state.record.pk if state.record else None
    announce_ended(build, state.result(status, reason), is_followed=status == "abandoned")


def _record_failure(state: BuildState, status: str, reason: State) -> None:
    """Record why a build failed; one that is not stored yet is stored as failed and ended."""
    if state.record and state.record.pk:
        Build.objects.filter(
            pk=state.record.pk, status=Build.Status.RUNNING, fence=state.lease.fence
        ).update(reason=reason)
    elif status == Build.Status.FAILED:
        failed = state.unsaved_build("")
        failed.status, failed.reason, failed.ended_at = status, reason, failed.started_at
        with state.lease.fenced_transaction():
            failed.save()
        state.record = failed
