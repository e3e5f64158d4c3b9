"""A preview: what a build would do, without writing anything."""

import tempfile
import time
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from django_sitemapkit.builds.make.compared_page import (
    ComparedPage,
    hashed_sections,
    hashes_of_rows,
)
from django_sitemapkit.builds.make.comparison import PageComparison
from django_sitemapkit.builds.make.page_builder import describe
from django_sitemapkit.builds.make.page_file import compression_thread, make_page, rendering_of
from django_sitemapkit.builds.make.page_runs import PageRuns
from django_sitemapkit.builds.manifest import SiteBuilds, page_name_of, page_rows_of
from django_sitemapkit.builds.results import BuildResult, FileResult, result_of_row
from django_sitemapkit.builds.state import OnFile
from django_sitemapkit.models import Place
from django_sitemapkit.overrides import require_sections, sections_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.sites import SitemapSite


def preview(
    site: SitemapSite, *, sections: Collection[str] = (), on_file: OnFile | None = None
) -> BuildResult:
    """Render the files of a site and compare them with what is published; write nothing.

    Raises ValueError for a section the site does not have.
    """
    require_sections(site, sections)
    started = time.perf_counter()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        preview = stack.enter_context(_Preview(site, sections, folder))
        for place, page in enumerate(preview.make(), 1):
            if on_file is not None and page.file is not None:
                on_file(page.file, place, max(place, len(preview.pages)))
    return BuildResult(
        site=site.key,
        build=None,
        status="dry-run",
        files=tuple(page.file for page in preview.pages if page.file is not None),
        seconds=time.perf_counter() - started,
    )


@dataclass(slots=True)
class _Page:
    """A page of the site, in the order of the index."""

    row: Place
    """What a manifest would say of it: a published row where it is not rendered, else not saved."""
    section: SectionReader
    keys: KeyRange
    file: FileResult | None = None
    """What became of it; None until it is rendered."""


class _Preview(ExitStack):
    """Renders all pages of some sections of a site into one local file, one after the other."""

    def __init__(self, site: SitemapSite, chosen: Collection[str], folder: Path) -> None:
        super().__init__()
        builds, sections = SiteBuilds(site), sections_of(site)
        self._scope = site.scope()
        self._path = folder / "page.xml.gz"
        self._previous = builds.finished_pages()
        published = page_rows_of(builds.rows_of(builds.published))
        self._stored = {page_name_of(row): row.page.sha256 for row in published}
        self._ids = count(-1, -1)  # Those of published rows are above 0.
        self._hashed = hashed_sections(sections, chosen)
        self._runs = self.enter_context(PageRuns(folder / "hashes"))
        self._compression = self.enter_context(compression_thread())
        kept = self._hashed.difference(chosen) if chosen else ()
        self._comparison = PageComparison(self._runs, self._hashed, kept)
        self.pages: list[_Page] = []
        for section in sections:
            name = section.get_name()
            if not chosen or name in chosen:
                for planned in all_pages(section):
                    self.pages.append(self._page(section, planned.number, planned.keys))
            elif name in self._hashed:
                stored = (row for row in published if row.section == name)
                self.pages += [_Page(row, section, KeyRange()) for row in stored]

    def _page(self, section: SectionReader, number: int, keys: KeyRange) -> _Page:
        row = Place(pk=next(self._ids), section=section.get_name(), number=number)
        return _Page(row, section, keys)

    def make(self) -> Iterator[_Page]:
        """Render the pages, and yield each; once more if its URLs are found on other pages."""
        while waiting := deque(page for page in self.pages if _is_pending(page)):
            while waiting:
                page = waiting.popleft()
                if (half := self._render(page)) is not None:
                    self.pages.insert(self.pages.index(page) + 1, half)
                    waiting.extendleft([half, page])
                elif not _is_pending(page):
                    yield page
            self._comparison.compare([page.row for page in self.pages])

    def _render(self, page: _Page) -> _Page | None:
        """Render a page; return the second half if it has to be split.

        One that exceeds its limit stays pending until its duplicates are known.
        """
        row, section = page.row, page.section
        is_compared = row.section in self._hashed
        compared = ComparedPage(row, self._previous.get(page_name_of(row), ()))
        urls = compared if is_compared else None
        rendering = rendering_of(section, page.keys, self._scope, urls)
        file = make_page(rendering, self._path, self._compression)
        file.finish()
        if rendering.overflow is not None and is_compared and not row.prefix_digest:
            self._runs[row.pk] = hashes_of_rows(section, page.keys)
            return None
        if rendering.overflow is not None and section.keyset is not None:
            at, keys = rendering.split_at, page.keys
            page.keys = KeyRange(keys.lower, at)
            numbers = [each.row.number for each in self.pages if each.row.section == row.section]
            return self._page(section, max(numbers) + 1, KeyRange(at, keys.upper))
        if is_compared:
            self._runs[row.pk] = compared.describe(row)
        row.status = Place.Status.DONE if rendering.urls else Place.Status.EMPTY
        row.page = file.stored_page()
        describe(row, rendering)
        is_same = self._stored.get(page_name_of(row)) == file.sha256
        state = "same" if is_same else "stored"
        state = state if rendering.urls else "empty"
        page.file = replace(result_of_row(row), state=state, seconds=file.seconds)
        return None


def _is_pending(page: _Page) -> bool:
    return page.row.status == Place.Status.PENDING
