"""The pages of Wagtail: what is listed, where, and how the locales link to each other."""

import datetime as dt
import gzip
import re

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings
from django.utils import timezone
from wagtail.contrib.sitemaps import Sitemap
from wagtail.models import Locale, Page, PageViewRestriction, Site

from django_sitemapkit.audit.moving import SitemapComparison
from django_sitemapkit.builds import build
from django_sitemapkit.conf import forget_sites
from django_sitemapkit.contrib import wagtail
from django_sitemapkit.contrib.wagtail import Pages, register_pages, sites
from django_sitemapkit.inspection import inspect_object, inspect_path
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import SitemapSite, all_sites
from tests.builds import use_storage
from tests.test_docs import ROOT, blocks_of
from tests.wagtail.models import EventPage, NewsPage, PlainPage

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def registered():
    """Register the pages, as a project does, with the sites of the test alone."""
    forget_sites()
    with registry.isolated():
        register_pages()
        yield


@pytest.fixture
def home():
    """Return the home page of the site at www.example.com."""
    Locale.objects.create(language_code="en")
    root = Page.add_root(instance=Page(title="Root", slug="root"))
    home = root.add_child(instance=PlainPage(title="Home", slug="home"))
    Site.objects.create(hostname="www.example.com", port=443, root_page=home, is_default_site=True)
    return home


def add(parent, slug, kind=PlainPage, **fields):
    """Add a page to the tree."""
    return parent.add_child(instance=kind(title=slug.title(), slug=slug, **fields))


def listed(client, host="www.example.com"):
    """Return the links of each URL of a site's sitemap, by path, with codes and paths."""
    found = {}
    index = client.get("/sitemap.xml", headers={"host": host})
    if index.status_code == 404:
        return found
    for address in re.findall("<loc>https?://[^/]*(.*?)</loc>", index.getvalue().decode()):
        document = gzip.decompress(client.get(address, headers={"host": host}).getvalue())
        for line in document.decode().splitlines():
            if location := re.search("<loc>(https?://[^/]*)(.*?)</loc>", line):
                assert location[1] == f"https://{host}"
                assert location[2] not in found
                found[location[2]] = dict(
                    re.findall('hreflang="(.*?)" href="https://[^/]*(.*?)"', line)
                )
    return found


def test_live_pages_are_listed_and_no_others(client, home):
    """Neither drafts, nor private or expired pages or what is below them, nor aliases."""
    blog = add(home, "blog")
    add(blog, "post")
    add(blog, "draft", live=False)
    add(blog, "expired", expire_at=timezone.now() - dt.timedelta(days=1))
    add(blog, "expires-later", expire_at=timezone.now() + dt.timedelta(days=1))
    club = add(home, "club")
    add(club, "members")
    PageViewRestriction.objects.create(page=club, restriction_type=PageViewRestriction.LOGIN)
    blog.create_alias(parent=home, update_slug="alias")
    assert set(listed(client)) == {"/", "/blog/", "/blog/post/", "/blog/expires-later/"}


def test_aliases_are_listed_where_a_project_says_so(client, home):
    """By an option of a class of its own."""

    class WithAliases(Pages):
        name = "all"
        lists_aliases = True

    add(home, "blog").create_alias(parent=home, update_slug="alias")
    with registry.isolated():
        register_pages(WithAliases)
        assert set(listed(client)) == {"/", "/blog/", "/alias/"}
        assert [section.get_name() for section in registry] == [
            "all", "all-event-page", "all-news-page",
        ]  # fmt: skip


def test_a_derived_class_chooses_the_rows_of_each_section(client, home):
    """Those of models with methods of their own, too."""
    news = add(home, "news")
    add(news, "post")
    add(news, "event", EventPage)
    add(home, "other", EventPage)

    class News(Pages):
        name = "news"

        def get_queryset(self):
            return super().get_queryset().filter(path__startswith=news.path)

    with registry.isolated():
        register_pages(News)
        assert set(listed(client)) == {"/news/", "/news/post/", "/news/event/"}


def test_a_page_lists_what_its_own_methods_say(client, home):
    """None, one or three URLs; or another place than the tree's."""
    for urls in (0, 1, 3):
        add(home, f"event-{urls}", EventPage, urls=urls)
    add(home, "launch", NewsPage)
    assert set(listed(client)) == {
        *("/", "/event-1/", "/event-3/", "/event-3/day-1/", "/event-3/day-2/", "/news/launch/"),
    }


def test_all_is_equal_to_what_wagtail_lists(client, home):
    """But for aliases and expired pages, which Wagtail lists as well."""
    for urls in (0, 1, 3):
        add(home, f"event-{urls}", EventPage, urls=urls)
    add(add(home, "blog"), "post")
    add(home, "launch", NewsPage)
    old = client.get("/old-sitemap.xml", headers={"host": "www.example.com"})
    paths = re.findall("<loc>https://www.example.com(.*?)</loc>", old.content.decode())
    assert sorted(listed(client)) == sorted(paths)


def test_a_page_is_inspected_by_its_url(home):
    """Also one that is not listed; one by a method, as an object only."""
    add(home, "about")
    add(home, "draft", live=False)
    event = add(home, "event", EventPage)
    (site,) = all_sites()
    for path in ("/", "/about/"):
        found = inspect_path(site, path)
        assert (found.section, found.listed) == ("pages", True)
    assert inspect_path(site, "/draft/").why == "It is not live."
    unsearched = inspect_path(site, "/event/day-1/").why.partition("Not searched by URL: ")[2]
    assert "pages-event-page" in unsearched
    found = {one.section: one.listed for one in inspect_object(site, event)}
    assert found == {"pages": False, "pages-event-page": True, "pages-news-page": False}


def test_a_page_that_wagtail_lists_and_we_do_not_says_why(client, home):
    """An alias, what has expired, is private, or belongs to a site within the site."""
    blog = add(home, "blog")
    blog.create_alias(parent=home, update_slug="alias")
    add(home, "expired", expire_at=timezone.now() - dt.timedelta(days=1))
    club = add(home, "club")
    add(club, "members")
    PageViewRestriction.objects.create(page=club, restriction_type=PageViewRestriction.LOGIN)
    shop = add(home, "shop")
    add(shop, "tea")
    Site.objects.create(hostname="shop.example.com", port=443, root_page=shop)
    site = next(site for site in all_sites() if "www" in site.origin)
    assert set(listed(client)) == {"/", "/blog/"}
    old = client.get("/old-sitemap.xml", headers={"host": "www.example.com"})
    assert {"/alias/", "/expired/", "/shop/tea/"} <= set(
        re.findall("<loc>https://www.example.com(.*?)</loc>", old.content.decode())
    )
    removed = {
        difference.url.removeprefix("https://www.example.com"): difference.reason
        for difference in SitemapComparison(site, "old-sitemap")
    }
    assert removed == {
        "/alias/": "It is an alias of another page.",
        "/expired/": "It has expired.",
        "/shop/": "It is listed at another site, whose root page is nearer.",
        "/shop/tea/": "It is listed at another site, whose root page is nearer.",
    }
    assert inspect_path(site, "/club/members/").why == "It is private."


def test_an_entry_without_a_tag_has_none(client, home):
    """A page's methods say which ones, also where its section trusts lastmods."""

    class Trusting(Pages):
        trust_lastmod = True

    add(home, "event", EventPage, urls=2, last_published_at=timezone.now())
    with registry.isolated():
        register_pages(Trusting)
        assert [found for found in run_checks() if found.id.startswith("sitemapkit.E")] == []
        address = "/sitemap-pages-event-page-1.xml"
        text = client.get(address, headers={"host": "www.example.com"}).getvalue().decode()
    event, day = re.findall("<url>.*?</url>", text)
    assert "<lastmod>" in event
    assert "/day-1/" in day
    assert "<lastmod>" not in day


def test_lastmod_is_the_last_publication(client, home):
    """Else the last revision, as Wagtail has it."""
    when = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    Page.objects.filter(pk=home.pk).update(last_published_at=None, latest_revision_created_at=when)
    text = gzip.decompress(
        client.get("/sitemap-pages-1.xml.gz", headers={"host": "www.example.com"}).getvalue()
    )
    assert b"<lastmod>2024-02-29T12:00:00+00:00</lastmod>" in text


def test_each_site_lists_its_own_tree(client, home):
    """Also where the root of one lies within the tree of the other."""
    add(home, "about")
    shop = add(home, "shop")
    add(shop, "tea")
    Site.objects.create(hostname="shop.example.com", port=443, root_page=shop)
    assert set(listed(client)) == {"/", "/about/"}
    assert set(listed(client, "shop.example.com")) == {"/", "/tea/"}


def test_the_host_of_a_site_may_be_in_upper_case(client, home):
    """Wagtail's forms write it in lower case; a fixture or a script may not."""
    add(home, "about")
    shop = add(home, "shop")
    add(shop, "event", EventPage)
    Site.objects.create(hostname="Shop.Example.com", port=443, root_page=shop)
    assert set(listed(client)) == {"/", "/about/"}
    assert set(listed(client, "shop.example.com")) == {"/", "/event/"}


def site_at_port(port, **fields):
    """Make a site at www.example.com with a tree of its own, and return it."""
    root = Page.objects.get(depth=1).add_child(instance=PlainPage(title="Root", slug=f"r{port}"))
    return Site.objects.create(hostname="www.example.com", port=port, root_page=root, **fields)


def wagtail_site_of(site):
    """Return the site of Wagtail that a site of the sitemap has the pages of."""
    return Pages(site).wagtail_site


def test_sites_at_several_ports_of_a_host(home):
    """Each has its own tree, in whatever order they were made."""
    Site.objects.all().delete()
    for port in (8000, 443, 9000, 80):
        site_at_port(port)
    keys = [str(wagtail_site_of(site).pk) for site in all_sites()]
    assert keys == [site.key for site in all_sites()]


def test_sites_at_both_ports_behind_tls(home, settings):
    """They have one base URL; their keys tell which is which."""
    settings.SECURE_SSL_REDIRECT = True
    site_at_port(80)
    first, second = all_sites()
    assert first.origin == second.origin
    assert [str(wagtail_site_of(site).pk) for site in (first, second)] == [first.key, second.key]


@pytest.mark.parametrize(
    ("ports", "base_url", "found"),
    [
        ((8000, 80), "https://www.example.com", 80),
        ((8000, 80, 443), "https://www.example.com", 443),
        ((8000, 443), "http://www.example.com:8000", 8000),
        ((8000,), "https://www.example.com", 8000),
        ((8000, 9000), "https://www.example.com", None),
    ],
)
def test_a_base_url_of_the_settings(home, settings, ports, base_url, found):
    """The same port, else 80, else the only site of the host, as Wagtail takes them."""
    Site.objects.all().delete()
    settings.SITEMAPKIT_SITES = {}
    settings.SITEMAPKIT_BASE_URL = base_url
    for port in ports:
        site_at_port(port)
    (site,) = all_sites()
    if found is None:
        with pytest.raises(ImproperlyConfigured, match="no site at"):
            wagtail_site_of(site)
    else:
        assert wagtail_site_of(site).port == found


def test_sites_with_the_same_root_list_the_same_pages(client, home):
    """Those by methods, too, for which Wagtail gives the address of the first of these sites."""
    add(home, "event", EventPage, urls=2)
    Site.objects.create(hostname="b.example.com", port=443, root_page=home)
    expected = {"/", "/event/", "/event/day-1/"}
    assert set(listed(client)) == set(listed(client, "b.example.com")) == expected


@pytest.mark.parametrize(
    ("port", "options", "base_url"),
    [
        (443, {}, "https://www.example.com"),
        (80, {}, "http://www.example.com"),
        (80, {"SECURE_SSL_REDIRECT": True}, "https://www.example.com"),
        (80, {"SECURE_PROXY_SSL_HEADER": ("X", "https")}, "https://www.example.com"),
        (8000, {"SECURE_SSL_REDIRECT": True}, "http://www.example.com:8000"),
    ],
)
def test_the_base_url_of_a_site(home, port, options, base_url):
    """Behind TLS, the port in Wagtail is most often 80."""
    Site.objects.update(port=port)
    with override_settings(**options):
        assert sites() == {str(Site.objects.get().pk): {"BASE_URL": base_url}}


def test_one_site_in_the_settings_needs_no_host_in_wagtail(client, home, settings):
    """The default one is taken, whatever it is called there."""
    settings.SITEMAPKIT_SITES = {}
    settings.SITEMAPKIT_BASE_URL = "https://www.example.com"
    Site.objects.update(hostname="localhost", port=80)
    add(home, "event", EventPage)
    assert set(listed(client)) == {"/", "/event/"}


def test_the_default_site_takes_the_place_of_one_site_only(home, settings):
    """Of several, the pages of one would be listed at the host of another."""
    settings.SITEMAPKIT_SITES = {
        name: {"BASE_URL": f"https://{name}.example.com"} for name in ("www", "shop")
    }
    www, shop = all_sites()
    assert wagtail_site_of(www).is_default_site
    with pytest.raises(ImproperlyConfigured, match="no site at 'https://shop"):
        wagtail_site_of(shop)


def test_without_settings_the_default_site_is_at_each_host(home, settings):
    """As in Wagtail: live, nobody knows of other sites."""
    settings.SITEMAPKIT_SITES = {}
    site = SitemapSite.at("https://any.example.com")
    assert wagtail_site_of(site).is_default_site


def test_a_site_that_wagtail_does_not_have_is_named(home, settings):
    """With the way out."""
    settings.SITEMAPKIT_SITES = {}
    settings.SITEMAPKIT_BASE_URL = "https://elsewhere.example"
    Site.objects.update(is_default_site=False)
    with pytest.raises(ImproperlyConfigured, match="no site at 'https://elsewhere"):
        _ = Pages(all_sites()[0]).wagtail_site


def test_without_wagtails_urls_the_reason_is_named(home, settings):
    """A front end elsewhere has other URLs."""
    settings.ROOT_URLCONF = "tests.urls"
    with pytest.raises(ImproperlyConfigured, match="Wagtail's pages have no URLs"):
        _ = Pages(all_sites()[0]).location


@pytest.mark.parametrize("served", ["live", "built"])
def test_the_locales_of_a_page_link_to_each_other(client, home, settings, served):
    """A page in one locale alone is listed without links; a page by method links, too."""
    german = Locale.objects.create(language_code="de")
    heim = home.copy_for_translation(german)
    heim.slug, heim.live = "heim", True
    heim.save()
    about = add(home, "about")
    ueber = about.copy_for_translation(german)
    ueber.slug, ueber.live = "ueber", True
    ueber.save()
    event = add(home, "event", EventPage, urls=2)
    anlass = event.copy_for_translation(german)
    anlass.slug, anlass.live = "anlass", True
    anlass.save()
    add(home, "english-only")
    add(heim, "nur-deutsch", locale=german)
    Site.clear_site_root_paths_cache()
    if served == "built":
        use_storage(settings, "Memory")
        build(all_sites()[0])
    homes = {"en": "/", "de": "/de/"}
    abouts = {"en": "/about/", "de": "/de/ueber/"}
    events = {"en": "/event/", "de": "/de/anlass/"}
    assert listed(client) == {
        **{path: links for links in (homes, abouts, events) for path in links.values()},
        **{path: {} for path in ("/event/day-1/", "/de/anlass/day-1/")},
        **{path: {} for path in ("/english-only/", "/de/nur-deutsch/")},
    }


def translated(home):
    """Translate the home page to German, and add one page to each locale."""
    german = Locale.objects.create(language_code="de")
    heim = home.copy_for_translation(german)
    heim.slug, heim.live = "heim", True
    heim.save()
    add(home, "about")
    add(heim, "nur-deutsch", locale=german)
    Site.clear_site_root_paths_cache()


def test_a_locale_without_urls_of_its_own_is_not_listed(client, home, settings):
    """Without i18n_patterns, its pages are either at the URL of another page or nowhere."""
    settings.ROOT_URLCONF = "tests.wagtail.urls_without_languages"
    translated(home)
    assert listed(client) == {"/": {}, "/about/": {}}


def test_the_default_language_is_a_variant_of_the_locale(client, home, settings):
    """``LANGUAGE_CODE = "en-us"``, as Django has it, is "en" in ``LANGUAGES`` and in URLs."""
    settings.LANGUAGE_CODE = "en-us"
    settings.MIDDLEWARE = ["django.middleware.locale.LocaleMiddleware"]
    settings.ROOT_URLCONF = "tests.wagtail.urls_with_prefixes"
    translated(home)
    homes = {"en": "/en/", "de": "/de/"}
    assert listed(client) == {
        "/en/": homes, "/de/": homes, "/en/about/": {}, "/de/nur-deutsch/": {},
    }  # fmt: skip
    settings.ROOT_URLCONF = "tests.wagtail.urls"
    assert set(listed(client)) == {"/", "/about/", "/de/", "/de/nur-deutsch/"}


def test_without_locales_no_page_asks_for_translations(home, settings):
    """So that builds may reuse what has not changed."""
    settings.WAGTAIL_I18N_ENABLED = False
    section = Pages(all_sites()[0])
    assert section.translations is section.language is None


def test_urls_without_a_slash_at_their_end(client, home, monkeypatch):
    """As WAGTAIL_APPEND_SLASH = False has them; the root keeps its own."""
    for module in (wagtail, __import__("wagtail.models.pages", fromlist=["pages"])):
        monkeypatch.setattr(module, "WAGTAIL_APPEND_SLASH", False)
    add(add(home, "blog"), "post")
    section = Pages(all_sites()[0])
    rows = section.get_queryset().values_list(section.location, flat=True)
    assert set(rows) == {"/", "/blog", "/blog/post"}


def test_the_checks_find_nothing_wrong(home):
    """With the tables there, and the pages registered."""
    assert [found for found in run_checks() if found.id.startswith("sitemapkit.E")] == []


@pytest.mark.parametrize("number", [0, 1])
def test_what_the_documentation_declares_is_sound(client, home, settings, number):
    """Its settings, and each of its modules of sitemaps."""
    blocks = list(blocks_of(ROOT / "docs" / "wagtail.md"))
    configured = "".join(block.text for block in blocks if block.file == "settings.py")
    assert f'SITEMAPKIT_SITES = "{settings.SITEMAPKIT_SITES}"' in configured
    assert '"django_sitemapkit.contrib.wagtail_admin"' in configured
    declared = [block.text for block in blocks if block.file == "shop/sitemaps.py"]
    assert len(declared) == 2
    with registry.isolated():
        exec(declared[number], {})
        assert set(listed(client)) == {"/"}


def test_wagtails_own_sitemap_is_an_error_with_the_way_out(home):
    """It lists other URLs than its view does."""
    with registry.isolated():
        registry.add(Sitemap)
        (found,) = [one for one in run_checks() if one.id == "sitemapkit.E157"]
    assert "register_pages" in found.hint
