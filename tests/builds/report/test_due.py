"""What is due: what the next build renders again, and why; known before it is made."""

import datetime as dt
import json

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import build, publish, status_of
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.report.due import due_by_section
from django_sitemapkit.models import Build, Place
from django_sitemapkit.planning import refresh_plan
from django_sitemapkit.registry import registry
from tests.builds import SITE, Articles, Products, Readings, edit_product, fill, run, use_storage
from tests.builds import states as states_of
from tests.management import run as command
from tests.prepared import once
from tests.testapp.models import Article, Product, Reading

pytestmark = pytest.mark.django_db


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with rows in two sections."""
    sections.add(Products)
    sections.add(Readings)
    fill(products=5, readings=3)
    return use_storage(settings, "Memory")


@pytest.fixture
def built(storage):
    """Build the site."""
    return once((__name__, "built"), run)


def shown(**options):
    """Return what is due of each section of which anything is."""
    return {item.section: item.pages for item in due_by_section(SITE, **options) if item.pages}


def declare_anew(sections, section, **options):
    """Declare a section with some options changed."""
    sections.remove(section.__name__.lower())
    sections.add(type(section.__name__, (section,), options))


def made():
    """Build; return how many pages were stored, of each section."""
    stored = [name for (name, _), state in states_of(run()).items() if state == "stored" and name]
    return {name: stored.count(name) for name in stored}


# Why


def test_nothing_is_due_after_a_build(built):
    """Nor after one without a change."""
    assert shown() == {}
    run()
    assert shown() == {}


def test_what_was_never_built_is_due(storage, sections):
    """All sections before the first build, and a new one after it."""
    assert shown() == {"products": {Reason.NEVER: 3}, "readings": {Reason.NEVER: 3}}
    run()
    sections.add(Articles)
    assert shown() == {"articles": {Reason.NEVER: 1}}


def test_pages_whose_rows_changed_are_due(built):
    """And they alone are made."""
    edit_product("p0")
    edit_product("p4")
    assert shown() == {"products": {Reason.ROWS: 2}}
    assert made() == {"products": 2}
    assert shown() == {}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["held for review", "rolled back"])
def test_what_is_due_is_measured_against_what_is_live(built, how):
    """Neither a held build nor one that was rolled back has published its changes."""
    edit_product("p0")
    if how == "held for review":
        build(SITE, preview=True)
    else:
        run()
        publish(SITE, built.build)
    assert shown() == {"products": {Reason.ROWS: 1}}
    assert shown(rows=False) == {"products": {Reason.LATER: 1}}
    publish(SITE, Build.objects.latest("pk").pk)
    assert shown() == shown(rows=False) == {}


@pytest.mark.thorough
def test_rows_that_change_nothing_visible_are_due_once(built):
    """The page is made, is the same, and its new fingerprint is known from then on."""
    Product.objects.filter(slug="p0").update(note="x")
    assert shown() == {}
    Reading.objects.filter(level=0).update(level=1)
    assert shown() == {"readings": {Reason.ROWS: 1}}
    run()
    assert shown() == {}


def test_new_pages_are_due(built):
    """Those that the plan has, and the published build has not."""
    shop = Product.objects.first().shop
    Product.objects.bulk_create(Product(shop=shop, slug=f"q{n}") for n in range(2))
    refresh_plan(registry.get(SITE, "products"))
    assert shown() == {"products": {Reason.ROWS: 1, Reason.NEW: 1}}


def test_pages_that_are_gone_are_due(built):
    """Those that the published build has, and the plan has not; and whole sections."""
    Product.objects.exclude(slug="p0").delete()
    refresh_plan(registry.get(SITE, "products"))
    before = Place.objects.filter(section="products").count()
    assert shown() == {"products": {Reason.ROWS: 1, Reason.GONE: before - 1}}


def test_a_section_that_is_gone_is_due(built, sections):
    """With as many files as it had; of one that had none, nothing is."""
    sections.remove("readings")
    assert shown() == {"readings": {Reason.GONE: 3}}
    run()
    assert shown() == {}


def test_a_section_that_had_no_url_and_is_gone_is_not_due(storage, sections):
    """No file goes with it."""
    Reading.objects.all().delete()
    run()
    sections.remove("readings")
    assert shown() == {}


@pytest.mark.parametrize("what", ["version", "column", "setting", "address"])
def test_code_and_settings_are_a_reason(built, sections, settings, what):
    """Of all pages that they touch."""
    if what == "version":
        declare_anew(sections, Readings, version=2)
    elif what == "column":
        declare_anew(sections, Readings, lastmod="level")
    elif what == "setting":
        settings.SITEMAPKIT_MAX_BYTES = 5000
    else:
        settings.ROOT_URLCONF = "tests.testapp.urls_deep"
    both = {"products": {Reason.CODE: 3}, "readings": {Reason.CODE: 3}}
    assert shown() == (both if what in ("setting", "address") else {"readings": {Reason.CODE: 3}})


@pytest.mark.slow
def test_a_lastmod_of_the_future_is_due_when_it_comes(storage):
    """Until then the page stays as it is, without it."""
    Product.objects.filter(slug="p0").update(updated_at=timezone.now() + dt.timedelta(hours=2))
    run()
    assert shown() == {}
    Place.objects.update(changes_at=F("changes_at") - dt.timedelta(hours=3))
    assert shown() == {"products": {Reason.DATE: 1}}


@pytest.mark.slow
@pytest.mark.usefixtures("methods_are_called")
def test_methods_are_known_only_by_rendering(storage, sections):
    """Such pages are rendered by each build, and stored where they differ."""
    declare_anew(sections, Readings, priority=lambda self, reading: 0.5)
    sections.add(type("Pages", (StaticSection,), {"items": ["/a/"]}))
    run()
    expected = {"readings": {Reason.METHODS: 3}, "pages": {Reason.METHODS: 1}}
    assert shown() == shown(rows=False) == expected
    assert made() == {}
    assert shown() == expected


# At which price


@pytest.fixture
def rows_read():
    """Give a function that returns the queries of a call that read rows of sections."""
    quote = connection.ops.quote_name
    tables = [f" {quote(model._meta.db_table)}" for model in (Product, Reading, Article)]

    def count(call):
        with CaptureQueriesContext(connection) as captured:
            call()
        return [q["sql"] for q in captured if any(table in q["sql"] for table in tables)]

    return count


@pytest.mark.slow
@pytest.mark.parametrize("state", ["never planned", "planned", "built", "key changed"])
def test_quick_looks_at_no_row(storage, sections, rows_read, state):
    """What is due because of rows is not reported, and what was never counted has no figure."""
    sections.add(type("Pages", (StaticSection,), {"items": ["/a/"]}))
    if state == "planned":
        refresh_plan(registry.get(SITE, "products"))
    elif state != "never planned":
        run()
        edit_product("p0")
    if state == "key changed":
        declare_anew(sections, Products, key="slug")
    assert rows_read(lambda: command("sitemap_status", "--quick")) == []
    assert rows_read(lambda: command("sitemap_status"))
    pages = {Reason.METHODS: 1} if state in ("built", "key changed") else {Reason.NEVER: 0}
    expected = {
        "never planned": {"products": {Reason.NEVER: 0}, "readings": {Reason.NEVER: 0}},
        "planned": {"products": {Reason.NEVER: 3}, "readings": {Reason.NEVER: 0}},
        "built": {},
        "key changed": {"products": {Reason.CODE: 0}},
    }
    assert shown(rows=False) == expected[state] | {"pages": pages}


def test_a_look_at_the_rows_writes_nothing(storage):
    """A section that was never planned is not planned by looking."""
    with CaptureQueriesContext(connection) as captured:
        shown()
    assert {query["sql"].split()[0] for query in captured} == {"SELECT"}


# The command


def test_the_status_has_what_is_due(built, sections):
    """A line for each section of which anything is, and the same for programs."""
    assert "due:" not in command("sitemap_status")[1]
    edit_product("p0")
    sections.remove("readings")
    lines = [line for line in command("sitemap_status")[1].splitlines() if "due:" in line]
    assert lines == [
        "  due: products: rows changed: 1 file",
        "  due: readings: pages removed: 3 files",
    ]
    (site,) = json.loads(command("sitemap_status", "--json")[1])
    assert site["due"] == [
        {"section": "products", "pages": {"rows changed": 1}, "error": ""},
        {"section": "readings", "pages": {"pages removed": 3}, "error": ""},
    ]
    assert [item.section for item in status_of(SITE).due] == ["products", "readings"]


def test_the_quick_status_has_what_is_due_without_rows(built, sections):
    """What it did not count has no figure."""
    edit_product("p0")
    sections.add(Articles)
    out = command("sitemap_status", "--quick")[1]
    lines = [line for line in out.splitlines() if "due:" in line]
    assert lines == ["  due: articles: not built"]
    (site,) = json.loads(command("sitemap_status", "--json", "--quick")[1])
    assert site["due"] == [{"section": "articles", "pages": {"not built": 0}, "error": ""}]


@pytest.mark.thorough
@pytest.mark.parametrize("quick", [[], ["--quick"]])
def test_a_section_that_cannot_be_read_hides_nothing(built, sections, quick):
    """The status says so beside it, and tells all about the others."""

    def broken(self):
        raise LookupError("no such shelf")

    declare_anew(sections, Products, get_queryset=broken)
    sections.add(Articles)
    code, out, _ = command("sitemap_status", *quick)
    assert code == 0
    assert "  due: products: cannot be read: LookupError: no such shelf\n" in out
    assert "  due: articles: not built" in out
    (site,) = json.loads(command("sitemap_status", "--json", *quick)[1])
    errors = {item["section"]: item["error"] for item in site["due"]}
    assert errors == {"products": "LookupError: no such shelf", "articles": ""}
