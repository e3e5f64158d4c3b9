"""Keys of all kinds and collations: each row is listed once, whatever order its database has."""

import random
import re
import uuid

import pytest
from django.db import connection, connections, models
from django.db.models import Value
from django.db.models.functions import Concat

from django_sitemapkit import Route
from django_sitemapkit.planning import pages_with_rows, refresh_plan, split_page
from django_sitemapkit.reading import keysets, text_queries
from django_sitemapkit.reading.keysets import KeyRange, Keyset
from django_sitemapkit.rendering import PageRendering
from tests.factories import SITE, WORDS, declare

VENDOR = connection.vendor
COLLATIONS = {
    "sqlite": {name: name for name in ("BINARY", "NOCASE", "RTRIM")},
    "mysql": {
        name: f"utf8mb4_{name}"
        for name in ("bin", "nopad_bin", "general_ci", "unicode_ci", "unicode_nopad_ci")
    },
    "postgresql": {
        "C": "C", "und": "und-x-icu", "numeric": "sitemapkit_numeric", "shifted": "sitemapkit_alt",
        "nondeterministic": "sitemapkit_loose",
    },
}[VENDOR]  # fmt: skip
CREATED = {
    "sitemapkit_numeric": "locale = 'en-u-kn-true'",
    "sitemapkit_alt": "locale = 'en-u-ka-shifted'",
    "sitemapkit_loose": "locale = 'und-u-ks-level1', deterministic = false",
}
TEXTS = [*WORDS, "a10", "a9", "A11", "a-9", "1", "01", "0x", "\U0001f600", "a'b", "%s", "x\\y", "é"]


def keyed(name, **fields):
    """Return a model of its own with a key, a slug for its URL, and columns of other kinds."""
    meta = type("Meta", (), {"app_label": "keyed"})
    columns = {
        "slug": models.SlugField(unique=True),
        "note": models.CharField(max_length=20),
        "rank": models.IntegerField(default=0),
        "at": models.DateTimeField(null=True),
        "day": models.DateField(null=True),
        "parent": models.ForeignKey("self", models.CASCADE, null=True, related_name="+"),
        "Meta": meta,
        "__module__": __name__,
    }
    return type(f"Keyed{name}", (models.Model,), fields | columns)


def text(name):
    """Return a unique text in a collation."""
    return models.CharField(max_length=60, unique=True, db_collation=COLLATIONS[name])


MODELS = {
    name: keyed(f"text{n}", key=text(name), id=models.BigAutoField(primary_key=True))
    for n, name in enumerate(COLLATIONS)
}
MODELS["uuid"] = keyed("uuid", key=models.UUIDField(primary_key=True))
MODELS["integer"] = keyed("integer", key=models.IntegerField(primary_key=True))
DECIMAL = models.DecimalField(unique=True, max_digits=9, decimal_places=2)
MODELS["decimal"] = keyed("decimal", key=DECIMAL)
RANDOM = random.Random(7)
VALUES = {
    "uuid": [uuid.UUID(int=RANDOM.getrandbits(128), version=4) for _ in range(40)],
    "integer": [n * 7 % 41 - 20 for n in range(40)],
    "decimal": [n * 7 % 41 - 20 for n in range(40)],
}
NUMERIC = "numeric"
"""Another database of PostgreSQL, in which texts sort by the numbers in them."""
DATABASES = ["default", NUMERIC] if VENDOR == "postgresql" else ["default"]


def create(alias):
    """Create the tables in a database, and the collations of PostgreSQL."""
    with connections[alias].cursor() as cursor:
        for name, options in CREATED.items() if VENDOR == "postgresql" else ():
            cursor.execute(f"CREATE COLLATION {name} (provider = icu, {options})")
    with connections[alias].schema_editor() as editor:
        for model in MODELS.values():
            editor.create_model(model)


@pytest.fixture(scope="module", autouse=True)
def tables(django_db_setup, django_db_blocker):
    """Give a table for each key, on PostgreSQL also in a database that sorts by numbers."""
    with django_db_blocker.unblock():
        if len(DATABASES) > 1:
            name = f"{connection.settings_dict['NAME']}_numeric"
            connections.databases[NUMERIC] = connection.settings_dict | {"NAME": name}
            with connection.cursor() as cursor:
                cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')
                cursor.execute(
                    f"CREATE DATABASE \"{name}\" LOCALE_PROVIDER icu ICU_LOCALE 'en-u-kn-true'"
                    " ENCODING 'UTF8' TEMPLATE template0"
                )
        for alias in DATABASES:
            create(alias)
        yield
        with connection.schema_editor() as editor:
            for model in MODELS.values():
                editor.delete_model(model)
        with connection.cursor() as cursor:
            for collation in CREATED if VENDOR == "postgresql" else ():
                cursor.execute(f"DROP COLLATION {collation}")
            if len(DATABASES) > 1:
                connections[NUMERIC].close()
                cursor.execute(f'DROP DATABASE "{name}"')
                del connections[NUMERIC], connections.databases[NUMERIC]


@pytest.fixture(params=[f"{alias} {kind}" for alias in DATABASES for kind in MODELS])
def rows(request, monkeypatch):
    """Give the rows of a kind of key, some of whose values the database takes to be equal."""
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 3)
    monkeypatch.setattr(keysets, "CHUNK", 4)
    monkeypatch.setattr(text_queries, "FIRST_CHUNK", 3)
    monkeypatch.setattr(text_queries, "ROWS_PER_TEXT", 5)
    alias, _, kind = request.param.partition(" ")
    queryset = MODELS[kind].objects.using(alias)
    RANDOM.shuffle(values := list(VALUES.get(kind, TEXTS)))
    for n, value in enumerate(values):
        if kind in VALUES or not queryset.filter(key=value).exists():
            queryset.create(key=value, slug=f"s{n}")
    return queryset


pytestmark = pytest.mark.django_db(databases=DATABASES)


LOCATIONS = {
    "text": Route("product", shop="slug", slug="slug"),
    "tuples": Concat(Value("/"), "slug", Value("/"), output_field=models.TextField()),
}


def section_of(rows, way="text"):
    """Return a section of rows by their key, read in some way."""
    return declare(queryset=rows.all(), location=LOCATIONS[way], key="key", limit=7)


def listed(section):
    """Return the slugs of all URLs of all pages, sorted."""
    documents = [
        b"".join(PageRendering(section, page.keys, SITE.scope()))
        for page in pages_with_rows(section)
    ]
    urls = re.findall(r"<loc>.*/(.*)/</loc>", b"".join(documents).decode())
    return sorted(urls)


@pytest.mark.slow
@pytest.mark.parametrize("way", LOCATIONS)
def test_each_row_is_listed_once(rows, way):
    """As planned, after many rows have come, and after most have gone."""
    section, stored = section_of(rows, way), list(rows.all())
    rows.filter(pk__in=[row.pk for row in stored[::2]]).delete()
    assert listed(section) == sorted(rows.values_list("slug", flat=True))
    for row in stored[::2]:
        row.save(force_insert=True, using=rows.db)
    assert refresh_plan(section).added
    assert listed(section) == sorted(row.slug for row in stored)
    assert not refresh_plan(section).replanned
    rows.filter(pk__in=[row.pk for row in stored[3:]]).delete()
    assert refresh_plan(section).retired
    assert listed(section) == sorted(rows.values_list("slug", flat=True))


def test_bounds_are_compared_as_the_rows_are(rows):
    """Which page has a key, and where a page may be split, follows the same order."""
    section = section_of(rows)
    keyset, pages = section.keyset, pages_with_rows(section)
    ranges = [page.keys for page in pages]
    assert keyset.are_increasing([keys.lower for keys in ranges[1:]])
    assert [keyset.decode(keyset.encode(keys.lower)) for keys in ranges] == [
        keys.lower for keys in ranges
    ]
    for place, keys in enumerate(ranges):
        rows_of = list(keyset.within(keys))
        for row in (rows_of[0], rows_of[-1]):
            assert keyset.index_of_range(row.key, ranges) == place
            assert [keyset.covers(one, row.key) for one in ranges] == [
                one == keys for one in ranges
            ]
    assert split_page(section, pages[1], pages[1].keys.lower) is None


@pytest.mark.parametrize("alias", DATABASES)
@pytest.mark.parametrize("name", COLLATIONS)
def test_a_key_that_is_equal_to_a_bound_has_the_page_of_that_bound(name, alias):
    """A row whose key is written in another way since the pages were planned."""
    rows = MODELS[name].objects.using(alias)
    for key in ("a", "b", "c", "d"):
        rows.create(key=key, slug=key)
    ranges, keyset = [KeyRange(None, "b"), KeyRange("b", "c"), KeyRange("c")], Keyset(rows, "key")
    for key in ("B", "b ", "B "):
        rows.filter(slug="b").update(key=key)
        (place,) = [
            place for place, keys in enumerate(ranges) if keyset.within(keys).filter(slug="b")
        ]
        assert keyset.index_of_range(key, ranges) == place, key
        assert [keyset.covers(keys, key) for keys in ranges] == [n == place for n in range(3)], key
