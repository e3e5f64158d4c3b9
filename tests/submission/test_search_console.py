"""Search Console: what is submitted, what is read back, and what goes wrong."""

import pytest

from django_sitemapkit.submission.models import SubmittedSitemap
from django_sitemapkit.submission.submit import submit
from tests.builds import BASE, SITE, edit_product, run
from tests.submission.conftest import ROBOT
from tests.submission.engines import answering, serving

pytestmark = pytest.mark.django_db

INDEX = f"{BASE}/sitemap.xml"


@pytest.mark.slow
def test_the_index_is_submitted_once_for_each_build(console):
    """The first build too: a sitemap is not a list of changes."""
    assert submit(SITE).sitemaps == 1
    assert submit(SITE).sitemaps == 0
    assert console.submitted == [(f"{BASE}/", INDEX)]
    edit_product()
    run()
    assert submit(SITE).sitemaps == 1
    assert console.tokens == 3


@pytest.mark.slow
def test_a_property_of_a_domain(console, settings):
    """By the key of the site."""
    settings.SITEMAPKIT_SUBMIT |= {"google_properties": {"default": "sc-domain:example.com"}}
    submit(SITE)
    assert console.submitted == [("sc-domain:example.com", INDEX)]


@pytest.mark.slow
def test_what_google_says_is_read_back(console):
    """Each time; errors and warnings are problems."""
    submit(SITE)
    assert SubmittedSitemap.objects.get().is_pending
    console.states[INDEX] = {
        "lastDownloaded": "2026-05-01T10:00:00Z",
        "isPending": False,
        "errors": "2",
        "warnings": "1000",
        "contents": [
            {"type": "web", "submitted": "40"},
            {"type": "image", "submitted": "2"},
        ],
    }
    assert submit(SITE).problems == [
        f"Search Console reports 2 errors in {INDEX}.",
        f"Search Console reports 1,000 warnings for {INDEX}.",
    ]
    row = SubmittedSitemap.objects.get()
    assert (row.is_pending, row.errors, row.warnings, row.submitted_urls) == (False, 2, 1000, 42)
    assert row.downloaded_at.isoformat() == "2026-05-01T10:00:00+00:00"
    assert row.read_at is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (
            (403, "User does not have sufficient permission"),
            (
                "Search Console: 403: User does not have sufficient permission. Add"
                f" {ROBOT} as a user of the property '{BASE}/'."
            ),
        ),
        ((500, "Backend Error"), "Search Console: 500: Backend Error."),
    ],
)
def test_a_refusal_is_tried_again(console, refusal, expected):
    """The row says why it failed, until it does not."""
    console.refusal = refusal
    result = submit(SITE)
    assert (result.sitemaps, result.problems) == (0, [expected])
    assert SubmittedSitemap.objects.get().failure == expected
    console.refusal = None
    assert submit(SITE).sitemaps == 1
    assert SubmittedSitemap.objects.get().failure == ""


@pytest.mark.slow
def test_no_connection(console, settings):
    """It is a problem of this run, and not an error."""
    settings.SITEMAPKIT_SUBMIT |= {"google_endpoint": "http://127.0.0.1:9/v3"}
    (problem,) = submit(SITE).problems
    assert problem.startswith("Search Console: ")


@pytest.mark.parametrize("text", ["", "{}", '{"type": "authorized_user"}'])
def test_a_file_that_is_no_key(console, settings, tmp_path, text):
    """The message names it."""
    file = tmp_path / "wrong.json"
    file.write_text(text)
    settings.SITEMAPKIT_SUBMIT |= {"google_credentials": file}
    (problem,) = submit(SITE).problems
    assert problem.startswith(f"{file} is not the JSON key of a service account: ")


@pytest.mark.slow
def test_a_proxys_error_page(console):
    """Its status counts, and not that it is no JSON."""
    console.refusal = (502, None)
    (problem,) = submit(SITE).problems
    assert problem == "Search Console: 502: Bad Gateway."


@pytest.mark.slow
@pytest.mark.parametrize(
    "state",
    [
        {"errors": "many"},
        {"contents": ["web"]},
        {"lastDownloaded": "2026-99-01T10:00:00Z"},
        {"lastDownloaded": 12},
    ],
)
def test_an_odd_answer_is_a_problem(console, state):
    """It ends neither this submission nor those of other sites."""
    console.states[INDEX] = state
    (problem,) = submit(SITE).problems
    assert problem.startswith("Search Console: ")
    assert SubmittedSitemap.objects.get().failure == problem


@pytest.mark.slow
def test_an_ill_formed_redirect_is_a_problem(console, settings):
    """As of a proxy before the API."""
    raw = b"HTTP/1.1 302 Found\r\nLocation: http://[::1/x\r\n\r\n"
    with serving(answering(raw)) as address:
        settings.SITEMAPKIT_SUBMIT |= {"google_endpoint": address}
        (problem,) = submit(SITE).problems
    assert problem.startswith("Search Console: ")


@pytest.mark.slow
def test_moments_without_time_zones(console, settings):
    """They are stored as the project stores moments."""
    settings.USE_TZ = False
    console.states[INDEX] = {"lastDownloaded": "2026-05-01T10:00:00Z"}
    assert submit(SITE).problems == []
    assert SubmittedSitemap.objects.get().downloaded_at.tzinfo is None
