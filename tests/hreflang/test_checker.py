"""The checker of languages finds every kind of fault: what it passes is right."""

import gzip
import io
import re

import pytest

from tests.hreflang.checker import LONGEST, MOST_BYTES, MOST_ENTRIES, check

SITE = "https://www.example.com"
INDEX = f"{SITE}/sitemap.xml"
CHILD = f"{SITE}/sitemap-pages-1.xml.gz"
OTHER = f"{SITE}/sitemap-pages-2.xml.gz"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
PLAIN = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
XHTML = 'xmlns:xhtml="http://www.w3.org/1999/xhtml"'


def link(code, path):
    """Return the link to a version."""
    href = path if "://" in path else SITE + path
    return f'<xhtml:link rel="alternate" hreflang="{code}" href="{href}"/>'


LINKS = link("en", "/tea/") + link("fr", "/fr/the/") + link("x-default", "/tea/")


def urlset(*entries):
    """Return a sitemap of entries, each a path and the links of its versions."""
    urls = "".join(f"<url><loc>{SITE}{path}</loc>{links}</url>" for path, links in entries)
    return f"{HEAD}<urlset {PLAIN} {XHTML}>{urls}</urlset>"


def index(*addresses):
    """Return an index of sitemaps."""
    children = "".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)
    return f"{HEAD}<sitemapindex {PLAIN}>{children}</sitemapindex>"


GOOD = urlset(("/tea/", LINKS), ("/fr/the/", LINKS))


@pytest.fixture
def look(tmp_path):
    """Give a function that checks documents by their addresses."""

    def checked(documents, **options):
        def read(address):
            body = documents[address].encode()
            return io.BytesIO(gzip.compress(body) if address.endswith(".gz") else body)

        documents.setdefault(INDEX, index(*documents))
        return check(INDEX, read, tmp_path, **{"default": "en", **options})

    return checked


def test_what_is_right_passes(look):
    """Two versions that link to each other, in two files, beside a page without any."""
    first = urlset(("/tea/", LINKS), ("/about/", ""))
    report = look({CHILD: first, OTHER: urlset(("/fr/the/", LINKS))})
    assert report.faults == []
    assert (report.files, report.urls, report.linked) == (2, 3, 2)
    assert (report.sets, report.codes) == (1, {"en fr x-default": 2})
    assert report.largest == len(first)


FAULTS = {
    "itself": (
        [("/tea/", LINKS), ("/fr/the/", LINKS), ("/tea/green/", LINKS)],
        "/tea/green/ does not link to itself",
    ),
    "itself only as x-default": (
        [("/tea/", link("fr", "/fr/the/") + link("x-default", "/tea/")), ("/fr/the/", LINKS)],
        "/tea/ does not link to itself",
    ),
    "no return link": (
        [("/tea/", LINKS), ("/fr/the/", link("fr", "/fr/the/"))],
        "/fr/the/ is linked to, and has not the same links itself",
    ),
    "no links at all": (
        [("/tea/", LINKS), ("/fr/the/", "")],
        "/fr/the/ is linked to, and has not the same links itself",
    ),
    "sets that differ": (
        [("/tea/", LINKS), ("/fr/the/", LINKS + link("es", "/es/te/"))],
        "/tea/ is linked to, and has not the same links itself",
    ),
    "not listed": ([("/tea/", LINKS)], "/fr/the/ is linked to, and not listed"),
    "a language twice": (
        [("/tea/", LINKS + link("FR", "/fr/the/")), ("/fr/the/", LINKS + link("FR", "/fr/the/"))],
        "has a language twice",
    ),
    "x-default": (
        [
            (
                "/tea/",
                LINKS.replace(
                    'x-default" href="https://www.example.com/tea/',
                    'x-default" href="https://www.example.com/fr/the/',
                ),
            ),
            ("/fr/the/", LINKS),
        ],
        "/tea/ has as x-default https://www.example.com/fr/the/, not https://www.example.com/tea/",
    ),
    "no x-default": (
        [("/tea/", link("en", "/tea/"))],
        "/tea/ has as x-default None, not https://www.example.com/tea/",
    ),
    "a host": (
        [("/tea/", LINKS + link("es", "https://www.example.es/te/"))],
        "/tea/ links to https://www.example.es/te/, on a host that is not declared",
    ),
    "listed twice": (
        [("/tea/", LINKS), ("/fr/the/", LINKS), ("/tea/", LINKS)],
        "/tea/ is listed 2 times",
    ),
}


@pytest.mark.parametrize(("entries", "fault"), FAULTS.values(), ids=FAULTS)
def test_sets_that_are_wrong(look, entries, fault):
    """Every kind of fault in what versions say of each other is reported."""
    assert fault in "\n".join(look({CHILD: urlset(*entries)}).faults)


def test_a_fault_between_two_files(look):
    """A page in one file that does not link back to one in the other is reported."""
    report = look({CHILD: urlset(("/tea/", LINKS)), OTHER: urlset(("/fr/the/", ""))})
    assert f"{SITE}/fr/the/ is linked to, and has not the same links itself" in report.faults


@pytest.mark.parametrize("code", ["eng", "ast", "us", "es-419", "en_GB", "xx", "en-GB-x", ""])
def test_codes(look, code):
    """A code is a language of ISO 639-1, with a script or a country at the most."""
    links = link(code, "/tea/")
    report = look({CHILD: urlset(("/tea/", links))}, default=None)
    assert report.faults == [f"{SITE}/tea/ links to a language {code.lower()!r}"]


@pytest.mark.parametrize("code", ["en", "en-GB", "zh-Hant", "zh-hant-tw", "EN-gb"])
def test_codes_that_are_right(look, code):
    """Case does not matter."""
    assert look({CHILD: urlset(("/tea/", link(code, "/tea/")))}, default=None).faults == []


def test_a_default_that_is_a_page_of_its_own(look):
    """A page that lets people choose need not be listed, and need not link back."""
    page = f"{SITE}/choose/"
    links = link("en", "/tea/") + link("x-default", page)
    document = {CHILD: urlset(("/tea/", links))}
    assert look({**document}, default=page).faults == []


def test_a_language_on_another_host(look):
    """What is declared to have a host of its own is not looked for on this one."""
    links = link("en", "/tea/") + link("fr", "https://www.example.fr/the/")
    document = {CHILD: urlset(("/tea/", links))}
    options = {"default": None, "elsewhere": ["https://www.example.fr"]}
    assert look(document, **options).faults == []


DOCUMENTS = {
    "no namespace": (f" {PLAIN}", "", "its root is urlset"),
    "the wrong namespace": ("http://www.sitemaps", "https://www.sitemaps", "its root is https:"),
    "a namespace below the root": (
        "<url><loc>https://www.example.com/tea/",
        f"<url {XHTML}><loc>https://www.example.com/tea/",
        "declared below the root",
    ),
    "a namespace twice": (XHTML, f"{XHTML} {XHTML.replace(':xhtml=', ':h=')}", "declared twice"),
    "a namespace without use": (
        XHTML,
        f'{XHTML} xmlns:x="urn:x"',
        "urn:x is declared and not used",
    ),
    "no declared prefix": (f" {XHTML}", "", "unbound prefix"),
    "white space in front": ("<?xml", " <?xml", "it cannot be read"),
    "another encoding": ("UTF-8", "ISO-8859-1", "its encoding is ISO-8859-1"),
    "cut off": ("</urlset>", "", "it cannot be read"),
    "a link before loc": ("<url><loc>", f"<url>{LINKS}<loc>", "loc is out of its order"),
    "lastmod behind a link": (
        "</url>",
        "<lastmod>2026-01-01</lastmod></url>",
        "lastmod is out of its order",
    ),
    "two loc": ("</loc>", "</loc><loc>https://www.example.com/x/</loc>", "loc is out of its order"),
    "an unknown element": ("</loc>", "</loc><title/>", "it has an element"),
    "a link with another rel": ('rel="alternate"', 'rel="canonical"', "a link has the attributes"),
    "a link without hreflang": ('hreflang="en" ', "", "a link has the attributes"),
    "a relative link": ('href="https://www.example.com/', 'href="/', "is no URL for a sitemap"),
    "a raw letter": ("/tea/", "/té/", "is no URL for a sitemap"),
    "a raw letter in loc": ("<loc>https://www.example.com/t", f"<loc>{SITE}/é", "' is no URL for"),
    "an entry of another name": ("</urlset>", "<entry/></urlset>", "it has an element"),
    "loc inside of loc": ("</loc>", "<loc/></loc>", "loc is inside of"),
    "text in a link": (
        'x-default" href="https://www.example.com/tea/"/>',
        f'x-default" href="{SITE}/tea/">text</xhtml:link>',
        "a link has the text 'text'",
    ),
    "a fragment": ("/tea/", "/tea/#a", "is no URL for a sitemap"),
    "too long a URL": ("/tea/", f"/{'a' * LONGEST}", "is no URL for a sitemap"),
    "a scheme": ("<loc>https:", "<loc>http:", "is outside of https://www.example.com/"),
    "an empty file": (r"(?s)<url>.*</url>", "", "it has 0 entries"),
    "too many": (
        r"(?s)<url>.*</url>",
        "".join(f"<url><loc>{SITE}/{n}</loc></url>" for n in range(MOST_ENTRIES + 1)),
        "it has 50,001 entries",
    ),
    "too large": ("</urlset>", f"</urlset>{' ' * MOST_BYTES}", "it has 52,"),
    "an index in an index": (
        r"(?s)<urlset.*</urlset>",
        f"<sitemapindex {PLAIN}><sitemap><loc>{SITE}/a.xml</loc></sitemap></sitemapindex>",
        "its root is http://www.sitemaps.org/schemas/sitemap/0.9 sitemapindex",
    ),
    "text between": ("<url>", "text<url>", "text between elements"),
    "a DOCTYPE": ("<urlset", "<!DOCTYPE urlset><urlset", "it has a DOCTYPE"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "fault"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_that_are_wrong(look, old, new, fault):
    """Every kind of fault in a file is reported."""
    pattern = old if old.startswith("(?s)") else re.escape(old)
    broken = re.sub(pattern, lambda _: new, GOOD)
    assert broken != GOOD
    faults = look({CHILD: broken}).faults
    assert any(fault in line for line in faults), faults


def test_what_is_not_gzip(tmp_path):
    """A file that is called .gz has to be one."""
    bodies = {INDEX: index(CHILD).encode(), CHILD: GOOD.encode()}
    report = check(INDEX, lambda address: io.BytesIO(bodies[address]), tmp_path)
    assert "it cannot be read: Not a gzipped file" in report.faults[0]


def test_a_child_that_is_elsewhere(look):
    """A child of the index is at or below the place of the index."""
    elsewhere = "https://cdn.example.com/sitemap-pages-1.xml"
    report = look({elsewhere: GOOD})
    assert f"{INDEX}: {elsewhere} is outside of {SITE}/" in report.faults


def test_all_faults_are_counted(look):
    """The first ones are reported; none is lost from the count."""
    entries = [(f"/{n}/", "") for n in range(30)] * 2
    report = look({CHILD: urlset(*entries)})
    assert (len(report.faults), report.count) == (20, 31)  # xhtml is declared for nothing, too
