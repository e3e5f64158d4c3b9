"""What is written for many lines is what would be written for each of them."""

import pytest

from django_sitemapkit.rendering.line_entries import LineTemplate

SEPARATORS = b"\x01\x02"
LINES = [(b"a", b"b", b"2024"), (b"c%20d", b"e", b""), (b"%s", b"100%", b"2025")]
XML = [
    b"<\x01-\x02 at \x0f>\n",
    b"\x01\x02\x0f\n",
    b"<\x01-\x02>\n",
    b"<%C3/\x01/\x02 %s\x0f>\n<\x02%%-\x01 \x0f>\n",
    b"<\x01>\n<\x02>\n<\x01>\n",
]


def filled(xml, *values):
    """Return the XML of one row with its values."""
    for place, value in zip((b"\x01", b"\x02", b"\x0f"), values, strict=True):
        xml = xml.replace(place, value)
    return xml


def as_line(values, is_dated):
    """Return values as a line."""
    first, second, lastmod = values
    return first + b"\x01" + second + b"\x02" + (lastmod if is_dated else b"")


@pytest.mark.parametrize("xml", XML)
def test_each_line_fills_the_places_of_its_values(xml):
    """However often, and in whatever order."""
    template = LineTemplate(xml, SEPARATORS)
    lines = b"\n".join(as_line(values, b"\x0f" in xml) for values in LINES)
    assert template.fill(lines) == b"".join(filled(xml, *values) for values in LINES)
