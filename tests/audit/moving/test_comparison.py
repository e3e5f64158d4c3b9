"""What differs between another sitemap and the new one, why, and that nothing else does."""

import datetime as dt

import pytest
from django.utils.translation import override

from django_sitemapkit import Image, StaticSection
from django_sitemapkit.audit import sorting
from django_sitemapkit.audit.moving import SitemapComparison, comparison
from django_sitemapkit.exceptions import InvalidSitemap
from tests.audit.moving.documents import urlset
from tests.factories import SITE
from tests.overrides.setting import extra, rule
from tests.testapp.models import Product
from tests.testapp.serving import BASE, Products, declare, make_products

pytestmark = pytest.mark.django_db

EDITED = dt.datetime(2026, 3, 1, 3, 30, 15, 7, tzinfo=dt.UTC)


class Pages(StaticSection):
    """Pages by hand, each with the same values."""

    items = ["/a/", "/b/"]


@pytest.fixture
def compare(tmp_path):
    """Compare a document with the new sitemap."""

    def compared(document, ignored=(), site=SITE):
        (tmp_path / "old.xml").write_text(document)
        found = SitemapComparison(site, str(tmp_path / "old.xml"), ignored)
        lines = [str(difference) for difference in found]
        assert lines == [str(difference) for difference in found]  # It can be read again.
        return [line.replace(BASE, "") for line in lines], found.summary()

    return compared


NOWHERE = "No page of this site was found for this address. No section lists this URL."


def lines(compared):
    """Return the lines of a comparison."""
    return compared[0]


def pages(sections, *paths, **options):
    """Declare pages."""
    declare(sections, Pages, **({"items": [*paths]} if paths else {}), **options)


# What differs


def test_equal_sitemaps(sections, compare):
    """Whatever their order and their files are, and however often they list a URL."""
    pages(sections, "/b/", "/a/")
    make_products("x")
    declare(sections, Products)
    document = urlset(f"{BASE}/a/", f"{BASE}/products/all/x/", f"{BASE}/b/", f"{BASE}/a/")
    assert compare(document) == ([], "3 URLs before, 3 now: no differences.")


def test_added_and_removed_urls(sections, compare):
    """With the section, and with the reason."""
    pages(sections)
    extra("/c/")
    document = urlset(f"{BASE}/b/", f"{BASE}/d/")
    assert compare(document) == (
        [
            "+ /a/  section pages",
            "+ /c/  section extra-urls",
            f"- /d/  {NOWHERE}",
        ],
        "2 URLs before, 3 now: 2 added, 1 removed.",
    )


def test_why_a_url_is_removed(sections, compare):
    """A rule of editors, a row that the queryset does not have, or a URL that none can have."""
    pages(sections)
    declare(sections, Products, queryset=Product.objects.filter(public=True))
    make_products("draft", public=False)
    rule("/a/")
    paths = ("/a/", "/b/", "/b/../c/", "/products/all/draft/")
    document = urlset(*(f"{BASE}{path}" for path in paths), "https://cdn.example/x.pdf")
    with override("fr"):  # Commands speak English.
        excluded, draft, foreign, invalid = lines(compare(document))
    assert excluded == "- /a/  The exclusion rule /a/ excludes it."
    reason = "Section products does not list it: “public” is no."
    assert draft == f"- /products/all/draft/  {reason}"
    assert foreign.startswith("- https://cdn.example/x.pdf  URL not allowed: ")
    assert invalid.startswith("- /b/../c/  Invalid URL: '/b/../c/': it has a . or .. segment")


def test_not_all_are_explained(sections, compare, monkeypatch):
    """An inspection takes queries, and there may be many."""
    monkeypatch.setattr(comparison, "MAX_EXPLAINED", 1)
    pages(sections)
    document = urlset(*(f"{BASE}/{name}/" for name in "abcd"))
    first, second = lines(compare(document))
    assert first.startswith("- /c/  No page")
    assert second == "- /d/"


def test_changed_values(sections, compare):
    """Each tag with the old and the new value."""
    pages(sections, lastmod=dt.date(2026, 3, 1), changefreq="daily")
    document = urlset(
        f"<loc>{BASE}/a/</loc><lastmod>2026-03-02</lastmod><changefreq>Daily</changefreq>"
        "<priority>0.50</priority>",
        f"<loc>{BASE}/b/</loc><lastmod>2026-03-01</lastmod>",
    )
    assert compare(document) == (
        [
            "~ /a/  lastmod: 2026-03-02 → 2026-03-01; priority: 0.5 → none",
            "~ /b/  changefreq: none → daily",
        ],
        "2 URLs before, 2 now: 2 changed.",
    )
    ignored = ["lastmod", "priority"]
    assert lines(compare(document, ignored)) == ["~ /b/  changefreq: none → daily"]


@pytest.mark.parametrize(
    ("text", "differs"),
    [
        ("2026-02-28", False),  # 21:30 in Chicago.
        ("2026-03-01", True),
        ("2026-03-01T03:30:15Z", False),
        ("2026-02-28T21:30:15.9-06:00", False),
        ("2026-03-01T03:30:16+00:00", True),
        ("yesterday", True),
        ("", True),
    ],
)
def test_times(sections, compare, text, differs):
    """The same second, or the same day in TIME_ZONE where one names no time."""
    pages(sections, "/a/", lastmod=EDITED)
    document = urlset(f"<loc>{BASE}/a/</loc><lastmod>{text}</lastmod>")
    expected = f"~ /a/  lastmod: {text or 'none'} → 2026-03-01T03:30:15+00:00"
    assert lines(compare(document)) == [expected] * differs


def test_a_missing_time(sections, compare):
    """A time that only the old sitemap has is a change."""
    pages(sections, "/a/")
    document = urlset(f"<loc>{BASE}/a/</loc><lastmod>2026-03-01</lastmod>")
    assert lines(compare(document)) == ["~ /a/  lastmod: 2026-03-01 → none"]


def test_changed_extensions(sections, compare):
    """What only one of them has, of many the first three."""
    images = [Image(location=f"/{number}.jpg") for number in range(2)]
    pages(sections, "/a/", images=lambda self, item: images)
    locations = [f"{BASE}/{number}.jpg" for number in (1, 2, 3, 4, 5, 6)]
    old = "".join(f"<image:image><image:loc>{each}</image:loc></image:image>" for each in locations)
    assert lines(compare(urlset(f"<loc>{BASE}/a/</loc>{old}"))) == [
        "~ /a/  images: /2.jpg, /3.jpg, /4.jpg, 2 more → /0.jpg"
    ]
    assert lines(compare(urlset(f"{BASE}/a/"))) == ["~ /a/  images: none → /0.jpg, /1.jpg"]
    assert lines(compare(urlset(f"{BASE}/a/"), ["images"])) == []


# Spellings


def test_another_spelling_is_the_same_url(sections, compare):
    """It is shown with both, and nothing is removed or added."""
    pages(sections, "/ñ b/", "/~c/", "/d/")
    document = urlset(f"{BASE}/ñ b/", f"{BASE}/%7Ec/", "HTTPS://WWW.Example.com:443/d/")
    assert compare(document) == (
        [
            "= /%C3%B1%20b/  was /ñ b/",
            "= /d/  was HTTPS://WWW.Example.com:443/d/",
            "= /~c/  was /%7Ec/",
        ],
        "3 URLs before, 3 now: 3 respelled.",
    )


@pytest.mark.parametrize(
    "origin", ["http://www.example.com", "https://example.com", "http://localhost:8000"]
)
def test_another_host_is_one_line(sections, compare, origin):
    """For all URLs together; images and links on it are no other ones."""
    pages(sections, images=lambda self, item: [Image(location="/0.jpg")])
    image = f"<image:image><image:loc>{origin}/0.jpg</image:loc></image:image>"
    document = urlset(*(f"<loc>{origin}/{name}/</loc>{image}" for name in "ab"), f"{origin}/c/")
    (removed, host), summary = compare(document)
    assert removed.startswith(f"- {origin}/c/  ")
    assert host == f"=   was {origin}; 2 URLs"
    assert summary == "3 URLs before, 2 now: 1 removed, 2 respelled."


def test_another_host_and_another_spelling(sections, compare):
    """Then the URL has a line of its own, as one without any host has."""
    pages(sections, "/ñ/", "/b/")
    document = urlset("http://example.com/ñ/", "/b/")
    assert lines(compare(document)) == [
        "= /%C3%B1/  was http://example.com/ñ/",
        "= /b/  was /b/",
    ]


def test_one_path_on_several_hosts(sections, compare):
    """Equal hosts belong together, and then what is left, one to one."""
    pages(sections, "/a/")
    document = urlset("https://de.example.com/a/", f"{BASE}/a/", "https://en.example.com/a/")
    found, summary = compare(document)
    assert [line.partition("  ")[0] for line in found] == [
        "- https://de.example.com/a/",
        "- https://en.example.com/a/",
    ]
    assert summary == "3 URLs before, 1 now: 2 removed."


def test_one_path_with_http_and_https(sections, compare):
    """It is one URL, which is listed."""
    pages(sections, "/a/", "/b/")
    make_products("x")
    declare(sections, Products)
    paths = ("/a/", "/b/", "/products/all/x/")
    http = [f"http://www.example.com{path}" for path in paths]
    document = urlset(*(f"{BASE}{path}" for path in paths), *http)
    assert compare(document) == (
        ["=   was http://www.example.com; 3 URLs"],
        "6 URLs before, 3 now: 3 respelled.",
    )


def test_the_page_of_a_row_on_another_host(sections, compare):
    """Its row is listed on the host of the site: it is the host that is the reason."""
    make_products("x")
    declare(sections, Products)
    path = "/products/all/x/"
    (line,) = lines(compare(urlset(f"{BASE}{path}", f"https://de.example.com{path}")))
    assert line.startswith(f"- https://de.example.com{path}  URL not allowed: ")


def test_repeated_urls(sections, compare):
    """One of their entries has to be as it was."""
    pages(sections, "/a/", priority=0.5)
    first, second = (f"<loc>{BASE}/a/</loc><priority>0.{n}</priority>" for n in (4, 5))
    assert lines(compare(urlset(first, second))) == []
    assert lines(compare(urlset(first, first))) == ["~ /a/  priority: 0.4 → 0.5"]


def test_equal_entries_are_compared_once(sections, compare, monkeypatch):
    """However often both sitemaps list a URL: each with each would take too long."""
    compared = []
    changed_tags = SitemapComparison._changed_tags

    def counted(self, *arguments):
        compared.append(arguments)
        return changed_tags(self, *arguments)

    monkeypatch.setattr(SitemapComparison, "_changed_tags", counted)
    pages(sections, "/a/")
    assert compare(urlset(*[f"{BASE}/a/"] * 50))[0] == []
    assert len(compared) == 2  # The fixture compares twice.


# How it is done


def test_pages_that_overflow_are_read_to_their_end(sections, compare, settings):
    """The plan follows when they are served; here no row is missing, and nothing is stored."""
    declare(sections, Products)
    make_products(*(f"{number:02}{'x' * 150}" for number in range(40)))
    settings.SITEMAPKIT_MAX_BYTES = 4096
    urls = [f"{BASE}/products/all/{each.slug}/" for each in Product.objects.all()]
    assert compare(urlset(*urls)) == ([], "40 URLs before, 40 now: no differences.")


def test_an_empty_section(sections, compare):
    """It lists nothing, as the old sitemap may."""
    declare(sections, Products)
    assert compare(urlset()) == ([], "0 URLs before, 0 now: no differences.")


@pytest.mark.parametrize("limit", ["ROWS_IN_MEMORY", "CHARACTERS_IN_MEMORY"])
def test_many_urls(sections, compare, monkeypatch, limit):
    """They are sorted on disk, in parts."""
    monkeypatch.setattr(sorting, limit, 4)
    pages(sections, *(f"/{number:02}/" for number in range(10)))
    document = urlset(*(f"{BASE}/{number:02}/" for number in reversed(range(1, 11))))
    assert [line[:6] for line in lines(compare(document))] == ["+ /00/", "- /10/"]


def test_differences_for_programs(sections, tmp_path):
    """All that the lines have, and the numbers."""
    pages(sections, "/a/", "/b/", "/ñ/", priority=0.5)
    old = (f"{BASE}/a/", f"<loc>{BASE}/ñ/</loc><priority>0.5</priority>", f"{BASE}/d/")
    (tmp_path / "old.xml").write_text(urlset(*old))
    found = SitemapComparison(SITE, str(tmp_path))
    empty = {"before": "", "reason": "", "tags": {}}
    assert [difference.as_dict() for difference in found] == [
        empty | {"change": "respelled", "url": f"{BASE}/%C3%B1/", "before": f"{BASE}/ñ/"},
        empty | {"change": "changed", "url": f"{BASE}/a/", "tags": {"priority": [None, "0.5"]}},
        empty | {"change": "added", "url": f"{BASE}/b/", "reason": "section pages"},
        empty
        | {
            "change": "removed",
            "url": f"{BASE}/d/",
            "reason": NOWHERE,
        },
    ]
    assert found.as_dict() == {
        "site": "default",
        "before": 3,
        "after": 3,
        "added": 1,
        "removed": 1,
        "changed": 1,
        "respelled": 1,
    }


def test_unknown_tags(sections, tmp_path):
    """The message has those that there are."""
    with pytest.raises(ValueError, match=r"Unknown tags: loc, rank\. Known tags: lastmod, change"):
        SitemapComparison(SITE, str(tmp_path), ["rank", "lastmod", "loc"])


def test_what_cannot_be_read_is_an_error(sections, compare):
    """No line is printed before: the other URLs would seem to be removed."""
    pages(sections)
    with pytest.raises(InvalidSitemap, match=r"old\.xml: Parsing error: mismatched tag"):
        compare(urlset(f"{BASE}/x/", "<loc>"))
