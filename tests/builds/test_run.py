"""Builds: what they make, what they keep, and how they go on after any end."""

from types import SimpleNamespace

import pytest

from django_sitemapkit.builds import PageBuilder, Runner, build, preview, steps
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.exceptions import BuildFailed, BuildRunning, LeaseLost, StorageFailure
from django_sitemapkit.models import Build, Lease, Page, Place, Publication, StoredPage
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.planning import all_pages, refresh_plan, split_page
from django_sitemapkit.words import english_of
from tests.builds import (
    ALL,
    LEASE,
    SITE,
    Articles,
    Products,
    Readings,
    age_lease,
    edit_product,
    in_order,
    live,
    manifest,
    named,
    run,
    served,
    states,
    take_lease,
    xml,
)
from tests.builds.storages import Killed, failing
from tests.cases import few
from tests.factories import EPOCH
from tests.testapp.models import Article, Product, Reading, Shop

pytestmark = pytest.mark.django_db


def stop_after(count):
    """Return an ``on_file`` that ends the process after so many files."""

    def on_file(result, place, total):
        if place == count:
            raise Killed

    return on_file


def interrupted(count, **options):
    """Let a build die after so many files; return their names in storage."""
    with pytest.raises(Killed):
        run(on_file=stop_after(count), **options)
    return named(Place.objects.filter(build__status="running"))


# What is built


@pytest.mark.slow
def test_the_files_hold_what_the_live_view_gives(storage, client, settings):
    """Page for page, entry for entry."""
    result = run()
    assert result.status == "published"
    expected = live(client, settings)
    settings.SITEMAPKIT_SERVE_FROM = "published"
    assert served(client) == expected
    assert len(expected) == 7
    assert result.urls == 9


@pytest.mark.slow
def test_a_result_tells_of_each_file_and_of_the_index(storage):
    """What ``on_file`` was called with is what the result has, in the same order."""
    shown = []
    result = run(on_file=lambda file, place, total: shown.append((file, place, total)))
    assert [file for file, _, _ in shown] == list(result.files)
    assert [place for _, place, _ in shown] == list(range(1, 9))
    assert {total for _, _, total in shown} == {8}
    assert set(states(result).values()) == {"stored"}
    index = result.files[-1]
    assert (index.section, index.urls) == ("", 7)
    assert result.stored == 8
    assert result.adopted == 0


@pytest.mark.slow
def test_an_unchanged_site_is_recorded_as_unchanged_and_stores_nothing(storage):
    """The publication stays as it was."""
    run()
    before = Publication.objects.values().get()
    storage.calls.clear()
    result = run()
    assert result.status == "unchanged"
    assert storage.saved() == []
    assert set(states(result).values()) == {"same"}
    assert Publication.objects.values().get() == before


@pytest.mark.slow
def test_the_same_rows_give_the_same_bytes(storage, settings):
    """Built again into an empty storage, each compressed file is identical."""
    run()
    first = {key: storage.contents()[line.name] for key, line in manifest().items() if key[0]}
    Publication.objects.all().delete()
    Build.objects.all().delete()
    storage.reset({})
    run()
    second = {key: storage.contents()[line.name] for key, line in manifest().items() if key[0]}
    assert first == second
    assert all(content[4:8] == bytes(4) and not content[3] for content in first.values())


@pytest.mark.slow
def test_a_changed_row_changes_its_page_and_the_index_alone(storage):
    """All other lines keep name and lastmod; the changed page has another of both."""
    run()
    StoredPage.objects.update(lastmod=EPOCH)
    before = manifest()
    edit_product()
    storage.calls.clear()
    result = run()
    after = manifest()
    stored = {key for key, state in states(result).items() if state == "stored"}
    assert stored == {("products", 1), ("", 0)}
    assert len(storage.saved()) == 2
    for key, line in after.items():
        assert (line.page == before[key].page) == (key not in stored), key
        assert (line.name == before[key].name) == (key not in stored), key
        assert (line.page.lastmod > EPOCH) == (key in stored), key


@pytest.mark.slow
def test_the_index_says_when_each_file_last_changed(storage, client):
    """Its lastmods are those of the manifest, of the changed file alone a new one."""
    run()
    StoredPage.objects.exclude(places__section="").update(lastmod=EPOCH)
    edit_product()
    run()
    body = client.get("/sitemap.xml").getvalue().decode()
    assert body.count("<lastmod>2024-02-29T12:30:15+00:00</lastmod>") == 6
    assert body.count("<lastmod>") == 7


@pytest.mark.slow
def test_a_lost_file_is_made_again_and_keeps_its_lastmod(storage):
    """What the storage lost is stored by the next build, under a name never used before."""
    run()
    before = manifest()[("products", 1)]
    storage.delete(before.name)
    result = run()
    after = manifest()[("products", 1)]
    assert result.status == "published"
    assert states(result)[("products", 1)] == "stored"
    assert after.name != before.name
    assert (after.page.sha256, after.page.lastmod) == (before.page.sha256, before.page.lastmod)


@pytest.mark.slow
def test_a_lost_index_is_made_again(storage):
    """Though no page has changed."""
    run()
    storage.delete(manifest()[("", 0)].name)
    run()
    assert manifest()[("", 0)].name in storage.names()


@pytest.mark.slow
def test_a_distrusted_file_is_made_again(storage):
    """Whatever its manifest says of it."""
    run()
    for key in (("products", 1), ("", 0)):
        damaged = manifest()[key].name
        run(distrusted={damaged})
        assert manifest()[key].name != damaged


# Sections by name


def test_a_section_by_name_is_made_anew_and_the_others_carry_over(storage):
    """Changes of other sections wait for their own build."""
    run()
    before = manifest()
    edit_product()
    Article.objects.update(title="Two", edited_at="2025-01-01T12:00:00Z")
    Reading.objects.all().delete()
    result = run(sections=["products"])
    after = manifest()
    assert {section for section, _ in states(result)} == {"products", ""}
    changed = {key for key in after if key[0] and after[key].name != before[key].name}
    assert changed == {("products", 1)}
    assert after.keys() == before.keys()


@pytest.mark.slow
def test_the_first_build_makes_all_sections_whichever_is_named(storage):
    """An index without the others would take their URLs away."""
    run(sections=["products"])
    assert {section for section, _ in manifest()} == {"products", "readings", "articles", ""}


def test_an_unknown_section_is_refused(storage):
    """With the names there are; nothing is begun."""
    with pytest.raises(ValueError, match="has no section 'nope'; it has: products, readings, art"):
        run(sections=["nope"])
    assert not Build.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["removed", "disabled"])
def test_a_section_that_went_away_leaves_with_the_next_build(storage, sections, client, how):
    """It is in the manifest and the index no more."""
    run()
    sections.remove("readings")
    if how == "disabled":
        sections.add(type("Readings", (Readings,), {"enabled": False}))
    assert run().status == "published"
    assert {section for section, _ in manifest()} == {"products", "articles", ""}
    assert not any("readings" in address for address in served(client))


# Nothing to publish


@pytest.mark.thorough
def test_without_a_section_nothing_is_published(storage, sections, client):
    """What was published stays."""
    run()
    before, live_build = served(client), Publication.objects.get().build_id
    for section in ("products", "readings", "articles"):
        sections.remove(section)
    with pytest.raises(BuildFailed, match="no section is registered"):
        run()
    assert Publication.objects.get().build_id == live_build
    assert Build.objects.latest("pk").status == "failed"
    for section in ALL:
        sections.add(section)
    assert served(client) == before


@pytest.mark.slow
def test_without_a_url_nothing_is_published(storage, client):
    """What was published stays, and with rows the next build is published again."""
    run()
    before = served(client)
    Product.objects.all().delete()
    Reading.objects.all().delete()
    Article.objects.all().delete()
    with pytest.raises(BuildFailed, match="no section has a URL"):
        run()
    assert served(client) == before
    Reading.objects.create(level=7)
    assert run().status == "published"
    assert len(in_order(served(client))) == 1


def test_a_killed_build_without_a_url_gives_way_to_the_rows_of_now(storage, client):
    """Its empty pages are adopted, where no row has come."""
    for model in (Product, Reading, Article):
        model.objects.all().delete()
    interrupted(3)
    Reading.objects.create(level=7)
    result = run()
    assert (result.status, result.urls) == ("published", 1)
    assert result.adopted == 2
    assert len(in_order(served(client))) == 1


@pytest.mark.slow
def test_an_emptied_page_leaves_the_index(storage, client):
    """It is in the manifest as empty, without a file."""
    run()
    Article.objects.all().delete()
    result = run()
    line = manifest()[("articles", 1)]
    assert states(result)[("articles", 1)] == "empty"
    assert (line.status, line.name, line.urls) == ("empty", "", 0)
    assert not any("articles" in address for address in served(client))


def test_rows_that_are_left_out_are_in_the_manifest(storage):
    """Their number, and which they are and why."""
    bad = Product.objects.create(shop=Shop.objects.get(), slug="\x0b")
    result = run()
    line = next(line for line in manifest().values() if line.skipped)
    assert line.section == "products"
    assert line.skipped == 1
    assert str(bad.pk) in line.problem_examples[0]
    assert result.problems == 1
    assert sum(file.skipped for file in result.files) == 1


# Pages that grow meanwhile


def adding(rows):
    """Return an ``on_file`` that adds products as soon as the first file is done."""

    def on_file(result, place, total):
        if place == 1:
            shop = Shop.objects.get()
            Product.objects.bulk_create(Product(shop=shop, slug=f"late{n}") for n in range(rows))

    return on_file


def require_all(client):
    """All products are served, each once."""
    found = [location for location, _ in in_order(served(client)) if "/products/" in location]
    expected = Product.objects.order_by("slug").values_list("slug", flat=True)
    assert found == [f"https://www.example.com/products/all/{slug}/" for slug in expected]


@pytest.mark.slow
@pytest.mark.parametrize("rows", few(1, [7, 1, 2]))
def test_rows_added_after_the_plan_split_the_page(storage, client, rows):
    """Plan and manifest gain pages; no URL is lost or doubled."""
    result = run(on_file=adding(rows))
    assert result.status == "published"
    require_all(client)
    numbers = set(Page.objects.filter(plan__section="products").values_list("number", flat=True))
    lines = {number for section, number in manifest() if section == "products"}
    assert lines == numbers
    assert all(line.urls <= 2 for key, line in manifest().items() if key[0] == "products")


@pytest.mark.slow
def test_a_page_of_too_many_bytes_is_split(storage, client, settings, sections):
    """No file passes the limit, no URL is lost or doubled."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    sections.remove("products")
    sections.add(type("Products", (Products,), {"limit": None}))
    shop = Shop.objects.get()
    Product.objects.bulk_create(Product(shop=shop, slug=f"{n:03}" + "x" * 150) for n in range(60))
    assert run().status == "published"
    require_all(client)
    lines = [line for key, line in manifest().items() if key[0] == "products"]
    assert len(lines) > 3
    assert all(line.xml_bytes <= 4096 for line in lines)
    assert all(len(xml(storage, line)) == line.xml_bytes for line in lines)


@pytest.mark.slow
def test_pages_that_were_cut_by_bytes_stay_as_they_are(storage, settings, sections):
    """Rows that fit on one page do not merge if their bytes do not: it would be cut again."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    sections.remove("products")
    sections.add(type("Products", (Products,), {"limit": None}))
    shop = Shop.objects.get()
    Product.objects.bulk_create(Product(shop=shop, slug=f"{n:03}" + "x" * 150) for n in range(60))
    run()
    before = manifest()
    result = run(full=True)
    assert (result.status, result.stored) == ("unchanged", 0)
    assert manifest().keys() == before.keys()
    assert run().status == "unchanged"
    edit_product("059" + "x" * 150)
    run()
    assert manifest().keys() == before.keys()
    Product.objects.filter(slug__contains="x").delete()
    run()
    run()
    assert len(manifest()) < len(before)


@pytest.mark.parametrize(("state", "most"), [("first", 64), ("unchanged", 22)])
@pytest.mark.inline_runner
def test_a_small_build_costs_few_queries(
    storage, sections, django_assert_max_num_queries, state, most
):
    """What is published and held is read once, under the lease."""
    for name in ("readings", "articles"):
        sections.remove(name)
    Product.objects.latest("pk").delete()
    for section in sections.enabled_readers(SITE):
        refresh_plan(section)
    if state != "first":
        run()
    with django_assert_max_num_queries(most):
        result = run()
    assert result.status == {"first": "published", "unchanged": "unchanged"}[state]


@pytest.mark.slow
def test_a_row_too_large_for_any_file_is_left_out_of_the_build(storage, settings, sections):
    """It stands before the others on a page that overflows; live and dry, it is the same."""
    settings.SITEMAPKIT_MAX_BYTES = 4096

    def location(self, product):
        return "/" + ("&" * 1500 if product.slug == "a" else f"{product.slug:x<2000}")

    for name in ("products", "articles", "readings"):
        sections.remove(name)
    sections.add(
        type("Products", (Products,), {"limit": None, "key": "slug", "location": location})
    )
    Product.objects.all().delete()
    shop = Shop.objects.get()
    Product.objects.bulk_create(Product(shop=shop, slug=slug) for slug in "abcdef")
    dry = preview(SITE)
    result = run()
    assert result.status == "published"
    assert (result.urls, dry.urls) == (5, 5)
    (problem,) = (problem for file in result.files for problem in file.problems)
    assert "products 'a': File too large" in problem
    assert sum(file.skipped for file in result.files) == 1
    assert Build.objects.count() == 1


@pytest.mark.slow
def test_a_page_that_a_view_splits_meanwhile_is_split_by_the_build_too(storage, client, sections):
    """No URL is lost or doubled, and the next build has the pages of the plan."""

    def on_file(result, place, total):
        if place == 1 and not Product.objects.filter(slug="late0").exists():
            adding(2)(result, place, total)
            section = sections.get(SITE, "products")
            last = all_pages(section)[-1]
            assert split_page(section, last, Product.objects.get(slug="late0").pk)

    result = run(on_file=on_file)
    assert result.status == "published"
    assert Build.objects.get().pk == result.build
    require_all(client)
    run()
    require_all(client)
    planned = {page.number for page in all_pages(sections.get(SITE, "products"))}
    assert planned == {number for section, number in manifest() if section == "products"}


# Going on


@pytest.mark.slow
@pytest.mark.parametrize("count", few(3, [1, 4, 7, 2, 3, 5, 6]))
def test_a_killed_build_is_finished_by_the_next_call(storage, client, settings, count):
    """What is done is neither rendered nor stored again, and then the site is built as it is."""
    done = interrupted(count)
    assert len(done) == count
    left = Build.objects.get()
    assert not Publication.objects.exists()
    shown, storage.calls[:] = [], []
    edit_product("p4", day=2)
    result = run(on_file=lambda file, place, total: shown.append((file.section, file.number)))
    assert not done & set(storage.saved())
    left.refresh_from_db()
    assert (left.status, left.reason) == ("abandoned", {"code": "adopted"})
    expected = in_order(live(client, settings))
    assert in_order(served(client)) == expected
    assert ("https://www.example.com/products/all/p4/", "2025-01-02T12:00:00+00:00") in expected
    assert result.adopted >= count - 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["save", "size"])
@pytest.mark.inline_runner
def test_a_storage_that_goes_down_ends_the_build_and_the_next_goes_on(storage, method):
    """Files that arrived before stay; the lease is given back."""

    def on_call(index, called, name, args, proceed):
        if called == method and "readings-1-" in name:
            return failing()(called, name, args, proceed)
        return proceed()

    storage.on_call = on_call
    with pytest.raises(StorageFailure, match=r"readings-1-.* could not be stored"):
        run()
    assert Lease.objects.get(name=LEASE).owner == ""
    arrived = {name for name in storage.names() if "products-" in name}
    assert len(arrived) == 3
    storage.on_call = None
    storage.calls.clear()
    run()
    assert not arrived & set(storage.saved())
    assert arrived < named(manifest().values())


@pytest.mark.slow
def test_a_page_that_is_made_twice_has_two_names(storage):
    """The one that made it first may have died behind storing it, under the same lease."""
    interrupted(1)
    record = Build.objects.get()
    line = Place.objects.filter(build=record, status="done").first()
    with (
        acquire(SITE) as lease,
        PageBuilder(SiteBuilds(SITE), record, lease, sections_of(SITE)) as builder,
    ):
        names = set()
        for _ in range(3):
            line.status = "pending"  # As it was to the others when they began.
            builder.build(line)
            names.add(line.name)
    assert len(names) == 3
    assert names <= storage.names()


@pytest.mark.slow
def test_a_build_whose_declarations_changed_is_abandoned(storage, sections):
    """The result says why; the new declaration is what is published."""
    interrupted(3)
    sections.remove("articles")
    sections.add(type("Articles", (Articles,), {"changefreq": "daily"}))
    result = run()
    left = Build.objects.order_by("pk").first()
    assert left.status == "abandoned"
    assert left.reason == {"code": "changed"}
    assert result.abandoned == english_of(left.reason)
    assert b"<changefreq>daily</changefreq>" in xml(storage, manifest()[("articles", 1)])


@pytest.mark.thorough
def test_a_killed_build_of_chosen_sections_does_not_stand_for_all(storage, client, settings):
    """The next call for all sections builds all."""
    run()
    edit_product()
    Reading.objects.create(level=15)
    interrupted(1, sections=["products"])
    run()
    assert in_order(served(client)) == in_order(live(client, settings))


@pytest.mark.thorough
def test_a_build_is_not_continued_by_one_that_distrusts_files(storage):
    """It may have taken over just those."""
    interrupted(3)
    run(distrusted={"sitemaps/some.xml.gz"})
    assert Build.objects.order_by("pk").first().status == "abandoned"


# One at a time


def test_a_second_builder_is_told_who_builds_since_when(storage):
    """It does nothing."""
    lease = Lease.objects.acquire(LEASE, seconds=60, owner="builder-7")
    expected = rf"process \d+ on builder-7 since {lease.acquired_at:%Y-%m-%d %H:%M:%S} UTC"
    with pytest.raises(BuildRunning, match=expected):
        run()
    assert not Build.objects.exists()
    assert storage.calls == []


def test_the_lease_is_given_back_whatever_the_end(storage):
    """After success, after an error, after an interruption."""
    run()
    assert Lease.objects.get(name=LEASE).owner == ""
    edit_product()
    interrupted(1)
    assert Lease.objects.get(name=LEASE).owner == ""


@pytest.mark.thorough
@pytest.mark.parametrize("place", few(3, [1, 4, 7, 2, 3, 5, 6]))
def test_a_builder_whose_lease_was_taken_stops(storage, client, place):
    """It publishes nothing, records nothing and prunes nothing; who took the lease goes on."""
    run()
    before = served(client)
    edit_product()

    def on_file(result, at, total):
        if at == place:
            on_file.lease = take_lease()
            on_file.lines = list(Place.objects.order_by("pk").values())
            on_file.builds = list(Build.objects.order_by("pk").values())

    with pytest.raises(LeaseLost, match="another process acquired the lease"):
        run(on_file=on_file)
    assert list(Place.objects.order_by("pk").values()) == on_file.lines
    assert list(Build.objects.order_by("pk").values()) == on_file.builds
    assert served(client) == before
    held = Lease.objects.get(name=LEASE)
    assert (held.owner, held.fence) == (on_file.lease.owner, on_file.lease.fence)
    assert not [name for method, name in storage.calls if method == "delete"]
    held.release()
    run()
    assert served(client) != before


def test_a_builder_whose_lease_was_taken_while_it_planned_begins_no_build(storage, monkeypatch):
    """Nothing of it is left for anyone to go on with."""
    from django_sitemapkit.builds import steps as module

    refresh = module.refresh_plan

    def slow_refresh(section, **options):
        if section.get_name() == "articles":
            take_lease()
        return refresh(section, **options)

    monkeypatch.setattr(module, "refresh_plan", slow_refresh)
    with pytest.raises(LeaseLost):
        run()
    assert not Build.objects.exists()


def test_a_dead_builders_lease_is_taken_over_with_a_higher_fence(storage, settings):
    """Once it gave no sign for LEASE_SECONDS by the database's clock, and not before."""
    settings.SITEMAPKIT_LEASE_SECONDS = 100
    dead = Lease.objects.acquire(LEASE, seconds=100)
    age_lease(seconds=90)
    with pytest.raises(BuildRunning):
        run()
    age_lease(seconds=20)
    run()
    assert Lease.objects.get(name=LEASE).fence == dead.fence + 1


# Previews


def test_a_preview_says_what_a_build_would_do_and_does_nothing(storage):
    """Of each page: stored, same or empty; no table and no file changes."""
    run()
    edit_product()
    Article.objects.all().delete()
    builds, files = Build.objects.count(), storage.names()
    storage.calls.clear()
    result = preview(SITE)
    assert result.status == "dry-run"
    changed = {key: state for key, state in states(result).items() if state != "same"}
    assert changed == {("products", 1): "stored", ("articles", 1): "empty"}
    assert (Build.objects.count(), storage.names()) == (builds, files)
    assert storage.calls == []


def test_a_preview_of_an_unknown_section_is_refused(storage):
    """As a build of it is."""
    with pytest.raises(ValueError, match="has no section"):
        preview(SITE, sections=["nope"])


def test_build_is_the_public_call(storage):
    """It takes a site, and returns what was published."""
    result = build(SITE)
    assert (result.site, result.build) == ("default", Publication.objects.get().build_id)
    assert result.xml_bytes == sum(line.xml_bytes for key, line in manifest().items() if key[0])


@pytest.mark.slow
def test_an_unchanged_build_says_why_the_one_before_it_was_abandoned(storage, sections):
    """As any other build does."""
    run()
    sections.remove("articles")
    sections.add(type("Articles", (Articles,), {"changefreq": "daily"}))

    def die(result, place, total):
        if result.state == "stored":
            raise Killed

    with pytest.raises(Killed):
        run(on_file=die)
    sections.remove("articles")
    sections.add(Articles)
    result = run()
    assert result.status == "unchanged"
    assert "have changed" in result.abandoned


class Retrying(Runner):
    """Asks for a page until it is made, as a row may be made more than once."""

    def run(self, builder, rows):
        for row in rows:
            while (result := builder.build(row)) is None:
                pass
            yield result


@pytest.mark.slow
def test_the_halves_of_a_split_page_are_made_whatever_the_runner_does(storage, monkeypatch):
    """The first half is done in the same round; the second one is of another round."""
    run()
    shop = Shop.objects.first()
    Product.objects.bulk_create([Product(shop=shop, slug=f"late{n}") for n in range(40)])
    monkeypatch.setattr(
        steps, "refresh_plan", lambda section, **_: SimpleNamespace(planned=all_pages(section))
    )
    result = run(runner=Retrying())
    assert result.status == "published"
    assert not Place.objects.filter(build=result.build, status="pending").exists()
