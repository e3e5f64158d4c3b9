"""Which site a request or a build is for, and what holds while it is active."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from types import SimpleNamespace

import pytest
from asgiref.sync import async_to_sync
from django.core.checks import run_checks
from django.core.exceptions import DisallowedHost, ImproperlyConfigured
from django.core.management import call_command
from django.db import ProgrammingError
from django.http import Http404
from django.middleware.locale import LocaleMiddleware
from django.test import AsyncClient
from django.urls import get_script_prefix, get_urlconf, reverse, set_script_prefix, set_urlconf
from django.utils import translation

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import build
from django_sitemapkit.checks.sites import (
    check_addresses_differ,
    check_settings,
)
from django_sitemapkit.conf import caching_sites, forget_sites
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import SitemapSite, all_sites, site_for
from tests.builds import use_storage
from tests.testapp import serving
from tests.testapp.models import Shop


class Homes(StaticSection):
    """The first page of each site."""

    items = ["/"]


def ask(rf, host="www.example.com", path="/sitemap.xml", **options):
    """Return the site for a request."""
    return site_for(rf.get(path, headers={"host": host}, **options))


@pytest.fixture
def unconfigured(settings):
    """Take away what the settings say of sites."""
    settings.SITEMAPKIT_BASE_URL = None
    settings.SITEMAPKIT_SITES = {}


# --- SITEMAPKIT_BASE_URL


@pytest.mark.parametrize(
    ("base_url", "origin", "path", "prefix"),
    [
        ("https://www.example.com", "https://www.example.com", "", "/"),
        ("https://www.example.com/", "https://www.example.com", "", "/"),
        ("HTTPS://WWW.Example.COM:443/", "https://www.example.com", "", "/"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000", "", "/"),
        ("https://www.example.com:8443/a/b/", "https://www.example.com:8443", "/a/b", "/a/b/"),
        ("https://www.example.com/ñ x", "https://www.example.com", "/%C3%B1%20x", "/ñ x/"),
    ],
)
def test_a_base_url_is_origin_and_path(base_url, origin, path, prefix):
    """In normal form, the path encoded, and decoded where ``reverse()`` takes it."""
    site = SitemapSite.at(base_url)
    assert (site.origin, site.path, site.prefix) == (origin, path, prefix)


def test_a_wrong_base_url_names_its_site():
    """It may be one of many."""
    with pytest.raises(ImproperlyConfigured, match="'shop'"):
        SitemapSite.at("example.com", key="shop")


def test_the_one_site_answers_whatever_the_host_of_the_request(rf, settings):
    """What anyone may write into a request never comes into a file."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_BASE_URL = "https://www.example.com:8443/shop"
    site = ask(rf, host="forged.example")
    assert site == all_sites()[0]
    assert site.origin == "https://www.example.com:8443"
    assert site.address("index") == "https://www.example.com:8443/shop/sitemap.xml"


# --- SITEMAPKIT_SITES


@pytest.fixture
def several(settings):
    """Set up several sites, two of them on one host."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": "https://www.example.com", "SECTIONS": ["news"]},
        "shop": {"BASE_URL": "https://www.example.com/shop", "URLCONF": "tests.urls_below"},
        "deep": {"BASE_URL": "https://www.example.com/shop/ñ"},
        "port": {"BASE_URL": "http://other.example:8080"},
    }


@pytest.mark.parametrize(
    ("host", "path", "key"),
    [
        ("www.example.com", "/sitemap.xml", "main"),
        ("WWW.EXAMPLE.COM", "/sitemap.xml", "main"),
        ("www.example.com", "/shop/sitemap.xml", "shop"),
        ("www.example.com", "/shop/%C3%B1/sitemap.xml", "deep"),
        ("www.example.com", "/shopping/sitemap.xml", "main"),
        ("www.example.com", "/shop", "main"),
        ("other.example:8080", "/sitemap.xml", "port"),
    ],
)
def test_a_site_is_found_by_its_host_and_the_longest_path(rf, several, host, path, key):
    """A path counts in whole segments."""
    assert ask(rf, host=host, path=path).key == key


@pytest.mark.parametrize("secure", [True, False], ids=["https", "http"])
@pytest.mark.parametrize("port", ["", ":443", ":80"])
def test_the_scheme_a_proxy_speaks_does_not_matter(rf, several, secure, port):
    """Behind a proxy that ends TLS every request looks like http, and may have either port."""
    site = ask(rf, host=f"www.example.com{port}", secure=secure)
    assert (site.key, site.origin) == ("main", "https://www.example.com")


@pytest.mark.parametrize("host", ["unknown.example", "other.example", "other.example:8081"])
def test_a_host_of_no_site_is_not_found(rf, several, host):
    """The port is part of the host."""
    with pytest.raises(Http404, match=host):
        ask(rf, host=host)


def test_a_host_that_django_does_not_allow_is_refused_by_django(rf, several, settings):
    """ALLOWED_HOSTS counts as everywhere."""
    settings.ALLOWED_HOSTS = ["www.example.com"]
    with pytest.raises(DisallowedHost):
        ask(rf, host="forged.example")


def test_sites_bring_their_sections_and_urlconf(several):
    """All of them are known without a request, and have what the settings say."""
    main, shop, deep, port = all_sites()
    assert [site.key for site in (main, shop, deep, port)] == ["main", "shop", "deep", "port"]
    assert (main.sections, main.urlconf) == (("news",), None)
    assert (shop.sections, shop.urlconf) == (None, "tests.urls_below")
    assert shop.address("index") == "https://www.example.com/shop/deep/sitemap.xml"
    assert port.address("index") == "http://other.example:8080/sitemap.xml"


def test_several_sites_go_before_one_base_url(rf, several, settings):
    """A base URL left over from before does not answer for them."""
    settings.SITEMAPKIT_BASE_URL = "https://old.example"
    assert "https://old.example" not in [site.origin for site in all_sites()]
    assert ask(rf).key == "main"


# --- The sites framework


@pytest.fixture
def framework(unconfigured, monkeypatch):
    """Let the sites framework be installed, and know one site for a request."""
    monkeypatch.setattr(
        "django.apps.apps.is_installed", lambda name: name == "django.contrib.sites"
    )
    monkeypatch.setattr(
        "django.contrib.sites.shortcuts.get_current_site",
        lambda request: SimpleNamespace(pk=7, domain="framework.example"),
    )


def test_the_sites_framework_answers_where_no_setting_does(rf, framework):
    """It knows no scheme: https. Its id, as text, is the key."""
    site = ask(rf, host="testserver")
    assert (site.key, site.origin, site.sections) == ("7", "https://framework.example", None)


def test_the_settings_go_before_the_sites_framework(rf, framework, settings):
    """Anyone who sets a base URL means it."""
    settings.SITEMAPKIT_BASE_URL = "https://www.example.com"
    assert ask(rf).key == "default"


# --- The host of the request


@pytest.mark.parametrize(
    ("debug", "allowed"),
    [
        pytest.param(False, ["testserver", "www.example.com"], id="named-hosts"),
        pytest.param(True, [], id="debug"),
        pytest.param(True, ["*"], id="debug-with-wildcard"),
    ],
)
def test_the_host_of_the_request_answers_where_nobody_can_forge_it(
    rf, unconfigured, settings, debug, allowed
):
    """With the scheme and the path the request came by."""
    settings.DEBUG, settings.ALLOWED_HOSTS = debug, allowed
    host = "localhost:8000" if not allowed else "www.example.com"
    assert ask(rf, host=host).origin == f"http://{host}"
    assert ask(rf, host=host, secure=True).origin == f"https://{host}"
    set_script_prefix("/mounted/")
    try:
        assert ask(rf, host=host).path == "/mounted"
    finally:
        set_script_prefix("/")


@pytest.mark.parametrize(
    "allowed",
    [["*"], [".example.com"], ["www.example.com", ".example.org"], []],
    ids=["star", "subdomains", "one-of-two", "none"],
)
def test_a_host_that_anyone_may_write_is_never_taken(rf, unconfigured, settings, allowed):
    """The error says which setting tells the host."""
    settings.ALLOWED_HOSTS = allowed
    with pytest.raises(ImproperlyConfigured, match="SITEMAPKIT_BASE_URL"):
        ask(rf)


def test_without_a_request_there_is_no_host_to_go_by(unconfigured):
    """A file is never built from a request, so a build says what to set."""
    with pytest.raises(ImproperlyConfigured, match="SITEMAPKIT_SITES"):
        all_sites()


# --- While a site is active


def state():
    """Return what ``active()`` changes."""
    return get_script_prefix(), get_urlconf(), translation.get_language()


@pytest.fixture
def visited():
    """Set the thread as a request of a French visitor does."""
    set_script_prefix("/visited/")
    set_urlconf("tests.urls_without")
    with translation.override("fr"):
        yield state()
    set_script_prefix("/")
    set_urlconf(None)


def test_an_active_site_has_its_prefix_its_urlconf_and_the_projects_language(visited):
    """A file is the same for all visitors, and after it the thread is as before."""
    site = SitemapSite.at("https://www.example.com/ñ", urlconf="tests.urls_below")
    with site.active():
        assert state() == ("/ñ/", "tests.urls_below", "en-us")
        assert reverse("sitemapkit:index") == "/%C3%B1/deep/sitemap.xml"
    assert state() == visited


class OwnMiddleware(LocaleMiddleware):
    """Chooses the language for a project that needs more than Django's does."""


DJANGOS = "django.middleware.locale.LocaleMiddleware"
OWN = f"{__name__}.OwnMiddleware"


@pytest.mark.parametrize(
    ("middleware", "urlconf", "language_code", "language", "home"),
    [
        (DJANGOS, "tests.urls_languages", "en-us", "en", "/en/"),
        (OWN, "tests.urls_languages", "en-us", "en", "/en/"),
        (DJANGOS, "tests.urls_languages", "es", "es", "/es/"),
        (DJANGOS, "tests.urls_languages", "de", "de", "/de/"),
        (DJANGOS, "tests.urls_default_language", "en-us", "en-us", "/"),
        (None, "tests.urls_languages", "en-us", "en-us", "/en-us/"),
    ],
)
def test_an_active_site_has_the_language_of_a_visitor_without_preference(
    settings, middleware, urlconf, language_code, language, home
):
    """``LANGUAGES`` has "en", so the middleware makes /en-us/ no address; / is one, though."""
    settings.LANGUAGE_CODE = language_code
    settings.MIDDLEWARE = ["django.middleware.common.CommonMiddleware", *filter(None, [middleware])]
    with SitemapSite.at("https://www.example.com", urlconf=urlconf).active():
        assert translation.get_language() == language
        assert reverse("home") == home


def test_an_active_site_may_speak_another_language(visited):
    """Each language of an entry is asked for in turn."""
    with SitemapSite.at("https://www.example.com").active("es"):
        assert state() == ("/", None, "es")
    assert state() == visited


def test_an_error_leaves_nothing_of_the_site_behind(visited):
    """The thread serves others afterwards."""
    with pytest.raises(ZeroDivisionError), SitemapSite.at("https://www.example.com").active("es"):
        _ = 1 / 0
    assert state() == visited


@pytest.mark.parametrize(
    ("urlconf", "directory"), [("tests.urls", "/shop/"), ("tests.urls_below", "/shop/deep/")]
)
def test_the_scope_is_the_folder_the_sitemaps_are_mounted_in(urlconf, directory):
    """A sitemap may list nothing above itself."""
    scope = SitemapSite.at("https://www.example.com:8443/shop", urlconf=urlconf).scope()
    assert (scope.origin, scope.directory) == ("https://www.example.com:8443", directory)


def test_a_urlconf_without_the_package_is_named():
    """The error shows the line to add, and where."""
    site = SitemapSite.at("https://www.example.com", key="shop", urlconf="tests.urls_without")
    with pytest.raises(ImproperlyConfigured, match=r"'shop'.*include.*tests\.urls_without"):
        site.address("index")


# --- Sites from a function


@pytest.fixture
def shops(settings, unconfigured):
    """Let each shop in the database be a site."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = "tests.testapp.serving.sites_of_shops"


@pytest.mark.django_db
def test_sites_may_be_rows_of_the_database(rf, shops, django_assert_num_queries):
    """They are read once, however often a request, build or command needs them."""
    for slug in ("tea", "coffee"):
        Shop.objects.create(slug=slug)
    with django_assert_num_queries(1), caching_sites():
        assert [site.key for site in all_sites()] == ["coffee", "tea"]
        assert ask(rf, "tea.example.com").key == "tea"
        with pytest.raises(Http404):
            ask(rf, "milk.example.com")


@pytest.mark.slow
@pytest.mark.django_db
def test_each_request_build_and_command_reads_them_again(client, shops, settings):
    """So does code that says they have changed."""
    Shop.objects.create(slug="aniseed")
    assert client.get("/sitemap.xml", headers={"host": "tea.example.com"}).status_code == 404
    Shop.objects.create(slug="tea")
    with registry.isolated():
        registry.add(Homes)
        assert client.get("/sitemap.xml", headers={"host": "tea.example.com"}).status_code == 200
        use_storage(settings, "Memory")
        Shop.objects.create(slug="coffee")
        out = StringIO()
        call_command("sitemap_status", stdout=out)
        assert "coffee" in out.getvalue()
        with caching_sites():
            assert len(all_sites()) == 3
            Shop.objects.create(slug="milk")
            seen = []
            build(all_sites()[0], on_file=lambda *file: seen.append(len(all_sites())))
            assert seen[0] == 4
            assert len(all_sites()) == 3
            out = StringIO()
            call_command("sitemap_status", stdout=out)
            assert "milk" in out.getvalue()
            assert len(all_sites()) == 3
            forget_sites()
            assert len(all_sites()) == 4


@pytest.fixture
def tenant(settings, unconfigured):
    """Let the only site be the tenant's; give a list of the tenant and of those asked for."""
    asked = ["tea"]

    def site_of_tenant():
        asked.append(asked[0])
        return {asked[0]: {"BASE_URL": f"https://{asked[0]}.example.com"}}

    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = "tests.testapp.serving.sites_of_shops"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "sites_of_shops", site_of_tenant)
        yield asked


@pytest.mark.slow
@pytest.mark.django_db
def test_nothing_is_kept_between_requests_builds_and_commands(client, rf, tenant, settings):
    """A thread that works on, such as a task queue's, may be another tenant's by then."""
    use_storage(settings, "Memory")
    with registry.isolated():
        registry.add(Homes)
        for name in ("tea", "coffee"):
            tenant[0] = name
            assert [build(site).site for site in all_sites()] == [name]
        tenant[0] = "tea"
        assert client.get("/sitemap.xml", headers={"host": "tea.example.com"}).getvalue()
        tenant[0] = "coffee"
        assert [site.key for site in all_sites()] == ["coffee"]
        call_command("sitemap_status", stdout=StringIO())
        ask(rf, "coffee.example.com")
        tenant[0] = "tea"
        assert [site.key for site in all_sites()] == ["tea"]


@pytest.mark.django_db
def test_a_system_check_reads_them_once(tenant):
    """``migrate`` and others run all of them each time."""
    check_addresses_differ()
    assert len(tenant) == 2


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("in_task", [False, True])
def test_each_request_under_asgi_reads_them_once(tenant, in_task):
    """Even if the server handles several in one task: there Django's signals cannot tell."""

    async def ask_each():
        statuses = []
        assert len(all_sites()) == 1
        for name in ("tea", "coffee"):
            tenant[:] = [name]
            host = b"host", f"{name}.example.com".encode()
            asking = AsyncClient().request(path="/sitemap.xml", headers=[host])
            response = await (asyncio.create_task(asking) if in_task else asking)
            statuses.append((response.status_code, len(tenant) - 1))
        return statuses

    with registry.isolated():
        registry.add(Homes)
        # In this very thread: another one would leave its connection open.
        assert async_to_sync(ask_each)() == [(200, 1), (200, 1)]


def test_one_thread_does_not_see_the_sites_of_another(monkeypatch, settings):
    """Each may be the thread of another tenant."""
    found = iter(
        [{"a": {"BASE_URL": "https://a.example"}}, {"b": {"BASE_URL": "https://b.example"}}]
    )
    monkeypatch.setattr(serving, "sites_of_shops", lambda: next(found))
    settings.SITEMAPKIT_SITES = "tests.testapp.serving.sites_of_shops"
    with caching_sites(), ThreadPoolExecutor() as pool:
        assert [site.key for site in all_sites()] == ["a"]
        assert [site.key for site in pool.submit(all_sites).result()] == ["b"]
        assert [site.key for site in all_sites()] == ["a"]


def test_a_function_that_raises_is_named(monkeypatch, settings):
    """By a warning of the checks, and by all that needs the sites."""

    def fail():
        raise KeyError("tenant")

    monkeypatch.setattr(serving, "sites_of_shops", fail)
    settings.SITEMAPKIT_SITES = "tests.testapp.serving.sites_of_shops"
    with pytest.raises(ImproperlyConfigured, match=r"SITES\(\) raised KeyError: 'tenant'\."):
        all_sites()
    (warning,) = check_settings()
    assert warning.id == "sitemapkit.W001"
    assert "KeyError" in warning.msg


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("tests.testapp.serving.nothing", "does not define"),
        ("tests.testapp.serving.BASE", "is not a function"),
        ("tests.test_sites.of_no_use", r"SITEMAPKIT_SITES\(\) must be a dict"),
    ],
)
def test_a_function_of_no_use_is_named(settings, value, message):
    """Before anything is served, and as a check."""
    settings.SITEMAPKIT_SITES = value
    with pytest.raises(ImproperlyConfigured, match=message):
        all_sites()
    is_called = value == "tests.test_sites.of_no_use"
    assert [each.id for each in check_settings()] == [f"sitemapkit.{'W' if is_called else 'E'}001"]


def of_no_use():
    """Return something else than sites."""
    return ["https://www.example.com"]


@pytest.mark.django_db
def test_checks_do_not_trip_over_a_table_that_does_not_exist_yet(settings, monkeypatch):
    """``migrate`` runs them before it makes the table."""

    def missing():
        raise ProgrammingError("no such table: testapp_shop")

    monkeypatch.setattr(serving, "sites_of_shops", missing)
    settings.SITEMAPKIT_SITES = "tests.testapp.serving.sites_of_shops"
    assert run_checks() == []
