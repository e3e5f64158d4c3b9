"""What only a look at one site tells: sections that fail, lost files, external sitemaps."""

import datetime as dt
from collections.abc import Iterator
from functools import partial

from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.health.items import HealthItem, Level, items_or_failure
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.builds.report.due import due, missing_here
from django_sitemapkit.publishing.database import stored_bytes
from django_sitemapkit.rendering import external_problems
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import words_of

NOTED_BYTES = 200_000_000
"""Bytes that the database may store without a note."""

_NOW = _("Now")
_CORRECT = _("Correct the error. Until then builds fail, and the published build is still served.")


def items_now(site: SitemapSite) -> list[HealthItem]:
    """Return what is wrong with a site now; no row of a section is read."""
    at = timezone.now()
    looks = (
        (_sections, _("Sections cannot be read")),
        (_externals, _("External sitemaps cannot be read")),
        (_stored, _("Stored files cannot be read")),
    )
    failed = {"found_at": at, "found_by": _NOW, "advice": _CORRECT}
    return [
        item
        for look, title in looks
        for item in items_or_failure(partial(look, site, at), [site], title=title, **failed)
    ]


def _sections(site: SitemapSite, at: dt.datetime) -> Iterator[HealthItem]:
    """Yield the sections that cannot be read, and how many files are lost."""
    overview = f"{reverse('admin:sitemapkit_overview')}?{urlencode({'site': site.key})}"
    builds = SiteBuilds(site)
    dues = list(due(site, rows=False, builds=builds))
    failed = [item for item in dues if item.error]
    if failed:
        yield HealthItem(
            site=site.key,
            title=_("Section cannot be read"),
            level=Level.ERROR,
            found_at=at,
            found_by=_NOW,
            count=len(failed),
            details=[f"{item.section or _('Index')}: {item.error}" for item in failed],
            advice=_CORRECT,
            url=overview,
        )
    if lost := sum(item.pages.get(Reason.LOST, 0) for item in dues):
        yield HealthItem(
            site=site.key,
            title=_("Stored file missing"),
            level=Level.ERROR,
            found_at=at,
            found_by=_NOW,
            count=lost,
            details=[words_of(missing)] if (missing := missing_here(builds)) else (),
            advice=_("Build again: the next build stores them. Find out what deletes files."),
            url=overview,
        )


def _externals(site: SitemapSite, at: dt.datetime) -> Iterator[HealthItem]:
    """Yield what the index leaves out of the external sections."""
    if problems := external_problems(site):
        yield HealthItem(
            site=site.key,
            title=_("External sitemap not listed"),
            level=Level.ERROR,
            found_at=at,
            found_by=_NOW,
            count=len(problems),
            details=[str(problem) for problem in problems],
            advice=_("Correct the external section: the index leaves these out."),
        )


def _stored(site: SitemapSite, at: dt.datetime) -> Iterator[HealthItem]:
    """Yield that the database stores large files, for which other storages are made."""
    size = stored_bytes()
    if size > NOTED_BYTES:
        yield HealthItem(
            site=site.key,
            title=_("Large sitemap files in the database"),
            level=Level.NOTE,
            found_at=at,
            found_by=_NOW,
            details=[filesizeformat(size)],
            advice=_(
                "They make backups larger. A folder that all servers share, or S3, stores them"
                " outside the database: set “sitemaps” in STORAGES."
            ),
        )
