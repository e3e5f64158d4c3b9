"""What a crawl could not find out is said, and nothing is concluded from it."""

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.audit.auditing import audit
from django_sitemapkit.audit.crawl import crawl
from django_sitemapkit.audit.crawl.differences import crawl_differences
from django_sitemapkit.audit.crawl.output import write_output
from django_sitemapkit.audit.crawl.saving import save_pages
from django_sitemapkit.audit.models import SavedPage
from django_sitemapkit.audit.sections import CrawledSection
from django_sitemapkit.audit.web.in_process import InProcessFetcher
from django_sitemapkit.audit.web.pages import MAX_PAGE_LINKS
from django_sitemapkit.audit.web.responses import Fetched
from tests.audit.crawl.finished import BASE, DAY, STARTED
from tests.audit.crawl.finished import crawl as finished
from tests.factories import SITE
from tests.management import run

pytestmark = pytest.mark.django_db


class Listed(StaticSection):
    """A page that only /busy/ links to."""

    items = ("/", "/behind/")


@pytest.fixture
def listed(sections):
    """Register a section."""
    sections.add(Listed)
    return sections


def answering(**answers):
    """Return a function that fetches pages from a dict of their answers; /busy/ has none."""

    def fetch(url, *, follow_redirects=True):
        path = url.removeprefix(f"{BASE}/")
        answer = {"status": 404, "failure": "", "failure_code": "", "body": b""}
        if path == "":
            answer |= {"status": 200, "body": b"<title>Home</title><a href=/busy/>Busy</a>"}
        elif path != "robots.txt":
            answer |= {"status": None, "failure": "Too long.", "failure_code": "timeout"}
        answer |= answers.get(path, {})
        headers = (("Content-Type", "text/html"),)
        return Fetched(**{"url": url, "final_url": url, "headers": headers, **answer})

    return fetch


def kinds(crawled):
    """Return the kind of each finding by its path."""
    found = crawled.findings.values_list("url", "kind")
    return {url.removeprefix(BASE): kind for url, kind in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"status": 429, "failure": "", "failure_code": ""},
        {"status": 503, "failure": "", "failure_code": ""},
        {"status": 403, "failure": "Firewall.", "failure_code": "forbidden"},
        {"status": 200, "failure": "br", "failure_code": "invalid-encoding"},
    ],
)
def test_nothing_is_broken_or_an_orphan(listed, answer):
    """The URL is listed with what happened and with its links; the orphans are not judged."""
    crawled = crawl(SITE, fetch=answering(**{"busy/": answer}))
    assert kinds(crawled) == {"/busy/": "undetermined"}
    assert (crawled.bad, crawled.undetermined, crawled.is_partial) == (0, 1, True)
    assert "linked from 1 page" in crawled.findings.get().detail


def test_a_redirect_to_what_is_not_known_is_not_advised(listed):
    """Nor is the URL said to be linked that only the redirect leads to."""
    moved = {"status": 302, "failure": "", "failure_code": "", "hops": ((f"{BASE}/busy/", 302),)}
    crawled = crawl(SITE, fetch=answering(**{"busy/": {**moved, "final_url": f"{BASE}/x/"}}))
    assert kinds(crawled) == {"/busy/": "undetermined", "/x/": "undetermined"}
    details = crawled.findings.order_by("pk").values_list("detail", flat=True)
    assert details[0] == "Too long; a redirect or canonical link leads there"
    assert details[1].startswith(f"{BASE}/busy/ (302) → {BASE}/x/ (Too long.); linked from")


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        {"body": b"<title>T</title>", "failure": "Large.", "failure_code": "too-large"},
        {"body": b"<title>T</title>" + b"<a href=/>x</a>" * MAX_PAGE_LINKS},
    ],
)
def test_orphans_are_not_judged_by_a_part_of_a_page(listed, answer):
    """There may be more links in what was not read."""
    answer = {"status": 200, "failure": "", "failure_code": "", **answer}
    crawled = crawl(SITE, fetch=answering(**{"busy/": answer}))
    assert crawled.counts == {"undetermined": 1, "missing": 1}
    assert crawled.undetermined == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [b"<a rel=nofollow href=/behind/>x</a>", b"<meta name=robots content=none><a href=/behind/>x"],
)
def test_what_only_nofollow_links_lead_to_is_no_orphan(listed, body):
    """It is not asked for either, until another link leads there."""
    page = {"status": 200, "failure": "", "failure_code": ""}
    answers = {"busy/": {**page, "body": b"<title>T</title>" + body}}
    crawled = crawl(SITE, fetch=answering(**answers))
    assert "/behind/" not in kinds(crawled)
    assert crawled.checked == 2
    answers["busy/"]["body"] += b"<a href=/other/>x</a>"
    answers[""] = {**page, "body": b"<title>H</title><a href=/busy/>b</a><a href=/other/>o</a>"}
    answers["other/"] = {**page, "body": b"<title>O</title><a href=/behind/>x</a>"}
    answers["behind/"] = {**page, "body": b"<title>B</title>"}
    crawled = crawl(SITE, fetch=answering(**answers))
    assert crawled.crawled.get(url=f"{BASE}/behind/").outcome == "page"
    assert crawled.checked == 4


def test_without_its_robots_file_an_audit_knows_nothing(listed):
    """It is not taken for one that blocks every page."""
    answers = {"robots.txt": {"status": 503}}
    audited = audit(SITE, fetch=answering(**answers))
    assert kinds(audited) == {"/": "undetermined", "/behind/": "undetermined"}
    assert (audited.bad, audited.undetermined) == (0, 2)


UNKNOWN = {"path": "/busy/", "outcome": "unknown", "status": None}


@pytest.mark.slow
def test_the_files_keep_what_they_listed(tmp_path):
    """Pages that were not met, and the one without an answer; not those known to be gone."""
    write_output(SITE, finished("/", "/busy/", "/behind/", "/gone/"), tmp_path)
    gone = {"path": "/gone/", "outcome": "broken", "status": 404}
    write_output(SITE, finished("/", "/new/", UNKNOWN, gone), tmp_path)
    listed = [f"{BASE}{path}" for path in ("/", "/new/", "/busy/", "/behind/")]
    assert (tmp_path / "urls.txt").read_text().split() == listed
    assert (tmp_path / "sitemap.xml").read_text().count("<loc>") == 4
    assert (tmp_path / "sitemap.html").read_text().count("/behind/") == 2
    assert f"{BASE}/busy/,unknown" in (tmp_path / "pages.csv").read_text()
    write_output(SITE, finished("/", "/new/", at=STARTED + DAY), tmp_path)
    assert (tmp_path / "urls.txt").read_text().split() == listed[:2]


def test_saved_pages_stay(sections):
    """However long ago they were seen."""
    sections.add(CrawledSection)
    save_pages(SITE, finished("/", "/behind/"))
    saved = save_pages(SITE, finished("/", UNKNOWN, at=STARTED + 90 * DAY))
    assert (saved.removed, saved.is_complete) == (0, False)
    assert SavedPage.objects.count() == 2


def test_differences_are_between_what_is_known():
    """A page that was not met is not gone, and one without an answer has not changed."""
    earlier, later = finished("/", "/busy/", "/behind/"), finished("/", UNKNOWN)
    assert list(crawl_differences(earlier, later)) == []


@pytest.mark.slow
def test_a_partial_crawl_says_so_first(listed, settings, monkeypatch):
    """And fails after all is printed."""
    settings.ROOT_URLCONF = "tests.audit.crawl.linked"
    fetch = answering()
    monkeypatch.setattr(
        InProcessFetcher, "fetch", lambda self, url, **options: fetch(url, **options)
    )
    code, out, error = run("crawl_sitemaps")
    assert code == 1
    first, second, *_ = out.splitlines()
    assert first.startswith("Site 'default': PARTIAL: 2 URLs crawled, 1 not determined, 0 broken")
    assert second.startswith("  Could not be determined: 1.")
    assert error == "1 URL could not be determined: the result is partial."
