"""robots.txt is read as Google reads it (RFC 9309)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.audit.web.robots import MAX_ROBOTS_BYTES, RobotsRules

URL = "https://www.example.com/private/page?a=1"


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ("", True),
        ("User-agent: *\nDisallow: /private/", False),
        ("User-agent: *\nDisallow: /PRIVATE/", True),
        ("User-agent: *\nDisallow: /private/\nAllow: /private/page", True),
        ("User-agent: *\nDisallow: /*?a=", False),
        ("User-agent: *\nDisallow: /private/page$", True),
        ("User-agent: *\nDisallow: /*1$", False),
        ("User-agent: *\nAllow: /private/\nDisallow: /private/", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nDisallow: /other/", True),
        ("User-agent: GoogleBot\nUser-agent: bingbot\nDisallow: /", False),
        ("User-agent: Googlebot/2.1 (+http://a.example/)\rDisallow: /", False),
        ("User-agent: otherbot\nDisallow: /", True),
        ("\ufeffUser-agent: *\nDisallow: /", False),
        ("User-agent: *\r\nDisallow: / # all\r\n", False),
        ("<html>not found</html>", True),
    ],
)
def test_allows(rules, allowed):
    """The most specific group and the longest rule decide."""
    assert RobotsRules(rules).allows(URL) is allowed


def test_other_user_agents():
    """Each has its own group."""
    rules = RobotsRules("User-agent: bingbot\nDisallow: /")
    assert rules.allows(URL)
    assert not rules.allows(URL, "bingbot")


def test_only_the_first_500_kib_count():
    """A rule behind them does not."""
    long = "# ñ\n" * (MAX_ROBOTS_BYTES // 5 + 1)
    assert RobotsRules(f"{long}User-agent: *\nDisallow: /").allows(URL)


@pytest.mark.parametrize(
    ("status", "body", "allowed"),
    [
        (200, b"User-agent: *\nDisallow: /", False),
        (200, b"\xff\nUser-agent: *\nDisallow: /", False),
        (200, b"", True),
        (404, b"User-agent: *\nDisallow: /", True),
        (403, b"", True),
        (302, b"", True),
        (429, b"", False),
        (500, b"", False),
        (503, b"", False),
        (None, b"", False),
    ],
)
def test_what_came_of_fetching_it(status, body, allowed):
    """A missing file allows everything, a server that fails nothing."""
    fetched = Fetched(url="u", final_url="u", status=status, body=body)
    assert RobotsRules.of(fetched).allows(URL) is allowed


@given(st.text(), st.binary())
def test_nothing_raises(text, noise):
    """Whatever the file is."""
    text = f"User-agent: *\nDisallow: {text}\n{noise.decode('latin-1')}"
    RobotsRules(text).allows(URL)


def test_crawl_delay():
    """The longer one of the crawler's and this program's counts."""
    rules = "User-agent: *\nCrawl-delay: 5\n\nUser-agent: Googlebot\nDisallow: /x/"
    assert RobotsRules(rules).crawl_delay("Googlebot") == 5
    assert RobotsRules(f"{rules}\nCrawl-delay: 7").crawl_delay("Googlebot") == 7
    assert RobotsRules("User-agent: *\nCrawl-delay: -1").crawl_delay() == 0
