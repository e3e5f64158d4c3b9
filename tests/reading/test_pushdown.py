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
from django_sitemapkit.reading import (
    Chunk,
    TextChunk,
    keysets,
    languages,
    obstacle,
    pushdown,
    text_queries,
)
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.reading.pushdown import Pushdown
from django_sitemapkit.reading.rows import QuerySetReader
from django_sitemapkit.reading.text_queries import TextQuery
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import SitemapSite
from tests.factories import EPOCH, SITE, ProductFactory, ShopFactory, declare, products
from tests.reading.urlconfs import translated
from tests.testapp.models import Pass, Photo, Place, Product, Shop, Token, Topic
from tests.urls import view

ROUTE = Route("product", shop="shop__slug", slug="slug")
JOINS_ROWS = connection.vendor == "postgresql"
JOINS = pytest.mark.skipif(not JOINS_ROWS, reason="only PostgreSQL joins rows itself")


def section(**options):
    """Return what reads products by a route."""
    return declare(**{"queryset": Product.objects.all(), "location": ROUTE} | options)


def texts(reader, latest=lambda newest: "9999", needs_keys=lambda text: False):
    """Return what is read of a section."""
    return list(Pushdown(reader).chunks(EVERYTHING, latest, needs_keys))


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
    found = obstacle(section(**options))
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
    found = obstacle(section(location=Route(name, a="slug"), site=site))
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
    found = obstacle(declare(**place | options))
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
    found = obstacle(section(location=Route(name, a="slug"), site=site, i18n=True, **options))
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
    assert (chunk.lastmods, chunk.odd) == ((when, when, 2), None)
    assert chunk.newest_key()() == first.pk


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
def test_odd_rows_are_read_one_by_one(monkeypatch):
    """Up to a tenth of them; more make a chunk that is read by the row path."""
    stored = products(20)
    Product.objects.filter(pk=stored[7].pk).update(slug="a/b")
    (chunk,) = texts(section())
    assert list(chunk.odd.keys) == [stored[7].pk]
    assert chunk.text.split(b"\n")[7] == b"\x0e"
    Product.objects.filter(pk__in=[one.pk for one in stored[:3]]).update(note="x y")
    (chunk,) = texts(section(location=Route("product", "note", "slug")))
    assert isinstance(chunk, Chunk)
    assert len(chunk.keys) == 20


@JOINS
@pytest.mark.django_db
def test_odd_rows_are_those_of_the_text_though_others_change(monkeypatch):
    """Which row is odd and where it stands come from one statement."""
    stored = products(20)
    Product.objects.filter(pk=stored[7].pk).update(slug="a/b")
    again = TextQuery.again

    def changed(self, first, last):
        Product.objects.filter(pk=stored[2].pk).delete()
        return again(self, first, last)

    monkeypatch.setattr(TextQuery, "again", changed)
    (chunk,) = texts(section())
    assert list(chunk.odd.keys) == [stored[7].pk]
    assert (chunk.rows, chunk.text.split(b"\n")[6]) == (19, b"\x0e")
    Product.objects.filter(slug="a/b").update(slug="a//b")
    monkeypatch.setattr(TextQuery, "again", lambda *_: Product.objects.all().delete() and again(*_))
    assert texts(section()) == []


@pytest.mark.django_db
def test_rows_that_set_a_value_themselves_are_odd(monkeypatch):
    """The others are lines, blank or null."""
    monkeypatch.setattr(pushdown, "MAX_ODD", 0.5)
    for code, values in {
        "a": {},
        "b": {"sitemap_changefreq": "daily"},
        "c": {"sitemap_priority": 0},
        "d": {},
    }.items():
        Topic.objects.create(code=code, **values)
    reader = section(queryset=Topic.objects.all(), location=Route("product", "pk", "pk"))
    (chunk,) = texts(reader)
    assert chunk.text == b"a\x01a\x02\n\x0e\n\x0e\nd\x01d\x02\n"
    assert list(chunk.odd.keys) == ["b", "c"]


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
def test_keys_are_read_again_where_they_are_needed(django_assert_num_queries):
    """And from then on read with the text."""
    stored = products(20)
    with django_assert_num_queries(1):
        (chunk,) = texts(section())
    assert not chunk.keys
    with django_assert_num_queries(2):
        (chunk,) = texts(section(), needs_keys=lambda text: True)
    assert list(chunk.keys) == [one.pk for one in stored]


@JOINS
@pytest.mark.django_db
def test_more_rows_than_one_statement_reads_are_for_the_row_path(monkeypatch):
    """They came between the first and the last key meanwhile."""
    stored = products(4)
    Product.objects.filter(pk=stored[1].pk).update(slug="a/b")
    monkeypatch.setattr(pushdown, "MAX_ODD", 1)
    monkeypatch.setattr(text_queries, "ROWS_PER_TEXT", 2)
    (chunk,) = texts(section())
    assert isinstance(chunk, Chunk)
    assert len(chunk.keys) == 4


@JOINS
@pytest.mark.django_db
def test_rows_that_come_meanwhile_cut_off_no_others(monkeypatch):
    """The row path reads to the last key of the text, not to that of the second read."""
    shop = ShopFactory()
    keyed = [ProductFactory.build(pk=100 * number, shop=shop) for number in range(1, 31)]
    keyed[3].slug = "a/b"
    Product.objects.bulk_create(keyed)
    later = [ProductFactory.build(pk=101 + number, shop=shop) for number in range(25)]
    again = TextQuery.again

    def more(self, first, last):
        Product.objects.bulk_create(later)
        return again(self, first, last)

    monkeypatch.setattr(TextQuery, "again", more)
    monkeypatch.setattr(text_queries, "FIRST_CHUNK", 10)
    monkeypatch.setattr(text_queries, "ROWS_PER_TEXT", 10)
    by_row, *others = texts(section())
    keys = [one.pk for one in (*keyed[:1], *later, *keyed[1:10])]
    assert list(by_row.keys) == keys
    assert [chunk.rows for chunk in others] == [10, 10]


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
    assert rendering.lastmods.dated == 14
    assert rendering.changes_at is not None


@pytest.mark.django_db
def test_the_key_of_the_newest_lastmod_is_asked_for_only_if_wanted(django_assert_num_queries):
    """A live page does not want it."""
    stored = products(3, updated_at=EPOCH)
    rendering = PageRendering(section(lastmod="updated_at"), EVERYTHING, SITE.scope())
    with django_assert_num_queries(1):
        b"".join(rendering)
    with django_assert_num_queries(1 if JOINS_ROWS else 0):
        assert rendering.lastmods.newest_key == stored[0].pk


@JOINS
@pytest.mark.django_db
def test_an_odd_row_that_is_gone_by_now_is_not_counted(monkeypatch):
    """A page keeps the fingerprint of its rows only if it has rendered as many."""
    stored = products(20)
    Product.objects.filter(pk__in=[stored[3].pk, stored[7].pk]).update(note="a&b")
    rows_where = QuerySetReader.rows_where

    def without_one(self, **lookups):
        Product.objects.filter(pk=stored[7].pk).delete()
        return rows_where(self, **lookups)

    monkeypatch.setattr(QuerySetReader, "rows_where", without_one)
    location = Route("product", "shop__slug", Concat("slug", "note"))
    rendering = PageRendering(section(location=location), EVERYTHING, SITE.scope())
    assert rendering.add_digest()
    assert b"".join(rendering).count(b"<url>") == 19
    assert (rendering.rows, rendering.urls) == (19, 19)
    assert rendering.digest[0] == 20


def edit_before(monkeypatch, kind, name, row):
    """Change a row just before a method is called."""
    method = getattr(kind, name)

    def edited(*arguments, **named):
        Product.objects.filter(pk=row.pk).update(note="x&y")
        return method(*arguments, **named)

    monkeypatch.setattr(kind, name, edited)


@JOINS
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "name", "is_new"), [(QuerySetReader, "rows_where", False), (TextQuery, "again", True)]
)
def test_the_digest_is_never_newer_than_what_is_rendered(monkeypatch, kind, name, is_new):
    """An odd row that changes before it is read is in the file, and due in the next build.

    A row that changes before its keys are asked for is in the text that is read with them.
    """
    odd = products(20)[3]
    Product.objects.filter(pk=odd.pk).update(note="a&b")
    location = Route("product", "shop__slug", Concat("slug", "note"))
    reader = section(location=location)
    before = reader.fingerprints([EVERYTHING])[0]
    rendering = PageRendering(reader, EVERYTHING, SITE.scope())
    assert rendering.add_digest()
    with monkeypatch.context() as patch:
        edit_before(patch, kind, name, odd)
        assert b"x&amp;y" in b"".join(rendering)
    after = reader.fingerprints([EVERYTHING])[0]
    assert after != before
    assert rendering.digest == (after if is_new else before)


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
    """The declaration, the odd rows and the end: a document of their own."""
    stored = products(20)
    Product.objects.filter(pk=stored[7].pk).update(slug="a&b")
    rendering = PageRendering(section(), EVERYTHING, SITE.scope())
    data, unproven = map(b"".join, zip(*rendering.blocks(), strict=True))
    assert data.count(b"<url>") == 20
    assert unproven.count(b"<url>") == 1
    assert b"a&amp;b" in unproven
    assert unproven.startswith(data[:50])
    assert unproven.endswith(b"</urlset>\n")


def test_lists_have_no_rows_to_read_as_text():
    """They go the way they went."""
    reader = declare(StaticSection, items=["/a"])
    assert b"<loc>" in b"".join(PageRendering(reader, EVERYTHING, SITE.scope()))
