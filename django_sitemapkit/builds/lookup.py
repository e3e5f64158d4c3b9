"""What is published, as the views ask for it: one query for a page."""

import datetime as dt
from collections.abc import Iterator, Sequence

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from django_sitemapkit.builds.manifests import lines_of, primary, published_build
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, BuildFile, StoredNow
from django_sitemapkit.sites import Site

__all__ = [
    "earlier_pages",
    "has_section",
    "published_build",
    "published_file",
    "section_names",
    "unbuilt",
]

AT_ONCE = 100
"""Sections looked for by one query."""

SAYS_SO = Q(status=BuildFile.Status.DONE) | (Q(status=BuildFile.Status.EMPTY) & ~Q(overridden=b""))
"""Lines that decide what an address answers: its file, or that editors have emptied it."""


def published_file(site: Site, section: str, number: int) -> BuildFile | None:
    """Return the published file of a page or, for the section "", of an index; or None.

    An address that only an earlier build has answers from there through the grace period, so
    that a reader of the index of then finds all that it lists. It is read where it was written:
    a replica that is behind would have no page of a build that was published just now.

    A page from which editors have taken the last URL is not answered from an earlier build.
    """
    line = answering(site).filter(section=section, number=number).defer("overridden").first()
    return line if line is not None and line.status == BuildFile.Status.DONE else None


def answering(site: Site) -> QuerySet[BuildFile]:
    """Return what builds say of addresses; for each address, the first line counts.

    That is the one of the published build, or else of the build that was replaced last, as long
    as the grace period is not over. An empty line says that editors want nothing answered there.
    """
    grace = StoredNow() - dt.timedelta(seconds=settings.GRACE_SECONDS)
    lines = primary(BuildFile).filter(
        Q(build__replaced_at=None) | Q(build__replaced_at__gte=grace),
        SAYS_SO,
        build__site=site.key,
        build__status=Build.Status.PUBLISHED,
        build__pruned_at=None,
    )
    return lines.order_by(F("build__replaced_at").desc(nulls_first=True))


def earlier_pages(site: Site, live: Build) -> Iterator[BuildFile]:
    """Yield the pages at addresses of which the published build says nothing."""
    same = lines_of(live).filter(SAYS_SO, section=OuterRef("section"), number=OuterRef("number"))
    lines = answering(site).exclude(section="").filter(~Exists(same)).defer("overridden")
    seen: set[tuple[str, int]] = set()
    for line in lines:
        address = line.section, line.number
        if address not in seen and line.status == BuildFile.Status.DONE:
            yield line
        seen.add(address)


def section_names(build: Build) -> set[str]:
    """Return the names of the sections that a build has, with URLs or without.

    Reads the whole manifest: for the request path there are ``has_section`` and ``unbuilt``.
    """
    return set(lines_of(build).exclude(section="").values_list("section", flat=True).distinct())


def has_section(build: Build, name: str) -> bool:
    """Return whether a build has a section, with URLs or without."""
    return lines_of(build).filter(section=name).exists()


def unbuilt(build: Build, names: Sequence[str]) -> set[str]:
    """Return those sections that a build does not have: one look at its manifest for each."""
    lines = lines_of(build)
    missing: set[str] = set()
    for start in range(0, len(names), AT_ONCE):
        batch = names[start : start + AT_ONCE]
        looks = [Exists(lines.filter(section=name)) for name in batch]
        (found,) = primary(Build).filter(pk=build.pk).values_list(*looks)
        missing.update(name for name, there in zip(batch, found, strict=True) if not there)
    return missing
