"""Which files of a site are stored, and what becomes of a build of which some are lost."""

from collections.abc import Collection, Sequence
from functools import cached_property

from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.manifest.rows import MANIFEST_ROWS_PER_QUERY
from django_sitemapkit.models import BuildFile
from django_sitemapkit.publishing import SitemapStorage, folder_of
from django_sitemapkit.sites import SitemapSite

PENDING = {
    "status": BuildFile.Status.PENDING,
    "name": "",
    "sha256": "",
    "urls": 0,
    "xml_bytes": 0,
    "stored_bytes": 0,
    "lastmod": None,
}
"""What a row says of a page that has to be made."""


class StoredFiles:
    """Which files of a site the storage has: by one listing, where it can list them.

    Otherwise each file is asked for. Without ``ask`` a storage elsewhere than on the local disk is
    asked for nothing, and all count as stored.
    """

    def __init__(self, site: SitemapSite, storage: SitemapStorage, *, ask: bool = True) -> None:
        self._site = site
        self._storage = storage
        self._ask = ask

    @cached_property
    def _names(self) -> frozenset[str] | None:
        folder = folder_of(self._site)
        if not self._ask and self._storage.local_path(folder) is None:
            return None
        names = self._storage.names(folder)
        return None if names is None else frozenset(names)

    def has(self, name: str) -> bool:
        """Return whether a file is stored. Raises StorageFailure where the storage cannot tell."""
        if self._names is not None:
            return name in self._names
        return not self._ask or self._storage.has(name)

    def lost(self, names: Collection[str]) -> set[str]:
        """Return those that are not stored; each that a listing lacks is asked for by itself.

        A listing may lag behind what was stored just now.
        """
        return {name for name in names if not (self.has(name) or self._storage.has(name))}


def reopen_lost(
    site: SitemapSite, pages: Sequence[BuildFile], lease: BuildLease, storage: SitemapStorage
) -> list[str]:
    """Let the pages of a build be pending again whose files are lost; return the files' names.

    They may be those of a process that was killed, or of sections that the build leaves as they
    are published.
    """
    lost = StoredFiles(site, storage).lost({row.name for row in pages})
    reopened = [row for row in pages if row.name in lost]
    for start in range(0, len(reopened), MANIFEST_ROWS_PER_QUERY):
        some = reopened[start : start + MANIFEST_ROWS_PER_QUERY]
        with lease.fenced_transaction():
            BuildFile.objects.filter(pk__in=[row.pk for row in some]).update(**PENDING)
        for row in some:
            for field, value in PENDING.items():
                setattr(row, field, value)
    return sorted(lost)
