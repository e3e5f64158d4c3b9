"""Pages of the project are fetched as an anonymous visitor gets them, and nothing else changes."""

import gc
import json
import logging

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connection, transaction
from django.test import override_settings
from django.urls import get_script_prefix, get_urlconf, set_urlconf
from django.utils import timezone, translation

from django_sitemapkit.audit.web.in_process import InProcessFetcher
from django_sitemapkit.conf import caching_sites, read_once
from django_sitemapkit.sites import SitemapSite
from tests.audit.web import urls

MAIN = SitemapSite.at("https://www.example.com")
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]


@pytest.fixture(autouse=True)
def project():
    """Use the views of these tests."""
    urls.closed.clear()
    logging.getLogger("django.request").setLevel(logging.CRITICAL)
    with override_settings(ROOT_URLCONF="tests.audit.web.urls", MIDDLEWARE=MIDDLEWARE):
        yield
    logging.getLogger("django.request").setLevel(logging.NOTSET)


def fetch(url, *sites, **options):
    """Fetch one URL."""
    url = f"https://www.example.com{url}" if url.startswith("/") else url
    return InProcessFetcher(sites or [MAIN], **options).fetch(url)


def shown(url, *sites):
    """Return what a view saw."""
    fetched = fetch(url, *sites)
    assert (fetched.status, fetched.failure) == (200, "")
    return json.loads(fetched.body)


def test_robots_txt_of_any_type():
    """It is read."""
    assert fetch("/robots.txt").body == b"Disallow: /"


def test_a_request():
    """It has the URL's host, scheme, path and query, a mark, and no cookies."""
    seen = shown("/show/espa%C3%B1a%20x/?a=1&b=%26#part")
    assert seen == {
        "url": "https://www.example.com/show/espa%C3%B1a%20x/?a=1&b=%26",
        "path_info": "/show/españa x/",
        "prefix": "/",
        "reverse": "/show/x/",
        "language": "en-us",
        "time_zone": "America/Chicago",
        "agent": "django-sitemapkit",
        "audit": "1",
        "cookies": {},
        "secure": True,
        "host": "www.example.com",
    }


def test_an_answer():
    """Status, headers, body and time."""
    fetched = fetch("/show/x/")
    assert fetched.url == fetched.final_url == "https://www.example.com/show/x/"
    assert (fetched.status, fetched.hops, fetched.failure) == (200, (), "")
    assert fetched.header("vary") == "Cookie"
    assert 0 < fetched.seconds < 5
    assert fetch("/none/").status == 404


def test_each_request_is_a_first_visit():
    """Cookies of one response are not sent with the next request."""
    fetcher = InProcessFetcher([MAIN])
    for _ in range(2):
        fetched = fetcher.fetch("https://www.example.com/show/x/")
        assert json.loads(fetched.body)["cookies"] == {}


def test_http_and_other_ports():
    """The scheme is the URL's; another port is another host."""
    assert not shown("http://www.example.com/show/x/")["secure"]
    assert shown("https://www.example.com:443/show/x/")["secure"]
    fetched = fetch("https://www.example.com:8443/show/x/")
    assert (fetched.status, fetched.failure_code) == (None, "foreign-host")


def test_a_site_below_a_path():
    """Its path is the script name: views and reverse() see what a server gives them."""
    below = SitemapSite.at("https://www.example.com/tienda%20ñ")
    seen = shown("/tienda%20%C3%B1/show/a/", below)
    assert seen["url"] == "https://www.example.com/tienda%20%C3%B1/show/a/"
    assert (seen["path_info"], seen["prefix"]) == ("/show/a/", "/tienda ñ/")
    assert seen["reverse"] == "/tienda%20%C3%B1/show/x/"
    assert shown("/tienda%20%C3%B1", below)["path_info"] == "/"
    for foreign in ("/show/a/", "/tienda%20%C3%B1x/show/a/"):
        assert fetch(foreign, below).failure_code == "foreign-host"
    seen = shown("/tienda%20%C3%B1/show/a/", MAIN, below)
    assert seen["prefix"] == "/tienda ñ/"


def test_a_site_with_its_own_urlconf():
    """Each site's URLs are resolved by its own."""
    other = SitemapSite.at("https://testserver", urlconf="tests.audit.web.urls_other")
    fetcher = InProcessFetcher([MAIN, other])
    assert fetcher.fetch("https://testserver/only/").body == b"testserver"
    assert fetcher.fetch("https://testserver/show/x/").status == 404
    assert fetcher.fetch("https://www.example.com/only/").status == 404
    assert fetcher.fetch("https://www.example.com/show/x/").status == 200


@pytest.mark.parametrize(
    ("path", "final", "status", "hops"),
    [
        ("/leave/permanent/?to=/show/x/", "/show/x/", 200, [301]),
        ("/leave/now/?to=/leave/permanent/%3Fto=/show/x/", "/show/x/", 200, [302, 301]),
        ("/show/x", "/show/x/", 200, [301]),
        ("/leave/now/?to=https://other.example/a", "https://other.example/a", 302, [302]),
        (
            "/leave/now/?to=http://www.example.com/show/x/",
            "http://www.example.com/show/x/",
            200,
            [302],
        ),
    ],
)
def test_redirects(path, final, status, hops):
    """They are followed on the site; a foreign target is named, not fetched."""
    fetched = fetch(path)
    base = "https://www.example.com" if final.startswith("/") else ""
    assert (fetched.final_url, fetched.status) == (base + final, status)
    assert [status for _, status in fetched.hops] == hops
    assert fetched.hops[0][0].startswith("https://www.example.com/")
    assert fetched.failure == ""


def test_a_redirect_loop():
    """It is a failure."""
    assert fetch("/loop/").failure_code == "redirect-loop"


@pytest.mark.parametrize("propagate", [False, True])
def test_exceptions_of_views(settings, propagate):
    """They are failures with status 500, on one line, also where Django lets them through."""
    settings.DEBUG_PROPAGATE_EXCEPTIONS = propagate
    fetched = fetch("/fail/")
    assert (fetched.status, fetched.failure_code) == (500, "exception")
    assert fetched.failure == r"The view raises LookupError: no\nsuch\x1bthing"


def test_exceptions_of_other_requests():
    """A request of another thread may fail meanwhile."""
    fetched = fetch("/fail-elsewhere/")
    assert (fetched.status, fetched.failure) == (200, "")


def test_a_host_that_django_refuses():
    """The failure names ALLOWED_HOSTS' part in it."""
    fetched = fetch("https://refused.example/show/x/", SitemapSite.at("https://refused.example"))
    assert (fetched.status, fetched.failure_code) == (400, "refused-host")
    assert "ALLOWED_HOSTS" in fetched.failure
    fetched = fetch("/bad/")
    assert (fetched.status, fetched.failure) == (400, "")


def test_a_foreign_host():
    """It is not asked for."""
    fetched = fetch("https://other.example/")
    assert (fetched.status, fetched.failure_code) == (None, "foreign-host")


def test_nothing_leaks():
    """Language, time zone, URLconf and script prefix are those from before."""
    set_urlconf("tests.urls")
    try:
        with translation.override("es"), timezone.override("Europe/Madrid"):
            before = get_script_prefix()
            assert fetch("/activate/").status == 200
            assert translation.get_language() == "es"
            assert timezone.get_current_timezone_name() == "Europe/Madrid"
            assert (get_urlconf(), get_script_prefix()) == ("tests.urls", before)
            assert shown("/show/x/")["language"] == "en-us"
    finally:
        set_urlconf(None)


@pytest.mark.parametrize("path", ["/show/x/", "/fail/", "/stream/plain/", "/image/"])
def test_signals(path):
    """Each request begins and ends once."""
    seen = []

    def note(signal, **_):
        seen.append(signal)

    for signal in (request_started, request_finished):
        signal.connect(note)
    try:
        fetch(path)
    finally:
        for signal in (request_started, request_finished):
            signal.disconnect(note)
    assert seen == [request_started, request_finished]


@pytest.mark.slow
def test_requests_leave_nothing_behind():
    """An audit of many pages takes no more memory than one of few."""
    fetcher = InProcessFetcher([MAIN])

    def objects_after(requests):
        for _ in range(requests):
            fetcher.fetch("https://www.example.com/show/x/")
        gc.collect()
        return len(gc.get_objects())

    before = objects_after(20)
    assert objects_after(100) - before < 50


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_endless_streams(kind):
    """As much as the limit is read, and the stream is closed."""
    fetched = fetch(f"/stream/{kind}/", max_bytes=4_500)
    assert (fetched.status, len(fetched.body)) == (200, 4_500)
    assert fetched.failure_code == "too-large"
    assert urls.closed == ["stream" if kind == "plain" else kind]


def test_streams_that_fail():
    """What the view raises later is found as well."""
    fetched = fetch("/stream/fails/")
    assert (fetched.status, fetched.failure) == (500, "The view raises OSError: broken")
    assert urls.closed == ["stream"]


def test_bodies_that_are_not_read():
    """Images and the like: only their headers count."""
    fetched = fetch("/image/")
    assert (fetched.status, fetched.body, fetched.failure) == (200, b"", "")
    for kind in ("video", "async-video"):
        assert fetch(f"/stream/{kind}/").body == b""


def test_large_bodies():
    """They are cut."""
    fetched = fetch("/large/", max_bytes=1_000)
    assert (len(fetched.body), fetched.failure_code) == (1_000, "too-large")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/query/", "/stream/plain/", "/stream/video/", "/fail/"])
def test_connections_stay_open(path):
    """Requests of an audit close no database connection, within a transaction or without."""
    connection.ensure_connection()
    open_connection = connection.connection
    before = (len(request_started.receivers), len(request_finished.receivers))
    connection.close_at = 0
    try:
        fetch(path, max_bytes=2_000)
        with transaction.atomic():
            fetch(path, max_bytes=2_000)
        assert connection.connection is open_connection
    finally:
        connection.close_at = None
    assert (len(request_started.receivers), len(request_finished.receivers)) == before
    assert request_finished.disconnect(close_old_connections)
    request_finished.connect(close_old_connections)


def test_what_functions_returned_as_sites_is_kept():
    """The fetched request reads its own, and forgets only those."""
    with caching_sites():
        assert read_once("key", lambda: "kept") == "kept"
        fetch("/")
        assert read_once("key", lambda: "read again") == "kept"
