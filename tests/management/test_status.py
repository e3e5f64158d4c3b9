"""``sitemap_status``: what is published, for people, for programs and for probes."""

import datetime as dt
import json
import os

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_sitemapkit.models import Build, BuildFile, Lease
from tests.management import run
from tests.testapp.models import Product
from tests.testapp.serving import BASE, Readings, declare, make_products

pytestmark = pytest.mark.django_db


@pytest.fixture
def built(products):
    """Build a section of three products on two pages."""
    assert run("build_sitemaps")[0] == 0


def test_text_has_the_figures(built, sections):
    """A line for the site, each section and each build; sections that are not built say so."""
    declare(sections, Readings)
    build = Build.objects.get()
    code, out, err = run("sitemap_status")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    size = sum(BuildFile.objects.exclude(section="").values_list("xml_bytes", flat=True))

    assert (code, err) == (0, "")
    assert lines[0].startswith(f"Site 'default' at {BASE}: published: build {build.pk}, ")
    assert lines[1] == f"products pages: 2 URLs: 3 bytes: {size:,}"
    assert lines[2] == "readings not built: served live"
    assert lines[3] == "due: readings: never built: 1 page"
    assert lines[4].startswith(f"build {build.pk}: published, ")
    assert len(lines) == 5


def test_text_before_the_first_build(products):
    """Nothing is published, and that is no error."""
    code, out, _ = run("sitemap_status")
    assert code == 0
    assert "published: nothing" in out


def test_text_counts_what_was_left_out(bad):
    """A reader of the status sees that rows are missing."""
    run("build_sitemaps")
    assert "1 row skipped" in run("sitemap_status")[1]


def test_text_says_who_builds(built):
    """While the lease is held, by whom and since when."""
    lease = Lease.objects.acquire("build:default", seconds=60, owner="other-host")
    who = f"being built by process {os.getpid()} on other-host since {lease.acquired_at:%Y-%m-%d}"
    assert who in run("sitemap_status")[1]
    lease.release()
    assert "being built" not in run("sitemap_status")[1]


def test_text_says_why_a_build_failed(sections, products):
    """The reason stands beside the build."""
    Product.objects.all().delete()
    run("build_sitemaps")
    assert "failed" in run("sitemap_status")[1]
    assert "no section has a URL" in run("sitemap_status")[1]


def test_json_has_the_figures(built):
    """A program reads what people read."""
    code, out, _ = run("sitemap_status", "--json")
    (site,) = json.loads(out)
    build = Build.objects.get()
    pages = BuildFile.objects.exclude(section="")

    assert code == 0
    assert site["site"] == "default"
    assert site["base_url"] == BASE
    assert site["build"] == build.pk
    assert dt.datetime.fromisoformat(site["published_at"]) == build.published_at
    assert site["running"] == ""
    assert site["sections"] == [
        {
            "name": "products",
            "built": True,
            "pages": 2,
            "urls": 3,
            "xml_bytes": sum(page.xml_bytes for page in pages),
            "skipped": 0,
            "changed_at": max(page.lastmod for page in pages).isoformat(),
            "checked_at": build.ended_at.isoformat(),
            "duplicates": "",
        }
    ]
    (listed,) = site["builds"]
    assert (listed["build"], listed["status"], listed["reason"]) == (build.pk, "published", "")


def test_json_of_sites(two_sites):
    """All of them in one list, or the one asked for."""
    run("build_sitemaps", "--site", "two")
    sites = json.loads(run("sitemap_status", "--json")[1])
    assert [(site["site"], site["build"] is None) for site in sites] == [
        ("one", True),
        ("two", False),
    ]
    sites = json.loads(run("sitemap_status", "--json", "--site", "two")[1])
    assert [site["site"] for site in sites] == ["two"]


def test_status_costs_the_same_for_any_number_of_pages(built, connection_queries):
    """The figures are summed by the database; only what is due is a look at each page's rows."""
    few = connection_queries(lambda: run("sitemap_status", "--quick"))
    make_products(*"defghijkl")
    run("build_sitemaps")
    Build.objects.exclude(replaced_at=None).delete()
    assert connection_queries(lambda: run("sitemap_status", "--quick")) == few


@pytest.fixture
def connection_queries():
    """Give a function that counts the queries of a call."""

    def count(call):
        with CaptureQueriesContext(connection) as captured:
            call()
        return len(captured)

    return count


def test_probe_of_age(built):
    """Exit 1 where the last good build ended too long ago; builds without a change count."""
    age(3)
    assert run("sitemap_status", "--max-age", 4)[0] == 0
    code, out, err = run("sitemap_status", "--max-age", 2.5)
    assert code == 1
    assert "published: build" in out
    assert "Not built within 2.5 hours: default." in err
    assert run("sitemap_status", "--max-age", 0)[0] == 1
    assert run("sitemap_status", "--max-age", 2, "--json")[0] == 1
    run("build_sitemaps")
    assert run("sitemap_status", "--max-age", 2)[0] == 0


def age(hours):
    """Let every build have ended some hours ago."""
    Build.objects.update(ended_at=timezone.now() - dt.timedelta(hours=hours))


def test_probe_of_a_failing_build(built):
    """Only builds that ended well count."""
    age(3)
    Product.objects.all().delete()
    assert run("build_sitemaps")[0] == 1
    assert run("sitemap_status", "--max-age", 2)[0] == 1


def test_probe_of_a_site_never_built(two_sites):
    """It is as late as can be, and named."""
    run("build_sitemaps", "--site", "two")
    code, _, err = run("sitemap_status", "--max-age", 1000)
    assert code == 1
    assert err.endswith(": one.")
