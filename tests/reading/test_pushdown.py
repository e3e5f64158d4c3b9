"""Which sections are read as text, and what happens to rows that change meanwhile."""

import datetime as dt

import pytest
from django.conf.urls.i18n import i18n_patterns
from django.db import connection, models
from django.db.models import Count, F, Value
from django.db.models.functions import (
    Coalesce,
    Concat,
    Extract,
    ExtractSecond,
    ExtractYear,
    Lower,
    TruncHour,
)
from django.urls import include, path
from django.utils import timezone

from django_sitemapkit import Route, StaticSection, Translated
from django_sitemapkit.overrides import overrides_of
from django_sitemapkit.reading import (
    Chunk,
    TextChunk,
    keysets,
    languages,
    text_queries,
    why_not_as_text,
)
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.reading.pushdown import Pushdown
from django_sitemapkit.reading.rows import QuerySetReader
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import SitemapSite
from tests.factories import EPOCH, SITE, ProductFactory, declare, products
from tests.overrides.setting import by_object
from tests.reading.urlconfs import translated
from tests.testapp.models import Pass, Photo, Place, Product, Shop, Token, Topic
from tests.urls import view

ROUTE = Route("product", shop="shop__slug", slug="slug")
JOINS_ROWS = connection.vendor == "postgresql"
JOINS = pytest.mark.skipif(not JOINS_ROWS, reason="only PostgreSQL joins rows itself")


def section(**options):
    """Return what reads products by a route."""
    return declare(**{"queryset": Product.objects.all(), "location": ROUTE} | options)


def texts(reader, *, with_keys=False):
    """Return what is read of a section."""
    return list(Pushdown(reader).chunks(EVERYTHING, lambda newest: "9999", with_keys=with_keys))


@pytest.mark.usefixtures("methods_are_called")
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, ""),
        ({"lastmod": "updated_at", "changefreq": "daily", "priority": 0.5}, ""),
        ({"lastmod": "released_on"}, ""),
        ({"location": None}, "location is a method"),
        ({"location": F("slug")}, "location is computed for each row"),
        ({"changefreq": lambda self, obj: "daily"}, "changefreq is a method"),
        ({"priority": F("rank")}, "priority differs from row to row"),
        ({"lastmod": TruncHour("updated_at")}, "lastmod is not a column of dates"),
        ({"images": "note"}, "images are read for each row"),
        ({"images": "note", "news": Value("")}, "images, news are read for each row"),
        ({"i18n": True}, "its URL patterns begin alike in two languages"),
        ({"location": Route("home")}, "its URL pattern has no argument"),
        ({"location": Route("reading", level="pk")}, "more than text and Django's own converters"),
        ({"queryset": Topic.objects.all(), "location": Route("product", "pk", "pk")}, ""),
        ({"lastmod": "updated_at", "lastmod_precision": "day"}, ""),
    ],
)
def test_what_keeps_a_section_from_being_read_as_text(options, why):
    """It has a name, for advice."""
    found = why_not_as_text(section(**options))
    assert why in found
    assert bool(why) == bool(found)


urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("path/<path:a>/", view, name="path"),
    path("name/<str:a>./", view, name="name"),
    path("behind/<path:a>./", view, name="behind a path"),
    path("end/<path:a>.", view, name="at the end"),
    path("slash/.<str:a>/", view, name="behind a slash"),
    path("e<slug:a>/", view, name="within"),
    *i18n_patterns(
        path("<path:a>", view, name="root"),
        path("moved/to/<str:a>/", view, name="moved"),
        path(translated("moved/<slug:a>/", "moved/<slug:b>/"), view, name="moved"),
    ),
]


@pytest.mark.parametrize("name", ["path", "name", "behind a path", "at the end", "behind a slash"])
def test_no_pattern_makes_dot_segments(name):
    """A browser resolves them, and a value may end with the slash that makes one of a dot."""
    site = SitemapSite.at("https://www.example.com", urlconf=__name__)
    found = why_not_as_text(section(location=Route(name, a="slug"), site=site))
    assert ("a dot behind a slash, or behind a path" in found) == (name not in {"path", "name"})


@pytest.mark.django_db
def test_a_section_that_cannot_be_read_as_text_says_why():
    """Nobody asks for it, but a mistake would be hard to find."""
    with pytest.raises(ValueError, match="location is computed for each row"):
        Pushdown(section(location=F("slug")))


def lists_spanish(section, obj):
    """Return the languages of each object."""
    return ["es"]


ELSEWHERE = {"fr": "https://www.example.fr"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, ""),
        ({"alternates": True, "x_default": "/choose/"}, ""),
        ({"language_hosts": ELSEWHERE}, ""),
        ({"language_hosts": ELSEWHERE, "alternates": True}, "another site lists some"),
        ({"object_languages": lists_spanish}, "object_languages differ from row to row"),
        ({"object_languages": "translations__language_code"}, "object_languages differ"),
        ({"location": Route("place", slug=Translated("slug"))}, "its columns differ by language"),
        ({"location": Route("home")}, "its URL pattern has no argument"),
        ({"images": "cover"}, ""),
        ({"images": "photos__file"}, "images are read for each row"),
    ],
)
@pytest.mark.parametrize("urlconf", ["tests.urls_languages", "tests.urls_default_language"])
def test_what_keeps_rows_in_several_languages_from_being_read_as_text(
    settings, urlconf, options, why
):
    """All rows have to have the same languages, and the same values in all of them."""
    settings.ROOT_URLCONF = urlconf
    location = Route("place", slug="slug")
    place = {"queryset": Place.objects.all(), "location": location, "i18n": True}
    found = why_not_as_text(declare(**place | options))
    assert why in found
    assert bool(why) == bool(found)


@pytest.mark.parametrize("path", ["", "/in"])
@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("root", {}, ""),
        ("within", {}, "begin alike"),
        ("within", {"languages": ["es"]}, "begin alike"),
        ("path", {"languages": ["es"]}, ""),
        ("moved", {}, "other converters in another language"),
    ],
)
def test_urls_in_several_languages_are_known_to_differ(settings, path, name, options, why):
    """And it is known which begin with the language of the version for all others."""
    settings.LANGUAGE_CODE = "en"
    site = SitemapSite.at(f"https://www.example.com{path}", urlconf=__name__)
    found = why_not_as_text(
        section(location=Route(name, a="slug"), site=site, i18n=True, **options)
    )
    assert why in found
    assert bool(why) == bool(found)


class Foreign(models.Model):
    """Rows of a view, whose keys nothing keeps unique."""

    slug = models.SlugField()

    class Meta:
        app_label = "testapp"
        managed = False


class Folded(models.CharField):
    """Makes something else of the text."""


class Renaming(models.QuerySet):
    """Reads another column than it is asked for, as translations by column do."""

    def values_list(self, *names, **options):
        """Return tuples with the note for the slug."""
        names = ["note" if name == "slug" else name for name in names]
        return super().values_list(*names, **options)


SLUGS = Route("product", "slug", "slug")
JOINED = [
    ({}, True),
    ({"location": Route("product", "note", "slug")}, True),
    ({"location": Route("product", Lower("slug"), "pk")}, True),
    ({"location": Route("article", "shop_id")}, True),
    ({"location": Route("article", ExtractYear("updated_at"))}, True),
    ({"location": Route("article", Extract("updated_at", "epoch"))}, False),
    ({"location": Route("article", "slug")}, False),
    ({"location": Route("product", "released_on", "slug")}, False),
    ({"location": Route("product", "rank", "slug")}, False),
    ({"location": Route("product", Coalesce("note", Value("a")), "slug")}, False),
    ({"key": "slug"}, True),
    ({"queryset": Token.objects.all(), "location": Route("token", "pk")}, True),
    ({"queryset": Pass.objects.all(), "location": Route("token", "pk")}, True),
    ({"queryset": Foreign.objects.all(), "location": Route("product", "slug", "slug")}, False),
    ({"queryset": Product.objects.filter(shop__slug="a")}, True),
    ({"queryset": Product.objects.distinct()}, False),
    ({"queryset": Renaming(Product)}, False),
    ({"queryset": Product.objects.extra(select={"slug": "note"})}, False),
    ({"queryset": Product.objects.annotate(n=Count("tags"))}, False),
    ({"queryset": Product.objects.filter(tags__name="a")}, False),
    ({"location": Route("product", "tags__name", "slug")}, False),
    ({"queryset": Place.objects.all(), "location": SLUGS, "images": "cover"}, True),
    ({"queryset": Photo.objects.all(), "location": Route("article", "pk"), "images": "file"}, True),
    (
        {
            "queryset": Photo.objects.all(),
            "location": Route("article", "pk"),
            "images": "place__cover",
        },
        True,
    ),
]


@JOINS
@pytest.mark.django_db
@pytest.mark.parametrize(("options", "is_joined"), JOINED)
def test_postgresql_joins_columns_that_it_writes_as_python(options, is_joined):
    """Each row once, in a table with unique keys; else Python joins what it reads."""
    assert (Pushdown(section(**options))._query is not None) == is_joined


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["key", "text", "lastmod", "hash"])
def test_a_projects_own_names_are_not_ours(name):
    """What it annotates is listed, whatever it is called."""
    ProductFactory(slug="Ab")
    named = {f"sitemap_{name}": Lower("slug")}
    rows, route = Product.objects.annotate(**named), Route("product", f"sitemap_{name}", "slug")
    rendering = PageRendering(
        declare(queryset=rows, location=route, lastmod="updated_at"), EVERYTHING, SITE.scope()
    )
    assert b"/ab/Ab/</loc>" in b"".join(rendering)


@JOINS
@pytest.mark.django_db
def test_columns_of_tables_that_others_manage_are_not_joined(monkeypatch):
    """They may be of a type that pads its texts; the key of such a row is in a table of ours."""
    monkeypatch.setattr(Shop._meta, "managed", False)
    assert Pushdown(section())._query is None
    assert Pushdown(section(location=Route("article", "shop_id")))._query is not None


@pytest.mark.django_db
def test_other_databases_hand_over_tuples():
    """Which their clients do as quickly as those databases join texts."""
    assert (Pushdown(section())._query is not None) == JOINS_ROWS


@pytest.mark.django_db
def test_names_of_images_are_texts(monkeypatch):
    """Of anything else, only the field knows what its text is."""
    made = Photo.objects.create(place=Place.objects.create(slug="a"), file="a.jpg")
    options = {"location": Route("article", "pk"), "images": "file"}
    (chunk,) = texts(declare(queryset=Photo.objects.all(), **options))
    assert chunk.text == f"{made.pk}\x01a.jpg\x02\n".encode()
    field = Photo._meta.get_field("file")
    monkeypatch.setattr(type(field), "from_db_value", lambda *some: some[1:2], raising=False)
    monkeypatch.setattr(text_queries, "FileField", Folded)
    (chunk,) = texts(declare(queryset=Photo.objects.all(), **options))
    assert isinstance(chunk, Chunk)


@pytest.mark.django_db
def test_rows_come_as_proven_lines():
    """With their keys, their dates and nothing odd."""
    first, second = products(2, updated_at=EPOCH)
    (chunk,) = texts(section(lastmod="updated_at"))
    assert isinstance(chunk, TextChunk)
    when = "2024-02-29T12:30:15+00:00"
    shop = first.shop.slug
    lines = [f"{shop}\x01{one.slug}\x02{when}\n" for one in (first, second)]
    assert chunk.text.decode() == "".join(lines)
    assert (chunk.rows, chunk.first, chunk.last) == (2, first.pk, second.pk)
    assert chunk.lastmods == (when, when, 2)
    assert chunk.newest_key_finder()() == first.pk


@pytest.mark.django_db
@pytest.mark.parametrize("first", [2, 5])
def test_rows_in_several_languages_come_as_few_lines_as_chunks(monkeypatch, first):
    """What is written for a row grows with the square of its languages."""
    for module in (keysets, text_queries):
        monkeypatch.setattr(module, "FIRST_CHUNK", first)
    monkeypatch.setattr(languages, "LINKS", 27)
    site = SitemapSite.at("https://www.example.com", urlconf=__name__)
    products(8)
    reader = section(location=Route("root", a="slug"), i18n=True, alternates=True, site=site)
    assert [chunk.rows for chunk in texts(reader)] == {2: [2, 3, 3], 5: [3, 2, 3]}[first]
    assert (Pushdown(reader)._query is not None) == (first == 2 and JOINS_ROWS)
    assert Pushdown(reader).paths == ["/en/\x01", "/es/\x01", "/fr/\x01"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("odd", "are_texts"),
    [
        ([6], [True, False, True, True, True]),
        ([6, 13], [True, False, True, False, True]),
        ([2, 6], [False, False, not JOINS_ROWS, not JOINS_ROWS, not JOINS_ROWS]),
    ],
    ids=str,
)
def test_a_chunk_with_an_odd_row_is_for_the_row_path(monkeypatch, odd, are_texts):
    """After two of them, PostgreSQL would read the rest of the page twice."""
    for module in (keysets, text_queries):
        monkeypatch.setattr(module, "FIRST_CHUNK", 4)
    monkeypatch.setattr(keysets, "CHUNK", 4)
    monkeypatch.setattr(text_queries, "ROWS_PER_TEXT", 4)
    stored = products(20)
    for place in odd:
        Product.objects.filter(pk=stored[place].pk).update(slug=f"a/{place}")
    chunks = texts(section(), with_keys=True)
    assert [isinstance(chunk, TextChunk) for chunk in chunks] == are_texts
    assert [chunk.rows for chunk in chunks] == [4] * 5
    assert [key for chunk in chunks for key in chunk.keys] == [one.pk for one in stored]


@pytest.mark.django_db
@pytest.mark.parametrize("values", [{"sitemap_changefreq": "daily"}, {"sitemap_priority": 0}])
def test_a_row_that_sets_a_value_itself_is_odd(values):
    """The others are lines, blank or null."""
    Topic.objects.create(code="a")
    reader = section(queryset=Topic.objects.all(), location=Route("product", "pk", "pk"))
    (chunk,) = texts(reader)
    assert chunk.text == b"a\x01a\x02\n"
    Topic.objects.create(code="b", **values)
    (chunk,) = texts(reader)
    assert isinstance(chunk, Chunk)
    assert list(chunk.keys) == ["a", "b"]


class OwnDefault(models.CharField):
    """Reads what is blank in the database as a value."""


@JOINS
@pytest.mark.django_db
def test_values_that_rows_set_themselves_in_fields_of_a_project_are_read_by_python(monkeypatch):
    """What such a field makes of a blank text, the database does not know."""
    reader = section(queryset=Topic.objects.all(), location=Route("product", "pk", "pk"))
    assert Pushdown(reader)._query is not None
    monkeypatch.setattr(Topic._meta.get_field("sitemap_changefreq"), "__class__", OwnDefault)
    assert Pushdown(reader)._query is None


@pytest.mark.django_db
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_days_are_those_of_the_projects_zone(settings, zone):
    """In lines as in entries."""
    settings.TIME_ZONE = zone
    products(2, updated_at=dt.datetime(2024, 3, 1, 3, tzinfo=dt.UTC))
    (chunk,) = texts(section(lastmod="updated_at", lastmod_precision="day"))
    day = {"UTC": "2024-03-01", "America/New_York": "2024-02-29"}[zone]
    assert chunk.text.count(day.encode() + b"\n") == 2
    assert chunk.lastmods == (day, day, 2)


@JOINS
@pytest.mark.django_db
def test_keys_are_read_with_the_text_if_asked_for(django_assert_num_queries):
    """Else there are none."""
    stored = products(20)
    with django_assert_num_queries(1):
        (chunk,) = texts(section())
    assert not chunk.keys
    with django_assert_num_queries(1):
        (chunk,) = texts(section(), with_keys=True)
    assert list(chunk.keys) == [one.pk for one in stored]


@JOINS
@pytest.mark.django_db
@pytest.mark.parametrize("moment", ["infinity", "10000-01-01", "0044-03-15 BC"])
def test_a_date_that_python_does_not_know_is_for_the_row_path(moment):
    """The oldest and the newest of a text show it."""
    last = products(3, updated_at=EPOCH)[-1]
    with connection.cursor() as cursor:
        change = "UPDATE testapp_product SET updated_at = %s WHERE id = %s"
        cursor.execute(change, [moment, last.pk])
    reader = section(lastmod="updated_at")
    (chunk,) = texts(reader)
    assert isinstance(chunk, Chunk)


@JOINS
@pytest.mark.django_db
def test_the_second_of_a_moment_is_an_integer():
    """PostgreSQL extracts a number with decimals, of which Django makes an integer."""
    products(2, updated_at=EPOCH + dt.timedelta(microseconds=5))
    (chunk,) = texts(section(location=Route("article", ExtractSecond("updated_at"))))
    assert chunk.text == b"15\x01\n" * 2


@pytest.mark.django_db
@pytest.mark.parametrize("lastmod", ["updated_at", "released_on"])
def test_future_rows_are_odd(lastmod):
    """The row path names them."""
    now, today = timezone.now(), timezone.localdate()
    products(15, updated_at=now, released_on=today)
    newest, later = Product.objects.last(), dt.timedelta(days=2)
    Product.objects.filter(pk=newest.pk).update(updated_at=now + later, released_on=today + later)
    rendering = PageRendering(section(lastmod=lastmod), EVERYTHING, SITE.scope())
    assert b"".join(rendering).count(b"<lastmod>") == 14
    assert [problem.key for problem in rendering.problems.examples] == [newest.pk]
    assert rendering.pipeline.lastmods.dated == 14
    assert rendering.pipeline.tags.changes_at is not None


@pytest.mark.django_db
def test_the_key_of_the_newest_lastmod_is_asked_for_only_if_wanted(django_assert_num_queries):
    """A live page does not want it."""
    stored = products(3, updated_at=EPOCH)
    rendering = PageRendering(section(lastmod="updated_at"), EVERYTHING, SITE.scope())
    with django_assert_num_queries(1):
        b"".join(rendering)
    with django_assert_num_queries(1 if JOINS_ROWS else 0):
        assert rendering.pipeline.lastmods.find_key() == stored[0].pk


@JOINS
@pytest.mark.django_db
def test_a_row_that_is_gone_by_now_is_not_counted(monkeypatch):
    """A page keeps the fingerprint of its rows only if it has rendered as many."""
    stored = products(20)
    Product.objects.filter(pk=stored[3].pk).update(note="a&b")
    rows_between = QuerySetReader.rows_between

    def without_one(self, first, last):
        Product.objects.filter(pk=stored[7].pk).delete()
        return rows_between(self, first, last)

    monkeypatch.setattr(QuerySetReader, "rows_between", without_one)
    location = Route("product", "shop__slug", Concat("slug", "note"))
    rendering = PageRendering(section(location=location), EVERYTHING, SITE.scope())
    assert rendering.add_digest()
    assert b"".join(rendering).count(b"<url>") == 19
    assert (rendering.rows, rendering.urls) == (19, 19)
    assert rendering.digest[0] == 20


@JOINS
@pytest.mark.django_db
@pytest.mark.parametrize("name", ["rows_between", "chunks"])
def test_the_digest_is_never_newer_than_what_is_rendered(monkeypatch, name):
    """A row that changes before it is read is in the file, and due in the next build.

    Whether it is odd alone, or one of those behind many odd ones.
    """
    monkeypatch.setattr(text_queries, "FIRST_CHUNK", 4)
    stored = products(20)
    odd = [one.pk for one in (stored[:10] if name == "chunks" else stored[3:4])]
    Product.objects.filter(pk__in=odd).update(note="a&b")
    location = Route("product", "shop__slug", Concat("slug", "note"))
    reader = section(location=location)
    before = reader.fingerprints([EVERYTHING])[0]
    rendering = PageRendering(reader, EVERYTHING, SITE.scope())
    assert rendering.add_digest()
    read = getattr(QuerySetReader, name)

    def edited(self, *arguments):
        Product.objects.filter(pk__in=odd[-1:]).update(note="x&y")
        return read(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(QuerySetReader, name, edited)
        assert b"x&amp;y" in b"".join(rendering)
    assert reader.fingerprints([EVERYTHING])[0] != before
    assert rendering.digest == before


@pytest.mark.django_db
@pytest.mark.parametrize(
    "options",
    [{"trust_lastmod": True, "lastmod": "updated_at"}, {"priority": F("rank")}],
    ids=["trusted", "row path"],
)
def test_what_is_not_digested_as_it_is_read(options):
    """Its fingerprint takes a query of its own."""
    assert not PageRendering(section(**options), EVERYTHING, SITE.scope()).add_digest()


@pytest.mark.django_db
def test_only_what_is_made_value_by_value_is_left_to_parse():
    """The declaration, the rows that editors changed and the end: a document of their own."""
    stored = products(20)
    reader = section()
    by_object(stored[7], priority="0.9")
    reader.overrides = overrides_of(SITE)
    rendering = PageRendering(reader, EVERYTHING, SITE.scope())
    data, unproven = map(b"".join, zip(*rendering.blocks(), strict=True))
    assert data.count(b"<url>") == 20
    assert unproven.count(b"<url>") == 1
    assert b"<priority>0.9</priority>" in unproven
    assert unproven.startswith(data[:50])
    assert unproven.endswith(b"</urlset>\n")


def test_lists_have_no_rows_to_read_as_text():
    """They go the way they went."""
    reader = declare(StaticSection, items=["/a"])
    assert b"<loc>" in b"".join(PageRendering(reader, EVERYTHING, SITE.scope()))
