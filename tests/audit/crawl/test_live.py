"""Crawls over HTTP, against a local server."""

import socket
from collections import Counter

import pytest

from django_sitemapkit.audit.crawl import crawl
from django_sitemapkit.audit.crawl.output import write_output
from django_sitemapkit.audit.web.live import LiveFetcher
from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.exceptions import RobotsUnavailable
from django_sitemapkit.sites import SitemapSite
from tests.audit.crawl.test_crawling import stored
from tests.audit.web.servers import serving

pytestmark = pytest.mark.django_db

ROOM = [(200, {}, b'<title>Room</title><a href="/">Home</a>')]


def html(*links):
    """Return the answers of a page with these links."""
    body = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return [(200, {}, f"<title>Page</title>{body}".encode())]


@pytest.fixture
def server():
    """Serve some pages."""
    with serving() as (base, answers):
        rules = b"User-agent: *\nDisallow: /no/"
        answers["/robots.txt"] = [(200, {"Content-Type": "text/plain"}, rules)]
        answers["/"] = html("/a/", "/b/", "/moved/", "/gone/", "/no/", "/inside/", "/retried/")
        answers["/a/"] = html(*(f"/room/{number}/" for number in range(40)))
        answers["/b/"] = ROOM
        answers["/moved/"] = [(302, {"Location": "/b/"}, b"")]
        answers["/inside/"] = [(302, {"Location": "http://169.254.169.254/latest/"}, b"")]
        answers["/retried/"] = [(503, {"Retry-After": "0"}, b""), *ROOM]
        for number in range(40):
            answers[f"/room/{number}/"] = ROOM
        yield base, answers


@pytest.fixture
def site(server, settings):
    """Give the site of the server."""
    settings.SITEMAPKIT_BASE_URL = server[0]
    return SitemapSite.at(server[0])


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4])
def test_pages_are_crawled_over_http(server, site, concurrency):
    """By threads, each URL once, and none that robots.txt blocks."""
    _, answers = server
    with LiveFetcher(allow_private=True) as fetcher:
        run = crawl(site, fetch=fetcher.fetch, concurrency=concurrency)
    assert (run.live, run.checked, run.bad, run.pending) == (True, 47, 1, 0)
    asked = [path for path, _, _ in answers.asked]
    assert len(asked) == 49  # With robots.txt, and a second request for what was unavailable.
    assert "/no/" not in asked
    assert dict(run.findings.values_list("url", "kind"))[f"{site.origin}/gone/"] == "broken-link"


@pytest.mark.slow
def test_several_threads_find_what_one_finds(server, site):
    """In the same order."""
    found = []
    for concurrency in (1, 3, 8):
        server[1]["/retried/"] = ROOM
        with LiveFetcher(allow_private=True) as fetcher:
            found.append(stored(crawl(site, fetch=fetcher.fetch, concurrency=concurrency)))
    assert found[0] == found[1] == found[2]


def test_private_addresses_are_refused(site):
    """The message says why nothing is crawled."""
    with LiveFetcher() as fetcher, pytest.raises(RobotsUnavailable, match="which is not public"):
        crawl(site, fetch=fetcher.fetch)


@pytest.mark.slow
def test_a_failing_robots_txt_blocks_nothing_for_good(server, site):
    """The next run continues the crawl."""
    answers = server[1]
    answers["/robots.txt"] = [(500, {}, b""), (404, {}, b"")]
    with LiveFetcher(allow_private=True) as fetcher:
        with pytest.raises(RobotsUnavailable, match=r"/robots.txt cannot be read, .* 500"):
            crawl(site, fetch=fetcher.fetch)
        assert crawl(site, fetch=fetcher.fetch).checked == 48


@pytest.mark.slow
def test_redirects_out_of_the_site_are_not_followed(server, site):
    """Neither to private addresses nor to anybody else's host."""
    with LiveFetcher(allow_private=True, timeout=1) as fetcher:
        run = crawl(site, fetch=fetcher.fetch)
    row = run.crawled.get(url=f"{site.origin}/inside/")
    assert (row.outcome, row.target) == ("redirect", "http://169.254.169.254/latest/")
    assert not run.crawled.filter(url__contains="169.254").exists()


@pytest.mark.slow
def test_time_ends_a_crawl_of_slow_pages(server, site):
    """Requests that wait for a thread are not made any more."""
    answers = server[1]
    with LiveFetcher(allow_private=True, rate=20) as fetcher:
        run = crawl(site, fetch=fetcher.fetch, concurrency=2, max_seconds=0.5)
    assert run.pending > 0
    assert len(answers.asked) < 30


@pytest.fixture
def with_files(server):
    """Let some pages show files and name others, of which some are missing."""
    answers = server[1]
    files = (
        "<img src=/fine.png srcset='/lost.png 2x'><script src=/lost.js></script>"
        "<link rel=stylesheet href=/fine.css><iframe src=/frame/></iframe><img src=/no/a.png>"
        "<iframe src=/both/></iframe><img src=/busy.png><img src=https://cdn.example/a.png>"
    )
    answers["/"] = [(200, {}, f"{files}<a href=/a/>A</a>".encode())]
    answers["/a/"] = [(200, {}, f"{files}<a href=/both/>Both</a>".encode())]
    answers["/frame/"] = html("/behind-the-frame/")
    answers["/both/"] = html("/behind-both/")
    answers["/fine.png"] = [(200, {"Content-Type": "image/png"}, b"png")]
    answers["/fine.css"] = [(405, {}, b""), (200, {"Content-Type": "text/css"}, b"a{}")]
    answers["/busy.png"] = [(403, {}, b"")]
    return answers


@pytest.mark.slow
def test_files_of_pages_are_checked(with_files, site, tmp_path):
    """Each is asked for once, without its body, and followed only if a link leads to it as well."""
    with LiveFetcher(allow_private=True) as fetcher:
        run = crawl(site, fetch=fetcher.fetch, concurrency=2)
    found = {url.removeprefix(site.origin): kind for url, kind in kinds_of(run)}
    assert found == {
        **dict.fromkeys(("/lost.png", "/lost.js", "/behind-both/"), "broken-link"),
        "/busy.png": "undetermined",
    }
    asked = Counter(path for path, _, _ in with_files.asked)
    assert (asked["/fine.png"], asked["/lost.png"], asked["/both/"]) == (1, 2, 1)
    assert {"/fine.png", "/fine.css", "/frame/"} < set(with_files.heads)
    assert asked["/fine.css"] == 2  # It refuses HEAD.
    assert not {"/no/a.png", "/behind-the-frame/"} & asked.keys()
    detail = run.findings.get(url=f"{site.origin}/lost.png").detail
    assert detail == f"404; linked from 2 pages: {site.origin}/ (<img>), {site.origin}/a/ (<img>)"
    assert (run.checked, run.bad, run.others_checked, run.undetermined) == (4, 1, 6, 0)
    write_output(site, run, tmp_path)
    assert len((tmp_path / "urls.txt").read_text().split()) == 3
    assert ",img," in (tmp_path / "links.csv").read_text()
    assert "png" not in (tmp_path / "pages.csv").read_text()


def test_a_crawl_continues_with_the_files(with_files, site):
    """However the one before ended: nothing is asked for twice, and nothing is left."""
    with LiveFetcher(allow_private=True) as fetcher:

        def interrupted(url, **options):
            if "lost" in url:
                raise KeyboardInterrupt
            return fetcher.fetch(url, **options)

        with pytest.raises(KeyboardInterrupt):
            crawl(site, fetch=interrupted)
        first = [path for path, _, _ in with_files.asked]
        with_files.asked.clear()
        run = crawl(site, fetch=fetcher.fetch)
    assert run.others_checked == 6
    assert not {"/", "/a/", "/both/"} & {path for path, _, _ in with_files.asked}
    assert "/a/" in first


@pytest.mark.parametrize("is_external", [False, True])
def test_malformed_urls_are_broken(server, site, is_external):
    """Nothing is asked for them, and nothing else but http is looked at."""
    written = (
        "htp://a.example/",
        "http://?a",
        "http://a b/",
        "mailto:a@b.example",
        "ssh://a/",
    )
    links = "".join(f"<a href='{url}'>A</a><img src='{url}'>" for url in written)

    def fetch(url, **options):
        assert url.startswith(site.origin)
        body = f"<title>A</title>{links}".encode() if url == f"{site.origin}/" else b""
        status = 200 if body else 404
        headers = (("Content-Type", "text/html"),)
        return Fetched(url=url, final_url=url, status=status, headers=headers, body=body)

    run = crawl(site, fetch=fetch, external=fetch if is_external else None)
    assert list(kinds_of(run)) == [(url, "broken-link") for url in written[:3]]
    assert (run.checked, run.bad, run.is_complete) == (1, 0, True)
    detail = run.findings.exclude(kind="missing").first().detail
    assert detail == f"not a valid URL; linked from 1 page: {site.origin}/ (“A”)"


def resolve(host, port):
    """Return the address of this machine, but for two names."""
    if host in {"127.0.0.1", "example.com"}:
        return ["127.0.0.1"]
    errors = {"name.invalid": socket.EAI_NONAME, "later.example": socket.EAI_AGAIN}
    raise socket.gaierror(errors[host], "No address")


@pytest.fixture
def other_host(server):
    """Serve another site, which the home page links to."""
    with serving() as (other, others):
        rules = b"User-agent: django-sitemapkit\nDisallow: /no/\n\nUser-agent: *\nDisallow: /"
        others["/robots.txt"] = [(200, {"Content-Type": "text/plain"}, rules)]
        others["/fine/"] = html("/lost/")
        others["/moved/"] = [(301, {"Location": "/gone/"}, b"")]
        others["/gone/"] = [(410, {}, b"")]
        for status in (401, 403, 429, 500, 503):
            others[f"/{status}/"] = [(status, {}, b"")]
        paths = ("fine", "moved", "none", "no", "401", "403", "429", "500", "503")
        links = "".join(f"<a rel=nofollow href={other}/{path}/>{path}</a>" for path in paths)
        links += f"<img src={other}/none.png><a href=http://user:word@{other[7:]}/>User</a>"
        links += "<a href=http://name.invalid/x>1</a><a href=http://later.example/x>2</a>"
        server[1]["/"] = server[1]["/a/"] = [(200, {}, f"{links}<a href=/a/>A</a>".encode())]
        yield other, others


@pytest.mark.slow
def test_links_to_other_hosts_are_checked_if_asked_for(other_host, site):
    """Once each, as their robots.txt allows. Only what is gone is broken; nothing is followed."""
    other, others = other_host
    with LiveFetcher(allow_private=True, retries=0, resolve=resolve) as fetcher:
        assert not list(kinds_of(crawl(site, fetch=fetcher.fetch)))
        assert not others.asked
        run = crawl(site, fetch=fetcher.fetch, external=fetcher.fetch)
    found = {url.removeprefix(other): kind for url, kind in kinds_of(run)}
    assert found == {
        **dict.fromkeys(("/moved/", "/none/", "/none.png"), "broken-link"),
        **{f"/{status}/": "undetermined" for status in (401, 403, 429, 500, 503)},
        "http://name.invalid/x": "broken-link",
        "http://later.example/x": "undetermined",
        f"http://user:word@{other[7:]}/": "undetermined",
    }
    asked = Counter(path for path, _, _ in others.asked)
    assert (asked["/robots.txt"], asked["/fine/"], asked["/none/"]) == (1, 1, 2)
    assert not {"/no/", "/lost/", "/"} & asked.keys()
    assert (run.checked, run.undetermined, run.is_complete) == (2, 0, True)
    detail = run.findings.get(url=f"{other}/moved/").detail
    assert detail.startswith(f"{other}/moved/ (301) → {other}/gone/ (410); linked from 2 pages: ")


def kinds_of(run):
    """Return the URL and the kind of each finding about links."""
    return run.findings.exclude(kind__in=("missing", "orphan")).values_list("url", "kind")
