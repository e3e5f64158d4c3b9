"""What is read of a sitemap that is compared: each URL with its values, in one form."""

import gzip

import pytest

from django_sitemapkit.audit.moving import sources
from django_sitemapkit.audit.moving.sources import VALUE_NAMES, read_entries
from django_sitemapkit.exceptions import InvalidSitemap
from tests.audit.moving.documents import index, urlset

URL = "https://www.example.com/a/"
LOC = f"<loc>{URL}</loc>"


def read(document):
    """Return the entries of a document."""
    data = document if isinstance(document, bytes) else document.encode()
    return list(read_entries([data], []))


def values(inner):
    """Return the values of a URL with these tags."""
    ((url, found),) = read(urlset(LOC + inner))
    assert url == URL
    assert set(found) <= set(VALUE_NAMES)
    return found


def image(location):
    """Return an image."""
    return f"<image:image>\n<image:loc>{location}</image:loc></image:image>"


def test_urls_and_their_values():
    """Each URL as it is written, whatever is wrong with it."""
    document = urlset(
        "<loc>\n  https://www.example.com/ñ b/?a=1&amp;b=2 </loc><lastmod> 2026-03-01 </lastmod>"
        "<changefreq>Weekly</changefreq><priority>0.50</priority>",
        "relative",
        "<loc></loc><priority>1</priority>",
        "<priority>1</priority>",
    )
    assert read(document) == [
        (
            "https://www.example.com/ñ b/?a=1&b=2",
            {"lastmod": "2026-03-01", "changefreq": "weekly", "priority": "0.5"},
        ),
        ("relative", {}),
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<priority>1</priority>", "<priority>1.0</priority>"),
        ("<changefreq>daily</changefreq>", "<changefreq> DAILY</changefreq>"),
        ("<lastmod></lastmod><changefreq/>", ""),
        ("<priority>high</priority>", "<priority>high</priority><priority>0.5</priority>"),
        (
            '<xhtml:link rel="alternate" hreflang="DE" href="https://x.example/ñ"/>',
            '<xhtml:link href="https://x.example/%C3%B1" hreflang="de" rel="alternate"/>',
        ),
        (
            f"{image('https://x.example/a b')}{image('/c.jpg')}",
            f"{image('/c.jpg')}\n{image('https://x.example/a%20b')}",
        ),
        (
            "<video:video><video:title>A</video:title><video:tag>b</video:tag></video:video>",
            "<video:video><video:tag>b</video:tag><video:title>A</video:title></video:video>",
        ),
    ],
)
def test_equal_values_are_read_alike(one, other):
    """Numbers, words in any case, URLs in any encoding, and elements in any order."""
    assert values(one) == values(other)


def test_extensions():
    """By kind, with their texts and attributes."""
    found = values(
        '<xhtml:link rel="alternate" hreflang="en" href="https://x.example/"/>'
        '<xhtml:link rel="alternate" media="only screen" href="https://m.example/"/>'
        "<image:image><image:loc>https://x.example/a.jpg</image:loc>"
        "<image:caption>A &amp; B</image:caption></image:image>"
        '<video:video><video:restriction relationship="allow">IE</video:restriction></video:video>'
        "<news:news><news:publication><news:name>Times</news:name></news:publication></news:news>"
        '<mobile:mobile xmlns:mobile="https://x.example/mobile"/>'
        '<x:rank xmlns:x="https://x.example/x" unit="&#10;%">7<x:of/> of \n<x:of>9</x:of>9</x:rank>'
    )
    assert found == {
        "alternates": ["en https://x.example/", "only screen https://m.example/"],
        "images": ["caption=A & B, https://x.example/a.jpg"],
        "videos": ["restriction relationship=allow, restriction=IE"],
        "news": ["name=Times"],
        "elements": ["mobile", "of=9, rank unit= %, rank=7 of 9"],
    }


def test_what_is_not_of_an_entry_is_not_read():
    """A tag of another name."""
    document = urlset(f"<priority>0.1</priority>{LOC}").replace(
        "<url>", "<other><loc>/x/</loc><priority>1</priority></other><url>"
    )
    assert read(document) == [(URL, {"priority": "0.1"})]


@pytest.mark.parametrize("namespace", ["", ' xmlns="http://www.google.com/schemas/sitemap/0.84"'])
def test_any_namespace_is_read(namespace):
    """That of the root is that of its tags."""
    document = f"<urlset{namespace}><url>{LOC}<priority>1</priority></url></urlset>"
    assert read(document) == [(URL, {"priority": "1.0"})]


def test_an_index_has_sitemaps():
    """And no URLs."""
    sitemaps = []
    assert list(read_entries([index("/a.xml", "/b.xml").encode()], sitemaps)) == []
    assert sitemaps == ["/a.xml", "/b.xml"]
    with pytest.raises(InvalidSitemap, match="Nested index"):
        list(read_entries([index("/a.xml").encode()], [], nested=True))


def test_a_text_sitemap_and_a_feed():
    """Their URLs have no values."""
    assert read(f"{URL}\n{URL}?a=1\n") == [(URL, {}), (f"{URL}?a=1", {})]
    assert read(f"<rss><channel><item><link>{URL}</link></item></channel></rss>") == [(URL, {})]


@pytest.mark.slow
def test_the_bytes_may_come_in_any_way():
    """Cut anywhere, compressed, with a byte order mark or white space before them."""
    document = urlset(*(f"https://www.example.com/{number}/" for number in range(5_000))).encode()
    whole = read(document)
    assert len(whole) == 5_000
    pieces = [document[start : start + 999] for start in range(0, len(document), 999)]
    assert list(read_entries(pieces, [])) == whole
    for other in (gzip.compress(document), b"\xef\xbb\xbf" + document, b"\n \n" + document):
        assert read(other) == whole


def test_entries_come_before_the_end():
    """A document is not held as a whole."""
    document = urlset(*(f"https://www.example.com/{number}/" for number in range(5_000))).encode()
    entries = read_entries([document[: -len("</urlset>")]], [])
    assert next(entries) == ("https://www.example.com/0/", {})
    with pytest.raises(InvalidSitemap, match="no element found"):
        list(entries)


@pytest.mark.parametrize(
    ("document", "code", "message"),
    [
        ("", "empty-sitemap", "the file has no content"),
        ("{}", "parsing-error", "the file is JSON"),
        ("\n\n<urlset>\n<url></urlset>", "parsing-error", "mismatched tag, line 4"),
        ("<map></map>", "unknown-root", "<map> is neither <urlset> nor <sitemapindex>"),
        ("<!DOCTYPE x><urlset/>", "doctype", "DOCTYPE not allowed"),
        ("<!doctype html><html></html>", "html", "Sitemap is HTML"),
        (b"\x1f\x8bnothing", "compression-error", "gzip data is damaged"),
    ],
)
def test_what_is_not_a_sitemap_is_an_error(document, code, message):
    """With the line, where there is one."""
    with pytest.raises(InvalidSitemap, match=message) as raised:
        read(document)
    assert raised.value.code == code


@pytest.mark.slow
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_document_has_a_limit(monkeypatch, pack):
    """Uncompressed, so that none can be endless."""
    document = urlset(*[URL] * 5_000).encode()
    monkeypatch.setattr(sources, "MAX_DOCUMENT_BYTES", len(document))
    assert len(read(pack(document))) == 5_000
    monkeypatch.setattr(sources, "MAX_DOCUMENT_BYTES", len(document) - 1)
    with pytest.raises(InvalidSitemap, match="File too large"):
        read(pack(document))
