"""Lines are proven right only where each value is what its converter takes, and plain."""

import re

import pytest
from django.urls import set_urlconf
from django.urls.converters import IntConverter, UUIDConverter
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit import Route
from django_sitemapkit.reading.lines import (
    MAX_LINE,
    SEPARATORS,
    are_lines_of_pattern,
    has_long_line,
    lines_pattern,
    percent_encoded,
)
from django_sitemapkit.reading.routes import UNQUOTED, compile_route
from tests.reading import urlconfs
from tests.reading.test_routes import ANY, NASTY


def format_of(viewname, *arguments):
    """Return the expression of a route's lines, and its pattern."""
    set_urlconf(urlconfs)
    try:
        pattern = compile_route(Route(viewname, *arguments)).candidates[0].fast
    finally:
        set_urlconf(None)
    return lines_pattern(pattern, has_image=False), pattern


def with_image(viewname, *arguments):
    """Return the expression of a route's lines with the name of an image."""
    return lines_pattern(format_of(viewname, *arguments)[1], has_image=True)


PRODUCT, _ = format_of("product", "shop", "slug")
CITY, _ = format_of("city", "country", "slug", "id")
FILE, _ = format_of("file", "rest")
TOKEN, _ = format_of("token", "id")
PHOTO = with_image("file", "rest")
SHOT = with_image("product", "shop", "slug")


def line(*values, lastmod=""):
    """Return values as a line."""
    parts = (f"{value}{chr(place)}" for value, place in zip(values, SEPARATORS, strict=False))
    return f"{''.join(parts)}{lastmod}\n".encode("utf-8", "replace")


GOOD = [
    (PRODUCT, ("shop", "a-b_C9")),
    (CITY, ("de", "münchen", 5)),
    (CITY, ("漢字", "a=b;c,d@e~f", 0)),
    (FILE, ("a/b/c.d",)),
    (FILE, ("ü/b//c",)),
    (TOKEN, ("0b1a2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",)),
    (PHOTO, ("a/b", "")),
    (PHOTO, ("a/b", "a.jpg")),
    (PHOTO, ("a/b", "2024/ü/b-c_.d/E.JPG")),
]
BAD = [
    *(
        (PRODUCT, ("shop", value))
        for value in ("", "ü", "a b", "a.b", "a/b", "a\x01", "a\x7f", "é")
    ),
    *((PRODUCT, (value, "slug")) for value in ("", "ü", ".", "a:b", "\x02", "\ufffe")),
    *(
        (CITY, ("de", value, 5))
        for value in ("", ".", "..", ".a", "a&b", "it's", "a b", "a/b", "%")
    ),
    *((CITY, ("de", value, 5)) for value in ("ü\ufffe", "ü\uffff", "<b>", "a+b", "::+:", "a\x08")),
    *((CITY, ("de", "b", value)) for value in (-5, "\x7f")),
    *((FILE, (value,)) for value in ("a/.b", "a/../b", "./a", "", "ü/.")),
    *(
        (lines, ("a", *slug, name))
        for lines, slug in ((PHOTO, ()), (SHOT, ("b",)))
        for name in ("/a", ".a", "a/", "a//b", "a/.b", "a/../b", "a b", "a%b", "a\\b", "a?", "a'")
    ),
    *((SHOT, ("a", value, "a.jpg")) for value in ("", "a.b", "a/b")),
]
FITTING = [*GOOD, (SHOT, ("shop", "b", "a/b.jpg"))]
"""Lines that are right, of each kind."""
LASTMODS = ["", "2024-02-29", "2024-02-29 12:30:15", "2024-02-29T12:30:15+00:00"]


@pytest.mark.parametrize("lastmod", LASTMODS)
@pytest.mark.parametrize(("lines", "values"), GOOD)
def test_right_lines_are_proven_together(lines, values, lastmod):
    """Whatever date follows the values."""
    assert are_lines_of_pattern(line(*values, lastmod=lastmod) * 3, 3, lines)


@pytest.mark.parametrize(("lines", "values"), BAD)
def test_a_wrong_line_is_found_among_right_ones(lines, values):
    """Wherever it is; and the right ones are right."""
    good = line(*next(right for own, right in FITTING if own is lines), lastmod=LASTMODS[-1])
    bad = line(*values, lastmod=LASTMODS[-1])
    assert are_lines_of_pattern(good + good, 2, lines)
    assert not are_lines_of_pattern(bad + good, 2, lines)
    assert not are_lines_of_pattern(good + bad + good, 3, lines)
    assert not are_lines_of_pattern(good + good + bad, 3, lines)


@pytest.mark.parametrize(("text", "rows"), [(b"", 1), (b"a\x01b\n\x02\n", 1), (b"a\x01b\x02\n", 2)])
def test_other_lines_than_rows_are_no_text(text, rows):
    """A value has a newline in it: nobody can tell which line is which row's."""
    assert not are_lines_of_pattern(text, rows, PRODUCT)


@pytest.mark.slow
@given(values=st.lists(st.sampled_from(NASTY) | ANY, min_size=3, max_size=3))
@pytest.mark.parametrize("viewname", ["product", "glued", "city"])
def test_what_is_right_is_what_the_route_takes(viewname, values):
    """A right line's values have a path, which is plain but for what is beyond ASCII."""
    lines, pattern = format_of(viewname, *"abc"[: 2 if viewname == "product" else 3])
    kinds = [type(converter) for converter in pattern.converters]
    texts = [
        "7" if kind in {IntConverter, UUIDConverter} else str(value)
        for kind, value in zip(kinds, values, strict=False)
    ]
    if are_lines_of_pattern(text := line(*texts), 1, lines):
        columns = dict(zip(pattern.order, texts, strict=True))
        (path,) = pattern.paths([[columns[place]] for place in range(len(columns))], 1)
        found = re.split(rb"[\x01-\x08]", percent_encoded(text))[:-1]
        assert path == pattern.template % tuple(value.decode() for value in found)


def test_lines_are_percent_encoded():
    """Whatever is beyond ASCII, and nothing else."""
    assert percent_encoded(line("de", "münchen", 1)) == line("de", "m%C3%BCnchen", 1)
    assert percent_encoded(line("de", "a~b", 1)) == line("de", "a~b", 1)


@pytest.mark.parametrize("before", [0, 1, 500])
@pytest.mark.parametrize(("size", "is_long"), [(MAX_LINE, False), (MAX_LINE + 1, True)])
def test_a_long_line_is_found(before, size, is_long):
    """Wherever it is, as it is percent-encoded."""
    short, long = line("a", "b", 2) * before, line("de", "b" * (size - 6), 1)
    assert len(long) == size + 1
    assert has_long_line(short + long + short) == is_long
    assert not has_long_line(short)


def test_every_builtin_converter_has_its_plain_characters():
    """Those of others are not known."""
    assert set(UNQUOTED) == {type(one) for one in _all_converters()}


def _all_converters():
    for viewname, count in {"city": 3, "product": 2, "file": 1, "token": 1}.items():
        yield from format_of(viewname, *"abc"[:count])[1].converters
