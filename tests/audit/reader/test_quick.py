"""Ordinary entries are not parsed, and nobody can tell: the report is that of the parser."""

import datetime as dt
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.audit.reader import SitemapReader, streams
from django_sitemapkit.audit.reader.document import XmlDocument
from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.protocol.extensions import alternate_elements, image_element
from django_sitemapkit.protocol.extensions.values import Image
from django_sitemapkit.protocol.limits import IMAGE, NAMESPACE, XHTML
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.writers import UrlsetWriter

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
ORIGIN = "https://www.example.com"
ADDRESS = f"{ORIGIN}/sitemap.xml"
LOC = f"<loc>{ORIGIN}/page</loc>"


def head(attributes=f'xmlns:xhtml="{XHTML}" xmlns:image="{IMAGE}"', namespace=NAMESPACE):
    """Return a declaration and the opening tag."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{namespace}" {attributes}>\n'


def links(*codes, url="{origin}/{code}/", order='rel="alternate" hreflang="{code}" href="{url}"'):
    """Return links to other languages."""
    return "".join(
        f"<xhtml:link {order}/>".format(code=code, url=url.format(origin=ORIGIN, code=code))
        for code in codes
    )


ENGLISH = f"<loc>{ORIGIN}/en/</loc>"
IMAGES = f"<image:image><image:loc>{ORIGIN}/i.jpg</image:loc></image:image>"
ORDINARY = {
    "loc": LOC,
    "escapes": f"<loc>{ORIGIN}/gr%C3%B6%c3%9Fe/?a=1&amp;b='2'&amp;c=&apos;%20;</loc>",
    "port": LOC + "<lastmod>2024-02-28</lastmod>",
    "lastmod": LOC + "<lastmod>2024-02-28T23:59:59+13:59</lastmod>",
    "tags": LOC
    + "<lastmod>2024-12-31T00:00:00Z</lastmod><changefreq>daily</changefreq>"
    + "<priority>1.0</priority>",
    "no lastmod": LOC + "<changefreq>never</changefreq><priority>0</priority>",
    "indented": f"\n  {LOC}\n\t<lastmod>2024-01-01</lastmod>\r\n  ",
    "links": ENGLISH + links("en", "de-CH", "zh-Hant", "x-default"),
    "links, href first": ENGLISH
    + links("en", "fr", order='rel="alternate" href="{url}" hreflang="{code}"'),
    "links to itself": f"<loc>{ORIGIN}/fr/</loc>" + links("fr"),
    "links with escapes": f"<loc>{ORIGIN}/gr%c3%b6/?a=1&amp;b='2'</loc>"
    + links("en", "fr", url="{origin}/gr%C3%B6/?a=1&amp;b=&apos;2&apos;"),
    "spaced links": ENGLISH + links("en").replace("/>", " />\n"),
    "image": LOC + IMAGES * 3,
    "links and image": ENGLISH + "<priority>0.5</priority>" + links("en", "fr") + f"\n{IMAGES}\n",
    "long": f"<loc>{ORIGIN}/{'x' * (2_047 - 24)}</loc>",
}
ODD = [
    "",
    LOC + LOC,
    "<loc/>",
    f"<loc> {ORIGIN}/ </loc>",
    f"<loc><![CDATA[{ORIGIN}/a]]></loc>",
    f"<loc>{ORIGIN}/&#x61;</loc>",
    f"<loc>{ORIGIN}/&nbsp;</loc>",
    f"<loc>{ORIGIN}/ñ</loc>",
    f"<loc>{ORIGIN}/a#b</loc>",
    f"<loc>{ORIGIN}/%2e%2E/a</loc>",
    f"<loc>{ORIGIN}/.well-known/</loc>",
    f"<loc>{ORIGIN}/a/../b</loc>",
    f"<loc>{ORIGIN}/100%</loc>",
    f"<loc>{ORIGIN}/{'x' * 2_024}</loc>",
    f"<loc>{ORIGIN}</loc>",
    "<loc>https://cdn.example.com/a</loc>",
    "<loc>https://WWW.example.com/a</loc>",
    "<loc>https://www.example.com:443/a</loc>",
    "<loc>http://a.b/</loc>",
    "<loc>http://a.b/&amp;</loc>",
    "<loc>/relative/</loc>",
    LOC + "<lastmod>2026-11-20</lastmod>",
    LOC + "<lastmod>2026-11-30</lastmod>",
    LOC + "<lastmod>2025-02-29</lastmod>",
    LOC + "<lastmod>2025-02</lastmod>",
    LOC + "<lastmod>2025-02-01T00:00:00.5Z</lastmod>",
    LOC + "<changefreq>Daily</changefreq>",
    LOC + "<priority>1.1</priority>",
    LOC + "<priority>0.55</priority>",
    "<priority>0.5</priority>" + LOC,
    LOC + "stray",
    LOC + "\u00a0",
    LOC + "<!-- </url> -->",
    LOC + "<![CDATA[ </url> ]]>",
    LOC + "<?php </url> ?>",
    LOC + "<x:y xmlns:x='urn:x'><x:z/></x:y>",
    LOC + IMAGES.replace("<image:loc>", "<image:title>T</image:title><image:loc>"),
    LOC + IMAGES.replace("/i.jpg", "/ i.jpg"),
    LOC + "<image:image/>",
    ENGLISH + links("en", "EN"),
    ENGLISH + links("en", "en"),
    ENGLISH + links("en-gb", "english", "es-419"),
    ENGLISH + links("en", "en-UK"),
    ENGLISH + links("de", "fr"),
    ENGLISH + links("en", "x", "-"),
    ENGLISH + links("en", url="//www.example.com/{code}/"),
    ENGLISH + links("en", order='rel="next" hreflang="{code}" href="{url}"'),
    ENGLISH + links("en", order='hreflang="{code}" href="{url}"'),
    ENGLISH + links("en", "de", url="{origin}/{code}/" + "x" * 2_030),
    links("en") + ENGLISH,
    ENGLISH + IMAGES + links("en"),
    "<url>" + LOC,
    "</url>",
    "<a>",
]
BETWEEN = [
    *("\n", "\n", "\n", "", "\r\n", "\r", " \t\n\n", "text", "<!-- <url>a</url> -->", "]"),
    *("<![CDATA[</url>]]>", "<?a </url>?>", "\x0b", "&amp;", "<x xmlns='urn:x'>\n</x>", "<loc/>"),
    *("</urlset>", "</", "<url", "<!--", "<![CDATA["),
]
ENTRIES = st.builds(
    "{1}{0}</url>{2}".format,
    st.sampled_from([*ORDINARY.values()] * 4 + ODD),
    st.sampled_from(["<url>"] * 9 + ["<url >", "<url xmlns=''>", "<url a='b'>", "< url>"]),
    st.sampled_from([*BETWEEN[:3]] * 9 + BETWEEN),
)
HEADS = [
    head(""),
    head().replace("<?xml", "<!-- a\n </url> --><?xml"),
    head().split("\n", 1)[1],
    "\n" + head(),
    "\ufeff" + head(),
    head(namespace="https://example.com/"),
    head(namespace=XHTML),
    head(f'xmlns:image="{XHTML}" xmlns:xhtml="urn:x"'),
    head(f'xmlns:xhtml="{XHTML}" xmlns:image="{IMAGE}/"'),
    head().replace('xmlns="', 'xmlns:s="'),
    head().replace('urlset xmlns="', 's:urlset xmlns:s="'),
    head().replace("urlset", "sitemapindex"),
    "<a/>",
]
DOCUMENTS = st.builds(
    lambda start, entries, end: (start + "".join(entries) + end).encode(),
    st.sampled_from([head()] * len(HEADS) + HEADS),
    st.lists(ENTRIES, max_size=12),
    st.sampled_from(["</urlset>\n"] * 9 + ["", "</urlset>x", "</urlset", "<url>"]),
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "address": st.sampled_from([ADDRESS, f"{ORIGIN}/en/sitemap.xml", "http://a.b/a.xml"]),
        "max_urls": st.integers(1, 8),
        "max_bytes": st.integers(1, 3_000),
        "nested": st.booleans(),
        "hosts": st.just(["https://cdn.example.com", ORIGIN]),
    },
)


def summary(reader):
    """Return all that a reader says of its document."""
    return reader.kind, reader.urls, reader.bytes, reader.valid, reader.counts, reader.findings


def parsed(document, options):
    """Return what a reader says that returns the entries, and so has to parse all of them."""
    reader = SitemapReader(now=NOW, **options)
    with suppress(InvalidSitemap):
        list(reader.read([document]))
    return summary(reader)


def validated(document, options):
    """Return what a reader says that has only to report."""
    reader = SitemapReader(now=NOW, **options)
    with suppress(InvalidSitemap):
        list(reader.sitemaps([document]))
    return summary(reader)


def counting(monkeypatch):
    """Return a list that grows by one with each entry that is parsed."""
    entries = []
    end_entry = XmlDocument._end_entry

    def count(document):
        entries.append(document)
        end_entry(document)

    monkeypatch.setattr(XmlDocument, "_end_entry", count)
    return entries


@pytest.mark.parametrize("options", [{}, {"address": ADDRESS}])
@pytest.mark.parametrize("inner", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_entries_are_not_parsed(monkeypatch, inner, options):
    """But for the first one, which shows the parser the root."""
    entries = counting(monkeypatch)
    inners = [
        inner.replace("xx", "", 1).replace(f"{ORIGIN}/", f"{ORIGIN}/{number}/")
        for number in range(5)
    ]
    urls = "".join(f"<url>{each}</url>\n" for each in inners)
    document = (head() + urls + "</urlset>").encode()
    kind, urls, _, valid, counts, _ = validated(document, options)
    assert (kind, urls, valid, counts) == ("urlset", 5, True, {})
    assert len(entries) == 1


def test_what_is_written_is_not_parsed(monkeypatch):
    """Whatever the writer of this package writes, but for videos, news and elements of others."""
    writer = UrlsetWriter(namespaces={"xhtml": XHTML, "image": IMAGE})
    image = image_element(Image(location="https://cdn.example.com/a'b&c.jpg"), Scope(ORIGIN))
    document = writer.begin()
    for number in range(3):
        urls = [f"{ORIGIN}/en/?a='{number}&b=%C3%B1", f"{ORIGIN}/de/{number}/"]
        languages = alternate_elements([("en-GB", urls[0]), ("x-default", urls[1])])
        document += writer.add(urls, "2026-01-01", "weekly", "0.7", languages + image)[0]
    document += writer.end()
    entries = counting(monkeypatch)
    assert validated(document, {"address": ADDRESS})[1:5] == (6, len(document), True, {})
    assert len(entries) == 1


@pytest.mark.slow
@pytest.mark.parametrize("address", [None, ADDRESS])
@pytest.mark.parametrize("between", BETWEEN)
def test_between_entries(between, address):
    """White space, text, comments, and what a file should not have, or what cuts it off."""
    pair = f"<url>{LOC}</url>\n<url>{LOC}</url>"
    text = f"{head()}{pair}{between}{pair}{between}{pair}{between}<url><loc/></url></urlset>"
    document, options = text.encode(), {"address": address}
    assert validated(document, options) == parsed(document, options)


@pytest.mark.parametrize("start", [head(), *HEADS])
def test_roots(start):
    """A prefix means what the root declares, and tags may have one."""
    right = "".join(f"<url>{inner}</url>\n" for inner in ORDINARY.values())
    document = f"{start}{right}{right}<url><loc/></url></urlset>".encode()
    assert validated(document, {}) == parsed(document, {})


@pytest.mark.slow
@pytest.mark.parametrize("address", [None, ADDRESS, "http://a.b/a.xml"])
@pytest.mark.parametrize("odd", ODD)
def test_odd_entries(odd, address):
    """Each is found in its line, and the entries before and after it count."""
    right = "".join(f"<url>{inner}</url>\n" for inner in ORDINARY.values())
    document = f"{head()}{right}<url>{odd}</url>\n{right}</urlset>".encode()
    options = {"address": address}
    assert validated(document, options) == parsed(document, options)


@pytest.mark.slow
@given(DOCUMENTS, OPTIONS, st.sampled_from([65_536, 64, 300, 1_000]))
def test_any_document(document, options, size):
    """Ordinary and odd entries, in documents of all kinds, in blocks of any size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "PARSED_BLOCK_BYTES", size)
        assert validated(document, options) == parsed(document, options)


_SHORT = [inner for inner in ORDINARY.values() if len(inner) < 1_000]
WHOLE = (
    f"{head()}{''.join(f'<url>{inner}</url>{chr(10)}' for inner in _SHORT * 2)}</urlset>".encode()
)


DAMAGE = [b"", b"<", b">", b"&", b'"', b"/", b"x", b"\r", b"\n", b"\0", b"\xff", b"]", b"</url>"]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 3), st.sampled_from(DAMAGE)),
        min_size=1,
        max_size=3,
    ),
    OPTIONS,
)
def test_damaged_documents(edits, options):
    """A few bytes changed, added or taken away anywhere."""
    document = bytearray(WHOLE)
    for start, length, text in edits:
        document[start : start + length] = text
    assert validated(bytes(document), options) == parsed(bytes(document), options)
