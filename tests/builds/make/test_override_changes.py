"""Builds render again just the pages that are concerned by what editors have set."""

import datetime as dt

import pytest

from django_sitemapkit import Route, Section
from django_sitemapkit.builds import publish
from django_sitemapkit.builds.make import reuse as changes
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.report.due import due_by_section
from django_sitemapkit.models import ExclusionRule, UrlOverride
from django_sitemapkit.overrides import Overrides
from django_sitemapkit.reading import QuerySetReader
from django_sitemapkit.reading.pushdown import Pushdown
from tests.builds import ALL, SITE, Products, edit_product, manifest, sha256_of, xml
from tests.builds.make.test_incremental import (
    ARTICLES,
    FIRST,
    PRODUCTS,
    READINGS,
    SECOND,
    THIRD,
    observed,
    redeclare,
    site,
)
from tests.cases import few
from tests.factories import EPOCH
from tests.overrides.setting import by_object, by_path, entries_in, extra, rule, setting
from tests.testapp.models import Article, Product, Reading

__all__ = ["observed", "site"]

pytestmark = pytest.mark.django_db

INDEX = ("", 0)
HOUR = dt.timedelta(hours=1)


def path_of(number):
    """Return the path of a product."""
    return f"/products/{'other' if number == 4 else 'all'}/p{number}/"


def product(number):
    """Return a product."""
    return Product.objects.get(slug=f"p{number}")


def counted(*, rows=True):
    """Return how many pages of which section are due because of overrides."""
    reason = Reason.OVERRIDES if rows else Reason.SOMEWHERE
    found = {one.section: one.pages.get(reason, 0) for one in due_by_section(SITE, rows=rows)}
    return {name: count for name, count in found.items() if count}


def by_section(pages):
    """Return how many of some pages there are of each section."""
    names = [name for name, _ in pages]
    return {name: names.count(name) for name in names}


def require(site, rendered, changed=None, *, full=False):
    """Build, and require that just these pages were said to be due, rendered and changed.

    Afterwards there is nothing to do; a ``full`` build finds the same bytes.
    """
    names = {section.get_name() for section in ALL}
    if all(name in names for name, _ in rendered):
        assert counted() == by_section(rendered)
    before = manifest()
    result = site.build()
    after = manifest()
    assert sorted(site.rendered) == sorted(rendered)
    others = {key for key in {*before, *after} if content(before, key) != content(after, key)}
    assert others - {INDEX} == (set(rendered) if changed is None else changed)
    assert result.status == ("published" if others else "unchanged")
    assert counted() == {}
    assert site.build().status == "unchanged"
    assert site.rendered == []
    if full:
        require_full(site)


def require_full(site):
    """Require that a full build finds the same bytes."""
    result = site.build(full=True)
    assert (result.status, site.storage.saved()) == ("unchanged", [])


def content(lines, key):
    """Return what a page's file is."""
    return lines[key].name if key in lines else ""


def listed(site, key):
    """Return the entries of a stored page."""
    line = manifest()[key]
    return entries_in(xml(site.storage, line)) if line.status == "done" else {}


# What is set, changed and taken back


SETS = {
    "a path excluded": (lambda: by_path(path_of(2), include=False), {SECOND}),
    "an object excluded": (lambda: by_object(product(2), include=False), {SECOND}),
    "an object by another key": (
        lambda: by_object(Reading(level=10), include=False),
        {("readings", 2)},
    ),
    "a priority": (lambda: by_path(path_of(4), priority="0.9"), {THIRD}),
    "a lastmod": (lambda: by_object(product(0), lastmod=EPOCH + HOUR), {FIRST}),
    "two of two sections": (
        lambda: (
            by_path("/readings/0/", changefreq="daily"),
            by_object(product(4), include=False),
            by_object(product(1), changefreq="daily"),
        ),
        {("readings", 1), FIRST, THIRD},
    ),
    "a rule": (lambda: rule("/products/all/p1"), {FIRST}),
    "a rule for some pages": (lambda: rule("*/all/*"), {FIRST, SECOND}),
    # Not "/*0/$": an article may have any key, where a rollback gives none of them back.
    "rules at the end": (
        lambda: (rule("/*/p0/$"), rule("/readings/*0/$")),
        {FIRST, *READINGS},
    ),
    "a path of nobody": (lambda: by_path("/nowhere/", include=False), set()),
    "an object of nobody": (lambda: by_object(Product(pk=10**6), include=False), set()),
    "a key that no row can have": (lambda: by_object(Reading(level="x"), include=False), set()),
    "a rule for nobody": (lambda: rule("/nowhere/"), set()),
    "a section": (lambda: setting("articles", priority="0.1"), ARTICLES),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", few(2, SETS))
def test_what_is_set_makes_the_pages_that_it_concerns(site, change):
    """And no other: by the keys of their objects, or the URLs in their files."""
    act, pages = SETS[change]
    act()
    if change == "a section":
        site.require(pages, pages)
        site.require()
    else:
        require(site, pages)
    require_full(site)


def test_a_file_is_looked_through_once(site, monkeypatch):
    """Though its page is asked about before it is made, and again as it is."""
    looked_through = []
    look = changes.locations_of

    def looking(line):
        looked_through.append((line.section, line.number))
        return look(line)

    monkeypatch.setattr(changes, "locations_of", looking)
    rule("/products/all/p1")
    site.build()
    assert looked_through.count(FIRST) == 1


@pytest.mark.slow
def test_what_is_changed_or_taken_back_makes_its_pages(site):
    """Known by what met their rows: no file is read for it."""
    row = by_path(path_of(2), include=False)
    other = by_object(product(0), priority="0.1")
    require(site, {FIRST, SECOND})
    site.storage.calls.clear()
    row.include, row.priority = None, "0.9"
    row.save()
    require(site, {SECOND})
    assert listed(site, SECOND)[path_of(2)]["priority"] == "0.9"
    row.note = "No other value."
    row.save()
    require(site, {SECOND}, set())
    other.delete()
    require(site, {FIRST})
    UrlOverride.objects.all().delete()
    require(site, {SECOND})


@pytest.mark.thorough
def test_a_changed_path_concerns_two_pages(site):
    """That of the one before, and that of the one now."""
    row = by_path(path_of(0), include=False)
    site.build()
    row.path = path_of(4)
    row.save()
    require(site, {FIRST, THIRD})


@pytest.mark.thorough
def test_a_rule_that_is_changed_or_taken_back_makes_its_pages(site):
    """All that it met, and all that it meets now."""
    row = rule("/products/all/p0")
    require(site, {FIRST})
    row.pattern = "/products/other/"
    row.save()
    require(site, {FIRST, THIRD})
    row.delete()
    require(site, {THIRD})


@pytest.mark.thorough
def test_a_url_is_listed_again_over_a_rule(site):
    """No file tells of it: pages that the rule has met are made, by an object its own one."""
    rule("/products/all/")
    rule("/readings/0")
    by_object(product(4), priority="0.1")
    require(site, {FIRST, SECOND, THIRD, ("readings", 1)})
    by_object(product(3), include=True)
    require(site, {SECOND})
    assert list(listed(site, SECOND)) == [path_of(3)]
    by_path(path_of(1), include=True)
    require(site, {FIRST, SECOND}, {FIRST})
    assert list(listed(site, FIRST)) == [path_of(1)]
    require_full(site)


@pytest.mark.thorough
def test_a_url_is_listed_again_over_an_override_of_its_object(site):
    """By its path, which no page tells of."""
    by_object(product(0), include=False)
    by_object(product(4), priority="0.5")
    require(site, {FIRST, THIRD})
    by_path(path_of(0), include=True)
    require(site, {FIRST})
    assert path_of(0) in listed(site, FIRST)


@pytest.mark.thorough
def test_a_page_may_lose_all_and_get_some_back(site):
    """It is made once for each change, as a page with URLs."""
    rows = [by_path(path_of(2), include=False), by_object(product(3), include=False)]
    require(site, {SECOND})
    assert manifest()[SECOND].status == "empty"
    by_path(path_of(0), include=False)
    require(site, {FIRST})
    rows[1].delete()
    require(site, {SECOND})
    assert list(listed(site, SECOND)) == [path_of(3)]


@pytest.mark.thorough
def test_settings_and_extra_urls_make_their_section(site):
    """As another declaration, and another row would."""
    setting("readings", changefreq="daily")
    site.require(READINGS, READINGS)
    setting("readings", enabled=False)
    site.require(status="published")
    setting("readings", enabled=None, changefreq="")
    site.require(READINGS, READINGS)
    extras = {("extra-urls", 1)}
    row = extra("/a/")
    require(site, extras)
    row.priority = "0.5"
    row.save()
    require(site, extras)
    row.note = "No value."
    row.save()
    require(site, set())
    by_path("/a/", changefreq="daily")
    require(site, extras)
    other = extra("/b/")
    require(site, extras)
    other.delete()
    require(site, extras)
    row.delete()
    site.require(status="published")
    site.require()


@pytest.mark.thorough
@pytest.mark.usefixtures("methods_are_called")
def test_pages_that_methods_fill_follow_too(site):
    """They are rendered each time anyway."""
    redeclare(Products, lastmod=lambda self, product: product.updated_at)
    site.build()
    by_path(path_of(2), include=False)
    site.require(PRODUCTS, {SECOND})
    site.require(PRODUCTS)


@pytest.mark.thorough
def test_a_lastmod_of_the_future_waits_for_its_day(site):
    """The page is due when it comes, as with a row's."""
    row = by_path(path_of(0), lastmod=EPOCH + 10**5 * HOUR)
    require(site, {FIRST}, set())
    assert manifest()[FIRST].changes_at == row.lastmod


@pytest.mark.thorough
def test_many_changes_make_all_anew(site, monkeypatch):
    """It takes longer to look where each one matters."""
    monkeypatch.setattr(changes, "MAX_CHANGES", 2)
    for n in range(3):
        by_path(f"/nowhere/{n}/")
    everything = PRODUCTS | READINGS | ARTICLES
    require(site, everything, set())


@pytest.mark.thorough
def test_a_lost_file_is_no_reason_to_fail(site):
    """It is rendered again anyway."""
    site.storage.delete(manifest()[SECOND].name)
    by_path(path_of(0), include=False)
    site.require({FIRST, SECOND}, {FIRST, SECOND})
    site.storage.delete(manifest()[SECOND].name)
    by_path(path_of(0) + "x", include=False)
    found = {one.section: one.pages for one in due_by_section(SITE) if one.pages}
    assert found == {"products": {Reason.LOST: 1}}


@pytest.mark.thorough
@pytest.mark.parametrize("key", ["pk", "slug"])
def test_who_looks_something_up_waits_for_the_reads(site, monkeypatch, key):
    """A connection serves one at a time, and the next rows may be on their way."""
    redeclare(Products, key=key)
    asked = []
    look = Overrides.effects

    def looking(self, section, keys, locations):
        assert section.connection_lock._is_owned()
        asked.append(section.get_name())
        return look(self, section, keys, locations)

    monkeypatch.setattr(Overrides, "effects", looking)
    by_object(product(2), include=False)
    site.build()
    assert "products" in asked


# Said without looking


@pytest.mark.thorough
def test_without_a_look_any_change_may_concern_a_page(site):
    """What met a page is known though."""
    row = by_path(path_of(0), include=False)
    site.build()
    assert counted(rows=False) == {}
    row.delete()
    assert counted(rows=False) == {"products": 1}
    site.build()
    by_path("/nowhere/", include=False)
    assert counted(rows=False) == {"products": 3, "readings": 3, "articles": 1}
    site.build()
    rule("/nowhere/")
    assert counted(rows=False) == {"products": 3, "readings": 3, "articles": 1}
    site.build()
    extra("/a/")
    assert counted(rows=False) == {}


# What was built at other times


@pytest.mark.thorough
def test_one_url_in_two_sections_is_followed_in_both(site, sections):
    """Also where one of them was built before the other."""
    sections.add(type("Copies", (Products,), {"limit": 5}))
    site.build()
    row = by_path(path_of(2), priority="0.1")
    site.require({SECOND}, {SECOND}, sections=["products"])
    row.include = False
    row.save()
    assert counted() == {"products": 1, "copies": 1}
    pages = {SECOND, ("copies", 1)}
    site.require(pages, pages)
    assert path_of(2) not in listed(site, ("copies", 1))
    site.require()


@pytest.mark.thorough
def test_a_build_of_one_section_leaves_the_others_due(site):
    """Until it is their turn."""
    rule("/products/all/p0")
    by_object(Reading(level=10), include=False)
    site.require({("readings", 2)}, sections=["readings"], status="published")
    assert counted() == {"products": 1}
    require(site, {FIRST})


@pytest.mark.thorough
def test_what_is_gone_back_to_follows_again(site):
    """Whatever was set, changed and taken back since it was made."""
    first = by_path(path_of(0), include=False)
    rule("/readings/10/")
    then = site.build().build
    first.delete()
    by_path(path_of(2), include=False)
    by_object(product(4), priority="0.1")
    rule("/products/all/p3")
    site.build()
    now = manifest()
    publish(SITE, then)
    assert listed(site, FIRST).keys() == {path_of(1)}
    require(site, {FIRST, SECOND, THIRD})
    after = manifest()
    assert {key: sha256_of(after[key]) for key in PRODUCTS} == {
        key: sha256_of(now[key]) for key in PRODUCTS
    }
    require_full(site)


@pytest.mark.thorough
def test_what_is_held_back_is_not_taken_for_what_is_now(site, settings):
    """Its pages may list what was excluded since."""
    settings.SITEMAPKIT_MAX_SHRINK = 0.1
    Article.objects.all().delete()
    edit_product("p0")
    assert site.build().status == "held"
    Product.objects.filter(slug="p0").update(updated_at=EPOCH)
    by_path(path_of(1), include=False)
    settings.SITEMAPKIT_MAX_SHRINK = 1
    assert site.build().status == "published"
    edit_product("p0")
    site.build()
    assert list(listed(site, FIRST)) == [path_of(0)]


# Meanwhile


def during(monkeypatch, name, act):
    """Have something done while a section's first page is rendered, between two rows."""
    acts = [act]
    for reader in (QuerySetReader, Pushdown):
        monkeypatch.setattr(reader, "chunks", acting(reader.chunks, name, acts))
    return acts


def acting(chunks, name, acts):
    """Return a method that does the next of some acts before each chunk of a section."""

    def method(self, *arguments, **named):
        for chunk in chunks(self, *arguments, **named):
            section = getattr(self, "_reader", self)
            if section.get_name() == name and acts:
                acts.pop()()
            yield chunk

    return method


EDITS = {
    "exclude": lambda: by_path(path_of(0), include=False),
    "exclude the object": lambda: by_object(product(0), include=False),
    "rule": lambda: rule(path_of(0)),
    "change": lambda: UrlOverride.objects.update(priority="0.8"),
    "delete": lambda: UrlOverride.objects.all().delete(),
}


@pytest.mark.slow
@pytest.mark.parametrize("edit", few(1, EDITS))
def test_an_edit_while_its_page_is_made_is_in_the_next_build(site, monkeypatch, edit):
    """If not in this one already."""
    by_object(product(1), priority="0.1")
    acts = during(monkeypatch, "products", EDITS[edit])
    site.build()
    assert not acts
    site.build()
    after = {key: sha256_of(line) for key, line in manifest().items()}
    result = site.build(full=True)
    assert (result.status, site.storage.saved()) == ("unchanged", [])
    assert {key: sha256_of(line) for key, line in manifest().items()} == after


@pytest.mark.thorough
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_a_page_that_was_passed_is_in_the_next_build(site, edit):
    """The build that is under way does not come back to it."""
    by_object(product(1), priority="0.1")
    site.build()

    def on_file(result, place, total):
        if (result.section, result.number) == THIRD:
            EDITS[edit]()

    Reading.objects.create(level=15)
    site.build(on_file=on_file)
    site.require({FIRST}, {FIRST})
    result = site.build(full=True)
    assert (result.status, site.storage.saved()) == ("unchanged", [])


@pytest.mark.thorough
def test_all_of_a_page_is_found_however_many_it_has(sections, observed):
    """In reads of some thousands, of which each looks up its own."""
    sections.add(
        type(
            "Levels",
            (Section,),
            {"queryset": Reading.objects.all(), "location": Route("reading", level="pk")},
        )
    )
    Reading.objects.bulk_create(Reading(level=level) for level in range(3_000))
    UrlOverride.objects.bulk_create(
        UrlOverride(site=SITE.key, path=f"/readings/{level}/", include=False)
        for level in range(0, 3_000, 2)
    )
    ExclusionRule.objects.create(site=SITE.key, pattern="/readings/*1/")
    observed.build()
    line = manifest()["levels", 1]
    assert line.urls == 1_200
    assert len(line.override_hashes) == (1_500 + 1) * 8  # The rule met rows in each of the reads.
    assert observed.build().status == "unchanged"
