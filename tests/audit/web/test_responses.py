"""Bodies and redirects are bounded, for both fetchers."""

import gzip
import zlib

import pytest

from django_sitemapkit.audit.web.responses import (
    Fetched,
    HttpAnswer,
    fetch_with_redirects,
    has_readable_type,
    header_values,
    read_body_if_readable,
)


def answering(answers):
    """Return a function that answers for URLs below one host."""

    def ask(url):
        status, headers = answers.get(url.removeprefix("https://a.example"), (200, {}))
        return HttpAnswer(status=status, headers=tuple(headers.items()))

    return ask


def followed(answers, path="/", **options):
    """Return what came of following redirects."""
    return fetch_with_redirects(
        f"https://a.example{path}", answering(answers), lambda: 1.5, **options
    )


def encoded(encoding):
    """Return the headers of a body with a Content-Encoding."""
    return [("Content-Encoding", encoding)]


def test_headers():
    """By name in any case; a name may repeat."""
    headers = (("Link", "a"), ("X-Robots-Tag", "b"), ("link", "c"))
    fetched = Fetched(url="u", final_url="u", status=200, headers=headers)
    assert (fetched.header("x-robots-TAG"), fetched.header("Link")) == ("b", "a")
    assert fetched.header("Date") == ""
    assert list(header_values(fetched.headers, "LINK")) == ["a", "c"]


def test_redirects():
    """Each hop is kept, with relative targets resolved and fragments dropped."""
    answers = {
        "/": (301, {"Location": "/a/b"}),
        "/a/b": (302, {"location": "../c?#e"}),
        "/c?": (301, {"Location": "?d"}),
        "/c?d": (308, {"Location": "/espaÃ±a"}),
    }
    fetched = followed(answers)
    assert fetched == Fetched(
        url="https://a.example/",
        final_url="https://a.example/espa%C3%B1a",
        status=200,
        hops=(
            ("https://a.example/", 301),
            ("https://a.example/a/b", 302),
            ("https://a.example/c?", 301),
            ("https://a.example/c?d", 308),
        ),
        seconds=1.5,
    )


def test_locations_are_resolved_as_browsers_do():
    """Empty segments are kept, dot segments are resolved, and a backslash is a slash."""
    answers = {
        "//a/": (301, {"Location": "go/https://b.example/"}),
        "//a/go/https://b.example/": (301, {"Location": "https://a.example/c/../d\\e"}),
    }
    assert followed(answers, "//a/").final_url == "https://a.example/d/e"


def test_a_location_that_is_not_utf_8():
    """It is read as written."""
    fetched = followed({"/": (302, {"Location": "/a\xf1"})})
    assert fetched.final_url == "https://a.example/a%C3%B1"


def test_what_is_no_redirect():
    """Without Location there is nothing to follow; nor with another status."""
    assert followed({"/": (302, {})}).status == 302
    fetched = followed({"/": (201, {"Location": "/x"})})
    assert (fetched.status, fetched.hops) == (201, ())


def test_redirects_elsewhere_are_not_followed():
    """Where the caller says so: the target is the result."""
    fetched = followed(
        {"/": (302, {"Location": "https://b.example/x"})}, follows=lambda url: "a.ex" in url
    )
    assert (fetched.status, fetched.final_url) == (302, "https://b.example/x")
    assert (fetched.hops, fetched.failure) == ((("https://a.example/", 302),), "")


@pytest.mark.parametrize(
    ("answers", "code", "status", "hops"),
    [
        ({"/": (302, {"Location": "/"})}, "redirect-loop", 302, 1),
        (
            {"/": (301, {"Location": "/a"}), "/a": (302, {"Location": "/"})},
            "redirect-loop",
            302,
            2,
        ),
        ({"/": (302, {"Location": "ftp://a.example/"})}, "invalid-url", 302, 1),
        ({"/": (302, {"Location": "http://[x/"})}, "invalid-url", 302, 1),
        (
            {"/": (302, {"Location": "/1"})}
            | {f"/{number}": (302, {"Location": f"/{number + 1}"}) for number in range(1, 20)},
            "too-many-redirects",
            302,
            11,
        ),
    ],
)
def test_redirects_that_lead_nowhere(answers, code, status, hops):
    """They are failures with the last redirect's status."""
    fetched = followed(answers)
    assert (fetched.failure_code, fetched.status, len(fetched.hops)) == (code, status, hops)
    assert fetched.failure


@pytest.mark.parametrize("url", ["/path", "ftp://a.example/", "https://u:p@a.example/", "http://"])
def test_what_is_no_url(url):
    """It is not asked for."""
    fetched = fetch_with_redirects(url, answering({}), lambda: 0.0)
    assert (fetched.url, fetched.status, fetched.failure_code) == (url, None, "invalid-url")


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("Text/HTML; charset=utf-8", True),
        ("application/xhtml+xml", True),
        ("text/plain", True),
        ("text/xml", True),
        ("application/rss+xml", True),
        ("application/pdf", False),
        ("image/png", False),
        ("text/css", False),
    ],
)
def test_types_that_are_read(content_type, expected):
    """Pages, texts and XML."""
    assert has_readable_type([("Content-Type", content_type)]) is expected
    assert has_readable_type([])


BODY = b"some text " * 50


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("", BODY),
        ("identity", BODY),
        ("UTF-8", BODY),
        ("gzip", gzip.compress(BODY, mtime=0)),
        ("aws-chunked, gzip", gzip.compress(BODY, mtime=0)),
        (
            "X-Gzip",
            gzip.compress(BODY[:99], mtime=0)
            + gzip.compress(b"", mtime=0)
            + gzip.compress(BODY[99:], mtime=0),
        ),
    ],
)
def test_bodies(encoding, data, size):
    """Plain and gzip, also in several members, however the bytes arrive.

    Words in the header that are no compression are ignored.
    """
    blocks = (data[start : start + size] for start in range(0, len(data), size))
    assert read_body_if_readable(encoded(encoding), blocks, 500) == (BODY, None)


@pytest.mark.parametrize(
    ("data", "code", "length"),
    [
        (b"no gzip", "invalid-encoding", 0),
        (gzip.compress(BODY, mtime=0)[:-3], "invalid-encoding", 0),
        (gzip.compress(BODY, mtime=0) + b"more", "invalid-encoding", 0),
        (gzip.compress(bytes(1_000_000), mtime=0), "too-large", 1_000),
        (gzip.compress(b"", mtime=0) * 100, "too-large", 0),
    ],
)
def test_bad_gzip(data, code, length):
    """It is named, and a bomb costs no more than the limit."""
    body, error = read_body_if_readable(encoded("gzip"), [data], 1_000)
    assert (error.code, len(body)) == (code, length)


def test_limits():
    """A body of just the limit is complete; no more blocks than needed are asked for."""
    asked = []

    def endless():
        while True:
            asked.append(1)
            yield b"x" * 100

    assert read_body_if_readable([], [b"x" * 500], 500) == (b"x" * 500, None)
    body, error = read_body_if_readable([], endless(), 500)
    assert (len(body), error.code, len(asked)) == (500, "too-large", 6)


def test_encodings_that_were_not_asked_for():
    """They cannot be read."""
    body, error = read_body_if_readable(encoded("deflate"), [zlib.compress(BODY)], 1_000)
    assert (body, error.code) == (b"", "invalid-encoding")
    assert "'deflate'" in str(error)


def test_an_empty_body_marked_as_gzip():
    """Some servers do so for HEAD, 204 and redirects."""
    assert read_body_if_readable(encoded("gzip"), [], 10) == (b"", None)
