"""lastmod as the database writes it gives the text that a datetime gives."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, models
from django.db.models import DateField, DateTimeField, F, Max, Q, TextField
from django.db.models.functions import (
    Cast,
    Coalesce,
    Greatest,
    Now,
    TruncDate,
    TruncDay,
    TruncHour,
    TruncMinute,
    TruncMonth,
    TruncSecond,
)
from django.test import override_settings
from django.utils import timezone
from hypothesis import example, given
from hypothesis import strategies as st

from django_sitemapkit import Route, Section, checks
from django_sitemapkit.protocol.dates import day_of, format_lastmod
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.reading.lastmods import days_of, text_expression, w3c_texts
from django_sitemapkit.rendering.pipeline import ChunkPipeline
from tests.factories import SITE, ShopFactory
from tests.testapp.models import Article, Product, Reading

MOMENTS = st.datetimes(timezones=st.just(dt.UTC))
WRITTEN = {
    "sqlite": lambda moment: str(moment.replace(tzinfo=None)),
    "postgresql": lambda moment: str(moment).replace("+00:00", "+00"),
    "mysql": lambda moment: moment.replace(tzinfo=None).isoformat(" ", "microseconds"),
}


@pytest.mark.slow
@pytest.mark.parametrize("vendor", WRITTEN)
@given(moments=st.lists(MOMENTS, min_size=1, max_size=8))
def test_the_text_is_that_of_the_moment(vendor, moments):
    """Whatever the moment, and however a database writes it."""
    texts, refusals = w3c_texts([WRITTEN[vendor](moment) for moment in moments])
    assert texts == [format_lastmod(moment) for moment in moments]
    assert refusals == {}


@pytest.mark.slow
@given(dates=st.lists(st.none() | st.dates(), min_size=1, max_size=8))
def test_dates_stay_dates(dates):
    """Nothing is made of NULL, and no time is invented."""
    texts, refusals = w3c_texts([date and date.isoformat() for date in dates])
    assert texts == [format_lastmod(date) for date in dates]
    assert refusals == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29 12:30:15", "2024-02-29T12:30:15+00:00"),
        ("2024-02-29 12:30:15.9", "2024-02-29T12:30:15+00:00"),
        ("2024-02-29 12:30:15+02", "2024-02-29T12:30:15+02:00"),
        ("2024-02-29T12:30:15+00:00", "2024-02-29T12:30:15+00:00"),
        ("2024-02-29 12:30", "2024-02-29T12:30:00+00:00"),
        ("0000-00-00 00:00:00", None),
        ("2024-00-10", None),
        (None, None),
    ],
)
def test_what_looks_unlike_the_rest_goes_the_long_way(text, expected):
    """It neither spoils its neighbours nor is it spoilt by them."""
    plain = "2024-02-29 12:30:15.123456"
    texts, refusals = w3c_texts([plain, text, plain])
    assert texts == ["2024-02-29T12:30:15+00:00", expected, "2024-02-29T12:30:15+00:00"]
    assert refusals == {}


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "infinity", "0044-03-15 12:00:00+00 BC", "10000-01-01 00:00:00+00"),
        *("2024-02-30 12:00:00", "2023-02-29", "2024-02-29 24:01:00", "2024-02-29 12:60:00"),
        *("2024-02-29 12:00:60", "2024-02-29 12:00:00.1234567x"),
    ],
)
def test_what_is_no_moment_refuses_its_row_alone(text):
    """The calendar and the clock decide, not the shape alone."""
    texts, refusals = w3c_texts(["2024-02-29 12:30:15", text])
    assert texts == ["2024-02-29T12:30:15+00:00", None]
    assert refusals[1].code == "invalid-date"
    assert repr(text) in str(refusals[1])


class Special(models.DateTimeField):
    """A field that may make anything of its value."""


@pytest.mark.parametrize(
    ("rows", "expression", "is_text"),
    [
        (Product, F("updated_at"), True),
        (Product, F("released_on"), True),
        (Product, Coalesce("updated_at", "updated_at"), True),
        (Product, Greatest("updated_at", Coalesce("updated_at", "updated_at")), True),
        (Product, Max("released_on"), True),
        (Product, Coalesce("updated_at", Now()), False),
        (Product, Coalesce("updated_at", "released_on", output_field=DateTimeField()), False),
        (Product, Coalesce("updated_at", "updated_at", output_field=Special()), False),
        (Product, Max("updated_at", filter=Q(public=True)), False),
        (Product, TruncHour("updated_at"), False),
        (Product, Coalesce(TruncHour("updated_at"), "updated_at"), False),
        (Product, Cast("note", Special()), False),
        (Product, F("note"), False),
        (Product, F("updated_at") + dt.timedelta(1), False),
        (Product, Cast("note", DateTimeField()), False),
        (Reading, F("pk"), False),
    ],
)
@pytest.mark.django_db
def test_only_columns_of_dates_and_moments_are_read_as_text(rows, expression, is_text):
    """And what gives one of them as it is; all else is Python's to read."""
    assert (text_expression(expression, rows.objects.all()) is not None) == is_text


@pytest.mark.django_db
def test_moments_in_another_zone_are_pythons(settings):
    """Without time zones, or with a database in local time, the text is not in UTC."""
    rows = Product.objects.all()
    name = connection.timezone_name  # Kept by Django once it was asked for.
    assert text_expression(F("updated_at"), rows) is not None
    settings.USE_TZ = False
    assert text_expression(F("updated_at"), rows) is None
    settings.USE_TZ = True
    connection.timezone_name = "Europe/Paris"
    try:
        assert text_expression(F("updated_at"), rows) is None
    finally:
        connection.timezone_name = name


def by_pk(**options):
    """Return a section over articles."""
    declared = {"queryset": Article.objects.all(), "location": Route("article", pk="pk")}
    return reader_of(type("Articles", (Section,), declared | options)(SITE))


def listed(section):
    """Return the lastmod texts that are written, and the problems."""
    pipeline = ChunkPipeline(section)
    texts = [
        text
        for chunk in section.chunks(EVERYTHING)
        for text in pipeline.entries(chunk).tags["lastmod"]
    ]
    return texts, pipeline.problems


@pytest.mark.django_db
def test_the_database_and_python_give_the_same():
    """Microseconds or none, before the epoch and behind the turn of the year."""
    moments = [
        dt.datetime(2024, 2, 29, 23, 59, 59, 999999, dt.UTC),
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 500000, dt.UTC),
        dt.datetime(1999, 12, 31, 12, 0, 0, 10, dt.UTC),
    ]
    for moment in moments:
        Article.objects.create(title="x", edited_at=moment)
    text, _ = listed(by_pk(lastmod="edited_at"))
    python, _ = listed(by_pk(lastmod=lambda self, article: article.edited_at))
    assert text == python == [format_lastmod(moment) for moment in moments]
    assert by_pk(lastmod="edited_at").lastmod_text is not None


@pytest.mark.django_db
@pytest.mark.parametrize("lastmod", ["updated_at", "released_on"])
def test_a_future_text_is_left_out_as_a_future_moment_is(lastmod):
    """The row is listed without it, and the problem names the row."""
    now = dt.datetime.now(dt.UTC)
    shop = ShopFactory()
    late, early = (
        Product.objects.create(
            shop=shop,
            slug=str(days),
            **{lastmod: value if lastmod == "updated_at" else value.date()},
        )
        for days, value in ((n, now + dt.timedelta(days=n)) for n in (2, -2))
    )
    section = by_pk(
        queryset=Product.objects.all(),
        location=Route("product", shop="shop__slug", slug="slug"),
        lastmod=lastmod,
    )
    assert next(section.chunks(EVERYTHING)).lastmod_is_text
    texts, problems = listed(section)
    assert texts[0] is None
    assert texts[1].startswith(getattr(early, lastmod).isoformat()[:10])
    (problem,) = problems.examples
    assert (problem.key, problem.code, problem.skipped) == (late.pk, "future-date", False)


@pytest.mark.django_db
def test_objects_are_given_the_text_too():
    """A section that reads objects takes its lastmod from the same expression."""
    article = Article.objects.create(title="x", edited_at=dt.datetime(2024, 2, 29, tzinfo=dt.UTC))
    section = by_pk(lastmod="edited_at", location=lambda self, article: f"/{article.pk}/")
    (chunk,) = section.chunks(EVERYTHING)
    assert chunk.columns["lastmod"] == ["2024-02-29T00:00:00+00:00"]
    assert chunk.locations == [f"/{article.pk}/"]
    assert isinstance(Cast("edited_at", TextField()), Cast)


ZONE = "Asia/Kathmandu"
"""A quarter of an hour off every full one."""

TRUNCATED = {
    "second": TruncSecond("edited_at"),
    "minute": TruncMinute("edited_at"),
    "hour": TruncHour("edited_at"),
    "day": TruncDay("edited_at"),
    "month": TruncMonth("edited_at"),
    "day as a date": TruncDay("edited_at", output_field=DateField()),
    "date": TruncDate("edited_at"),
    "hour in UTC": TruncHour("edited_at", tzinfo=dt.UTC),
    "annotation": F("hour"),
}


def in_a_zone(expression, **options):
    """Return a section over an article whose lastmod is an expression."""
    rows = Article.objects.annotate(hour=TruncHour("edited_at"))
    return by_pk(queryset=rows, lastmod=expression, **options)


@pytest.mark.django_db
@pytest.mark.parametrize("expression", TRUNCATED.values(), ids=TRUNCATED)
def test_a_truncated_lastmod_is_that_of_python(settings, expression):
    """It is cut in TIME_ZONE and names that instant, in the page and by its newest date."""
    settings.TIME_ZONE = ZONE
    article = Article.objects.create(
        title="x", edited_at=dt.datetime(2024, 2, 29, 20, 40, 15, 7, dt.UTC)
    )
    section = in_a_zone(expression, trust_lastmod=True)
    if not connection.features.has_zoneinfo_database:
        pytest.skip("the database has no time zones")
    with SITE.active():
        annotated = section.keyset.queryset.annotate(found=expression)
        expected = annotated.get(pk=article.pk).found
    texts, problems = listed(section)
    assert texts == [format_lastmod(expected)]
    assert not problems
    assert section.count_and_newest_lastmod(EVERYTHING) == (1, expected)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"lastmod": TruncHour("edited_at")}, "lastmod"),
        ({"lastmod": TruncDate("edited_at")}, "lastmod"),
        ({"lastmod": Coalesce(TruncHour("edited_at"), "edited_at")}, "lastmod"),
        ({"queryset": Article.objects.filter(edited_at__date="2024-02-29")}, "queryset"),
        ({"queryset": Article.objects.annotate(at=TruncHour("edited_at"))}, "queryset"),
    ],
)
def test_a_database_without_time_zones_is_named(sections, settings, monkeypatch, options, named):
    """MariaDB without its tables of zones gives NULL for every date that is converted."""
    settings.TIME_ZONE = ZONE
    declared = {"queryset": Article.objects.all(), "location": Route("article", pk="pk")}
    sections.add(type("Articles", (Section,), declared | {"__module__": __name__} | options))
    monkeypatch.setitem(vars(connection.features), "has_zoneinfo_database", False)
    (message,) = checks.declarations.check_declarations()
    assert message.id == "sitemapkit.E118"
    assert named in message.msg
    assert "tzinfo" in message.hint
    settings.TIME_ZONE = "UTC"
    assert checks.declarations.check_declarations() == []
    settings.TIME_ZONE = ZONE
    monkeypatch.setitem(vars(connection.features), "has_zoneinfo_database", True)
    assert checks.declarations.check_declarations() == []


BY_DAY = {
    "column": "edited_at",
    "expression": F("edited_at") + dt.timedelta(0),
    "method": lambda self, article: article.edited_at,
    "text": lambda self, article: article.edited_at.isoformat(),
}
"""The same moment, read in different ways."""

AT_MIDNIGHT = {
    "UTC": ["2024-02-28", "2024-02-29", "2024-02-29", "2024-03-01"],
    "Asia/Kathmandu": ["2024-02-29", "2024-02-29", "2024-03-01", "2024-03-01"],
    "America/Chicago": ["2024-02-28", "2024-02-28", "2024-02-29", "2024-02-29"],
}
"""The days that the moments around two midnights in UTC are on."""


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("lastmod", BY_DAY.values(), ids=BY_DAY)
@pytest.mark.parametrize("zone", AT_MIDNIGHT)
def test_a_day_is_one_of_the_time_zone(settings, zone, lastmod):
    """However the moment is read; the newest one gives the index its day."""
    settings.TIME_ZONE = zone
    midnight = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
    second = dt.timedelta(seconds=1)
    moments = [midnight - second, midnight, midnight + dt.timedelta(hours=20)]
    for moment in [*moments, midnight + dt.timedelta(days=1)]:
        Article.objects.create(title="x", edited_at=moment)
    section = by_pk(lastmod=lastmod, lastmod_precision="day")
    texts, problems = listed(section)
    assert texts == AT_MIDNIGHT[zone]
    assert not problems


AROUND_A_CHANGE = [
    dt.datetime(2006, 10, 29, 2, 30, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)
    for seconds in (-1, 0, 59, 60, 3599, 3660)
]
"""One minute after midnight the clocks went back an hour: a day began twice."""


@pytest.mark.slow
@given(
    moments=st.lists(st.none() | MOMENTS, min_size=1, max_size=8),
    zone=st.sampled_from([*AT_MIDNIGHT, "Africa/Monrovia"]),
)
@example(moments=AROUND_A_CHANGE, zone="America/St_Johns")
def test_days_of_texts_are_those_of_moments(moments, zone):
    """Whatever the moment; at the ends of the calendar a day is that of the moment's own zone."""
    texts = [moment and format_lastmod(moment) for moment in moments]
    with override_settings(TIME_ZONE=zone):
        days = [day_of(moment, ZoneInfo(zone)) for moment in moments]
        assert list(days_of(texts)) == [day and day.isoformat() for day in days]


@pytest.mark.django_db
@pytest.mark.parametrize("lastmod", ["updated_at", lambda self, product: product.updated_at])
def test_by_day_only_tomorrow_is_in_the_future(lastmod):
    """A moment later today is today, which is a date that has come."""
    zone = timezone.get_default_timezone()
    today = dt.datetime.now(zone).replace(hour=23, minute=59, second=59)
    shop = ShopFactory()
    for slug, moment in (("today", today), ("tomorrow", today + dt.timedelta(days=1))):
        Product.objects.create(shop=shop, slug=slug, updated_at=moment)
    route = Route("product", shop="shop__slug", slug="slug")
    products = Product.objects.all()
    section = by_pk(queryset=products, location=route, lastmod=lastmod, lastmod_precision="day")
    texts, problems = listed(section)
    assert texts == [today.date().isoformat(), None]
    assert [problem.code for problem in problems.examples] == ["future-date"]


def test_dates_and_what_is_none_stay_as_they_are():
    """Days are made of moments only; all else is for the formatter to judge."""
    zone = ZoneInfo("America/Chicago")
    others = [None, dt.date(2024, 2, 29), "2024-02-29", "2024-02", "yesterday", 5]
    assert [day_of(value, zone) for value in others] == others
    assert day_of(dt.datetime(2024, 2, 29, 23), zone) == dt.date(2024, 2, 29)  # noqa: DTZ001
    assert day_of("2024-02-29T03:00:00Z", zone) == dt.date(2024, 2, 28)
