"""``{% sitemap_alternates %}``: in the head of an object's pages, the very links of the sitemap."""

import re
from html import unescape

import pytest
from django.contrib.sitemaps import Sitemap
from django.db import connection
from django.template import Context, Template
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.translation import get_language

from django_sitemapkit import StaticSection
from django_sitemapkit.models import UrlOverride
from django_sitemapkit.overrides import section_of
from django_sitemapkit.reading import reader_of
from django_sitemapkit.rendering.pipeline import alternates_of
from django_sitemapkit.sections import adapt_contrib
from django_sitemapkit.sites import all_sites
from tests.factories import SITE, declare
from tests.languages import COLUMNS, IN_ALL, ROUTE, ROWS, TWENTY, links, place, places, render
from tests.overrides.setting import by_object, by_path, rule, setting
from tests.testapp.models import Place, Shop

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.urls_languages")]

MAIN, SPANISH = "https://www.example.com", "https://example.es"
HOSTS = {"en": MAIN, "es": SPANISH, "fr": MAIN}
TAG = re.compile('<link rel="alternate" hreflang="([^"]*)" href="([^"]*)">')


def register(sections, section):
    """Register a section that was made for one site, for all, and return it."""
    sections.add(type(section.options))
    return section


def written(item, rf, host="www.example.com"):
    """Return what the tag writes of an object on a page of a host."""
    template = Template("{% load sitemapkit %}{% sitemap_alternates item %}")
    request = rf.get("/en/", headers={"host": host})
    return template.render(Context({"request": request, "item": item}))


def shown(item, rf, host="www.example.com"):
    """Return the links that the tag writes, as codes and URLs; it writes nothing beside them."""
    text = written(item, rf, host)
    assert TAG.sub("", text).strip() == ""
    return [(code, unescape(href)) for code, href in TAG.findall(text)]


def listed(section):
    """Return the different sets of links that the XML of a section has now, in its order."""
    sets = links(render(section_of(section.site, section.get_name()))[1]).values()
    return [list(one) for one in dict.fromkeys(map(tuple, sets))]


# The same links


@pytest.mark.parametrize("location", [COLUMNS, ROWS], ids=["columns", "rows"])
@pytest.mark.parametrize("x_default", [False, True, "es", "/choose/"])
def test_they_are_those_of_the_sitemap(rf, sections, location, x_default):
    """For objects in all languages, in some and in one, wherever their slugs are read."""
    section = register(sections, places(location=location, x_default=x_default))
    made = [place("a", "en", "es", "fr"), place("b", "es", "fr"), place("c", "en")]
    assert [shown(obj, rf) for obj in made] == listed(section)
    codes = [code for code, _ in shown(made[1], rf)]
    assert codes == ["es", "fr"] + (["x-default"] if x_default in {"es", "/choose/"} else [])


def test_items_of_a_list_have_theirs(rf, sections):
    """By the name that the list has them by; a path has but itself."""
    section = register(sections, declare(StaticSection, items=["home", "/p/"], **IN_ALL))
    assert [shown(item, rf) for item in ("home", "/p/")] == listed(section)
    assert [len(shown(item, rf)) for item in ("home", "/p/")] == [3, 1]
    assert shown("/en/", rf) == []


def test_items_may_be_objects(rf, sections):
    """Those of the list alone, though another object is of the same model."""
    made, other = place("a", "en", "es"), place("b", "en", "es")
    address = lambda self, item: reverse("place", args=[item.slug])  # noqa: E731
    options = {"items": [made], "location": address, **IN_ALL}
    section = register(sections, declare(StaticSection, **options))
    assert [shown(made, rf)] == listed(section)
    assert shown(other, rf) == []


class Old(Sitemap):
    """A class of contrib's, in several languages."""

    i18n = alternates = x_default = True
    protocol = "https"

    def items(self):
        """Return the places as a queryset."""
        return Place.objects.order_by("pk")

    def location(self, item):
        """Return the address in the active language."""
        return reverse("place", args=[getattr(item, f"slug_{get_language()}")])

    def get_languages_for_item(self, item):
        """Return the languages that the place has a slug in."""
        return [code for code in ("en", "es", "fr") if getattr(item, f"slug_{code}")]


def test_classes_of_contrib_have_theirs(rf, settings, sections):
    """With the x-default that contrib writes."""
    settings.LANGUAGE_CODE = "en"
    section = register(sections, reader_of(adapt_contrib(Old)(SITE)))
    made = [place("a", "en", "es", "fr"), place("b", "es")]
    assert [shown(obj, rf) for obj in made] == listed(section)
    assert shown(made[0], rf)[-1] == ("x-default", f"{MAIN}/places/a-en/")


def test_the_first_section_that_lists_an_object_tells(rf, sections):
    """One without links, or without the object, does not come before it."""
    register(sections, places(name="plain", alternates=False))
    register(sections, places(name="others", queryset=Place.objects.filter(slug="b")))
    first = register(sections, places(name="first", languages=["en", "es"]))
    second = register(sections, places(name="second", location=COLUMNS))
    made = place("a", "en", "es", "fr")
    assert [shown(made, rf)] == listed(first) != listed(second)


def test_an_object_is_known_by_its_key(rf, sections):
    """Whether it was read whole, in part or as it was before; the database says what is listed."""
    section = register(sections, places(location=COLUMNS))
    made = place("a", "en", "es")
    Place.objects.filter(pk=made.pk).update(slug_fr="later")
    assert [shown(made, rf)] == [shown(Place.objects.only("pk").get(), rf)] == listed(section)
    assert [code for code, _ in shown(made, rf)] == ["en", "es", "fr"]


def test_other_sections_are_not_asked(rf, sections):
    """What lists the same URLs before it is none of its concern; a build would list them once."""
    register(sections, places(name="others", location=ROUTE, alternates=False))
    section = register(sections, places(name="linked"))
    made = place("a", "en")
    assert [shown(made, rf)] == listed(section)


# Nothing


def test_an_excluded_object_has_none(rf, sections):
    """Whether by an override of the object, by a rule, or by its section being off."""
    register(sections, places(location=COLUMNS))
    one, two, three = (place(name, "en", "es") for name in "abc")
    by_object(one, include=False)
    rule("/*/places/b-")
    assert [shown(obj, rf) for obj in (one, two)] == [[], []]
    assert len(shown(three, rf)) == 2
    setting("things", enabled=False)
    assert shown(three, rf) == []


def test_an_excluded_version_is_not_linked_to(rf, sections):
    """As in the sitemap, from no other."""
    section = register(sections, places(location=COLUMNS))
    made = place("a", "en", "es", "fr")
    by_path("/es/places/a-es/", include=False)
    assert [shown(made, rf)] == listed(section)
    assert [code for code, _ in shown(made, rf)] == ["en", "fr"]


def test_what_no_section_lists_has_none(rf, sections):
    """An object without a version, one of another model, one that is gone, and anything else."""
    register(sections, places(location=COLUMNS, queryset=Place.objects.exclude(slug="out")))
    register(sections, declare(StaticSection, name="pages", items=["home"], **IN_ALL))
    gone = place("gone", "en")
    Place.objects.filter(slug="gone").delete()
    strangers = [place("none"), place("out", "en", "es"), Shop.objects.create(slug="s"), gone]
    for item in (*strangers, Place(), "nothing", "", None, 7, ["home"]):
        assert written(item, rf) == "", item


def test_what_another_site_lists_has_none(rf, settings, sections):
    """An object of its section, and a page that no site is for."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": MAIN},
        "second": {"BASE_URL": "https://second.example"},
    }
    register(sections, places(location=COLUMNS, sites=["second"]))
    made = place("a", "en", "es")
    assert written(made, rf) == ""
    assert len(shown(made, rf, "second.example")) == 2
    assert written(made, rf, "third.example") == ""


def test_a_page_without_a_site_is_told_of(rf, settings, sections, caplog):
    """It renders all the same, and the log says why there are no links."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = {"main": {"BASE_URL": MAIN}}
    register(sections, places(location=COLUMNS))
    assert written(place("a", "en"), rf, "third.example") == ""
    assert "are unknown" in caplog.text


# Hosts of their own


@pytest.fixture
def two_sites(settings, sections):
    """Give the sites of two hosts; the Spanish versions stand on the second one."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": MAIN},
        "es": {"BASE_URL": SPANISH, "URLCONF": "tests.urls_spanish"},
    }
    return all_sites()


@pytest.mark.parametrize("location", [COLUMNS, ROWS], ids=["columns", "rows"])
def test_both_hosts_write_the_same_links(rf, sections, two_sites, location):
    """Those of either sitemap, each version at its own address."""
    here, there = (places(site=site, location=location, language_hosts=HOSTS) for site in two_sites)
    register(sections, here)
    made = place("a", "en", "es", "fr")
    found = shown(made, rf)
    assert found == shown(made, rf, "example.es")
    assert [found] == listed(here) == listed(there)
    assert found[1] == ("es", f"{SPANISH}/lugares/a-es/")


@pytest.mark.parametrize("x_default", [False, "es", f"{MAIN}/choose/"])
def test_an_object_without_a_version_here_has_none(rf, sections, two_sites, x_default):
    """This site lists nothing of it, so the other one has its links alone."""
    options = {"location": COLUMNS, "language_hosts": HOSTS, "x_default": x_default}
    here, there = (places(site=site, **options) for site in two_sites)
    register(sections, here)
    spanish, english = place("b", "es"), place("c", "en")
    assert shown(spanish, rf) == shown(english, rf, "example.es") == []
    assert [shown(english, rf)] == listed(here)
    assert [shown(spanish, rf, "example.es")] == listed(there)


def test_an_object_whose_versions_here_are_excluded_has_none(rf, sections, two_sites):
    """The links to the other host are not left alone on a page that is not listed."""
    register(sections, places(location=COLUMNS, language_hosts=HOSTS))
    made = place("a", "en", "es")
    assert len(shown(made, rf)) == 2
    UrlOverride.objects.create(site="main", path="/en/places/a-en/", include=False)
    assert shown(made, rf) == []


# As HTML


def test_everything_is_escaped(rf, sections):
    """Whatever an address has in it, the attribute ends where it should."""
    evil = "/a/?x=1&y='\"><script>&b;"
    section = register(sections, places(location=lambda self, obj: evil, languages=["en"]))
    text = written(place("a"), rf)
    assert text.count("<") == text.count(">") == 1
    assert text.count('"') == 6
    assert "?x=1&amp;y=" in text
    assert [shown(Place.objects.get(), rf)] == listed(section)


def test_links_stand_on_lines_of_their_own(rf, sections):
    """As the head of a page has them."""
    register(sections, places(location=COLUMNS, languages=["en", "fr"]))
    assert written(place("a", "en", "fr"), rf).splitlines() == [
        f'<link rel="alternate" hreflang="en" href="{MAIN}/en/places/a-en/">',
        f'<link rel="alternate" hreflang="fr" href="{MAIN}/fr/places/a-fr/">',
    ]


# What it costs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"),
    [({"location": COLUMNS}, 2), ({"location": ROWS}, 3), ({}, 2)],
    ids=["columns", "rows", "route"],
)
def test_queries_grow_neither_with_rows_nor_languages(settings, sections, options, expected):
    """One for what editors set, and the section's own for its object, of however many."""
    register(sections, places(**options))
    register(sections, declare(StaticSection, name="pages", items=["home"], **IN_ALL))
    made = place("a", "en", "es")
    counts = []
    for languages, rows in ((settings.LANGUAGES, 1), (TWENTY, 300)):
        if options != {"location": COLUMNS}:  # The tests' places have three columns.
            settings.LANGUAGES = languages
        for number in range(rows):
            place(f"p{number}", "en")
        with CaptureQueriesContext(connection) as queries:
            assert len(alternates_of(SITE, made)) >= 2
        counts.append(len(queries))
    assert counts == [expected, expected]


def wrong(self, obj):
    """Say something of an object that nobody should ask for."""
    raise AssertionError(obj)


@pytest.mark.parametrize("location", [COLUMNS, ROWS, None], ids=["columns", "rows", "method"])
def test_what_is_said_beside_the_links_is_not_asked(sections, monkeypatch, location):
    """Neither methods nor columns of other rows; it takes the queries of a section without them."""
    monkeypatch.setattr(Place, "get_absolute_url", lambda self: f"/{self.slug}/", raising=False)
    more = {"videos": wrong, "news": wrong, "elements": wrong, "namespaces": {"s": f"{MAIN}/ns"}}
    made = place("a", "en", "es")
    counts = []
    for options in ({}, {"images": wrong, **more}, {"images": "photos__file"}):
        sections._sections.clear()
        register(sections, places(location=location, **options))
        with CaptureQueriesContext(connection) as queries:
            assert alternates_of(SITE, made)
        counts.append(len(queries))
    assert counts == counts[:1] * 3


def test_what_is_said_of_items_is_not_asked(sections):
    """Nothing is asked but where an item is."""
    asked = []
    images = lambda self, item: asked.append(item)  # noqa: E731
    register(sections, declare(StaticSection, items=["home"], images=images, **IN_ALL))
    assert len(alternates_of(SITE, "home")) == 3
    assert asked == []


class LanguagePlan:
    """An item that holds a language, as objects of django-parler do."""

    language = "es"

    def set_current_language(self, code):
        """Take a language."""
        self.language = code


def test_the_object_of_the_page_keeps_its_language(sections):
    """The rest of the page goes on with it; the links are those of each language all the same."""
    item = LanguagePlan()
    address = lambda self, item: f"/{item.language}/"  # noqa: E731
    register(sections, declare(StaticSection, items=[item], location=address, **IN_ALL))
    expected = [(code, f"{MAIN}/{code}/") for code in ("en", "es", "fr")]
    assert alternates_of(SITE, item) == expected
    assert vars(item) == {}


def test_an_item_of_a_list_costs_no_query_of_its_own(sections, django_assert_num_queries):
    """What editors set is asked for, and nothing else; the same for what is listed nowhere."""
    register(sections, declare(StaticSection, items=["home"], **IN_ALL))
    with django_assert_num_queries(1):
        assert len(alternates_of(SITE, "home")) == 3
    with django_assert_num_queries(1):
        assert alternates_of(SITE, Shop(pk=1)) == []
