"""A page whose URLs are compared after it is made, as the worker that makes it sees it."""

from array import array
from collections.abc import Callable, Iterable

from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.make.deduplication import DedupState
from django_sitemapkit.builds.make.url_hashes import (
    DuplicateFinder,
    Hashes,
    digest_of,
    from_hex,
    hashes_of,
    to_hex,
)
from django_sitemapkit.conf import settings
from django_sitemapkit.models import BuildFile, PageUrls
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.rendering import listed_entries


class ComparedPage:
    """Knows what a page has to leave out, and records what it lists.

    ::

        page = ComparedPage.find(row)  # None if its URLs need not be compared
        urls = page.finder("products", previous)
        ...  # render the page without what ``urls`` finds
        page.take(urls, duplicates=2)
        page.record(lease)
    """

    def __init__(self, row: BuildFile, urls: PageUrls) -> None:
        self.row = row
        self._urls = urls
        self._listed = array("q")

    @classmethod
    def find(cls, row: BuildFile) -> "ComparedPage | None":
        """Return the page of a manifest row; None if its URLs are not compared later."""
        urls = PageUrls.objects.filter(page=row.pk).first() if settings.DEDUPLICATE else None
        return None if urls is None else cls(row, urls)

    @property
    def is_decided(self) -> bool:
        """Whether a comparison has found that the page has to be made, and without which URLs."""
        return self._urls.left_out is not None

    def finder(self, section: str, previous: Iterable[BuildFile]) -> DuplicateFinder:
        """Return what finds the duplicates of the page, as far as they are known.

        Until the pages are compared that is a guess: what one of its ``previous`` rows left out.
        """
        left_out = self._urls.left_out
        if left_out is None:
            left_out = next(filter(None, (row.duplicate_hashes for row in previous)), {})
        known = from_hex(left_out)

        def find(hashes: Hashes) -> dict[int, str]:
            if known.keys().isdisjoint(hashes):
                return {}
            return {place: known[one] for place, one in enumerate(hashes) if one in known}

        return DuplicateFinder(section, find)

    def take(self, urls: DuplicateFinder, duplicates: int) -> DedupState:
        """Take what the page lists as it is rendered, and return what its row has to say."""
        self._listed = urls.listed
        return DedupState(
            prefix_digest="",
            urls_digest=digest_of(self._listed),
            duplicates=duplicates,
            duplicate_hashes=to_hex(urls.found),
        )

    def record(self, lease: BuildLease) -> None:
        """Record the page and what it lists, unless another worker has recorded it."""
        with lease.fenced_transaction():  # So nobody else records it at the same time.
            if self._record_urls(self._listed):
                self.row.save()

    def measure(
        self,
        section: SectionReader,
        keys: KeyRange,
        lease: BuildLease,
        heartbeat: Callable[[], None],
    ) -> None:
        """Record the URLs of a page that exceeds its limit, whether or not they fit.

        Without its duplicates it may not exceed it. So it is made once they are known.
        """
        hashes: set[int] = set()
        for entries in listed_entries(section, keys, section.site.scope()):
            heartbeat()
            hashes.update(hashes_of(entries.locations))
        with lease.fenced_transaction():
            self._record_urls(array("q", sorted(hashes)))

    def add_half(self, half: BuildFile) -> None:
        """Have the second half compared, too, of a page that is split."""
        PageUrls.objects.create(
            page=half.pk, build_id=self._urls.build_id, left_out=self._urls.left_out
        )

    def _record_urls(self, hashes: "array[int]") -> bool:
        """Record what the page lists; return whether it was still to be made."""
        pending = BuildFile.objects.filter(pk=self.row.pk, status=BuildFile.Status.PENDING)
        if not pending.exists():
            return False
        PageUrls.objects.filter(page=self.row.pk).update(hashes=hashes.tobytes())
        return True
