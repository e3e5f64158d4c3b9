"""hreflang: sets that are identical on each version, hold it, and have nothing unlisted."""

import tracemalloc
from types import SimpleNamespace

import pytest
from django.contrib.sitemaps import Sitemap
from django.test import override_settings

from django_sitemapkit import StaticSection
from django_sitemapkit.overrides import section_of
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import adapt_contrib
from django_sitemapkit.sites import all_sites
from tests.factories import SITE, declare
from tests.languages import (
    COLUMNS,
    IN_ALL,
    ROUTE,
    ROWS,
    TWENTY,
    each_of,
    links,
    place,
    places,
    problems,
    render,
    shown,
)
from tests.overrides.setting import by_object, by_path, rule
from tests.testapp.models import Place

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.urls_languages")]

EN_ES_FR = ("en /en/places/a/", "es /es/places/a/", "fr /fr/places/a/")


def test_every_version_links_to_all_of_them():
    """In the order in which the languages are declared."""
    place("a")
    assert shown(places()) == each_of(*EN_ES_FR)
    reverse = places(languages=["fr", "es", "en"])
    assert list(shown(reverse)) == ["/fr/places/a/", "/es/places/a/", "/en/places/a/"]
    assert shown(reverse) == each_of(*reversed(EN_ES_FR))


def test_without_alternates_nothing_is_linked():
    """The versions are listed all the same, and no namespace is declared."""
    place("a")
    _, document = render(places(alternates=False))
    assert links(document) == {
        f"https://www.example.com/{c}/places/a/": [] for c in ("en", "es", "fr")
    }
    assert b"xhtml" not in document


@pytest.mark.parametrize("location", [COLUMNS, ROWS], ids=["columns", "rows"])
def test_a_version_that_is_refused_is_in_no_set(location):
    """It is a named problem, and the others link to each other alone."""
    made = place("a", "en", "es", "fr")
    Place.objects.update(slug_es="a\x0bes")
    made.translations.filter(language_code="es").update(slug="a\x0bes")
    section = places(location=location, x_default="es")
    assert shown(section) == each_of("en /en/places/a-en/", "fr /fr/places/a-fr/")
    assert sum(problems(section).values()) == 1


def excluded_by_path(made):
    """Leave out one URL."""
    by_path("/es/places/a/", include=False)


def excluded_by_rule(made):
    """Leave out a language."""
    rule("/es/")


@pytest.mark.parametrize("exclude", [excluded_by_path, excluded_by_rule])
def test_a_version_that_editors_exclude_is_in_no_set(sections, exclude):
    """By an override of its path, and by a rule that it meets."""
    exclude(place("a"))
    sections.add(type(places().options))
    section = section_of(SITE, "things")
    assert shown(section) == each_of("en /en/places/a/", "fr /fr/places/a/")


def test_an_object_that_editors_exclude_is_gone_in_all_languages(sections):
    """An override by object meets each of its versions."""
    by_object(place("a"), include=False)
    place("b")
    sections.add(type(places().options))
    found = shown(section_of(SITE, "things"))
    assert [path[3:] for path in found] == ["/places/b/"] * 3


def test_a_version_that_is_listed_elsewhere_is_in_no_set():
    """What de-duplication drops is not linked to."""
    place("a")

    def seen(locations):
        return {n: "pages" for n, url in enumerate(locations) if "/fr/" in url}

    rendering = PageRendering(places(x_default="fr"), EVERYTHING, SITE.scope(), find_listed=seen)
    found = links(b"".join(rendering))
    assert [[code for code, _ in some] for some in found.values()] == [["en", "es"]] * 2
    assert rendering.problems.counts == {"duplicate-url": 1}


def test_versions_with_one_address_are_listed_once():
    """The first language wins, the rest is reported; other objects may say the same in theirs."""
    made = place("a", "en", "es", "fr")
    Place.objects.filter(pk=made.pk).update(slug_es="a-en")
    place("b", "en")
    section = places(location=lambda self, obj: f"/{self.slug_of(obj)}/", slug_of=slug_now)
    assert shown(section) == {
        "/a-en/": ["en /a-en/", "fr /a-fr/"],
        "/a-fr/": ["en /a-en/", "fr /a-fr/"],
        "/b-en/": ["en /b-en/"],
    }
    assert problems(section) == {"duplicate-url": 1, "exception": 2}


def slug_now(self, obj):
    """Return the slug in the active language."""
    from django.utils.translation import get_language

    return getattr(obj, f"slug_{get_language()}") or obj.no_such_slug


# x-default


class Contrib(Sitemap):
    protocol = "https"
    i18n = alternates = x_default = True

    def items(self):
        return Place.objects.order_by("pk")

    def location(self, item):
        from django.urls import reverse

        return reverse("place", kwargs={"slug": item.slug})


class OfTheirOwn(Contrib):
    def get_languages_for_item(self, item):
        return ["en", "es"] if item.slug == "a" else ["en"]


class Some(Contrib):
    languages = ["es", "en"]


class WithoutDefault(Contrib):
    x_default = False


@pytest.mark.parametrize("old", [Contrib, OfTheirOwn, Some, WithoutDefault])
@pytest.mark.parametrize("code", ["en", "en-us", "es"])
@pytest.mark.parametrize("in_list", [False, True], ids=["queryset", "list"])
def test_x_default_is_what_contrib_writes(settings, old, code, in_list):
    """All versions and links of an old class are those that contrib's own view gives."""
    settings.LANGUAGE_CODE = code
    place("a")
    place("b")
    if in_list:
        old = type(old.__name__, (old,), {"items": lambda self: list(Place.objects.order_by("pk"))})
    with SITE.active():
        entries = old().get_urls(site=SimpleNamespace(domain="www.example.com"), protocol="https")
    expected = {
        entry["location"]: {(one["lang_code"], one["location"]) for one in entry["alternates"]}
        for entry in entries
    }
    found = links(render(reader_of(adapt_contrib(old, "things")(SITE)))[1])
    assert {url: set(some) for url, some in found.items()} == expected


@pytest.mark.parametrize("location", [ROUTE, lambda self, obj: f"/{obj.slug}/de/x/"])
def test_x_default_is_the_address_without_the_prefix(settings, location):
    """And without it alone: what looks like it further on is part of the address."""
    settings.LANGUAGE_CODE = "en"
    place("en")
    section = places(location=location, x_default=True, languages=["en"])
    expected = "/places/en/" if location is ROUTE else "/en/de/x/".removeprefix("/en")
    (found,) = shown(section).values()
    assert found[-1] == f"x-default {expected}"


DEFAULTS = {
    "a language": ("es", "x-default /es/places/a/"),
    "a path": ("/choose/", "x-default /choose/"),
    "a URL": ("https://www.example.com/choose", "x-default /choose"),
    "another host": ("https://example.org/é", "x-default https://example.org/%C3%A9"),
}


@pytest.mark.parametrize(("x_default", "expected"), DEFAULTS.values(), ids=DEFAULTS)
def test_x_default_may_be(x_default, expected):
    """Each version has it last, behind all languages."""
    place("a")
    found = shown(places(x_default=x_default))
    assert list(found.values()) == [[*EN_ES_FR, expected]] * 3


@pytest.mark.parametrize("x_default", ["javascript:alert(1)", "/\x0b", "ftp://x.example/"])
def test_a_wrong_x_default_is_left_out(x_default):
    """It is reported once, and costs no version."""
    place("a")
    place("b")
    section = places(x_default=x_default)
    assert {len(some) for some in shown(section).values()} == {3}
    assert sum(problems(section).values()) == 1


def test_an_object_without_the_default_language_has_no_x_default():
    """Nothing is linked to that is not there."""
    place("a", "es")
    assert shown(places(location=COLUMNS, x_default="en")) == each_of("es /es/places/a-es/")


# Codes and prefixes


@override_settings(LANGUAGES=[("zh-hans", "S"), ("pt-br", "P"), ("en-gb", "E")])
def test_codes_are_written_as_google_knows_them():
    """Language, script and region each in its own way; the addresses keep Django's."""
    place("a")
    assert shown(places()) == {
        path: [
            "zh-Hans /zh-hans/places/a/",
            "pt-BR /pt-br/places/a/",
            "en-GB /en-gb/places/a/",
        ]
        for path in ("/zh-hans/places/a/", "/pt-br/places/a/", "/en-gb/places/a/")
    }


@pytest.mark.urls("tests.urls_default_language")
@override_settings(LANGUAGE_CODE="en")
def test_the_default_language_may_have_no_prefix():
    """As ``prefix_default_language=False`` has it; x-default is the very same address."""
    place("a")
    english = ("en /places/a/", "es /es/places/a/", "fr /fr/places/a/")
    assert shown(places()) == each_of(*english)
    assert next(iter(shown(places(x_default=True)).values()))[-1] == "x-default /places/a/"


# Hosts

HOSTS = {
    "en": "https://www.example.com",
    "es": "https://example.es/tienda",
    "fr": "https://www.example.com",
}
"""Two of the languages stand on the first site."""


@pytest.fixture
def two_sites(settings, sections):
    """Give the sites of two hosts with URLconfs of their own, the second one below a path."""
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": "https://www.example.com"},
        "es": {"BASE_URL": "https://example.es/tienda", "URLCONF": "tests.urls_spanish"},
    }
    return all_sites()


@pytest.mark.parametrize("location", [COLUMNS, ROWS, lambda self, obj: url_of(obj)])
def test_sites_of_two_hosts_list_the_same_sets(two_sites, location):
    """Each lists its own languages, at its own addresses, and links to those of the other."""
    place("a", "en", "es", "fr")
    place("b", "es")
    found = [
        links(render(places(site=site, location=location, language_hosts=HOSTS))[1])
        for site in two_sites
    ]
    a = [
        ("en", "https://www.example.com/en/places/a-en/"),
        ("es", "https://example.es/tienda/lugares/a-es/"),
        ("fr", "https://www.example.com/fr/places/a-fr/"),
    ]
    assert found == [
        {a[0][1]: a, a[2][1]: a},
        {a[1][1]: a, (b := "https://example.es/tienda/lugares/b-es/"): [("es", b)]},
    ]


def url_of(obj):
    """Return the address in the active language, None for none."""
    from django.urls import reverse
    from django.utils.translation import get_language

    slug = getattr(obj, f"slug_{get_language()}")
    return reverse("place", kwargs={"slug": slug}) if slug else None


def test_x_default_may_stand_on_the_other_host(two_sites):
    """As one of the languages that are there."""
    place("a", "en", "es")
    section = places(site=two_sites[0], location=COLUMNS, language_hosts=HOSTS, x_default="es")
    (found,) = links(render(section)[1]).values()
    assert found[-1] == ("x-default", "https://example.es/tienda/lugares/a-es/")


def test_x_default_of_several_hosts_is_no_path(two_sites):
    """It would be another page on each of them, and so the sets would differ; a URL is the same."""
    place("a", "en", "es")
    for x_default, told_of, expected in (
        ("/choose/", {"invalid-url": 1}, {"en", "es"}),
        ("https://www.example.com/choose/", {}, {"en", "es", "x-default"}),
    ):
        options = {"location": COLUMNS, "language_hosts": HOSTS, "x_default": x_default}
        here, there = (places(site=site, **options) for site in two_sites)
        (found,) = links(render(here)[1]).values()
        assert [found] == list(links(render(there)[1]).values())
        assert {code for code, _ in found} == expected
        assert problems(here) == problems(there) == told_of


def test_a_site_without_a_language_of_its_own_lists_nothing(two_sites):
    """The languages of the other site are only linked to."""
    place("a", "en")
    hosts = dict.fromkeys(HOSTS, "https://www.example.com")
    assert render(places(site=two_sites[1], language_hosts=hosts))[1] == b""


# Lists


def test_items_link_to_their_versions():
    """Those with a name in each language; what has one address for all is listed once."""
    section = declare(StaticSection, items=["home", "/p/"], **IN_ALL)
    assert shown(section) == {
        **each_of("en /en/", "es /es/", "fr /fr/"),
        "/p/": ["en /p/"],
    }


# Memory


def peak(count):
    """Return the most memory taken while a page of so many objects streams, and its size."""
    Place.objects.bulk_create(Place(slug=f"place-{n:05}") for n in range(count))
    rendering = PageRendering(places(), EVERYTHING, SITE.scope())
    size = 0
    tracemalloc.start()
    try:
        for block in rendering:
            size += len(block)
        return tracemalloc.get_traced_memory()[1], size, rendering
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@override_settings(LANGUAGES=TWENTY)
def test_twenty_languages_take_no_more_memory_on_a_large_page():
    """Eight times the objects: eight times the bytes, in the same memory."""
    peak(5)
    Place.objects.all().delete()
    small, small_size, _ = peak(50)
    large, size, rendering = peak(350)
    assert rendering.urls == 8000
    assert size > 7 * small_size
    assert large < small + 3_000_000 < 15_000_000
