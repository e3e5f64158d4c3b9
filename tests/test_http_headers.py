"""Times in HTTP headers."""

import datetime as dt

import pytest

from django_sitemapkit.http_headers import http_moment, seconds_to_wait


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", dt.datetime(1994, 11, 6, 8, 49, 37, tzinfo=dt.UTC)),
        ("Sun, 06 Nov 1994 08:49:37 -0000", dt.datetime(1994, 11, 6, 8, 49, 37, tzinfo=dt.UTC)),
        ("Sun, 06 Nov 94 08:49:37 +0000", dt.datetime(1994, 11, 6, 8, 49, 37, tzinfo=dt.UTC)),
        ("Mon, 01 Jan 0001 00:00:00 GMT", None),
        ("", None),
        ("yesterday", None),
        ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", None),
    ],
)
def test_dates(text, expected):
    """A date without a zone is in UTC; what is not a date is None."""
    assert http_moment(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("9" * 5_000, 9_999_999_999.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
    ],
)
def test_seconds_to_wait(text, expected):
    """A number or a date; a moment in the past is now."""
    assert seconds_to_wait(text) == expected


def test_a_date_to_come_is_so_many_seconds_away():
    """By the clock of this machine."""
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1_000)
    text = moment.strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert 900 < seconds_to_wait(text) <= 1_000
