"""Taking a URL out of the published files at once, for the case that must not wait.

The next build would do it too, with all else that is due. Here just the pages that list the URL are
made anew, as their rows are now; all other files stay as they are published. Addresses that only
earlier builds answer, and that list it too, are withdrawn: what else they list is in the index.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from django.core.exceptions import ValidationError

from django_sitemapkit.builds.changes import packed
from django_sitemapkit.builds.delivery import announce
from django_sitemapkit.builds.duplicates import PageDamaged
from django_sitemapkit.builds.files import holds_location
from django_sitemapkit.builds.holding import Holding, hold
from django_sitemapkit.builds.lookup import earlier_pages
from django_sitemapkit.builds.making import InlineRunner, PagesMoved
from django_sitemapkit.builds.manifests import (
    copy_of,
    keys_of,
    lines_of,
    pages,
    primary,
    published_build,
)
from django_sitemapkit.builds.results import BuildResult
from django_sitemapkit.builds.run import Builder, abandon
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.models import Build, BuildFile, UrlOverride
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import Site

PageName = tuple[str, int]
"""A section's name and a page's number."""


def exclude_now(site: Site, override: UrlOverride, *, started_by: str = "") -> BuildResult | None:
    """Make and publish anew the pages that list what an override is about.

    The override is saved already, and excludes its URL. Returns None where no page can list it,
    the published ones and those of earlier builds: then there is nothing to do. A build that a
    killed process left is abandoned, since its pages are older. SITEMAPKIT_MAX_SHRINK does not
    count what is excluded here.

    Raises BuildRunning while the site is being built, Unpublishable where no URL would be left,
    and what else ``build`` raises; the next build takes the override into account in any case.
    """
    with hold(site) as holding:
        for left in primary(Build).filter(site=site.key, status=Build.Status.RUNNING):
            abandon(left, holding, "a URL had to be excluded at once")
        live = published_build(site)
        if live is None:
            return None
        concerned = dict(_pages_with(site, list(pages(live)), override))
        earlier = list(earlier_pages(site, live))
        withdrawn = dict(_pages_with(site, earlier, override, unreadable=True))
        if not concerned and not withdrawn:
            return None
        builder = _PagesBuilder(site, holding, concerned, started_by)
        builder.withdraw(withdrawn, override)
        try:
            result = builder.run()
        except (PagesMoved, PageDamaged) as error:
            raise BuildFailed(f"Site {site.key!r}: {error}; build it as a whole.") from error
        if result.status == "unchanged":  # Else the addresses are announced with what is published.
            announce(site, withdrawn)
        return result


class _PagesBuilder(Builder):
    """Makes some pages of what is published, and nothing else."""

    def __init__(
        self, site: Site, holding: Holding, concerned: Mapping[PageName, int], started_by: str
    ) -> None:
        sections = {section for section, _number in concerned}
        super().__init__(
            *(site, holding, sections, (), InlineRunner(), None),
            full=True,
            started_by=started_by,
        )
        self._concerned = concerned
        leaving: Counter[str] = Counter()
        for (section, _number), urls in concerned.items():
            leaving[section] += urls
        self.leaving = leaving
        self._withdrawn: set[PageName] = set()
        self._reason = b""

    def withdraw(self, pages: Collection[PageName], override: UrlOverride) -> None:
        """Let addresses of earlier builds answer no more, because of an override."""
        self._withdrawn = set(pages)
        self._reason = packed([override.hash])

    def _begin(self) -> Build:
        """Record a build with the lines of the published one, some of them to be made."""
        live = published_build(self.site)
        if live is None:
            raise BuildFailed(f"Nothing of site {self.site.key!r} is published any more.")
        lines = [self._line(line) for line in lines_of(live).exclude(section="")]
        lines += self._emptied(lines)
        with self.holding.guarded():
            record = primary(Build).create(
                site=self.site.key,
                declaration=live.declaration,
                fence=self.holding.lease.fence,
                started_at=self.holding.lease.now(),
                started_by=self.started_by,
                checked_by=live.checkers_of({line.section for line in lines}),
            )
            for line in lines:
                line.build = record
            primary(BuildFile).bulk_create(lines, batch_size=500)
        return record

    def _emptied(self, lines: Sequence[BuildFile]) -> Iterator[BuildFile]:
        """Yield a line for each address that is withdrawn and has none; say so in the others."""
        known = {(line.section, line.number): line for line in lines}
        for section, number in self._withdrawn:
            line = known.get((section, number))
            if line is None:
                yield BuildFile(
                    section=section,
                    number=number,
                    status=BuildFile.Status.EMPTY,
                    overridden=self._reason,
                )
            else:
                line.overridden = self._reason

    def _line(self, former: BuildFile) -> BuildFile:
        if (former.section, former.number) not in self._concerned:
            return copy_of(former)
        return BuildFile(
            section=former.section,
            number=former.number,
            position=former.position,
            lower=former.lower,
            upper=former.upper,
        )


def _pages_with(
    site: Site, lines: Sequence[BuildFile], override: UrlOverride, *, unreadable: bool = False
) -> Iterator[tuple[PageName, int]]:
    """Yield the pages that may list what an override is about, and how often each may.

    One that cannot be read raises StorageFailure; with ``unreadable`` it counts as one of them.
    """
    if override.path:
        location, storage = site.origin + override.path, SitemapStorage()
        for line in lines:
            if _lists(line, location, storage, unreadable=unreadable):
                yield (line.section, line.number), 1
        return
    for section in sections_of(site):
        if not _is_over(section, override.model):
            continue
        key = _key_of(section, override.object_id)
        name = section.get_name()
        for line in lines if key is not None else ():
            if line.section == name and _covers(section, line, key):
                yield (line.section, line.number), section.urls_per_row


def _covers(section: BaseSection, line: BuildFile, key: Any) -> bool:
    """Return whether a page's range has a key; of a page by another key, that is not known."""
    assert section.keyset is not None  # noqa: S101  it has a label
    try:
        return section.keyset.covers(keys_of(line, section), key)
    except (ValueError, ValidationError):
        return True


def _is_over(section: BaseSection, label: str) -> bool:
    try:
        return section.label == label
    except Exception:  # noqa: BLE001  a section of the project's that fails has no page to make
        return False


def _key_of(section: BaseSection, text: str) -> Any:
    """Return the paging key of an object, be it one that the section has no more; else None."""
    keyset = section.keyset
    assert keyset is not None  # noqa: S101  it has a label
    model = keyset.queryset.model
    with suppress(ValidationError, ValueError, OverflowError):
        pk = model._meta.pk.to_python(text)
        if keyset.field.primary_key:
            return pk
        rows = model._base_manager.using(keyset.queryset.db).filter(pk=pk)
        return rows.values_list(keyset.name, flat=True).first()
    return None


def _lists(line: BuildFile, location: str, storage: SitemapStorage, *, unreadable: bool) -> bool:
    try:
        with storage.open(line.name) as file:
            return holds_location(file, location)
    except Exception as error:
        if unreadable:
            return True
        raise StorageFailure(f"{line.name} cannot be read: {error}") from error
