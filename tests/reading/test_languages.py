"""Rows in several languages: which of them an object has, and how pages of them are read."""

import datetime as dt
import re

import pytest
from django.contrib.sitemaps import Sitemap
from django.db import connection
from django.db.models import Case, CharField, DateField, DateTimeField, Value, When
from django.db.models.functions import Coalesce
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.translation import get_language

from django_sitemapkit import Allow, Element, Image, News, Route, StaticSection, Video
from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import pages_with_rows, refresh_plan
from django_sitemapkit.reading import languages, reader_of, why_not_as_text
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import adapt_contrib
from django_sitemapkit.sites import SitemapSite, all_sites
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
from tests.testapp.models import Place, PlaceTranslation

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.urls_languages")]

SPOKEN = {
    "a relation": {"object_languages": "translations__language_code"},
    "a relation, by objects": {
        "object_languages": "translations__language_code",
        "location": lambda self, obj: f"/{active()}/places/{obj.slug}/",
    },
    "a method": {"object_languages": lambda self, obj: codes_of(obj)},
    "a method and an address of its own": {
        "object_languages": lambda self, obj: codes_of(obj),
        "location": lambda self, obj: f"/{active()}/places/{obj.slug}/",
    },
}


def active():
    """Return the active language."""
    from django.utils.translation import get_language

    return get_language()


def codes_of(obj):
    """Return the languages that an object has rows in."""
    yield from obj.translations.values_list("language_code", flat=True)


@pytest.mark.parametrize("options", SPOKEN.values(), ids=SPOKEN)
def test_objects_have_languages_of_their_own(options):
    """By whatever says so; one without any is not listed, and unknown codes do nothing."""
    place("a", "en", "fr")
    place("b", "es")
    place("none")
    PlaceTranslation.objects.create(place=Place.objects.first(), language_code="tlh", slug="x")
    assert shown(places(**options)) == {
        **each_of("en /en/places/a/", "fr /fr/places/a/"),
        **each_of("es /es/places/b/"),
    }
    assert problems(places(**options)) == {}


@pytest.mark.parametrize("location", [COLUMNS, ROWS], ids=["columns", "rows"])
def test_a_slug_that_is_missing_is_a_version_that_is_missing(location):
    """Whether None or the empty text; what else the row has is listed."""
    made = place("a", "en", "es")
    Place.objects.filter(pk=made.pk).update(slug_en="", slug_fr=None)
    made.translations.filter(language_code="en").update(slug="")
    assert shown(places(location=location)) == each_of("es /es/places/a-es/")
    assert problems(places(location=location)) == {}


def test_two_ways_to_have_no_version_go_together():
    """A language counts where the object has it, and the slug."""
    made = place("a", "en", "es")
    made.translations.filter(language_code="en").delete()
    Place.objects.filter(pk=made.pk).update(slug_fr="a-fr")
    section = places(location=COLUMNS, object_languages="translations__language_code")
    assert shown(section) == each_of("es /es/places/a-es/")


def boom(self, obj):
    """Fail for one object."""
    return ["en", "es"] if obj.slug != "a" else 1 / 0


@pytest.mark.parametrize("result", [boom, lambda self, obj: None if obj.slug == "a" else ["en"]])
def test_an_object_whose_languages_cannot_be_told_is_refused(result):
    """It costs that object, not the page."""
    place("a")
    place("b")
    section = places(object_languages=result)
    assert {path[3:] for path in shown(section)} == {"/places/b/"}
    assert problems(section) == {"exception": 3}
    items = declare(StaticSection, items=["home"], object_languages=lambda self, _: 1 / 0, **IN_ALL)
    assert render(items)[1] == b""
    assert problems(items) == {"exception": 3}


def test_languages_that_an_object_says_it_has_are_those_of_the_section():
    """What is not among them is left out without a word, as contrib would not know it either."""
    place("a")
    section = places(languages=["fr", "en"], object_languages=lambda self, obj: ["es", "en"])
    assert shown(section) == each_of("en /en/places/a/")


def test_the_language_is_active_wherever_something_is_asked():
    """For locations and images of a version; tags are asked once."""
    place("a")
    asked = []

    def images(self, obj):
        yield f"/{active()}.jpg"

    def lastmod(self, obj):
        asked.append(active())

    section = places(
        location=lambda self, obj: f"/{active()}/", images=images, lastmod=lastmod, alternates=False
    )
    document = render(section)[1].decode()
    for code in ("en", "es", "fr"):
        image = f"<image:image><image:loc>https://www.example.com/{code}.jpg<"
        assert f"/{code}/</loc>{image}" in document
    assert asked == ["en", "es", "fr"]


def test_a_source_that_differs_by_language_and_has_no_values_is_an_error():
    """No version gets the values of another tag."""
    place("a")
    section = places(lastmod=lambda self, obj: dt.date(2024, 1, 1))
    section.tag_sources_by_language = {"lastmod": {"en": object()}}
    with pytest.raises(TypeError, match="no values that differ by language"):
        render(section)


def test_objects_that_hold_a_language_are_told_it():
    """As those of django-parler do, which do not look at the active one."""
    place("a")
    held = {}

    def hold(self, code):
        held[self.pk] = code

    Place.set_current_language = hold
    try:
        assert shown(places(location=lambda self, obj: f"/{held[obj.pk]}/"))["/fr/"]
    finally:
        del Place.set_current_language


@pytest.mark.parametrize(
    "value",
    [
        None, "/a.jpg", 5, ["/a.jpg"], ("/a.jpg",), {"a": "b"}, {"/a.jpg"}, Image(location="/a"),
        Video(thumbnail="/t", title="T", description="D", restriction=Allow("IE"), tags=["t"]),
        [Element(name="a:b", attributes={"c": "d"}, children=[Element(name="a:e", text="f")])],
    ],
)  # fmt: skip
def test_a_value_without_lazy_texts_is_taken_as_it_is(value):
    """Nothing is copied that need not be."""
    section = declare(StaticSection, images=lambda self, item: value)
    assert languages.extensions_of(section.extension_sources, ["home"])["images"][0] is value


# Queries


def queries(section):
    """Return how many queries a page takes."""
    with CaptureQueriesContext(connection) as captured:
        b"".join(PageRendering(section, EVERYTHING, SITE.scope()))
    return len(captured)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"location": ROUTE, "i18n": False, "alternates": False}, 1),
        ({"location": ROUTE}, 1),
        ({"location": COLUMNS}, 1),
        ({"location": COLUMNS, "images": "cover"}, 1),
        ({"location": ROWS}, 2),
        ({"location": ROWS, "object_languages": "translations__language_code"}, 3),
        ({"location": ROWS, "images": "photos__file"}, 3),
        (
            {
                "location": lambda self, obj: f"/{active()}/{obj.slug}/",
                "get_queryset": lambda self: Place.objects.prefetch_related("photos"),
                "images": lambda self, obj: [photo.file for photo in obj.photos.all()],
            },
            2,
        ),
    ],
    ids=[
        "plain",
        "i18n",
        "columns",
        "images",
        "rows",
        "rows and languages",
        "photos",
        "prefetched",
    ],
)
def test_rows_take_no_query_of_their_own(options, expected):
    """Columns none more than a plain section, a relation one for each chunk of rows."""
    for n in range(2):
        made = place(f"p{n}", "en", "es", cover="c.jpg")
        made.photos.create(file="a.jpg")
    assert queries(places(**options)) == expected
    for n in range(2, 20):
        made = place(f"p{n}", "en", "es", cover="c.jpg")
        made.photos.create(file="a.jpg")
    assert queries(places(**options)) == expected


@pytest.mark.parametrize("location", [ROUTE, COLUMNS, ROWS], ids=["same", "columns", "rows"])
def test_the_size_of_chunks_changes_nothing(monkeypatch, location):
    """A chunk of one object gives what one of all objects gives."""
    for n in range(7):
        place(f"p{n}", *["en", "es", "fr"][: n % 4])
    section = places(location=location, images="photos__file")
    whole = render(section)[1]
    monkeypatch.setattr(languages, "LINKS", 1)
    assert render(places(location=location, images="photos__file"))[1] == whole


def test_what_was_made_before_asks_in_the_turn_of_its_reading():
    """A build reads ahead on the same connection: related rows have to wait for their turn."""
    place("a", "en")
    turns = []

    class Turn:
        def __enter__(self):
            turns.append("begin")

        def __exit__(self, *args):
            turns.append("end")

    section = places(location=ROWS, images="photos__file")
    section.declaration_text()
    assert section.reads_separately
    render(section.with_prefetch(iter, Turn()))
    assert turns == ["begin", "end"] * 2


# Pages


@pytest.fixture
def few_on_a_page(settings, sections):
    """Let pages have seven URLs: two objects in three languages, and one URL more."""
    settings.SITEMAPKIT_MAX_URLS = 7
    return sections


def pages(section):
    """Return the locations of each page, by number; no set lacks a version that is listed."""
    found = {}
    for page in pages_with_rows(section):
        rendering = PageRendering(section, page.keys, SITE.scope())
        document = b"".join(rendering)
        assert rendering.overflow is None
        found[page.number] = list(links(document)) if document else []
    return found


def settle(client):
    """Read all pages until none of them is split any more."""
    for _ in range(10):
        section = section_of(SITE, "things")
        before = [page.number for page in pages_with_rows(section)]
        for number in before:
            client.get(f"/sitemap-things-{number}.xml").getvalue()
        if [page.number for page in pages_with_rows(section_of(SITE, "things"))] == before:
            return section
    raise AssertionError("pages are split for ever")


@pytest.mark.slow
@pytest.mark.parametrize("location", [ROUTE, COLUMNS, ROWS], ids=["same", "columns", "rows"])
def test_all_versions_of_an_object_are_on_one_page(client, few_on_a_page, location):
    """Before and after pages split: none is lost, none is listed twice, none stands alone."""
    few_on_a_page.add(type(places(location=location).options))
    for n in range(5):
        place(f"p{n}", "en", "es", "fr")
    refresh_plan(section_of(SITE, "things"))
    for n in range(5, 12):
        place(f"p{n}", *["en", "es", "fr"][: n % 4])
    section = settle(client)
    found = pages(section)
    every = [url for some in found.values() for url in some]
    some = 15 + 1 + 2 + 3 + 1 + 2 + 3
    assert len(every) == len(set(every)) == (36 if location is ROUTE else some)
    of = {}
    for number, some in found.items():
        assert len(some) <= 7
        for url in some:
            slug = url.split("/places/")[1].split("-")[0]
            assert of.setdefault(slug, number) == number


@pytest.mark.parametrize("in_list", [False, True], ids=["queryset", "list"])
def test_old_classes_page_by_object(few_on_a_page, in_list):
    """A contrib class in several languages splits its items, not their versions."""
    from django.contrib.sitemaps import Sitemap

    from django_sitemapkit.sections import adapt_contrib

    class Old(Sitemap):
        i18n = alternates = True

        def items(self):
            found = Place.objects.order_by("pk")
            return list(found) if in_list else found

        def location(self, item):
            return f"/{active()}/places/{item.slug}/"

    for n in range(5):
        place(f"p{n}")
    found = pages(reader_of(adapt_contrib(Old, "things")(SITE)))
    assert [len(some) for some in found.values()] == [6, 6, 3]
    assert len({url for some in found.values() for url in some}) == 15


def test_a_list_pages_by_item(few_on_a_page):
    """Each item is on one page in all its languages."""
    items = [f"/p{n}/" for n in range(5)]
    section = declare(
        StaticSection, items=items, location=lambda self, item: f"/{active()}{item}", **IN_ALL
    )
    assert [len(some) for some in pages(section).values()] == [6, 6, 3]


def test_a_row_with_more_versions_than_a_page_has_room_for(settings):
    """What is too much is refused by name, and does not stop the page."""
    settings.SITEMAPKIT_MAX_URLS = 2
    place("a")
    rendering = PageRendering(places(alternates=False), EVERYTHING, SITE.scope())
    assert b"".join(rendering).count(b"<loc>") == 2
    assert rendering.problems.counts == {"too-many-urls": 1}


def test_what_links_to_each_other_is_on_one_page_or_on_none(settings):
    """No version is listed without the others that it links to; what comes behind is listed."""
    settings.SITEMAPKIT_MAX_URLS = 2
    place("a")
    place("b", "en", "fr")
    options = {"object_languages": "translations__language_code"}
    PlaceTranslation.objects.bulk_create(
        PlaceTranslation(place=Place.objects.first(), language_code=code, slug="a")
        for code in ("en", "es", "fr")
    )
    rendering = PageRendering(places(**options), EVERYTHING, SITE.scope())
    found = links(b"".join(rendering))
    assert list(found) == [f"{SITE.origin}/en/places/b/", f"{SITE.origin}/fr/places/b/"]
    assert rendering.problems.counts == {"too-many-urls": 3}


def test_no_page_is_cut_within_an_object(settings):
    """Where bytes or URLs end a page by position, the last object on it is whole."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    items = [f"{n}" for n in range(40)]
    section = declare(
        StaticSection, items=items, i18n=True, alternates=True, location=located_by_language
    )
    document = b"".join(PageRendering(section, KeyRange(0, 40), SITE.scope()))
    found = links(document)
    assert len(document) <= 4096
    assert 0 < len(found) < 120
    assert {url for some in found.values() for _, url in some} == set(found)


def located_by_language(self, item):
    """Return a path in the active language."""
    return f"/{active()}/{item}/"


@pytest.mark.slow
def test_pages_are_closed_by_their_bytes(client, settings, sections):
    """A lowered limit of bytes cuts between objects, until all of them are listed."""
    settings.SITEMAPKIT_MAX_BYTES = 12_000
    sections.add(type(places().options))
    with override_settings(LANGUAGES=TWENTY[:6]):
        for n in range(20):
            place(f"p{n}")
        section = settle(client)
        sizes, every = [], []
        for page in pages_with_rows(section):
            document = b"".join(PageRendering(section, page.keys, SITE.scope()))
            sizes.append(len(document))
            every += links(document)
    assert max(sizes) <= 12_000 < sum(sizes) / 4
    assert len(every) == len(set(every)) == 120


@pytest.mark.thorough
def test_a_full_page_of_twenty_languages_stays_below_the_limit(sections, client):
    """50,000 URLs with 20 alternates each: never more than 52,428,800 bytes, and all are listed."""
    Place.objects.bulk_create(Place(slug=f"{n:020}") for n in range(2_500))
    sections.add(type(places().options))
    with override_settings(LANGUAGES=TWENTY):
        section = settle_sizes(client)
        total = size = 0
        for page in pages_with_rows(section):
            rendering = PageRendering(section, page.keys, SITE.scope())
            for _ in rendering:
                pass
            assert rendering.overflow is None
            assert rendering.writer.bytes <= 52_428_800
            assert 0 < rendering.urls <= 50_000
            total += rendering.urls
            size += rendering.writer.bytes
    assert total == 50_000
    assert size > 2 * 52_428_800  # So it is bytes that the pages are full of.


def settle_sizes(client):
    """Read all pages, each as far as it goes, until none of them is split any more."""
    for _ in range(6):
        before = [page.number for page in pages_with_rows(section_of(SITE, "things"))]
        for number in before:
            size = sum(map(len, client.get(f"/sitemap-things-{number}.xml").streaming_content))
            assert size <= 52_428_800
        if [page.number for page in pages_with_rows(section_of(SITE, "things"))] == before:
            return section_of(SITE, "things")
    raise AssertionError("pages are split for ever")


# What else a change of them changes


def test_a_declaration_tells_of_its_languages(settings):
    """Whatever gives other links gives another text, and nothing else does."""
    hosts = {"en": SITE.base, "fr": SITE.base, "es": "https://example.es"}
    base = places(location=COLUMNS)
    assert base.declaration_text() == places(location=COLUMNS).declaration_text()
    others = {
        "languages": places(location=COLUMNS, languages=["en", "es"]),
        "order": places(location=COLUMNS, languages=["es", "en", "fr"]),
        "alternates": places(location=COLUMNS, alternates=False),
        "x_default": places(location=COLUMNS, x_default="en"),
        "hosts": places(location=COLUMNS, language_hosts=hosts),
        "relation": places(location=COLUMNS, object_languages="translations__language_code"),
        "rows": places(location=ROWS),
    }  # fmt: skip
    texts = {name: section.declaration_text() for name, section in others.items()}
    true = places(location=COLUMNS, x_default=True).declaration_text()
    settings.LANGUAGE_CODE = "fr"
    assert places(location=COLUMNS, x_default=True).declaration_text() != true
    assert len({base.declaration_text(), true, *texts.values()}) == len(texts) + 2


def test_a_plain_section_has_no_languages():
    """Its URLs are in LANGUAGE_CODE, and none of the options counts."""
    place("a", "en")
    with override_settings(LANGUAGE_CODE="en"):
        section = places(location=COLUMNS, i18n=False)
        assert shown(section) == {"/en/places/a-en/": []}
    assert section.languages is None
    assert section.urls_per_row == 1


def test_the_default_language_is_the_one_that_its_columns_are_in():
    """``LANGUAGE_CODE = "en-us"``, as Django has it, is "en" in ``LANGUAGES`` and in columns."""
    place("a", "en")
    assert shown(places(location=COLUMNS, i18n=False)) == {"/en-us/places/a-en/": []}


def test_hosts_name_the_sites_of_the_settings(settings):
    """A host that is one of them comes with its URLconf; any other is that host alone."""
    settings.SITEMAPKIT_SITES = {
        "es": {"BASE_URL": "https://example.es", "URLCONF": "tests.urls_spanish"}
    }
    hosts = {"en": "https://www.example.com", "es": "https://example.es", "fr": "https://x.example"}
    section_languages = places(language_hosts=hosts).languages
    assert section_languages.listed == ["en"]
    assert section_languages.sites["es"].urlconf == "tests.urls_spanish"
    assert section_languages.sites["fr"] == SitemapSite.at(
        "https://x.example", key="https://x.example"
    )


@pytest.mark.parametrize("location", ["columns", "a method"])
def test_each_site_asks_for_and_reports_what_it_lists_itself(settings, location):
    """Of versions on other hosts it needs to know no more than whether they may be linked to."""
    hosts = {"en": "https://www.example.com", "es": "https://www.example.es"}
    settings.SITEMAPKIT_SITES = {code: {"BASE_URL": url} for code, url in hosts.items()}
    place("a", "en", "es")
    Place.objects.filter(pk=place("refused", "en", "es").pk).update(slug_es="\x0b")
    place("future", "es", cover="../wrong.jpg")
    asked = []

    def is_es():
        return active() == "es"

    def located(self, obj):
        slug = getattr(obj, f"slug_{active()}")
        return f"/{active()}/places/{slug}/" if slug else None

    def lastmod(self, obj):
        return yet_to_come if obj.slug == "future" else None

    def videos(self, obj):
        asked.append(active())
        return Video(
            **dict.fromkeys(("title", "description", "uploader"), "T"),
            **dict.fromkeys(("thumbnail", "content", "uploader_info"), "/about/"),
        )

    def news(self, obj):
        now = timezone.now()
        return News(publication="N", language="es", published=now, title="T") if is_es() else None

    yet_to_come = dt.datetime(2999, 1, 1, tzinfo=dt.UTC)
    in_column = Case(When(slug="future", then=yet_to_come), output_field=DateTimeField())
    options = {
        "columns": {"location": COLUMNS, "lastmod": in_column},
        "a method": {"location": located, "lastmod": lastmod},
    }[location]
    found = {}
    for site in all_sites():
        asked.clear()
        section = places(
            site=site, languages=["en", "es"], language_hosts=hosts,
            images="cover", videos=videos, news=news, **options,
        )  # fmt: skip
        rendering, document = render(section)
        assert document.count(b"<video:uploader info") == rendering.urls
        assert set(asked) == {site.key}
        assert (rendering.pipeline.tags.changes_at is None) == (site.key == "en")
        codes = [[code for code, _ in some] for some in links(document).values()]
        found[site.key] = dict(rendering.problems.counts), codes
    assert found == {
        "en": ({}, [["en", "es"], ["en"]]),
        "es": ({"invalid-url": 2, "future-date": 1}, [["en", "es"], ["es"]]),
    }


def test_keys_of_a_range_are_read_in_all_languages():
    """A page of some rows has all versions of each of them and of no other."""
    made = [place(f"p{n}", "en", "es") for n in range(4)]
    section = places(location=Route("place", slug="slug"), languages=["en", "fr"])
    rendering = PageRendering(section, KeyRange(made[1].pk, made[3].pk), SITE.scope())
    found = links(b"".join(rendering))
    assert [url.partition("/places/")[2] for url in found] == ["p1/", "p1/", "p2/", "p2/"]
    assert rendering.rows == 2
    assert rendering.urls == 4


def test_a_path_is_one_page_in_all_languages():
    """It is listed once, and that is no problem; a URL name beside it is listed in each."""
    section = declare(
        StaticSection, items=["home", "/press/"], i18n=True, languages=["en", "es"], alternates=True
    )
    assert [url for url, _ in shown(section).items()] == ["/en/", "/es/", "/press/"]
    assert problems(section) == {}


class Spoken(Value):
    """An expression that looks for the language when it becomes a statement."""

    def __init__(self):
        super().__init__("0.5", output_field=CharField())

    def as_sql(self, compiler, connection):
        return "%s", [PRIORITIES[get_language()]]


DATES = {"en": "2024-01-01", "es": "2024-06-01", "fr": "2024-12-01"}
PRIORITIES = {"en-us": "0.1", "en": "0.9", "es": "0.5", "fr": "0.3"}
FREQUENCIES = {"en-us": "never", "en": "daily", "es": "weekly", "fr": "yearly"}
BY_METHOD = {
    "lastmod": lambda self, obj: DATES[get_language()],
    "priority": lambda self, obj: PRIORITIES[get_language()],
    "changefreq": lambda self, obj: FREQUENCIES[get_language()],
}
BY_LANGUAGE = {
    "methods": BY_METHOD,
    "expressions made in a property": {
        "lastmod": property(
            lambda self: Case(
                When(slug="a", then=Value(dt.date.fromisoformat(DATES[get_language()[:2]]))),
                output_field=DateField(),
            )
        ),
        "priority": Spoken(),
        "changefreq": property(lambda self: FREQUENCIES[get_language()]),
    },
    "columns by name": {
        "lastmod": property(lambda self: f"at_{get_language()[:2]}"),
        "priority": Coalesce(Spoken(), Value("0.5")),
        "changefreq": property(lambda self: f(FREQUENCIES[get_language()])),
    },
}


def f(frequency):
    """Return a text as a column of the database."""
    return Value(frequency, output_field=CharField())


def tags_of(section):
    """Return the tags of each URL of a section by its language."""
    document = render(section)[1].decode()
    found = re.findall(
        r"<loc>[^<]*/(en|es|fr)/[^<]*</loc><lastmod>([^<]*)</lastmod>"
        r"<changefreq>([^<]*)</changefreq><priority>([^<]*)</priority>",
        document,
    )
    return {code: (date[:10], freq, priority) for code, date, freq, priority in found}


EXPECTED = {code: (DATES[code], FREQUENCIES[code], PRIORITIES[code]) for code in DATES}


@pytest.mark.parametrize("by_object", [False, True], ids=["columns", "objects"])
@pytest.mark.parametrize("options", BY_LANGUAGE.values(), ids=BY_LANGUAGE)
def test_tags_are_those_of_each_language(options, by_object):
    """Methods are asked, and columns read, in the language of each version."""
    place("a")
    dated = {f"at_{code}": Value(dt.date.fromisoformat(DATES[code])) for code in DATES}
    rows = Place.objects.annotate(**dated)
    more = {"images": lambda self, obj: None} if by_object else {}
    assert tags_of(places(queryset=rows, **options, **more)) == EXPECTED


def test_tags_of_a_list_and_of_contribs_classes_are_those_of_each_language():
    """Methods and properties; contrib's own view asks in one language for all."""
    assert tags_of(declare(StaticSection, items=["home"], **BY_METHOD, **IN_ALL)) == EXPECTED
    place("a")
    body = {
        "items": lambda self: Place.objects.all(),
        "location": lambda self, obj: f"/{get_language()}/{obj.slug}/",
        "changefreq": property(lambda self: FREQUENCIES[get_language()]),
    }
    old = type("Old", (Sitemap,), {**BY_METHOD, **IN_ALL, **body})
    assert tags_of(reader_of(adapt_contrib(old)(SITE))) == EXPECTED


def test_a_change_in_one_language_renders_the_page_again():
    """What the database shows in one language does not stand for the others."""
    same = places(lastmod=Value(dt.date(2024, 1, 1), output_field=DateField()))
    assert same.fingerprints([EVERYTHING])[0][1]
    changes = places(lastmod=BY_LANGUAGE["expressions made in a property"]["lastmod"])
    assert changes.fingerprints([EVERYTHING]) == [(0, "")]
    assert "lastmod" in why_not_as_text(changes)
    assert why_not_as_text(places(lastmod=Coalesce("seen_at", "seen_at"))) == ""
