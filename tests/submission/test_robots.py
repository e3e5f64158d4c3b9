"""robots.txt has to name the indexes of a site."""

import pytest

from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.submission import submit
from django_sitemapkit.submission.submit import robots_problem
from tests.submission.engines import Dripping, Quiet, serving


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"User-agent: *\nSitemap: {index}\n", ""),
        (b"\xef\xbb\xbfsitemap :{index}  # ours\r\n", ""),
        (b"User-agent: *\nAllow: /\n", "does not name"),
        (b"# Sitemap: {index}\n", "does not name"),
        (b"Sitemap: /sitemap.xml\n", "does not name"),  # It has to be absolute.
        (b"Sitemap: http://[\nSITEMAP: {index}", ""),
        (b"#" * 512_000 + b"\nSitemap: {index}\n", "does not name"),
        (None, "cannot be read: HTTP Error 404"),
    ],
)
def test_what_robots_txt_says(text, problem):
    """The first 500 KiB count, in the syntax of RFC 9309.

    Addresses are absolute: https://www.sitemaps.org/protocol.html#submit_robots.
    """
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
    monkeypatch.setattr(submit, "ROBOTS_SECONDS", 0.2)
    with serving(Dripping) as address:
        found = robots_problem(SitemapSite.at(address))
    assert found == (
        f"{address}/robots.txt cannot be read: the time limit of 0.2 seconds was reached."
    )
