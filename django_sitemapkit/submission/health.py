"""What search engines answered, for the page "Health"."""

from collections.abc import Iterator, Sequence
from functools import partial

from django.db.models import Max, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_sitemapkit.admin import HealthItem, Level, register_health, register_inspection
from django_sitemapkit.admin.base import moment_text, number_text
from django_sitemapkit.models import hash_of
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.submission.indexing import SectionIndexing, indexing_by_section
from django_sitemapkit.submission.ledger import STOPPED
from django_sitemapkit.submission.models import (
    InspectedUrl,
    SubmittedSite,
    SubmittedSitemap,
    UrlBatch,
)

RETRY_ADVICE = gettext_lazy(
    "Correct the cause. Then ask your developers to run: submit_sitemaps --retry"
)
"""What to do about URLs that are not sent to IndexNow any more."""


@register_health(
    gettext_lazy("Search engines"),
    help=gettext_lazy(
        "What IndexNow answered, and what Google reports of the sitemap. Submit the sitemap with"
        " the command submit_sitemaps, or after each build."
    ),
)
def search_engine_items(request: HttpRequest, sites: Sequence[SitemapSite]) -> Iterator[HealthItem]:
    """Yield the items of the page "Health" on what search engines answered for these sites.

    Items that the user may not see are omitted.
    """
    keys = [site.key for site in sites]
    may_see_batches = request.user.has_perm("sitemapkit_submission.view_urlbatch")
    batches = list(_indexnow_items(keys)) if may_see_batches else []
    yield from batches
    if request.user.has_perm("sitemapkit_submission.view_submittedsitemap"):
        sitemaps = list(SubmittedSitemap.objects.filter(site__in=keys).order_by("address"))
        for sitemap in sitemaps:
            yield from _search_console_items(sitemap)
        submitted = {each.site for each in batches} | {each.site for each in sitemaps}
        if may_see_batches:
            yield from (_not_submitted_item(key) for key in keys if key not in submitted)
    if request.user.has_perm("sitemapkit_submission.view_inspectedurl"):
        yield from _indexing_items(sites)


@register_inspection
def last_google_answer(
    request: HttpRequest, site: SitemapSite, location: str
) -> Iterator[tuple[str, str]]:
    """Yield a title and a text with Google's last answer on a URL of a site.

    The title has the time. Nothing is yielded if Google was never asked, or the user may not see
    the answer.
    """
    if not request.user.has_perm("sitemapkit_submission.view_inspectedurl"):
        return
    row = InspectedUrl.objects.filter(site=site.key, hash=hash_of(location), url=location).first()
    if row is not None and row.inspected_at is not None:
        at = moment_text(row.inspected_at)
        yield _("Google, asked on %(moment)s") % {"moment": at}, _index_state_text(row)


def _not_submitted_item(site: str) -> HealthItem:
    """Return a note that no submission is recorded of the site with this key."""
    return HealthItem(
        site=site,
        title=gettext_lazy("No submission is recorded"),
        level=Level.NOTE,
        found_at=timezone.now(),
        found_by=gettext_lazy("Now"),
        advice=gettext_lazy("Ask your developers to run: submit_sitemaps"),
    )


def _indexnow_items(site_keys: Sequence[str]) -> Iterator[HealthItem]:
    """Yield items on the batches of URLs for IndexNow, and on its requests to wait.

    A site has one item for all rejected batches, one for all that were given up, and one for its
    last batch if that is neither.
    """
    batches = UrlBatch.objects.filter(site__in=site_keys)
    totals = batches.order_by().values_list("site", "status")
    urls: dict[int, int] = {}
    last: dict[str, int] = {}
    for site, status, newest, total in totals.annotate(Max("pk"), Sum("count")):
        last[site] = max(newest, last.get(site, newest))
        if status in STOPPED:
            urls[newest] = total
    for batch in batches.filter(pk__in={*urls, *last.values()}).defer("urls").order_by("-pk"):
        yield _unsent_item(batch, urls[batch.pk]) if batch.pk in urls else _last_batch_item(batch)
    now = timezone.now()
    for state in SubmittedSite.objects.filter(site__in=site_keys, wait_until__gt=now):
        yield HealthItem(
            site=state.site,
            title=_("IndexNow asks to wait until %(moment)s")
            % {"moment": moment_text(state.wait_until or now)},
            level=Level.NOTE,
            found_at=now,
            found_by="IndexNow",
        )


def _unsent_item(newest: UrlBatch, urls: int) -> HealthItem:
    """Return an item for all URLs of a site that were rejected, or for all that were given up.

    ``newest`` is the last of their batches, and ``urls`` is the number of URLs.
    """
    query = urlencode({"status__exact": newest.status, "site": newest.site})
    rejected = newest.status == UrlBatch.Status.REJECTED
    return HealthItem(
        site=newest.site,
        title=_("URLs rejected by IndexNow") if rejected else _("URLs not sent to IndexNow"),
        found_at=newest.sent_at or newest.created_at,
        found_by="IndexNow",
        count=urls,
        details=[newest.answer],
        advice=RETRY_ADVICE,
        url=f"{reverse('admin:sitemapkit_submission_urlbatch_changelist')}?{query}",
    )


def _last_batch_item(batch: UrlBatch) -> HealthItem:
    """Return an item of the level "note" on the last batch of a site."""
    return HealthItem(
        site=batch.site,
        title=_("Last request: %(status)s") % {"status": batch.get_status_display()},
        level=Level.NOTE,
        found_at=batch.sent_at or batch.created_at,
        found_by="IndexNow",
        count=batch.count,
        details=[batch.answer],
        url=reverse("admin:sitemapkit_submission_urlbatch_change", args=[batch.pk]),
    )


def _indexing_items(sites: Sequence[SitemapSite]) -> Iterator[HealthItem]:
    """Yield an item per site: how many of its inspected URLs Google has indexed."""
    rows = InspectedUrl.objects.filter(site__in=[site.key for site in sites])
    inspected = rows.exclude(inspected_at=None).order_by().values("site")
    last = dict(inspected.annotate(at=Max("inspected_at")).values_list("site", "at"))
    # Most projects have no site that Google was asked about: only those cost queries.
    for site in sites:
        if site.key in last and (sections := indexing_by_section(site)):
            yield HealthItem(
                site=site.key,
                title=_("Inspected URLs that Google has indexed"),
                level=Level.NOTE,
                found_at=last[site.key],
                found_by="Search Console",
                count=sum(section.indexed for section in sections),
                details=[_section_indexing_text(section) for section in sections],
                url=reverse("admin:sitemapkit_submission_inspectedurl_changelist"),
            )


def _index_state_text(row: InspectedUrl) -> str:
    """Return the state of an inspected URL, with Google's explanation of it.

    The time of the last crawl and a different canonical URL follow, if there are any.
    """
    parts = [str(row.get_state_display()), row.coverage_state or row.verdict]
    if row.last_crawl_time:
        parts.append(_("crawled on %(moment)s") % {"moment": moment_text(row.last_crawl_time)})
    if row.google_canonical not in {"", row.url}:
        parts.append(_("canonical: %(url)s") % {"url": row.google_canonical})
    return ", ".join(filter(None, parts))


def _section_indexing_text(section: SectionIndexing) -> str:
    """Return how many inspected URLs of a section are indexed, and the share this makes of all.

    The states of its inspected URLs follow, with Google's explanations and counts.
    """
    least, greatest = section.indexed_share_interval
    text = _(
        "%(section)s: %(indexed)s of %(inspected)s inspected URLs are indexed, which makes"
        " %(least)s to %(greatest)s%% of all %(urls)s. %(reasons)s"
    )
    labels = dict(InspectedUrl.State.choices)
    reasons = (
        f"{labels[state]} ({why}): {number_text(count)}"
        for (state, why), count in section.reasons.most_common()
    )
    return text % {
        "section": section.section,
        "indexed": number_text(section.indexed),
        "inspected": number_text(section.inspected),
        "least": f"{least * 100:.1f}",
        "greatest": f"{greatest * 100:.1f}",
        "urls": number_text(section.urls),
        "reasons": "; ".join(reasons),
    }


def _search_console_items(sitemap: SubmittedSitemap) -> Iterator[HealthItem]:
    """Yield items for a sitemap's failure, errors and warnings at Google, and its URL count."""
    at = sitemap.read_at or sitemap.submitted_at or timezone.now()
    item = partial(
        HealthItem,
        site=sitemap.site,
        found_at=at,
        found_by="Search Console",
        url=reverse("admin:sitemapkit_submission_submittedsitemap_changelist"),
    )
    if sitemap.failure:
        yield item(
            title=_("Search Console was not reached, or refused the request"),
            details=[sitemap.address, sitemap.failure],
            advice=_("Correct the cause. Then ask your developers to run: submit_sitemaps"),
        )
    for count, title, level in (
        (sitemap.errors, _("Google reports errors"), Level.ERROR),
        (sitemap.warnings, _("Google reports warnings"), Level.WARNING),
    ):
        if count:
            yield item(
                title=title,
                level=level,
                count=count,
                details=[sitemap.address],
                advice=_("Open the sitemap in Search Console: it says which URLs, and why."),
            )
    yield item(
        title=_("Google has not processed it yet")
        if sitemap.is_pending
        else _("URLs that Google counts in the sitemap"),
        level=Level.NOTE,
        count=None if sitemap.is_pending else sitemap.submitted_urls,
        details=[sitemap.address],
    )
