"""Building a site, publishing an override at once, and previewing what a build would do."""

import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured, ValidationError

from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.make.deduplication import (
    PageComparison,
    PageDeduplicator,
    PageRuns,
    hashed_sections,
    hashes_of_rows,
)
from django_sitemapkit.builds.make.page_builder import (
    BuildMustRestart,
    InlineRunner,
    Runner,
    set_page_facts,
)
from django_sitemapkit.builds.make.page_file import compression_thread, make_page
from django_sitemapkit.builds.make.reuse import packed_hashes
from django_sitemapkit.builds.manifest import (
    PageName,
    SiteBuilds,
    entries_at,
    key_range_of,
    page_name_of,
    page_rows_of,
    planned_rows_of,
    unsaved_copy,
)
from django_sitemapkit.builds.publication.delivery import export_and_announce, send_published_signal
from django_sitemapkit.builds.report.published import earlier_pages
from django_sitemapkit.builds.results import (
    BuildResult,
    FileResult,
    announce_ended,
    close_requests,
    outcome_of,
    result_of_row,
    take_requests_for_build,
)
from django_sitemapkit.builds.state import BuildState, OnFile
from django_sitemapkit.builds.steps import plan_build, run_steps
from django_sitemapkit.conf import caching_sites, settings
from django_sitemapkit.exceptions import BuildFailed, NothingToPublish, StorageFailure
from django_sitemapkit.heartbeats import heartbeat
from django_sitemapkit.inspection import inspect_listings, label_or_none, paging_key
from django_sitemapkit.models import Build, ExclusionRule, Place, UrlOverride
from django_sitemapkit.overrides import (
    Overrides,
    disabled_sections_of,
    overrides_of,
    require_sections,
    section_of,
    sections_of,
)
from django_sitemapkit.planning import all_pages
from django_sitemapkit.printable import logger
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.rendering import PageRendering, page_address
from django_sitemapkit.sites import SitemapSite

LEFT_OUT = ("urls_digest", "duplicate_hashes")
"""What makes a page leave out the duplicates that it left out before."""

MAX_RESTARTS = 4
"""How often a call restarts its build, as when a view has split a page, before it fails."""


@caching_sites()
def build(
    site: SitemapSite,
    *,
    sections: Collection[str] = (),
    distrusted: Collection[str] = (),
    runner: Runner | None = None,
    on_file: OnFile | None = None,
    full: bool = False,
    strict: bool = False,
    preview: bool = False,
    started_by: str = "",
) -> BuildResult:
    """Make the files of a site and publish them; what ``build_sitemaps`` does.

    ``sections`` names those to build; the others keep the files they have. ``distrusted`` are
    stored names that are not to be reused. ``runner`` has the pages made; by default this process
    makes them. ``on_file`` is called with the result of each file, its place and how many there
    are. ``started_by`` names who asked for it.

    A page is rendered again if its fingerprint changed: its rows, its section, the code or the
    settings. With ``full`` all are; those that turn out the same keep their files. With ``strict``
    a build in which rows were skipped is held for review. With ``preview`` any is, unless nothing
    has changed: nothing is published, and the differences of the held build say what would change.

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
        answered = take_requests_for_build(site, sections, full=full, preview=preview)
        state = BuildState(
            site=site,
            lease=lease,
            chosen=sections,
            distrusted=set(distrusted),
            runner=runner,
            on_file=on_file,
            full=full,
            strict=strict,
            preview=preview,
            started_by=started_by,
        )
        try:  # A killed process may have published and not exported.
            export_and_announce(state)
        except StorageFailure as error:  # It is reported at the end, if it is still there.
            logger.warning("Site %r: %s", site.key, error)
        result = _build_until_complete(state)
        if answered and not preview:  # Who asked for a preview compares it, and then says so.
            close_requests(answered, outcome_of(result))
        return result


def _build_until_complete(state: BuildState) -> BuildResult:
    """Run builds until one has judged all of its pages, not just adopted some; return its result.

    Raises BuildFailed if builds have to restart more than a few times.
    """
    restarts = 0
    while restarts < MAX_RESTARTS:
        try:
            result = run_steps(state, plan_build)
        except BuildMustRestart:
            restarts += 1
        except NothingToPublish as error:
            if not state.has_unseen:
                raise
            state.abandoned, state.has_unseen = str(error), False
        else:
            if not state.has_unseen:
                return result
            state.has_unseen = False
        state.lease.take_next_fence()
        state.reset_for_next_build()
    key = state.site.key
    failed = BuildResult(site=key, build=None, status="failed", cause={"code": "pages-moved"})
    announce_ended(None, failed)
    raise BuildFailed(f"Site {key!r}: {failed.reason}.")


def publish_override(
    site: SitemapSite, override: UrlOverride, *, started_by: str = ""
) -> BuildResult | None:
    """Publish at once what an override says of its URL: render the pages that list it, or would.

    The override is saved already, such as one that excludes its URL::

        from django_sitemapkit.builds import publish_override
        from django_sitemapkit.models import UrlOverride
        from django_sitemapkit.sites import all_sites

        site = next(iter(all_sites()))
        override = UrlOverride(site=site.key, path="/leaked/", include=False)
        override.save()
        publish_override(site, override)

    Returns None if there is no such page: nothing is published; or the URL is excluded, and no page
    lists it, neither a published one nor one of earlier builds; or the page that would list it is
    made by the next build. SITEMAPKIT_MAX_SHRINK does not count what is excluded here. It is
    published although publishing is paused. The pages are rendered from the rows as they are now,
    so their other URLs follow, too, but new exclusion rules wait for the next build; all other
    pages stay as they are published. Of a section that was removed or switched off since, the page
    that lists an excluded URL goes, as all of its pages do with the next build. With
    SITEMAPKIT_DEDUPLICATE the pages leave out what they left out before; the next build compares
    them with the others.

    Raises BuildRunning while the site is being built, NothingToPublish if no URL would be left,
    and what else ``build`` raises; the next build takes the override into account in any case,
    and is held while publishing is paused.
    """
    with acquire(site) as lease:
        state = BuildState(site=site, lease=lease, by_editor=True, started_by=started_by)
        published = state.builds.published
        if published is None:
            return None
        listing, withdrawn = _pages_to_make_and_withdraw(state, published, override)
        if not listing and not withdrawn:
            return None
        state.chosen = {section for section, _number in listing}
        state.leaving = Counter[str]()
        for (section, _number), urls in chain(listing.items(), withdrawn.items()):
            state.leaving[section] += urls
        packed_hash = packed_hashes([override.hash])
        try:
            result = run_steps(
                state, partial(_draft_from_published, published, listing, withdrawn, packed_hash)
            )
        except BuildMustRestart as error:
            lease.abandon_builds([state.build.pk], str(error))
            raise BuildFailed(
                f"Site {site.key!r}: {error}. Run build_sitemaps for the whole site."
            ) from error
        if result.status == "unchanged":  # Else the addresses are announced with what is published.
            send_published_signal(site, published.pk, withdrawn)
        return result


def _pages_to_make_and_withdraw(
    state: BuildState, published: Build, override: UrlOverride
) -> tuple[dict[PageName, int], dict[PageName, int]]:
    """Return the pages to render for an override, and those to empty.

    Each is with the number of published URLs that may go with it.
    """
    site = state.site
    if override.include is not False:
        return dict.fromkeys(_pages_that_will_list(site, published, override), 0), {}
    served = page_rows_of(state.builds.rows_of(published))
    listing = dict(_pages_that_may_list(site, served, override))
    earlier = _pages_that_may_list(site, earlier_pages(site, published), override, unreadable=True)
    withdrawn = {name: 0 for name, _urls in earlier}
    declared = {section.get_name() for section in sections_of(site)} if listing else set()
    for row in served:  # Pages of a section that is gone or off cannot be rendered.
        if row.section not in declared and listing.pop(page_name_of(row), 0):
            withdrawn[page_name_of(row)] = row.page.urls
    return listing, withdrawn


def _draft_from_published(
    published: Build,
    listing: Collection[PageName],
    withdrawn: Collection[PageName],
    packed_hash: bytes,
    state: BuildState,
) -> None:
    """Draft a build from the published rows; the pages in ``listing`` have to be made.

    Pages in ``withdrawn`` become empty, so that their addresses answer 404; their rows store the
    override's hash, ``packed_hash``. Stored plans stay, and pages are not compared with each other,
    which would read all of them.
    """
    rows = {page_name_of(row): row for row in state.builds.rows_of(published) if row.section}
    made = [rows[name] for name in listing]
    state.sections = sections_of(state.site, _overrides_without_new_rules(state.site, made))
    drafts = {
        name: unsaved_copy(row, LEFT_OUT) if name in listing else unsaved_copy(row)
        for name, row in rows.items()
    }
    for section, number in withdrawn:
        emptied = Place(section=section, number=number, status=Place.Status.EMPTY)
        row = drafts.setdefault((section, number), emptied)
        row.status, row.page, row.override_hashes = emptied.status, None, packed_hash
    state.rows = list(drafts.values())
    state.record = state.unsaved_build(published.options.get("declaration", ""))
    state.record.checked_by = published.checking_build_ids({name for name, _number in drafts})


def _overrides_without_new_rules(site: SitemapSite, pages: Collection[Place]) -> Overrides:
    """Return a site's overrides without the rules that have not acted in these pages yet.

    Of the pages only one URL is to change. The rules are recorded as changed again, so that the
    next build applies them.
    """
    overrides = overrides_of(site)
    since = min((row.revision for row in pages), default=overrides.revision)
    new = ExclusionRule.objects.filter(site=site.key, revision__gt=since)
    known = set[int]().union(*(array("q", bytes(row.override_hashes)) for row in pages))
    waiting = {rule.pattern for rule in new if rule.hash not in known}  # Else its note is new.
    if waiting:
        overrides = copy(overrides)
        overrides.patterns = [each for each in overrides.patterns if each.text not in waiting]
        new.update()
    return overrides


def _pages_that_may_list(
    site: SitemapSite, rows: Collection[Place], override: UrlOverride, *, unreadable: bool = False
) -> Iterator[tuple[PageName, int]]:
    """Yield the pages that may list an override's URLs, and how many of its URLs each may list.

    A page that cannot be read raises StorageFailure, unless ``unreadable`` is set: then it is
    yielded.
    """
    if override.path:
        location = site.origin + override.path
        for row in rows:
            heartbeat()
            try:
                is_listed = bool(entries_at(row, location))
            except StorageFailure:
                if not unreadable:
                    raise
                is_listed = True
            if is_listed:
                yield page_name_of(row), 1
        return
    sections = sections_of(site)
    with suppress(ImproperlyConfigured):  # A section may be off because it fails.
        sections = [*sections, *disabled_sections_of(site)]
    for section in sections:
        if label_or_none(section) != override.model:
            continue
        key = paging_key(section, override.object_id)
        name = section.get_name()
        for row in rows if key is not None else ():
            if row.section == name and _may_cover_key(section, row, key):
                # An emptied page, which an included object may be on, has no file.
                has_file = section.has_entries and row.page
                yield page_name_of(row), row.page.urls if has_file else section.urls_per_row


def _pages_that_will_list(
    site: SitemapSite, published: Build, override: UrlOverride
) -> Iterator[PageName]:
    """Yield the published pages that list what an override includes once they are rendered.

    A row belongs on the page with its key, and an item of a list on the one at its position.
    """
    declared = [section.get_name() for section in sections_of(site)]
    rows = list(
        Place.objects.in_build(published)
        .filter(section__in=declared)
        .exclude(Place.withdrawing_condition())
    )
    if not override.path:
        yield from dict(_pages_that_may_list(site, rows, override))
        return
    listed = [each for each in inspect_listings(site, override.path) if each.listed]
    most = 1 if settings.DEDUPLICATE else None
    if not listed:  # Its row cannot be found by the URL: pages that excluded it are known.
        excluding = [row for row in rows if override.hash in array("q", bytes(row.override_hashes))]
        yield from map(page_name_of, excluding[:most])
    for found in listed[:most]:
        section = section_of(site, found.section)
        key = paging_key(section, found.pk) if section and section.keyset else None
        for row in (row for row in rows if row.section == found.section):
            if section is None or key is None:
                is_on_it = page_address(site, row.section, row.number) == found.page
            else:
                is_on_it = _may_cover_key(section, row, key)
            if is_on_it:
                yield page_name_of(row)


def _may_cover_key(section: SectionReader, row: Place, key: Any) -> bool:
    """Return whether a page's range contains a key; True if its bounds are of another key field."""
    try:
        return section.required_keyset.covers(key_range_of(row, section), key)
    except (ValueError, ValidationError):
        return True


def preview(
    site: SitemapSite, *, sections: Collection[str] = (), on_file: OnFile | None = None
) -> BuildResult:
    """Render the files of a site and compare them with what is published; write nothing.

    Raises ValueError for a section the site does not have.
    """
    require_sections(site, sections)
    started = time.perf_counter()
    with ExitStack() as stack:
        preview = _Preview(site, sections, stack)
        for place, file in enumerate(preview.render_pages(), 1):
            if on_file is not None:
                on_file(file, place, max(place, len(preview.rows)))
    return BuildResult(
        site=site.key,
        build=None,
        status="dry-run",
        files=tuple(filter(None, map(preview.files.get, map(page_name_of, preview.rows)))),
        seconds=time.perf_counter() - started,
    )


class _Preview:
    """Renders all pages of some sections of a site into one local file, one after the other."""

    def __init__(self, site: SitemapSite, chosen: Collection[str], stack: ExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        builds = SiteBuilds(site)
        published = page_rows_of(builds.rows_of(builds.published))
        self._sections = {section.get_name(): section for section in sections_of(site)}
        self._scope = site.scope()
        self._path = folder / "page.xml.gz"
        self._previous = builds.finished_pages()
        self._stored = {page_name_of(row): row.page.sha256 for row in published}
        self._hashed = hashed_sections(self._sections.values(), builds_all=not chosen)
        self._runs = stack.enter_context(closing(PageRuns(folder / "hashes")))
        self._compression = stack.enter_context(compression_thread())
        self._comparison = PageComparison(self._runs, self._hashed, chosen)
        self.rows: list[Place] = []
        """What a manifest would say, in the order of the index; those that stay are published."""
        self.files: dict[PageName, FileResult] = {}
        """What became of the pages that are rendered."""
        for name, section in self._sections.items():
            if not chosen or name in chosen:
                self.rows += planned_rows_of(section, all_pages(section))
            elif name in self._hashed:
                self.rows += (row for row in published if row.section == name)

    def render_pages(self) -> Iterator[FileResult]:
        """Render the pages, and yield each; once more if its URLs are found on other pages."""
        while pending := self._pending():
            for row in pending:
                self._render_or_split(row)
                if row.status != Place.Status.PENDING:
                    yield self.files[page_name_of(row)]
            if all(page_name_of(row) in self._runs for row in self._pending()):
                self._comparison.compare(self.rows)

    def _pending(self) -> list[Place]:
        """Return the rows whose pages have to be rendered."""
        return [row for row in self.rows if row.status == Place.Status.PENDING]

    def _render_or_split(self, row: Place) -> None:
        """Render a page, or split it: then both halves are pending.

        One that exceeds its limit stays pending until its duplicates are known.
        """
        section, page = self._sections[row.section], page_name_of(row)
        keys = key_range_of(row, section)
        is_compared = row.section in self._hashed
        deduplicator = PageDeduplicator(row, self._previous.get(page, ()))
        rendering = PageRendering(
            section,
            keys,
            self._scope,
            on_locations=deduplicator.add_listed if is_compared else None,
            find_listed=deduplicator.already_listed if is_compared else None,
        )
        file = make_page(rendering, self._path, self._compression)
        file.finish()
        if rendering.overflow is not None and is_compared and not row.prefix_digest:
            self._runs[page] = hashes_of_rows(section, keys)
            return
        if rendering.overflow is not None and section.keyset is not None:
            upper, row.upper = row.upper, section.keyset.encode(rendering.split_at)
            number = 1 + max(one.number for one in self.rows if one.section == row.section)
            half = Place(section=row.section, number=number, lower=row.upper, upper=upper)
            self.rows.insert(self.rows.index(row) + 1, half)
            return
        if is_compared:
            self._runs[page] = deduplicator.set_url_facts(row)
        row.status = Place.Status.DONE if rendering.urls else Place.Status.EMPTY
        row.page = file.stored_page()
        set_page_facts(row, rendering)
        result = replace(result_of_row(row), seconds=file.seconds)
        is_new = bool(rendering.urls) and self._stored.get(page) != file.sha256
        self.files[page] = replace(result, state="stored") if is_new else result
