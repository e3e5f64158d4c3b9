"""The section of saved pages: checks, live pages, builds, and several sites."""

import datetime as dt

import pytest
from django.core.management import call_command
from django.test import override_settings

from django_sitemapkit.audit.models import SavedPage
from django_sitemapkit.audit.sections import CrawledSection
from django_sitemapkit.checks.declarations import check_declarations
from django_sitemapkit.inspection import inspect_path
from django_sitemapkit.models import ExclusionRule, hash_of
from tests.builds import BASE, in_order, live, run, served, states, use_storage
from tests.factories import SITE
from tests.testapp.serving import Products, make_products

pytestmark = pytest.mark.django_db

SEEN = dt.datetime(2026, 3, 1, 3, tzinfo=dt.UTC)


def store(*paths, site="default", **values):
    """Store saved pages."""
    SavedPage.objects.bulk_create(
        SavedPage(
            site=site, path=path, hash=hash_of(path), first_seen=SEEN, last_seen=SEEN, **values
        )
        for path in paths
    )


@pytest.fixture
def crawled(sections, settings):
    """Register the section, two rows a page; builds go to memory."""
    sections.add(type("Crawled", (CrawledSection,), {"limit": 2, "priority": 0.3}))
    return use_storage(settings, "Memory")


def test_no_check_finds_fault(sections):
    """Neither with the section as it is, nor with a subclass; a misspelt option is found."""
    sections.add(CrawledSection)
    assert check_declarations() == []
    sections.remove("crawled")
    sections.add(type("Crawled", (CrawledSection,), {"grace": dt.timedelta(days=1)}))
    assert check_declarations() == []
    sections.remove("crawled")
    sections.add(type("Crawled", (CrawledSection,), {"graces": dt.timedelta(days=1)}))
    assert [(message.id, message.hint) for message in check_declarations()] == [
        ("sitemapkit.W140", "Did you mean grace?")
    ]


@pytest.mark.slow
def test_a_site_without_models_gets_a_sitemap(crawled, client, settings):
    """Live and built, with its lastmods; both list the same."""
    store("/", "/a/?b=1&c=2")
    store("/b/", "/c/", "/d/", lastmod=SEEN)
    lastmod = "2026-03-01T03:00:00+00:00"
    entries = in_order(live(client, settings))
    assert entries == [
        (f"{BASE}/", None),
        (f"{BASE}/a/?b=1&c=2", None),
        *((f"{BASE}/{name}/", lastmod) for name in "bcd"),
    ]
    result = run()
    assert (result.urls, len(states(result))) == (5, 4)
    assert in_order(served(client)) == entries
    assert f"{BASE}/sitemap-crawled-1.xml.gz" in served(client)


@pytest.mark.slow
def test_only_changed_pages_are_rendered_again(crawled, client):
    """That pages were seen again changes nothing; another lastmod does; titles are not in XML."""
    store("/a/", "/b/", "/c/", "/d/")
    run()
    SavedPage.objects.update(last_seen=SEEN + dt.timedelta(days=1), title="T")
    assert run().status == "unchanged"
    SavedPage.objects.filter(path="/a/").update(lastmod=SEEN)
    found = states(run())
    assert (found["crawled", 1], found["crawled", 2]) == ("stored", "same")
    store("/e/")
    SavedPage.objects.filter(path="/b/").delete()
    run()
    assert [url.removeprefix(BASE) for url, _ in in_order(served(client))] == [
        "/a/", "/c/", "/d/", "/e/",
    ]  # fmt: skip


def test_other_sections_stand_next_to_it(crawled, client, sections):
    """Overrides, rules and inspection know its URLs as those of any section."""
    sections.add(Products)
    make_products("p")
    store("/a/", "/private/a/")
    ExclusionRule.objects.create(site="default", pattern="/private/")
    run()
    urls = [url.removeprefix(BASE) for url, _ in in_order(served(client))]
    assert urls == ["/a/", "/products/all/p/"]
    for path, is_listed in (("/a/", True), ("/private/a/", False)):
        inspected = inspect_path(SITE, path)
        assert (inspected.listed, inspected.section) == (is_listed, "crawled")


def test_each_site_lists_its_own_pages(sections, client):
    """Live pages and builds alike."""
    sections.add(CrawledSection)
    store("/one/", site="one")
    store("/two/", site="two")
    sites = {
        "one": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example"},
    }
    with override_settings(SITEMAPKIT_SITES=sites, ALLOWED_HOSTS=["*"]):
        for name in ("one", "two"):
            response = client.get(
                "/sitemap-crawled-1.xml", headers={"host": f"{name}.example"}, secure=True
            )
            assert f"<loc>https://{name}.example/{name}/</loc>" in response.getvalue().decode()
            assert response.getvalue().count(b"<loc>") == 1


def test_people_read_titles(sections, client):
    """The site map for people shows the titles that crawls found."""
    sections.add(CrawledSection)
    store("/a/", title="A page")
    text = client.get("/sitemap/crawled/1/").text
    assert ">A page</a>" in text
    assert "More pages" in text


def test_the_command_builds_it(crawled, capsys):
    """As any other section."""
    store("/a/")
    call_command("build_sitemaps", "crawled")
    assert "crawled 1" in capsys.readouterr().out
