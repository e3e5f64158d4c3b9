"""``sitemap_status``: what is published, for people, for programs and for probes."""

import datetime as dt
import json
import os
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from django_sitemapkit.management.base import age_text
from django_sitemapkit.models import Build, Lease, Place, Publication
from django_sitemapkit.testing.factories import PlaceFactory
from tests.builds import use_storage
from tests.management import run
from tests.testapp.models import Product
from tests.testapp.serving import BASE, Products, Readings, declare, make_products

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

    assert (code, err) == (0, "")
    assert lines[0] == f"Site 'default' at {BASE}"
    at, ended = (
        moment.isoformat(timespec="seconds") for moment in (build.published_at, build.ended_at)
    )
    assert lines[1:] == [
        f"Live: build {build.pk}, 3 URLs in 2 files",
        f"Published: {at} (just now)",
        f"Last successful build: {ended} (just now)",
        f"Compared with the database: {ended} (just now)",
        "Now: No build is running.",
        "Section URLs Change Problems Files Changed",
        "products 3 2 just now",
        "readings Not built, served live",
        "due: readings: not built: 1 file",
        "Build State URLs Change Started",
        f"{build.pk} live 3 just now",
        "Run build_sitemaps to build what is due.",
    ]
    assert max(map(len, out.splitlines())) <= 80


def test_text_has_ages_in_words(built):
    """Besides the exact times, and in English as the rest."""
    Build.objects.update(started_at=timezone.now() - dt.timedelta(days=3, hours=5))
    build = Publication.objects.get().build
    build.published_at -= dt.timedelta(hours=2, minutes=30)
    build.save()
    with translation.override("es"):
        out = run("sitemap_status")[1]
    at = build.published_at.isoformat(timespec="seconds")
    assert f"  Published: {at} (2 hours ago)\n" in out
    assert out.count("  3 days ago\n") == 1


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("2026-03-02T09:29:30+00:00", "just now"),
        ("2026-03-02T09:30:01+00:00", "just now"),
        ("2026-03-02T09:29:00+00:00", "1 minute ago"),
        ("2026-03-02T09:30:00+02:00", "2 hours ago"),
        ("2025-03-01T09:30:00+00:00", "1 year ago"),
    ],
)
def test_ages(moment, words):
    """In one unit, whatever the zone."""
    now = dt.datetime.fromisoformat("2026-03-02T09:30:00+00:00")
    assert age_text(dt.datetime.fromisoformat(moment), now) == words


def test_the_age_of_a_moment_without_a_zone():
    """As under USE_TZ = False; by default up to now."""
    moment = dt.datetime.fromisoformat("2020-01-01T00:00:00")
    assert age_text(moment, None).endswith(" years ago")


@pytest.mark.slow
def test_the_lines_of_a_large_change_fit_into_80_columns(products, settings):
    """With the live build marked, and what it changed against the one before."""
    settings.SITEMAPKIT_MAX_SHRINK = 1
    run("build_sitemaps")
    Product.objects.exclude(slug="a").delete()
    run("build_sitemaps")
    Place.objects.filter(section="products").update(skipped=1_234)
    Build.objects.update(reason="")
    out = run("sitemap_status")[1]
    first, last = Build.objects.order_by("pk")
    assert f"  Live: build {last.pk}, 1 URL in 1 file, -2 (-67 %) since build {first.pk}\n" in out
    assert re.search(r"\n  products +1 +-2 \(-67 %\) +1,234 +1  just now\n", out)
    assert re.search(rf"\n  {last.pk} +live +1 +-2 \(-67 %\)  just now\n", out)
    assert re.search(rf"\n  {first.pk} +replaced +3 +just now\n", out)
    lines = [line for line in out.splitlines() if "Warning" not in line]
    assert max(map(len, lines)) <= 80


def test_the_last_line_says_what_to_do(built):
    """Nothing, build, or first correct what cannot be read."""

    def last(*options):
        return run("sitemap_status", *options)[1].splitlines()[-1]

    assert last() == "  Nothing is due."
    assert last("--quick") == (
        "  Nothing is due. Rows were not compared; files were looked for on a local disk only."
    )
    make_products("d")
    assert last() == "  Run build_sitemaps to build what is due."


@pytest.mark.usefixtures("methods_are_called")
@pytest.mark.slow
def test_what_every_build_renders_is_not_worth_a_build(sections):
    """It is always due."""
    declare(sections, Products, lastmod=lambda self, product: product.updated_at)
    make_products("a")
    run("build_sitemaps")
    out = run("sitemap_status")[1]
    assert "  due: products: rebuilt each time: 1 file\n" in out
    left = "  Nothing else is due. Only a build tells whether these files change."
    assert out.splitlines()[-1] == left


@pytest.mark.parametrize(
    ("serve_from", "what"),
    [("auto", "; all sections are served live"), ("published", ", and only published files are")],
)
def test_text_before_the_first_build(products, settings, serve_from, what):
    """Nothing is published, and that is no error."""
    settings.SITEMAPKIT_SERVE_FROM = serve_from
    code, out, _ = run("sitemap_status")
    assert code == 0
    assert f"Nothing is published{what}" in out


def test_text_counts_what_was_left_out(bad):
    """A reader of the status sees that rows are missing."""
    run("build_sitemaps")
    assert "Problems: 1\n" in run("sitemap_status")[1]


def test_text_says_who_builds(built):
    """While the lease is held, by whom and since when."""
    lease = Lease.objects.acquire("build:default", seconds=60, owner="other-host")
    who = f"Now: built by process {os.getpid()} on other-host since {lease.acquired_at:%Y-%m-%d}"
    assert who in run("sitemap_status")[1]
    lease.release()
    assert "Now: built" not in run("sitemap_status")[1]


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
    pages = Place.objects.exclude(section="")

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
            "removed": False,
            "served_live": False,
            "pages": 2,
            "urls": 3,
            "xml_bytes": sum(page.xml_bytes for page in pages),
            "skipped": 0,
            "problems": 0,
            "changed_at": max(page.page.lastmod for page in pages).isoformat(),
            "checked_at": build.ended_at.isoformat(),
            "urls_before": None,
            "duplicates": "",
        }
    ]
    (listed,) = site["builds"]
    assert (listed["build"], listed["status"], listed["reason"]) == (build.pk, "live", "")


@pytest.mark.slow
@pytest.mark.parametrize("serve_from", ["auto", "published"])
def test_json_tells_what_is_served_live(products, settings, serve_from):
    """Before the first build, unless only published files are served; not after it."""
    settings.SITEMAPKIT_SERVE_FROM = serve_from
    for is_live in (serve_from == "auto", False):
        (site,) = json.loads(run("sitemap_status", "--json")[1])
        assert [section["served_live"] for section in site["sections"]] == [is_live]
        run("build_sitemaps")


def test_the_headline_names_no_build_that_is_not_served(built, settings):
    """All is served live if the setting says so, whatever is published."""
    settings.SITEMAPKIT_SERVE_FROM = "live"
    out = run("sitemap_status", "--quick")[1]
    assert out.splitlines()[1] == "  All sections are served live, whatever is published"


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


@pytest.mark.slow
def test_status_costs_the_same_for_any_number_of_pages(built, connection_queries):
    """The figures are summed by the database; only what is due is a look at each page's rows."""
    few = connection_queries(lambda: run("sitemap_status", "--quick"))
    make_products(*"defghijkl")
    run("build_sitemaps")
    Build.objects.exclude(replaced_at=None).delete()
    assert connection_queries(lambda: run("sitemap_status", "--quick")) == few


IDLE = "No build has begun for a day: does a schedule run build_sitemaps?"


def test_where_nothing_has_been_built_for_a_day_it_asks_for_the_schedule(built):
    """If something is due: what did not change needs no build."""
    Build.objects.update(started_at=timezone.now() - dt.timedelta(hours=25))
    assert IDLE not in run("sitemap_status")[1]
    Product.objects.first().delete()
    assert run("sitemap_status")[1].splitlines()[-1].strip() == IDLE


def test_what_is_due_for_less_than_a_day_needs_no_schedule(built):
    """A build that failed or is held also counts as one that a schedule has begun."""
    Product.objects.first().delete()
    assert IDLE not in run("sitemap_status")[1]


@pytest.fixture
def connection_queries():
    """Give a function that counts the queries of a call."""

    def count(call):
        with CaptureQueriesContext(connection) as captured:
            call()
        return len(captured)

    return count


@pytest.mark.slow
def test_probe_of_age(built):
    """Exit 1 where the last good build ended too long ago; builds without a change count."""
    age(3)
    assert run("sitemap_status", "--max-age", 4)[0] == 0
    code, out, err = run("sitemap_status", "--max-age", 2.5)
    assert code == 1
    assert "Live: build" in out
    assert "Not built within 2.5 hours: default." in err
    assert run("sitemap_status", "--max-age", 0)[0] == 1
    assert run("sitemap_status", "--max-age", 2, "--json")[0] == 1
    run("build_sitemaps")
    assert run("sitemap_status", "--max-age", 2)[0] == 0


def age(hours):
    """Let every build have ended some hours ago."""
    Build.objects.update(ended_at=timezone.now() - dt.timedelta(hours=hours))


@pytest.mark.slow
def test_probe_of_a_failing_build(built):
    """Only builds that ended well count."""
    age(3)
    Product.objects.all().delete()
    assert run("build_sitemaps")[0] == 1
    assert run("sitemap_status", "--max-age", 2)[0] == 1


@pytest.mark.slow
def test_probe_of_a_site_never_built(two_sites):
    """It is as late as can be, and named."""
    run("build_sitemaps", "--site", "two")
    code, _, err = run("sitemap_status", "--max-age", 1000)
    assert code == 1
    assert err.endswith(": one.")


def running_build(seconds=0):
    """Let a process build the site since so many seconds, with one of two pages done."""
    now = timezone.now()
    build = Build.objects.create(
        site="default", fence=9, started_at=now - dt.timedelta(seconds=seconds)
    )
    name = f"products-1-0-{build.pk}.9-x.xml.gz"
    PlaceFactory(build=build, section="products", number=1, urls=2_000, page__name=name)
    Place.objects.create(build=build, section="products", number=2)
    lease, _ = Lease.objects.update_or_create(
        name="build:default",
        defaults={"owner": "builder-7:1:x", "heartbeat": now, "fence": 9, "acquired_at": now},
    )
    if seconds:
        lease.acquired_at = build.started_at - dt.timedelta(milliseconds=10)
        lease.save()
    return build


@pytest.mark.slow
def test_text_and_json_have_the_progress_of_a_build(built):
    """Of one that runs anywhere: what is recorded, and the rate since it began."""
    build = running_build(seconds=10)
    line = f"  Now: build {build.pk}, 1 of 3 files done, 2,000 URLs; "
    out = run("sitemap_status", "--quick")[1]
    rate = int(out.partition(line)[2].partition(" per second in new files\n")[0])
    assert 180 <= rate <= 200
    (site,) = json.loads(run("sitemap_status", "--quick", "--json")[1])
    assert 180 <= site["progress"].pop("urls_per_second") <= 200
    expected = {"build": build.pk, "started_by": "", "done": 1, "total": 3, "urls": 2_000}
    expected["state"] = "running"
    assert site["progress"] == expected


def test_a_build_has_no_rate_in_its_first_second(built):
    """It would say nothing."""
    build = running_build()
    out = run("sitemap_status", "--quick")[1]
    assert f"  Now: build {build.pk}, 1 of 3 files done, 2,000 URLs\n" in out


def test_without_a_build_there_is_no_progress(built):
    """Nor while the pages are planned."""
    (site,) = json.loads(run("sitemap_status", "--quick", "--json")[1])
    assert site["progress"] is None


def test_files_that_this_server_lacks_are_shown_with_the_cause(sections, settings, tmp_path):
    """For people and for programs; on the server that built, there are none."""
    declare(sections, Products)
    make_products("a", "b", "c")
    use_storage(settings, "Disk", location=tmp_path / "one")
    assert run("build_sitemaps")[0] == 0
    assert "STORAGES" not in run("sitemap_status", "--quick")[1]
    assert json.loads(run("sitemap_status", "--json")[1])[0]["missing"] == ""
    use_storage(settings, "Disk", location=tmp_path / "two")
    out = run("sitemap_status", "--quick")[1]
    assert f"Missing from {tmp_path / 'two'}" in out
    assert 'remove "sitemaps" from STORAGES' in out
    assert str(tmp_path) in json.loads(run("sitemap_status", "--json")[1])[0]["missing"]
