"""Old classes that ask the sites framework for the current site: each of ours sees its own."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.conf import settings as django_settings
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.http import Http404
from django.template import Context, Template

from django_sitemapkit import ExternalSection, Section, checks, register
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import KeyRange
from django_sitemapkit.sites import NoFrameworkSite, all_sites, site_for
from tests import factories
from tests.test_docs import ROOT, blocks_of
from tests.testapp.models import Article

HOSTS = ("www.example.com", "other.example")
SITES = {host: {"BASE_URL": f"https://{host}"} for host in HOSTS}


@pytest.fixture
def framework(db, settings):
    """Give the framework two sites, and each a flat page."""
    from django.contrib.flatpages.models import FlatPage
    from django.contrib.sites.models import Site

    Site.objects.clear_cache()
    Site.objects.all().delete()
    settings.SITE_ID = 1
    for pk, host in enumerate(HOSTS, start=1):
        site = Site.objects.create(pk=pk, domain=host)
        FlatPage.objects.create(url=f"/flat-{pk}/", title=host).sites.add(site)
    yield Site
    Site.objects.clear_cache()


@pytest.fixture
def flat_pages(framework, sections, settings):
    """Register the flat pages for two sites of the settings, at addresses that are their own."""
    from django.contrib.flatpages.sitemaps import FlatPageSitemap

    class FlatPages(FlatPageSitemap):
        def location(self, item):
            return item.url

    settings.SITEMAPKIT_SITES = SITES
    register(FlatPages)


def listed(client, host):
    """Return the paths that a host's flat pages list, and their hosts."""
    response = client.get("/sitemap-flat-pages-1.xml", headers={"host": host})
    if response.status_code != 200:
        return response.status_code
    document = b"".join(response).decode()
    return [part.partition("<")[0] for part in document.split("<loc>")[1:]]


def test_each_host_lists_its_own_flat_pages(flat_pages, client):
    """Not those of SITE_ID."""
    assert [listed(client, host) for host in HOSTS] == [
        ["https://www.example.com/flat-1/"],
        ["https://other.example/flat-2/"],
    ]
    assert django_settings.SITE_ID == 1


def test_a_host_that_the_framework_does_not_have_lists_no_other_hosts_pages(
    flat_pages, framework, client
):
    """It is a warning of check, which names section, host and the way out; the page waits."""
    assert checks.declarations.check_current_sites() == []
    framework.objects.filter(domain=HOSTS[1]).update(domain="renamed.example")
    (message,) = checks.declarations.check_current_sites()
    assert message.id == "sitemapkit.W156"
    assert message.msg == (
        "Section 'flat-pages' on site 'other.example': the section asked for the current site of"
        " the sites framework, which has no site for 'other.example'; SITE_ID belongs to another"
        " host."
    )
    assert message.hint == (
        "Add 'other.example' to the sites of the framework, or write a Section that uses self.site."
    )
    assert [listed(client, host) for host in HOSTS] == [["https://www.example.com/flat-1/"], 503]


def test_an_external_section_may_not_name_the_index_of_the_example_site(
    framework, sections, settings
):
    """The checks give it the key of the framework's site, whose index has another address."""
    settings.SITEMAPKIT_BASE_URL = None
    framework.objects.filter(pk=1).update(domain="renamed.example")

    class Feeds(ExternalSection):
        sitemaps = ["/sitemap.xml"]

    register(Feeds)
    assert "sitemapkit.E021" in {message.id for message in run_checks()}


def test_a_location_that_asks_for_the_current_site_is_its_own(framework, sections, settings):
    """A row cannot be listed for the wrong host, nor lost: its page fails by name."""

    class Products(Section):
        queryset = Article.objects.all()

        def location(self, obj):
            return f"/{django_settings.SITE_ID}/{obj.pk}/"

    everything = KeyRange()
    settings.SITEMAPKIT_SITES = {**SITES, "third": {"BASE_URL": "https://third.example"}}
    article = factories.ArticleFactory()
    found = []
    for site in all_sites()[:2]:
        (chunk,) = reader_of(Products(site)).chunks(everything)
        found += chunk.locations
    assert found == [f"/1/{article.pk}/", f"/2/{article.pk}/"]
    with pytest.raises(NoFrameworkSite, match=r"'third.example'"):
        list(reader_of(Products(all_sites()[2])).chunks(everything))


def test_the_host_of_a_language_is_seen_from_its_section(framework, sections, settings):
    """Where the framework has no such site, the links to it are not lost, nor the page."""
    settings.SITEMAPKIT_SITES = SITES

    class Products(Section):
        queryset = Article.objects.all()
        i18n = alternates = True
        languages = ("en", "es")
        language_hosts = {"en": "https://www.example.com", "es": "https://es.example.com"}

        def location(self, obj):
            return f"/{django_settings.SITE_ID}/{obj.pk}/"

    factories.ArticleFactory()
    (chunk,) = reader_of(Products(all_sites()[0])).chunks(KeyRange())
    assert len(chunk.locations) == 2
    assert {location.split("/")[1] for location in chunk.locations} == {"1"}


def test_one_site_keeps_the_projects_site_id(framework, settings):
    """The framework's domain is often left at example.com; with one site nothing is in doubt."""
    (site,) = all_sites()
    framework.objects.filter(pk=1).update(domain="left.alone")
    with site.active():
        assert framework.objects.get_current().pk == 1
    del settings.SITE_ID
    with site.active():
        assert not hasattr(django_settings, "SITE_ID")


def test_without_settings_each_site_of_the_framework_is_its_own(framework, settings):
    """No SITE_ID is needed then to ask for the current one."""
    settings.SITEMAPKIT_BASE_URL = None
    del settings.SITE_ID
    for site in all_sites():
        with site.active():
            assert str(framework.objects.get_current().pk) == site.key


def test_the_checks_ask_for_a_site_of_the_framework(framework, sections, settings):
    """Without SITE_ID there is no other; nothing is wrong with flat pages then."""
    from django.contrib.flatpages.sitemaps import FlatPageSitemap

    settings.SITEMAPKIT_BASE_URL = None
    del settings.SITE_ID
    register(FlatPageSitemap)
    assert checks.declarations.check_declarations() == []


def test_threads_and_tasks_do_not_see_each_others_site(framework, settings, monkeypatch):
    """Two are active at once, and the thread outside sees the setting."""
    settings.SITEMAPKIT_SITES = SITES
    ids = {f"https://{host}": pk for pk, host in enumerate(HOSTS, start=1)}
    find = lambda site, current: ids[site.origin]  # noqa: E731
    monkeypatch.setattr("django_sitemapkit.sites._framework_site_id", find)
    barrier = Barrier(3, timeout=10)

    def ask(site):
        with site.active():
            barrier.wait()
            found = django_settings.SITE_ID
            barrier.wait()
        return found

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, site) for site in all_sites()]
        barrier.wait()
        assert django_settings.SITE_ID == 1
        barrier.wait()
        assert [answer.result() for answer in asked] == [1, 2]

    async def in_task(site):
        await asyncio.sleep(0)
        with site.active():
            return await asyncio.create_task(_site_id())

    async def both():
        return await asyncio.gather(*map(in_task, all_sites()))

    assert asyncio.run(both()) == [1, 2]


async def _site_id():
    await asyncio.sleep(0)
    return django_settings.SITE_ID


def test_a_host_that_the_framework_does_not_know_is_not_found(framework, settings, rf, client):
    """As with SITEMAPKIT_SITES, it is 404, with the host in the reason."""
    settings.SITEMAPKIT_BASE_URL = None
    del settings.SITE_ID
    with pytest.raises(Http404, match=r"no site at unknown\.example"):
        site_for(rf.get("/sitemap.xml", headers={"host": "unknown.example"}))
    response = client.get("/sitemap.xml", headers={"host": "unknown.example"})
    assert response.status_code == 404


def test_a_site_id_of_no_site_names_the_setting(framework, settings, rf):
    """It is the project's mistake, not the reader's."""
    settings.SITEMAPKIT_BASE_URL = None
    settings.SITE_ID = 7
    with pytest.raises(ImproperlyConfigured, match=r"SITE_ID is 7.*SITEMAPKIT_BASE_URL"):
        site_for(rf.get("/sitemap.xml"))


def test_the_drop_ins_flat_pages_are_those_of_each_host(framework, settings, rf):
    """With sites of the settings, and with those of the framework; contrib has SITE_ID's alone."""
    from django_sitemapkit.contrib.sitemaps import FlatPageSitemap, views

    class FlatPages(FlatPageSitemap):
        def location(self, item):
            return item.url

    def listed_at(host):
        request = rf.get("/sitemap.xml", headers={"host": host})
        body = views.sitemap(request, {"flatpages": FlatPages}).content.decode()
        return [part.partition("<")[0] for part in body.split("<loc>")[1:]]

    settings.SITEMAPKIT_SITES = SITES
    assert list(map(listed_at, HOSTS)) == [
        ["https://www.example.com/flat-1/"],
        ["https://other.example/flat-2/"],
    ]
    settings.SITEMAPKIT_SITES = {}
    settings.SITEMAPKIT_BASE_URL = None
    assert list(map(listed_at, HOSTS)) == [["http://www.example.com/flat-1/"]] * 2
    del settings.SITE_ID
    assert list(map(listed_at, HOSTS)) == [
        ["http://www.example.com/flat-1/"],
        ["http://other.example/flat-2/"],
    ]
    with pytest.raises(Http404):
        listed_at("unknown.example")


# --- The recipes of the documentation


def declared_by(heading):
    """Register what the recipe with a heading declares."""
    (block,) = [one for one in blocks_of(ROOT / "docs" / "recipes.md") if one.heading == heading]
    text = block.text.replace("from .models", "from tests.testapp.models")
    exec(compile(text, str(block), "exec"), {"__name__": "recipe"})


def test_flat_pages_as_a_section(framework, sections, settings, client):
    """Those of the site that need no login."""
    from django.contrib.flatpages.models import FlatPage

    settings.SITEMAPKIT_SITES = SITES
    FlatPage.objects.create(url="/members/", registration_required=True).sites.add(1)
    declared_by("Flat pages")
    assert checks.declarations.check_declarations() == []
    assert [listed(client, host) for host in HOSTS] == [
        ["https://www.example.com/flat-1/"],
        ["https://other.example/flat-2/"],
    ]


def test_urls_that_redirect_are_left_out(framework, sections, settings, client):
    """Each site has redirects of its own."""
    from django.contrib.redirects.models import Redirect

    settings.SITEMAPKIT_SITES = SITES
    shop = factories.ShopFactory(slug="tea")
    for slug in ("green", "black"):
        factories.ProductFactory(shop=shop, slug=slug)
    Redirect.objects.create(site_id=1, old_path="/products/tea/green/", new_path="/green/")
    declared_by("Redirects")
    assert checks.declarations.check_declarations() == []
    found = [client.get("/sitemap-products-1.xml", headers={"host": host}) for host in HOSTS]
    one, two = (response.getvalue().decode() for response in found)
    assert "/tea/black/" in one
    assert "/tea/green/" not in one
    assert "/tea/green/" in two


@pytest.mark.parametrize("heading", ["Flat pages", "Redirects"])
def test_the_recipes_need_no_row(framework, sections, settings, heading):
    """A database that was just made is no mistake."""
    framework.objects.all().delete()
    framework.objects.clear_cache()
    declared_by(heading)
    assert checks.declarations.check_declarations() == []


@pytest.mark.parametrize("debug", [False, True])
def test_the_site_that_migrations_create_is_named(framework, settings, debug):
    """Nobody's pages are there; on a developer's machine it is as it should be."""
    settings.DEBUG, settings.SITEMAPKIT_BASE_URL = debug, None
    assert checks.sites.check_example_domain() == []
    framework.objects.filter(pk=1).update(domain="example.com")
    found = [message.id for message in checks.sites.check_example_domain()]
    assert found == ([] if debug else ["sitemapkit.W034"])
    settings.SITEMAPKIT_BASE_URL = "https://www.example.com"
    assert checks.sites.check_example_domain() == []


@pytest.mark.parametrize(
    ("site_id", "reason"),
    [
        (None, "The sites framework has no site"),
        (7, "SITE_ID is 7, and the sites framework has no"),
    ],
)
def test_a_framework_without_the_site_is_named(framework, settings, site_id, reason):
    """Commands fail, instead of ending well without a build; web pages only lack the links."""
    framework.objects.all().delete()
    framework.objects.clear_cache()
    settings.SITE_ID, settings.SITEMAPKIT_BASE_URL = site_id, None
    with pytest.raises(CommandError, match=reason):
        call_command("build_sitemaps")
    assert Template("{% load sitemapkit %}{% sitemap_link %}").render(Context()) == ""
    assert checks.sites.check_example_domain() == []
