"""Deduplication of pages that were made in any order, by any worker, on any machine.

Each worker leaves out what it knows to be a duplicate, and stores the hashes of what its page
lists. Then the process that builds compares all pages, as the index orders them. A page that lists
what an earlier page does, or leaves out what none does, is made again, with the list of what it has
to leave out. So the files are those that one process makes in order; see "Deduplication" in
docs/decisions.md.
"""

import logging
from array import array
from collections.abc import Collection, Mapping, Sequence

from django_sitemapkit.builds.make.deduplication import NO_URLS, next_prefix, stored_hashes
from django_sitemapkit.builds.make.page_builder import PageBuilder
from django_sitemapkit.builds.make.page_runs import PageRuns
from django_sitemapkit.builds.make.url_hashes import digest_of, from_bytes, from_hex, to_hex
from django_sitemapkit.builds.manifest import MANIFEST_ROWS_PER_QUERY, index_order, pending_copy_of
from django_sitemapkit.models import Build, BuildFile, PageUrls
from django_sitemapkit.publishing import SitemapStorage

logger = logging.getLogger("django_sitemapkit")

MAX_COMPARISONS = 6
"""How often the pages of a build are compared: a second time confirms what was made again.

More are needed only where rows change meanwhile.
"""


class PageComparison:
    """Compares the pages of a build, and says which have to be made again.

    ``sections`` are those to compare, ``kept`` those among them that the build does not make.

    ::

        comparison = PageComparison(builder, sections={"firsts", "seconds"})
        comparison.begin(rows)
        ...  # any workers make the pages that are pending
        if comparison.is_due(rows):
            again = comparison.compare(rows)  # these are pending again
    """

    def __init__(
        self, builder: PageBuilder, *, sections: Collection[str], kept: Collection[str] = ()
    ) -> None:
        self.decided: set[int] = set()
        """The ids of the rows whose pages have to be made, whatever is stored of them."""
        builder.hashed = self._sections = sections
        self._build, self._lease = builder.record_of_build, builder.lease
        self._kept = kept
        self._previous_of = builder.previous_of
        self._path = builder.folder / "hashes"
        self._storage = SitemapStorage()
        self._heartbeat = builder.heartbeat
        self._rendered: set[int] = set()
        self._expected: dict[int, tuple[str, str, Mapping[str, str]]] = {}
        self._comparisons = 0

    @staticmethod
    def has_begun(build: Build) -> bool:
        """Return whether pages of a build were made to be compared later."""
        return PageUrls.objects.filter(build=build).exists()

    def begin(self, rows: Sequence[BuildFile]) -> None:
        """Have the pages compared that are pending; workers see it in the database."""
        stored = PageUrls.objects.filter(build=self._build)
        self.decided = set(stored.filter(left_out__isnull=False).values_list("page", flat=True))
        known = set(stored.values_list("page", flat=True))
        new = [
            PageUrls(page=row.pk, build=self._build)
            for row in self._compared(rows)
            if row.status == BuildFile.Status.PENDING and row.pk not in known
        ]
        with self._lease.fenced_transaction():
            PageUrls.objects.bulk_create(new, batch_size=MANIFEST_ROWS_PER_QUERY)

    def is_due(self, rows: Sequence[BuildFile]) -> bool:
        """Return whether no page has to be made before all are compared."""
        stored = PageUrls.objects.filter(build=self._build, hashes__isnull=False)
        self._rendered = set(stored.values_list("page", flat=True))
        pending = [row.pk for row in rows if row.status == BuildFile.Status.PENDING]
        return self._rendered.issuperset(pending)

    def compare(self, rows: Sequence[BuildFile]) -> list[BuildFile]:
        """Return the pages that have to be made again, and record what each has to leave out.

        If there are none, the comparison has ended. Raises PageDamaged where a stored page cannot
        be read.
        """
        self._comparisons += 1
        compared = sorted(self._compared(rows), key=index_order)
        before = {row.pk: _digests(row) for row in compared}
        left_out: dict[int, dict[str, str]] = {}
        if not self._is_settled(compared):
            with PageRuns(self._path) as runs:
                left_out = self._judge(compared, runs)
        again = [row for row in compared if row.pk in left_out]
        self._record(again, left_out, [row for row in compared if before[row.pk] != _digests(row)])
        self.decided |= left_out.keys()
        return again

    def _record(
        self,
        again: Sequence[BuildFile],
        left_out: Mapping[int, dict[str, str]],
        changed: Sequence[BuildFile],
    ) -> None:
        """Record which pages are pending again, and the digests of the others."""
        pending = list(map(pending_copy_of, again))
        for row, copy in zip(again, pending, strict=True):
            copy.pk, copy.build = row.pk, self._build
        urls = [
            PageUrls(page=row.pk, build=self._build, left_out=left_out[row.pk]) for row in again
        ]
        with self._lease.fenced_transaction():
            BuildFile.objects.bulk_update(
                [row for row in changed if row.pk not in left_out],
                ["prefix_digest", "urls_digest"],
                batch_size=MANIFEST_ROWS_PER_QUERY,
            )
            if not again:
                PageUrls.objects.filter(build=self._build).delete()
            for start in range(0, len(again), MANIFEST_ROWS_PER_QUERY):
                some = slice(start, start + MANIFEST_ROWS_PER_QUERY)
                ids = [row.pk for row in again[some]]
                BuildFile.objects.filter(pk__in=ids).delete()
                BuildFile.objects.bulk_create(pending[some])
                PageUrls.objects.filter(page__in=ids).delete()
                PageUrls.objects.bulk_create(urls[some])

    def _is_settled(self, compared: Sequence[BuildFile]) -> bool:
        """Return whether the digests alone tell that no page has to be made again.

        Then the rows say what is known now.
        """
        prefix, prefixes = NO_URLS, []
        for row in compared:
            if row.section in self._kept:
                if row.status == BuildFile.Status.DONE and not row.urls_digest:
                    return False
                prefixes.append(row.prefix_digest)
            elif row.status == BuildFile.Status.PENDING or not self._is_known(row, prefix):
                return False
            else:
                prefixes.append(prefix)
            prefix = next_prefix(prefix, row.urls_digest)
        for row, known in zip(compared, prefixes, strict=True):
            row.prefix_digest = known
        return True

    def _is_known(self, row: BuildFile, prefix: str) -> bool:
        """Return whether a page is right where those before it list what ``prefix`` stands for."""
        if row.prefix_digest == prefix:  # It was right when they did the last time.
            return True
        if row.pk not in self._rendered:
            return False
        state = prefix, row.urls_digest, row.duplicate_hashes
        return (
            (prefix == NO_URLS and not row.duplicate_hashes)
            or self._expected.get(row.pk) == state
            or any(
                state == (previous.prefix_digest, previous.urls_digest, previous.duplicate_hashes)
                for previous in self._previous_of(row)
            )
        )

    def _judge(self, compared: Sequence[BuildFile], runs: PageRuns) -> dict[int, dict[str, str]]:
        """Return what each page has to leave out that is to be made again, by its row's id.

        The other rows say what is known now.
        """
        for row in compared:
            self._heartbeat()
            runs.add(self._candidates(row), row.section)
        again: dict[int, dict[str, str]] = {}
        prefix = NO_URLS
        for page, (row, found) in enumerate(
            zip(compared, runs.duplicates(self._heartbeat), strict=True)
        ):
            listed = runs.run(page)
            if found and row.section not in self._kept:
                listed = array("q", (one for one in listed if one not in found))
            urls_digest = digest_of(listed)
            if row.section in self._kept:
                if row.urls_digest not in ("", urls_digest):
                    # Once it can be read as a whole, the pages from here on have to look.
                    urls_digest = f"damaged {urls_digest}"
            elif not self._is_made_again(row, found, prefix):
                if row.pk not in self._rendered and not row.urls_digest:
                    row.urls_digest = urls_digest  # It was made without a look at other pages.
                urls_digest, row.prefix_digest = row.urls_digest, prefix
            elif self._comparisons > MAX_COMPARISONS and row.status != BuildFile.Status.PENDING:
                logger.warning("%s changes with each rendering. Its URLs may be listed twice.", row)
                urls_digest, row.prefix_digest = row.urls_digest, ""
            else:
                again[row.pk] = to_hex(found)
                self._expected[row.pk] = prefix, urls_digest, again[row.pk]
            prefix = next_prefix(prefix, urls_digest)
        return again

    def _is_made_again(self, row: BuildFile, found: Mapping[int, str], prefix: str) -> bool:
        """Return whether a page left out other URLs than those ``found`` on pages before it."""
        if row.pk not in self._rendered and row.prefix_digest == prefix:
            return False
        is_made = row.status != BuildFile.Status.PENDING
        return not is_made or found != from_hex(row.duplicate_hashes)

    def _candidates(self, row: BuildFile) -> "array[int]":
        """Return the sorted hashes of what a page lists or has left out."""
        kept = row.section in self._kept
        listed = array("q")
        if row.pk in self._rendered:
            listed = from_bytes(bytes(PageUrls.objects.get(page=row.pk).hashes or b""))
        elif row.status == BuildFile.Status.DONE:
            listed = stored_hashes(row, self._storage, self._heartbeat, kept=kept)
        left_out = {} if kept else from_hex(row.duplicate_hashes)
        return array("q", sorted({*listed, *left_out})) if left_out else listed

    def _compared(self, rows: Sequence[BuildFile]) -> list[BuildFile]:
        return [row for row in rows if row.section in self._sections]


def _digests(row: BuildFile) -> tuple[str, str]:
    return row.prefix_digest, row.urls_digest


def begin_deduplication(
    builder: PageBuilder,
    rows: Sequence[BuildFile],
    hashed: Collection[str],
    chosen: Collection[str],
    *,
    in_order: bool,
) -> PageComparison | None:
    """Have each URL of some sections listed once; return what compares the pages, if they are.

    ``rows`` are all pages, ``hashed`` the sections to compare, and ``chosen`` those to build, if
    not all are. Pages that are made ``in_order`` are compared as they are made, unless workers have
    made some of the build before.
    """
    if not hashed:
        return None
    sections, kept = set(hashed), set[str]()
    if chosen:  # The published files may be of sections that are gone.
        sections |= {row.section for row in rows if row.section}
        kept = sections - set(chosen)
    if in_order and not PageComparison.has_begun(builder.record_of_build):
        builder.deduplicate(rows, sections, kept)
        return None
    comparison = PageComparison(builder, sections=sections, kept=kept)
    comparison.begin(rows)
    return comparison
