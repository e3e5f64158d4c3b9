"""The builds of a site that a builder compares with and continues."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from django_sitemapkit.builds.manifest.rows import PageName, index_order, page_name_of, page_rows_of
from django_sitemapkit.models import Build, BuildFile, Publication
from django_sitemapkit.sites import SitemapSite


class SiteBuilds:
    """What is published and held of a site, with the rows of both: read once.

    Under the lease of the site nobody else changes any of it.
    """

    def __init__(self, site: SitemapSite) -> None:
        self.site = site

    @cached_property
    def publication(self) -> Publication | None:
        """Which build the site serves; None if nothing is published."""
        rows = Publication.objects.filter(site=self.site.key)
        return rows.select_related("build").first()

    @property
    def published(self) -> Build | None:
        """The build that the site serves."""
        return self.publication.build if self.publication else None

    @cached_property
    def unpublished(self) -> Sequence[Build]:
        """The builds that are running or held, the oldest first."""
        states = (Build.Status.RUNNING, Build.Status.HELD)
        return list(Build.objects.filter(site=self.site.key, status__in=states).order_by("pk"))

    @property
    def running(self) -> list[Build]:
        """The builds that a killed process has left."""
        return [build for build in self.unpublished if build.status == Build.Status.RUNNING]

    @property
    def held(self) -> Build | None:
        """The last build that is held for review and may still be published."""
        held = (
            build
            for build in reversed(self.unpublished)
            if build.status == Build.Status.HELD and build.pruned_at is None
        )
        return next(held, None)

    @cached_property
    def _rows(self) -> dict[int, list[BuildFile]]:
        builds = [build.pk for build in (self.published, self.held) if build]
        rows: defaultdict[int, list[BuildFile]] = defaultdict(list)
        for row in BuildFile.objects.filter(build__in=builds) if builds else ():
            rows[row.build_id].append(row)
        for found in rows.values():
            found.sort(key=index_order)
        return rows

    def rows_of(self, build: Build | None) -> Sequence[BuildFile]:
        """Return all rows of the published build or the held one; none of None."""
        return self._rows.get(build.pk, ()) if build else ()

    def page_rows_of(self, build: Build | None) -> list[BuildFile]:
        """Return its pages with URLs, in the order of the index."""
        return page_rows_of(self.rows_of(build))

    def indexes_of(self, build: Build | None) -> list[BuildFile]:
        """Return its indexes, by their numbers."""
        rows = (row for row in self.rows_of(build) if not row.section)
        done = (row for row in rows if row.status == BuildFile.Status.DONE)
        return sorted(done, key=lambda row: row.number)

    def by_page(self, build: Build | None) -> dict[PageName, BuildFile]:
        """Return its finished pages, with URLs or without, by section and number."""
        finished = (BuildFile.Status.DONE, BuildFile.Status.EMPTY)
        rows = self.rows_of(build)
        return {page_name_of(row): row for row in rows if row.section and row.status in finished}

    def sections_of(self, build: Build | None) -> set[str]:
        """Return the names of its sections, with URLs or without."""
        return {row.section for row in self.rows_of(build) if row.section}

    def sizes_of(self, section: str) -> dict[int, int]:
        """Return the bytes of a section's published pages, by number."""
        rows = self.rows_of(self.published)
        return {row.number: row.xml_bytes for row in rows if row.section == section}
