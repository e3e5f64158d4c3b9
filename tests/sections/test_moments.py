"""lastmod as the database writes it gives the text that a datetime gives."""

import datetime as dt

import pytest
from django.db import connection, models
from django.db.models import DateTimeField, F, TextField
from django.db.models.functions import Cast, Coalesce, Now
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit import Route, Section
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.rendering.columns import Checker
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sections.keysets import EVERYTHING
from django_sitemapkit.sections.moments import as_text, w3c_texts
from tests.factories import SITE, ShopFactory
from tests.testapp.models import Article, Product, Reading

MOMENTS = st.datetimes(timezones=st.just(dt.UTC))
WRITTEN = {
    "sqlite": lambda moment: str(moment.replace(tzinfo=None)),
    "postgresql": lambda moment: str(moment).replace("+00:00", "+00"),
    "mysql": lambda moment: moment.replace(tzinfo=None).isoformat(" ", "microseconds"),
}


@pytest.mark.parametrize("vendor", WRITTEN)
@given(moments=st.lists(MOMENTS, min_size=1, max_size=8))
def test_the_text_is_that_of_the_moment(vendor, moments):
    """Whatever the moment, and however a database writes it."""
    texts, refusals = w3c_texts([WRITTEN[vendor](moment) for moment in moments])
    assert texts == [format_lastmod(moment) for moment in moments]
    assert refusals == {}


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
        (Product, Coalesce("updated_at", Now()), True),
        (Product, Cast("note", Special()), False),
        (Product, F("note"), False),
        (Product, F("updated_at") + dt.timedelta(1), True),
        (Product, Cast("note", DateTimeField()), True),
        (Reading, F("pk"), False),
    ],
)
@pytest.mark.django_db
def test_only_plain_dates_and_moments_are_read_as_text(rows, expression, is_text):
    """All else is Python's to read."""
    assert (as_text(expression, rows.objects.all()) is not None) == is_text


@pytest.mark.django_db
def test_moments_in_another_zone_are_pythons(settings):
    """Without time zones, or with a database in local time, the text is not in UTC."""
    rows = Product.objects.all()
    name = connection.timezone_name  # Kept by Django once it was asked for.
    assert as_text(F("updated_at"), rows) is not None
    settings.USE_TZ = False
    assert as_text(F("updated_at"), rows) is None
    settings.USE_TZ = True
    connection.timezone_name = "Europe/Paris"
    try:
        assert as_text(F("updated_at"), rows) is None
    finally:
        connection.timezone_name = name


def by_pk(**options):
    """Return a section over articles."""
    declared = {"queryset": Article.objects.all(), "location": Route("article", pk="pk")}
    return type("Articles", (Section,), declared | options)(SITE)


def listed(section):
    """Return the lastmod texts that are written, and the problems."""
    problems = ProblemLog("articles")
    checker = Checker(section, SITE.scope(), problems)
    texts = [
        text
        for chunk in section.chunks(EVERYTHING)
        for text in checker.entries(chunk).tags["lastmod"]
    ]
    return texts, problems


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
    assert by_pk(lastmod="edited_at").read_columns[1] == {"lastmod"}


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
    assert section.read_columns[1] == {"lastmod"}
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
