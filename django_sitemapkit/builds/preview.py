"""A preview: what a build would do, without writing anything."""

import tempfile
import time
from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from django_sitemapkit.builds.builder import OnFile
from django_sitemapkit.builds.make.deduplication import Deduplicator, deduplicator
from django_sitemapkit.builds.make.page_file import (
    PageFile,
    compression_thread,
    make_page,
    rendering_of,
)
from django_sitemapkit.builds.manifest import SiteBuilds, page_name_of, page_rows_of
from django_sitemapkit.builds.results import BuildResult, FileResult
from django_sitemapkit.conf import settings
from django_sitemapkit.overrides import require_sections, sections_of
from django_sitemapkit.planning import PlannedPage, all_pages
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange, noop
from django_sitemapkit.sites import SitemapSite


def preview(
    site: SitemapSite, *, sections: Collection[str] = (), on_file: OnFile | None = None
) -> BuildResult:
    """Render the files of a site and compare them with what is published; write nothing.

    Raises ValueError for a section the site does not have.
    """
    require_sections(site, sections)
    started = time.perf_counter()
    builds = SiteBuilds(site)
    published = builds.rows_of(builds.published)
    stored = {page_name_of(row): row.sha256 for row in published}
    files: list[FileResult] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        compression = stack.enter_context(compression_thread())
        distinct = None
        if settings.DEDUPLICATE:
            distinct = stack.enter_context(deduplicator(folder, SitemapStorage(), noop))
        path = folder / "page.xml.gz"
        for section in sections_of(site):
            name = section.get_name()
            if not sections or name in sections:
                for number, page, duplicates, more in _rendered(
                    section, path, compression, distinct
                ):
                    is_same = stored.get((name, number)) == page.sha256
                    state = "same" if is_same else "stored"
                    state = state if page.rendering.urls else "empty"
                    files.append(page.result(number, state, duplicates))
                    if on_file is not None:
                        on_file(files[-1], len(files), len(files) + more)
            elif distinct is not None:
                for row in page_rows_of(published):
                    if row.section == name:
                        distinct.pass_by(row, kept=True)
    return BuildResult(
        site=site.key,
        build=None,
        status="dry-run",
        files=tuple(files),
        seconds=time.perf_counter() - started,
    )


def _rendered(
    section: SectionReader,
    path: Path,
    compression: ThreadPoolExecutor,
    distinct: Deduplicator | None,
) -> Iterator[tuple[int, PageFile, int, int]]:
    """Yield the pages of a section, each made at ``path``.

    Each with its number before it, and how many duplicates it leaves out and pages follow it.
    """
    scope = section.site.scope()
    waiting = deque(all_pages(section))
    free = count(max((page.number for page in waiting), default=0) + 1)
    while waiting:
        number, keys = waiting[0].number, waiting.popleft().keys
        urls = None if distinct is None else distinct.finder(section.get_name())
        rendering = rendering_of(section, keys, scope, urls)
        page = make_page(rendering, path, noop, compression)
        page.finish()
        split_at = page.rendering.split_at
        if split_at is not None and section.keyset is not None:
            waiting.appendleft(PlannedPage(next(free), KeyRange(split_at, keys.upper)))
            waiting.appendleft(PlannedPage(number, KeyRange(keys.lower, split_at)))
            continue
        if distinct is not None and urls is not None:
            distinct.end(urls)
        yield number, page, rendering.duplicates, len(waiting)
