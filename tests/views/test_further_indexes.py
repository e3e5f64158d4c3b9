"""Further indexes beside the first one: live, published, exported, and never one within another."""

import datetime as dt
import re

import pytest
from django.utils import timezone

from django_sitemapkit import ExternalSection, StaticSection
from django_sitemapkit.audit.validation import validate_published
from django_sitemapkit.builds import prune, publish
from django_sitemapkit.builds.exclusion import exclude_now
from django_sitemapkit.management.base import describe
from django_sitemapkit.models import Build, BuildFile, Plan
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import (
    count_indexes,
    index_addresses,
    indexes,
    render_indexes,
    write_indexes,
)
from django_sitemapkit.signals import sitemaps_published
from django_sitemapkit.sites import SitemapSite
from tests.builds import (
    BASE,
    SITE,
    Articles,
    Products,
    edit_product,
    fill,
    let_time_pass,
    manifest,
    run,
    states,
    use_storage,
)
from tests.builds.exports import export_to
from tests.builds.storages import Killed
from tests.overrides.setting import by_path
from tests.testapp.models import Article, Product
from tests.testapp.serving import locations

pytestmark = pytest.mark.django_db

FIRST, SECOND, THIRD = "/sitemap.xml", "/sitemap-2.xml", "/sitemap-3.xml"


class Paths(StaticSection):
    """Pages by hand, one in each file."""

    limit = 1
    items = [f"/{number}/" for number in range(5)]


@pytest.fixture
def storage(settings):
    """Store sitemaps in memory, and give that storage."""
    return use_storage(settings, "Memory")


@pytest.fixture
def five(settings, sections):
    """Declare a section of five pages, two of which have room in an index."""
    settings.SITEMAPKIT_MAX_SITEMAPS = 2
    sections.add(Paths)


def listed(client, address):
    """Return the numbers of the pages that an index lists; None where there is no index."""
    response = client.get(address)
    if response.status_code == 404:
        return None
    assert response.status_code == 200
    assert response["Content-Type"] == "application/xml"
    return [int(found.rpartition("-")[2].split(".")[0]) for found in locations(response.content)]


def stored():
    """Return the numbers, names and sizes in sitemaps of the published indexes."""
    return {
        number: (line.name, line.urls, line.lastmod)
        for (section, number), line in manifest().items()
        if not section
    }


# --- Writing


@pytest.mark.parametrize(
    ("limit", "count", "sizes"),
    [(3, 3, {0: 3}), (3, 4, {0: 3, 2: 1}), (3, 7, {0: 3, 2: 3, 3: 1}), (1, 2, {0: 1, 2: 1})],
)
def test_an_index_holds_as_many_as_it_may(settings, limit, count, sizes):
    """At the limit there is one; one more makes a further one, and nothing is lost."""
    settings.SITEMAPKIT_MAX_SITEMAPS = limit
    entries = [IndexEntry(location=f"{BASE}/{number}.xml") for number in range(count)]
    indexes = write_indexes(entries)
    assert {number: index.sitemaps for number, index in indexes.items()} == sizes
    found = [location for index in indexes.values() for location in locations(index.data)]
    assert found == [entry.location for entry in entries]


def test_the_protocols_own_limit_makes_a_further_index():
    """50,000 sitemaps fit, the next one does not."""
    entries = [IndexEntry(location=f"{BASE}/{number}.xml") for number in range(50_001)]
    assert [index.sitemaps for index in write_indexes(entries[:-1]).values()] == [50_000]
    assert [index.sitemaps for index in write_indexes(entries).values()] == [50_000, 1]


def test_an_index_has_no_more_bytes_than_it_may(settings):
    """At the limit there is one; one byte less room makes a further one."""
    entries = [IndexEntry(location=f"{BASE}/{number:0200}.xml") for number in range(20)]
    (index,) = write_indexes(entries).values()
    settings.SITEMAPKIT_MAX_BYTES = len(index.data)
    assert list(write_indexes(entries)) == [0]
    settings.SITEMAPKIT_MAX_BYTES = len(index.data) - 1
    indexes = write_indexes(entries)
    assert [index.sitemaps for index in indexes.values()] == [19, 1]
    assert all(len(index.data) < settings.SITEMAPKIT_MAX_BYTES for index in indexes.values())


def test_a_sitemap_that_no_index_has_room_for_is_left_out(settings, caplog):
    """It is reported as an error, and the others are listed."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    large = IndexEntry(location=f"{BASE}/{'&' * 1000}")
    small = IndexEntry(location=f"{BASE}/small.xml")
    assert write_indexes([large]) == {}
    found = [locations(index.data) for index in write_indexes([small, large, small]).values()]
    assert found == [[small.location], [small.location]]
    assert "larger than SITEMAPKIT_MAX_BYTES" in caplog.text


def test_an_index_names_its_schema_where_that_is_asked_for(settings):
    """As pages do."""
    entries = [IndexEntry(location=f"{BASE}/a.xml")]
    assert b"schemaLocation" not in write_indexes(entries)[0].data
    settings.SITEMAPKIT_SCHEMA_LOCATION = True
    assert b"/siteindex.xsd" in write_indexes(entries)[0].data


# --- Live


def test_live_pages_stand_in_as_many_indexes_as_they_need(five, client):
    """Each has its address; there is none beyond the last one, nor a second name of the first."""
    assert listed(client, FIRST) == [1, 2]
    assert listed(client, SECOND) == [3, 4]
    assert listed(client, THIRD) == [5]
    for number in ("0", "1", "4", "02", "999999999", "1000000000", "x", "२"):
        assert client.get(f"/sitemap-{number}.xml").status_code == 404
    assert client.get("/sitemap-2.xml.gz").status_code == 404


def test_no_index_lists_another(five, client):
    """Each page stands in one of them, and none of them in any."""
    found = [
        location
        for address in (FIRST, SECOND, THIRD)
        for location in locations(client.get(address).content)
    ]
    assert found == [f"{BASE}/sitemap-paths-{number}.xml.gz" for number in range(1, 6)]


def test_a_section_may_have_any_name_beside_further_indexes(settings, sections, client):
    """The address of a page has a name before its number."""
    settings.SITEMAPKIT_MAX_SITEMAPS = 1
    sections.add(type("Two", (Paths,), {"name": "2", "items": ["/a/", "/b/"]}))
    assert locations(client.get(SECOND).content) == [f"{BASE}/sitemap-2-2.xml.gz"]
    assert locations(client.get("/sitemap-2-2.xml").content) == [f"{BASE}/b/"]


def test_a_further_index_is_answered_as_the_first_one_is(five, client):
    """With an ETag, a 304, and a HEAD; with GET and HEAD alone."""
    response = client.get(SECOND)
    assert client.get(SECOND, headers={"if-none-match": response["ETag"]}).status_code == 304
    assert client.head(SECOND)["Content-Length"] == str(len(response.content))
    assert client.post(SECOND).status_code == 405
    assert response["X-Robots-Tag"] == "noindex"


@pytest.mark.parametrize(("limit", "count"), [(5, 1), (4, 2), (2, 3), (1, 5)])
def test_live_indexes_are_counted_as_they_are(settings, sections, limit, count):
    """What robots.txt tells there are, there are."""
    settings.SITEMAPKIT_MAX_SITEMAPS = limit
    sections.add(Paths)
    assert count_indexes(SITE) == count
    assert len(index_addresses(SITE, count)) == count


def test_empty_pages_make_no_index(settings, sections, client):
    """The plan has more pages than the index lists."""
    settings.SITEMAPKIT_MAX_SITEMAPS = 2
    sections.add(Products)
    fill(products=6)
    assert listed(client, SECOND) == [3]
    assert count_indexes(SITE) == 2
    Product.objects.filter(slug__in=["p0", "p1"]).delete()
    assert listed(client, SECOND) is None
    assert count_indexes(SITE) == 1


def test_few_pages_are_counted_by_the_plan_alone(sections, client, django_assert_num_queries):
    """One query for the overrides, one COUNT: no page is asked whether it has a row."""
    sections.add(Products)
    fill(products=6)
    client.get(FIRST)
    with django_assert_num_queries(2):
        assert count_indexes(SITE) == 1


def test_what_was_never_planned_is_not_planned_to_be_counted(sections):
    """A request for robots.txt must not wait for a plan."""
    sections.add(Products)
    fill(products=6)
    assert count_indexes(SITE) == 1
    assert not Plan.objects.exists()


def test_a_long_list_is_counted_by_bytes_too(settings, sections):
    """The number of sitemaps alone does not tell how many indexes they need."""
    sections.add(type("Long", (Paths,), {"items": [f"/{n}/" for n in range(60)]}))
    settings.SITEMAPKIT_MAX_BYTES = 4096
    assert count_indexes(SITE) == 2


@pytest.mark.slow
def test_many_pages_of_short_addresses_are_counted_by_the_plan(settings, sections, monkeypatch):
    """As many as one index may list, in the bytes that they take: nothing is written to count."""
    many = {"items": range(5_000), "location": lambda self, number: f"/{number}/"}
    sections.add(type("Many", (Paths,), many))
    with monkeypatch.context() as patch:
        patch.setattr(indexes, "write_indexes", None)
        settings.SITEMAPKIT_MAX_SITEMAPS = 5_000
        assert count_indexes(SITE) == 1
        settings.SITEMAPKIT_MAX_BYTES = 1_000_000
        assert count_indexes(SITE) == 1
    settings.SITEMAPKIT_MAX_SITEMAPS = 4_999
    assert count_indexes(SITE) == 2


@pytest.mark.parametrize("base", [BASE, f"{BASE}/{'&' * 40}"], ids=["plain", "entities"])
@pytest.mark.parametrize("files", [0, 60], ids=["pages", "pages and longer files"])
def test_bytes_are_never_counted_as_too_few(settings, sections, base, files):
    """At the last byte that one index needs there is one, and one less makes two."""
    site = SitemapSite.at(base)
    sections.add(type("Sixty", (Paths,), {"items": [f"{site.path}/{n}/" for n in range(60)]}))
    sitemaps = [f"{site.path}/{'x' * 300}&{n}.xml" for n in range(files)]
    lastmod = lambda self, item: "2024-02-29T12:30:15.123456+00:00"  # noqa: E731
    sections.add(type("Feeds", (ExternalSection,), {"sitemaps": sitemaps, "lastmod": lastmod}))
    settings.SITEMAPKIT_SCHEMA_LOCATION = True
    (index,) = render_indexes(site).values()
    assert index.sitemaps == 60 + files
    settings.SITEMAPKIT_MAX_BYTES = len(index.data)
    assert count_indexes(site) == 1
    settings.SITEMAPKIT_MAX_BYTES = len(index.data) - 1
    assert count_indexes(site) == len(render_indexes(site)) == 2


# --- Published


def test_a_build_has_as_many_indexes_as_it_needs(five, storage, client):
    """They are lines of its manifest, files of their own, and what the views answer with."""
    result = run()
    assert result.status == "published"
    assert states(result) | {("", 0): "stored", ("", 2): "stored", ("", 3): "stored"} == states(
        result
    )
    assert {number: urls for number, (_, urls, _) in stored().items()} == {0: 2, 2: 2, 3: 1}
    assert len({name for name, _, _ in stored().values()}) == 3
    assert (listed(client, FIRST), listed(client, SECOND)) == ([1, 2], [3, 4])
    assert listed(client, THIRD) == [5]
    assert client.get(THIRD)["Last-Modified"]
    assert listed(client, "/sitemap-4.xml") is None
    assert [str(line) for line in BuildFile.objects.filter(section="").order_by("number")] == [
        "index",
        "index-2",
        "index-3",
    ]


def test_a_build_of_more_pages_than_an_index_lists_is_published(settings, sections, storage):
    """It was refused as long as there was one index."""
    settings.SITEMAPKIT_MAX_SITEMAPS = 1
    sections.add(Paths)
    assert run().status == "published"
    assert list(stored()) == [0, 2, 3, 4, 5]


def test_the_same_pages_are_unchanged(five, storage):
    """As long as all indexes are there, and none beside them."""
    run()
    before = stored()
    assert run().status == "unchanged"
    assert stored() == before


@pytest.mark.parametrize("number", [0, 2, 3])
def test_an_index_that_is_lost_is_made_anew_and_the_others_stay(five, storage, number):
    """The files of the others are the same, and so are their dates."""
    run()
    before = stored()
    SitemapStorage().delete(before[number][0])
    result = run()
    assert result.status == "published"
    assert [key for key, state in states(result).items() if state == "stored"] == [("", number)]
    assert {n: line for n, line in stored().items() if n != number} == {
        n: line for n, line in before.items() if n != number
    }
    assert stored()[number] != before[number]


def test_an_index_that_is_distrusted_is_made_anew(five, storage):
    """Whichever index it is."""
    run()
    before = stored()
    result = run(sections=["paths"], distrusted={before[2][0]})
    assert result.status == "published"
    assert stored()[2][0] != before[2][0]
    assert stored()[3] == before[3]


def test_an_index_whose_pages_stay_keeps_its_file_and_date(five, storage, sections):
    """Only those change that list another page, or another date."""
    run()
    before = stored()
    sections.remove("paths")
    sections.add(type("Paths", (Paths,), {"items": [*Paths.items, "/5/"]}))
    run()
    after = stored()
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[3] != before[3]
    assert after[3][1] == 2


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 3, 5, 10])
def test_another_limit_is_another_build(settings, five, storage, client, limit):
    """What the pages stand in is published too, though no page changed."""
    run()
    settings.SITEMAPKIT_MAX_SITEMAPS = limit
    assert run().status == "published"
    assert sum(urls for _, urls, _ in stored().values()) == 5
    assert max(urls for _, urls, _ in stored().values()) <= limit
    assert run().status == "unchanged"


def test_an_index_too_many_is_a_change(settings, sections, storage):
    """A build that has all that is needed, and more, is not what is needed."""
    settings.SITEMAPKIT_MAX_SITEMAPS = 5
    sections.add(Paths)
    sections.add(type("Feeds", (ExternalSection,), {"sitemaps": ["/feed.xml"]}))
    run()
    before = stored()
    assert list(before) == [0, 2]
    sections.remove("feeds")
    result = run()
    assert result.status == "published"
    assert stored() == {0: before[0]}


def test_an_index_of_the_build_before_answers_through_the_grace_period(
    settings, five, storage, client
):
    """As a page does: who has read robots.txt a moment ago finds what it names."""
    run()
    settings.SITEMAPKIT_MAX_SITEMAPS = 4
    run()
    assert listed(client, FIRST) == [1, 2, 3, 4]
    assert listed(client, SECOND) == [5]
    assert listed(client, THIRD) == [5]
    let_time_pass(90_000)
    assert listed(client, THIRD) is None
    assert listed(client, SECOND) == [5]


def test_a_lost_index_is_told_by_the_manifest(five, storage, client, caplog):
    """The second one too, as it was published."""
    run()
    before = client.get(SECOND).content
    SitemapStorage().delete(stored()[2][0])
    assert client.get(SECOND).content == before
    assert "is published, but its file is missing" in caplog.text


def test_live_pages_of_a_new_section_join_the_published_ones(
    settings, sections, five, storage, client
):
    """They come behind them, and there are as many indexes as all of them need."""
    run()
    sections.add(type("More", (Paths,), {"items": ["/x/", "/y/"]}))
    assert locations(client.get(THIRD).content) == [
        f"{BASE}/sitemap-paths-5.xml.gz",
        f"{BASE}/sitemap-more-1.xml.gz",
    ]
    assert locations(client.get("/sitemap-4.xml").content) == [f"{BASE}/sitemap-more-2.xml.gz"]
    assert client.get("/sitemap-5.xml").status_code == 404
    settings.SITEMAPKIT_SERVE_FROM = "published"
    assert listed(client, THIRD) == [5]
    assert listed(client, "/sitemap-4.xml") is None


@pytest.mark.slow
def test_going_back_brings_the_indexes_of_then(settings, five, storage, client):
    """More of them, or fewer."""
    first = run().build
    settings.SITEMAPKIT_MAX_SITEMAPS = 50
    second = run().build
    publish(SITE, first)
    assert listed(client, THIRD) == [5]
    assert listed(client, FIRST) == [1, 2]
    publish(SITE, second)
    assert listed(client, FIRST) == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_build_is_held_back_with_its_indexes(settings, five, storage, sections):
    """The same build again is the one that is held back already; another index makes another."""
    settings.SITEMAPKIT_MAX_SHRINK = 0.1
    run()
    sections.remove("paths")
    sections.add(type("Paths", (Paths,), {"items": Paths.items[:3]}))
    held = run()
    assert held.status == "held"
    assert [file.number for file in held.files if not file.section] == [0, 2]
    again = run()
    assert (again.status, again.build) == ("held", held.build)
    settings.SITEMAPKIT_MAX_SITEMAPS = 1
    other = run()
    assert (other.status, other.build == held.build) == ("held", False)
    publish(SITE, other.build)
    assert sorted(stored()) == [0, 2, 3]


def test_a_killed_build_is_finished_with_the_indexes_it_needs_now(
    settings, sections, storage, client, monkeypatch
):
    """What it had stored of indexes that are one too many leaves the manifest."""
    settings.SITEMAPKIT_MAX_SITEMAPS = 5
    sections.add(Paths)
    sections.add(type("Feeds", (ExternalSection,), {"sitemaps": ["/feed.xml"]}))
    with monkeypatch.context() as patched:
        patched.setattr("django_sitemapkit.builds.publication.publishing._serve", _killed)
        with pytest.raises(Killed):
            run()
    assert BuildFile.objects.filter(section="").count() == 2
    sections.remove("feeds")
    run()
    assert list(stored()) == [0]
    assert listed(client, SECOND) is None


def _killed(*args, **options):
    raise Killed


def test_a_url_that_must_go_at_once_leaves_all_indexes_right(settings, sections, storage, client):
    """The build that comes of it has further indexes as any other."""
    settings.SITEMAPKIT_MAX_SITEMAPS = 1
    sections.add(Products)
    fill()
    run()
    path = "/products/all/p2/"
    result = exclude_now(SITE, by_path(path, include=False))
    assert result.status == "published"
    assert list(stored()) == [0, 2, 3]
    assert f"{BASE}{path}" not in locations(client.get("/sitemap-products-2.xml").getvalue())


def test_examining_reads_all_indexes(five, storage):
    """Each by its address; one that is damaged is reported."""
    run()
    found = {report.source: report for report in validate_published(SITE)}
    assert list(found)[:3] == [f"{BASE}{address}" for address in (FIRST, SECOND, THIRD)]
    assert not any(report.error_count for report in found.values())
    SitemapStorage().delete(stored()[3][0])
    faulty = [report for report in validate_published(SITE) if report.error_count]
    assert [report.source for report in faulty] == [f"{BASE}{THIRD}"]


def test_pruning_takes_the_indexes_of_old_builds(settings, five, storage):
    """And leaves those that are served."""
    settings.SITEMAPKIT_KEEP_BUILDS = 1
    run()
    old = {name for name, _, _ in stored().values()}
    settings.SITEMAPKIT_MAX_SITEMAPS = 3
    run()
    let_time_pass(90_000)
    assert old <= set(prune(SITE).files)
    assert all(SitemapStorage().has(name) for name, _, _ in stored().values())


def test_a_line_tells_which_index_it_is(five, storage):
    """The command prints one for each."""
    lines = [next(describe(file)).split()[:2] for file in run().files if not file.section]
    assert lines == [["index", "stored"], ["index", "2"], ["index", "3"]]


def test_the_manifest_in_the_admin_names_each_index(five, storage, admin_client):
    """With a link to where it is served."""
    build = run().build
    page = admin_client.get(f"/admin/sitemapkit/build/{build}/change/").content.decode()
    for address in (FIRST, SECOND, THIRD):
        assert f'href="{BASE}{address}"' in page
    assert "index 3" in page


# --- Exported, and reported


@pytest.fixture
def shown(settings, sections):
    """Export two sections of four pages with one page in each index; give where to."""
    settings.SITEMAPKIT_MAX_SITEMAPS = 1
    for section in (Products, Articles):
        sections.add(section)
    fill()
    return export_to(settings, "tests.builds.exports.Overwriting")[1]


def run_before(monkeypatch):
    """Build the site an hour ago: the index tells seconds, and tests are faster."""
    now = timezone.now() - dt.timedelta(hours=1)
    with monkeypatch.context() as patched:
        patched.setattr("django.utils.timezone.now", lambda: now)
        run()


INDEXES = ["sitemap.xml", "sitemap-2.xml", "sitemap-3.xml", "sitemap-4.xml"]


@pytest.mark.slow
def test_all_indexes_are_exported_behind_their_pages(shown, monkeypatch):
    """The further ones first, the last one first of all: a reader of the first one finds all."""
    copied = []
    replace = SitemapStorage.replace

    def watched(storage, name, *args):
        copied.append(name)
        replace(storage, name, *args)

    monkeypatch.setattr(SitemapStorage, "replace", watched)
    run_before(monkeypatch)
    assert copied[-4:] == INDEXES[::-1]
    assert set(INDEXES) < shown.names()
    copied.clear()
    edit_product("p2")
    run()
    assert copied == ["sitemap-products-2.xml.gz", "sitemap-2.xml", "sitemap.xml"]
    copied.clear()
    shown.delete("sitemap-3.xml")
    run()
    assert copied == ["sitemap-3.xml", "sitemap.xml"]


@pytest.mark.slow
def test_an_index_that_is_needed_no_more_is_withdrawn(shown, settings):
    """After the grace period, as a page is; the first one stays."""
    run()
    Article.objects.all().delete()
    run()
    assert set(INDEXES) < shown.names()
    let_time_pass(90_000)
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
    run()
    assert shown.names() & set(INDEXES) == set(INDEXES[:3])


@pytest.mark.slow
def test_a_cdn_is_told_of_each_index_that_changed(shown, monkeypatch):
    """The first one in any case; those that are gone too."""
    shown = []

    def listen(addresses, **rest):
        names = [address.removeprefix(f"{BASE}/") for address in addresses]
        shown.append([name for name in names if re.fullmatch(r"sitemap(-\d+)?\.xml", name)])

    sitemaps_published.connect(listen)
    try:
        run_before(monkeypatch)
        assert shown.pop() == INDEXES
        edit_product("p2")
        run()
        assert shown.pop() == ["sitemap.xml", "sitemap-2.xml"]
        Article.objects.all().delete()
        run()
        assert shown.pop() == ["sitemap.xml", "sitemap-4.xml"]
    finally:
        sitemaps_published.disconnect(listen)


@pytest.mark.slow
def test_a_changed_schema_location_is_a_change_of_all_files(settings, five, storage, sections):
    """Of pages and indexes alike, though no row changed; and of what a build depends on."""
    sections.add(Products)
    fill()
    run()
    before = Build.objects.get().declaration
    settings.SITEMAPKIT_SCHEMA_LOCATION = True
    assert set(states(run()).values()) == {"stored"}
    assert Build.objects.latest("pk").declaration != before


def test_the_longest_location_fits_where_it_is_counted(settings):
    """What the COUNT alone tells is never too few."""
    quotes = IndexEntry(
        location=BASE + "/" + "'" * (MAX_LOCATION - len(BASE) - 1),
        lastmod="2024-02-29T12:00:00+00:00",
    )
    settings.SITEMAPKIT_MAX_BYTES = 10 * (6 * MAX_LOCATION + 600)
    settings.SITEMAPKIT_SCHEMA_LOCATION = True
    assert list(write_indexes([quotes] * 10)) == [0]
