"""What is published, as the views ask for it: one query for a page."""

import datetime as dt

from django.db.models import F, Q
from django.utils import timezone

from django_sitemapkit.builds.manifests import published_build
from django_sitemapkit.conf import settings
from django_sitemapkit.models import Build, BuildFile
from django_sitemapkit.sites import Site

__all__ = ["published_build", "published_file", "section_names"]


def published_file(site: Site, section: str, number: int) -> BuildFile | None:
    """Return the published file of a page, or None.

    An address that only an earlier build has answers from there through the grace period, so
    that a reader of the index of then finds all that it lists.
    """
    grace = timezone.now() - dt.timedelta(seconds=settings.GRACE_SECONDS)
    return (
        BuildFile.objects.filter(
            Q(build__replaced_at=None) | Q(build__replaced_at__gte=grace),
            section=section,
            number=number,
            status=BuildFile.Status.DONE,
            build__site=site.key,
            build__status=Build.Status.PUBLISHED,
            build__pruned_at=None,
        )
        .order_by(F("build__replaced_at").desc(nulls_first=True))
        .first()
    )


def section_names(build: Build) -> set[str]:
    """Return the names of the sections that a build has, with URLs or without."""
    return set(build.files.exclude(section="").values_list("section", flat=True).distinct())
