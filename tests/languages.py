"""What the tests of sections in several languages share: places, and reading sets of links."""

from lxml import etree

from django_sitemapkit import Route, Translated
from django_sitemapkit.audit.reader import validate
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.rendering import PageRendering
from tests.factories import declare
from tests.testapp.models import Place, PlaceTranslation

NAMESPACES = {
    "s": "http://www.sitemaps.org/schemas/sitemap/0.9",
    "x": "http://www.w3.org/1999/xhtml",
    "i": "http://www.google.com/schemas/sitemap-image/1.1",
    "v": "http://www.google.com/schemas/sitemap-video/1.1",
    "n": "http://www.google.com/schemas/sitemap-news/0.9",
}
ROUTE = Route("place", slug="slug")
COLUMNS = Route("place", slug=Translated("slug"))
ROWS = Route("place", slug=Translated("slug", relation="translations"))
CODES = "af ar be bg cs da de el en es et fi fr hr hu it lt lv nl pl"
TWENTY = [(code, code) for code in CODES.split()]
"""Languages that hreflang knows."""
IN_ALL = {"i18n": True, "alternates": True}


def place(name, *codes, **fields):
    """Make a place that has a slug in some languages, both in columns and in rows of its own."""
    slugs = {f"slug_{code}": f"{name}-{code}" for code in codes}
    made = Place.objects.create(slug=name, **slugs, **fields)
    for code in codes:
        PlaceTranslation.objects.create(place=made, language_code=code, slug=f"{name}-{code}")
    return made


def places(**options):
    """Return a section over places, in all their languages unless given."""
    return declare(**{"queryset": Place.objects.all(), "location": ROUTE, **IN_ALL, **options})


def render(section):
    """Return a finished rendering of all rows and its document, which is valid or empty."""
    keys = EVERYTHING if section.keyset else KeyRange(0, section.count_items())
    rendering = PageRendering(section, keys, section.site.scope())
    document = b"".join(rendering)
    if document:
        report = validate([document], section.site.address("index"))
        assert report.valid, report.findings
        assert {finding.code for finding in report.findings} <= {"old-news"}
    return rendering, document


def links(document):
    """Return what a document says of languages: by location, the links as codes and URLs.

    Each set holds the location itself, and is that of all locations in it that are listed here.
    """
    found = {}
    for url in etree.fromstring(document).iterfind("s:url", NAMESPACES):
        location = url.findtext("s:loc", None, NAMESPACES)
        assert location not in found, location
        tags = url.findall("x:link", NAMESPACES)
        assert {tag.get("rel") for tag in tags} <= {"alternate"}
        found[location] = [(tag.get("hreflang"), tag.get("href")) for tag in tags]
    for location, some in found.items():
        versions = [href for code, href in some if code != "x-default"]
        assert not some or location in versions, (location, some)
        assert all(found[href] == some for href in versions if href in found), location
    return found


def shown(section):
    """Return the links by path, without the origin, of all that a section lists."""
    return short(links(render(section)[1]), section.site.origin)


def short(found, origin):
    """Return links without an origin, as text: ``"en /en/a/"``."""
    return {
        location.removeprefix(origin): [
            f"{code} {href.removeprefix(origin)}" for code, href in some
        ]
        for location, some in found.items()
    }


def each_of(*versions):
    """Return what ``shown()`` returns where these versions link to each other: ``"en /en/a/"``."""
    return {version.partition(" ")[2]: list(versions) for version in versions}


def problems(section):
    """Return how often each problem is met."""
    return dict(render(section)[0].problems.counts)


def texts(document, path):
    """Return the texts at a path of each URL of a document."""
    urls = etree.fromstring(document).iterfind("s:url", NAMESPACES)
    return [[tag.text for tag in url.iterfind(path, NAMESPACES)] for url in urls]
