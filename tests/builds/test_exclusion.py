"""Taking a URL out of the published files at once, and nothing else."""

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import Pause, build, pause_publishing, publish, status_of
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.builds.run import publish_override
from django_sitemapkit.exceptions import BuildRunning, NothingToPublish, StorageFailure
from django_sitemapkit.models import (
    Build,
    ExclusionRule,
    Publication,
    SectionSettings,
    UrlOverride,
)
from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import refresh_plan
from django_sitemapkit.signals import sitemaps_published
from tests.builds import (
    ALL,
    SITE,
    Articles,
    Products,
    edit_product,
    fill,
    in_order,
    manifest,
    served,
    use_storage,
)
from tests.builds.exports import export_to, exported
from tests.builds.make.test_incremental import FIRST, SECOND, observed, redeclare, site
from tests.builds.storages import Killed
from tests.cases import few
from tests.factories import ArticleFactory
from tests.overrides.setting import by_object, by_path
from tests.prepared import once
from tests.testapp.models import Article, Product, Reading, Shop

__all__ = ["observed", "site"]

pytestmark = pytest.mark.django_db


def product(number):
    """Return a product."""
    return Product.objects.get(slug=f"p{number}")


def now(override, **options):
    """Exclude at once, and return what came of it."""
    return publish_override(SITE, override, **options)


def locations(client):
    """Return the paths that a reader of the index gets."""
    return [url.removeprefix(SITE.origin) for url, _ in in_order(served(client))]


def changed(before):
    """Return the pages whose files are others than before."""
    after = manifest()
    names = {key: line.name for key, line in after.items() if key[0]}
    return {key for key in {*before, *names} if before.get(key, "") != names.get(key, "")}


def names():
    """Return the files of all published pages."""
    return {key: line.name for key, line in manifest().items() if key[0]}


BY = {
    "path": lambda: by_path("/products/all/p2/", include=False),
    "object": lambda: by_object(product(2), include=False),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", BY)
def test_the_url_is_gone_at_once_and_all_else_stays(site, client, way):
    """What is due beside it waits for the next build."""
    before, urls = names(), locations(client)
    edit_product("p0")
    result = now(BY[way](), started_by="x" * 300)
    assert (result.status, result.urls) == ("published", 1)
    assert sorted(set(urls) - set(locations(client))) == ["/products/all/p2/"]
    assert changed(before) == {SECOND}
    assert site.rendered[-1] == SECOND
    record = Build.objects.get(pk=result.build)
    assert record.started_by == "x" * 200
    assert record.previous_id != result.build
    site.require({FIRST}, {FIRST})
    site.require()
    assert "/products/all/p2/" not in locations(client)


@pytest.mark.slow
@pytest.mark.parametrize("others", [[], ["/products/all/p3/"]], ids=["of some", "of an empty page"])
def test_an_included_url_is_back_at_once_and_all_else_stays(site, client, others):
    """By the override that excluded it, once that says nothing."""
    for path in others:
        now(by_path(path, include=False))
    override = by_path("/products/all/p2/", include=False)
    now(override)
    before, urls = names(), locations(client)
    assert bool(before[SECOND]) is not bool(others)
    edit_product("p0")
    UrlOverride.objects.filter(pk=override.pk).delete()
    override.include = None
    result = now(override)
    assert (result.status, result.urls) == ("published", 2 - len(others))
    assert sorted(set(locations(client)) - set(urls)) == ["/products/all/p2/"]
    assert changed(before) == {SECOND}
    site.require({FIRST}, {FIRST})
    site.require()


@pytest.mark.parametrize("deduplicates", [False, True])
def test_an_included_url_of_a_row_that_no_url_leads_to_is_back_at_once(
    client, settings, sections, deduplicates
):
    """Its location is a method, and the URLconf has no view: the page that excluded it is known."""
    settings.SITEMAPKIT_DEDUPLICATE = deduplicates
    use_storage(settings, "Memory")
    fill()

    class Hidden(Products):
        def location(self, obj):
            return f"/hidden/{obj.slug}/"

    class Copies(Hidden):
        pass

    for section in (Hidden, Copies):
        sections.add(section)
    build(SITE)
    before = locations(client)
    override = by_path("/hidden/p2/", include=False)
    now(override)
    assert "/hidden/p2/" not in locations(client)
    override.include = True
    override.save()
    assert now(override).status == "published"
    assert locations(client) == before


@pytest.mark.slow
def test_an_included_object_is_back_at_once(site, client):
    """No page of it goes, neither a published one nor an earlier one."""
    override = by_object(product(2), include=False)
    now(override)
    before, urls = names(), locations(client)
    override.include = None
    override.save()
    assert now(override).status == "published"
    assert sorted(set(locations(client)) - set(urls)) == ["/products/all/p2/"]
    assert changed(before) == {SECOND}


@pytest.mark.slow
def test_an_included_url_is_on_the_page_with_its_key(site, client):
    """A preview has planned other pages, which are not published."""
    override = by_path("/products/all/p3/", include=False)
    now(override)
    redeclare(Products, limit=5)
    build(SITE, preview=True)
    UrlOverride.objects.filter(pk=override.pk).delete()
    override.include = None
    now(override)
    assert "/products/all/p3/" in locations(client)


@pytest.mark.slow
def test_with_deduplication_an_included_url_is_listed_once(site, client, sections, settings):
    """By the first section that has it, as a build lists it."""
    settings.SITEMAPKIT_DEDUPLICATE = True
    sections.add(type("Copies", (Products,), {"limit": 5}))
    override = by_path("/products/all/p2/", include=False)
    site.build()
    UrlOverride.objects.filter(pk=override.pk).delete()
    override.include = None
    now(override)
    assert locations(client).count("/products/all/p2/") == 1
    site.build()
    assert locations(client).count("/products/all/p2/") == 1


@pytest.mark.slow
def test_an_included_url_is_listed_in_spite_of_a_rule(site, client):
    """By an override; of a URL that nothing lists, no page is made."""
    ExclusionRule.objects.create(site=SITE.key, pattern="/products/all/p2/")
    build(SITE)
    before = names()
    assert "/products/all/p2/" not in locations(client)
    now(by_path("/products/all/p2/", include=True))
    assert "/products/all/p2/" in locations(client)
    assert changed(before) == {SECOND}
    assert now(by_path("/nowhere/", include=True)) is None


@pytest.mark.slow
def test_what_was_changed_at_once_with_it_waits_for_the_next_build(site, client):
    """Overrides that one action has changed have one revision; only this one is published."""
    for number in (0, 2):
        by_path(f"/products/all/p{number}/")
    build(SITE)
    UrlOverride.objects.update(include=False)
    now(UrlOverride.objects.get(path="/products/all/p2/"))
    assert "/products/all/p0/" in locations(client)
    build(SITE)
    assert not {"/products/all/p0/", "/products/all/p2/"}.intersection(locations(client))


@pytest.mark.slow
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("earlier", [0, 1], ids=["the first settings", "later ones"])
def test_a_new_rule_waits_for_the_next_build(site, client, include, earlier):
    """A rule that acts already stays in force, though its note has changed meanwhile."""
    for _ in range(earlier):
        ExclusionRule.objects.create(site=SITE.key, pattern="/products/all/p2/")
    build(SITE)
    urls = locations(client)
    ExclusionRule.objects.update(note="No longer sold")
    rule = ExclusionRule.objects.create(site=SITE.key, pattern="/products/all/")
    now(by_path("/products/all/p3/", include=include))
    assert locations(client) == [url for url in urls if include or url != "/products/all/p3/"]
    build(SITE)
    assert [url for url in locations(client) if url.startswith(rule.pattern)] == (
        ["/products/all/p3/"] if include else []
    )


@pytest.mark.slow
def test_what_the_override_excluded_before_comes_back_with_the_next_build(site, client):
    """Its path was corrected: no file has to list the new one for the old one to come back."""
    override = by_path("/products/all/p0/", include=False)
    build(SITE)
    override.path = "/products/all/p2/"
    override.save()
    now(override)
    build(SITE)
    assert "/products/all/p0/" in locations(client)
    assert "/products/all/p2/" not in locations(client)


def test_only_what_changed_is_announced(site, client):
    """A CDN keeps the other pages."""
    heard = []

    def listener(sender, addresses, **values):
        heard.extend(addresses)

    sitemaps_published.connect(listener, weak=False)
    try:
        now(BY["path"]())
    finally:
        sitemaps_published.disconnect(listener)
    assert len(heard) == 5
    assert sum("products-2" in address for address in heard) == 4


@pytest.mark.thorough
def test_a_url_of_several_pages_leaves_all_of_them(site, client, sections):
    """Also those of other sections."""
    sections.add(type("Copies", (Products,), {"limit": 5}))
    site.build()
    before = names()
    now(by_path("/products/all/p2/", include=False))
    assert changed(before) == {SECOND, ("copies", 1)}
    assert "/products/all/p2/" not in locations(client)


def test_the_page_of_a_section_that_is_switched_off_goes(site, client):
    """It cannot be rendered, and goes with the next build anyhow; any share of the section may."""
    before = locations(client)
    SectionSettings.objects.create(site=SITE.key, section="articles", enabled=False)
    (article,) = (url for url in before if url.startswith("/articles/"))
    assert now(by_path(article, include=False)).status == "published"
    assert locations(client) == [url for url in before if url != article]
    assert client.get("/sitemap-articles-1.xml").status_code == 404
    assert site.build().status == "unchanged"


@pytest.mark.parametrize("by", BY)
def test_a_section_that_is_switched_on_again_has_the_other_urls_of_the_page(site, client, by):
    """The page that went was not made, so nothing of it is reused."""
    before = locations(client)
    off = SectionSettings.objects.create(site=SITE.key, section="products", enabled=False)
    now(BY[by]())
    assert "/products/all/p2/" not in locations(client)
    off.delete()
    site.build()
    assert locations(client) == [url for url in before if url != "/products/all/p2/"]


def test_what_no_published_page_lists_is_none(site, client):
    """Nothing is made, and nothing published."""
    published = Publication.objects.get()
    assert now(by_path("/nowhere/", include=False)) is None
    assert now(by_object(Product(pk=10**6), include=False)) is not None
    assert now(by_object(Shop.objects.first(), include=False)) is None
    assert now(by_object(Reading(level="x"), include=False)) is None
    assert Publication.objects.get().build_id == published.build_id


def test_where_nothing_is_published_nothing_is_done(sections, settings):
    """Live pages leave it out already."""
    use_storage(settings, "Memory")
    sections.add(Articles)
    assert now(by_path("/articles/1/", include=False)) is None
    assert Build.objects.count() == 0


@pytest.mark.parametrize("options", [{}, {"key": "slug"}])
@pytest.mark.thorough
def test_an_object_that_the_section_has_no_more_leaves_its_file(site, client, options):
    """Someone has taken it out of the section before."""
    redeclare(Products, queryset=Product.objects.filter(public=True), **options)
    site.build()
    found = product(2)
    Product.objects.filter(pk=found.pk).update(public=False)
    assert now(by_object(found, include=False)).status == "published"
    assert "/products/all/p2/" not in locations(client)


@pytest.mark.thorough
def test_an_object_that_is_gone_leaves_its_file(site, client):
    """It is known by its key alone."""
    found = product(2)
    override = by_object(found, include=False)
    found.delete()
    assert now(override).status == "published"
    assert "/products/all/p2/" not in locations(client)


def test_an_empty_page_leaves_the_index(site, client):
    """Its address is not answered from the build before either."""
    page = "/sitemap-readings-2.xml"
    assert client.get(page).status_code == 200
    result = now(by_path("/readings/10/", include=False))
    assert result.status == "published"
    assert manifest()["readings", 2].status == "empty"
    assert not [address for address in served(client) if "readings-2" in address]
    assert client.get(page).status_code == 404
    site.require()


@pytest.mark.thorough
def test_a_page_that_rows_have_left_is_answered_from_the_build_before(site, client):
    """That is no one's wish to have it gone: readers of the index before find it."""
    for place, slug in enumerate(["p2", "p3"]):
        Product.objects.filter(slug=slug).update(slug=f"\x0b{place}")
    site.build()
    assert manifest()[SECOND].status == "empty"
    assert client.get("/sitemap-products-2.xml").status_code == 200


def test_the_last_url_of_a_site_stays(client, sections, settings):
    """An index lists one sitemap at least: what is published stays, and the caller is informed."""
    use_storage(settings, "Memory")
    sections.add(type("Pages", (StaticSection,), {"items": ["home"]}))
    build(SITE)
    override = by_path("/", include=False)
    for _ in range(2):
        with pytest.raises(NothingToPublish):
            now(override)
        assert locations(client) == ["/"]
    assert not Build.objects.filter(status="running").exists()


@pytest.mark.thorough
def test_the_first_url_of_a_small_section_is_no_loss(site, client, settings):
    """It was asked for; other rows that are gone hold the build back as ever."""
    settings.SITEMAPKIT_MAX_SHRINK = 0.3
    assert now(by_object(Article.objects.get(), include=False)).status == "published"
    assert now(by_path("/readings/10/", include=False)).status == "published"
    Product.objects.filter(slug__in=["p0", "p2", "p3"]).delete()
    result = now(by_path("/products/all/p2/", include=False))
    assert (result.status, result.reason) == ("published", "")
    result = now(by_path("/products/all/p1/", include=False))
    assert result.status == "held"
    assert "products" in result.reason
    assert "/products/all/p1/" in locations(client)


def test_who_builds_is_not_disturbed(site, client):
    """The caller is asked to wait."""
    override = by_path("/products/all/p2/", include=False)
    with acquire(SITE), pytest.raises(BuildRunning):
        now(override)
    assert "/products/all/p2/" in locations(client)
    assert now(override).status == "published"


# Builds that are older


def kill(storage, at=""):
    """Kill the process that stores a file of such a name."""

    def on_call(number, method, name, args, proceed):
        if method == "save" and at in name:
            raise Killed
        return proceed()

    storage.on_call = on_call


@pytest.fixture
def left(site):
    """Let a killed build have left pages with all URLs."""
    Product.objects.update(updated_at=None)
    kill(site.storage, "products-3-")
    with pytest.raises(Killed):
        site.build()
    site.storage.on_call = None
    (record,) = Build.objects.filter(status="running")
    assert record.places.filter(section="products", number=2, status="done").exists()
    return record


@pytest.mark.inline_runner
@pytest.mark.parametrize("way", few(1, [*BY, "nowhere"]))
def test_what_a_killed_build_left_brings_no_url_back(site, client, left, way):
    """The next build adopts its pages, but not the one that lists the URL."""
    override = BY[way]() if way in BY else by_path("/nowhere/", include=False)
    now(override)
    left.refresh_from_db()
    assert left.status == "running"
    result = site.build()
    assert result.adopted
    assert ("/products/all/p2/" in locations(client)) == (way not in BY)


@pytest.mark.thorough
def test_an_exclusion_that_was_killed_is_finished_by_the_next_build(site, client):
    """Though only the page concerned was to be made; then the site is built as it is."""
    override = by_path("/products/all/p2/", include=False)
    edit_product("p0")
    kill(site.storage)
    with pytest.raises(Killed):
        now(override)
    site.storage.on_call = None
    assert "/products/all/p2/" in locations(client)
    result = site.build()
    assert result.status == "published"
    assert "/products/all/p2/" not in locations(client)
    site.require()


@pytest.mark.thorough
def test_what_is_held_back_brings_nothing_back(site, client, settings):
    """The builds after do not take its pages for what is now."""
    settings.SITEMAPKIT_MAX_SHRINK = 0.1
    Article.objects.all().delete()
    edit_product("p3", day=2)
    held = site.build()
    assert held.status == "held"
    now(by_path("/products/all/p2/", include=False))
    now(by_object(product(1), include=False))
    again = site.build()
    assert again.status == "held"
    publish(SITE, again.build)
    assert not {"/products/all/p2/", "/products/all/p1/"} & set(locations(client))


@pytest.mark.thorough
def test_a_build_that_is_gone_back_to_has_it_until_the_next(site, client):
    """Someone has asked for that build."""
    first = Publication.objects.get().build_id
    now(by_path("/products/all/p2/", include=False))
    publish(SITE, first)
    assert "/products/all/p2/" in locations(client)
    site.build()
    assert "/products/all/p2/" not in locations(client)


# What may go wrong


@pytest.mark.thorough
def test_a_page_that_grew_is_split_where_it_can_be(site, client):
    """Rows have come since; all of them are listed."""
    shop = Shop.objects.get(slug="all")
    (last,) = [
        key for key, line in manifest().items() if key[0] == "products" and line.upper is None
    ]
    Product.objects.bulk_create(Product(shop=shop, slug=f"new{n}") for n in range(3))
    override = by_path("/products/other/p4/", include=False)
    assert now(override).status == "published"
    found = locations(client)
    assert "/products/other/p4/" not in found
    assert {f"/products/all/new{n}/" for n in range(3)} <= set(found)
    assert last in manifest()
    site.build()
    assert sorted(locations(client)) == sorted(found)


@pytest.mark.slow
def test_a_page_that_has_grown_is_split_though_the_plan_has_split_it_already(site, client):
    """As after a build that was held: the URL is gone at once, and all others are listed."""
    shop = Shop.objects.get(slug="all")
    Product.objects.bulk_create(Product(shop=shop, slug=f"new{n}") for n in range(3))
    refresh_plan(section_of(SITE, "products"))
    now(by_path("/products/other/p4/", include=False))
    found = locations(client)
    assert "/products/other/p4/" not in found
    assert {f"/products/all/new{n}/" for n in range(3)} <= set(found)
    assert len(found) == len(set(found))
    site.build()
    assert sorted(locations(client)) == sorted(found)


@pytest.mark.thorough
def test_a_file_that_is_lost_is_told(site):
    """Nobody knows what it listed."""
    site.storage.delete(manifest()[SECOND].name)
    with pytest.raises(StorageFailure):
        now(by_path("/products/all/p2/", include=False))
    assert now(by_object(product(2), include=False)).status == "published"


@pytest.mark.slow
def test_what_was_exported_is_brought_up_to_date(sections, settings, client):
    """Without the URL, and without the page that had it alone."""
    for section in ALL:
        sections.add(section)
    fill()
    _source, shown = export_to(settings, "tests.builds.exports.Overwriting")
    build(SITE)
    assert f"{SITE.origin}/products/all/p2/" in urls_in(exported(shown))
    now(by_path("/products/all/p2/", include=False))
    now(by_path("/readings/10/", include=False))
    after = exported(shown)
    assert f"{SITE.origin}/products/all/p2/" not in urls_in(after)
    assert not [address for address in after if "readings-2" in address]
    assert "sitemap-readings-2.xml.gz" not in shown.contents()


def urls_in(documents):
    """Return all URLs that are exported."""
    return {url for entries in documents.values() for url, _ in entries}


# Addresses of builds before


def merge():
    """Let the pages of the products go, whose rows come together on another one."""
    redeclare(Products, limit=5)


def old_page(client):
    """Return the paths that a reader of the index before gets from the page that has gone."""
    response = client.get("/sitemap-products-2.xml")
    return response.status_code, b"/products/all/p2/" in response.getvalue()


@pytest.fixture
def merged(site, client):
    """Publish a build that lists the URL on another page than the one before."""

    def make():
        merge()
        site.build()

    once((__name__, "merged"), make)
    assert SECOND not in manifest()
    assert old_page(client) == (200, True)
    assert "/products/all/p2/" in locations(client)
    return site


@pytest.mark.parametrize("way", BY)
def test_the_url_is_gone_from_the_addresses_of_builds_before(merged, client, way):
    """They answer 404 at once; what else they listed is on pages of the index."""
    before = set(locations(client))
    assert now(BY[way]()).status == "published"
    assert old_page(client)[0] == 404
    assert set(locations(client)) == before - {"/products/all/p2/"}


@pytest.mark.slow
def test_an_address_that_was_withdrawn_stays_so(merged, client):
    """Through later builds of some sections and of all, as long as the old build has it."""
    now(BY["path"]())
    edit_product("p4")
    merged.build(sections=["products"])
    assert old_page(client)[0] == 404
    edit_product("p4", day=2)
    merged.build()
    assert old_page(client)[0] == 404
    edit_product("p4", day=3)
    merged.build()
    assert old_page(client)[0] == 404
    merged.require()


def test_a_url_that_only_an_earlier_build_lists_is_withdrawn(site, client):
    """Its row went before, and nothing is to be rendered."""
    Product.objects.filter(slug__in=["p0", "p1", "p2", "p3"]).delete()
    site.build()
    assert old_page(client) == (200, True)
    rendered = list(site.rendered)
    assert now(BY["path"]()).status == "unchanged"
    assert site.rendered == rendered
    assert old_page(client)[0] == 404


def test_a_withdrawal_gives_up_no_held_build(site):
    """It builds nothing that could take the place of a build under review."""
    Product.objects.filter(slug__in=["p0", "p1", "p2", "p3"]).delete()
    site.build()
    pause_publishing(SITE, Pause(by="ann", reason="why"))
    edit_product(slug="p4")
    held = build(SITE)
    assert held.status == "held"
    assert now(BY["path"]()).status == "unchanged"
    assert SiteBuilds(SITE).held.pk == held.build


@pytest.mark.slow
def test_a_section_that_the_build_does_not_have_stays_live(sections, settings, client):
    """After a roll-back, though the later build still answers for what is gone for good."""
    use_storage(settings, "Memory")
    fill()
    Article.objects.all().delete()
    sections.add(Products)
    first = build(SITE).build
    sections.add(Articles)
    gone, stays = (f"/articles/{ArticleFactory().pk}/" for _ in range(2))
    build(SITE)
    publish(SITE, first)
    new = f"/articles/{ArticleFactory().pk}/"
    products = set(locations(client)) - {gone, stays, new}
    assert set(locations(client)) == {*products, gone, stays, new}
    assert now(by_path(gone, include=False)).status == "unchanged"
    assert set(locations(client)) == {*products, stays, new}
    assert [section.built for section in status_of(SITE).sections] == [True, False]


def test_addresses_that_do_not_list_it_answer_on(merged, client):
    """An exclusion withdraws no more than it has to."""
    assert now(by_path("/products/other/p4/", include=False)).status == "published"
    assert old_page(client) == (200, True)


def test_an_earlier_file_that_cannot_be_read_is_withdrawn(merged, client):
    """It may list the URL, and be there again by the next request."""
    first = Build.objects.earliest("pk")
    merged.storage.delete(manifest(first.pk)[SECOND].name)
    assert now(BY["path"]()).status == "published"
    assert old_page(client)[0] == 404


def test_a_build_that_is_gone_back_to_answers_for_its_pages_again(merged, client):
    """Someone has asked for that build, with the URL."""
    first = Build.objects.earliest("pk").pk
    now(BY["path"]())
    publish(SITE, first)
    assert old_page(client) == (200, True)


@pytest.mark.thorough
def test_the_export_has_no_page_that_was_withdrawn(sections, settings):
    """Else a web server would give it out until the grace period is over."""
    for section in ALL:
        sections.add(section)
    fill()
    _source, shown = export_to(settings, "tests.builds.exports.Overwriting")
    build(SITE)
    merge()
    build(SITE)
    assert "sitemap-products-2.xml.gz" in shown.contents()
    now(BY["path"]())
    assert "sitemap-products-2.xml.gz" not in shown.contents()
