"""A response is valid if it is a sitemap that follows the protocol at its address."""

import gzip

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import AsyncClient, Client, RequestFactory

from django_sitemapkit import ExternalSection
from django_sitemapkit.testing import assert_valid_sitemap, built_sitemaps
from django_sitemapkit.views import robots
from tests.testapp.serving import Readings, declare, make_readings

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.testing.urls")]

ROWS = 3_000
"""More than make one block of a response."""

ADDRESSES = [
    "/sitemap.xml",
    *(f"/sitemap-readings-1.{form}" for form in ("xml", "xml.gz", "txt", "txt.gz")),
]


@pytest.fixture
def readings(sections):
    """Declare a section whose page has many blocks."""
    make_readings(range(ROWS))
    return declare(sections, Readings)


def failure_of(response):
    """Return what is wrong with a response."""
    with pytest.raises(AssertionError) as failure:
        assert_valid_sitemap(response)
    return str(failure.value)


def judge_all(client, encoding):
    """Judge all kinds of responses; return those that are streamed."""
    streamed = []
    for address in ADDRESSES:
        response = client.get(address, headers={"accept-encoding": encoding})
        assert_valid_sitemap(response)
        body = response.getvalue()
        body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        assert b"https://www.example.com/" in body, "it can be read again"
        streamed += [address] if response.streaming else []
    return streamed


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_indexes_pages_and_texts_are_valid(client, readings, encoding):
    """Live and published, gzip or not, streamed or not."""
    assert judge_all(client, encoding) == ADDRESSES[1:]
    with built_sitemaps():
        assert judge_all(client, encoding) == ADDRESSES[1:]


@pytest.mark.slow
@pytest.mark.parametrize("built", [False, True])
def test_responses_of_the_async_client_are_valid(readings, built):
    """Through sync_to_async, as all that uses the database; they can be read again."""

    async def judge():
        client = AsyncClient()
        for address in ADDRESSES:
            response = await client.get(address)
            await sync_to_async(assert_valid_sitemap)(response)
            if response.streaming:
                assert response.is_async
                assert [block async for block in response.streaming_content]

    if built:
        with built_sitemaps():
            async_to_sync(judge)()
    else:
        async_to_sync(judge)()


def test_any_view_is_judged(client):
    """It need not be one of the package."""
    assert_valid_sitemap(client.get("/streamed.xml"))


def test_a_warning_is_no_failure(client):
    """The document is valid."""
    assert_valid_sitemap(client.get("/doubtful.xml"))


def test_errors_are_shown_with_their_lines(client):
    """The first ten of them."""
    first, *rest = failure_of(client.get("/elsewhere.xml")).splitlines()
    assert first == "https://www.example.com/elsewhere.xml is not a valid sitemap:"
    assert len(rest) == 10
    assert rest[0].startswith("  line 2: URL not allowed: 'https://elsewhere.example/0/'")


def test_warnings_are_not_among_the_errors(client):
    """They would only distract from what fails."""
    response = client.get("/doubtful.xml")
    response.content += b"more"
    _first, only = failure_of(response).splitlines()
    assert "Parsing error" in only


def test_the_address_decides_what_may_be_listed(client):
    """A sitemap in a folder lists what is below it."""
    _, only = failure_of(client.get("/catalog/sitemap.xml")).splitlines()
    assert "'/b/' is not below /catalog/" in only


def test_a_page_that_is_no_sitemap(client):
    """Such as a view that answers with text."""
    assert "/about/ is not a valid sitemap:" in failure_of(client.get("/about/"))


def test_declared_hosts_may_be_listed(client, sections):
    """Those of external sections, by the index."""
    external = {"sitemaps": ["https://cdn.example.com/a.xml"], "hosts": ["https://cdn.example.com"]}
    declare(sections, ExternalSection, **external)
    assert_valid_sitemap(client.get("/sitemap.xml"))


def test_the_status_is_200(client, sections, settings):
    """Whatever else it is, and where it leads."""
    assert failure_of(client.get("/sitemap.xml")) == "/sitemap.xml has the status 404."
    settings.MIDDLEWARE = ["django.middleware.security.SecurityMiddleware"]
    settings.SECURE_SSL_REDIRECT = True
    assert failure_of(Client().get("/sitemap.xml")) == (
        "/sitemap.xml has the status 301, a redirect to https://testserver/sitemap.xml."
    )


@pytest.mark.slow
def test_the_host_decides_which_site_it_is(client, readings, settings):
    """Of several sites."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = {
        key: {"BASE_URL": f"https://{key}.example.com"} for key in ("uk", "us")
    }
    for key in ("uk", "us"):
        headers = {"host": f"{key}.example.com"}
        assert_valid_sitemap(client.get("/sitemap-readings-1.xml", headers=headers))
    assert "404" in failure_of(client.get("/sitemap.xml"))
    elsewhere = failure_of(client.get("/streamed.xml"))
    assert elsewhere == "SITEMAPKIT_SITES has no site at testserver/streamed.xml."


def test_only_the_test_client_says_where_it_was(readings):
    """A view that is called by itself has no address."""
    with pytest.raises(AttributeError):
        assert_valid_sitemap(robots(RequestFactory().get("/robots.txt")))
