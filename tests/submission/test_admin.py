"""The ledger in the admin."""

import pytest
from django.urls import reverse
from django.utils import timezone

from django_sitemapkit.submission.models import SubmittedSite, SubmittedSitemap, UrlBatch
from tests.builds import BASE, run

pytestmark = pytest.mark.django_db

LISTS = ("urlbatch", "submittedsitemap")


@pytest.fixture
def ledger(site):
    """Give a batch that was rejected, one that was accepted, and an index in Search Console."""
    run()
    SubmittedSite.objects.create(site="default", build=1)
    rejected = UrlBatch.objects.create(
        site="default",
        host="www.example.com",
        build=1,
        created_at=timezone.now(),
        count=300,
        urls="\n".join(f"{BASE}/<{number}>" for number in range(300)),
        status="rejected",
        answer="403: the key is not valid",
    )
    UrlBatch.objects.create(
        site="default",
        host="www.example.com",
        build=2,
        count=7,
        status="accepted",
        created_at=timezone.now(),
        answer="200: ok",
    )
    SubmittedSitemap.objects.create(
        site="default", address=f"{BASE}/sitemap.xml", errors=3, warnings=4, submitted_urls=5
    )
    return rejected


def url(model, page, *arguments):
    """Return the address of a screen."""
    return reverse(f"admin:sitemapkit_submission_{model}_{page}", args=arguments)


@pytest.mark.slow
def test_nobody_changes_the_ledger(ledger, admin_client):
    """It says what has happened."""
    for model in LISTS:
        response = admin_client.get(url(model, "changelist"))
        assert response.status_code == 200
        assert admin_client.get(url(model, "add")).status_code == 403
    assert admin_client.post(url("urlbatch", "delete", ledger.pk)).status_code == 403
    assert admin_client.post(url("urlbatch", "change", ledger.pk), {}).status_code == 403


@pytest.mark.slow
def test_a_batch_shows_its_first_urls(ledger, admin_client):
    """Two hundred of them, escaped; one that was accepted has none any more."""
    text = admin_client.get(url("urlbatch", "change", ledger.pk)).text
    assert text.count(f"{BASE}/&lt;") == 200
    accepted = UrlBatch.objects.get(status="accepted")
    others = admin_client.get(url("urlbatch", "change", accepted.pk)).text
    assert f"{BASE}/" not in others
    advice = "Correct the cause. Then ask your developers to run: submit_sitemaps --retry"
    assert (advice in text, advice in others) == (True, False)


@pytest.mark.slow
def test_a_list_does_not_read_urls(ledger, admin_client, django_assert_max_num_queries):
    """They may be megabytes."""
    with django_assert_max_num_queries(8) as queries:
        admin_client.get(url("urlbatch", "changelist"))
    assert not any('"urls"' in query["sql"] for query in queries.captured_queries)
