"""Builds of several languages, images and news: only what changed is rendered again."""

import pytest
from django.db.models import F

from django_sitemapkit import Element, Section
from django_sitemapkit.builds import differences_of
from django_sitemapkit.builds import preview as preview_of
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.report.due import due_by_section
from tests.builds import BASE, SITE, live, manifest, run, served, states, use_storage, xml
from tests.languages import COLUMNS, IN_ALL, ROUTE, ROWS, place
from tests.testapp.models import Photo, Place, PlaceTranslation

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.urls_languages")]

WAYS = {
    "columns": {"location": COLUMNS},
    "rows": {"location": ROWS},
    "a method": {"location": lambda self, obj: f"/{slug_now(obj)}/" if slug_now(obj) else None},
}


def slug_now(obj):
    """Return the slug in the active language."""
    from django.utils.translation import get_language

    return getattr(obj, f"slug_{get_language()}")


def declare(sections, **options):
    """Declare the section again: two places on a page, in three languages."""
    sections._sections.pop("places", None)
    declared = {"queryset": Place.objects.all(), "limit": 6, **IN_ALL, **options}
    sections.add(type("Places", (Section,), declared))


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with three pages of two places each."""
    for n in range(6):
        made = place(f"p{n}", "en", "es", cover=f"c{n}.jpg")
        made.photos.create(file=f"f{n}.jpg")
    return use_storage(settings, "Memory")


def stored(result):
    """Return the numbers of the pages that were rendered again."""
    return {number for (name, number), state in states(result).items() if name and state != "same"}


def shown():
    """Return how many pages are due, and why."""
    return {item.section: item.pages for item in due_by_section(SITE) if item.pages}


def rows_of(pk):
    """Return the row of a place in all tables."""
    translations = PlaceTranslation.objects.filter(place=pk, language_code="es")
    return Place.objects.filter(pk=pk), translations


@pytest.mark.slow
@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_a_changed_translation_makes_its_page_anew(storage, sections, options):
    """And no other: of columns the database tells before, of rows and methods the rendering."""
    declare(sections, **options)
    run()
    assert states(run()) == dict.fromkeys(states(run()), "same")
    last = Place.objects.last()
    row, translations = rows_of(last.pk)
    row.update(slug_es="new")
    translations.update(slug="new")
    if options["location"] is COLUMNS:
        assert shown() == {"places": {Reason.ROWS: 1}}
    assert stored(run()) == {3}
    assert b"new" in xml(storage, manifest()["places", 3])
    assert stored(run()) == set()


def test_columns_need_no_rendering_where_nothing_changed(storage, sections, monkeypatch):
    """Their digests tell, in any number of languages; a page is not even read."""
    declare(sections, location=COLUMNS, images="cover")
    run()
    assert all(line.fingerprint for (name, _), line in manifest().items() if name)
    monkeypatch.setattr("django_sitemapkit.builds.make.page_builder.make_page", None)
    assert stored(run()) == set()
    assert shown() == {}


IMAGES = {
    "a column": ("cover", lambda: Place.objects.filter(slug="p5").update(cover="new.jpg")),
    "an expression": (F("cover"), lambda: Place.objects.filter(slug="p5").update(cover="new.jpg")),
    "rows": (
        "photos__file", lambda: Photo.objects.filter(place__slug="p5").update(file="new.jpg"),
    ),
    "one more row": (
        "photos__file", lambda: Photo.objects.create(place=Place.objects.last(), file="new.jpg"),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("images", "change"), IMAGES.values(), ids=IMAGES)
def test_a_changed_image_makes_its_page_anew(storage, sections, images, change):
    """Of the row itself, or of a row beside it."""
    declare(sections, location=COLUMNS, images=images)
    run()
    change()
    assert stored(run()) == {3}
    assert b"new.jpg" in xml(storage, manifest()["places", 3])
    assert stored(run()) == set()


@pytest.mark.slow
def test_media_that_move_make_all_pages_anew(storage, sections, settings):
    """No row tells that the storage gives other URLs; the declaration does."""
    declare(sections, location=COLUMNS, images="cover")
    run()
    settings.MEDIA_URL = "https://cdn.example.net/"
    assert shown() == {"places": {Reason.CODE: 3}}
    assert stored(run()) == {1, 2, 3}
    assert b"https://cdn.example.net/c0.jpg" in xml(storage, manifest()["places", 1])


@pytest.mark.slow
@pytest.mark.parametrize("location", [ROUTE, COLUMNS], ids=["same", "columns"])
def test_a_new_language_makes_all_pages_anew(storage, sections, settings, location):
    """Every one of its objects may link to one more version."""
    settings.LANGUAGES = [("en", "English"), ("es", "Spanish")]
    declare(sections, location=location, limit=6)
    run()
    assert stored(run()) == set()
    settings.LANGUAGES = [*settings.LANGUAGES, ("fr", "French")]
    Place.objects.update(slug_fr="x")
    numbers = stored(run())
    assert numbers == {number for name, number in manifest() if name}
    assert all(
        xml(storage, line).count(b'hreflang="fr"') == line.urls
        for (name, _), line in manifest().items() if name
    )  # fmt: skip
    assert stored(run()) == set()


@pytest.mark.slow
def test_links_that_are_switched_on_make_all_pages_anew(storage, sections):
    """So do those that are switched off, and another x-default; another section is left alone."""
    sections.add(type("Plain", (Section,), {"queryset": Place.objects.all(), "location": ROUTE}))
    declare(sections, location=COLUMNS, alternates=False)
    run()
    declare(sections, location=COLUMNS)
    assert shown() == {"places": {Reason.CODE: 3}}
    assert stored(run()) == {1, 2, 3}
    declare(sections, location=COLUMNS, x_default="es")
    assert shown() == {"places": {Reason.CODE: 3}}
    assert b"x-default" in xml(storage, manifest()["places", 1] if stored(run()) else None)
    assert shown() == {}


@pytest.mark.slow
def test_a_difference_may_be_in_an_extension_alone(storage, sections):
    """A link, an image and the second line of a text: the difference is shown."""
    said = {"text": "one\ntwo"}

    def elements(self, obj):
        return Element(name="x:y", text=said["text"] if obj.slug == "p0" else "same")

    declare(sections, location=COLUMNS, images="photos__file", elements=elements,
            namespaces={"x": "https://example.com/x"})  # fmt: skip
    run()
    said["text"] = "one\nthree"
    assert changes(run()) == {"~ /en/places/p0-en/", "~ /es/places/p0-es/"}
    Photo.objects.filter(place__slug="p1").delete()
    assert changes(run()) == {"~ /en/places/p1-en/", "~ /es/places/p1-es/"}
    Place.objects.filter(slug="p2").update(slug_fr="p2-fr")
    assert changes(run()) == {
        "~ /en/places/p2-en/", "~ /es/places/p2-es/", "+ /fr/places/p2-fr/",
    }  # fmt: skip


def changes(result):
    """Return what a build changed, URL by URL."""
    return {str(difference).replace(BASE, "") for difference in differences_of(SITE, result.build)}


@pytest.mark.slow
@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_live_and_published_are_the_same(storage, sections, settings, client, options):
    """Byte by byte, and a dry run finds no change."""
    settings.LANGUAGE_CODE = "en"
    declare(sections, **options, x_default=True, images="photos__file")
    assert in_languages(live(client, settings)) == 12
    settings.SITEMAPKIT_SERVE_FROM = "live"
    pages = [client.get(f"/sitemap-places-{n}.xml").getvalue() for n in (1, 2, 3)]
    run()
    assert [xml(storage, manifest()["places", n]) for n in (1, 2, 3)] == pages
    settings.SITEMAPKIT_SERVE_FROM = "published"
    assert [client.get(f"/sitemap-places-{n}.xml").getvalue() for n in (1, 2, 3)] == pages
    assert in_languages(served(client)) == 12
    assert {file.state for file in preview_of(SITE).files} == {"same"}


def in_languages(pages):
    """Return how many URLs are listed."""
    return sum(map(len, pages.values()))
