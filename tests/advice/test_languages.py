"""What is advised for sections in several languages, or with images: nothing that is wrong."""

import pytest
from django.utils.translation import get_language

from django_sitemapkit.advice.advisor import advise_section
from tests.advice import found, seen
from tests.languages import COLUMNS, ROUTE, ROWS, place, places

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.urls_languages")]


@pytest.fixture(autouse=True)
def rows():
    """Make places in two languages, with a photo each."""
    for n in range(30):
        place(f"p{n}", "en", "es", cover=f"{n}.jpg").photos.create(file="x.jpg")


def address(self, obj):
    """Return the address in the active language, by a column of that language."""
    slug = getattr(obj, f"slug_{get_language()}", None)
    return f"/{get_language()}/places/{slug}/" if slug else None


def pictures(self, obj):
    """Yield a picture."""
    yield obj.cover


@pytest.mark.parametrize("location", [ROUTE, COLUMNS, ROWS], ids=["same", "columns", "rows"])
@pytest.mark.parametrize("images", [None, "cover", "photos__file"])
def test_columns_need_no_advice(location, images):
    """In several languages, with images of any column."""
    options = {"languages": "translations__language_code"} if location is ROUTE else {}
    advice = advise_section(places(location=location, images=images, **options))
    assert seen(advice) == set()


def test_no_route_is_advised_for_an_address_of_each_language(settings):
    """What fits in LANGUAGE_CODE would be wrong in any other."""
    settings.LANGUAGE_CODE = "en"
    advice = advise_section(places(location=address))
    assert found(advice, "location").declare == ""
    assert "each language" in found(advice, "location").message


def test_fields_of_all_languages_are_needed():
    """So are those that a generator asks for, and those that say which languages there are."""
    section = places(
        location=address, images=pictures, object_languages=lambda self, obj: [obj.slug and "en"],
        only=["slug"],
    )  # fmt: skip
    advice = advise_section(section)
    assert found(advice, "only").declare == (
        'only = ["cover", "slug", "slug_en", "slug_es", "slug_fr"]'
    )


@pytest.mark.slow
def test_a_method_for_images_goes_on_reading_objects():
    """A Route in the place of the address does not change that; the fields it needs stay."""
    section = places(
        location=lambda self, obj: f"/en-us/places/{obj.slug}/", images=pictures, i18n=False,
        alternates=False, only=["slug", "cover"],
    )  # fmt: skip
    advice = advise_section(section)
    assert found(advice, "location").declare == 'location = Route("place", slug="slug")'
    assert found(advice, "section").message == "objects are still read, because of methods: images."
    assert found(advice, "only").declare == 'only = ["cover"]'
