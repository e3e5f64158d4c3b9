"""robots.txt has to name the indexes of a site."""

import pytest

from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.submission import robots
from django_sitemapkit.submission.robots import robots_problem, sitemaps_in_robots
from tests.submission.engines import Dripping, Quiet, serving


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"User-agent: *\nSitemap: {index}\n", ""),
        (b"\xef\xbb\xbfsitemap :{index}  # ours\r\n", ""),
        (b"User-agent: *\nAllow: /\n", "does not name"),
        (b"# Sitemap: {index}\n", "does not name"),
        (b"#" * 512_000 + b"\nSitemap: {index}\n", "does not name"),
        (None, "cannot be read: HTTP Error 404"),
    ],
)
def test_what_robots_txt_says(text, problem):
    """The first 500 KiB count, in the syntax of RFC 9309."""
    named = []

    class Handler(Quiet):
        def do_GET(self):  # noqa: N802
            self.send_response(404 if text is None else 200)
            self.end_headers()
            self.wfile.write((text or b"").replace(b"{index}", named[0].encode()))

    with serving(Handler) as address:
        index = f"{address}/sitemap.xml"
        named.append(index)
        found = robots_problem(SitemapSite.at(address))
    assert (problem in found) if problem else (found == "")


@pytest.mark.slow
def test_a_server_that_answers_a_byte_at_a_time(monkeypatch):
    """No read takes long, but the file has a time limit too."""
    monkeypatch.setattr(robots, "ROBOTS_SECONDS", 0.2)
    with serving(Dripping) as address:
        found = robots_problem(SitemapSite.at(address))
    assert found == (
        f"{address}/robots.txt cannot be read: the time limit of 0.2 seconds was reached."
    )


def test_relative_addresses_do_not_count():
    """They have to be absolute: https://www.sitemaps.org/protocol.html#submit_robots."""
    assert sitemaps_in_robots(
        "Sitemap: /sitemap.xml\nSitemap: http://[\nSITEMAP: https://a.example/s.xml"
    ) == {
        "http://[",
        "https://a.example/s.xml",
    }
