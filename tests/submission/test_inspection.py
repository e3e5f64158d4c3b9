"""Google's index: which URLs are inspected, what is kept of each answer, and what is shown."""

import datetime as dt
import json
from io import StringIO

import pytest
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.urls import reverse

from django_sitemapkit.models import hash_of
from django_sitemapkit.submission.indexing import indexing_by_section
from django_sitemapkit.submission.models import InspectedUrl
from django_sitemapkit.submission.submit import submit
from tests.builds import BASE, SITE, edit_product, run
from tests.testapp.models import Product, Shop

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

CRAWLED = "2026-05-01T10:00:00Z"
INDEXED = {
    "verdict": "PASS",
    "coverageState": "Submitted and indexed",
    "robotsTxtState": "ALLOWED",
    "indexingState": "INDEXING_ALLOWED",
    "lastCrawlTime": CRAWLED,
    "pageFetchState": "SUCCESSFUL",
    "crawledAs": "MOBILE",
}


def url(name):
    """Return the URL of a product."""
    return f"{BASE}/products/all/{name}/"


ALL = {url(f"p{number}") for number in range(5)}


@pytest.fixture
def google(console, settings):
    """Give the API, of which three URLs a day are asked."""
    settings.SITEMAPKIT_SUBMIT |= {"google_inspections": 3}
    return console


def a_day_later():
    """Let a day pass since all that was asked."""
    for row in InspectedUrl.objects.exclude(asked_at=None):
        row.asked_at -= dt.timedelta(hours=25)
        row.save()


def inspect(google):
    """Submit the site; return the result, and the URLs that were inspected by it."""
    before = len(google.inspected)
    result = submit(SITE)
    return result, google.inspected[before:]


def test_nothing_is_asked_by_default(console):
    """The quota is the project's."""
    assert submit(SITE).indexing == []
    assert console.inspected == []


def test_all_urls_have_their_turn(google):
    """Not more a day than the setting says, however often the command runs."""
    _, first = inspect(google)
    assert (len(first), inspect(google)[1]) == (3, [])
    a_day_later()
    _, second = inspect(google)
    assert {*first, *second} == ALL
    assert {*second[:2]} == ALL - {*first}
    a_day_later()
    assert inspect(google)[1][:2] == [each for each in first if each not in second]


def test_new_and_changed_urls_come_first(google):
    """Removed ones are forgotten; what finds no room is first on the next day."""
    inspect(google)
    Product.objects.get(slug="p4").delete()
    gone = {"site": "default", "url": url("p4"), "hash": hash_of(url("p4"))}
    InspectedUrl.objects.get_or_create(**gone)
    edit_product("p0")
    shop = Shop.objects.get()
    Product.objects.bulk_create(Product(shop=shop, slug=f"n{number}") for number in range(3))
    run()
    a_day_later()
    changed = {url(name) for name in ("p0", "n0", "n1", "n2")}
    _, first = inspect(google)
    assert {*first} < changed
    a_day_later()
    _, second = inspect(google)
    assert {*first, second[0]} == changed
    assert not InspectedUrl.objects.filter(**gone).exists()


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ({}, "indexed"),
        ({"verdict": "NEUTRAL"}, "crawled"),
        ({"verdict": "NEUTRAL", "lastCrawlTime": None}, "discovered"),
        ({"verdict": "NEUTRAL", "robotsTxtState": "DISALLOWED"}, "excluded"),
        ({"verdict": "NEUTRAL", "indexingState": "BLOCKED_BY_META_TAG"}, "excluded"),
        ({"verdict": "FAIL", "pageFetchState": "SOFT_404"}, "excluded"),
        ({"verdict": "NEUTRAL", "googleCanonical": f"{BASE}/other/"}, "excluded"),
        ({"verdict": "NEUTRAL", "userCanonical": f"{BASE}/other/"}, "excluded"),
        ({"verdict": "NEUTRAL", "newField": ["x"], "coverageState": "x" * 999}, "crawled"),
    ],
)
def test_what_has_become_of_a_url(google, values, state):
    """By the documented codes, and not by texts in a language."""
    google.index = dict.fromkeys(ALL, INDEXED | values)
    submit(SITE)
    row = InspectedUrl.objects.first()
    assert (row.state, row.section, row.site_property) == (state, "products", f"{BASE}/")
    assert row.inspected_at == row.asked_at


def test_a_quota_ends_the_day(google):
    """What was answered before stays; the next run asks for the others."""
    google.quota = 2
    result, asked = inspect(google)
    assert len(asked) == 2
    assert result.problems == ["Search Console: 429: Quota exceeded for sc-domain."]
    assert InspectedUrl.objects.count() == 2
    google.quota = 9
    assert {*asked, *inspect(google)[1]} <= ALL
    assert InspectedUrl.objects.count() == 3


@pytest.mark.parametrize("answer", [500, "hang up", ["no", "status"]])
def test_a_lost_answer(google, answer):
    """It counts for the quota, the last result stays, and the run goes on."""
    google.index = dict.fromkeys(ALL, INDEXED)
    _, first = inspect(google)
    a_day_later()
    google.index[first[0]] = answer
    google.index |= dict.fromkeys(ALL - {*first[1:]}, answer)
    result, second = inspect(google)
    assert len(second) == 3
    assert result.problems
    row = InspectedUrl.objects.get(url=first[0])
    assert (row.state, bool(row.failure)) == ("indexed", first[0] in second)
    assert inspect(google)[1] == []


def test_a_server_that_always_fails_is_left_alone(google, settings):
    """After three failures in a row."""
    settings.SITEMAPKIT_SUBMIT |= {"google_inspections": 2_000}
    google.index = dict.fromkeys(ALL, 503)
    assert len(inspect(google)[1]) == 3


def test_the_numbers_of_a_section(google, settings, admin_client):
    """With the interval of all its URLs: in the result, in the command, in the admin."""
    google.index = dict.fromkeys(ALL, INDEXED)
    google.index[url("p0")] = INDEXED | {"verdict": "NEUTRAL", "coverageState": "Crawled - no"}
    settings.SITEMAPKIT_SUBMIT |= {"google_inspections": 4}
    out = StringIO()
    call_command("submit_sitemaps", stdout=out, stderr=out)
    (section,) = indexing_by_section(SITE)
    least, greatest = section.indexed_share_interval
    assert (section.urls, section.inspected) == (5, 4)
    assert 0 < least < section.indexed / 4 <= greatest <= 1
    assert f"{section.indexed} of 4 inspected URLs are indexed" in out.getvalue()
    a_day_later()
    submit(SITE)
    (section,) = indexing_by_section(SITE)
    assert (section.indexed, section.indexed_share_interval) == (4, (0.8, 0.8))
    assert json.loads(json.dumps(section.as_dict()))["states"] == {"indexed": 4, "crawled": 1}
    health = admin_client.get(reverse("admin:sitemapkit_health")).text
    assert "products: 4 of 5 inspected URLs are indexed" in health
    assert "crawled, not indexed (Crawled - no): 1" in health
    page = admin_client.get(reverse("admin:sitemapkit_inspect"), {"url": url("p0")}).text
    assert "crawled, not indexed, Crawled - no, crawled on May 1, 2026" in page
    listed = admin_client.get(reverse("admin:sitemapkit_submission_inspectedurl_changelist"))
    assert url("p0") in listed.text


def test_without_permission_nothing_is_shown(google, client, django_user_model):
    """Neither on Health, nor where a URL is inspected."""
    submit(SITE)
    user = django_user_model.objects.create_user("one", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_build"))
    client.force_login(user)
    assert "inspected URLs" not in client.get(reverse("admin:sitemapkit_health")).text
    page = client.get(reverse("admin:sitemapkit_inspect"), {"url": url("p0")}).text
    assert "asked on" not in page


@pytest.mark.parametrize("value", [-1, 2_001, True, "5"])
def test_the_setting_is_checked(google, settings, value):
    """More than the quota would be refused."""
    settings.SITEMAPKIT_SUBMIT |= {"google_inspections": value}
    with pytest.raises(CommandError, match="must be a whole number from 0 to 2,000"):
        call_command("submit_sitemaps", skip_checks=True)
