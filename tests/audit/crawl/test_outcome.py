"""What one URL turns out to be."""

import pytest

from django_sitemapkit.audit.crawl.outcome import CrawlJudge, CrawlScope
from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.audit.web.robots import RobotsRules

BASE = "https://a.example"
URL = f"{BASE}/x/"


def judged(body="", status=200, robots="", rule=None, **fetched):
    """Return what a URL is that answers like this."""
    answer = {"headers": (("Content-Type", "text/html"),), "final_url": URL, **fetched}
    judge = CrawlJudge(
        lambda url, **options: Fetched(url=url, status=status, body=body.encode(), **answer),
        CrawlScope(BASE),
        RobotsRules(robots),
        user_agent="Googlebot",
        is_soft_404=rule,
    )
    return judge.outcome_of_crawled(URL, judge.fetch(URL))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({}, ("page", "", "")),
        ({"headers": (("Content-Type", "application/pdf"),)}, ("file", "", "")),
        ({"headers": ()}, ("file", "", "")),
        ({"status": 404}, ("broken", "", "404")),
        *(
            ({"status": status}, ("broken", "", str(status)))
            for status in (201, 204, 205, 206, 300, 304)
        ),
        ({"status": 301}, ("broken", "", "301 without a target")),
        *(
            ({"status": status}, ("unknown", "", str(status)))
            for status in (408, 425, 429, 502, 503, 504)
        ),
        *(
            ({"status": None, "failure": "Late.", "failure_code": code}, ("unknown", "", "Late."))
            for code in ("timeout", "unreachable", "unknown-host")
        ),
        (
            {"status": None, "failure": "Foreign.", "failure_code": "tls"},
            ("broken", "", "Foreign."),
        ),
        (
            {"status": 403, "failure": "No.", "failure_code": "forbidden"},
            ("unknown", "", "403: No."),
        ),
        ({"failure": "Cut off.", "failure_code": "incomplete"}, ("broken", "", "Cut off.")),
        ({"failure": "Large.", "failure_code": "too-large"}, ("page", "", "Large.")),
        ({"rule": lambda fetched: True}, ("broken", "", "soft 404")),
        ({"robots": "User-agent: *\nDisallow: /x"}, ("blocked", "", "")),
        ({"body": '<meta name="robots" content="noindex">'}, ("noindex", "", "")),
        ({"body": '<link rel="canonical" href="/y/">'}, ("duplicate", f"{BASE}/y/", "")),
        ({"body": '<link rel="canonical" href="/x/#top">'}, ("page", "", "")),
        (
            {"body": '<link rel="canonical" href="/y/"><meta name="robots" content="noindex">'},
            ("noindex", "", ""),
        ),
        ({"body": '<meta http-equiv="refresh" content="0;/y/">'}, ("redirect", f"{BASE}/y/", "")),
        ({"body": '<meta http-equiv="refresh" content="30;/x/">'}, ("page", "", "")),
    ],
)
def test_each_answer_has_an_outcome(answer, expected):
    """The first reason for not indexing it counts."""
    found = judged(**answer)
    assert (found.outcome, found.target, found.detail) == expected


@pytest.mark.parametrize(
    ("target", "following"),
    [
        (f"{BASE}/y/", f"{BASE}/y/"),
        ("https://b.example/", ""),
        (f"{BASE}/accounts/login/?next=/x/", ""),
    ],
)
def test_targets_of_redirects(target, following):
    """Those of the site are crawled, but for the login page."""
    found = judged(status=301, hops=((URL, 301),), final_url=target)
    assert (found.outcome, found.status, found.target) == ("redirect", 301, target)
    assert found.next == following


def test_a_redirect_to_what_is_not_a_url():
    """It is broken."""
    found = judged(
        status=301, hops=((URL, 301),), final_url=URL, failure="No URL.", failure_code="invalid-url"
    )
    assert found.outcome == "broken"
    assert found.detail.endswith("No URL.")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<a href="/y/">One</a> <a href="/y/#b">Two</a>', [(f"{BASE}/y/", "One")]),
        ('<a href="/y/"><img alt="An image"></a>', [(f"{BASE}/y/", "An image")]),
        ('<map><area href="y/" alt="Area"></map>', [(f"{URL}y/", "Area")]),
        ('<a href="/y/" rel="nofollow">One</a>', []),
        ('<meta name="robots" content="nofollow"><a href="/y/">One</a>', []),
        ('<meta name="robots" content="noindex"><a href="/y/">One</a>', [(f"{BASE}/y/", "One")]),
        ('<a href="https://b.example/">One</a><a href="mailto:a@b">Two</a>', []),
        (f'<a href="/{"y" * 3_000}">Long</a>', []),
        (f'<a href="/y/">{"x" * 3_000}</a>', [(f"{BASE}/y/", "x" * 200)]),
        ('<a href="/y\0z">\x1b[31m</a>', [(f"{BASE}/y%EF%BF%BDz", "[31m")]),
        ("<a href='/ñ/'>Ñ</a>", [(f"{BASE}/%C3%B1/", "Ñ")]),
    ],
)
def test_links_to_follow(body, expected):
    """Each URL of the site once, with the first text, as a database can store it."""
    assert [(link.url, link.text) for link in judged(body).links if link.is_asked] == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Fri, 01 May 2026 12:00:00 GMT", "2026-05-01T12:00:00+00:00"),
        ("Fri, 01 May 2026 12:00:00 +0200", "2026-05-01T10:00:00+00:00"),
        ("Fri, 31 Dec 9999 23:00:00 -2300", None),
        ("yesterday", None),
    ],
)
def test_last_modified(header, expected):
    """In UTC; what is not a moment is left out."""
    headers = (("Content-Type", "text/html"), ("Last-Modified", header))
    found = judged(headers=headers).lastmod
    assert (found and found.isoformat()) == expected
