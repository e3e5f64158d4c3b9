"""A beginner's mistakes: each is named by the exact message and its fix, without a traceback."""

import logging
import sys
from functools import partial
from types import ModuleType

import pytest
from django.contrib.sitemaps import GenericSitemap, Sitemap
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.db.models import CharField, F, Value
from django.db.models.functions import Concat
from django.db.models.query import ModelIterable
from django.http import HttpResponse
from django.test import override_settings
from django.urls import clear_url_caches, include, path
from django.utils.translation import get_language
from django.views.decorators.cache import cache_page

from django_sitemapkit import Route, Section, StaticSection, checks, register, register_all, views
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
RETURN = "Let items() return a list or a QuerySet whenever it is called; there is no request."
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
        "items() raised KeyError: 'prices'.",
        RETURN,
    ),
    "items() of an old class that raises": (
        (Sitemap, {"items": raising}),
        "items() raised KeyError: 'prices'.",
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
def test_a_section_that_raises_leaves_the_others_in_the_index(sections, client, caplog):
    """The log names it with the reason, in one line without a traceback; its page waits."""
    declare(Section, get_queryset=raising, location=PRODUCT)
    register(type("Sound", (StaticSection,), {"items": ["home"]}))
    with caplog.at_level(logging.ERROR):
        document = client.get(INDEX).content
    assert b"sitemap-sound-1" in document
    assert b"sitemap-things-1" not in document
    (record,) = caplog.records
    assert record.getMessage() == (
        "Section 'things' raised KeyError: 'prices'. It is not in the index."
    )
    assert record.exc_info is None
    response = client.get("/sitemap-things-1.xml")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "30")


@pytest.mark.django_db
@override_settings(DEBUG=True)
def test_while_a_site_is_developed_the_page_itself_says_why(sections, client):
    """The log is easily overlooked."""
    declare(Sitemap, items=raising)
    text = client.get("/sitemap-things-1.xml").content.decode()
    assert "Section 'things': items() raised KeyError: 'prices'." in text
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
    with pytest.raises(CommandError, match=r"Section 'things': items\(\) raised KeyError"):
        call_command("build_sitemaps", skip_checks=True)


def test_items_that_the_database_cannot_give_yet_are_no_mistake(sections):
    """A list of rows is asked for by ``migrate`` too, before there is a table."""

    def items(self):
        raise OperationalError("no such table")

    declare(StaticSection, items=items)
    assert said() == []


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
    assert said(checks.declarations.check_registered) == [
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
        " installed app, with @register above it. The published build stays."
    )
    assert client.get(INDEX).status_code == 404
    declare(StaticSection, items=["home"])
    assert said(checks.declarations.check_registered) == []


def test_sections_in_a_package_that_is_no_app(sections, monkeypatch, tmp_path):
    """Beside the settings is where many put them; nothing imports it there."""
    package = tmp_path / "mysite"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "urls.py").write_text("urlpatterns = []")
    (package / "sitemaps.py").write_text("from django_sitemapkit import register")
    monkeypatch.syspath_prepend(tmp_path)
    with override_settings(ROOT_URLCONF="mysite.urls"):
        assert said(checks.declarations.check_unimported_modules) == [
            (
                (
                    "mysite.sitemaps is not imported, because 'mysite' is not an installed"
                    " app. The sections that it registers do not exist."
                ),
                "Add the package to INSTALLED_APPS, or move the module into an installed app.",
            )
        ]
        assert said(checks.declarations.check_registered) == []
        (package / "urls.py").write_text("from mysite import sitemaps\nurlpatterns = []")
        sys.modules.pop("mysite.urls")
        assert said(checks.declarations.check_unimported_modules) == []
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
    assert said(checks.sites.check_host) == []


@override_settings(ROOT_URLCONF="tests.urls_below")
def test_sitemaps_below_a_path():
    """Anyone who includes them within i18n_patterns() finds the word."""
    ((_, hint),) = said(checks.addresses.check_scope)
    assert hint == (
        "Include django_sitemapkit.urls at the root of the URLconf, not within i18n_patterns() or"
        " below another path, unless you want that restriction."
    )


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
