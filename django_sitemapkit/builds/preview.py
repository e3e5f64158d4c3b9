"""A preview: what a build would do, without writing anything."""

import tempfile
import time
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from django_sitemapkit.builds.make import (
    CompressionThread,
    Deduplicator,
    LocalPage,
    deduplicator,
    make_page,
    result_of_page,
)
from django_sitemapkit.builds.manifest import SiteBuilds, page_name_of, page_rows_of
from django_sitemapkit.builds.results import BuildResult, FileResult
from django_sitemapkit.builds.run import OnFile
from django_sitemapkit.conf import settings
from django_sitemapkit.overrides import require_sections, sections_of
from django_sitemapkit.planning import all_pages
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
    known = {page_name_of(row): row.sha256 for row in builds.rows_of(builds.published)}
    files: list[FileResult] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        compression = stack.enter_context(CompressionThread())
        distinct = None
        if settings.DEDUPLICATE:
            distinct = stack.enter_context(deduplicator(folder, SitemapStorage(), noop))
        path = folder / "page.xml.gz"
        for section in sections_of(site):
            name = section.get_name()
            if sections and name not in sections:
                if distinct is not None:
                    for row in page_rows_of(builds.rows_of(builds.published)):
                        if row.section == name:
                            distinct.pass_by(row, kept=True)
                continue
            for number, page, duplicates, more in _rendered(section, path, compression, distinct):
                stored = known.get((name, number))
                state = "empty" if not page.urls else "same" if stored == page.sha256 else "stored"
                files.append(result_of_page(name, number, state, page, duplicates))
                if on_file is not None:
                    on_file(files[-1], len(files), len(files) + more)
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
    compression: CompressionThread,
    distinct: Deduplicator | None,
) -> Iterator[tuple[int, LocalPage, int, int]]:
    """Yield the pages of a section, each made at ``path``.

    Each with its number before it, and how many duplicates it leaves out and pages follow it.
    """
    scope = section.site.scope()
    waiting = deque((page.number, page.keys) for page in all_pages(section))
    free = count(max((number for number, _ in waiting), default=0) + 1)
    while waiting:
        number, keys = waiting.popleft()
        if distinct is not None:
            distinct.begin(section.get_name())
        page = make_page(section, keys, scope, path, noop, compression, distinct).result()
        if page.split_at is not None and section.keyset is not None:
            if distinct is not None:
                distinct.discard()
            halves = (KeyRange(keys.lower, page.split_at), KeyRange(page.split_at, keys.upper))
            waiting.extendleft([(next(free), halves[1]), (number, halves[0])])
            continue
        duplicates = distinct.end().duplicates if distinct is not None else 0
        yield number, page, duplicates, len(waiting)
