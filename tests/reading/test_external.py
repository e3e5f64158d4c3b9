"""External sections: what stands in the index as it is, and what is left out of it."""

import datetime as dt

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import lazystr

from django_sitemapkit import External, ExternalSection, StaticSection, checks, register
from django_sitemapkit.builds import build
from django_sitemapkit.exceptions import NothingToPublish
from django_sitemapkit.overrides import section_of, sections_of
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering import external_entries
from django_sitemapkit.sites import SitemapSite
from tests.builds import SITE, manifest, run, states, use_storage
from tests.testapp.serving import BASE, locations

pytestmark = pytest.mark.django_db

CDN = "https://cdn.example.com"


class Paths(StaticSection):
    items = ["/a/"]


def external(name="feeds", **options):
    """Register an external section with these options."""
    section = type("Feeds", (ExternalSection,), {"name": name, **options})
    register(section)
    return section


def listed(site=SITE):
    """Return the locations that external sections add to the index of a site."""
    return [entry.location for entry in external_entries(site)]


# --- What may be listed


def test_names_paths_and_urls_stand_in_the_index(sections):
    """Whatever kind of file is there: the address is all that an index says."""
    items = ["home", "/feed.rss", f"{BASE}/news/atom.xml", "/deep/urls.txt.gz", lazystr("about")]
    external(sitemaps=[*items, External(location="/other.xml")])
    assert listed() == [
        *(f"{BASE}/", f"{BASE}/feed.rss", f"{BASE}/news/atom.xml", f"{BASE}/deep/urls.txt.gz"),
        *(f"{BASE}/about/", f"{BASE}/other.xml"),
    ]


def test_addresses_are_in_the_normal_form(sections):
    """As pages' are."""
    external(sitemaps=["/españa.xml", "HTTPS://WWW.Example.COM:443/a b.xml"])
    assert listed() == [f"{BASE}/espa%C3%B1a.xml", f"{BASE}/a%20b.xml"]


def test_a_method_gives_them_for_each_site(sections):
    """It is asked again each time, and knows the site."""

    def sitemaps(self):
        return (f"/{self.site.key}-{number}.xml" for number in range(2))

    external(sitemaps=sitemaps)
    assert listed() == [f"{BASE}/default-0.xml", f"{BASE}/default-1.xml"]


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ("http://www.example.com:8080/a.xml", "url-not-allowed"),
        ("https://example.com/a.xml", "url-not-allowed"),
        ("https://www.example.com:8443/a.xml", "url-not-allowed"),
        (f"{CDN}/a.xml", "url-not-allowed"),
        ("//cdn.example.com/a.xml", "url-not-allowed"),
        ("feeds/a.xml", "invalid-url"),
        ("javascript:/a", "invalid-url"),
        ("/a.xml#b", "invalid-url"),
        ("/../a.xml", "invalid-url"),
        ("/" + "a" * 2047, "invalid-url"),
        ("no-such-name", "no-url"),
        ("", "invalid-url"),
        (None, "invalid-url"),
        (5, "invalid-url"),
        (External(location=None), "invalid-url"),
        ("/sitemap.xml", "nested-index"),
        ("/sitemap.xml?page=2", "nested-index"),
        ("sitemapkit:index", "nested-index"),
    ],
)
def test_what_the_protocol_forbids_is_left_out_and_told(sections, caplog, item, code):
    """The index stays valid, and the others stay in it."""
    external(sitemaps=["/before.xml", item, "/after.xml"])
    assert listed() == [f"{BASE}/before.xml", f"{BASE}/after.xml"]
    (record,) = caplog.records
    assert code_of(record) == code
    assert "'feeds'" in record.getMessage()


def code_of(record):
    """Return the code of the problem that a line of the log tells of."""
    words = {
        "Invalid URL": "invalid-url",
        "URL not allowed": "url-not-allowed",
        "No URL": "no-url",
        "Nested index": "nested-index",
    }
    (code,) = [code for word, code in words.items() if word in record.getMessage()]
    return code


@pytest.mark.parametrize("name", ["/sitemap-1.xml", "/sitemap-02.xml", "/blog/sitemap.xml"])
def test_what_only_looks_like_an_index_is_listed(sections, name):
    """These addresses are none of the package's."""
    external(sitemaps=[name])
    assert listed() == [f"{BASE}{name}"]


def test_a_file_above_the_folder_of_the_index_is_left_out(settings, sections, caplog):
    """A file that an index lists stands in its folder or in a deeper one."""
    settings.ROOT_URLCONF = "tests.urls_below"
    external(sitemaps=["/feed.xml", "/deep/feed.xml", "/deep/er/feed.xml", "/deeper/feed.xml"])
    assert listed() == [f"{BASE}/deep/feed.xml", f"{BASE}/deep/er/feed.xml"]
    assert "is not below /deep/" in caplog.text


def test_a_declared_host_may_have_some(sections, caplog):
    """At any path of it, with its scheme and its port, and no other host."""
    hosts = [CDN, "http://other.example:8080/"]
    wrong = ["http://cdn.example.com/b.xml", "https://a.cdn.example.com/c.xml", f"{CDN}:444/d.xml"]
    good = [f"{CDN}/deep/a.xml", "http://OTHER.example:8080/e.xml", "/f.xml"]
    external(sitemaps=[*good, *wrong], hosts=hosts)
    assert listed() == [good[0], "http://other.example:8080/e.xml", f"{BASE}/f.xml"]
    assert "3 x " in caplog.text


@pytest.mark.parametrize(
    "host", ["cdn.example.com", "ftp://a.example", f"{CDN}/x", f"{CDN}/?a", 5, None, ""]
)
def test_a_host_that_is_none_is_told_and_declares_nothing(sections, caplog, host):
    """What else there is, is listed."""
    external(sitemaps=[f"{CDN}/a.xml", "/b.xml"], hosts=[host])
    assert listed() == [f"{BASE}/b.xml"]
    assert "listed without it" in caplog.text


def test_the_index_of_another_site_of_ours_is_an_index_too(settings, sections, caplog):
    """Be its host declared."""
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": BASE},
        "second": {
            "BASE_URL": "https://second.example.com",
            "URLCONF": "tests.testapp.urls_second",
        },
        "broken": {"BASE_URL": "https://broken.example", "URLCONF": "tests.urls_without"},
    }
    second = "https://second.example.com"
    items = [f"{second}/maps/sitemap.xml", f"{second}/sitemap.xml"]
    external(sitemaps=items, hosts=[second])
    assert listed() == [f"{second}/sitemap.xml"]
    assert "feeds" in caplog.text


def test_a_site_that_only_the_request_knows_has_its_indexes(settings, sections):
    """Nothing is listed that would nest, with no site in the settings."""
    settings.SITEMAPKIT_BASE_URL = None
    external(sitemaps=["/sitemap.xml", "/a.xml"])
    assert listed(SitemapSite.at("http://testserver")) == ["http://testserver/a.xml"]


def test_the_same_file_is_listed_once(sections, caplog):
    """The first one wins, another section's too, whatever form the others are in."""
    external(sitemaps=["/a.xml", f"{BASE}/a.xml", "/%61.xml", "//www.example.com/a.xml"])
    external("others", sitemaps=["/b.xml", External(location="/a.xml", lastmod="2024-01-01")])
    assert listed() == [f"{BASE}/a.xml", f"{BASE}/b.xml"]
    assert caplog.text.count("is already in the index") == 2


# --- lastmod


def lastmods():
    """Return the lastmods of the entries."""
    return [entry.lastmod for entry in external_entries(SITE)]


def test_a_lastmod_is_that_of_the_file_or_of_all(sections):
    """Text, dates and datetimes; the item's own wins."""
    own = External(location="/a.xml", lastmod=dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC))
    external(sitemaps=[own, "/b.xml", External(location="/c.xml")], lastmod=dt.date(2024, 1, 1))
    assert lastmods() == ["2024-02-29T12:00:00+00:00", "2024-01-01", "2024-01-01"]


def test_a_method_gets_the_item(sections):
    """And may have none to tell."""
    external(
        sitemaps=["/a.xml", "/b.xml"],
        lastmod=lambda self, item: "2024-01-01" if item == "/a.xml" else None,
    )
    assert lastmods() == ["2024-01-01", None]


@pytest.mark.parametrize("value", ["2005-02-30", "yesterday", 5, dt.date(2999, 1, 1)])
def test_a_lastmod_that_is_wrong_or_to_come_is_left_out(sections, caplog, value):
    """The file is listed without it."""
    external(sitemaps=["/a.xml"], lastmod=value)
    assert (listed(), lastmods()) == ([f"{BASE}/a.xml"], [None])
    assert "Invalid date" in caplog.text


def test_a_lastmod_that_fails_on_an_item_costs_it_the_lastmod(sections, caplog):
    """The item is listed, and the reason is reported."""

    def lastmod(self, item):
        return {"/a.xml": None}[item]

    external(sitemaps=["/a.xml", "/b.xml"], lastmod=lastmod)
    assert listed() == [f"{BASE}/a.xml", f"{BASE}/b.xml"]
    assert "lastmod raised KeyError" in caplog.text
    assert "(listed without it)" in caplog.text


# --- Registering


def test_it_is_no_section_with_pages(sections, client):
    """Neither planned nor built, and it has no page."""
    external(sitemaps=["/a.xml"])
    register(type("Paths", (Paths,), {}))
    assert [section.get_name() for section in registry] == ["paths"]
    assert [section.get_name() for section in sections_of(SITE)] == ["paths"]
    assert registry.get(SITE, "feeds") is None
    assert section_of(SITE, "feeds") is None
    assert client.get("/sitemap-feeds-1.xml").status_code == 404
    assert [section.get_name() for section in registry.externals(SITE)] == ["feeds"]
    assert repr(registry.externals(SITE)[0]) == "<section 'feeds' of site 'default'>"


def test_names_are_unique_among_all_sections(sections):
    """Whichever comes first."""
    external("paths", sitemaps=["/a.xml"])
    with pytest.raises(ImproperlyConfigured, match="'paths'"):
        register(type("Paths", (Paths,), {}))
    with pytest.raises(ImproperlyConfigured, match="'paths'"):
        external("paths")


def test_a_name_comes_of_the_class_or_is_given(sections):
    """As any section's."""

    class NewsFeedsSection(ExternalSection):
        sitemaps = ["/a.xml"]

    register(NewsFeedsSection)
    register(NewsFeedsSection, name="others")
    assert [s.get_name() for s in registry.externals(SITE)] == ["news-feeds", "others"]


def test_one_that_is_off_or_elsewhere_is_not_listed(settings, sections):
    """As any section."""
    external("off", sitemaps=["/off.xml"], enabled=False)
    external("shop", sitemaps=["/shop.xml"], sites=["shop"])
    external("all", sitemaps=["/all.xml"])
    shop = SitemapSite.at("https://shop.example", key="shop", sections=("shop",))
    assert listed() == [f"{BASE}/all.xml"]
    assert listed(shop) == ["https://shop.example/shop.xml"]


# --- In the index


@pytest.fixture
def storage(settings):
    """Store sitemaps in memory, and give that storage."""
    return use_storage(settings, "Memory")


def index(client):
    """Return what the index lists, without what is before the paths."""
    return [
        found.removeprefix(f"{BASE}/") for found in locations(client.get("/sitemap.xml").content)
    ]


def test_it_comes_behind_the_pages_live_and_published(sections, storage, client):
    """In the order of registration."""
    external("one", sitemaps=["/one.xml"])
    register(type("Paths", (Paths,), {}))
    external("two", sitemaps=[External(location="/two.xml", lastmod="2024-01-01")])
    expected = ["sitemap-paths-1.xml.gz", "one.xml", "two.xml"]
    assert index(client) == expected
    result = run()
    assert set(states(result)) == {("paths", 1), ("", 0)}
    assert (index(client), manifest()["", 0].urls) == (expected, 3)
    assert b"<loc>https://www.example.com/two.xml</loc><lastmod>2024-01-01" in (
        client.get("/sitemap.xml").content
    )


def test_a_site_of_nothing_else_is_served_and_built(sections, storage, client):
    """Anyone who has feeds and nothing more has an index."""
    feeds = external(sitemaps=["/a.xml"])
    assert index(client) == ["a.xml"]
    assert run().status == "published"
    assert run().status == "unchanged"
    assert index(client) == ["a.xml"]
    feeds.sitemaps = ["/b.xml"]
    assert index(client) == ["a.xml"]
    assert run().status == "published"
    assert index(client) == ["b.xml"]
    feeds.sitemaps = ["javascript:"]
    with pytest.raises(NothingToPublish):
        run()
    assert index(client) == ["b.xml"]


def test_what_is_external_is_built_anew_with_the_index(sections, storage, client):
    """No page is made for it, and none is rendered again."""
    register(type("Paths", (Paths,), {}))
    run()
    external(sitemaps=["/a.xml"])
    assert index(client) == ["sitemap-paths-1.xml.gz"]
    result = run()
    assert states(result) == {("paths", 1): "same", ("", 0): "stored"}
    assert index(client) == ["sitemap-paths-1.xml.gz", "a.xml"]


def test_live_pages_join_the_published_index_before_it(sections, storage, client):
    """Where a section was never built."""
    register(type("Paths", (Paths,), {}))
    external(sitemaps=["/a.xml"])
    run()
    register(type("New", (Paths,), {"items": ["/new/"]}))
    assert index(client) == ["sitemap-paths-1.xml.gz", "sitemap-new-1.xml.gz", "a.xml"]


def broken(self):
    """Fail."""
    raise LookupError("no feeds today")


def test_what_fails_leaves_the_published_index_as_it_is(sections, storage, client, caplog):
    """A live index is an honest error; what was published needs nothing of it."""
    register(type("Paths", (Paths,), {}))
    feeds = external(sitemaps=["/a.xml"])
    run()
    feeds.sitemaps = broken
    assert index(client) == ["sitemap-paths-1.xml.gz", "a.xml"]
    register(type("New", (Paths,), {"items": ["/new/"]}))
    assert index(client) == ["sitemap-paths-1.xml.gz", "sitemap-new-1.xml.gz"]
    assert "no feeds today" in caplog.text
    with pytest.raises(ImproperlyConfigured, match=r"'feeds': broken\(\) raised LookupError"):
        build(SITE)


@pytest.mark.parametrize("option", ["sitemaps", "hosts"])
def test_what_fails_is_no_half_an_index(sections, client, caplog, option):
    """It would look like a whole one; the log names the section."""
    register(type("Paths", (Paths,), {}))
    external(**{"sitemaps": ["/a.xml"], option: property(broken)})
    assert client.get("/sitemap.xml").status_code == 503
    assert "Section 'feeds': broken() raised LookupError: no feeds today" in caplog.text


# --- Checks


def found():
    """Return the ids that the check of declarations reports, each with a way out and the class."""
    messages = checks.declarations.check_declarations()
    assert all(message.hint and message.obj for message in messages)
    return [message.id for message in messages]


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ({"sitemaps": "/a.xml"}, ["E020"]),
        ({"sitemaps": None}, ["E020"]),
        ({"sitemaps": {"a": "/a.xml"}}, ["E020"]),
        ({"sitemaps": ["/a.xml", 5]}, ["E020"]),
        ({"sitemaps": ["no-such-name"]}, ["E021"]),
        ({"sitemaps": [f"{CDN}/a.xml"]}, ["E021"]),
        ({"sitemaps": ["/sitemap.xml", "/a b.xml", "javascript:/"]}, ["E021", "E021"]),
        ({"sitemaps": [External(location="/sitemap.xml")]}, ["E021"]),
        ({"hosts": CDN}, ["E022"]),
        ({"hosts": None}, ["E022"]),
        ({"hosts": ["cdn.example.com", CDN, f"{CDN}/x", 5]}, ["E022"] * 3),
        ({"lastmod": "yesterday"}, ["E023"]),
        ({"sitemaps": [External(location="/a.xml", lastmod=5)]}, ["E023"]),
        (
            {
                "sitemaps": [External(location="/a.xml", lastmod=5)],
                "lastmod": lambda self, item: 1 / 0,
            },
            ["E023"],
        ),
        ({"items": ["/a.xml"]}, ["E024"]),
        ({"changefreq": "daily", "priority": 1}, ["E024"] * 2),
        ({"sitemap": ["/a.xml"]}, ["E024"]),
        ({"_sitemap": ["/a.xml"], "feeds": 5}, []),
        ({"sitemaps": broken, "lastmod": broken}, []),
        ({"sitemaps": [f"{CDN}/a.xml", "home"], "hosts": (CDN,)}, []),
    ],
)
def test_each_mistake_is_reported_by_its_own_check(sections, options, codes):
    """And no method is run."""
    external(**options)
    assert found() == [f"sitemapkit.{code}" for code in codes]


def test_without_the_packages_urls_only_names_are_looked_at(settings, sections):
    """W005 says what is missing."""
    settings.ROOT_URLCONF = "tests.urls_without"
    external(sitemaps=["/a.xml", "no-such-name"], hosts=["wrong"])
    assert found() == ["sitemapkit.E021"]


def test_a_site_may_name_it(settings, sections):
    """SECTIONS of a site has external ones too, and these have sites."""
    external(sitemaps=["/a.xml"], sites=["shop", "blog"])
    settings.SITEMAPKIT_SITES = {
        "shop": {"BASE_URL": "https://shop.example", "SECTIONS": ["feeds"]}
    }
    assert checks.sites.check_site_sections() == []
    assert [message.id for message in checks.sites.check_section_sites()] == ["sitemapkit.E004"]


def test_two_slashes_name_a_declared_host(sections):
    """They have the scheme of the site, whatever host follows (RFC 3986, 4.2)."""
    external(sitemaps=["//cdn.example.com/a.xml"], hosts=[CDN])
    assert listed() == [f"{CDN}/a.xml"]
