"""RSS 2.0 and Atom feeds: their links to pages are checked as a ``loc`` is."""

import pytest

from django_sitemapkit.audit.reader import SitemapReader
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


def rss(*items):
    """Return an RSS feed; each argument is the inside of an item."""
    inner = "".join(f"<item><title>A</title>{item}</item>\n" for item in items)
    head = '<atom:link rel="self" href="x"/><link>https://elsewhere.example/</link>'
    image = "<image><url>a</url><link>https://elsewhere.example/</link></image>"
    root = '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">'
    return f"{root}\n<channel>{head}{image}\n{inner}</channel></rss>".encode()


def atom(*entries):
    """Return an Atom feed; each argument is the inside of an entry."""
    inner = "".join(f"<entry><id>urn:x</id>{entry}</entry>\n" for entry in entries)
    head = '<link rel="self" href="x"/><link href="https://elsewhere.example/"/>'
    root = '<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">'
    return f"{root}\n{head}\n{inner}</feed>".encode()


def rss_link(url):
    """Return an item's link."""
    return f"<link>{url}</link>"


def atom_link(url):
    """Return an entry's link."""
    return f'<link href="{url}"/>'


BOTH = pytest.mark.parametrize(
    ("feed", "link", "kind"), [(rss, rss_link, "rss"), (atom, atom_link, "feed")]
)


@BOTH
@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize("nested", [True, False])
def test_links_come_out(feed, link, kind, size, nested):
    """Only those of items and entries count; feed, image and self links are none of pages."""
    reader = SitemapReader(ADDRESS, nested=nested)
    document = feed(link(f"{LOCATION}/1"), link(f"{LOCATION}/2?a=1&amp;b"))
    assert list(reader.read(pieces(document, size))) == [
        UrlEntry(location=f"{LOCATION}/1"),
        UrlEntry(location=f"{LOCATION}/2?a=1&b"),
    ]
    assert (reader.kind, reader.urls, reader.valid) == (kind, 2, True)
    assert reader.findings == []


@BOTH
@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("", "invalid-url"),
        ("/relative", "invalid-url"),
        (f"{LOCATION}#a", "invalid-url"),
        (f"{LOCATION}/{'a' * 9_000}", "invalid-url"),
        ("https://elsewhere.example/a", "url-not-allowed"),
    ],
)
def test_a_broken_link_is_named(feed, link, kind, url, code):
    """With its line; the others are read."""
    report = report_on(feed(link(LOCATION), link(url), link(f"{LOCATION}/3")), ADDRESS)
    assert [(f.code, f.line) for f in report.findings] == [(code, 4)]
    assert report.urls == 3


def test_what_an_atom_entry_links_beside_its_page_is_none():
    """Enclosures, comments and edit links may be anywhere."""
    others = (
        '<link rel="enclosure" href="https://cdn.example/a.mp3"/><link rel="replies" href="x"/>'
    )
    alternate = f'<link rel="alternate" href="{LOCATION}"/>'
    assert report_on(atom(others + alternate), ADDRESS).urls == 1
    assert found(atom(others + alternate), ADDRESS) == []
    assert found(atom('<link rel="alternate"/>')) == errors("invalid-url")


def test_content_of_a_feed_may_be_deep_but_not_endless():
    """An entry may hold a page."""
    page = "<content>" + "<div>" * 100 + "a" + "</div>" * 100 + "</content>"
    assert found(atom(atom_link(LOCATION) + page)) == []
    assert found(atom("<div>" * 300)) == errors("too-deep")


@BOTH
def test_a_feed_is_well_formed_and_within_limits(feed, link, kind):
    """It ends where a sitemap would."""
    document = feed(link(LOCATION), link(LOCATION))
    assert found(document[:-3]) == errors("parsing-error")
    assert found(b"<!DOCTYPE rss>" + document) == errors("doctype")
    assert found(document, max_bytes=len(document) - 1) == errors("file-too-large")
    assert found(document, max_urls=1) == errors("too-many-urls")
    assert found(feed()) == warnings("no-entries")


def test_a_permalink_is_the_link_of_an_item_without_one():
    """A guid is one unless it says otherwise; a link takes precedence."""
    for guid in ("<guid>{}</guid>", '<guid isPermaLink="true">{}</guid>'):
        [entry] = SitemapReader(ADDRESS).read([rss(guid.format(LOCATION))])
        assert entry == UrlEntry(location=LOCATION)
        both = f"{guid.format('urn:x')}{rss_link(LOCATION)}"
        assert found(rss(both), ADDRESS) == []
    no_permalink = f'<guid isPermaLink="false">{LOCATION}</guid>'
    assert found(rss(no_permalink)) == errors("missing-xml-tag")


@pytest.mark.parametrize(
    "feed",
    [
        rss("", rss_link(LOCATION)),
        rss("<description>A</description>", rss_link(LOCATION)),
        atom('<link rel="self" href="x"/>', atom_link(LOCATION)),
        atom("", atom_link(LOCATION)),
    ],
)
def test_an_item_without_a_link_is_named(feed):
    """With the line where it begins, and it is an entry."""
    report = report_on(feed, ADDRESS)
    assert [(f.code, f.line) for f in report.findings] == [("missing-xml-tag", 3)]
    assert report.urls == 2


def test_an_alternate_link_may_be_a_url():
    """As the registry of relations writes it (RFC 4287, 4.2.7.2)."""
    rel = "http://www.iana.org/assignments/relation/alternate"
    assert found(atom(f'<link rel="{rel}" href="{LOCATION}"/>'), ADDRESS) == []


@pytest.mark.parametrize(
    ("feed", "tag", "date", "expected"),
    [
        (rss, "pubDate", "Mon, 01 Jan 2024 00:00:00 GMT", []),
        (rss, "pubDate", "1 Jan 24 10:00 EST", []),
        (rss, "pubDate", "Mon, 01 Jan 2024 00:00:00 -0000", []),
        (rss, "pubDate", "2024-13-01", warnings("invalid-feed-date")),
        (rss, "pubDate", "2024-01-01T00:00:00Z", warnings("invalid-feed-date")),
        (rss, "pubDate", "Tue, 30 Feb 2024 00:00:00 GMT", warnings("invalid-feed-date")),
        (rss, "pubDate", "9" * 9_000, warnings("invalid-feed-date")),
        (rss, "pubDate", "", warnings("invalid-feed-date")),
        (rss, "pubDate", "Mon, 01 Jan 2029 00:00:00 GMT", warnings("future-date")),
        (atom, "updated", " 2024-01-01T00:00:00.5+01:00 ", []),
        (atom, "published", "2024-01-01", warnings("invalid-feed-date")),
        (atom, "updated", "Mon, 01 Jan 2024 00:00:00 GMT", warnings("invalid-feed-date")),
        (atom, "updated", "2029-01-01T00:00:00Z", warnings("future-date")),
    ],
)
def test_dates_have_the_form_of_their_feed(feed, tag, date, expected):
    """RFC 822 in RSS, RFC 3339 in Atom."""
    link = rss_link(LOCATION) if feed is rss else atom_link(LOCATION)
    assert found(feed(f"{link}<{tag}>{date}</{tag}>"), ADDRESS) == expected
