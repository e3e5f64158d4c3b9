"""Translated arguments of a Route: found by what a model looks like."""

from types import SimpleNamespace

import pytest
from django.core.exceptions import FieldError
from django.test.utils import isolate_apps

from django_sitemapkit import Route, Translated
from django_sitemapkit.reading.languages import RelatedTranslation, translation_column
from tests.languages import each_of, place, places, shown
from tests.testapp.models import Photo, Place, Product

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.urls_languages")]


def test_columns_are_found_by_the_name_of_the_language():
    """As django-modeltranslation names them, with an underscore for the hyphen."""
    assert translation_column(Translated("slug"), Place, "en") == "slug_en"
    made = isolated()
    assert translation_column(Translated("slug"), made, "zh-hans") == "slug_zh_hans"


@isolate_apps("tests.testapp")
def test_indonesian_has_a_name_of_its_own():
    """django-modeltranslation calls its column "ind"; one that a project calls "id" is found too.

    A foreign key has a column that ends so, and is no translation.
    """
    from django.db import models

    class Indonesian(models.Model):
        slug = models.ForeignKey(Place, models.CASCADE)
        slug_ind = models.SlugField()
        name_id = models.SlugField()

        class Meta:
            app_label = "testapp"

    assert translation_column(Translated("slug"), Indonesian, "id") == "slug_ind"
    assert translation_column(Translated("name"), Indonesian, "id") == "name_id"


@isolate_apps("tests.testapp")
def isolated():
    """Return a model of another language."""
    from django.db import models

    class Chinese(models.Model):
        slug_zh_hans = models.SlugField()

        class Meta:
            app_label = "testapp"

    return Chinese


def test_columns_of_a_related_row_are_found():
    """Over relations to one object; the last step is the field."""
    assert translation_column(Translated("place__slug"), Photo, "fr") == "place__slug_fr"
    place("a", "en", "fr").photos.create(file="x.jpg")
    section = places(
        queryset=Photo.objects.all(), location=Route("place", slug=Translated("place__slug"))
    )
    assert shown(section) == each_of("en /en/places/a-en/", "fr /fr/places/a-fr/")


def test_rows_behind_a_relation_are_found_where_they_are_named():
    """With the column of the code; both may stand behind a relation to one object."""
    named = Translated("slug", relation="translations", language="language_code")
    assert translation_column(named, Place, "en") == RelatedTranslation(
        "translations__slug", "translations__language_code"
    )
    behind = Translated("place__slug", relation="translations")
    assert translation_column(behind, Photo, "en") == RelatedTranslation(
        "place__translations__slug", "place__translations__language_code"
    )
    place("a", "en", "fr").photos.create(file="x.jpg")
    section = places(queryset=Photo.objects.all(), location=Route("place", slug=behind))
    assert shown(section) == each_of("en /en/places/a-en/", "fr /fr/places/a-fr/")


def test_rows_of_parler_are_found_by_what_it_leaves_on_the_model(monkeypatch):
    """Each of its translation tables knows its fields and the name of its relation."""
    tables = [
        SimpleNamespace(get_translated_fields=lambda: ["title"], rel_name="titles"),
        SimpleNamespace(get_translated_fields=lambda: ["name"], rel_name="translations"),
    ]
    monkeypatch.setattr(Place, "_parler_meta", tables, raising=False)
    assert translation_column(Translated("name"), Place, "en") == RelatedTranslation(
        "translations__name", "translations__language_code"
    )


WRONG = {
    "no translation": (Product, "slug"),
    "a language without a column": (Place, "name"),
    "no relation": (Place, "cover__slug"),
    "a relation to nothing": (Place, "slug__x"),
}


@pytest.mark.parametrize(("model", "path"), WRONG.values(), ids=WRONG)
def test_what_is_not_there_is_an_error(model, path):
    """It says which field of which model was looked for."""
    with pytest.raises(FieldError, match=model.__name__):
        translation_column(Translated(path), model, "en")


def test_a_translated_argument_shows_what_it_is():
    """In the error of a check, for one."""
    assert repr(Translated("slug")) == "Translated('slug')"
    assert repr(Translated("slug", relation="rows")) == "Translated('slug', relation='rows')"


def test_two_translated_arguments_are_both_needed():
    """A version needs every one of them, and both may come from the same rows."""
    place("a", "en", "fr")
    Place.objects.update(slug_fr="a-fr", slug_en="")
    both = {"shop": Translated("slug"), "slug": Translated("slug", relation="translations")}
    assert shown(places(location=Route("product", **both))) == each_of("fr /fr/places/a-fr/a-fr/")


def test_plain_arguments_stand_beside_translated_ones():
    """They are the same in every language."""
    place("a", "en", "es")
    route = Route("product", shop="slug", slug=Translated("slug"))
    assert shown(places(location=route)) == each_of(
        "en /en/places/a/a-en/", "es /es/places/a/a-es/"
    )
