"""The scope of a crawl: the site's pages, and not those of other sites."""

import pytest

from django_sitemapkit.audit.crawl.outcome import CrawlScope
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.sites import SitemapSite

ROOT = SitemapSite.at("https://www.example.com")
SHOP = SitemapSite.at("https://www.example.com/shop", key="shop")
OTHER = SitemapSite.at("https://other.example", key="other")
SITES = [ROOT, SHOP, OTHER]


@pytest.mark.parametrize(
    ("site", "url", "expected"),
    [
        (ROOT, "https://www.example.com/", True),
        (ROOT, "https://www.example.com/a/?b=1", True),
        (ROOT, "https://www.example.com/shop", False),
        (ROOT, "https://www.example.com/shop?a", False),
        (ROOT, "https://www.example.com/shop/a/", False),
        (ROOT, "https://www.example.com/shops/", True),
        (ROOT, "http://www.example.com/", False),
        (ROOT, "https://www.example.com:444/", False),
        (ROOT, "https://www.example.com.evil.example/", False),
        (ROOT, "https://other.example/", False),
        (ROOT, "https://www.example.com/" + "a" * 3_000, False),
        (SHOP, "https://www.example.com/shop/a/", True),
        (SHOP, "https://www.example.com/shop", True),
        (SHOP, "https://www.example.com/", False),
        (SHOP, "https://www.example.com/shops/", False),
    ],
)
def test_what_belongs_to_a_site(site, url, expected):
    """What is at and below its base URL, without the sites below it."""
    assert CrawlScope.of(site, SITES).contains(url) == expected


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ([], ["/shop/"]),
        (["/shop/a/", "https://www.example.com/shop/a/"], ["/shop/a/"]),
        (["/shop/ñ/"], ["/shop/%C3%B1/"]),
    ],
)
def test_starts(starts, expected):
    """The home page, or what is given, once and in normal form."""
    found = CrawlScope.of(SHOP, SITES).start_urls(starts)
    assert found == [f"https://www.example.com{path}" for path in expected]


def test_a_folder_of_a_site():
    """Only what is in it belongs to the scope, and it is the start."""
    scope = CrawlScope.of(ROOT, SITES, "/blog/")
    assert scope.start_urls([]) == ["https://www.example.com/blog/"]
    assert scope.contains("https://www.example.com/blog/a/")
    assert not scope.contains("https://www.example.com/blogs/")
    assert not scope.contains("https://www.example.com/")
    for folder in ("/shop/", "https://other.example/", "blog"):
        with pytest.raises(InvalidValue):
            CrawlScope.of(ROOT, SITES, folder)


@pytest.mark.parametrize("start", ["/", "/shops/", "https://other.example/", "shop/", "/a/../b/"])
def test_starts_elsewhere(start):
    """They are refused."""
    with pytest.raises(InvalidValue):
        CrawlScope.of(SHOP, SITES).start_urls([start])
