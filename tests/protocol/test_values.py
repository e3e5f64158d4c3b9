"""Priority and changefreq: what is written, and what is refused by name."""

import enum
from decimal import Decimal
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.limits import CHANGEFREQS
from django_sitemapkit.protocol.values import format_changefreq, format_priority


class Rhythm(str, enum.Enum):  # noqa: UP042  the kind whose str() is not its value
    DAILY = "daily"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.55, "0.55"),
        (1, "1.0"),
        (0, "0.0"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (0.1 + 0.2, "0.3"),
        (1.0, "1.0"),
        (Decimal("0.7"), "0.7"),
        (Decimal("1E-1"), "0.1"),
        (Decimal("-0.0"), "0.0"),
        (0.000001, "0.000001"),
        (1e-9, "0.0"),
        (-1e-9, "0.0"),
        ("0.5", "0.5"),
        ("1", "1.0"),
        ("00.50", "0.5"),
        (None, None),
    ],
)
def test_a_priority_is_written_in_the_fewest_decimals(value, text):
    """A priority has one decimal at least, six at most, and no exponent or sign."""
    assert format_priority(value) == text


@pytest.mark.parametrize(
    "value",
    [
        *(1.01, -0.1, 2, -1, 1.000001, 10**400, -(10**400)),
        *(float("nan"), float("inf"), float("-inf")),
        *(Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1.01")),
        *(True, False, 1j, b"0.5", [], object()),
        *(
            "0,5",
            "",
            " 0.5",
            "0.5 ",
            "5e-1",
            "nan",
            "+0.5",
            "-0",
            ".5",
            "1.",
            "٠.٥",
            "1.01",
            "9" * 400,
        ),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_what_is_no_decimal_from_0_to_1_is_refused(value):
    """A priority outside of the schema's decimal from 0.0 to 1.0 has no text."""
    with pytest.raises(InvalidValue, match=r"^Invalid tag value: priority ") as caught:
        format_priority(value)
    assert caught.value.code == "invalid-tag-value"


@given(st.floats(0, 1) | st.decimals(0, 1) | st.integers(0, 1))
def test_a_written_priority_is_the_number_that_went_in(value):
    """Text is within half a millionth of the value, and reads as what it was written from."""
    text = format_priority(value)
    assert abs(Decimal(text) - Decimal(value)) <= Decimal("0.0000006")
    assert format_priority(text) == text
    assert text.strip("0123456789.") == ""


@pytest.mark.parametrize("word", sorted(CHANGEFREQS))
def test_the_seven_words_are_written_as_they_are(word):
    """Each changefreq of the protocol passes unchanged."""
    assert format_changefreq(word) == word


def test_there_are_seven_words():
    """The protocol's list has always to never, and nothing else."""
    words = {"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}
    assert words == CHANGEFREQS


def test_a_changefreq_of_none_is_left_out():
    """None means no tag."""
    assert format_changefreq(None) is None


def test_a_member_of_an_enum_is_written_as_its_value():
    """``class Rhythm(str, Enum)`` writes "daily", though its str() is "Rhythm.DAILY"."""
    text = format_changefreq(Rhythm.DAILY)
    assert (type(text), f"{text}") == (str, "daily")


@pytest.mark.parametrize(
    "value", ["Daily", "", "fortnightly", "DAILY", " daily", "daily\n", b"daily", 1, True, []]
)
def test_any_other_changefreq_is_refused(value):
    """Changefreq is case-sensitive, and the refusal lists the words."""
    with pytest.raises(InvalidValue, match="is not one of always, hourly, daily, ") as caught:
        format_changefreq(value)
    assert caught.value.code == "invalid-tag-value"


@given(st.text())
def test_no_text_slips_through(text):
    """Whatever text is not refused needs no escaping in XML."""
    for function in (format_priority, format_changefreq):
        try:
            written = function(text)
        except InvalidValue:
            continue
        assert written.isascii()
        assert written == escape(written)
