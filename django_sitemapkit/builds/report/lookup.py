"""What is published, as the views ask for it: one query for a page."""

from collections.abc import Iterator, Sequence

from django.db.models import Exists, FilteredRelation, OuterRef, Q

from django_sitemapkit.models import Build, Place, Publication
from django_sitemapkit.sites import SitemapSite

SECTIONS_PER_QUERY = 100
"""Sections looked for by one query."""


def published_with(
    site: SitemapSite, section: str, number: int
) -> tuple[Build | None, Place | None]:
    """Return the build that a site serves, and the file at an address: mostly by one query.

    An address that only an earlier build has answers from there through the grace period, so
    that a reader of the index of then finds all that it lists; but not a page from which editors
    have taken the last URL.
    """
    wanted = Q(places__section=section, places__number=number)
    builds = Build.objects.annotate(file=FilteredRelation("places", condition=wanted))
    builds = builds.select_related("file__page").defer("file__override_hashes")  # type: ignore[misc]
    publication = Publication.objects.filter(site=site.key)
    published = builds.filter(pk__in=publication.values("build")).first()
    if published is None:
        return None, None
    file: Place | None = getattr(published, "file", None)
    if file is None or file.status != Place.Status.DONE:
        rows = Place.objects.answering(site).filter(section=section, number=number)
        file = rows.defer("override_hashes").first()
    return published, file if file and file.status == Place.Status.DONE else None


def earlier_pages(site: SitemapSite, live: Build) -> Iterator[Place]:
    """Yield the pages at addresses of which the published build says nothing."""
    same = Place.objects.in_build(live).filter(
        Place.decides_answer(), section=OuterRef("section"), number=OuterRef("number")
    )
    rows = (
        Place.objects.answering(site)
        .exclude(section="")
        .filter(~Exists(same))
        .defer("override_hashes")
    )
    seen: set[tuple[str, int]] = set()
    for row in rows:
        address = row.section, row.number
        if address not in seen and row.status == Place.Status.DONE:
            yield row
        seen.add(address)


def unbuilt(build: Build, names: Sequence[str]) -> set[str]:
    """Return those sections that a build does not have: one look at its manifest for each."""
    rows = Place.objects.in_build(build)
    missing: set[str] = set()
    for start in range(0, len(names), SECTIONS_PER_QUERY):
        batch = names[start : start + SECTIONS_PER_QUERY]
        looks = [Exists(rows.filter(section=name)) for name in batch]
        (found,) = Build.objects.filter(pk=build.pk).values_list(*looks)
        missing.update(name for name, there in zip(batch, found, strict=True) if not there)
    return missing
