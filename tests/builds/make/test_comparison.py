"""Workers that know nothing of each other list what one process lists that makes pages in order."""

import random
from array import array
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from django_sitemapkit import Section, StaticSection
from django_sitemapkit.builds import InlineRunner, PageBuilder, Runner
from django_sitemapkit.builds.lease import ClaimLease, ClaimLimits, PageChanged
from django_sitemapkit.builds.make import deduplication as page_runs
from django_sitemapkit.builds.make.deduplication import (
    PageRuns,
    hashes_from_hex,
    hashes_of,
    hashes_to_hex,
)
from django_sitemapkit.builds.manifest import SiteBuilds, index_order
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Build, Place
from django_sitemapkit.overrides import sections_of
from tests.builds import SITE, leave_plan, manifest, run, states
from tests.builds.make import test_deduplication
from tests.builds.make.test_deduplication import ALL, NAMES, STEP, add, listed, of_each, remove
from tests.builds.make.test_incremental import site_of
from tests.builds.storages import Killed
from tests.overrides.setting import by_path
from tests.testapp.models import Product

db = pytest.mark.django_db
pytestmark = pytest.mark.inline_runner  # Each names its own.


class Scattered(Runner):
    """Makes each page by a builder that knows ids only, in any order, and some of them twice."""

    def __init__(self, seed=0, *, once=False):
        super().__init__()
        self.once = once
        self.random = random.Random(seed)
        self.made = []

    def run(self, builder, rows):
        """Make the pages, of which some were begun before others were recorded."""
        ids = [row.pk for row in rows]
        if not self.once:
            ids += self.random.sample(ids, (len(ids) + 1) // 3)
        begun = [Place.objects.get(pk=pk) for pk in ids]
        self.random.shuffle(begun)
        ended = set()
        for row in begun:
            if not Place.objects.filter(pk=row.pk, number=row.number, upper=row.upper).exists():
                continue  # A process that begins a page which another one has split gives it up.
            record = Build.objects.get(pk=builder.record_of_build.pk)
            with PageBuilder(SiteBuilds(SITE), record, builder.lease, sections_of(SITE)) as worker:
                self.made.append((row.section, row.number))
                result = worker.build(row)
            if result is not None and row.pk not in ended:
                ended.add(row.pk)
                yield result


def outcome_of(result):
    """Return what a result says of the pages, in any order."""
    return sorted(
        (
            *(file.section, file.number, file.urls, file.xml_bytes, file.skipped),
            *(file.duplicates, file.problems, sorted(file.kinds.items())),
        )
        for file in result.files
        if file.section
    )


def said(build=None):
    """Return what the manifest says of the pages that does not depend on the moment."""
    fields = (
        *("section", "number", "lower", "upper", "first", "last", "status"),
        *("skipped", "problems", "fingerprint", "duplicates", "duplicate_hashes"),
        *("prefix_digest", "urls_digest"),
    )
    facts = ("sha256", "urls", "xml_bytes", "lastmods")
    rows = sorted(manifest(build).values(), key=index_order)
    return [
        {
            **{field: getattr(row, field) for field in fields},
            **{fact: getattr(row.page, fact, None) for fact in facts},
        }
        for row in rows
        if row.section
    ]


def differing(ones, others):
    """Return what manifests say differently: section, number, field and both values."""
    pages = [{(row["section"], row["number"]): row for row in rows} for rows in (ones, others)]
    return [
        (*key, field, *(rows.get(key, {}).get(field) for rows in pages))
        for key in sorted(pages[0].keys() | pages[1].keys())
        for field in pages[0].get(key, pages[1].get(key))
        if pages[0].get(key, {}).get(field) != pages[1].get(key, {}).get(field)
    ]


bench, built = test_deduplication.bench, test_deduplication.built


@pytest.fixture
def storage(bench):
    """Give the storage of a site of three sections that lists each URL once."""
    return bench.storage


@pytest.mark.slow
@db
def test_pages_that_lose_a_url_are_made_again(bench):
    """And no others; the next build knows what they leave out, and makes each page once."""
    add("firsts", "abcd")
    add("seconds", "xayz")
    add("thirds", "tux")
    result, rendered, pages = bench.build(runner=Scattered())
    assert pages == {"firsts": "abcd", "seconds": "xyz", "thirds": "tu"}
    again = {page: rendered.count(page) > 1 for page in rendered}
    assert again["seconds", 1]
    assert len(states(result)) == len(result.files) == 7
    assert not Place.objects.filter(url_hashes__isnull=False).exists()
    found = said()
    second, rendered, _ = bench.build(full=True, runner=Scattered(once=True))
    assert (second.status, len(rendered)) == ("unchanged", 6)
    assert outcome_of(second) == outcome_of(result)
    assert said() == found
    assert run(full=True).status == "unchanged"
    assert said() == found


@db
def test_an_unchanged_build_renders_and_reads_nothing(built):
    """Though a page leaves out a duplicate."""
    result, rendered, _ = built.build(runner=Scattered())
    assert (result.status, rendered, built.read) == ("unchanged", [], 0)


@db
def test_a_page_of_other_values_has_no_other_read(built):
    """What it lists is what it listed before, as the digests tell; its own file is verified."""
    Product.objects.filter(note="z").update(updated_at=None)
    result, rendered, _ = built.build(runner=Scattered(once=True))
    assert (result.status, rendered, built.read) == ("published", [("seconds", 2)], 0)


@db
def test_a_stored_page_that_loses_a_url_is_made_once(built):
    """Its file tells what it has to leave out; one whose duplicate is still one keeps its file."""
    Product.objects.filter(note="d").update(note="t")
    _, rendered, pages = built.build(runner=Scattered(once=True))
    assert pages == {"firsts": "abct", "seconds": "xyz", "thirds": "u"}
    assert rendered == [("firsts", 2), ("thirds", 1)]


@pytest.mark.slow
@db
@pytest.mark.parametrize("again", [{}, {"full": True}, {"runner": Scattered()}])
def test_a_url_that_goes_is_listed_by_the_page_that_left_it_out(built, again):
    """Though that page keeps its rows; later builds leave it there."""
    remove("firsts", "a")
    pages = {"firsts": "bcd", "seconds": "xayz", "thirds": "tu"}
    assert built.build(runner=Scattered())[2] == pages
    result, _, found = built.build(**again)
    assert (result.status, found) == ("unchanged", pages)


@pytest.mark.slow
@db
def test_a_page_that_fits_without_its_duplicates_is_not_split(storage, monkeypatch):
    """Though it exceeds its limit with them, and nothing is known of them at first."""
    add("firsts", "abcd")
    add("seconds", "xy")
    run()
    monkeypatch.setattr("django_sitemapkit.builds.steps.refresh_plan", leave_plan)
    add("seconds", "abc")
    add("thirds", "tuvwx")
    run(runner=Scattered())
    found = said()
    assert of_each(listed()) == {"firsts": "abcd", "seconds": "xy", "thirds": "tuvw"}
    assert run(full=True).status == "unchanged"
    assert said() == found


@pytest.mark.slow
@db
@pytest.mark.parametrize("runner", [InlineRunner(), Scattered(3)])
@pytest.mark.parametrize("count", [1, 3, 5, 7])
def test_a_killed_build_is_adopted_by_any_runner(storage, count, runner):
    """What was made without a look at other pages is compared, whichever process goes on."""
    add("firsts", "abcd")
    add("seconds", "xayz")
    add("thirds", "tdx")

    def on_file(result, place, total):
        nonlocal count
        count -= 1
        if not count:
            raise Killed

    with suppress(Killed):
        run(runner=Scattered(count), on_file=on_file)
    result = run(runner=runner)
    assert result.adopted or count > 0
    assert of_each(listed()) == {"firsts": "abcd", "seconds": "xyz", "thirds": "t"}
    assert not Place.objects.filter(url_hashes__isnull=False).exists()


@pytest.mark.slow
@db
def test_a_build_in_order_is_adopted_by_workers(storage):
    """What it has made stays, and workers make the others."""
    add("firsts", "abcd")
    add("seconds", "xayz")
    add("thirds", "tdx")

    def on_file(result, place, total):
        if place == 3:
            raise Killed

    with suppress(Killed):
        run(on_file=on_file)
    runner = Scattered()
    assert run(runner=runner).adopted
    assert ("firsts", 1) not in runner.made
    assert of_each(listed()) == {"firsts": "abcd", "seconds": "xyz", "thirds": "t"}


@pytest.mark.slow
@db
def test_a_page_recorded_late_changes_nothing(storage):
    """Another worker has made it, and the pages are compared."""
    add("firsts", "a")
    add("seconds", "ax")

    class Late(Scattered):
        late = None

        def run(self, builder, rows):
            if self.late is None:
                builds, record = SiteBuilds(SITE), builder.record_of_build
                lease = ClaimLease(builder.lease.row, record, ClaimLimits(in_flight=1))
                self.late = stack.enter_context(
                    PageBuilder(builds, record, lease, sections_of(SITE))
                )
                page = self.late.render(lease.claim())
                yield from super().run(builder, rows)
                with pytest.raises(PageChanged):
                    self.late.record(page)
            else:
                yield from super().run(builder, rows)

    with ExitStack() as stack:
        run(runner=Late(once=True))
    assert of_each(listed()) == {"firsts": "a", "seconds": "x"}


@pytest.mark.slow
@db
def test_pages_that_change_with_each_rendering_do_not_go_on_for_ever(storage, sections, caplog):
    """The log says so, and the build is published."""
    numbers = iter(range(1_000))

    class Restless(Section):
        name = "restless"
        queryset = Product.objects.filter(shop__slug="thirds")
        limit = 2

        def location(self, item):
            number = next(numbers)
            return f"/all/{'abcdefghijklmnopqrstuvwxyz'[number % 26]}"

    sections.add(Restless)
    add("firsts", "abcdefghijklmnopqrstuvwxyz")
    add("thirds", "123")
    with caplog.at_level("WARNING", "django_sitemapkit"):
        assert run(runner=Scattered()).status == "published"
    assert "changes with each rendering. Its URLs may be listed twice." in caplog.text


@pytest.mark.slow
@db
def test_the_urls_of_builds_that_were_given_up_are_deleted(storage, settings):
    """By the next build that compares pages."""
    add("firsts", "ab")
    add("seconds", "ax")

    def on_file(result, place, total):
        raise Killed

    with suppress(Killed):
        run(runner=Scattered(), on_file=on_file)
    assert Place.objects.filter(url_hashes__isnull=False).exists()
    settings.SITEMAPKIT_SCHEMA_LOCATION = True
    assert run(runner=Scattered()).abandoned
    assert not Place.objects.filter(url_hashes__isnull=False).exists()


@pytest.mark.slow
@db
def test_a_killed_build_of_another_secret_key_is_given_up(storage, settings):
    """Its hashes tell nothing any more."""
    add("firsts", "ab")
    add("seconds", "ax")

    def on_file(result, place, total):
        raise Killed

    with suppress(Killed):
        run(runner=Scattered(), on_file=on_file)
    settings.SECRET_KEY = "another"
    assert run(runner=Scattered()).abandoned
    assert of_each(listed()) == {"firsts": "ab", "seconds": "x"}


class AnyWorkers(TestCase):
    @pytest.mark.thorough
    @effort(max_examples=10, suppress_health_check=list(HealthCheck))
    @given(
        steps=st.lists(st.tuples(STEP, st.booleans()), max_size=8),
        letters=st.lists(st.text("abcdefg", max_size=6), min_size=3, max_size=3),
        limit=st.integers(1, 4),
        seed=st.integers(0, 1_000),
        grows=st.lists(st.text("abcdefgh", max_size=5), min_size=3, max_size=3),
    )
    def test_they_make_what_one_process_makes(self, steps, letters, limit, seed, grows):
        """For any rows, limits, overrides and changes, also of rows that come during the build."""
        options = {"SITEMAPKIT_DEDUPLICATE": True, "SITEMAPKIT_MAX_SHRINK": 1}
        keeping = type("Keeping", (StaticSection,), {"items": ["/all/z", "/all/a"]})
        declared = [type(each.__name__, (each,), {"limit": limit}) for each in ALL]
        with override_settings(**options), site_of(*declared, keeping):
            for name, some in zip(NAMES, letters, strict=True):
                add(name, some)
            run(runner=Scattered(seed))
            for (change, name, letter), builds in steps:
                change(name, letter)
                if builds:
                    run(runner=Scattered(seed))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("django_sitemapkit.builds.steps.refresh_plan", leave_plan)
                for name, some in zip(NAMES, grows, strict=True):
                    add(name, some)
                result = run(full=True, runner=Scattered(seed))
                found = said()
                full = run(full=True)
                later = run(runner=Scattered(seed))
            assert differing(found, said()) == []
            assert outcome_of(full) == outcome_of(result)
            assert (full.status, later.status) == ("unchanged", "unchanged")


# What it is made of


def test_pages_that_share_hashes_are_found(tmp_path, monkeypatch):
    """In parts of few hashes as in one; the first page that has one counts."""
    numbers = random.Random(5)
    pages = [
        sorted({numbers.randrange(-(2**63), 2**63) for _ in range(50)} | {-(2**63), 2**63 - 1})
        for _ in range(4)
    ]
    pages[2] = sorted({*pages[2], *pages[0][:7], *pages[1][:9]})
    expected = []
    known = {}
    for page, section in zip(pages, "abca", strict=True):
        expected.append({one: known[one] for one in page if one in known})
        known |= {one: section for one in page if one not in known}
    for size in (1, 7, 10_000):
        monkeypatch.setattr(page_runs, "HASHES_PER_PART", size)
        monkeypatch.setattr(page_runs, "HASHES_PER_READ", size // 2 + 1)
        with closing(PageRuns(tmp_path / "runs")) as runs:
            names = [("a", 1), ("b", 1), ("c", 1), ("a", 2)]
            runs["a", 2] = array("q", [5])  # Of a page that is made again.
            for place in (2, 0, 3, 1):
                runs[names[place]] = array("q", pages[place])
            assert list(runs.duplicates(names)) == expected
            assert [list(runs[name]) for name in names] == pages


def test_pages_without_any_url_share_none(tmp_path):
    """Their file has no bytes."""
    with closing(PageRuns(tmp_path / "runs")) as runs:
        runs["a", 1] = array("q")
        assert list(runs.duplicates([("a", 1)])) == [{}]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_failed_build():
    """The message says what could not be stored."""
    with (
        closing(PageRuns(Path("/dev/full"))) as runs,
        pytest.raises(BuildFailed, match="No space left"),
    ):
        runs["a", 1] = array("q", [1, 2])


def test_hashes_go_into_a_manifest_and_back():
    """By section; the order does not matter."""
    hashes = hashes_of(["/a", "/b", "/ü"])
    listed_by = dict(zip(hashes, ["x", "y", "x"], strict=True))
    texts = hashes_to_hex(listed_by)
    assert list(texts) == ["x", "y"]
    assert [len(text) for text in texts.values()] == [32, 16]
    assert hashes_from_hex(texts) == listed_by


def test_hashes_depend_on_the_secret_key(settings):
    """So nobody can make up a URL that is taken for another one; else they are always the same."""
    before = hashes_of(["/a"])
    assert hashes_of(["/a"]) == before
    settings.SECRET_KEY = "another"
    assert hashes_of(["/a"]) != before


@pytest.mark.slow
def test_what_an_editor_excludes_another_worker_lists(storage, db):
    """The first section that may list a URL does."""
    add("firsts", "ab")
    add("seconds", "ab")
    override = by_path("/all/a", include=False)
    run(runner=Scattered())
    assert of_each(listed()) == {"firsts": "b"}
    override.delete()
    remove("firsts", "a")
    run(runner=Scattered())
    assert of_each(listed()) == {"firsts": "b", "seconds": "a"}
