"""What the site map for people calls things, and in which language."""

import pytest
from django.conf.urls.i18n import i18n_patterns
from django.core.checks import run_checks
from django.db import connection
from django.db.models import F, Value
from django.db.models.functions import Concat
from django.test.utils import CaptureQueriesContext
from django.urls import include, path
from django.utils import translation

from django_sitemapkit import StaticSection, Translated
from django_sitemapkit.contrib.people import links as people_links
from django_sitemapkit.reading import reader_of
from tests.contrib.people.reading import (
    FIRST_PAGE,
    READINGS,
    Articles,
    body,
    entries,
    make_articles,
    parts,
    sections_of,
    step,
    titles,
    walked,
)
from tests.factories import SITE
from tests.languages import ROWS, place, places
from tests.testapp.models import Article
from tests.testapp.serving import BASE, Products, Readings, declare, make_products, make_readings
from tests.urls import view

pytestmark = pytest.mark.django_db

ARTICLES = "/sitemap/articles/1/"


def upper(self, article):
    """Say a title by a method."""
    return article.title.upper() if article.title != "none" else None


def test_without_a_title_it_is_the_path(client, sections):
    """Decoded, as far as that can be read."""
    declare(sections, Products)
    make_products("ñandú", "a b")
    expected = ["/products/all/a%20b/", "/products/all/ñandú/"]
    assert titles(client.get("/sitemap/products/1/")) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("title", ["First", "Second"]),
        (F("title"), ["First", "Second"]),
        (Concat(Value("On "), "title"), ["On First", "On Second"]),
        (upper, ["FIRST", "SECOND"]),
        (Translated("title"), ["First", "Second"]),
    ],
)
def test_a_section_says_its_titles(client, sections, show, monkeypatch, title, expected):
    """By a field path, an expression, a translated field or a method that gets the object."""
    monkeypatch.setattr(people_links, "translation_column", lambda field, model, code: field.path)
    declare(sections, Articles, title=title)
    make_articles("First", "Second")
    assert titles(client.get(ARTICLES)) == expected
    show(1)
    assert [name for _, name in sections_of(client.get(FIRST_PAGE))["Articles"]] == expected


def test_the_items_of_a_list_have_titles_too(client, sections):
    """The method gets the item."""
    about = lambda self, item: {"/about/": "About us"}.get(item)  # noqa: E731
    declare(sections, StaticSection, name="pages", items=["/", "/about/"], title=about)
    assert titles(client.get("/sitemap/pages/1/")) == ["/", "About us"]


def test_one_title_for_all(client, sections):
    """A value that names no column is the title of each row."""
    declare(sections, Articles, title=translation.gettext_lazy("Home"))
    make_articles("First", "Second")
    assert titles(client.get(ARTICLES)) == ["Home", "Home"]


def test_an_empty_title_is_none(client, sections, caplog):
    """Nor is one whose method fails: both leave the path, and the log names the failure."""

    def failing(self, article):
        return {"none": None, "empty": ""}[article.title]

    declare(sections, Articles, title=failing)
    make_articles("none", "empty", "missing")
    found = titles(client.get(ARTICLES))
    assert [text.split("/")[1] for text in found] == ["articles"] * 3
    assert "title raised KeyError" in caplog.text


def test_a_title_that_cannot_be_shown_costs_no_page(client, sections):
    """Nobody can see a link of spaces, and half a character cannot be encoded."""

    class Failing:
        def __str__(self):
            raise KeyError

    made = {"fails": Failing(), "spaces": " \n", "half": "Tea \ud83d"}
    declare(sections, Articles, title=lambda self, article: made[article.title])
    make_articles(*made)
    found = titles(client.get(ARTICLES))
    assert [text.split("/")[1] for text in found[:2]] == ["articles"] * 2
    assert found[2:] == ["Tea \\ud83d"]


def test_equal_titles_are_one_name(client, sections, show):
    """A part in which all are called the same is called so once."""
    show(2)
    declare(sections, Articles)
    make_articles("Springfield", "Springfield", "Springfield", "Shelbyville")
    names = [name for _, name in sections_of(client.get(FIRST_PAGE))["Articles"]]
    assert names == ["Springfield", "Springfield – Shelbyville"]


def test_everything_is_escaped(client, sections, show):
    """Titles, names, headings and addresses are text, whatever is in them."""
    evil = "<script>alert('1')</script>&amp;\""
    declare(sections, Articles, heading=f"Head {evil}")
    make_articles(evil, evil)
    declare(sections, StaticSection, name="pages", items=["/?a=1&b='\"<i>"])
    for count in (250, 1):
        show(count)
        for address in (FIRST_PAGE, ARTICLES, "/sitemap/pages/1/"):
            page = body(client.get(address))
            assert "<script" not in page
            assert "<i>" not in page
        assert titles(client.get(ARTICLES)) == [evil] * min(count, 2)
    ((address, text),) = entries(client.get("/sitemap/pages/1/"))
    assert address == f"{BASE}/?a=1&b='%22%3Ci%3E"
    assert text == address.removeprefix(BASE)


def test_machines_pay_nothing_for_titles(client, sections):
    """XML, text and the plan take the same queries with a title and without."""
    make_articles("News")
    statements = []
    for title in (None, "title", upper):
        sections._sections.clear()
        section = declare(sections, Articles, title=title, heading=title and "News")
        client.get("/sitemap-articles-1.xml")
        with CaptureQueriesContext(connection) as queries:
            client.get("/sitemap-articles-1.xml")
        statements.append([query["sql"] for query in queries])
        assert not reader_of(section(SITE)).reads_objects
        statements[-1].append(reader_of(section(SITE)).declaration_text())
    assert statements[0] == statements[1] == statements[2]


# Languages


class Spoken(Articles):
    """Articles with an address and a title in each language."""

    name = "articles"
    i18n = True

    def location(self, article):
        return f"/{translation.get_language()}/{article.pk}/"

    def title(self, article):
        return f"{article.title} in {translation.get_language()}"


FRENCH = {"headers": {"accept-language": "fr"}}


@pytest.fixture
def visitors(settings):
    """Speak the visitor's language."""
    settings.MIDDLEWARE = ["django.middleware.locale.LocaleMiddleware"]
    settings.LANGUAGES = [("en", "English"), ("fr", "French"), ("de", "German")]
    settings.LANGUAGE_CODE = "en"


@pytest.mark.parametrize(("language", "word"), [("es", "Mapa del sitio"), ("fr", "Plan du site")])
def test_it_speaks_the_visitors_language(client, settings, sections, language, word):
    """And says which one it is."""
    settings.MIDDLEWARE = ["django.middleware.locale.LocaleMiddleware"]
    declare(sections, Readings)
    make_readings([1])
    for address in (FIRST_PAGE, READINGS):
        response = client.get(address, headers={"accept-language": language})
        assert f'<html lang="{language}" dir="ltr">' in body(response)
        assert word in body(response)
        assert "Accept-Language" in response["Vary"]


def test_entries_are_in_the_visitors_language_only(client, visitors, sections):
    """On both kinds of pages; a section that lists each row once speaks LANGUAGE_CODE."""
    declare(sections, Spoken)
    declare(sections, Spoken, name="once", i18n=False)
    make_articles("News")
    pk = Article.objects.get().pk
    for options, code in (({}, "en"), (FRENCH, "fr")):
        response = client.get(FIRST_PAGE, **options)
        expected = [(f"{BASE}/{code}/{pk}/", f"News in {code}")]
        assert sections_of(response)["Articles"] == expected
        assert entries(client.get(ARTICLES, **options)) == expected
        assert sections_of(response)["Once"] == [(f"{BASE}/en/{pk}/", "News in en")]
        assert "hreflang" not in body(response)


@pytest.mark.parametrize(("listed", "shown"), [(["de", "en"], "en"), (["de", "gsw"], "de")])
def test_a_language_that_is_not_listed(client, visitors, settings, sections, listed, shown):
    """LANGUAGE_CODE takes its place, else the first one that is listed; the links say which."""
    settings.LANGUAGES = [*settings.LANGUAGES, ("gsw", "Schwiizertüütsch")]
    declare(sections, Spoken, languages=listed)
    make_articles("News")
    page = client.get(ARTICLES, **FRENCH)
    assert titles(page) == [f"News in {shown}"]
    assert f'/" hreflang="{shown}" lang="{shown}">' in body(page)


def test_nobody_speaks(client, settings, sections):
    """Where LANGUAGE_CODE itself is not one of LANGUAGES, the first one is shown."""
    settings.LANGUAGE_CODE = "nn"
    settings.LANGUAGES = [("fr", "French"), ("en", "English")]
    declare(sections, Spoken)
    make_articles("News")
    assert titles(client.get(ARTICLES)) == ["News in fr"]


def test_rows_without_the_language_are_not_there(client, visitors, settings, sections, show):
    """Where they end a part, their title in another language gives its name."""
    show(2)
    section = type(places(name="places", location=ROWS, title="slug", alternates=False).options)
    sections.add(section)
    for name, codes in {"a": "en", "b": "en fr", "c": "fr", "d": "en", "e": "en"}.items():
        place(name, *codes.split())
    settings.ROOT_URLCONF = InLanguages
    pages = walked(client, "/fr/sitemap/places/1/")
    assert pages == [[f"{BASE}/fr/places/b-fr/"], [f"{BASE}/fr/places/c-fr/"], []]
    names = [name for _, name in sections_of(client.get("/fr/sitemap/"))["Places"]]
    assert names == ["a – b", "c – d", "e"]


class InLanguages:
    """The site map and the pages that it lists below the languages, as sites have them."""

    urlpatterns = [
        path("", include("django_sitemapkit.urls")),
        *i18n_patterns(
            path("", include("django_sitemapkit.contrib.people.urls")),
            path("places/<str:slug>/", view, name="place"),
            prefix_default_language=False,
        ),
    ]


@pytest.mark.slow
def test_the_language_of_the_address_is_that_of_all_links(
    client, visitors, settings, sections, show
):
    """Below i18n_patterns() nothing leads to the site map in another language."""
    show(1)
    settings.ROOT_URLCONF = InLanguages
    declare(sections, Spoken)
    make_articles("Old", "News")
    for prefix, code in (("", "en"), ("/fr", "fr")):
        response = client.get(f"{prefix}/sitemap/")
        links = sections_of(response)["Articles"]
        assert [name for _, name in links] == [f"Old in {code}", f"News in {code}"]
        assert all(address.startswith(f"{prefix}/sitemap/articles/1/") for address, _ in links)
        page = client.get(links[0][0])
        assert step(page, "next").startswith(f"{prefix}/sitemap/articles/1/")
        assert parts(page)[0][0].startswith(f"{prefix}/sitemap/articles/1/")
        assert f'<a href="{prefix}/sitemap/">' in body(page)
        assert f'<li><a href="{prefix}/">' in body(page)
        assert titles(page) == [f"Old in {code}"]


def test_titles_may_be_translated_rows(client, visitors, settings, sections):
    """As django-parler has them, in the visitor's language."""
    settings.ROOT_URLCONF = InLanguages
    title = Translated("slug", relation="translations")
    section = type(places(name="places", location=ROWS, title=title).options)
    sections.add(section)
    assert [found.id for found in run_checks() if "title" in found.msg] == []
    place("a", "en", "fr")
    place("b", "fr")
    assert titles(client.get("/fr/sitemap/places/1/")) == ["a-fr", "b-fr"]
    assert titles(client.get("/sitemap/places/1/")) == ["a-en"]
