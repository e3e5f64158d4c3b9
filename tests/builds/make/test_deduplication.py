"""With SITEMAPKIT_DEDUPLICATE a build lists each URL once, on the first page that has it."""

from array import array
from contextlib import contextmanager, suppress
from itertools import chain

import pytest
from django.db.models import F, Max, Value
from django.db.models.functions import Concat
from django.test import override_settings
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from django_sitemapkit import Section, StaticSection
from django_sitemapkit.builds import build, preview, publish
from django_sitemapkit.builds.make import page_builder as module
from django_sitemapkit.builds.make.deduplication import (
    PageDeduplicator,
    hashes_of,
    hashes_to_hex,
    urls_digest_of,
)
from django_sitemapkit.builds.report.due import due_by_section
from django_sitemapkit.builds.run import publish_override
from django_sitemapkit.models import Build, ExtraUrl, Place, UrlOverride
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.registry import EXTRA_URLS, registry
from django_sitemapkit.sites import all_sites
from tests.builds import SITE, leave_plan, manifest, run, states, use_storage, xml
from tests.builds.make.test_incremental import site_of
from tests.builds.runners import EACH_RUNNER, RUNNERS, by
from tests.builds.storages import Killed, failing
from tests.cases import few
from tests.factories import EPOCH
from tests.overrides.setting import by_object, by_path, extra
from tests.prepared import once
from tests.testapp.models import Product, Shop

NAMES = ("firsts", "seconds", "thirds")


class Rows(Section):
    """Rows of one shop, whose notes are their URLs; two of them may have the same."""

    location = Concat(Value("/all/"), F("note"))
    lastmod = "updated_at"
    limit = 2


def of_shop(name):
    """Return a section of one shop's rows."""
    rows = Product.objects.filter(shop__slug=name)
    return type(name.title(), (Rows,), {"name": name, "queryset": rows})


ALL = tuple(map(of_shop, NAMES))


def add(name, letters):
    """Add rows to a section, one for each letter."""
    shop, _ = Shop.objects.get_or_create(slug=name)
    for letter in letters:
        number = Product.objects.aggregate(last=Max("pk"))["last"] or 0  # Of those that stay.
        Product.objects.create(shop=shop, slug=f"{name}-{number}", note=letter, updated_at=EPOCH)


def remove(name, letter):
    """Delete the rows of a section that have a URL."""
    Product.objects.filter(shop__slug=name, note=letter).delete()


def listed(storage=None):
    """Return the letters that each published page lists, in the order of the index."""
    storage = storage or SitemapStorage()
    lines = [line for line in manifest().values() if line.section and line.status == "done"]
    lines.sort(key=lambda line: (line.position, line.number))
    return [
        (line.section, "".join(part[0] for part in text(storage, line).split("/all/")[1:]))
        for line in lines
    ]


def text(storage, line):
    """Return the XML of a stored page as text."""
    return xml(storage, line).decode()


def of_each(pages):
    """Return what the pages of each section list, joined."""
    joined = dict.fromkeys((name for name, _ in pages), "")
    for name, letters in pages:
        joined[name] += letters
    return joined


class Observed:
    """Knows which pages were rendered, and which stored files were read, since the last build."""

    def __init__(self, storage):
        self.storage = storage
        self.rendered = []
        self.read = 0

    def build(self, **options):
        """Build, and return the result, what was rendered, and what the sections list."""
        self.rendered.clear()
        self.storage.calls.clear()
        result = run(**options)
        self.read = sum(method == "open" for method, _ in self.storage.calls)
        return result, list(self.rendered), of_each(listed(self.storage))


@pytest.fixture
def bench(settings, sections, monkeypatch):
    """Give a site of three sections that lists each URL once."""
    settings.SITEMAPKIT_DEDUPLICATE = True
    settings.SITEMAPKIT_MAX_SHRINK = 1
    for section in ALL:
        sections.add(section)
    observed = Observed(use_storage(settings, "Memory"))
    make_page = module.make_page

    def spy(rendering, local, *others):
        line = Place.objects.get(pk=int(local.name.split("-")[1].split(".")[0]))
        observed.rendered.append((line.section, line.number))
        return make_page(rendering, local, *others)

    monkeypatch.setattr(module, "make_page", spy)
    return observed


db = pytest.mark.django_db


# What is listed where


@pytest.mark.slow
@db
@pytest.mark.inline_runner
def test_the_first_section_wins(bench):
    """In the order of the index; the others report what they leave out, and say where it is."""
    add("firsts", "abc")
    add("seconds", "bxc")
    add("thirds", "xya")
    result, _, pages = bench.build()
    assert pages == {"firsts": "abc", "seconds": "x", "thirds": "y"}
    found = [problem for file in result.files for problem in file.problems]
    assert len(found) == 4
    assert "Duplicate URL: https://www.example.com/all/b is listed by section 'firsts'" in found[0]
    assert "https://www.example.com/all/x is listed by section 'seconds'" in found[2]
    assert {(f.section, f.number): f.duplicates for f in result.files if f.duplicates} == {
        ("seconds", 1): 1,
        ("seconds", 2): 1,
        ("thirds", 1): 1,
        ("thirds", 2): 1,
    }
    assert result.urls == 5
    assert sum(file.skipped for file in result.files) == 4


@db
def test_without_the_setting_each_section_lists_what_it_has(bench, settings):
    """It is off unless it is switched on."""
    del settings.SITEMAPKIT_DEDUPLICATE
    add("firsts", "ab")
    add("seconds", "ba")
    result, _, pages = bench.build()
    assert pages == {"firsts": "ab", "seconds": "ba"}
    assert {file.duplicates for file in result.files} == {0}


@pytest.mark.slow
@db
@pytest.mark.parametrize("letters", ["aab", "aba", "abcda"])
def test_of_two_rows_of_a_section_the_first_is_listed(bench, letters):
    """On one page or on two; a read of the database may have both."""
    add("firsts", letters)
    _, _, pages = bench.build()
    assert pages == {"firsts": "".join(dict.fromkeys(letters))}


@pytest.mark.slow
@db
def test_a_page_of_nothing_but_duplicates_is_empty(bench):
    """And is not in the index."""
    add("firsts", "ab")
    add("seconds", "ab")
    add("thirds", "b")
    result, _, pages = bench.build()
    assert pages == {"firsts": "ab"}
    assert states(result)["seconds", 1] == "empty"
    assert bench.build()[0].status == "unchanged"
    assert bench.rendered == []
    remove("firsts", "a")
    assert bench.build()[2] == {"firsts": "b", "seconds": "a"}


@pytest.mark.slow
@db
def test_items_count_as_rows_do(bench, sections):
    """Sections without a database behind them, too."""
    sections.add(type("Paths", (StaticSection,), {"items": ["/all/a", "/all/p", "/all/p"]}))
    add("firsts", "a")
    _, _, pages = bench.build()
    assert pages == {"firsts": "a", "paths": "p"}


@pytest.mark.slow
@db
@pytest.mark.parametrize("way", ["path", "object", "section"])
def test_what_editors_exclude_another_section_may_list(bench, way):
    """Unless they exclude the URL itself, which is of both."""
    add("firsts", "ab")
    add("seconds", "ab")
    first = Product.objects.filter(shop__slug="firsts", note="a").get()
    if way == "path":
        by_path("/all/a", include=False)
    elif way == "object":
        by_object(first, include=False)
    _, _, pages = bench.build()
    assert (
        pages
        == {
            "path": {"firsts": "b"},
            "object": {"firsts": "b", "seconds": "a"},
            "section": {"firsts": "ab"},
        }[way]
    )


@pytest.mark.slow
@db
@pytest.mark.inline_runner
def test_a_page_that_is_split_lists_what_it_would_have(bench, monkeypatch):
    """What its first rendering has seen does not count for its halves, nor against others."""
    add("firsts", "ab")
    add("seconds", "axb")
    bench.build()
    monkeypatch.setattr("django_sitemapkit.builds.steps.refresh_plan", leave_plan)
    add("firsts", "cdefx")
    add("seconds", "cyzwv")
    result, rendered, pages = bench.build()
    assert pages == {"firsts": "abcdefx", "seconds": "yzwv"}
    assert len(rendered) > len([file for file in result.files if file.section])


@pytest.mark.slow
@db
def test_another_site_has_its_own(settings, sections):
    """One lists what the other one does."""
    settings.SITEMAPKIT_DEDUPLICATE = True
    for section in ALL:
        sections.add(section)
    use_storage(settings, "Memory")
    add("firsts", "a")
    add("seconds", "ab")
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example.com"},
        "two": {"BASE_URL": "https://two.example.com", "SECTIONS": ["seconds"]},
    }
    assert [build(site).urls for site in all_sites()] == [2, 2]


# Builds after a change


@pytest.fixture
def built(bench):
    """Give the site published: four pages, of which the last one leaves out a duplicate."""

    def make():
        add("firsts", "abcd")
        add("seconds", "xayz")
        add("thirds", "tu")
        _, _, pages = bench.build()
        assert pages == {"firsts": "abcd", "seconds": "xyz", "thirds": "tu"}

    once((__name__, "built"), make)
    return bench


@db
def test_nothing_is_made_or_read_where_nothing_has_changed(built):
    """Though a page has left out a duplicate: what came before it is what it was."""
    result, rendered, _ = built.build()
    assert (result.status, rendered, built.read) == ("unchanged", [], 0)
    assert sum(file.duplicates for file in result.files) == 1
    assert sum(len(file.problems) for file in result.files) == 1


@pytest.mark.slow
@db
def test_a_page_of_the_same_urls_has_no_other_made_or_read(built):
    """The digests tell that the others may stay as they are."""
    Product.objects.filter(shop__slug="firsts", note="c").update(updated_at=None)
    result, rendered, _ = built.build()
    assert (result.status, rendered, built.read) == ("published", [("firsts", 2)], 0)
    assert built.build()[:2][1] == []


@pytest.mark.slow
@db
def test_a_url_that_comes_first_leaves_a_later_page(built):
    """That is rendered again though its rows are what they were, and no other is."""
    Product.objects.filter(shop__slug="firsts", note="d").update(note="t")
    _, rendered, pages = built.build()
    assert pages == {"firsts": "abct", "seconds": "xyz", "thirds": "u"}
    assert rendered == [("firsts", 2), ("thirds", 1)]
    assert built.build()[0].status == "unchanged"
    assert (built.rendered, built.read) == ([], 0)


@db
def test_a_url_that_goes_is_listed_by_a_later_page(built):
    """The one that has left it out."""
    remove("firsts", "a")
    _, rendered, pages = built.build()
    assert pages == {"firsts": "bcd", "seconds": "xayz", "thirds": "tu"}
    assert rendered == [("firsts", 1), ("seconds", 1)]


@db
def test_a_url_that_comes_late_is_left_out(built):
    """The pages before keep their files; its own is made once more without it."""
    add("thirds", "xv")
    _, rendered, pages = built.build()
    assert pages == {"firsts": "abcd", "seconds": "xyz", "thirds": "tuv"}
    assert rendered == [("thirds", 2)] * 2


@pytest.mark.slow
@db
def test_a_duplicate_that_leaves_the_file_as_it_was_is_remembered(built):
    """It is listed when it is none any more."""
    remove("thirds", "u")
    built.build()
    add("thirds", "x")
    assert built.build()[0].status == "unchanged"
    remove("seconds", "x")
    assert built.build()[2] == {"firsts": "abcd", "seconds": "yz", "thirds": "tx"}


@pytest.mark.slow
@db
def test_a_page_made_anew_trusts_its_former_urls_only_if_those_before_are_the_same(bench):
    """One before it may have been built by itself since, and keep its file now."""
    add("firsts", "abcd")
    add("thirds", "tu")
    bench.build()
    Product.objects.filter(note="d").update(note="t")
    bench.build(sections=["firsts"])
    Product.objects.filter(note="u").update(updated_at=None)
    _, rendered, pages = bench.build()
    assert pages == {"firsts": "abct", "thirds": "u"}
    assert set(rendered) == {("thirds", 1)}


@pytest.mark.slow
@db
def test_an_override_counts_as_a_row_does(built):
    """Set or taken back, it has the pages made that it concerns, and those behind."""
    row = Product.objects.filter(shop__slug="firsts", note="a").get()
    override = by_object(row, include=False)
    _, rendered, pages = built.build()
    assert pages == {"firsts": "bcd", "seconds": "xayz", "thirds": "tu"}
    assert rendered == [("firsts", 1), ("seconds", 1)]
    override.delete()
    assert built.build()[2] == {"firsts": "abcd", "seconds": "xyz", "thirds": "tu"}


@pytest.mark.slow
@db
def test_a_section_that_goes_or_moves_gives_its_urls_to_others(built, sections):
    """The order of the index is that of the registry."""
    sections.remove("firsts")
    assert built.build()[2] == {"seconds": "xayz", "thirds": "tu"}
    sections.add(ALL[0])
    assert built.build()[2] == {"seconds": "xayz", "thirds": "tu", "firsts": "bcd"}


@db
@pytest.mark.parametrize("way", ["full", "dry"])
def test_a_full_build_and_a_dry_run_say_the_same(built, way):
    """They make all pages, and store none."""
    remove("seconds", "y")
    built.build()
    built.storage.calls.clear()
    result = run(full=True) if way == "full" else preview(SITE)
    assert {file.state for file in result.files} == {"same"}
    assert sum(file.duplicates for file in result.files) == 1
    assert built.storage.saved() == []


@db
def test_a_dry_run_of_a_section_knows_what_the_others_have_published(built):
    """Those before it."""
    add("seconds", "b")
    files = preview(SITE, sections=["seconds"]).files
    assert [(file.urls, file.duplicates) for file in files] == [(1, 1), (2, 1)]


@db
def test_pages_are_due_for_duplicates(built, settings):
    """Where the setting is switched, and where what is before them is due."""
    assert [section.pages for section in due_by_section(SITE)] == [{}, {}, {}]
    Product.objects.filter(shop__slug="firsts", note="d").update(note="v")
    reasons = {section.section: section.pages for section in due_by_section(SITE)}
    assert reasons == {
        "firsts": {"rows": 1},
        "seconds": {"duplicates": 1},
        "thirds": {},
    }
    Product.objects.filter(note="v").update(note="d")
    settings.SITEMAPKIT_DEDUPLICATE = False
    reasons = {section.section: section.pages for section in due_by_section(SITE)}
    assert reasons == {"firsts": {}, "seconds": {"again": 1}, "thirds": {}}


# The setting


@pytest.mark.slow
@db
@pytest.mark.inline_runner
def test_switched_on_it_makes_the_pages_concerned(built, settings):
    """And switched off again; the others keep their files, which are read when it is on."""
    settings.SITEMAPKIT_DEDUPLICATE = False
    _, rendered, pages = built.build()
    assert pages == {"firsts": "abcd", "seconds": "xayz", "thirds": "tu"}
    assert rendered == [("seconds", 1)]
    add("thirds", "xv")
    built.build()
    settings.SITEMAPKIT_DEDUPLICATE = True
    _, rendered, pages = built.build()
    assert pages == {"firsts": "abcd", "seconds": "xyz", "thirds": "tuv"}
    assert rendered == [("seconds", 1), ("thirds", 2)]


@pytest.mark.slow
@db
def test_switched_on_where_nothing_stands_twice_it_reads_all_once(bench, settings):
    """The build is unchanged, and the manifest says what is known now."""
    settings.SITEMAPKIT_DEDUPLICATE = False
    add("firsts", "ab")
    add("seconds", "xy")
    bench.build()
    settings.SITEMAPKIT_DEDUPLICATE = True
    result, rendered, _ = bench.build()
    assert (result.status, rendered, bench.read) == ("unchanged", [], 2)
    bench.build()
    assert bench.read == 0


# Builds of some pages


@pytest.mark.slow
@db
def test_a_build_of_one_section_leaves_out_what_is_published_before_it(built):
    """What it lists itself the sections behind it leave out in the next build of all."""
    add("seconds", "bt")
    _, rendered, pages = built.build(sections=["seconds"])
    assert pages == {"firsts": "abcd", "seconds": "xyzt", "thirds": "tu"}
    assert {name for name, _ in rendered} == {"seconds"}
    _, rendered, pages = built.build()
    assert pages == {"firsts": "abcd", "seconds": "xyzt", "thirds": "u"}
    assert rendered == [("thirds", 1)]


@pytest.mark.slow
@db
def test_excluding_at_once_makes_one_page_and_the_next_build_the_others(built):
    """Just its own page is made at once; what that lists now the next build takes from others."""
    Product.objects.filter(shop__slug="firsts", note="c").update(note="t")
    built.rendered.clear()
    publish_override(SITE, by_path("/all/d", include=False))
    assert of_each(listed(built.storage)) == {"firsts": "abt", "seconds": "xyz", "thirds": "tu"}
    assert built.rendered == [("firsts", 2)]
    assert built.build()[2] == {"firsts": "abt", "seconds": "xyz", "thirds": "u"}
    Product.objects.filter(shop__slug="firsts", note="t").update(note="c")
    publish_override(SITE, by_path("/all/a", include=False))
    built.build()
    assert of_each(listed(built.storage)) == {"firsts": "bc", "seconds": "xyz", "thirds": "tu"}


@pytest.mark.slow
@db
def test_excluding_once_more_leaves_out_what_was_left_out_before(bench, monkeypatch):
    """Nothing is compared, and nothing is left that a comparison would need."""
    monkeypatch.setattr(Rows, "limit", 4)
    add("firsts", "a")
    add("seconds", "abcd")
    bench.build()
    for letter in "bc":
        publish_override(SITE, by_path(f"/all/{letter}", include=False))
    assert of_each(listed(bench.storage)) == {"firsts": "a", "seconds": "d"}
    assert not Place.objects.filter(url_hashes__isnull=False).exists()
    assert bench.build()[2] == {"firsts": "a", "seconds": "d"}


@pytest.mark.slow
@db
def test_a_lost_page_of_another_section_that_has_grown_is_split(bench, settings, monkeypatch):
    """It is compared as a page of the build, whatever is known of its URLs."""
    settings.SITEMAPKIT_DEDUPLICATE = False
    add("firsts", "ab")
    add("seconds", "ab")
    bench.build()
    settings.SITEMAPKIT_DEDUPLICATE = True
    bench.storage.delete(manifest()["firsts", 1].name)
    add("firsts", "cd")
    monkeypatch.setattr("django_sitemapkit.builds.steps.refresh_plan", leave_plan)
    bench.build(sections=["seconds"])
    assert {row.status for row in manifest().values()} <= {"done", "empty"}
    assert of_each(listed(bench.storage))["firsts"] == "abcd"


# Ends of all kinds


@pytest.mark.slow
@db
@pytest.mark.parametrize("count", few(1, [3, 1, 2, 4, 5]))
def test_a_killed_build_is_finished(bench, count):
    """Its pages are read for what they list, and the others are made."""
    add("firsts", "abcd")
    add("seconds", "xayz")
    add("thirds", "tdx")

    def on_file(result, place, total):
        if place == count:
            raise Killed

    with pytest.raises(Killed):
        bench.build(on_file=on_file)
    result, _, pages = bench.build()
    assert result.adopted == count
    assert result.status == "published"
    assert pages == {"firsts": "abcd", "seconds": "xyz", "thirds": "t"}


@db
def test_a_killed_build_of_the_other_setting_is_given_up(built, settings):
    """Its pages were made without a look at each other."""

    def on_file(result, place, total):
        raise Killed

    add("firsts", "t")
    settings.SITEMAPKIT_DEDUPLICATE = False
    with pytest.raises(Killed):
        run(full=True, on_file=on_file)
    settings.SITEMAPKIT_DEDUPLICATE = True
    result, _, pages = built.build()
    assert result.abandoned
    assert pages == {"firsts": "abcdt", "seconds": "xyz", "thirds": "u"}


@pytest.mark.slow
@db
def test_a_build_that_is_held_back_is_compared_with(built, settings):
    """The build after it is the same; it makes what the published one leaves out once more."""
    settings.SITEMAPKIT_MAX_SHRINK = 0
    remove("firsts", "a")
    remove("firsts", "b")
    result = run()
    assert result.status == "held"
    built.rendered.clear()
    assert run().build == result.build
    assert built.rendered in ([], [("seconds", 1)])
    publish(SITE, result.build)
    assert built.build()[2] == {"firsts": "cd", "seconds": "xayz", "thirds": "tu"}


@pytest.mark.slow
@db
def test_an_earlier_build_that_is_gone_back_to_counts(built):
    """What is published is what pages are compared with."""
    first = Build.objects.get().pk
    remove("firsts", "a")
    built.build()
    publish(SITE, first)
    assert built.build()[2] == {"firsts": "bcd", "seconds": "xayz", "thirds": "tu"}


@db
def test_a_stored_page_that_cannot_be_read_is_made_anew(built):
    """It may list what an earlier one does now."""
    broken = manifest()["thirds", 1].name
    Product.objects.filter(shop__slug="firsts", note="d").update(note="t")

    def fault(count, method, name, args, proceed):
        return failing()(method, name, args, proceed) if name == broken else proceed()

    built.storage.on_call = fault
    assert run().status == "published"
    built.storage.on_call = None
    assert of_each(listed(built.storage)) == {"firsts": "abct", "seconds": "xyz", "thirds": "u"}
    assert ("thirds", 1) in built.rendered


def cut_short(built, line, size):
    """Leave that many bytes of a stored page."""
    built.storage.put(line.name, built.storage.contents()[line.name][:size])


@pytest.mark.slow
@db
@pytest.mark.parametrize("size", [0, 60])
def test_damaged_pages_that_others_have_to_know_are_made_anew(built, size):
    """Though they were to keep their files; so is one further on, by the same build."""
    before = manifest()
    cut_short(built, before["firsts", 1], size)
    cut_short(built, before["seconds", 2], size)
    Product.objects.filter(shop__slug="seconds", note="x").update(note="b")
    add("thirds", "xz")

    def kill(result, place, total):
        raise Killed

    with suppress(Killed):
        run(on_file=kill)
    result, _, pages = built.build()
    assert (result.status, result.abandoned) == ("published", "")
    assert pages == {"firsts": "abcd", "seconds": "yz", "thirds": "tux"}
    after = manifest()
    assert after["firsts", 1].page.sha256 == before["firsts", 1].page.sha256
    assert after["firsts", 1].name != before["firsts", 1].name
    assert after["firsts", 2].name == before["firsts", 2].name
    assert run().status == "unchanged"


@pytest.mark.slow
@db
def test_excluding_at_once_reads_no_other_page(built):
    """One may be damaged; the next build makes that again, and compares what others list now."""
    cut_short(built, manifest()["firsts", 1], 60)
    Product.objects.filter(shop__slug="firsts", note="c").update(note="t")
    publish_override(SITE, by_object(Product.objects.get(note="d"), include=False))
    assert "/all/d" not in text(built.storage, manifest()["firsts", 2])
    assert built.build()[2] == {"firsts": "abt", "seconds": "xyz", "thirds": "u"}


@pytest.mark.slow
@db
@pytest.mark.parametrize("way", ["first", "later"])
def test_a_damaged_page_does_not_stay_because_it_is_made_the_same(built, way):
    """It was read to learn whether it may stay, and its content is what it was."""
    line = manifest()["thirds", 1]
    cut_short(built, line, 0 if way == "first" else 60)
    Product.objects.filter(shop__slug="firsts", note="d").update(note="v")
    _, rendered, pages = built.build()
    assert ("thirds", 1) in rendered
    assert pages == {"firsts": "abcv", "seconds": "xyz", "thirds": "tu"}
    assert manifest()["thirds", 1].name != line.name


@pytest.mark.slow
@db
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("dry", [True, False])
def test_a_build_of_one_section_makes_a_lost_page_of_another(built, settings, caplog, known, dry):
    """A dry run does without, as the log says."""
    if not known:
        settings.SITEMAPKIT_DEDUPLICATE = False
        run(full=True)
        settings.SITEMAPKIT_DEDUPLICATE = True
    built.storage.delete(manifest()["firsts", 1].name)
    add("seconds", "bd")
    with caplog.at_level("WARNING", "django_sitemapkit"):
        result = preview(SITE, sections=["seconds"]) if dry else run(sections=["seconds"])
    assert caplog.text.count("Its URLs may be listed twice") == 1
    urls = [file.urls for file in result.files if file.section == "seconds"]
    assert sum(urls) == (5 if dry else 3)  # "a" and "b" again if nobody knows that they are listed.
    assert built.build()[2] == {"firsts": "abcd", "seconds": "xyz", "thirds": "tu"}


# Any sequence of changes


def insert(name, letter):
    """Add a row."""
    add(name, letter)


def move(name, letter):
    """Let a row have another URL, the next letter."""
    row = Product.objects.filter(shop__slug=name, note=letter).first()
    if row is not None:
        Product.objects.filter(pk=row.pk).update(note=chr(ord(letter) + 1))


def pass_on(name, letter):
    """Let a row go to the next section."""
    shop, _ = Shop.objects.get_or_create(slug=NAMES[NAMES.index(name) - 2])
    Product.objects.filter(shop__slug=name, note=letter).update(shop=shop)


def insert_some(name, letter):
    """Add rows until pages are split by the next build."""
    add(name, f"{letter}abc")


def split(name, letter):
    """Let rows come after the plan is made, so that the build itself splits pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django_sitemapkit.builds.steps.refresh_plan", leave_plan)
        add(name, f"b{letter}d")
        run()


def remove_some(name, letter):
    """Delete rows until pages are merged by the next build."""
    Product.objects.filter(shop__slug=name, note__gt=letter).delete()


def extra_url(name, letter):
    """Add a URL by hand, or take it back: the last section has it, if no other."""
    if not ExtraUrl.objects.filter(path=f"/all/{letter}").delete()[0]:
        extra(f"/all/{letter}")


def touch(name, letter):
    """Let the pages with a row be others, and their URLs not."""
    Product.objects.filter(shop__slug=name, note=letter).update(updated_at=None)


def exclude_row(name, letter):
    """Exclude a row, and whichever has its URL in other sections is listed there."""
    row = Product.objects.filter(shop__slug=name, note=letter).first()
    if row and not UrlOverride.objects.filter(object_id=row.pk).exists():
        by_object(row, include=False)


def exclude_url(name, letter):
    """Exclude a URL, or take that back."""
    overrides = UrlOverride.objects.filter(path=f"/all/{letter}")
    if not overrides.delete()[0]:
        by_path(f"/all/{letter}", include=False)


def exclude_at_once(name, letter):
    """Exclude a URL, and do not wait for a build."""
    if not UrlOverride.objects.filter(path=f"/all/{letter}").exists():
        publish_override(SITE, by_path(f"/all/{letter}", include=False))


def switch(name, letter):
    """Switch de-duplication off; the next build is switched on."""
    with override_settings(SITEMAPKIT_DEDUPLICATE=False):
        run()


def only(name, letter):
    """Build one section."""
    run(sections=[name])


def kill(name, letter):
    """Let a build die."""

    def on_file(result, place, total):
        if place == ord(letter) - ord("a"):
            raise Killed

    with suppress(Killed):
        run(on_file=on_file)


def go_back(name, letter):
    """Publish an earlier build."""
    builds = Build.objects.exclude(published_at=None).filter(pruned_at=None).order_by("pk")
    publish(SITE, builds[ord(letter) % builds.count()].pk)


def turn(name, letter):
    """Let the sections have another order."""
    registry._sections[name] = registry._sections.pop(name)


def everything(name, letter):
    """Build, and find each URL where it belongs."""
    run()
    assert found_in_each() == expected()


def in_full(name, letter):
    """Build, and render all pages."""
    run(full=True)
    assert found_in_each() == expected()


def found_in_each():
    """Return what the pages of each section list, sorted; a URL that is twice there is twice."""
    pages = of_each(listed())
    pages.pop("keeping", None)
    return {name: "".join(sorted(letters)) for name, letters in pages.items()}


STEP = st.tuples(
    st.sampled_from(
        [
            *(insert, insert, move, move, remove, touch, turn),
            *(pass_on, insert_some, remove_some, split, extra_url),
            *(everything, everything, everything, in_full, only, kill, switch, go_back),
            *(exclude_row, exclude_url, exclude_at_once),
        ]
    ),
    st.sampled_from(NAMES),
    st.sampled_from("abcdefg"),
)


def expected():
    """Return what each section has to list: what no section before it has."""
    excluded = set(UrlOverride.objects.exclude(path="").values_list("path", flat=True))
    rows = UrlOverride.objects.filter(path="").values_list("object_id", flat=True)
    before, found = set(), {}
    for name in registry._sections:
        notes = Product.objects.filter(shop__slug=name).exclude(pk__in=list(rows))
        letters = set(notes.values_list("note", flat=True)) if name in NAMES else set()
        if name == "keeping":
            letters = {path[-1] for path in registry._sections[name].items}
        letters = {letter for letter in letters if f"/all/{letter}" not in excluded} - before
        before |= letters
        if letters and name != "keeping":
            found[name] = "".join(sorted(letters))
    paths = ExtraUrl.objects.values_list("path", flat=True)
    extras = {path[-1] for path in paths if path not in excluded} - before
    return found | ({EXTRA_URLS: "".join(sorted(extras))} if extras else {})


@contextmanager
def keeping_site():
    """Give the storage of a site that lists each URL once; one section of it has no rows."""
    options = {"SITEMAPKIT_DEDUPLICATE": True, "SITEMAPKIT_MAX_SHRINK": 1}
    keeping = type("Keeping", (StaticSection,), {"items": ["/all/z"]})
    with override_settings(**options), site_of(*ALL, keeping) as storage:
        yield storage


@pytest.mark.slow
@db
@pytest.mark.parametrize("runner", EACH_RUNNER)
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([(remove, "firsts", "a"), (insert, "thirds", "x")], id="rows"),
        pytest.param(
            [(pass_on, "firsts", "a"), (insert, "firsts", "y"), (pass_on, "firsts", "y")],
            id="between sections",
        ),
        pytest.param(
            [(exclude_row, "firsts", "a"), (exclude_url, "", "a"), (exclude_url, "", "a")],
            id="overrides",
        ),
        pytest.param(
            [(split, "firsts", "t"), (remove_some, "firsts", "a")],
            id="split and merged",
        ),
        pytest.param(
            [(extra_url, "", "a"), (remove_some, "seconds", "0"), (remove, "firsts", "a")],
            id="extra URLs",
        ),
        pytest.param([(move, "firsts", "a"), (switch, "", "")], id="switched off for a build"),
    ],
)
@pytest.mark.inline_runner
def test_each_change_ends_in_each_url_once(runner, changes):
    """By each runner; the next build finds nothing to do, and so does a full one."""
    with keeping_site(), by(runner):
        for name, letters in zip(NAMES, ("abcd", "xayw", "tu"), strict=True):
            add(name, letters)
        run()
        for change, name, letter in changes:
            change(name, letter)
            everything(name, letter)
        assert run(full=runner == "shuffled").status == "unchanged"
        assert found_in_each() == expected()


@pytest.mark.thorough
class AnySequence(TestCase):
    @effort(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(st.tuples(STEP, st.sampled_from(sorted(RUNNERS))), max_size=14))
    def test_any_sequence_of_changes_ends_in_each_url_once(self, steps):
        """On the first section's page, whatever was built in between, by each runner."""
        with keeping_site() as storage:
            for name in NAMES:
                add(name, "abac")
            run()
            for (change, name, letter), runner in steps:
                with by(runner):
                    change(name, letter)
            with by(steps[-1][1] if steps else "shuffled"):
                run()
            pages = of_each(listed(storage))
            assert pages["keeping"] == "z"
            assert found_in_each() == expected()
            storage.calls.clear()
            assert run(full=True).status == "unchanged"
            assert storage.saved() == []
            with override_settings(SITEMAPKIT_DEDUPLICATE=False):
                run()
            union = {letter for _, letters in listed(storage) for letter in letters}
            assert union == {"z", *chain.from_iterable(pages.values())}


# What a page lists


def urls(numbers):
    """Return URLs of the usual length."""
    return [f"https://www.example.com/category/something-to-buy-{number}/" for number in numbers]


def hashes(numbers):
    """Return the sorted hashes of URLs."""
    return array("q", sorted(hashes_of(urls(numbers))))


def test_what_stands_twice_on_a_page_is_found_once():
    """The first is no duplicate, unless an earlier page lists it."""
    (one,) = hashes_of(urls([1]))
    row = Place(section="b", prefix_digest="of a", duplicate_hashes=hashes_to_hex({one: "a"}))
    page = PageDeduplicator(row)
    assert page.already_listed(urls([5, 1, 5, 1, 6])) == {
        1: "section 'a'",
        2: "section 'b'",
        3: "section 'a'",
    }
    page.add_listed(urls([5, 6]))
    assert page.already_listed(urls([6, 7])) == {0: "section 'b'"}
    page.add_listed(urls([7]))
    assert page.set_url_facts(row) == hashes([1, 5, 6, 7])
    assert row.urls_digest == urls_digest_of(hashes([5, 6, 7]))
    assert row.duplicate_hashes == hashes_to_hex({one: "a"})
