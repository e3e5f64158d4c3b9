"""What the reader takes, what it refuses, and that neither size nor malice makes it heavy."""

import bz2
import datetime as dt
import gzip
import itertools
import lzma
import tracemalloc
import zlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from django_sitemapkit.audit.reader import MAX_FINDINGS, SitemapReader, streams, validate
from django_sitemapkit.exceptions import InvalidSitemap, InvalidValue
from django_sitemapkit.protocol.entries import IndexEntry, UrlEntry
from django_sitemapkit.protocol.limits import NAMESPACE

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
ADDRESS = "https://www.example.com/sitemap.xml"
LOCATION = "https://www.example.com/page"
LOC = f"<loc>{LOCATION}</loc>"
# An extension that the reader knows nothing about; test_extensions.py has those it knows.
IMAGE = 'xmlns:image="https://example.com/schemas/image"'
NEWS = 'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'


def urlset(*urls, attributes="", namespace=NAMESPACE):
    """Return a urlset; each argument is the inside of one ``<url>``."""
    inner = "".join(f"<url>{url}</url>" for url in urls)
    return (
        f'<?xml version="1.0"?><urlset xmlns="{namespace}" {attributes}>{inner}</urlset>'.encode()
    )


def index(*sitemaps, attributes=""):
    """Return a sitemapindex; each argument is the inside of one ``<sitemap>``."""
    inner = "".join(f"<sitemap>{sitemap}</sitemap>" for sitemap in sitemaps)
    root = f'<sitemapindex xmlns="{NAMESPACE}" {attributes}>'
    return f"{root}{inner}</sitemapindex>".encode()


def report_on(document, address=None, **options):
    """Return the report on one whole document."""
    return validate([document], address, now=NOW, **options)


def found(document, address=None, **options):
    """Return code and level of what is found in a document, which may repeat one URL."""
    report = report_on(document, address, **options)
    return [(f.code, f.level) for f in report.findings if f.code != "duplicate-url"]


def found_in_url(inner, address=None):
    """Return what is found in a urlset of one ``<url>``."""
    return found(urlset(inner), address)


def found_at(location, address=None):
    """Return what is found in a urlset of one location."""
    return found_in_url(f"<loc>{location}</loc>", address)


def errors(*codes):
    """Return the codes as errors."""
    return [(code, "error") for code in codes]


def warnings(*codes):
    """Return the codes as warnings."""
    return [(code, "warning") for code in codes]


def pieces(document, size):
    """Return a document cut into pieces of so many bytes."""
    return [document[i : i + size] for i in range(0, len(document), size)]


# What comes out


def test_entries_come_out_as_they_stand():
    """An entry has its text, entities decoded and surrounding white space gone."""
    reader = SitemapReader(ADDRESS, now=NOW)
    document = urlset(
        f"<loc>\n {LOCATION}?a=1&amp;b=2\t</loc><lastmod> 2005-01-01 </lastmod>"
        "<changefreq>daily</changefreq><priority>\n0.8</priority>",
        "<loc><![CDATA[https://www.example.com/a&]]>b</loc>",
    )
    assert list(reader.read([document])) == [
        UrlEntry(
            location=f"{LOCATION}?a=1&b=2",
            lastmod="2005-01-01",
            changefreq="daily",
            priority="0.8",
        ),
        UrlEntry(location="https://www.example.com/a&b"),
    ]
    assert (reader.kind, reader.urls, reader.bytes) == ("urlset", 2, len(document))
    assert reader.valid
    assert (reader.findings, reader.counts) == ([], {})


def test_an_index_gives_index_entries():
    """A sitemapindex gives one IndexEntry for each sitemap."""
    reader = SitemapReader(ADDRESS, now=NOW)
    child = "https://www.example.com/sitemap-a-1.xml.gz"
    document = index(f"<loc>{child}</loc><lastmod>2005-01-01</lastmod>", f"<loc>{child}</loc>")
    assert list(reader.read([document])) == [
        IndexEntry(location=child, lastmod="2005-01-01"),
        IndexEntry(location=child),
    ]
    assert (reader.kind, reader.urls, reader.valid) == ("sitemapindex", 2, True)


def test_an_entry_with_broken_values_still_comes_out():
    """A recoverable fault is a finding; the values stand as they were."""
    reader = SitemapReader(now=NOW)
    entries = list(
        reader.read(
            [
                urlset(
                    "<loc>/page</loc><lastmod>soon</lastmod>"
                    "<changefreq>Daily</changefreq><priority>0,5</priority>",
                    "<lastmod>2005-01-01</lastmod>",
                    LOC,
                )
            ]
        )
    )
    assert entries == [
        UrlEntry(location="/page", lastmod="soon", changefreq="Daily", priority="0,5"),
        UrlEntry(location=LOCATION),
    ]
    assert reader.urls == 3
    assert not reader.valid
    assert reader.counts == {
        "invalid-url": 1,
        "invalid-date": 1,
        "invalid-tag-value": 2,
        "missing-xml-tag": 1,
    }


def test_entries_before_a_fault_come_out():
    """Malformed XML ends the reading only where it stands, and the fault is the last finding."""
    reader = SitemapReader()
    entries = []
    with pytest.raises(InvalidSitemap, match="Parsing error") as caught:
        entries.extend(reader.read([urlset(LOC)[:-9] + b"<url></oops>"]))
    # extend() takes what it got before the error.
    assert entries == [UrlEntry(location=LOCATION)]
    assert caught.value.code == "parsing-error"
    assert (reader.findings[-1].code, reader.findings[-1].message) == (
        "parsing-error",
        str(caught.value),
    )
    assert not reader.valid


def test_a_finding_says_where_it_is():
    """A finding names the line, behind cut white space too, the location and the value."""
    document = b"\r\n \n" + urlset(LOC).replace(b"<url>", b"\n<url>\n").replace(
        b"</url>", b"\n<lastmod>soon</lastmod></url>"
    ).replace(b'<?xml version="1.0"?>', b"")
    [white_space, finding] = report_on(document).findings
    assert (white_space.code, white_space.line) == ("uncommon-form", 1)
    assert (finding.line, finding.location) == (4, LOCATION)
    assert finding.message.startswith("Invalid date: 'soon'")


def test_a_reader_reads_once():
    """A second document in one reader is a mistake of the caller's."""
    reader = SitemapReader()
    list(reader.read([urlset(LOC)]))
    with pytest.raises(RuntimeError, match="one document"):
        reader.read([urlset(LOC)])


@pytest.mark.parametrize("data", [b"<urlset/>", bytearray(b"<urlset/>"), "<urlset/>"])
def test_bare_data_is_refused(data):
    """Bytes are themselves iterable, but not of bytes: the error tells what to write."""
    with pytest.raises(TypeError, match=r"\[data\]"):
        validate(data)


def test_errors_of_the_source_go_through():
    """Only what the content does wrong is a finding."""

    def broken():
        yield urlset(LOC)[:40]
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        validate(broken())


def test_an_abandoned_reading_is_not_valid():
    """Valid means read to the end."""
    reader = SitemapReader(now=NOW)
    next(reader.read([urlset(LOC, LOC)]))
    assert not reader.valid


# What is no sitemap


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (b"", "empty-sitemap"),
        (b" \r\n\t" * 40_000, "empty-sitemap"),
        (urlset(LOC)[:-1], "parsing-error"),
        (urlset(LOC) + b"x", "parsing-error"),
        (b"\xef\xbb\xbf\xef\xbb\xbf" + urlset(LOC), "parsing-error"),
        (urlset("<loc>https://www.example.com/&#11;</loc>"), "parsing-error"),
        (urlset("<loc>https://www.example.com/&#xFFFE;</loc>"), "parsing-error"),
        (urlset("<loc>https://www.example.com/\x00</loc>"), "parsing-error"),
        (urlset("<loc>https://www.example.com/&nbsp;</loc>"), "parsing-error"),
        (urlset(LOC).replace(b"page", "ñ".encode("latin-1")), "wrong-encoding"),
        (b"<!DOCTYPE urlset>" + urlset(LOC)[21:], "doctype"),
        (b'<!DOCTYPE u [<!ENTITY a "b">]>' + urlset(LOC)[21:], "doctype"),
        (b'<!DOCTYPE u SYSTEM "file:///etc/passwd">' + urlset(LOC)[21:], "doctype"),
        (b"<!doctype html><p>", "html"),
        (b"\n<!DOCTYPE HTML><p>", "html"),
        (b"<HTML><body>", "html"),
        (b"<!-- x --><html/>", "html"),
        (b'<!doctype html><svg><?xml version="1.0"?></svg>', "html"),
        (b"<html><script>var a = '<feed>'</script>", "html"),
        (b"\n<!-- a --> <!-- <br> -->\n<head><title><rss></title>", "html"),
        (b"<BODY class=a><pre><urlset></pre>", "html"),
        (b"<!-- a -->" * 5_000 + b"<RDF/>", "unknown-root"),
        (b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "a" "b"><html/>', "html"),
        (b'<html xmlns="http://www.w3.org/1999/xhtml"/>', "html"),
        (b"<RDF/>", "unknown-root"),
        (b'<rss xmlns="http://example.com/"/>', "unknown-root"),
        (b"<feed/>", "unknown-root"),
        (b"<URLSET/>", "unknown-root"),
        (urlset(LOC).decode().encode("utf-16"), "wrong-encoding"),
        (urlset(LOC).decode().encode("utf-16-le"), "wrong-encoding"),
        (urlset(LOC).decode().encode("utf-32-be"), "wrong-encoding"),
        (f"\n{LOCATION}".encode("utf-16-le"), "wrong-encoding"),
        (f"{LOCATION}/ñ".encode("utf-16-be"), "wrong-encoding"),
        (LOCATION.encode("utf-32-le"), "wrong-encoding"),
        (b"\n" + urlset(LOC.replace("page", "\x01"))[21:], "parsing-error"),
        (b'<?xml version="1.0" encoding="ISO-8859-1"?>' + urlset(LOC)[21:], "wrong-encoding"),
        (b"PK\x03\x04" + b"\0" * 40, "compression-error"),
        (gzip.compress(gzip.compress(urlset(LOC))), "compression-error"),
    ],
)
def test_what_is_no_sitemap_ends_the_reading(document, code):
    """A fault that cannot be read past is raised with its code, and is the last finding."""
    reader = SitemapReader()
    with pytest.raises(InvalidSitemap) as caught:
        list(reader.read([document]))
    assert caught.value.code == code
    report = report_on(document)
    assert report.findings[-1].code == code
    assert report.findings[-1].level == "error"
    assert not report.valid


@pytest.mark.parametrize("encoding", ["UTF-8", "utf-8"])
def test_utf_8_is_taken_with_or_without_a_mark(encoding):
    """A declared UTF-8 and a UTF-8 byte order mark are fine."""
    declared = f'<?xml version="1.0" encoding="{encoding}"?>'.encode() + urlset(LOC)[21:]
    assert found(declared) == []
    assert found(b"\xef\xbb\xbf" + declared) == []


def test_entities_never_grow():
    """A DOCTYPE with entities within entities is refused before one of them is expanded."""
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    bomb = f'<!DOCTYPE u [<!ENTITY e0 "lol">{entities}]><urlset>&e11;</urlset>'.encode()
    assert found(bomb) == errors("doctype")


@pytest.mark.parametrize("namespace", [NAMESPACE.replace("http:", "https:"), NAMESPACE + "/", ""])
def test_a_wrong_namespace_is_one_finding(namespace):
    """The tags of a wrong namespace, or of none, are read all the same."""
    document = urlset(LOC, "<loc>x</loc>", namespace=namespace)
    assert found(document) == errors("wrong-namespace", "invalid-url")


def test_a_prefix_is_as_good_as_a_default_namespace():
    """Names are compared by namespace, not by how they are written."""
    document = (
        f'<s:urlset xmlns:s="{NAMESPACE}"><s:url><s:loc>{LOCATION}</s:loc></s:url></s:urlset>'
    ).encode()
    assert found(document) == []
    for old, new in [(b"<s:", b"<p:"), (b"</s:", b"</p:"), (b"xmlns:s=", b"xmlns:p=")]:
        document = document.replace(old, new)
    assert found(document) == []


# Structure


@pytest.mark.parametrize(
    ("inner", "codes"),
    [
        (LOC + "<lastmod>2005-01-01</lastmod><priority>1.0</priority>", []),
        (LOC + "<image:image><image:loc>x</image:loc></image:image>", []),
        (LOC + "<image:image/>" * 3, []),
        ("<!-- a -->" + LOC + "<?b c?>", []),
        ("", ["missing-xml-tag"]),
        ("<image:image/>", ["missing-xml-tag"]),
        ("<loc/>", ["invalid-url"]),
        (LOC + LOC, ["too-many-tags"]),
        (LOC + "<lastmod>2005-01-01</lastmod><lastmod>x</lastmod>", ["too-many-tags"]),
        ("<lastmod>2005-01-01</lastmod>" + LOC, ["wrong-tag-order"]),
        (LOC + "<priority>1</priority><changefreq>daily</changefreq>", ["wrong-tag-order"]),
        ("<image:image/>" + LOC, ["wrong-tag-order"]),
        (LOC + "<image:image/><priority>1</priority>", ["wrong-tag-order"]),
        (LOC + "<title>x</title>", ["invalid-xml-tag"]),
        (LOC + "<Lastmod>x</Lastmod>", ["invalid-xml-tag"]),
        (LOC + '<title xmlns="">x</title>', ["invalid-xml-tag"]),
        (LOC + "<url><loc>x</loc></url>", ["invalid-xml-tag"]),
        (f"<loc>{LOCATION}<b/></loc>", ["invalid-xml-tag"]),
        (f"<loc>{LOCATION}<image:b/></loc>", ["invalid-xml-tag"]),
        (f"<loc>{LOCATION}<b>?q=1</b></loc>", ["invalid-xml-tag"]),
        (LOC.replace("<loc>", '<loc lang="en">'), ["invalid-xml-attribute"]),
        (LOC.replace("<loc>", '<loc image:x="en" xml:lang="en">'), ["invalid-xml-attribute"] * 2),
        (LOC.replace("<loc>", '<loc xmlns:x="urn:x">'), []),
        (LOC + '<image:image a="b"/>', []),
        (LOC + "stray", ["stray-text"]),
        ("\u00a0" + LOC, ["stray-text"]),
        (LOC + "<image:image>text <image:loc/> text</image:image>", []),
    ],
)
def test_the_structure_of_an_entry(inner, codes):
    """Within ``<url>``: loc, lastmod, changefreq, priority, once each, then extensions."""
    assert found(urlset(inner, attributes=IMAGE)) == errors(*codes)


def test_an_index_entry_knows_two_tags():
    """Within ``<sitemap>``: loc, then lastmod, and no changefreq or priority."""
    assert found(index(LOC + "<lastmod>2005-01-01</lastmod>")) == []
    assert found(index(LOC + "<lastmod>soon</lastmod>")) == errors("invalid-date")
    assert found(index(LOC + "<priority>1</priority>")) == errors("invalid-xml-tag")
    assert found(index("<lastmod>2005-01-01</lastmod>" + LOC)) == errors("wrong-tag-order")
    assert found(index("")) == errors("missing-xml-tag")


def test_the_first_of_two_tags_counts():
    """A tag that repeats is left aside with all that is in it."""
    [entry] = SitemapReader().read([urlset(LOC + "<loc>https://other.example/<b/></loc>")])
    assert entry == UrlEntry(location=LOCATION)


def test_the_root_holds_entries_after_extensions():
    """Extensions and schema hints may stand on the root, but no text and no other attribute."""
    url = f"<url>{LOC}</url>"

    def root(inner, attributes=""):
        xsi = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a b"'
        start = f'<urlset xmlns="{NAMESPACE}" {xsi} {IMAGE} {attributes}>'
        return found(f"{start}{inner}</urlset>".encode())

    assert root(url) == []
    assert root("<image:x><image:y/>text</image:x>" + url) == []
    assert root(url + "<image:x/>") == errors("wrong-tag-order")
    assert root(url + "<page/>") == errors("invalid-xml-tag")
    assert root("before" + url) == errors("stray-text")
    assert root(url + "after") == errors("stray-text")
    assert root(url, 'version="1"') == errors("invalid-xml-attribute")


def test_indexes_never_nest():
    """A sitemap within a urlset, an index within an index, and an index that one led to."""
    sitemap = f"<sitemap>{LOC}</sitemap>"
    nested = index(LOC).decode()
    inside_urlset = urlset(LOC).replace(b"</urlset>", f"{sitemap}</urlset>".encode())
    inside_index = index(LOC).replace(b"</sitemapindex>", f"{nested}</sitemapindex>".encode())
    assert found(inside_urlset) == errors("nested-index")
    assert found(inside_index) == errors("nested-index")
    assert found(index(LOC)) == []
    assert found(index(LOC), nested=True) == errors("nested-index")
    assert found(urlset(LOC), nested=True) == []
    with pytest.raises(InvalidSitemap, match="never another index"):
        list(SitemapReader(nested=True).read([index(LOC)]))


def test_a_url_does_not_belong_in_an_index():
    """A ``<url>`` within an index is an unknown tag."""
    url = f"<url>{LOC}</url></sitemapindex>".encode()
    assert found(index(LOC).replace(b"</sitemapindex>", url)) == errors("invalid-xml-tag")


def test_an_empty_document_is_an_error_but_for_news():
    """sitemap.xsd wants an entry; Google only warns of an empty news sitemap."""
    assert found(urlset()) == errors("empty-sitemap")
    assert found(index()) == errors("empty-sitemap")
    assert found(index(attributes=NEWS)) == errors("empty-sitemap")
    assert found(urlset(attributes=IMAGE)) == errors("empty-sitemap")
    assert found(urlset(attributes=NEWS)) == warnings("no-entries")
    assert report_on(urlset(attributes=NEWS)).valid


# Values


@pytest.mark.parametrize(
    "location",
    [
        LOCATION,
        "http://www.ejemplo.com/espa%C3%B1a.html&amp;q=nombre",
        "https://www.example.com",
        "https://www.example.com?q=1",
        "HTTPS://WWW.Example.COM/Path",
        "https://www.example.com:8443/x",
        "https://xn--bcher-kva.example/",
        "https://[2001:db8::1]/",
        "http://localhost:8000/",
        "https://www.example.com/espa%F1a.html",
        "https://www.example.com/a//b/.well-known/...?x=/../",
        "https://www.example.com/a&apos;b%22c%3Cd%3Ee&amp;f;g,h!(i)*$+@:~_-=",
        "https://www.example.com/" + "a" * 2_023,
        "https://www.example.com/" + "%C3%B1" * 337 + "a",
    ],
)
def test_valid_locations_pass(location):
    """An absolute http or https URL in percent-encoded form, 2,047 characters at most."""
    assert found_at(location) == []


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("", "not an absolute"),
        ("/page", "not an absolute"),
        ("//www.example.com/page", "not an absolute"),
        ("www.example.com/page", "not an absolute"),
        ("javascript:alert(1)", "not an absolute"),
        ("mailto:someone@example.com", "not an absolute"),
        ("ftp://www.example.com/page", "not an absolute"),
        ("https:///page/page", "https:// and the host"),
        ("https://user:pw@www.example.com/", "user name"),
        ("https://bücher.example/", "punycode"),
        ("https://www..example.com/", "not a host name"),
        ("https://www.example.com:/", "colon without a port"),
        ("https://www.example.com:0/", "0 is not a port"),
        ("https://www.example.com:65536/", "Port out of range"),
        ("https://www.example.com/a b", "write %20"),
        ("https://www.example.com/a\tb", "write %09"),
        ("https://www.example.com/a\nb", "write %0A"),
        ("https://www.example.com/a&#13;b", "write %0D"),
        ("https://www.example.com/a\x7fb", "write %7F"),
        ("https://www.example.com/españa", "write %C3%B1"),
        ("https://www.example.com/\u00a0", "write %C2%A0"),
        ("https://www.example.com/{a}", "write %7B"),
        ("https://www.example.com/a[1]", "write %5B"),
        ("https://www.example.com/100%", "write %25"),
        ("https://www.example.com/%2G", "write %25"),
        ("https://www.example.com/page#s", "fragment"),
        ("https://www.example.com/a/../b", "segment"),
        ("https://www.example.com/a/./b", "segment"),
        ("https://www.example.com/a/..", "segment"),
        ("https://www.example.com/a/%2E%2e/b", "segment"),
        ("https://www.example.com/a/.%2e?b", "segment"),
        ("https://www.example.com/" + "a" * 2_024, "2,048 characters, 2,047 at most"),
        ("https://www.example.com/" + "a" * 20_000, "more than 8,192 characters"),
        ("https://www.example.com/" + "a" * 900_000, "more than 8,192 characters"),
    ],
)
@pytest.mark.parametrize("address", [None, ADDRESS])
def test_invalid_locations_are_named(location, why, address):
    """What sitemap.xsd lets pass, a space or a relative URL, is named with the way out."""
    report = report_on(urlset(f"<loc>{location}</loc>"), address)
    assert [finding.code for finding in report.findings] == ["invalid-url"]
    assert why in report.findings[0].message
    assert report.findings[0].message.startswith("Invalid URL: ")


def test_a_short_location_is_a_warning():
    """sitemap.xsd asks for twelve characters, the protocol does not."""
    assert found_at("http://a.b/") == warnings("short-url")
    assert found_at("http://a.b/c") == []


@pytest.mark.parametrize(
    ("address", "location"),
    [
        (ADDRESS, LOCATION),
        (ADDRESS, "HTTPS://WWW.EXAMPLE.COM/page"),
        (ADDRESS, "https://www.example.com:443/page"),
        (ADDRESS, "https://www.example.com"),
        ("https://WWW.example.com:443", LOCATION),
        ("https://www.example.com?x=/y/", LOCATION),
        ("http://www.example.com:8000/sitemap.xml", "http://www.example.com:8000/page"),
        (
            "https://www.example.com/catalog/sitemap.xml?a=/b/#c",
            "https://www.example.com/catalog/show",
        ),
        ("https://www.example.com/catalog/sitemap.xml", "https://www.example.com/catalog/a/b%20c"),
        ("https://www.example.com/caf%c3%a9/s.xml", "https://www.example.com/caf%C3%A9/x"),
        ("https://www.example.com/café/s.xml", "https://www.example.com/caf%c3%a9/x"),
    ],
)
def test_locations_within_scope_pass(address, location):
    """Same scheme, host and port, below the directory, however either URL is spelled."""
    assert found_at(location, address) == []


@pytest.mark.parametrize(
    ("address", "location"),
    [
        (ADDRESS, "http://www.example.com/page"),
        (ADDRESS, "https://example.com/page"),
        (ADDRESS, "https://shop.www.example.com/page"),
        (ADDRESS, "https://www.example.com.evil.example/page"),
        (ADDRESS, "https://www.example.com:8443/page"),
        (ADDRESS, "https://www.example.com:80/page"),
        ("https://www.example.com/catalog/sitemap.xml", "https://www.example.com/image/show"),
        ("https://www.example.com/catalog/sitemap.xml", "https://www.example.com/catalogue/show"),
        ("https://www.example.com/catalog/sitemap.xml", "https://www.example.com/catalog"),
        ("https://www.example.com/catalog/sitemap.xml", "https://www.example.com/Catalog/show"),
        ("https://www.example.com/a.b/sitemap.xml", "https://www.example.com/aXb/show"),
    ],
)
def test_locations_out_of_scope_are_named(address, location):
    """Another site, or a higher or sibling directory, is "URL not allowed", in an index too."""
    assert found_at(location, address) == errors("url-not-allowed")
    assert found(index(f"<loc>{location}</loc>"), address) == errors("url-not-allowed")
    assert found_at(location) == []


def test_an_index_lists_what_is_on_declared_hosts():
    """Whatever the directory there; pages of such hosts are no more allowed than before."""
    there = "https://cdn.example.com"
    for location in (f"{there}/a/b.xml", "HTTPS://CDN.example.com:443/b.xml"):
        document = index(f"<loc>{location}</loc>")
        assert found(document, ADDRESS, hosts=[there]) == []
        assert found(document, ADDRESS, hosts=[f"{there}.evil"]) == errors("url-not-allowed")
    higher = index("<loc>https://www.example.com/b.xml</loc>")
    address = "https://www.example.com/a/sitemap.xml"
    own = ["https://www.example.com"]
    assert found(higher, address, hosts=own) == errors("url-not-allowed")
    pages = urlset(f"<loc>{there}/a</loc>")
    assert found(pages, ADDRESS, hosts=[there]) == errors("url-not-allowed")
    # The index that led here may stand on the host of the pages.
    assert found(pages, ADDRESS, hosts=[there], nested=True) == []


@pytest.mark.parametrize(
    "address", ["", "/sitemap.xml", "sitemap.xml", "ftp://a.example/s.xml", "https://ü.example/"]
)
def test_an_address_that_is_none_is_the_callers_mistake(address):
    """A reader without a scope it was asked for does not come to be."""
    with pytest.raises(InvalidValue, match="address") as caught:
        SitemapReader(address)
    assert caught.value.code == "invalid-url"


@pytest.mark.parametrize(
    ("lastmod", "expected"),
    [
        ("2005-01-01", []),
        ("0999-01-31", []),
        ("2024-02-29", []),
        ("2024-12-31T23:59:59-14:00", []),
        ("2004-12-23T18:00:15+00:00", []),
        ("2004-12-23T18:00:15Z", []),
        ("\n2004-12-23T18:00:15Z ", []),
        ("2026-11-20T12:00:00Z", []),
        ("2026-11-20T13:59:59+02:00", []),
        ("2026-11-21", []),
        ("2026-11-20T12:00:01Z", warnings("future-date")),
        ("2026-11-20T12:00:00-00:01", warnings("future-date")),
        ("2026-11-22", warnings("future-date")),
        ("9999-12-31T23:59:59-13:00", warnings("future-date")),
        ("2004", warnings("uncommon-date")),
        ("2004-12", warnings("uncommon-date")),
        ("2004-12-23T18:00Z", warnings("uncommon-date")),
        ("2004-12-23T18:00:15.123+01:00", warnings("uncommon-date")),
        ("2027-12-23T18:00:15.123+01:00", warnings("uncommon-date", "future-date")),
        ("", errors("invalid-date")),
        ("2005-02-29", errors("invalid-date")),
        ("2005-02-30", errors("invalid-date")),
        ("2005-04-31", errors("invalid-date")),
        ("2005-13-01", errors("invalid-date")),
        ("2005-1-1", errors("invalid-date")),
        ("0000-01-01", errors("invalid-date")),
        ("2004-12-23T18:00:15", errors("invalid-date")),
        ("2004-12-23T18:00:15z", errors("invalid-date")),
        ("2004-12-23 18:00:15Z", errors("invalid-date")),
        ("2004-12-23T25:00:15Z", errors("invalid-date")),
        ("2004-12-23T18:00:15+99:00", errors("invalid-date")),
        ("٢٠٠٥-01-01", errors("invalid-date")),
        ("2005-01-01 2005-01-01", errors("invalid-date")),
        ("1" * 9_000, errors("invalid-date")),
    ],
)
def test_lastmod_is_a_w3c_datetime(lastmod, expected):
    """A date that is none is an error; one to come, or that few readers know, a warning."""
    inner = f"{LOC}<lastmod>{lastmod}</lastmod>"
    assert found(urlset(inner)) == expected
    assert found(index(inner)) == expected


@pytest.mark.parametrize(
    "changefreq", ["always", "hourly", "daily", "weekly", "monthly", "yearly", "never"]
)
def test_changefreq_is_one_of_seven_words(changefreq):
    """The words count in lower case, without white space: sitemap.xsd keeps it (xsd:string)."""

    def check(value):
        return found_in_url(f"{LOC}<changefreq>{value}</changefreq>")

    assert check(changefreq) == []
    assert check(changefreq.title()) == errors("invalid-tag-value")
    assert check(changefreq + " ") == errors("invalid-tag-value")
    assert check(" " * 900_000 + changefreq) == errors("invalid-tag-value")
    before = urlset(f"{LOC}<changefreq>").index(b"</url>")
    for blocks in range(6, 12):
        spaces = " " * (blocks * streams.PARSED_BLOCK_BYTES - before)
        assert check(spaces + changefreq) == errors("invalid-tag-value")


@pytest.mark.parametrize("changefreq", ["", "fortnightly", "DAILY", "daily weekly"])
def test_other_words_are_no_changefreq(changefreq):
    """What is not among the seven words is named."""
    report = report_on(urlset(f"{LOC}<changefreq>{changefreq}</changefreq>"))
    [finding] = report.findings
    assert finding.message.startswith(f"Invalid tag value: changefreq '{changefreq}'")


@pytest.mark.parametrize(
    "priority", ["0.0", "0.5", "1.0", "1", "0", "0.55", ".5", "1.", "+0.5", "00.5", " 0.5\n", "-0"]
)
def test_priority_is_a_decimal(priority):
    """All that xsd:decimal takes from 0.0 to 1.0 is valid."""
    assert found_in_url(f"{LOC}<priority>{priority}</priority>") == []


@pytest.mark.parametrize(
    "priority",
    ["", ".", "1.01", "-0.1", "2", "1e-1", "NaN", "INF", "True", "0,5", "0.5 0.5", "٠.٥"],
)
def test_what_is_no_priority_is_named(priority):
    """No exponent, no comma, no NaN, and nothing out of range."""
    assert found_in_url(f"{LOC}<priority>{priority}</priority>") == errors("invalid-tag-value")


@pytest.mark.parametrize("tag", ["loc", "lastmod", "priority"])
def test_white_space_is_no_part_of_a_value(tag):
    """XSD collapses it: however much of it stands before a value, the value counts."""
    value = {"loc": LOCATION, "lastmod": "2005-01-01", "priority": "0.5"}[tag]
    inner = f"<{tag}>{' ' * 900_000}{value}\r\n</{tag}>"
    document = urlset(inner if tag == "loc" else LOC + inner)
    assert found(document) == []
    [entry] = SitemapReader().read([document])
    assert value in (entry.location, entry.lastmod, entry.priority)


# Limits


def test_too_many_entries_are_one_finding():
    """One entry over the limit is an error, said once; the entries come out all the same."""
    assert found(urlset(LOC, LOC), max_urls=2) == []
    assert found(urlset(LOC, LOC, LOC, LOC), max_urls=2) == errors("too-many-urls")
    assert found(index(LOC, LOC, LOC), max_urls=2) == errors("too-many-sitemaps")
    assert report_on(urlset(LOC, LOC, LOC, LOC), max_urls=2).urls == 4


@pytest.mark.slow
def test_fifty_thousand_urls_are_the_limit():
    """50,000 URLs pass and 50,001 do not."""
    locations = [f"\n<loc>https://www.example.com/{number}/</loc>" for number in range(50_001)]
    [finding] = report_on(urlset(*locations)).findings
    assert (finding.code, finding.line) == ("too-many-urls", 50_002)
    assert "at most 50,000" in finding.message


@pytest.mark.slow
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_bytes_are_counted_uncompressed(compress):
    """The limit is the last byte that is allowed, whether the file is plain or gzip."""
    document = urlset(*[LOC] * 3_000)
    assert found(compress(document), max_bytes=len(document)) == []
    assert report_on(compress(document), max_bytes=len(document)).bytes == len(document)
    assert found(compress(document), max_bytes=len(document) - 1) == errors("file-too-large")


def test_nothing_beyond_the_limit_is_read():
    """An entry that ends with the last byte allowed counts, the next one does not."""
    document = urlset(LOC, LOC, LOC)
    second = document.index(b"</url>", document.index(b"</url>") + 1) + len(b"</url>")
    assert report_on(document, max_bytes=second).urls == 2
    assert report_on(document, max_bytes=second - 1).urls == 1


@pytest.mark.slow
@pytest.mark.parametrize("over", [0, 1])
def test_the_protocols_byte_limit(over):
    """52,428,800 bytes pass and one more does not."""
    document = urlset(LOC)
    padding = 52_428_800 + over - len(document)
    lines = itertools.repeat(b" " * 9_999 + b"\n", padding // 10_000)
    whole = itertools.chain([document], lines, [b" " * (padding % 10_000)])
    report = validate(whole, now=NOW)
    assert [finding.code for finding in report.findings] == ["file-too-large"] * over


@pytest.mark.slow
def test_a_gzip_bomb_stops_at_the_cap():
    """Of what expands a thousandfold no more is inflated than the cap, and none of it is kept."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = b"\n" * 1_048_576
    bomb = squeeze.compress(urlset(LOC)[:-9])
    bomb += b"".join(squeeze.compress(zeros) for _ in range(16)) + squeeze.flush()
    tracemalloc.start()
    report = report_on(bomb, max_bytes=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.findings[-1].code == "file-too-large"
    assert report.bytes <= 1_000_000 + streams.PARSED_BLOCK_BYTES
    assert peak < 2_000_000


def test_gzip_that_holds_nothing_ends():
    """Members without content cannot go on for ever: their number and bytes are bounded."""
    nothing = gzip.compress(b"")
    assert found(nothing * 20_000) == errors("compression-error")
    stored = b"\0\0\0\xff\xff" * 200_000
    header = nothing[:10]
    endless = itertools.chain([header], itertools.repeat(stored))
    report = validate(endless, max_bytes=1_000)
    assert [finding.code for finding in report.findings] == ["compression-error"]


@pytest.mark.thorough
def test_memory_does_not_grow_with_the_document():
    """Three megabytes of entries, sent bit by bit, are read in less than one."""
    start, end = urlset("").split(b"<url></url>")
    urls = itertools.repeat(f"<url>{LOC}</url>\n".encode() * 100, 400)
    reader = SitemapReader(max_urls=10**6)
    tracemalloc.start()
    for _ in reader.read(itertools.chain([start], urls, [end])):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reader.urls == 40_000
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("filling", "times"),
    [(b"x", 500), (b"<image:x/>", 15), (b"<![CDATA[ ]]>x", 200), (b" ", 500)],
    ids=["text", "tags", "cdata", "space"],
)
@pytest.mark.thorough
def test_memory_does_not_grow_with_a_text(filling, times):
    """An endless text is not kept: neither a value, nor an extension's, nor stray text."""
    head = urlset(LOC + "<image:image>", attributes=IMAGE).split(b"</url>")[0]
    for start in (head, head.replace(b"<image:image>", b""), head.split(b"</loc>")[0]):
        tracemalloc.start()
        report = validate(itertools.chain([start], itertools.repeat(filling * 9_000, times)))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert report.findings[-1].code == "parsing-error"
        assert peak < 2_500_000


def test_a_tag_without_end_is_not_held():
    """A comment or tag of more than a megabyte ends the reading."""
    for start in (b"<!--", b"<url a='"):
        document = urlset(LOC)[:-9] + start + b"x" * 2_000_000
        report = report_on(document)
        assert "1,048,576" in report.findings[-1].message
        assert report.urls == 1


def test_names_without_end_are_not_held():
    """Ever new names of tags end the reading, since the parser keeps each."""
    names = "".join(f"<image:n{i}/>" for i in range(20_000))
    report = report_on(urlset(LOC + names, attributes=IMAGE))
    assert "10,000 different names" in report.findings[-1].message


def test_depth_is_bounded():
    """32 elements deep is read, 33 is not."""

    def deep(levels):
        inner = "<image:a>" * levels + "</image:a>" * levels
        return found(urlset(LOC + inner, attributes=IMAGE))

    assert deep(30) == []
    assert deep(31) == errors("too-deep")
    assert deep(100_000) == errors("too-deep")


@pytest.mark.slow
def test_findings_are_bounded_but_counted():
    """A thousand findings are kept, the others counted, and no kind is lost among them."""
    document = urlset(*["<loc>x</loc>"] * 3_000, LOC + "<priority>2</priority>")
    report = report_on(document)
    assert len(report.findings) == MAX_FINDINGS + 1
    assert report.finding_count == 3_001
    assert report.counts == {"invalid-url": 3_000, "invalid-tag-value": 1}
    assert report.findings[-1].code == "invalid-tag-value"


def test_messages_are_bounded():
    """A long value is shown in part."""
    finding = report_on(urlset(f"<loc>{'ñ' * 8_000}</loc>")).findings[0]
    assert len(finding.message) < 1_000
    assert finding.message.isascii()
    assert len(finding.location) == 2_048


# gzip


@pytest.mark.slow
def test_gzip_is_recognized_by_its_bytes():
    """A gzip file reads as the plain one, of one member or several, cut anywhere."""
    document = urlset(*[LOC] * 2_000)
    members = b"".join(gzip.compress(piece) for piece in pieces(document, 50_000))
    plain = report_on(document)
    assert plain.valid
    for compressed in (gzip.compress(document), members):
        for size in (1, 7, 65_536, len(compressed)):
            assert validate(pieces(compressed, size), now=NOW) == plain


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:-8],
        lambda data: data[: len(data) // 2],
        lambda data: data[:2],
        lambda data: data + b"\0x",
        lambda data: data + b"x",
        lambda data: data + data[:1],
        lambda data: data + data[:15],
        lambda data: data[:-8] + b"\0" * 8,
        lambda data: data[:20] + b"\xff" * 20 + data[40:],
    ],
)
@pytest.mark.parametrize("size", [1, 10**6])
def test_damaged_gzip_is_a_compression_error(damage, size):
    """Data that ends early, goes on after its end or fails its checksum is refused."""
    report = validate(pieces(damage(gzip.compress(urlset(LOC))), size))
    assert [finding.code for finding in report.findings] == ["compression-error"]


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_gzip_ends_where_a_block_does(more):
    """Data that fills the last block to the brim, or nearly, reads as any other."""
    document = urlset(LOC)
    document += b"\n" * (2 * streams.PARSED_BLOCK_BYTES + more - len(document))
    assert report_on(gzip.compress(document)) == report_on(document)
    assert report_on(gzip.compress(document)).bytes == len(document)
    two = gzip.compress(document[: streams.PARSED_BLOCK_BYTES]) + gzip.compress(
        document[streams.PARSED_BLOCK_BYTES :]
    )
    assert report_on(two) == report_on(document)


@pytest.mark.parametrize("garbage", [b"\0" * 99 + b"x", b"x" * 100, b"\x1fx"])
def test_what_follows_gzip_is_named(garbage):
    """Data after the last member differs from data that ends too early."""
    [finding] = report_on(gzip.compress(urlset(LOC)) + garbage).findings
    assert "there is more after" in finding.message


def test_what_was_read_of_truncated_gzip_comes_out():
    """Entries before the end of truncated data are not lost."""
    reader = SitemapReader()
    entries = []
    with pytest.raises(InvalidSitemap, match="too early"):
        entries.extend(reader.read([gzip.compress(urlset(LOC, LOC))[:-8]]))
    assert len(entries) == 2


# Whatever comes

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
fragments = st.sampled_from(
    [
        *("<url>", "</url>", "<loc>", "</loc>", "<lastmod>", "</lastmod>", "<priority>"),
        *("</priority>", "<changefreq>daily</changefreq>", LOC, f"<url>{LOC}</url>"),
        *("<image:image>", "</image:image>", "<sitemap>", "</sitemap>", "<b/>", "</urlset>"),
        *("2005-01-01", "0.5", "<!-- x -->", "<![CDATA[x]]>", "&amp;", "\n", "<!DOCTYPE x>"),
    ]
)
documents = st.one_of(
    st.binary(max_size=300),
    st.lists(st.one_of(fragments, texts), max_size=30).map(
        lambda parts: f'<urlset xmlns="{NAMESPACE}" {IMAGE}>{"".join(parts)}</urlset>'.encode()
    ),
    st.lists(texts, min_size=1, max_size=5).map(
        lambda values: urlset(
            *(
                "".join(
                    f"<{tag}><![CDATA[{value.replace(']]>', '')}]]></{tag}>"
                    for tag in ("loc", "lastmod", "changefreq", "priority")
                )
                for value in values
            )
        )
    ),
)


@given(documents, st.sampled_from([None, ADDRESS]))
def test_no_content_makes_it_raise_anything_else(document, address):
    """Whatever the bytes are, reading ends or raises InvalidSitemap, as the report says."""
    reader = SitemapReader(address, now=NOW)
    entries, fault = [], None
    try:
        entries.extend(reader.read([document]))
    except InvalidSitemap as error:
        fault = error.code
    assert fault is None or reader.findings[-1].code == fault
    assert len(entries) <= reader.urls
    report = report_on(document, address)
    assert report.valid == (not [f for f in report.findings if f.level == "error"])
    assert (report.urls, list(report.findings)) == (reader.urls, reader.findings)


@given(documents, st.integers(1, 40), st.integers(1, 5))
def test_chunks_make_no_difference(document, size, repeat):
    """A document reads the same however it is cut, empty pieces among it or not."""
    cut = [piece for part in pieces(document, size) for piece in [part, *[b""] * repeat]]
    assert validate(cut, now=NOW) == report_on(document)


@pytest.mark.slow
@given(documents)
def test_gzip_makes_no_difference(document):
    """A document and its gzip have the same report."""
    compressed = gzip.compress(document)
    assume(not document.startswith((b"\x1f\x8b", b"PK\x03\x04")))
    assert report_on(compressed) == report_on(document)


@pytest.mark.slow
@given(st.binary(max_size=400))
def test_no_gzip_makes_it_raise_anything_else(data):
    """Bytes that pretend to be gzip end in a report."""
    assert not report_on(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + data).valid


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60), st.booleans())
def test_quick_and_slow_rules_agree(path, scoped):
    """White space sends a value the slow way; the verdict is that of the quick one."""
    location = "https://www.example.com/" + path.replace("]]>", "")
    quick = urlset(f"<loc><![CDATA[{location}]]></loc>")
    slow = urlset(f"<loc> <![CDATA[{location}]]></loc>")
    address = ADDRESS if scoped else None
    assert found(quick, address) == found(slow, address)


@pytest.mark.slow
@given(
    st.from_regex(
        r"[0-9]{4}-[0-3][0-9]-[0-3][0-9](T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](Z|[+-][0-2][0-9]:[0-6][0-9]))?",
        fullmatch=True,
    )
)
def test_quick_and_slow_dates_agree(lastmod):
    """White space sends a date the slow way; the verdict is that of the quick one."""
    quick = f"{LOC}<lastmod>{lastmod}</lastmod>"
    slow = f"{LOC}<lastmod> {lastmod}</lastmod>"
    assert found_in_url(quick) == found_in_url(slow)


# What is no sitemap, or hardly one: one finding each


def only_finding(document, address=None):
    """Return the one finding in a document, and how many entries were read."""
    report = report_on(document, address)
    (finding,) = report.findings
    return finding, report.urls


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (bz2.compress(urlset(LOC)), "bzip2"),
        (lzma.compress(urlset(LOC)), "xz"),
        (b"\x28\xb5\x2f\xfd\x04\x58" + urlset(LOC), "zstd"),
        (b"7z\xbc\xaf\x27\x1c\0\4" + b"\0" * 60, "7z"),
        (b"PK\x05\x06" + b"\0" * 18, "zip"),
        (zlib.compress(urlset(LOC) * 9), "deflate"),
        (zlib.compress(urlset(LOC))[2:-4], "deflate"),
        (b"sitemap.xml".ljust(257, b"\0") + b"ustar\0" + urlset(LOC), "tar"),
        (b"\x0b\x2f\x80" + urlset(LOC), "brotli"),
        (b"Rar!\x1a\x07\x01\0" + urlset(LOC), "rar"),
        (b"\x04\x22\x4d\x18\x64" + urlset(LOC), "lz4"),
        (b"\x1f\x9d\x90" + urlset(LOC), "compress"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_other_compression_is_named(data, name, pack):
    """As such, and within gzip, too."""
    finding, urls = only_finding(pack(data))
    assert (finding.code, urls) == ("compression-error", 0)
    assert name in finding.message


@pytest.mark.parametrize(
    ("before", "word"),
    [
        (b"Warning: Cannot modify header in /x.php on line 3\n", "text before the XML"),
        (b"<br />\n<b>Warning</b>:  Undefined variable in <b>/x.php</b><br />\n", "text before"),
        (b"---\nlayout: null\n---\n", "text before the XML"),
        (b"{% load tz %}\n", "text before the XML"),
        (b"\xef\xbb\xbfNotice: a\n", "text before the XML"),
        (b"\x1b[33mWarning\x1b[0m: a\n", "text before the XML"),
    ],
)
def test_text_before_the_xml_is_one_error(before, word):
    """Whatever printed it."""
    finding, urls = only_finding(before + urlset(*[f"\n{LOC}"] * 50))
    assert (finding.code, finding.line, urls) == ("parsing-error", 1, 0)
    assert word in finding.message


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b'{\n"urls": [\n"https://www.example.com/"\n]\n}', "JSON"),
        (b'["https://www.example.com/",\n"https://www.example.com/b"]', "JSON"),
        (b"# a\nUser-agent: *\nDisallow: /a\nSitemap: https://www.example.com/a.xml", "robots.txt"),
        (b"Sitemap: https://www.example.com/a.xml\r\n" * 3, "robots.txt"),
        (b"User-agent: *\nDisallow:/a\nDisallow:/b\nAllow:/c", "robots.txt"),
        (b"User-agent:*\nAllow:/\nCrawl-delay:1\nNoindex:/a\n", "robots.txt"),
        (b"/* All */\n\n/* Links */\na { color: red }\n", "neither XML nor"),
        (b"/*! a.js */!function(){}();", "neither XML nor"),
        (b"// All\n// of it\nvar a = 1\n", "neither XML nor"),
        (b"404 Not Found\n\nThe page\nis\nnot here.\n", "neither XML nor"),
        (b"loc,lastmod\n", "neither XML nor"),
        (b"- [Page](https://www.example.com/)\n" * 9, "neither XML nor"),
        (b"version https\n" * 200, "neither XML nor"),
    ],
)
def test_another_text_is_one_error(text, word):
    """Named where it is a usual one; lists of URLs with a few other lines are read."""
    finding, urls = only_finding(text)
    assert (finding.code, finding.line, urls) == ("parsing-error", 1, 0)
    assert word in finding.message


@pytest.mark.parametrize(
    ("data", "byte", "place"),
    [
        (b"caf\xe9/", "0xE9", "line 2, column 38"),
        ("ñé".encode() + b"/\xff", "0xFF", "line 2, column 38"),
        (b"caf\xc3/", "0xC3", "line 2, column 38"),
        (b"abc\xed\xa0\x80", "0xED", "line 2, column 38"),
        (b"\n\nabc\xc0\x80", "0xC0", "line 4, column 4"),
    ],
)
@pytest.mark.parametrize("before", [0, 2_000])
def test_a_byte_that_is_not_utf_8_is_named(data, byte, place, before):
    """With its line and column, however many entries precede it."""
    head = f'<urlset xmlns="{NAMESPACE}">'.encode()
    many = b"".join(b"<url><loc>%b/%d</loc></url>" % (LOCATION.encode(), n) for n in range(before))
    wrong = b"<url><loc>https://www.example.com/%b</loc></url>" % data
    finding, urls = only_finding(head + many + b"\n" + wrong + b"</urlset>")
    assert (finding.code, urls) == ("wrong-encoding", before)
    assert byte in finding.message
    assert place in finding.message


@pytest.mark.parametrize("document", [b"<urlset>\x0b", b"<urlset>\xef\xbf\xbe</urlset>", b"<a>&b;"])
def test_other_faults_of_xml_are_parsing_errors(document):
    """Their bytes are UTF-8."""
    assert found(document)[-1:] in (errors("parsing-error"), errors("unknown-root"))


@pytest.mark.parametrize("label", ["utf8", "UTF8", "utf_8", "Utf8"])
def test_another_spelling_of_utf_8_is_a_warning(label):
    """The document is read."""
    document = f'<?xml version="1.0" encoding="{label}"?>'.encode() + urlset(LOC)[21:]
    finding, urls = only_finding(document)
    assert (finding.code, finding.level, urls) == ("uncommon-form", "warning", 1)
    assert "write UTF-8" in finding.message


@pytest.mark.parametrize("label", ["utf-16", "utf-7", "us-ascii"])
def test_another_encoding_is_an_error(label):
    """Even where the bytes are the same."""
    document = f'<?xml version="1.0" encoding="{label}"?>'.encode() + urlset(LOC)[21:]
    assert found(document) == errors("wrong-encoding")


@pytest.mark.parametrize("space", [b"\n", b" \t\r\n", b" " * 200_000, b"\xef\xbb\xbf "])
def test_white_space_before_xml_without_a_declaration_is_a_warning(space):
    """It is well-formed; before a declaration it is not."""
    document = urlset(LOC)[21:]
    assert found(space + document) == warnings("uncommon-form")
    assert found(space + b"<?xml-stylesheet a?>" + document) == warnings("uncommon-form")
    assert found(space + urlset(LOC)) == errors("leading-whitespace")


@pytest.mark.parametrize("padding", [b"\0", b"\0" * 512, b"\0" * 200_000])
def test_zeros_after_gzip_are_a_warning(padding):
    """It is padding, also between members."""
    document = urlset(LOC)
    halves = gzip.compress(document[:50]) + padding + gzip.compress(document[50:])
    for packed in (gzip.compress(document) + padding, halves):
        assert found(packed) == warnings("uncommon-form")
        assert report_on(packed).urls == 1


@pytest.mark.parametrize(
    "others", [IMAGE, 'xmlns:xhtml="http://www.w3.org/1999/xhtml"', 'xmlns:x="urn:x"']
)
def test_an_empty_document_for_news_and_others_is_an_error(others):
    """Only one that is for news alone may be empty."""
    assert found(urlset(attributes=f"{NEWS} {others}")) == errors("empty-sitemap")
    xsi = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    assert found(urlset(attributes=f"{NEWS} {xsi}")) == warnings("no-entries")


# Duplicates, and what is escaped twice

PLAIN = "https://www.example.com/a"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (PLAIN, PLAIN),
        ("https://www.example.com/%c3%b1", "https://www.example.com/%C3%B1"),
        ("https://www.example.com/%61", PLAIN),
        ("https://www.example.com:443/a", PLAIN),
        ("HTTPS://WWW.example.com/a", PLAIN),
        ("https://www.example.com", "https://www.example.com/"),
        ("https://www.example.com/?a&amp;b'", "https://www.example.com/?a&#38;b&apos;"),
        (PLAIN, f" {PLAIN} "),
    ],
)
@pytest.mark.parametrize("make", [urlset, index])
def test_a_duplicate_is_a_warning_in_its_line(first, second, make):
    """In whatever spelling, with any number of URLs before it, parsed or not."""
    for pair in ((first, second), (second, first)):
        locations = [pair[0], *(f"{PLAIN}/{number}" for number in range(3_000)), pair[1]]
        report = report_on(make(*(f"\n<loc>{location}</loc>" for location in locations)))
        assert report.valid
        lines = [(f.code, f.level, f.line) for f in report.findings]
        assert lines == [("duplicate-url", "warning", 3_002)]


@pytest.mark.parametrize(
    "other", [f"{PLAIN}/", f"{PLAIN}?", "https://www.example.com/A", "http://www.example.com/a"]
)
def test_other_urls_are_no_duplicates(other):
    """Escapes of what has to be escaped are other URLs, too."""
    assert report_on(urlset(f"<loc>{PLAIN}</loc>", f"<loc>{other}</loc>")).findings == ()
    slashes = ["https://www.example.com/a%2Fb", "https://www.example.com/a/b"]
    assert report_on(urlset(*(f"<loc>{each}</loc>" for each in slashes))).findings == ()


@pytest.mark.slow
def test_every_repetition_is_counted():
    """Whether the entries are ordinary, and also where each URL is repeated."""
    locations = [f"{PLAIN}/{number % 1_000}" for number in range(3_000)]
    report = report_on("\n".join(locations).encode())
    assert report.counts == {"duplicate-url": 2_000}
    report = report_on(urlset(*(f"<loc>{location}</loc>" for location in locations)))
    assert report.counts == {"duplicate-url": 2_000}


@pytest.mark.parametrize("path", ["?a=1&amp;amp;b=2", "caf%25C3%25A9", "?a&amp;lt;b", "%252F"])
@pytest.mark.parametrize("number", [0, 5])
def test_what_is_escaped_twice_is_a_warning(path, number):
    """In ordinary entries, too."""
    inners = [f"<loc>{PLAIN}/{each}</loc>" for each in range(10)]
    inners[number] = f"<loc>{PLAIN}/{path}</loc>"
    report = report_on(urlset(*inners))
    assert [(f.code, f.level) for f in report.findings] == warnings("escaped-twice")


@pytest.mark.parametrize(
    "path", ["?a=1&amp;b=2", "caf%C3%A9", "?u=https%3A%2F%2Fa.b%2F%2520", "100%25"]
)
def test_what_is_escaped_once_is_fine(path):
    """A parameter may hold a URL."""
    assert report_on(urlset(LOC, f"<loc>{PLAIN}/{path}</loc>")).findings == ()
