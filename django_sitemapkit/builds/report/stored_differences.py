"""The differences of a build as they are kept with it, so that they are computed once."""

import gzip
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.manifest import stored_build
from django_sitemapkit.builds.report.differences import (
    Difference,
    DifferenceKind,
    differences_of,
)
from django_sitemapkit.models import Build, BuildDifferences
from django_sitemapkit.sites import SitemapSite

MAX_KEPT = 50_000
"""Added, removed or changed URLs that are kept, for each of the three; all are counted."""

MAX_GROUPS = 1_000
"""Folders of sections that are counted by themselves."""

OTHER_FOLDERS = "*"
"""Stands for the folders beyond them."""


def store_differences(site: SitemapSite, build: Build) -> BuildDifferences:
    """Compare a build with the one before it, and keep what differs.

    Raises BuildRunning while another process compares a build of the site, BuildFailed where there
    is nothing to compare, and StorageFailure where a file is lost.
    """
    with acquire(site, "compare") as lease:
        values = _compared(site, build)
        with lease.fenced_transaction():
            stored_build(site, build.pk)  # It may have been pruned meanwhile.
            rows = BuildDifferences.objects
            return rows.update_or_create(build=build, defaults=values)[0]


def _compared(site: SitemapSite, build: Build) -> dict[str, Any]:
    """Return the values of the fields of what is kept."""
    totals: Counter[DifferenceKind] = Counter()
    groups: Counter[tuple[DifferenceKind, str, str]] = Counter()
    written = BytesIO()
    with gzip.GzipFile(fileobj=written, mode="wb", compresslevel=1) as lines:
        for difference in differences_of(site, build.pk):
            kind = difference.kind
            totals[kind] += 1
            group = kind, difference.section, folder_of(difference.location)
            if group not in groups and len(groups) >= MAX_GROUPS:
                group = kind, difference.section, OTHER_FOLDERS
            groups[group] += 1
            if totals[kind] <= MAX_KEPT:
                line = f"{kind.value}\t{difference.section}\t{difference.location}\n"
                lines.write(line.encode())
    counted = [
        [kind.value, section, folder, count]
        for (kind, section, folder), count in groups.most_common()
    ]
    return {"groups": counted, "kept": written.getvalue()}


def kept_differences(stored: BuildDifferences) -> Iterator[Difference]:
    """Yield the differences that are kept, in the order in which they were found."""
    with gzip.GzipFile(fileobj=BytesIO(stored.kept)) as lines:
        for line in lines:
            kind, section, location = line.decode().removesuffix("\n").split("\t")
            yield Difference(DifferenceKind(kind), location, section)


def folder_of(location: str) -> str:
    """Return the first folder of a URL's path, percent-encoded as it is in the URL."""
    first, _slash, rest = urlsplit(location).path.lstrip("/").partition("/")
    return f"/{first}/" if rest else "/"
