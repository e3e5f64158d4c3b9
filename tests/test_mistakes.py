"""A beginner's mistakes: each is named by the exact message and its fix, without a traceback."""

import logging
import subprocess
import sys
from abc import ABC, abstractmethod
from functools import partial
from types import ModuleType
from unittest import mock

import pytest
from django.contrib import admin
from django.contrib.sitemaps import GenericSitemap, Sitemap
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.db.models import CharField, F, OuterRef, Subquery, Value
from django.db.models.functions import Concat
from django.db.models.query import ModelIterable
from django.http import HttpResponse
from django.test import override_settings
from django.urls import clear_url_caches, include, path
from django.utils.translation import get_language
from django.views.decorators.cache import cache_page

from django_sitemapkit import (
    ExternalSection,
    Route,
    Section,
    StaticSection,
    checks,
    register,
    register_all,
    views,
)
from django_sitemapkit.models import Build
from tests import factories
from tests.testapp.models import Product, Shop, Tag

PRODUCT = Route("product", shop="shop__slug", slug="slug")
INDEX = "/sitemap.xml"


def declare(base, **options):
    """Register a section or an old class that is called "things"."""
    return register(type("Things", (base,), options))


def said(function=checks.declarations.check_declarations):
    """Return what a check says and how to fix it."""
    return [(message.msg, message.hint) for message in function()]


class Words:
    """An object of a project's, with an address of its own or none."""

    def __init__(self, address=""):
        if address:
            self.get_absolute_url = lambda: address

    def __repr__(self):
        return "<words>"


class SpecificIterable(ModelIterable):
    """What Wagtail's ``specific()`` reads rows by; django-polymorphic has one of its own."""


def specific():
    """Return rows as ``specific()`` gives them."""
    rows = Product.objects.all()
    rows._iterable_class = SpecificIterable
    return rows


def raising(self):
    """Stand for a method with a mistake in it."""
    return {}["prices"]


RENAME = "Rename it to get_queryset() and return a QuerySet; for a list derive from ItemSection."
WHENEVER = (
    " work whenever it is called: before tables have rows, without a request, and while other"
    " services are down."
)
RAISED = (
    f"raising() raised KeyError: 'prices' (tests.test_mistakes, line"
    f" {raising.__code__.co_firstlineno + 2})."
)
RETURN = f"Let raising(){WHENEVER}"
VALUES = "Use a list of its keys or values, such as list(urls.values())."
DECLARATIONS = {
    "items() on a Section": (
        (Section, {"items": lambda self: Product.objects.all(), "location": PRODUCT}),
        "it has no rows: a Section does not use items, as classes of contrib do.",
        RENAME,
    ),
    "a list for queryset": (
        (Section, {"queryset": [1, 2], "location": PRODUCT}),
        "its rows are a list.",
        "Use a QuerySet; for a list derive from ItemSection.",
    ),
    "a model for queryset": (
        (Section, {"queryset": Product, "location": PRODUCT}),
        "its rows are the model Product itself.",
        "Set queryset = Product.objects.all().",
    ),
    "specific()": (
        (Section, {"get_queryset": lambda self: specific(), "location": PRODUCT}),
        (
            "its queryset returns objects of several classes, by SpecificIterable: it uses"
            " specific(), or its model is polymorphic."
        ),
        (
            "Remove specific(), or call non_polymorphic(): rows of Product are read, and a"
            " method may ask each of them for its object of the other class."
        ),
    ),
    "Concat() of a SlugField": (
        (
            Section,
            {"queryset": Shop.objects.all(), "location": Concat(Value("/s/"), "slug", Value("/"))},
        ),
        (
            "location: Expression contains mixed types: CharField, SlugField. You must set"
            " output_field."
        ),
        "Give the expression an output_field, such as output_field=CharField().",
    ),
    "a Route with too few arguments": (
        (Section, {"queryset": Product.objects.all(), "location": Route("product", slug="slug")}),
        "location: The pattern 'product' takes the arguments: shop, slug; the Route gives: slug.",
        "Use the name of a URL pattern, and give each of its arguments a column.",
    ),
    "a Route of an unknown name": (
        (Section, {"queryset": Product.objects.all(), "location": Route("prodct", slug="slug")}),
        "location: The URLconf has no pattern named 'prodct'.",
        "Use the name of a URL pattern, and give each of its arguments a column.",
    ),
    "a language twice": (
        (StaticSection, {"items": ["/a/"], "i18n": True, "languages": ["en", "es", "en"]}),
        "languages has 'en' twice, which has no effect.",
        "Name it once.",
    ),
    "a language twice in an old class": (
        (Sitemap, {"items": lambda self: [], "i18n": True, "languages": ["en", "en"]}),
        "languages has 'en' twice, which has no effect.",
        "Name it once.",
    ),
    "items() that raises": (
        (StaticSection, {"items": raising}),
        RAISED,
        RETURN,
    ),
    "items() of an old class that raises": (
        (Sitemap, {"items": raising}),
        RAISED,
        RETURN,
    ),
    "items() without return": (
        (Sitemap, {"items": lambda self: None}),
        "items() returned None.",
        "Use a list or a QuerySet.",
    ),
    "items() that returns a dict": (
        (Sitemap, {"items": lambda self: {"a": "/a/"}}),
        "items() returned a dict, which has no order to page by.",
        VALUES,
    ),
    "items that are a dict": (
        (StaticSection, {"items": {"a": "/a/"}}),
        "items is a dict, which has no order to page by.",
        VALUES,
    ),
    "items that are a set": (
        (StaticSection, {"items": {"/a/", "/b/"}}),
        "items is a set, whose order differs between processes.",
        "Use a list, such as sorted(items).",
    ),
    "items that are text": (
        (StaticSection, {"items": "home"}),
        "items is 'home'.",
        "Use a list or a QuerySet.",
    ),
    "items that are a generator": (
        (StaticSection, {"items": (text for text in ["/a/"])}),
        "items is a generator, which can be read only once.",
        "Use a list, or write a method: def items(self).",
    ),
    "get_queryset() without return": (
        (Section, {"location": PRODUCT, "get_queryset": lambda self: None}),
        "get_queryset() returned None.",
        "Return a QuerySet.",
    ),
    "a list for items() of an old class": (
        (Sitemap, {"items": ["/a/"]}),
        "items is a list.",
        "Write a method: def items(self).",
    ),
    "objects without an address": (
        (StaticSection, {"items": lambda self: [Words("/a/"), Words()]}),
        "items: <words> is not a string and has no get_absolute_url().",
        "Write location(self, item), or give Words a get_absolute_url().",
    ),
    "an unknown URL name": (
        (StaticSection, {"items": ["hoem"]}),
        "items: Reverse for 'hoem' not found. 'hoem' is not a valid view function or pattern name.",
        "An item is a URL name without arguments, or a path that begins with /.",
    ),
}


@pytest.mark.parametrize(("declared", "message", "hint"), DECLARATIONS.values(), ids=DECLARATIONS)
@pytest.mark.django_db
def test_a_mistake_in_a_section_is_named_with_its_fix(
    sections, client, caplog, declared, message, hint
):
    """One message for each; whether it is respected or not, no reader meets a 500."""
    base, options = declared
    declare(base, **options)
    register(type("Sound", (StaticSection,), {"items": ["home"]}))
    factories.products(2)
    assert said() == [(f"Section 'things': {message}", hint)]
    response = client.get(INDEX)
    assert response.status_code == 200
    assert b"sitemap-sound-1.xml.gz" in response.content
    for address in ("/sitemap-things-1.xml", "/sitemap/", "/sitemap/things/1/"):
        assert client.get(address).status_code in (200, 404, 503), address


@pytest.mark.django_db
def test_a_queryset_that_raises_later_leaves_the_others_in_the_index(sections, client, caplog):
    """It may be a property, or a manager, that worked for the request before."""
    state = {"is_broken": False}

    class Manager:
        def __get__(self, section, owner):
            if state["is_broken"]:
                raise RuntimeError("no tenant is chosen")
            return Product.objects.all()

    factories.products(2)
    sections.add(type("Fine", (Section,), {"queryset": Product.objects.all(), "location": PRODUCT}))
    sections.add(type("Fickle", (Section,), {"queryset": Manager(), "location": PRODUCT}))
    assert b"sitemap-fickle-1.xml" in client.get("/sitemap.xml").content
    state["is_broken"] = True
    response = client.get("/sitemap.xml")
    assert response.status_code == 200
    assert b"sitemap-fine-1.xml" in response.content
    assert b"fickle" not in response.content
    assert "no tenant is chosen" in caplog.text


@pytest.mark.django_db
def test_an_old_class_that_raises_later_leaves_the_others_in_the_index(
    sections, client, caplog, capsys
):
    """It could be made when it was registered; the log and ``advise_sitemaps`` say why not now."""

    class Fickle(Sitemap):
        is_broken = False

        def __init__(self):
            if self.is_broken:
                raise RuntimeError("no tenant is chosen")

        def items(self):
            return ["/a/"]

    register(Fickle)
    register(type("Sound", (StaticSection,), {"items": ["home"]}))
    Fickle.is_broken = True
    response = client.get(INDEX)
    assert response.status_code == 200
    assert b"sitemap-sound-1.xml" in response.content
    assert b"fickle" not in response.content
    assert "Section 'fickle': __init__() raised RuntimeError: no tenant is chosen" in caplog.text
    assert client.get("/sitemap-fickle-1.xml").status_code == 503
    call_command("advise_sitemaps")
    assert "no tenant is chosen" in capsys.readouterr().out
    assert [message.id for message in checks.declarations.check_declarations()] == [
        "sitemapkit.W100"
    ]


@pytest.mark.django_db
def test_a_section_that_raises_leaves_the_others_in_the_index(sections, client, caplog):
    """The log names it with the reason, in one line without a traceback; its page waits."""
    declare(Section, get_queryset=raising, location=PRODUCT)
    register(type("Sound", (StaticSection,), {"items": ["home"]}))
    with caplog.at_level(logging.ERROR):
        document = client.get(INDEX).content
    assert b"sitemap-sound-1" in document
    assert b"sitemap-things-1" not in document
    (record,) = caplog.records
    assert record.getMessage() == f"Section 'things': {RAISED} {RETURN} It is not in the index."
    assert record.exc_info is None
    response = client.get("/sitemap-things-1.xml")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "30")


@pytest.mark.django_db
@override_settings(DEBUG=True)
def test_while_a_site_is_developed_the_page_itself_says_why(sections, client):
    """The log is easily overlooked."""
    declare(Sitemap, items=raising)
    text = client.get("/sitemap-things-1.xml").content.decode()
    assert f"Section 'things': {RAISED}" in text
    assert RETURN in text


@pytest.fixture
def storage(settings):
    """Let the files of builds be stored in memory."""
    in_memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    settings.STORAGES = {**settings.STORAGES, "sitemaps": in_memory}


@pytest.mark.django_db
def test_a_build_names_the_section_that_raises(sections, storage):
    """One error, and the fix."""
    declare(Sitemap, items=raising)
    with pytest.raises(CommandError, match=r"Section 'things': raising\(\) raised KeyError"):
        call_command("build_sitemaps", skip_checks=True)


def test_items_that_the_database_cannot_give_yet_are_no_mistake(sections):
    """A list of rows is asked for by ``migrate`` too, before there is a table."""

    def items(self):
        raise OperationalError("no such table")

    declare(StaticSection, items=items)
    assert said() == []


def unreachable(self, *args):
    """Stand for a method that asks a service that is down."""
    raise ConnectionError("refused")


def broken_init(self, *args):
    """Stand for a class that needs rows to be made."""
    Shop.objects.get()


OF_CODE = {
    "items() of an empty table": (Sitemap, {"items": lambda self: [Shop.objects.latest("pk")]}),
    "items() of an API": (Sitemap, {"items": unreachable}),
    "items of an API": (StaticSection, {"items": unreachable}),
    "items() without a row": (Sitemap, {"items": lambda self: Shop.objects.first()}),
    "items that name no URL": (StaticSection, {"items": lambda self: ["hoem"]}),
    "items() that joins": (
        Sitemap,
        {"items": lambda self: Product.objects.annotate(tag=F("tags__name"))},
    ),
    "an iterator": (StaticSection, {"items": lambda self: (unreachable(n) for n in [1])}),
    "get_queryset()": (Section, {"get_queryset": lambda self: Shop.objects.get().products.all()}),
    "get_queryset() without rows": (Section, {"get_queryset": lambda self: Shop.objects.first()}),
    "a class": (Section, {"queryset": Product.objects.all(), "__init__": broken_init}),
    "a property": (StaticSection, {"items": ["/"], "alternates": property(unreachable)}),
    "an external": (ExternalSection, {"sitemaps": property(unreachable)}),
}


@pytest.mark.parametrize(("base", "options"), OF_CODE.values(), ids=OF_CODE)
@pytest.mark.django_db
def test_what_a_projects_code_does_is_never_an_error(sections, capsys, base, options):
    """Commands such as ``migrate`` and ``loaddata`` run; a warning says what and where."""
    declare(base, **options)
    call_command("check")
    text = capsys.readouterr().err
    assert "section 'things'" in text.lower()
    assert "sitemapkit.E" not in text
    if "raised" in text:
        assert "tests.test_mistakes, line " in text


@pytest.mark.parametrize(
    "returned",
    [
        pytest.param(Shop.objects.get, id="raises"),
        pytest.param(lambda: None, id="returns None"),
        pytest.param(lambda: {"a": {"BASE_URL": ""}}, id="an invalid URL"),
        pytest.param(lambda: {key: {"BASE_URL": "https://a.example"} for key in "ab"}, id="twice"),
        pytest.param(
            lambda: {"a": {"BASE_URL": "https://a.example", "SECTIONS": ["x"]}}, id="unknown"
        ),
        pytest.param(
            lambda: {"a": {"BASE_URL": "https://a.example", "URLCONF": "no.such"}}, id="URLconf"
        ),
    ],
)
@pytest.mark.django_db
def test_what_the_function_of_sites_returns_is_never_an_error(
    sections, capsys, monkeypatch, returned
):
    """Its rows may be what ``migrate`` and ``loaddata`` are about to bring."""
    monkeypatch.setattr("tests.test_mistakes.sites_of_rows", returned, raising=False)
    with override_settings(SITEMAPKIT_SITES="tests.test_mistakes.sites_of_rows"):
        call_command("check")
    text = capsys.readouterr().err
    assert "sitemapkit.W0" in text
    assert "sitemapkit.E" not in text


CONTRIB_VALUES = {
    "changefreq": ({"changefreq": "Weekly"}, "W124", b"<changefreq>weekly</changefreq>"),
    "a method": ({"changefreq": lambda self, item: "DAILY"}, None, b"<changefreq>daily<"),
    "an unknown word": ({"changefreq": "fortnightly"}, "W124", None),
    "priority": ({"priority": 10}, "W125", None),
    "limit": ({"limit": 100_000}, "W122", None),
    "lastmod": ({"lastmod": 2026}, "W123", None),
}


@pytest.mark.parametrize(
    ("options", "identifier", "listed"), CONTRIB_VALUES.values(), ids=CONTRIB_VALUES
)
@pytest.mark.django_db
def test_values_that_contrib_accepts_stop_no_project(sections, client, options, identifier, listed):
    """They are lower-cased, left out or capped, and a warning says so."""
    old = {"items": lambda self: ["/a/"], "location": lambda self, item: item}
    register_all({"things": type("Things", (Sitemap,), old | options)})
    found = [message.id for message in checks.declarations.check_declarations()]
    assert found == ([f"sitemapkit.{identifier}"] if identifier else [])
    document = client.get("/sitemap-things-1.xml").content
    assert b"/a/</loc>" in document
    tags = (b"<changefreq>", b"<priority>", b"<lastmod>")
    assert listed in document if listed else not any(tag in document for tag in tags)


# A table of the project's own


@pytest.fixture
def without_tags(sections, monkeypatch):
    """Let the model Tag have no table, in a project with a sound section."""
    monkeypatch.setattr(Tag._meta, "db_table", "testapp_nowhere")
    register(type("Sound", (StaticSection,), {"items": ["home"]}))


NO_TABLE = {
    "rows": (Section, {"get_queryset": lambda self: Tag.objects.all(), "location": F("name")}),
    "a list of rows": (StaticSection, {"items": lambda self: list(Tag.objects.all())}),
    "a contrib class": (Sitemap, {"items": lambda self: Tag.objects.all()}),
    "a column": (
        Section,
        {
            "get_queryset": lambda self: Product.objects.annotate(
                tag=Subquery(Tag.objects.filter(pk=OuterRef("pk")).values("name"))
            ),
            "location": F("tag"),
        },
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("base", "options"), NO_TABLE.values(), ids=NO_TABLE)
@pytest.mark.django_db(transaction=True)
def test_a_missing_table_is_named_with_its_section(
    without_tags, client, storage, caplog, settings, base, options
):
    """In the log, under DEBUG in the response, and by the build; the other sections are served."""
    factories.products(1)
    declare(base, **options)
    settings.DEBUG = True
    named = "The database lacks a table or column of testapp.Tag."
    text = client.get("/sitemap-things-1.xml").content.decode()
    assert text.startswith("This sitemap cannot be served right now.\nSection 'things': ")
    assert named in text
    assert named in caplog.text
    assert "does not answer" not in caplog.text
    index = client.get(INDEX)
    assert index.status_code == 200
    assert b"sitemap-sound-1" in index.content
    assert client.get("/sitemap-sound-1.xml").status_code == 200
    with pytest.raises(CommandError, match="Section 'things': ") as error:
        call_command("build_sitemaps", skip_checks=True)
    assert named in str(error.value)
    assert "Traceback" not in str(error.value)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_index_without_any_section_that_can_be_read_waits(without_tags, sections, client):
    """It may list something as soon as the table is there: 503, not 404."""
    sections.remove("sound")
    declare(Section, queryset=Tag.objects.all(), location=F("name"))
    assert client.get(INDEX).status_code == 503


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.django_db
def test_a_database_that_cannot_be_used_is_the_reason(sections, client, settings, debug):
    """Under DEBUG the response says so; else only the log."""
    error = OperationalError("too many connections")
    settings.DEBUG = debug
    with mock.patch("django_sitemapkit.views.published_page", side_effect=error, autospec=True):
        response = client.get("/sitemap-things-1.xml")
    assert response.status_code == 503
    assert (b"too many connections" in response.content) == debug


# Registered wrongly


def test_a_class_that_is_registered_twice(sections):
    """The message names it; another name would list its URLs twice."""
    twice = declare(StaticSection, items=["home"])
    named = r"test_mistakes\.Things is registered twice as 'things': register it once"
    with pytest.raises(ImproperlyConfigured, match=named):
        register(twice)
    old = type("Old", (Sitemap,), {})
    register_all({"old": old})
    with pytest.raises(ImproperlyConfigured, match="Old is registered twice as 'old': "):
        register(old)
    with pytest.raises(ImproperlyConfigured, match="set name on one of them"):
        register(type("Others", (StaticSection,), {"name": "things"}))


class AbstractOld(Sitemap, ABC):
    """A base that only says what its classes need."""

    @abstractmethod
    def items(self):
        """Return the items."""


class AbstractOwn(Section, ABC):
    """The same for a class of ours."""

    @abstractmethod
    def get_queryset(self):
        """Return the rows."""


class AbstractHook(StaticSection, ABC):
    """A base that lacks a method of its own."""

    @abstractmethod
    def paths(self):
        """Return the paths."""


@pytest.mark.parametrize("base", [AbstractOld, AbstractOwn, AbstractHook])
def test_an_abstract_base_is_named(sections, base):
    """With what it lacks, and what to register instead."""
    (lacks,) = base.__abstractmethods__
    message = rf"{base.__name__} is abstract: it lacks {lacks}\. Register the classes derived from"
    with pytest.raises(ImproperlyConfigured, match=message):
        register(base)


def test_a_base_without_a_queryset(sections):
    """Nothing is said of rows, of which there may be many."""
    declare(Section, location=PRODUCT)
    ((message, hint),) = said()
    assert message == "Section 'things': it has neither queryset nor get_queryset()."
    assert "Do not register a base" in hint


@pytest.mark.parametrize("combined", ["union", "intersection", "difference"])
@pytest.mark.django_db
def test_a_combined_queryset_has_one_mistake(sections, combined):
    """Nothing is said of the columns, which cannot be added to it."""
    rows = getattr(Shop.objects.all(), combined)(Shop.objects.all())
    declare(Section, queryset=rows, location=F("slug"), lastmod="slug", title="slug")
    found = [message.id for message in checks.declarations.check_declarations()]
    assert found == ["sitemapkit.E104"]


@pytest.mark.slow
def test_the_app_is_not_installed():
    """Whatever imports its tables says which line of the settings is missing."""
    code = (
        "import django\n"
        "from django.conf import settings\n"
        "settings.configure(INSTALLED_APPS=['django.contrib.contenttypes'])\n"
        "django.setup()\n"
        "from django_sitemapkit import register\n"
        "import django_sitemapkit.{module}\n"
    )
    for module in ("urls", "views", "builds"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(module=module)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        error = done.stderr.splitlines()[-1]
        assert "ImproperlyConfigured" in error
        assert '"django_sitemapkit" is not in INSTALLED_APPS' in error


# Where the sites are

BASE_URLS = {
    "FORCE_SCRIPT_NAME": ({"FORCE_SCRIPT_NAME": "/shop"}, "https://a.example", True),
    "another path": ({"FORCE_SCRIPT_NAME": "/shop/"}, "https://a.example/store", True),
    "the same path": ({"FORCE_SCRIPT_NAME": "/shop/"}, "https://a.example/shop", False),
    "an encoded path": ({"FORCE_SCRIPT_NAME": "/caf\u00e9"}, "https://a.example/caf%C3%A9", False),
    "http": ({"SECURE_SSL_REDIRECT": True}, "http://a.example", True),
    "https": ({"SECURE_SSL_REDIRECT": True}, "https://a.example", False),
    "http alone": ({"SECURE_SSL_REDIRECT": False}, "http://a.example", False),
}


@pytest.mark.parametrize(("options", "base", "is_wrong"), BASE_URLS.values(), ids=BASE_URLS)
@pytest.mark.parametrize("several", [False, True])
def test_a_base_url_that_is_not_that_of_the_pages(settings, options, base, is_wrong, several):
    """The check names the setting and the base URL to use."""
    sites = {"SITEMAPKIT_SITES": {"a": {"BASE_URL": base}}} if several else {}
    sites = sites or {"SITEMAPKIT_BASE_URL": base}
    with override_settings(**options, **sites):
        found = said(checks.sites.check_base_urls)
    assert len(found) == is_wrong
    for message, _ in found:
        assert next(iter(options)) in message
        assert base in message


@pytest.mark.parametrize(
    ("hosts", "debug", "status"),
    [(["*"], False, 503), ([".example.com"], False, 503), (["*"], True, 200)],
)
def test_hosts_that_anyone_may_name_without_a_base_url(
    settings, client, sections, db, caplog, hosts, debug, status
):
    """Plain ``check`` says it: all sitemaps answer 503, unless under DEBUG; so does the log."""
    settings.ALLOWED_HOSTS, settings.DEBUG = hosts, debug
    settings.SITEMAPKIT_BASE_URL = None
    declare(StaticSection, items=["home"])
    ((message, hint),) = said(checks.sites.check_base_url_is_known)
    assert "Builds fail" in message
    assert ("ALLOWED_HOSTS" in message) == (status == 503)
    assert "SITEMAPKIT_BASE_URL" in hint
    response = client.get("/sitemap.xml", headers={"host": "shop.example.com"})
    assert response.status_code == status
    if status == 200:
        assert b"<loc>http://shop.example.com/sitemap-" in response.getvalue()
    else:
        assert response.content == b"This sitemap cannot be served right now.\n"
        assert "Set SITEMAPKIT_BASE_URL" in caplog.text
    with pytest.raises(CommandError, match="SITEMAPKIT_BASE_URL"):
        call_command("build_sitemaps", skip_checks=True)


def test_addresses_that_are_included_twice(monkeypatch):
    """At whatever depth."""
    nested = include([path("b/", include("django_sitemapkit.urls"))])
    for patterns, count in (([OURS], 0), ([OURS, OURS], 1), ([OURS, path("a/", nested)], 1)):
        urlconf = ModuleType("tests.included_twice")
        urlconf.urlpatterns = patterns
        monkeypatch.setitem(sys.modules, urlconf.__name__, urlconf)
        clear_url_caches()
        with override_settings(ROOT_URLCONF=urlconf.__name__):
            found = said(checks.addresses.check_included_twice)
        assert len(found) == count
        assert all(urlconf.__name__ in message for message, _ in found)


@pytest.mark.parametrize("name", ["shop-admin", "admin"])
def test_an_admin_site_without_the_screens(monkeypatch, name):
    """A project with a site of its own, to which nobody has registered them."""
    own = admin.AdminSite(name=name)
    urlconf = ModuleType("tests.own_admin")
    urlconf.urlpatterns = [path("office/", own.urls)]
    monkeypatch.setitem(sys.modules, urlconf.__name__, urlconf)
    with override_settings(ROOT_URLCONF=urlconf.__name__):
        ((message, _),) = said(checks.addresses.check_admin_sites)
        assert f"'{name}'" in message
        own.register(Build)
        assert said(checks.addresses.check_admin_sites) == []
    urlconf.urlpatterns = [path("admin/", admin.site.urls)]
    clear_url_caches()
    with override_settings(ROOT_URLCONF=urlconf.__name__):
        assert said(checks.addresses.check_admin_sites) == []


@pytest.mark.parametrize("sites", [1, "default", property(lambda self: 1)])
def test_sites_that_are_no_list(sections, sites):
    """The registration names the class, the option and what to write."""
    with pytest.raises(ImproperlyConfigured, match=r"Paths: sites is .* list of keys"):
        sections.add(type("Paths", (StaticSection,), {"items": ["home"], "sites": sites}))


def test_a_folder_that_cannot_be_written_to(settings, tmp_path, sections, db):
    """The check and the build name the setting."""
    (tmp_path / "file").touch()
    backend = "django.core.files.storage.FileSystemStorage"
    options = {"location": tmp_path / "file" / "sitemaps"}
    disk = {"BACKEND": backend, "OPTIONS": options}
    settings.STORAGES = {**settings.STORAGES, "sitemaps": disk}
    ((message, _),) = said(checks.files.check_folder_is_writable)
    assert "STORAGES['sitemaps']" in message
    assert str(tmp_path / "file") in message
    declare(StaticSection, items=["home"])
    with pytest.raises(CommandError, match=r'STORAGES\["sitemaps"\]'):
        call_command("build_sitemaps", skip_checks=True)
    options["location"] = tmp_path / "new" / "sitemaps"
    settings.STORAGES = {**settings.STORAGES, "sitemaps": disk}
    assert said(checks.files.check_folder_is_writable) == []


@pytest.mark.django_db
def test_a_function_that_returns_no_site_for_a_tenant(sections, client, caplog, monkeypatch):
    """It is an unknown host, and not asked for a base URL, which would be that of all tenants."""
    monkeypatch.setattr("tests.test_mistakes.no_sites", dict, raising=False)
    declare(StaticSection, items=["home"])
    with override_settings(SITEMAPKIT_SITES="tests.test_mistakes.no_sites"):
        assert client.get(INDEX).status_code == 404
        assert client.get("/sitemap-things-1.xml").status_code == 404
        with pytest.raises(CommandError) as error:
            call_command("build_sitemaps", skip_checks=True)
    assert "BASE_URL" not in f"{error.value}{caplog.text}"
    assert "SITEMAPKIT_SITES" in str(error.value)


# What is taken as it is


def locations(client, name="things"):
    """Return the locations on the first page of a section, without the host."""
    response = client.get(f"/sitemap-{name}-1.xml")
    assert response.status_code == 200
    body = b"".join(response) if response.streaming else response.content
    parts = body.decode().split("<loc>https://www.example.com")[1:]
    return [part.partition("<")[0] for part in parts]


@pytest.mark.django_db
def test_a_location_of_an_old_class_may_be_text(sections, client):
    """It is that of all its items, as with contrib."""
    declare(Sitemap, items=lambda self: [1], location="/all/")
    assert locations(client) == ["/all/"]


@pytest.mark.parametrize("base", [StaticSection, Sitemap])
@pytest.mark.django_db
def test_items_may_be_generated(sections, client, base):
    """A generator, and the values of a dict, are read into a list."""
    own = {} if base is StaticSection else {"location": lambda self, item: item}
    declare(base, items=lambda self: (text for text in ["/a/", "/b/"]), **own)
    register(type("Values", (base,), {"items": lambda self: {1: "/c/"}.values(), **own}))
    assert said() == []
    assert locations(client) == ["/a/", "/b/"]
    assert locations(client, "values") == ["/c/"]


@pytest.mark.django_db
def test_objects_know_their_address(sections, client):
    """A StaticSection of objects asks for ``get_absolute_url()``, as contrib does."""
    declare(StaticSection, items=lambda self: [Words("/a/"), "/b/", Words("/c/")])
    assert said() == []
    assert locations(client) == ["/a/", "/b/", "/c/"]


@pytest.mark.parametrize("base", [StaticSection, Sitemap])
@pytest.mark.django_db
def test_a_language_that_is_named_twice_is_listed_once(sections, client, base):
    """And linked once: links that repeat a language are none to search engines."""
    texts = {"i18n": True, "languages": ["en", "es", "en"], "alternates": True, "limit": 9}
    items = ["a"] if base is StaticSection else lambda self: ["a"]
    declare(base, items=items, location=lambda self, item: f"/{get_language()}/", **texts)
    assert locations(client) == ["/en/", "/es/"]
    response = client.get("/sitemap-things-1.xml")
    assert response.content.count(b"<xhtml:link") == 4


def test_an_expression_with_its_type_is_sound(sections):
    """That is the fix that the check names."""
    location = Concat(Value("/s/"), "slug", Value("/"), output_field=CharField())
    declare(Section, queryset=Shop.objects.all(), location=location, priority=F("pk"))
    assert said() == []


def test_register_with_parentheses(sections):
    """As a decorator without arguments, and with a name."""

    @register()
    class Things(StaticSection):
        items = ["home"]

    @register(name="others")
    class More(StaticSection):
        items = ["home"]

    assert [section.get_name() for section in sections] == ["things", "others"]
    assert isinstance(Things, type)
    assert isinstance(More, type)


def test_a_dict_for_contribs_view_may_have_functions(sections):
    """Contrib calls whatever can be called."""
    tags = partial(GenericSitemap, {"queryset": Tag.objects.all()}, priority=0.4)
    register_all({"tags": tags})
    (section,) = sections
    assert section(factories.SITE).sitemap.priority == 0.4


# Nothing is registered


@pytest.mark.django_db
def test_nothing_is_registered(sections, client, storage):
    """The check, the build and the index say so."""
    assert said(checks.declarations.check_sections_are_registered) == [
        (
            "No section is registered; there is no sitemap.",
            (
                "Declare a Section in the module sitemaps.py of an installed app, with @register"
                " above it."
            ),
        )
    ]
    with pytest.raises(CommandError) as error:
        call_command("build_sitemaps", skip_checks=True)
    assert str(error.value).startswith(
        "Site 'default': no section is registered; declare one in the module sitemaps.py of an"
        " installed app, with @register above it."
    )
    assert client.get(INDEX).status_code == 404
    declare(StaticSection, items=["home"])
    assert said(checks.declarations.check_sections_are_registered) == []


def test_sections_in_a_package_that_is_no_app(sections, monkeypatch, tmp_path):
    """Beside the settings is where many put them; nothing imports it there."""
    package = tmp_path / "mysite"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "urls.py").write_text("urlpatterns = []")
    (package / "sitemaps.py").write_text("from django_sitemapkit import register")
    monkeypatch.syspath_prepend(tmp_path)
    with override_settings(ROOT_URLCONF="mysite.urls"):
        assert said(checks.declarations.check_sections_are_registered) == [
            (
                (
                    "mysite.sitemaps is not imported, because 'mysite' is not an installed"
                    " app. The sections that it registers do not exist."
                ),
                "Add the package to INSTALLED_APPS, or move the module into an installed app.",
            )
        ]
        (package / "urls.py").write_text("from mysite import sitemaps\nurlpatterns = []")
        sys.modules.pop("mysite.urls")
        ((message, _hint),) = said(checks.declarations.check_sections_are_registered)
        assert message == "No section is registered; there is no sitemap."
    for name in ("mysite.urls", "mysite.sitemaps", "mysite"):
        sys.modules.pop(name, None)


# What answers at the addresses


def view(request, **kwargs):
    """Answer instead of the package."""
    return HttpResponse("mine")


OURS = path("", include("django_sitemapkit.urls"))
EARLIER = {
    "an old index": (path("sitemap.xml", view), "sitemap.xml", "/sitemap.xml"),
    "contrib's sections": (
        path("sitemap-<section>.xml", view), "sitemap-<section>.xml", "/sitemap-things-1.xml",
    ),
    "whatever there is": (path("<path:anything>", view), "<path:anything>", "/sitemap.xml"),
}  # fmt: skip


@pytest.mark.parametrize(("pattern", "route", "address"), EARLIER.values(), ids=EARLIER)
def test_a_pattern_before_ours_is_named(sections, monkeypatch, pattern, route, address):
    """The check resolves the addresses; behind ours, the same pattern is sound."""
    declare(StaticSection, items=["home"])
    for patterns, found in (([pattern, OURS], True), ([OURS, pattern], False)):
        urlconf = ModuleType("tests.earlier_patterns")
        urlconf.urlpatterns = patterns
        monkeypatch.setitem(sys.modules, urlconf.__name__, urlconf)
        clear_url_caches()
        sites = {"a": {"BASE_URL": "https://www.example.com/shop"}}
        with override_settings(ROOT_URLCONF=urlconf.__name__, SITEMAPKIT_SITES=sites):
            expected = [
                (
                    (
                        f"Site 'a': https://www.example.com/shop{address} is answered by the"
                        f" pattern {route!r} (tests.test_mistakes.view), which comes before those"
                        " of django_sitemapkit.urls."
                    ),
                    "Remove that pattern, or include django_sitemapkit.urls before it.",
                )
            ]
            assert said(checks.addresses.check_shadowed_addresses) == (expected if found else [])


def test_our_own_view_may_be_decorated(sections, monkeypatch):
    """It is still ours that answers."""
    urlconf = ModuleType("tests.decorated_views")
    urlconf.urlpatterns = [path("sitemap.xml", cache_page(60)(views.index)), OURS]
    monkeypatch.setitem(sys.modules, urlconf.__name__, urlconf)
    with override_settings(ROOT_URLCONF=urlconf.__name__):
        assert said(checks.addresses.check_shadowed_addresses) == []


# Texts


@override_settings(SITEMAPKIT_BASE_URL="www.example.com")
def test_a_base_url_without_scheme():
    """What is missing is named, and nothing is said that is not so."""
    ((message, hint),) = said(checks.sites.check_settings)
    assert message == (
        "SITEMAPKIT_BASE_URL is 'www.example.com': add https://, as in \"https://www.example.com\"."
    )
    assert hint.startswith("The only site: scheme, host, port")
    assert said(checks.sites.check_base_url_is_known) == []


def over_http(self, page=1, site=None, protocol=None):
    """Name a host and a protocol, as old classes do."""
    return Sitemap.get_urls(self, page=page, site=site, protocol="https")


def with_images(self, **options):
    """Add to the entries, as old classes do."""
    urls = Sitemap.get_urls(self, **options)
    for url in urls:
        url["images"] = []
    return urls


def only_first(self, **options):
    """List less."""
    return Sitemap.get_urls(self, **options)[:0]


def with_images_of_some(self, **options):
    """Add to entries that have an item of a kind."""
    urls = Sitemap.get_urls(self, **options)
    for url in urls:
        if url["item"] and url["item"].note:
            url["images"] = []
    return urls


def without_some(self, **options):
    """Leave out what is hidden."""
    urls = Sitemap.get_urls(self, **options)
    urls[:] = [url for url in urls if url["location"] != "/hidden/"]
    return urls


@pytest.mark.parametrize(
    ("get_urls", "lost"),
    [
        pytest.param(with_images_of_some, "its images are lost", id="images of some"),
        pytest.param(without_some, "what it changes is lost", id="without some"),
        pytest.param(over_http, None, id="another host"),
        pytest.param(with_images, "its images are lost", id="images"),
        pytest.param(only_first, "what it changes is lost", id="fewer"),
    ],
)
def test_what_is_lost_with_an_overridden_get_urls(sections, get_urls, lost):
    """Host and protocol are those of the site anyway."""
    declare(Sitemap, items=lambda self: [], get_urls=get_urls)
    hint = "Declare it as a Section, which has options for images, videos, news and alternates."
    message = f"Section 'things': it overrides get_urls, which is not called: {lost}."
    assert said() == ([(message, hint)] if lost else [])
