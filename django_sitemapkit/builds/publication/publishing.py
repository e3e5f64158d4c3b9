"""Publishing a finished build, holding one for review, and going back to an earlier one."""

import hashlib
import logging
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.utils import timezone

from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.manifest import (
    STORED,
    copy_file_facts,
    index_entries_of,
    page_name_of,
    page_rows_of,
    publishable_build,
    rows_in_batches,
)
from django_sitemapkit.builds.publication.delivery import export_and_announce
from django_sitemapkit.builds.publication.gates import (
    Pause,
    pause_at,
    pause_of,
    pause_publishing,
    reason_to_hold,
    warnings_of,
)
from django_sitemapkit.builds.results import BuildResult, FileResult, log_event, result_of_row
from django_sitemapkit.builds.state import BuildState
from django_sitemapkit.exceptions import BuildFailed, NothingToPublish, StorageFailure
from django_sitemapkit.models import (
    Build,
    Place,
    Publication,
    StoredNow,
    StoredPage,
)
from django_sitemapkit.printable import logger
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.publishing import file_name, folder_of, sync_file
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering import RenderedIndex, external_entries, write_index
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State, code_of, english_of


def publish_finished(state: BuildState) -> BuildResult:
    """Publish a build that has changed something, or hold it for review if a gate says so.

    A preview is always held. Any other build is also held while publishing is paused, unless an
    editor wants just this change to be published. If an identical build is held already, that one
    stays held, and this one is abandoned. Returns the result. Raises NothingToPublish if the build
    lists nothing at all, or more sitemaps than fit into an index.
    """
    record, builds, lease = state.build, state.builds, state.lease
    finished, index = state.finished, state.index
    if index is None or index.problem:
        reason = index.problem if index else registry.why_no_url
        with lease.fenced_transaction():
            _record_end(record, Build.Status.FAILED, reason=reason)
        stays = " The published build stays." if builds.published else ""
        raise NothingToPublish(f"Site {state.site.key!r}: {english_of(reason)}.{stays}")
    published = builds.published
    reason = reason_to_hold(finished)
    if state.preview:
        gated: State = {"code": "preview-held", "by": state.started_by, "why": reason}
        reason = gated if reason else state.preview_reason
    if not (reason or state.by_editor or published is None) and (pause := pause_of(state.site)):
        reason = {"code": "paused", "pause": pause.state}
    held = builds.held if reason else None
    if held is not None and _is_identical(state, held, index):
        if code_of(reason).startswith("preview"):
            reason = held.reason  # A preview does not make a preview of what was built to publish.
        held.previous, held.reason = published, reason  # Someone may have gone back meanwhile.
        why = {"code": "identical", "build": held.pk}
        _end_and_update_identical(state, held, Build.Status.ABANDONED, why)
        return state.result(Build.Status.HELD, reason, held.pk)
    record.previous = published
    dated: Sequence[Place] = ()
    if not reason:
        dated, with_dates = _date_changed_pages(state, finished.pages, state.externals)
        index = with_dates or index
    stored = builds.index_of(published)
    same = stored if _is_index_stored(state, index, stored) else None
    result = _store_index(state, index, same, dated)
    reason = reason or _serve(state, record, despite_pause=state.by_editor)
    state.report_file(result, len(state.files) + 1)
    if reason:
        with lease.fenced_transaction():
            _record_end(record, Build.Status.HELD, reason=reason)
    _abandon_held_builds_replaced_by(state, record)
    return state.result(record.status, reason)


def end_if_unchanged(state: BuildState) -> BuildResult | None:
    """Record a build as unchanged if it equals the published one; return its result or None.

    No page of it is missing, and it need not be saved yet. None means that it differs, that no
    build is published, or that its index lists nothing or has a problem: ``publish_finished``
    decides then.
    """
    finished, published, record = state.set_finished(), state.builds.published, state.build
    state.externals = [*external_entries(state.site)]
    index = write_index([*index_entries_of(state.site, finished.pages), *state.externals])
    state.index = index
    if index is None or index.problem:
        return None
    record.warnings = list(warnings_of(finished))
    if published is None or not _is_identical(state, published, index):
        return None
    _end_and_update_identical(state, published, Build.Status.UNCHANGED, state.preview_reason)
    _abandon_held_builds_replaced_by(state, record)
    return state.result(Build.Status.UNCHANGED)


def _date_changed_pages(
    state: BuildState, pages: Sequence[Place], externals: Iterable[IndexEntry]
) -> tuple[list[Place], RenderedIndex | None]:
    """Give the pages that change when a build is served the date of now; return them and an index.

    Nothing is saved. The pages may have been made days ago, for a preview or a review: a crawler
    that has read the address since then would not read it again.
    """
    published = page_rows_of(state.builds.rows_of(state.builds.published))
    served = {page_name_of(row): row.page.sha256 for row in published}
    new = [row for row in pages if served.get(page_name_of(row)) != row.page.sha256]
    now = timezone.now()
    for row in new:
        row.page.lastmod = now
    return new, write_index([*index_entries_of(state.site, pages), *externals])


def _redate_stored_build(state: BuildState, rows: Collection[Place]) -> None:
    """Give the files and the index of a stored build the date of now, as it is served from now on.

    If no index can be made or stored, they keep the dates that they have: a roll-back must also
    work when something else is broken.
    """
    row = next(row for row in rows if not row.section)
    try:
        dated, index = _date_changed_pages(state, page_rows_of(rows), external_entries(state.site))
        if index is None or index.problem or _is_index_stored(state, index, row):
            return
        _store_index_file(state, index, row)
    except Exception:  # The project's code and each storage raise errors of their own.
        logger.exception("The index of build %s keeps its earlier dates.", row.build_id)
    else:
        _save_index_and_dates(state, row, dated)


def _is_index_stored(state: BuildState, index: RenderedIndex, row: Place | None) -> bool:
    """Return whether the file of a row is an index with the same bytes, and is still stored."""
    return (
        row is not None
        and row.page.sha256 == hashlib.sha256(index.data).hexdigest()
        and state.stored_files.has(row.page.name)
    )


def _store_index(
    state: BuildState, index: RenderedIndex, same: Place | None, dated: Sequence[Place]
) -> FileResult:
    """Store an index, unless the stored file ``same`` has its bytes; save its row in the build.

    The date of the files of the pages in ``dated`` is saved too. Returns the result of the index.
    """
    started = time.perf_counter()
    row = Place(build=state.build)
    if same is None:
        _store_index_file(state, index, row)
    else:
        copy_file_facts(row, same)
    _save_index_and_dates(state, row, dated)
    return replace(
        result_of_row(row),
        state="same" if same else "stored",
        seconds=time.perf_counter() - started,
    )


def _save_index_and_dates(state: BuildState, row: Place, dated: Sequence[Place]) -> None:
    """Save the row of an index, and the date of the files of the pages in ``dated``."""
    with state.lease.fenced_transaction():
        for some in rows_in_batches(dated):  # All have one date: bulk_update() takes much longer.
            files = StoredPage.objects.filter(pk__in=[each.page_id for each in some])
            files.update(lastmod=some[0].page.lastmod)
        if row.page.pk is None:  # Else it is that of another build, too.
            row.page.save()
        row.save()


def _store_index_file(state: BuildState, index: RenderedIndex, row: Place) -> None:
    """Store an index as a file, and set its facts in the row, without saving that."""
    lease, site, storage = state.lease, state.site, state.storage
    sha256 = hashlib.sha256(index.data).hexdigest()
    row.page = StoredPage(
        site=site.key,
        name=file_name(site, str(row), sha256, row.build_id, lease.fence, "xml"),
        sha256=sha256,
        urls=index.sitemaps,
        xml_bytes=len(index.data),
        stored_bytes=len(index.data),
        lastmod=timezone.now(),
    )
    row.status = Place.Status.DONE
    with storage.work_folder(folder_of(site)) as folder:
        path = folder / "index.xml"
        with path.open("wb") as file:
            file.write(index.data)
            sync_file(file)
        with lease.keep_alive():
            storage.put(row.page.name, path)


def _is_identical(state: BuildState, build: Build, index: RenderedIndex) -> bool:
    """Return whether another build has the same pages and index, with its index still stored."""
    pages = _comparable_facts(page_rows_of(state.builds.rows_of(build)))
    is_same = pages == _comparable_facts(state.finished.pages)
    return is_same and _is_index_stored(state, index, state.builds.index_of(build))


def _end_and_update_identical(
    state: BuildState, same: Build, status: Build.Status, reason: State
) -> None:
    """Record that a build has the same files as ``same``, whose rows get its newer facts.

    The build ends with ``status`` and ``reason``; it is saved if it is not saved yet, else its rows
    are deleted. The build ``same`` is also recorded as compared with the rows now: rows may change
    without their entries, and the next build would otherwise make those pages again. A page without
    a URL that ``same`` lacks is added to it.
    """
    record, rows = state.build, state.finished.rows
    stored = {page_name_of(row): row for row in state.builds.rows_of(same) if row.section}
    with state.lease.fenced_transaction():
        is_new = record.pk is None
        if is_new:
            record.status, record.ended_at, record.reason = status, StoredNow(), reason
            record.save()
        for row in rows:
            known = stored.get(page_name_of(row))
            if known is None:
                row.build = same
                row.save()
            elif any(getattr(known, name) != getattr(row, name) for name in (*STORED, "revision")):
                copy_file_facts(known, row)
                known.revision = row.revision
                known.save(update_fields=[*STORED, "revision"])
        same.checked_by = record.checking_build_ids({row.section for row in rows})
        same.save(update_fields=["checked_by", "previous", "reason"])
        if not is_new:
            Place.objects.in_build(record).delete()
            _record_end(record, status, reason=reason)


def _abandon_held_builds_replaced_by(state: BuildState, record: Build) -> None:
    """Give up the builds held for review that the later build ``record`` replaces.

    A build of some sections replaces only those that the same call began, and one that is held only
    previews.
    """
    earlier = [b for b in state.builds.running_or_held if b.pk < record.pk]
    if record.status == Build.Status.HELD:
        held = [b.pk for b in earlier if b.outcome == "preview"]
    else:
        held = [b.pk for b in earlier if b.status == Build.Status.HELD]
    held = [pk for pk in held if state.covers_all_sections or pk in state.begun]
    if held:
        state.lease.abandon_builds(held, {"code": "superseded", "build": record.pk})


def publish(site: SitemapSite, build: int, *, pause: Pause | None = None) -> int:
    """Publish a build that is stored: what ``publish_sitemaps`` does.

    It is one that was held, or an earlier one. Of the one that is served already, all is exported
    and announced once more. Returns how many files were exported.

    With ``pause``, publishing is paused in the same transaction, so that no build comes between. A
    pause that is in force does not matter here, and stays in force.

    Raises BuildFailed if there is no such build, or its files are gone or damaged in size, and
    BuildRunning while the site is being built.
    """
    with acquire(site) as lease:
        record = publishable_build(site, build)
        state = BuildState(site=site, lease=lease)
        rows = Place.objects.in_build(record).filter(status=Place.Status.DONE)
        if lost := state.stored_files.lost(rows):
            raise BuildFailed(
                f"Build {build} cannot be published: {lost[0].name} is missing from the storage."
            )
        for row in rows:
            lease.heartbeat()
            try:
                size = state.storage.size(row.page.name)
            except Exception as error:
                message = f"{row.page.name} could not be looked up: {error}"
                raise StorageFailure(message) from error
            if size != row.page.stored_bytes:
                raise BuildFailed(
                    f"Build {build} cannot be published: {row.page.name} has the wrong size."
                )
        again = state.builds.published == record
        if not again:
            _redate_stored_build(state, rows)
        with lease.fenced_transaction():
            _serve(state, record, despite_pause=True)
            if pause is not None:
                pause_publishing(site, pause)
        _abandon_held_builds_replaced_by(state, record)
        export_and_announce(state, everything=again)
        return state.exported or 0


def _serve(state: BuildState, record: Build, *, despite_pause: bool = False) -> State:
    """Let the site serve a build, in one transaction under the lease.

    Returns "". If publishing is paused, unless ``despite_pause``, it changes nothing and returns
    the reason to hold the build.
    """
    site, lease = state.site, state.lease
    with lease.fenced_transaction():
        now = lease.now()
        publication, is_new = Publication.objects.select_for_update().get_or_create(
            site=site.key, defaults={"build": record}
        )
        if not despite_pause and (pause := pause_at(publication, now)):
            return {"code": "paused", "pause": pause.state}
        is_live = publication.build_id == record.pk and not is_new
        if publication.build_id != record.pk:
            Build.objects.filter(pk=publication.build_id).update(replaced_at=now)
            if record.published_at is None and record.previous_id != publication.build_id:
                record.previous_id = publication.build_id
        publication.build = record
        if not is_new:
            publication.save(update_fields=["build"])
        # A build that is gone back to ended when it did: the age of what is served is its own.
        _record_end(
            record,
            Build.Status.PUBLISHED,
            ended_at=record.ended_at or now,
            published_at=record.published_at if is_live else now,
            replaced_at=None,
            reason="",
        )
    state.builds.publication = publication
    # The signal follows after the export.
    log_event(logging.INFO, "published", site.key, record.pk, f"Build {record.pk} is published.")
    return ""


def _record_end(
    record: Build, status: Build.Status, *, ended_at: Any = None, **values: Any
) -> None:
    """Record how a build ended, with ``values``; by default it ends now by the database's clock."""
    record.status = status
    for name, value in values.items():
        setattr(record, name, value)
    Build.objects.filter(pk=record.pk).update(
        status=status,
        ended_at=ended_at or StoredNow(),
        warnings=record.warnings,
        previous=record.previous_id,
        **values,
    )


def _comparable_facts(pages: Iterable[Place]) -> list[tuple[Any, ...]]:
    """Return for each page its section, number, file, first and last key, to compare builds.

    The keys count, too: the next build tells by them which page lost rows, so a manifest with the
    same files of other rows has to be published.
    """
    return [(row.section, row.number, row.page.name, row.first, row.last) for row in pages]
