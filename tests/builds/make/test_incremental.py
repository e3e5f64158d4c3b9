"""Builds render again just what changed, by whatever way it did."""

import datetime as dt
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from django.conf import settings as django_settings
from django.core.files.storage import storages
from django.core.management import call_command
from django.db import connection
from django.db.models import Case, F, Max, Value, When
from django.db.models.functions import Concat, Greatest
from django.test import override_settings
from django.urls import path
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from django_sitemapkit import Route, Section, StaticSection
from django_sitemapkit.builds import build as build_site
from django_sitemapkit.builds import preview, publish
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.make import page_builder as module
from django_sitemapkit.builds.make.reuse import Fingerprints
from django_sitemapkit.builds.manifest import key_range_of
from django_sitemapkit.identities import identity_of
from django_sitemapkit.models import (
    Build,
    ExclusionRule,
    ExtraUrl,
    Place,
    SectionSettings,
    UrlOverride,
)
from django_sitemapkit.overrides import section_of, sections_of
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading import rows as rows_module
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering import PageRendering, tags
from django_sitemapkit.runners.helper import help_build
from django_sitemapkit.sites import all_sites
from tests import urls
from tests.builds import (
    ALL,
    SITE,
    Articles,
    Products,
    Readings,
    edit_product,
    fill,
    in_order,
    manifest,
    served,
    states,
    use_storage,
    xml,
)
from tests.cases import few
from tests.factories import EPOCH
from tests.prepared import once
from tests.testapp.models import Article, Product, Reading, Shop

urlpatterns = [
    path("goods/<slug:shop>/<str:slug>/", urls.view, name="product"),
    *(pattern for pattern in urls.urlpatterns if getattr(pattern, "name", "") != "product"),
]
"""The tests' project with products at another address."""

FIRST, SECOND, THIRD = (("products", number) for number in (1, 2, 3))
PRODUCTS = {FIRST, SECOND, THIRD}
READINGS = {("readings", number) for number in (1, 2, 3)}
ARTICLES = {("articles", 1)}
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
DAYS = dt.date(2024, 1, 1), dt.date(2025, 5, 5)
LATER = EPOCH + DAY


class Observed:
    """A site's builds, of which it is known what they rendered and stored."""

    def __init__(self, storage):
        self.storage = storage
        self.rendered = []

    def build(self, site=SITE, **options):
        """Build a site; only this build counts."""
        self.rendered.clear()
        self.storage.calls.clear()
        return build_site(site, **options)

    def require(self, rendered=(), stored=(), *, status=None, **options):
        """Build, and require that just these pages were rendered and stored."""
        result = self.build(**options)
        assert sorted(self.rendered) == sorted(rendered)
        assert result.status == (status or ("published" if stored else "unchanged"))
        found = {key for key, state in states(result).items() if state == "stored" and key[0]}
        assert found == set(stored)
        saved = [name for name in self.storage.saved() if "/index-" not in name]
        assert len(saved) == len(found)
        if result.status == "unchanged":
            assert self.storage.saved() == []
        return result


@pytest.fixture
def observed(settings, sections, monkeypatch):
    """Observe the rendering of pages."""
    found = Observed(use_storage(settings, "Memory"))
    make_page = module.make_page

    def spy(rendering, local, *others):
        line = Place.objects.get(pk=int(local.name.split("-")[1].split(".")[0]))
        found.rendered.append((line.section, line.number))
        return make_page(rendering, local, *others)

    monkeypatch.setattr(module, "make_page", spy)
    return found


@pytest.fixture
def site(observed, sections):
    """Give a site of three sections that is published; one product is of another shop."""
    for section in ALL:
        sections.add(section)

    def make():
        fill()
        Product.objects.filter(slug="p4").update(shop=Shop.objects.create(slug="other"))
        Product.objects.update(updated_at=EPOCH)
        observed.build()
        assert set(observed.rendered) == PRODUCTS | READINGS | ARTICLES

    once((__name__, "site"), make)
    return observed


def redeclare(section, **options):
    """Let a section be declared with other options, as another release of the project has it."""
    changed = type(section.__name__, (section,), options)
    registry._sections[section.get_name()] = changed  # In its place: it is the index's order.
    return changed


def save_product():
    """Save one product as a form does."""
    product = Product.objects.get(slug="p2")
    product.updated_at = EPOCH + DAY
    product.save()


def swap_readings():
    """Let one row go and another one come, on the same page."""
    Reading.objects.get(level=10).delete()
    Reading.objects.create(level=15)


def rekey_product():
    """Let a row get another key, the greatest: it goes from the first page to the last."""
    greatest = Product.objects.aggregate(key=Max("pk"))["key"]
    Product.objects.filter(slug="p0").update(id=greatest + 1)


TOUCHES = {
    "save": (save_product, {SECOND}),
    "update": (edit_product, {FIRST}),
    "bulk_create": (
        lambda: Reading.objects.bulk_create([Reading(level=25)]),
        {("readings", 3)},
    ),
    "delete": (lambda: Product.objects.get(slug="p1").delete(), {FIRST}),
    "delete by query": (lambda: Product.objects.filter(slug="p1").delete(), {FIRST}),
    "a lowered lastmod": (
        lambda: Product.objects.filter(slug="p2").update(updated_at=EPOCH - DAY),
        {SECOND},
    ),
    "no lastmod": (
        lambda: Product.objects.filter(slug="p2").update(updated_at=None),
        {SECOND},
    ),
    "another row in its place": (swap_readings, {("readings", 2)}),
    "a joined column": (
        lambda: Shop.objects.filter(slug="other").update(slug="moved"),
        {THIRD},
    ),
    "another key": (
        lambda: Reading.objects.filter(level=10).update(level=12),
        {("readings", 2)},
    ),
    "another key, on another page": (rekey_product, {FIRST, THIRD}),
}


@pytest.mark.django_db
@pytest.mark.parametrize("touch", few(4, TOUCHES))
def test_a_touched_row_has_its_page_made_and_no_other(site, touch):
    """However it is touched."""
    change, pages = TOUCHES[touch]
    change()
    site.require(pages, pages)


@pytest.mark.django_db
def test_nothing_is_made_where_nothing_was_touched(site):
    """Columns that are not read do not count, nor do other tables."""
    site.require()
    Product.objects.update(note="x", rank="0.5", public=False)
    Article.objects.update(title="x")
    Reading.objects.none().delete()
    result = site.require()
    assert set(states(result)) == PRODUCTS | READINGS | ARTICLES
    assert result.urls == 9


@pytest.mark.django_db
def test_rows_may_change_and_their_entries_not(site):
    """The page is rendered and found the same; the build after knows."""
    before = manifest()
    Product.objects.filter(slug="p0").update(updated_at=EPOCH + dt.timedelta(microseconds=1))
    site.require({FIRST})
    site.require()
    after = manifest()
    assert after.keys() == before.keys()
    assert after[FIRST].fingerprint != before[FIRST].fingerprint
    assert {key for key in after if after[key].name != before[key].name} == set()


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_by_day_another_time_on_the_same_day_changes_no_file(site, settings, zone):
    """Nothing is rendered where the database tells the day; another day, or slug, is a change."""
    settings.TIME_ZONE = zone
    redeclare(Products, lastmod_precision="day")
    site.build()
    assert set(site.rendered) >= PRODUCTS
    morning = dt.datetime(2025, 1, 5, 6, tzinfo=dt.UTC)
    product = Product.objects.filter(slug="p0")
    product.update(updated_at=morning)
    site.require({FIRST}, {FIRST})
    product.update(updated_at=morning + HOUR)
    in_database = zone == "UTC" or connection.vendor == "postgresql"
    site.require([] if in_database else {FIRST})
    product.update(updated_at=morning + DAY)
    site.require({FIRST}, {FIRST})
    product.update(slug="p9")
    site.require({FIRST}, {FIRST})


@pytest.mark.thorough
@pytest.mark.django_db
def test_what_is_left_out_may_change(site):
    """A row that is refused counts, and what is reported of it is what is so now."""
    Product.objects.filter(slug="p3").update(slug="\x0b")
    site.require({SECOND}, {SECOND})
    Product.objects.filter(slug="\x0b").update(slug="\x0c")
    site.require({SECOND})
    assert "U+000C" in manifest()[SECOND].problem_examples[0]
    site.require()


@pytest.mark.slow
@pytest.mark.django_db
def test_a_page_without_a_url_is_made_once(site):
    """Though it has rows, which are all refused; and again as soon as one is not."""
    for place, product in enumerate(Product.objects.filter(slug__in=["p2", "p3"])):
        Product.objects.filter(pk=product.pk).update(slug=f"\x0b{place}")
    site.require({SECOND}, status="published")
    assert manifest()[SECOND].status == "empty"
    site.require()
    Product.objects.filter(slug="\x0b0").update(slug="p2")
    site.require({SECOND}, {SECOND})


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_new_section_without_a_url_is_made_once(site, sections):
    """Also where nothing else has changed, and so nothing is published."""
    Article.objects.update(title="x")
    sections.add(type("Refused", (Articles,), {"location": F("title"), "name": "refused"}))
    site.require({("refused", 1)})
    site.require()
    assert manifest()["refused", 1].skipped == 1


# Declarations and settings


@pytest.mark.slow
@pytest.mark.django_db
def test_another_declaration_makes_its_section_anew(site):
    """What its pages say, and the others not."""
    redeclare(Products, changefreq="daily")
    site.require(PRODUCTS, PRODUCTS)
    site.require()


@pytest.mark.thorough
@pytest.mark.django_db
def test_another_version_renders_its_section(site):
    """Where the entries are the same, their files stay."""
    redeclare(Products, version=2)
    site.require(PRODUCTS)
    site.require()


@pytest.mark.thorough
@pytest.mark.django_db
def test_another_limit_plans_its_section_anew(site):
    """The other sections are not rendered."""
    redeclare(Products, limit=3)
    pages = {("products", 4), ("products", 5)}
    site.require(pages, pages)
    site.require()


@pytest.mark.thorough
@pytest.mark.django_db
def test_the_same_column_for_another_tag_is_another_declaration(site):
    """The statement that reads it is the same."""
    Product.objects.update(note="weekly")
    declared = redeclare(Products, lastmod=None, priority=F("note"))
    site.build()
    redeclare(declared, priority=None, changefreq=F("note"))
    site.require(PRODUCTS, PRODUCTS)


@pytest.mark.thorough
@pytest.mark.django_db
def test_the_same_columns_for_other_arguments_are_another_declaration(site):
    """The statement that reads them is the same."""
    redeclare(Products, location=Route("product", slug="shop__slug", shop="slug"))
    site.require(PRODUCTS, PRODUCTS)


@pytest.mark.thorough
@pytest.mark.django_db
def test_another_address_of_the_site_makes_all_anew(site, settings):
    """Each URL is another one."""
    settings.SITEMAPKIT_BASE_URL = "https://www.example.org"
    (other,) = all_sites()
    everything = PRODUCTS | READINGS | ARTICLES
    site.require(everything, everything, site=other)
    site.require(site=other)


@pytest.mark.thorough
@pytest.mark.django_db
def test_another_limit_of_bytes_renders_all(site, settings):
    """Any page may have to be split by it."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    site.require(PRODUCTS | READINGS | ARTICLES)
    site.require()


@pytest.mark.thorough
@pytest.mark.django_db
def test_another_url_pattern_makes_the_sections_anew_that_use_it(site, settings):
    """The others are not rendered."""
    settings.ROOT_URLCONF = __name__
    site.require(PRODUCTS, PRODUCTS)
    site.require()


@pytest.mark.thorough
@pytest.mark.django_db
def test_another_release_of_the_package_renders_all(site, monkeypatch):
    """It may write an entry in another way."""
    monkeypatch.setattr("django_sitemapkit.builds.make.reuse.__version__", "0.0")
    site.require(PRODUCTS | READINGS | ARTICLES)
    site.require()


@pytest.mark.thorough
@pytest.mark.django_db
def test_another_time_zone_renders_all(site, settings):
    """A date begins at another moment, and a naive moment is another one."""
    settings.TIME_ZONE = "Europe/Madrid"
    site.require(PRODUCTS | READINGS | ARTICLES)
    site.require()


@pytest.mark.slow
@pytest.mark.django_db
def test_a_section_more_is_all_that_is_made(site, sections):
    """And a section less lets the others be."""
    sections.add(type("Levels", (Readings,), {}))
    pages = {("levels", number) for number in (1, 2, 3)}
    site.require(pages, pages)
    sections.remove("levels")
    site.require(status="published")


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_section_by_name_is_made_where_it_changed(site):
    """The others wait, and are made when it is their turn."""
    edit_product()
    swap_readings()
    site.require({("readings", 2)}, {("readings", 2)}, sections=["readings"])
    site.require((), (), sections=["readings"])
    site.require({FIRST}, {FIRST})


# What a section promises, and what none can tell


@pytest.fixture
def trusted(site, monkeypatch):
    """Let the products' lastmod be trusted; no other column may be asked."""
    redeclare(Products, trust_lastmod=True)
    site.require(PRODUCTS)

    def digests_of(keyset, *arguments):
        assert keyset.queryset.model is not Product
        return digest(keyset, *arguments)

    digest = rows_module.digests_of
    monkeypatch.setattr(rows_module, "digests_of", digests_of)
    return site


@pytest.mark.slow
@pytest.mark.django_db
def test_a_trusted_lastmod_tells_all(trusted):
    """Count and newest lastmod alone: what else changes is as the section has promised."""
    trusted.require()
    Product.objects.filter(slug="p0").update(slug="x0")
    trusted.require()
    Product.objects.filter(slug="x0").update(updated_at=EPOCH + DAY)
    trusted.require({FIRST}, {FIRST})
    Product.objects.filter(slug="p1").delete()
    trusted.require({FIRST}, {FIRST})
    Product.objects.create(slug="p5", shop=Shop.objects.first(), updated_at=EPOCH - DAY)
    trusted.require({THIRD}, {THIRD})
    trusted.require()


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_trusted_page_that_was_joined_with_another_is_another_page(trusted):
    """It may have as many rows as before, and as new ones, but not the same."""
    redeclare(Products, trust_lastmod=True, limit=4)
    trusted.build()
    Product.objects.filter(slug="p3").delete()
    trusted.build()
    assert [manifest()["products", number].urls for number in (4, 5)] == [3, 1]
    Product.objects.filter(slug="p2").delete()
    trusted.require({("products", 4)}, {("products", 4)})
    assert b"/p4/" in xml(trusted.storage, manifest()["products", 4])
    trusted.require()


def by_method(section, product):
    """Return what no database can tell of."""
    return product.updated_at


@pytest.mark.slow
@pytest.mark.usefixtures("methods_are_called")
@pytest.mark.django_db
def test_what_methods_return_is_known_by_rendering(site):
    """Each build renders their pages, and keeps the files that are the same."""
    redeclare(Products, lastmod=by_method)
    names = {key: line.name for key, line in manifest().items()}
    site.require(PRODUCTS)
    site.require(PRODUCTS)
    assert {key: line.name for key, line in manifest().items()} == names
    edit_product()
    site.require(PRODUCTS, {FIRST})


@pytest.mark.slow
@pytest.mark.django_db
def test_a_page_that_leaves_out_a_repeated_url_keeps_its_file(site):
    """An object lists it twice, and no page is compared: the next build renders nothing."""

    def entries(self, product):
        return [f"/{product.slug}/"] * 2

    redeclare(Products, location=None, entries=entries, depends_on=["slug"])
    result = site.require(PRODUCTS, PRODUCTS)
    assert {file.duplicates for file in result.files if file.section == "products"} == {2, 1}
    site.require()


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("option", ["location", "entries"])
def test_what_methods_depend_on_is_known_by_columns(site, option):
    """Also by those of another table; any other column may change unseen."""

    def by_method(self, product):
        return f"/{product.shop.slug}/{product.slug}/"

    methods = {"location": None, option: by_method}
    redeclare(Products, **methods, depends_on=["slug", F("shop__slug")])
    site.require(PRODUCTS, PRODUCTS)
    site.require()
    Product.objects.filter(slug="p2").update(slug="p9")
    site.require({SECOND}, {SECOND})
    Shop.objects.filter(slug="other").update(slug="moved")
    site.require({THIRD}, {THIRD})
    edit_product()  # lastmod is read anyway.
    site.require({FIRST}, {FIRST})
    Product.objects.filter(slug="p3").update(note="new")
    site.require()


@pytest.mark.thorough
@pytest.mark.django_db
def test_lists_are_known_by_rendering(site, sections):
    """As methods are."""
    page = ("pages", 1)
    declared = type("Pages", (StaticSection,), {"items": ["home", "about"]})
    sections.add(declared)
    site.require({page}, {page})
    site.require({page})
    redeclare(declared, items=["home"])
    site.require({page}, {page})


# All of them, and lost ones


@pytest.mark.slow
@pytest.mark.django_db
def test_a_full_build_renders_all_and_keeps_the_files(site):
    """By call and by command; what changed meanwhile is stored."""
    everything = PRODUCTS | READINGS | ARTICLES
    site.require(everything, full=True)
    site.rendered.clear()
    call_command("build_sitemaps", full=True, verbosity=0)
    assert set(site.rendered) == everything
    edit_product()
    site.require(everything, {FIRST}, full=True)
    site.require()


@pytest.mark.django_db
@pytest.mark.parametrize("backend", ["Memory", "Disk", "Wordless"])
@pytest.mark.thorough
def test_a_lost_file_is_made_again(site, settings, tmp_path, backend):
    """It alone, in a storage that lists its files and in one that cannot."""
    options = {"location": tmp_path} if backend == "Disk" else {}
    site.storage = use_storage(settings, backend, **options)
    site.build()
    site.require()
    lost = manifest()[SECOND].name
    site.storage.delete(lost)
    site.require({SECOND}, {SECOND})
    assert manifest()[SECOND].name != lost
    site.require()


@pytest.mark.slow
@pytest.mark.django_db
def test_what_is_held_back_is_not_made_again(site, settings):
    """The build after finds the pages that the one held back has stored."""
    settings.SITEMAPKIT_MAX_SHRINK = 0.1
    Product.objects.filter(slug__in=["p0", "p2", "p3"]).delete()
    held = site.build()
    assert held.status == "held"
    again = site.build()
    assert (again.status, again.build) == ("held", held.build)
    assert site.rendered == []
    assert site.storage.saved() == []


# The future


class AnyMoment(type):
    """Lets all moments be instances of a clock."""

    def __instancecheck__(cls, value):
        return isinstance(value, dt.datetime)


@pytest.fixture
def let_it_be(monkeypatch):
    """Return what sets the time, for those who ask whether a lastmod has come."""

    def let_it_be(moment):
        class Clock(dt.datetime, metaclass=AnyMoment):
            @classmethod
            def now(cls, zone=None):
                return moment.astimezone(zone)

        known = {name: getattr(dt, name) for name in ("UTC", "date", "time", "timedelta", "tzinfo")}
        monkeypatch.setattr(tags, "dt", SimpleNamespace(datetime=Clock, **known))
        monkeypatch.setattr("django.utils.timezone.now", lambda: moment.astimezone(dt.UTC))

    return let_it_be


COMING = {
    "a moment": ("updated_at", EPOCH + 2 * HOUR, EPOCH + 2 * HOUR),
    "a date": (
        "released_on",
        EPOCH.date() + DAY,
        dt.datetime.combine(EPOCH.date() + DAY, dt.time(), dt.timezone(-6 * HOUR)),
    ),
}


@pytest.mark.thorough
@pytest.mark.django_db
@pytest.mark.parametrize("coming", COMING)
def test_a_lastmod_of_the_future_makes_its_page_due_when_it_comes(
    site, settings, let_it_be, coming
):
    """Not before, once, and no other page."""
    settings.TIME_ZONE = "America/Chicago"
    column, value, comes_at = COMING[coming]
    declared = redeclare(Products, lastmod=column)
    Product.objects.filter(slug="p0").update(**{column: value})
    let_it_be(EPOCH)
    site.build()
    line = manifest()[FIRST]
    assert line.changes_at == comes_at
    assert b"<lastmod>" not in xml(site.storage, line).partition(b"/p0/")[2].partition(b"</url>")[0]
    let_it_be(comes_at - dt.timedelta(seconds=1))
    site.require()
    let_it_be(comes_at)
    site.require({FIRST}, {FIRST})
    assert manifest()[FIRST].changes_at is None
    assert declared.lastmod == column
    entry = xml(site.storage, manifest()[FIRST]).partition(b"/p0/")[2].partition(b"</url>")[0]
    assert b"<lastmod>" in entry
    site.require()


@pytest.mark.thorough
@pytest.mark.django_db
def test_the_first_of_several_lastmods_of_the_future_counts(site, let_it_be):
    """Each makes its page again when it comes; one that moves is known by where it is now."""
    let_it_be(EPOCH)
    Product.objects.filter(slug="p0").update(updated_at=EPOCH + 3 * HOUR)
    Product.objects.filter(slug="p1").update(updated_at=EPOCH + 4 * HOUR)
    site.require({FIRST}, {FIRST})
    Product.objects.filter(slug="p0").update(updated_at=EPOCH + 2 * HOUR)
    site.require({FIRST})
    for hours in (2, 4):
        let_it_be(EPOCH + hours * HOUR - dt.timedelta(seconds=1))
        site.require()
        let_it_be(EPOCH + hours * HOUR)
        site.require({FIRST}, {FIRST})
    assert manifest()[FIRST].changes_at is None


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_lastmod_for_all_may_lie_in_the_future(site, let_it_be):
    """Then all pages of its section are due."""
    let_it_be(EPOCH)
    redeclare(Readings, lastmod=EPOCH + HOUR)
    site.require(READINGS)
    site.require()
    let_it_be(EPOCH + HOUR)
    site.require(READINGS, READINGS)
    site.require()


# Meanwhile


@pytest.mark.slow
@pytest.mark.django_db
def test_an_edit_of_a_row_that_was_read_is_in_the_next_build(site, client, monkeypatch):
    """Though it comes before the page is stored."""
    blocks = PageRendering.blocks
    edits = [lambda: edit_product("p0", day=3)]

    def slowly(self):
        for block in blocks(self):
            if self.section.get_name() == "products" and edits:
                edits.pop()()
            yield block

    monkeypatch.setattr(PageRendering, "blocks", slowly)
    edit_product("p1", day=2)
    site.require({FIRST}, {FIRST})
    assert not edits
    before = in_order(served(client))
    site.require({FIRST}, {FIRST})
    after = in_order(served(client))
    (changed,) = set(after) - set(before)
    assert changed == ("https://www.example.com/products/all/p0/", "2025-01-03T12:00:00+00:00")
    site.require()


@pytest.mark.slow
@pytest.mark.django_db
def test_an_edit_before_the_rows_are_read_is_in_this_build(site, monkeypatch):
    """If the fingerprint was taken already, the next one looks, and finds the same."""
    make_page = module.make_page
    edits = [lambda: edit_product("p0", day=3)]

    def late(*arguments):
        if edits:
            edits.pop()()
        return make_page(*arguments)

    monkeypatch.setattr(module, "make_page", late)
    edit_product("p1", day=2)
    site.require({FIRST}, {FIRST})
    assert b"2025-01-03" in xml(site.storage, manifest()[FIRST])
    # All but SQLite digest the rows as they read them.
    site.require({FIRST} if connection.vendor == "sqlite" else ())
    site.require()


@pytest.mark.django_db
def test_an_edit_of_a_page_that_was_found_the_same_is_in_the_next_build(site):
    """The build that is under way has passed it."""

    def on_file(result, place, total):
        if (result.section, result.number) == THIRD:
            edit_product("p0", day=3)

    swap_readings()
    site.require({("readings", 2)}, {("readings", 2)}, on_file=on_file)
    site.require({FIRST}, {FIRST})


# Other processes


@pytest.mark.slow
@pytest.mark.django_db
def test_helpers_make_what_is_pending(site):
    """Whatever they render is stored only if it differs."""
    before = manifest()[FIRST]
    with acquire(SITE) as lease:
        declaration = Fingerprints(SITE).declaration_digest_of(sections_of(SITE), [])
        record = Build.objects.create(
            site=SITE.key,
            options={"declaration": declaration, "sections": []},
            fence=lease.row.fence,
            started_at=EPOCH,
        )
        row = Place.objects.create(
            build=record, section="products", number=1, lower=before.lower, upper=before.upper
        )
        site.rendered.clear()
        help_build(record.pk, lease.fence, 1)
    assert site.rendered == [FIRST]
    row.refresh_from_db()
    assert (row.status, row.name, row.fingerprint) == ("done", before.name, before.fingerprint)


# Any sequence of changes


class Anything(Section):
    """Rows with columns of all kinds, keyed by a text, so that they come anywhere."""

    queryset = Product.objects.filter(public=True)
    key = "slug"
    location = Route("product", shop="shop__slug", slug="slug")
    lastmod = "updated_at"
    changefreq = F("note")
    priority = F("rank")


def insert(slug):
    """Add a row, unless there is one."""
    shop = Shop.objects.order_by("pk")[ord(slug) % 2]
    values = {"shop": shop, "updated_at": EPOCH, "note": "daily", "rank": "0.5"}
    Product.objects.get_or_create(slug=slug, defaults=values)


def update(slug, values):
    """Change columns of a row, if it is there."""
    Product.objects.filter(slug=slug).update(**values)


def delete(slug):
    """Take a row away."""
    Product.objects.filter(slug=slug).delete()


def rekey(slug, other):
    """Let a row have another key, if none has it."""
    if not Product.objects.filter(slug=other).exists():
        Product.objects.filter(slug=slug).update(slug=other)


def move(slug):
    """Let a shop move, with all that it has."""
    shop = Shop.objects.order_by("pk")[ord(slug) % 2]
    Shop.objects.filter(pk=shop.pk).update(slug=f"{shop.slug}{slug}"[-20:])


def limit(most):
    """Let the project have another limit of URLs."""
    django_settings.SITEMAPKIT_MAX_URLS = most


def version(number):
    """Let the section be of another version."""
    redeclare(Anything, version=number)


class News(Section):
    """Rows whose lastmod is trusted, because each change moves it."""

    queryset = Article.objects.all()
    location = Concat(Value("/news/"), F("title"))
    lastmod = "edited_at"
    trust_lastmod = True


def write(title, other):
    """Add a row, or put one in the place of another; it is the newest then."""
    if not Article.objects.filter(title=other).exists():
        newest = Article.objects.aggregate(at=Max("edited_at"))["at"]
        Article.objects.filter(title=title).delete()
        Article.objects.create(title=other, edited_at=newest + HOUR)


def unwrite(title):
    """Take away a row that is not the newest, and not the last one; the newest moves on."""
    newest = Article.objects.order_by("-edited_at").first()
    if newest.title != title:
        Article.objects.filter(title=title).delete()
        Article.objects.filter(pk=newest.pk).update(edited_at=newest.edited_at + HOUR)


def by_path(slug, include, values):
    """Override the URL that a row has now, or may have once."""
    shop = Shop.objects.order_by("pk")[ord(slug) % 2]
    place = f"/products/{shop.slug}/{slug}/" if slug in "abcdef" else f"/news/{slug}"
    override(path=place, include=include, values=values)


def by_object(slug, include, values):
    """Override a row, if it is there."""
    model = Product if slug in "abcdef" else Article
    for obj in model.objects.filter(**{"slug" if model is Product else "title": slug}):
        label, object_id = identity_of(obj)
        override(model=label, object_id=object_id, include=include, values=values)


def override(values, include, **found_by):
    """Set an override, whatever was set before."""
    rows = UrlOverride.objects.filter(site=SITE.key, **found_by)
    row = rows.first() or UrlOverride(site=SITE.key, **found_by)
    row.priority, row.changefreq, row.include = values.get("rank"), "", include
    row.save()


def take_back(place):
    """Delete an override or a rule."""
    rows = [*UrlOverride.objects.order_by("pk"), *ExclusionRule.objects.order_by("pk")]
    if rows:
        rows[place % len(rows)].delete()


def exclude(pattern, other):
    """Set a rule, or let one have another pattern."""
    if not ExclusionRule.objects.filter(pattern=other).exists():
        rule = ExclusionRule.objects.filter(pattern=pattern).first()
        rule = rule or ExclusionRule(site=SITE.key)
        rule.pattern = other
        rule.save()


def steer(section, values):
    """Set something for a section, or nothing any more."""
    SectionSettings.objects.update_or_create(site=SITE.key, section=section, defaults=values)


def add(slug, values):
    """Add a URL, or change it, or take it away."""
    place = f"/extra/{slug}"
    if not values:
        ExtraUrl.objects.filter(path=place).delete()
    else:
        row = ExtraUrl.objects.filter(path=place).first() or ExtraUrl(site=SITE.key, path=place)
        row.priority = values.get("priority")
        row.save()


def go_back(place):
    """Publish an earlier build."""
    builds = Build.objects.exclude(published_at=None).filter(pruned_at=None)
    publish(SITE, builds.order_by("pk")[place % builds.count()].pk)


SLUG = st.sampled_from("abcdefgh")
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "updated_at": st.sampled_from([None, EPOCH - DAY, EPOCH + DAY]),
        "note": st.sampled_from(["weekly", "Weekly", "", "hardly"]),
        "rank": st.sampled_from([None, "0", "0.50", "1", "2"]),
        "public": st.booleans(),
    },
).filter(bool)
PATTERN = st.sampled_from(["/products/", "/products/*/a", "*/c/$", "/news/", "/news/g$", "/extra/"])
SETTING = st.fixed_dictionaries(
    {
        "enabled": st.sampled_from([None, None, True, False]),
        "priority": st.sampled_from([None, "0.7"]),
        "changefreq": st.sampled_from(["", "daily"]),
    }
)
INCLUDE = st.sampled_from([None, True, False, False])
RANK = st.fixed_dictionaries({"rank": st.sampled_from([None, "0.10", "0.90"])})
STEERING = st.one_of(
    st.tuples(st.sampled_from([by_path, by_object]), SLUG, INCLUDE, RANK),
    st.tuples(st.sampled_from([by_path, by_object]), SLUG, INCLUDE, RANK),
    st.tuples(st.just(take_back), st.integers(0, 9)),
    st.tuples(st.just(exclude), PATTERN, PATTERN),
    st.tuples(st.just(steer), st.sampled_from(["anything", "news", "extra-urls"]), SETTING),
    st.tuples(st.just(add), SLUG, st.sampled_from([{}, {"priority": "0.1"}, {"priority": None}])),
    st.tuples(st.just(write), SLUG, SLUG),
    st.tuples(st.just(unwrite), SLUG),
    st.tuples(st.just(go_back), st.integers(0, 9)),
)
CHANGE = st.one_of(
    st.tuples(st.sampled_from([insert, delete, move]), SLUG),
    st.tuples(st.just(update), SLUG, VALUES),
    st.tuples(st.just(rekey), SLUG, SLUG),
    st.tuples(st.just(limit), st.integers(2, 3)),
    st.tuples(st.just(version), st.integers(0, 2)),
)


BUILDS = st.sampled_from([None, "", "", "news", "anything"])


@pytest.mark.thorough
class AnySequence(TestCase):
    @effort(max_examples=12, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(st.tuples(CHANGE, st.booleans()), max_size=7))
    def test_any_sequence_of_changes_ends_in_what_is_there(self, steps):
        """With builds in between or not: the files are those of a full build."""
        with override_settings(SITEMAPKIT_MAX_URLS=3), site_of(Anything, Articles) as storage:
            Shop.objects.bulk_create([Shop(slug="attic"), Shop(slug="cellar")])
            Article.objects.create(title="One", edited_at=EPOCH)
            for slug in "bdfh":
                insert(slug)
            build_site(SITE)
            for (change, *arguments), builds in steps:
                change(*arguments)
                if builds:
                    build_site(SITE)
            build_site(SITE)
            self.require_all(storage)
            storage.calls.clear()
            assert build_site(SITE, full=True).status == "unchanged"
            assert storage.saved() == []

    @effort(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(st.tuples(st.one_of(STEERING, CHANGE), BUILDS), max_size=10))
    def test_any_sequence_of_steering_ends_in_what_is_there(self, steps):
        """Whatever changes, whichever sections are built in between, and gone back to."""
        with (
            override_settings(SITEMAPKIT_MAX_URLS=3),
            site_of(Anything, News, Articles) as storage,
        ):
            Shop.objects.bulk_create([Shop(slug="attic"), Shop(slug="cellar")])
            for place, slug in enumerate("aceg"):
                insert(slug)
                Article.objects.create(title="abgh"[place], edited_at=EPOCH + place * HOUR)
            build_site(SITE)
            for (change, *arguments), builds in steps:
                change(*arguments)
                names = [section.get_name() for section in sections_of(SITE)]
                if builds is not None:
                    build_site(SITE, sections=[name for name in names if name == builds])
            build_site(SITE)
            self.require_all(storage)
            storage.calls.clear()
            assert build_site(SITE, full=True).status == "unchanged"
            assert storage.saved() == []

    def require_all(self, storage):
        """Each page's file is what the page is rendered to now."""
        assert {page.state for page in preview(SITE).files} <= {"same", "empty"}
        for (name, _), line in manifest().items():
            if line.status == "done" and name:
                section = section_of(SITE, name)
                rendering = PageRendering(section, key_range_of(line, section), SITE.scope())
                assert xml(storage, line) == b"".join(rendering)


@contextmanager
def site_of(*declared):
    """Give the storage of a site that has these sections, new and empty."""
    backend = {"BACKEND": "tests.builds.storages.Memory"}
    changed = override_settings(STORAGES={**django_settings.STORAGES, "sitemaps": backend})
    with registry.isolated(), changed:
        for section in declared:
            registry.add(section)
        yield storages["sitemaps"]


# Promises that cannot be kept


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_date_is_not_trusted(site):
    """Two changes of one day have the same."""
    redeclare(Products, trust_lastmod=True, lastmod="released_on")
    Product.objects.update(released_on=dt.date(2024, 2, 29))
    site.build()
    Product.objects.filter(slug="p0").update(slug="q0")
    site.require({FIRST}, {FIRST})


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_lastmod_of_the_future_is_not_trusted(site):
    """It stays the newest, whatever else changes."""
    redeclare(Products, trust_lastmod=True)
    Product.objects.filter(slug="p1").update(updated_at=timezone.now() + 1000 * DAY)
    site.build()
    Product.objects.filter(slug="p0").update(updated_at=EPOCH + DAY)
    site.require({FIRST}, {FIRST})


@pytest.mark.thorough
@pytest.mark.django_db
@pytest.mark.parametrize("use_tz", [True, False])
def test_a_lastmod_that_never_comes_is_left_out(site, settings, use_tz):
    """Such as the last moment there is, which no other zone has."""
    settings.USE_TZ = use_tz
    settings.TIME_ZONE = "America/New_York"

    def never(self, product):
        return dt.datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001

    redeclare(Products, lastmod=never)
    assert site.build().status == "published"
    assert {line.changes_at for line in manifest().values()} == {None}


def declaration_of(queryset, **options):
    """Return the declaration of a section whose queryset is made by a call."""
    methods = {"queryset": None, "get_queryset": lambda self: queryset()}
    return reader_of(type("Products", (Products,), methods | options)(SITE)).declaration_text()


ROWS = Product.objects
MOMENTS = {
    "now": lambda: ROWS.filter(updated_at__lte=timezone.now()),
    "days ago": lambda: ROWS.filter(updated_at__gte=timezone.now() - dt.timedelta(days=14)),
    "the second": lambda: ROWS.filter(updated_at__lte=timezone.now().replace(microsecond=0)),
    "today": lambda: ROWS.filter(released_on__lte=dt.datetime.now(dt.UTC).date()),
    "an annotation": lambda: ROWS.annotate(age=Value(timezone.now()) - F("updated_at")),
    "a case": lambda: ROWS.annotate(
        new=Case(When(updated_at__gt=timezone.now(), then=1), default=0)
    ),
}


@pytest.mark.parametrize("queryset", MOMENTS.values(), ids=MOMENTS)
def test_a_filter_with_a_moment_of_its_own_is_no_other_declaration(queryset):
    """It is the code's own filter each time; what it finds is reported by the rows."""
    first = declaration_of(queryset)
    time.sleep(0.002)
    assert declaration_of(queryset) == first


def options_of(queryset, route=None, lastmod="updated_at"):
    """Return the options of a section over a queryset, and of what it reads."""
    return {"queryset": queryset, "location": route or Products.location, "lastmod": lastmod}


CHANGED = {
    "a date as text": [
        options_of(ROWS.all(), Route("product", shop=Value(day), slug="slug"))
        for day in ("2024-01-01", "2025-05-05")
    ],
    "a date in a filter": [
        options_of(ROWS.filter(released_on=dt.date(year, 1, 1))) for year in (2024, 2025)
    ],
    "a moment in a filter": [options_of(ROWS.filter(updated_at__gt=at)) for at in (EPOCH, LATER)],
    "a year": [options_of(ROWS.filter(updated_at__year=year)) for year in (2024, 2025)],
    "texts that swap places": [
        options_of(
            ROWS.all(), Route("product", shop=Concat(Value(one), "slug", Value(other)), slug="slug")
        )
        for one, other in ("ab", "ba")
    ],
    "texts that a method reads": [
        options_of(
            ROWS.annotate(one=Value(one), other=Value(other)),
            lambda self, row: f"/{row.one}/{row.slug}/{row.other}/",
        )
        | {"depends_on": ["slug"]}
        for one, other in ("ab", "ba")
    ],
    "dates that swap places": [
        options_of(ROWS.filter(released_on__range=days)) for days in (DAYS, DAYS[::-1])
    ],
    "a date as lastmod": [
        options_of(ROWS.all(), lastmod=Greatest("updated_at", Value(at))) for at in (EPOCH, LATER)
    ],
    "a date beside a moment": [
        options_of(ROWS.filter(updated_at__lte=timezone.now(), released_on__gt=day)) for day in DAYS
    ],
    "a list with another text": [
        options_of(ROWS.filter(slug__in=slugs)) for slugs in (["a", "b"], ["a", "c"])
    ],
    "texts that change lists": [
        options_of(ROWS.filter(slug__in=one, note__in=other)) for one, other in ("ab", "ba")
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("declared", CHANGED.values(), ids=CHANGED)
def test_what_the_project_writes_is_part_of_its_declaration(declared):
    """Dates too, and at which place in the statement: no row shows that they changed."""
    one, other = (reader_of(type("Products", (Products,), some)(SITE)) for some in declared)
    again = reader_of(type("Products", (Products,), declared[0])(SITE))
    assert one.declaration_text() == again.declaration_text() != other.declaration_text()


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("changed", ["a date as text", "a date in a filter", "a year"])
def test_a_trusted_page_is_made_again_if_a_date_is_changed(site, changed, client, settings):
    """And no reader gets a 304."""
    Product.objects.filter(slug="p0").update(released_on=dt.date(2024, 1, 1))
    Product.objects.filter(slug="p1").update(
        released_on=dt.date(2025, 1, 1), updated_at=EPOCH + 366 * DAY
    )
    redeclare(Products, trust_lastmod=True, **CHANGED[changed][0])
    site.build()
    settings.SITEMAPKIT_SERVE_FROM = "live"
    etag = client.get("/sitemap-products-1.xml")["ETag"]
    redeclare(Products, trust_lastmod=True, **CHANGED[changed][1])
    assert client.get("/sitemap-products-1.xml", headers={"if-none-match": etag}).status_code == 200
    assert site.build().status == "published"


def test_the_order_of_a_set_is_no_other_declaration():
    """It is another one in each process."""
    declared = {
        reader_of(type("Products", (Products,), {"queryset": queryset})(SITE)).declaration_text()
        for queryset in (
            Product.objects.filter(slug__in=["a", "b"]),
            Product.objects.filter(slug__in=["b", "a"]),
        )
    }
    assert len(declared) == 1


@pytest.mark.slow
@pytest.mark.django_db
def test_a_row_that_was_gone_while_others_were_read_comes_back(site, monkeypatch):
    """The fingerprint is that of before; the number of rows tells that they were not all read."""
    make_page = module.make_page

    def without(*arguments):
        Product.objects.filter(slug="p0").update(public=False)
        try:
            return make_page(*arguments)
        finally:
            Product.objects.filter(slug="p0").update(public=True)

    redeclare(Products, queryset=Product.objects.filter(public=True))
    with monkeypatch.context() as patch:
        patch.setattr(module, "make_page", without)
        site.build()
    site.require({FIRST}, {FIRST})
