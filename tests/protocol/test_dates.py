"""W3C datetimes: every written one is valid for every reader, every broken one is refused."""

# ruff: noqa: DTZ001  naive datetimes are among what goes in

import datetime as dt
import enum
import re
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import format_lastmod, parse_w3c

MADRID = ZoneInfo("Europe/Madrid")
PLAIN = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2}))?"
)
"""The two forms that are valid everywhere."""


def hours(number):
    """Return the zone so many hours east of Greenwich."""
    return dt.timezone(dt.timedelta(hours=number))


class Stamp(str, enum.Enum):  # noqa: UP042  the kind whose str() is not its value
    FOUNDED = "2005-01-01"


class Nowhere(dt.tzinfo):
    """A zone that does not know its offset, which Python allows."""

    def utcoffset(self, _when):
        return None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.date(2005, 1, 1), "2005-01-01"),
        (dt.date(999, 1, 1), "0999-01-01"),
        (dt.date(1, 1, 1), "0001-01-01"),
        (dt.datetime(2004, 12, 23, 18, 0, 15, tzinfo=dt.UTC), "2004-12-23T18:00:15+00:00"),
        (dt.datetime(2004, 12, 23, 18, 0, 15, 999_999, dt.UTC), "2004-12-23T18:00:15+00:00"),
        (dt.datetime(2004, 12, 23, 18, tzinfo=hours(-5.5)), "2004-12-23T18:00:00-05:30"),
        (dt.datetime(2004, 12, 23, 18, 0, 0, 1, hours(-5)), "2004-12-23T18:00:00-05:00"),
        (dt.datetime(999, 1, 1, tzinfo=dt.UTC), "0999-01-01T00:00:00+00:00"),
        ("2005-01-01", "2005-01-01"),
        ("2004-12-23T18:00:15Z", "2004-12-23T18:00:15Z"),
        ("2004-12-23T18:00:15+05:45", "2004-12-23T18:00:15+05:45"),
        (Stamp.FOUNDED, "2005-01-01"),
        (None, None),
    ],
)
def test_a_lastmod_is_written_as_w3c_asks(value, text):
    """Dates stay dates, moments have whole seconds and a zone, ready text stays as it is."""
    written = format_lastmod(value)
    assert written == text
    assert f"{written}" == f"{text}"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2004-12-23T18:00Z", "2004-12-23T18:00:00+00:00"),
        ("2004-12-23T18:00-03:00", "2004-12-23T18:00:00-03:00"),
        ("2004-12-23T18:00:15.5Z", "2004-12-23T18:00:15+00:00"),
        ("2004-12-23T18:00:15.1234Z", "2004-12-23T18:00:15+00:00"),
    ],
)
def test_text_that_not_every_reader_takes_is_brought_into_a_form_that_all_take(text, written):
    """sitemap.xsd refuses a year alone and a time without seconds; a reader refuses fractions."""
    assert format_lastmod(text) == written


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        (MADRID, "2004-07-23T18:00:15+02:00"),
        (hours(-3), "2004-07-23T18:00:15-03:00"),
        (dt.UTC, "2004-07-23T18:00:15+00:00"),
    ],
    ids=str,
)
def test_a_naive_datetime_gets_the_zone_of_the_project(zone, text):
    """No time is ever written without its zone."""
    assert format_lastmod(dt.datetime(2004, 7, 23, 18, 0, 15), zone) == text


def test_a_zone_of_its_own_wins_over_that_of_the_project():
    """Only naive datetimes are taken to be in the project's zone."""
    value = dt.datetime(2004, 7, 23, 18, tzinfo=dt.UTC)
    assert format_lastmod(value, MADRID) == "2004-07-23T18:00:00+00:00"


def test_a_naive_datetime_is_in_utc_by_default():
    """UTC is the default of the zone."""
    assert format_lastmod(dt.datetime(2004, 7, 23, 18)) == "2004-07-23T18:00:00+00:00"


def test_local_mean_time_is_written_in_utc():
    """Before 1901 Madrid was 14:44 behind Greenwich: such an offset has no W3C form."""
    value = dt.datetime(1890, 1, 1, 12)
    assert format_lastmod(value, MADRID) == "1890-01-01T12:14:44+00:00"


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(seconds=1))),
        dt.datetime(2004, 7, 23, tzinfo=Nowhere()),
    ],
    ids=["beyond year 9999", "zone without offset"],
)
def test_a_moment_that_no_w3c_datetime_names_is_refused(value):
    """Where UTC does not help either, the row is refused and nothing else breaks."""
    with pytest.raises(InvalidValue, match=r"^Invalid date: .* has no offset ") as caught:
        format_lastmod(value)
    assert caught.value.code == "invalid-date"


BROKEN = [
    "2005-02-30",
    "2005-13-01",
    "2005-00-01",
    "0000-01-01",
    "2004-12-23t18:00:15Z",
    "2004-12-23T18:00:15z",
    "2004-12-23 18:00:15Z",
    "2004-12-23T18:00:15",
    "2004-12-23T18:00",
    "2004-12-23T18Z",
    "2004-12-23T24:00:00Z",
    "2004-12-23T18:60:00Z",
    "2004-12-23T18:00:60Z",
    "2004-12-23T18:00:15.Z",
    "2004-12-23T18:00:15,5Z",
    "2004-12-23T18:00:15+0100",
    "2004-12-23T18:00:15+01",
    "2004-12-23T18:00:15+01:60",
    "2004-12-23T18:00:15+24:00",
    "2004-12-23Z",
    "2004-1-1",
    "04-12-23",
    "20041223",
    "２００５-01-01",
    " 2005-01-01",
    "2005-01-01\n",
    "2005-01-01\x00",
    "23/12/2004",
    "yesterday",
    "",
]


@pytest.mark.parametrize("text", BROKEN, ids=ascii)
def test_broken_text_is_refused(text):
    """Neither the writer nor the reader takes what is no W3C datetime."""
    for function in (format_lastmod, parse_w3c):
        with pytest.raises(InvalidValue, match=r"^Invalid date: ") as caught:
            function(text)
        assert caught.value.code == "invalid-date"
        assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "value", [1_100_000_000, 1.5, True, b"2005-01-01", dt.time(18), []], ids=repr
)
def test_what_is_no_date_is_refused(value):
    """A timestamp or any other object is no lastmod."""
    with pytest.raises(InvalidValue, match=r"^Invalid date: .* is not a date, datetime") as caught:
        format_lastmod(value)
    assert caught.value.code == "invalid-date"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2005", dt.date(2005, 1, 1)),
        ("2005-02", dt.date(2005, 2, 1)),
        ("2005-02-03", dt.date(2005, 2, 3)),
        ("2005-02-03T04:05Z", dt.datetime(2005, 2, 3, 4, 5, tzinfo=dt.UTC)),
        ("2005-02-03T04:05:06Z", dt.datetime(2005, 2, 3, 4, 5, 6, tzinfo=dt.UTC)),
        ("2005-02-03T04:05:06.7Z", dt.datetime(2005, 2, 3, 4, 5, 6, 700_000, dt.UTC)),
        ("2005-02-03T04:05:06.1234567Z", dt.datetime(2005, 2, 3, 4, 5, 6, 123_456, dt.UTC)),
        ("2005-02-03T04:05:06+05:30", dt.datetime(2005, 2, 3, 4, 5, 6, tzinfo=hours(5.5))),
        ("2005-02-03T04:05:06-05:30", dt.datetime(2005, 2, 3, 4, 5, 6, tzinfo=hours(-5.5))),
        ("2005-02-03T04:05:06+14:00", dt.datetime(2005, 2, 3, 4, 5, 6, tzinfo=hours(14))),
    ],
)
def test_the_forms_of_the_note_are_read(text, moment):
    """A date gives a date, a time gives an aware datetime of that very offset."""
    read = parse_w3c(text)
    assert (type(read), read) == (type(moment), moment)
    if isinstance(read, dt.datetime):
        assert read.utcoffset() == moment.utcoffset()


ZONES = st.one_of(
    st.timezones(),
    st.integers(-16 * 60, 16 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes))),
)
MOMENTS = st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29), timezones=st.none() | ZONES)


@pytest.mark.slow
@given(st.dates() | MOMENTS, ZONES)
@example(dt.datetime(1844, 1, 1, tzinfo=ZoneInfo("Pacific/Saipan")), dt.UTC)
def test_what_is_written_is_valid_everywhere_and_reads_as_what_it_was(value, zone):
    """Of any date and any moment the text has one of the two forms, and loses only fractions."""
    text = format_lastmod(value, zone)
    assert PLAIN.fullmatch(text)
    read = parse_w3c(text)
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=zone)
        assert read == aware.astimezone(dt.UTC).replace(microsecond=0)
    else:
        assert read == value


@pytest.mark.slow
@given(st.from_regex(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}(T[0-9.:]{5,14}(Z|[+-][0-9]{2}:[0-9]{2}))?)?)?"))
def test_any_text_is_written_validly_or_refused(text):
    """No text reaches a document in a form that some readers refuse."""
    try:
        written = format_lastmod(text)
    except InvalidValue:
        return
    assert PLAIN.fullmatch(written)
    assert format_lastmod(written) == written


@pytest.mark.parametrize("text", ["2005", "2005-02"])
def test_a_day_is_never_invented(text):
    """A year or a month alone is a W3C datetime, but no lastmod: the day would be made up."""
    assert parse_w3c(text).isoformat().startswith(text)
    with pytest.raises(InvalidValue, match="does not name a day"):
        format_lastmod(text)
