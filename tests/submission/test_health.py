"""What search engines answered, on the page "Health"."""

import datetime as dt

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse
from django.utils import timezone

from django_sitemapkit.submission.models import SubmittedSite, SubmittedSitemap, UrlBatch
from tests.builds import BASE, Products

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LISTED = "/admin/sitemapkit_submission/urlbatch/"


@pytest.fixture(autouse=True)
def _sections(sections):
    sections.add(Products)


def add_batch(status, count, hours=0, answer=""):
    """Add a batch that was sent some hours ago; return it."""
    at = NOW - dt.timedelta(hours=hours)
    return UrlBatch.objects.create(
        site="default",
        host="www.example.com",
        build=1,
        status=status,
        count=count,
        urls="u" * 100,
        created_at=at,
        sent_at=at,
        answer=answer,
    )


def health(client):
    """Return the page without its blanks."""
    response = client.get(reverse("admin:sitemapkit_health"))
    assert response.status_code == 200
    return " ".join(response.text.split())


def test_rejected_and_given_up_urls_are_summed(admin_client):
    """With the last answer, what to do, and a link to their batches."""
    add_batch("rejected", 3_000, 5, "403: earlier")
    add_batch("rejected", 200, 4, "403: the key is not valid")
    add_batch("failed", 7, 3, "no answer: <b>")
    add_batch("accepted", 9, 2)
    text = health(admin_client)
    assert f'<a href="{LISTED}?status__exact=rejected&amp;site=default">' in text
    assert "URLs rejected by IndexNow</a>: 3,200" in text
    assert "403: the key is not valid" in text
    assert "403: earlier" not in text
    assert "URLs not sent to IndexNow</a>: 7" in text
    assert "no answer: &lt;b&gt;" in text
    assert text.count("submit_sitemaps --retry") == 2
    assert "Last request: accepted</a>: 9" in text
    link = f"{LISTED}?status__exact=rejected&site=default"
    assert admin_client.get(link).status_code == 200


def test_a_wait_is_a_note(admin_client):
    """As long as it lasts."""
    state = SubmittedSite.objects.create(
        site="default", build=1, wait_until=NOW + dt.timedelta(hours=1)
    )
    assert "IndexNow asks to wait until" in health(admin_client)
    state.wait_until = NOW - dt.timedelta(hours=1)
    state.save()
    assert "IndexNow asks to wait until" not in health(admin_client)


def test_the_end_of_a_wait_is_in_the_readers_time_zone(admin_client):
    """A moment is stored in UTC."""
    end = dt.datetime(2100, 1, 1, 12, tzinfo=dt.UTC)
    SubmittedSite.objects.create(site="default", build=1, wait_until=end)
    with timezone.override("Asia/Tokyo"):
        assert "IndexNow asks to wait until Jan. 1, 2100, 9 p.m." in health(admin_client)


def test_what_google_reports_is_shown(admin_client):
    """Errors, warnings and a failure need attention; a sitemap that Google counted does not."""
    assert "No submission is recorded" in health(admin_client)
    sitemap = SubmittedSitemap.objects.create(
        site="default", address=f"{BASE}/sitemap.xml", submitted_urls=5_000, read_at=NOW
    )
    text = health(admin_client)
    assert "No submission is recorded" not in text
    assert "Nothing needs your attention." in text
    assert "URLs that Google counts in the sitemap</a>: 5,000" in text
    sitemap.errors, sitemap.warnings, sitemap.failure = 3, 4, "403: forbidden"
    sitemap.is_pending = True
    sitemap.save()
    text = health(admin_client)
    for part in ("errors</a>: 3", "warnings</a>: 4", "403: forbidden", "not processed it yet"):
        assert part in text, part
    assert "Nothing needs your attention." not in text


@pytest.mark.slow
def test_answers_are_for_those_who_may_see_them(client):
    """As the lists are."""
    add_batch("rejected", 3)
    SubmittedSitemap.objects.create(site="default", address=f"{BASE}/sitemap.xml", errors=3)
    user = User.objects.create_user("one", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_build"))
    client.force_login(user)
    assert "rejected by" not in health(client)
    assert "Google reports errors" not in health(client)
    user.user_permissions.add(Permission.objects.get(codename="view_urlbatch"))
    assert "rejected by" in health(client)
    assert "Google reports errors" not in health(client)
    user.user_permissions.add(Permission.objects.get(codename="view_submittedsitemap"))
    assert "Google reports errors" in health(client)


def test_urls_of_batches_are_not_read(admin_client, django_assert_max_num_queries):
    """They may be megabytes."""
    add_batch("rejected", 3)
    add_batch("accepted", 3)
    with django_assert_max_num_queries(40) as queries:
        health(admin_client)
    assert not any('"urls"' in query["sql"] for query in queries if "urlbatch" in query["sql"])
