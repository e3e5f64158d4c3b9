"""Text sitemaps: one URL a line and nothing else, recognized by their content."""

import gzip
import tracemalloc

import pytest

from django_sitemapkit.audit.reader import SitemapReader, validate
from django_sitemapkit.protocol.entries import UrlEntry
from tests.audit.reader.test_document import (
    ADDRESS,
    LOCATION,
    errors,
    found,
    pieces,
    report_on,
    warnings,
)

LINE = LOCATION.encode()


def lines(document, address=None, **options):
    """Return code and line of all that is found in a text."""
    return [(f.code, f.line) for f in report_on(document, address, **options).findings]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_urls_come_out(end, start, size, pack):
    """The last line need not end, a byte order mark is none of it, and lines may end in CRLF."""
    reader = SitemapReader(ADDRESS)
    document = start + LINE + b"/1\r\n" + LINE + b"/2\n" + LINE + b"/3" + end
    entries = list(reader.read(pieces(pack(document), size)))
    assert entries == [UrlEntry(location=f"{LOCATION}/{number}") for number in (1, 2, 3)]
    assert (reader.kind, reader.urls, reader.bytes) == ("text", 3, len(document))
    assert (reader.valid, reader.findings) == (True, [])


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"", "invalid-url"),
        (b" " + LINE + b"/2", "invalid-url"),
        (LINE + b"/2\t", "invalid-url"),
        (LINE + b" 2024-02-29", "invalid-url"),
        (b"# comment", "invalid-url"),
        (b"/page", "invalid-url"),
        (LINE + b"#a", "invalid-url"),
        (LINE + "/ñ".encode(), "invalid-url"),
        (LINE + b"/" + b"a" * 2_048, "invalid-url"),
        (LINE + b"/" + b"a" * 300_000, "invalid-url"),
        (LINE + b"\r" + LINE, "invalid-url"),
        (LINE + b"/\xf1", "wrong-encoding"),
        (b"https://example.com/page", "url-not-allowed"),
    ],
)
def test_a_finding_names_its_line(line, code):
    """What is not a URL of the scope is reported, and the lines around it are read."""
    document = b"\n".join([LINE, line, LINE + b"/3", b"nothing"])
    assert lines(document, ADDRESS) == [(code, 2), ("invalid-url", 4)]
    assert report_on(document, ADDRESS).urls == 4


@pytest.mark.parametrize(
    "line",
    [LINE + b"/\x0b", LINE + b"/\0", b"www.example.com/a", b"www.example.com", b"disallow:/a"],
)
@pytest.mark.parametrize("start", [b"", b"\n"])
def test_one_fault_never_hides_the_others(line, start):
    """Nor is a line among URLs taken for a sign of another format."""
    document = start + b"\n".join([LINE, line, LINE + b"/3"])
    assert lines(document)[-1:] == [("invalid-url", 2 + len(start))]
    assert report_on(document).urls == 3


@pytest.mark.parametrize("host", [b"www.example.com", b"example.com:8000", "ñ.example.рф".encode()])
@pytest.mark.parametrize("path", [b"", b"/a"])
def test_urls_without_a_scheme_are_named_each(host, path):
    """They say what to write."""
    report = report_on(b"\n".join([host + path] * 3))
    assert [(f.code, f.line) for f in report.findings] == [("invalid-url", n) for n in (1, 2, 3)]
    assert all("https://" in finding.message for finding in report.findings)


def test_lines_count_from_the_beginning_of_the_file():
    """Empty lines before the first URL are one finding."""
    assert lines(b"\n\n" + LINE + b"\nx") == [("leading-whitespace", 1), ("invalid-url", 4)]


def test_a_short_url_is_a_warning():
    """As it is in XML."""
    assert found(b"http://a.b/") == warnings("short-url")


@pytest.mark.slow
def test_limits_are_those_of_a_file():
    """One more URL, or one more byte, is an error; the default is 50,000."""
    text = b"".join(b"%b/%d\n" % (LINE, number) for number in range(3))
    assert found(text, max_urls=3, max_bytes=len(text)) == []
    assert lines(text, max_urls=2) == [("too-many-urls", 3)]
    assert found(text, max_bytes=len(text) - 1) == errors("file-too-large")
    text = b"".join(b"%b/%d\n" % (LINE, number) for number in range(50_001))
    assert lines(text) == [("too-many-urls", 50_001)]


@pytest.mark.slow
@pytest.mark.parametrize("piece", [(LINE + b"\n") * 500, b"/" + b"a" * 65_535])
def test_memory_does_not_grow_with_the_text(piece):
    """Neither many lines nor one without an end are held."""
    tracemalloc.start()
    try:
        report = validate(piece for _ in range(1_250_000 // len(piece)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.bytes > 1_200_000
    assert peak < 1_000_000
