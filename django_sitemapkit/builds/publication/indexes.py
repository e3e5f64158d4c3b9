"""The indexes of a build: compared with those that are stored, and stored."""

import hashlib
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.utils import timezone

from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.manifest import FileResult, take_over
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.publishing import SitemapStorage, file_name, folder_of
from django_sitemapkit.publishing.storage import sync
from django_sitemapkit.rendering import Index
from django_sitemapkit.sites import SitemapSite


class BuildIndexes:
    """The indexes of a build, by number, as they are to be stored."""

    def __init__(self, indexes: Mapping[int, Index], storage: SitemapStorage) -> None:
        self._indexes = indexes
        self._hashes = {
            number: hashlib.sha256(index.data).hexdigest() for number, index in indexes.items()
        }
        self._storage = storage

    def same_among(
        self, stored: Iterable[BuildFile], distrusted: Collection[str] = ()
    ) -> dict[int, BuildFile]:
        """Return the stored indexes that have the same bytes, and are there still, by number."""
        return {
            row.number: row
            for row in stored
            if row.sha256 == self._hashes.get(row.number)
            and row.name not in distrusted
            and self._storage.has(row.name)
        }

    def are(self, stored: Sequence[BuildFile], distrusted: Collection[str] = ()) -> bool:
        """Return whether they are what is stored, all of it and nothing else."""
        same = self.same_among(stored, distrusted)
        return self._hashes.keys() == same.keys() == {row.number for row in stored}

    def store(
        self,
        site: SitemapSite,
        record: Build,
        known: Sequence[BuildFile],
        same: Mapping[int, BuildFile],
        lease: BuildLease,
    ) -> list[FileResult]:
        """Store them, plain as readers want them, and add their rows to the manifest.

        ``known`` are the rows of the build that are there already, left by a killed process.
        ``same`` are the rows of stored files with the same bytes.
        """
        left = {row.number: row for row in known}
        results: list[FileResult] = []
        for number in self._indexes:
            row = left.pop(number, BuildFile(build=record, section="", number=number))
            results.append(self._store(site, row, same.get(number), lease))
        if left:
            with lease.fenced_transaction():
                BuildFile.objects.filter(pk__in=[row.pk for row in left.values()]).delete()
        return results

    def _store(
        self, site: SitemapSite, row: BuildFile, stored: BuildFile | None, lease: BuildLease
    ) -> FileResult:
        started = time.perf_counter()
        index, sha256 = self._indexes[row.number], self._hashes[row.number]
        state = "same"
        if stored is not None:
            take_over(row, stored)
        else:
            state = "stored"
            # A restored database gives out the same build and fence once more.
            extension = f"{lease.fence}-{secrets.token_hex(3)}.xml"
            row.name = file_name(site, str(row), sha256, row.build_id, extension)
            row.sha256, row.urls, row.lastmod = sha256, index.sitemaps, timezone.now()
            row.xml_bytes = row.stored_bytes = len(index.data)
            row.status = BuildFile.Status.DONE
            with self._storage.workshop(folder_of(site)) as folder:
                path = folder / "index.xml"
                with path.open("wb") as file:
                    file.write(index.data)
                    sync(file)
                self._storage.put(row.name, path)
        with lease.fenced_transaction():
            row.save()
        return FileResult(
            section="",
            number=row.number,
            state=state,
            urls=row.urls,
            xml_bytes=row.xml_bytes,
            stored_bytes=row.stored_bytes,
            seconds=time.perf_counter() - started,
        )
