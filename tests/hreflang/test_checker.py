"""The checker of languages finds every kind of fault: what it passes is right."""

import gzip
import io

import pytest

from tests.hreflang.checker import LONGEST, check

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
    "cut off": ("</urlset>", "", "it cannot be read"),
    "a relative link": ('href="https://www.example.com/', 'href="/', "is no URL for a sitemap"),
    "a raw letter": ("/tea/", "/té/", "is no URL for a sitemap"),
    "a raw letter in loc": ("<loc>https://www.example.com/t", f"<loc>{SITE}/é", "is no URL for"),
    "a fragment": ("/tea/", "/tea/#a", "is no URL for a sitemap"),
    "too long a URL": ("/tea/", f"/{'a' * LONGEST}", "is no URL for a sitemap"),
}


@pytest.mark.parametrize(("old", "new", "fault"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_that_are_wrong(look, old, new, fault):
    """A file that cannot be read, and what is no URL, are reported."""
    faults = look({CHILD: GOOD.replace(old, new)}).faults
    assert any(fault in line for line in faults), faults


def test_all_faults_are_counted(look):
    """The first ones are reported; none is lost from the count."""
    report = look({CHILD: urlset(*[(f"/{n}/", "") for n in range(30)] * 2)})
    assert (len(report.faults), report.count) == (20, 30)
