"""Pages are fetched over HTTP, and no server can make it cost more than its bounds."""

import gzip
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import chain, repeat
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from django_sitemapkit.audit.web import connections
from django_sitemapkit.audit.web.connections import Stopwatch
from django_sitemapkit.audit.web.live import HostPace, LiveFetcher
from tests.audit.web.servers import serving, serving_raw

OK = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


@pytest.fixture(scope="module")
def server():
    """Serve all of this module's tests."""
    with serving() as (base, answers):
        yield base, answers


@pytest.fixture
def base(server):
    """Give the base URL of the server."""
    server[1].clear()
    server[1].asked.clear()
    server[1].clients.clear()
    return server[0]


@pytest.fixture
def answers(server, base):
    """Give what the server answers."""
    return server[1]


class Clock(list):
    """A clock that only waiting moves, as an event that is never set; a list of the seconds."""

    def __call__(self):
        return sum(self)

    def wait(self, seconds):
        self.append(seconds)

    def set(self):
        """Do nothing when the fetcher is closed."""

    @property
    def rounded(self):
        """The seconds of each wait, in tenths."""
        return [round(seconds, 1) for seconds in self]


@pytest.fixture
def slept():
    """Give the seconds that were waited."""
    return Clock()


@pytest.fixture
def fetcher(slept):
    """Give a fetcher that may fetch from here."""
    with LiveFetcher(allow_private=True, timeout=2, clock=slept, closed=slept) as fetcher:
        yield fetcher


def raw(answer, **options):
    """Return what came of fetching from a server that sends bytes."""
    if isinstance(answer, (str, bytes)):
        data = answer.encode() if isinstance(answer, str) else answer

        def answer(connection, received):
            connection.sendall(data)

    options = {"allow_private": True, "timeout": 2, "retries": 0} | options
    with serving_raw(answer) as host, LiveFetcher(**options) as fetcher:
        return fetcher.fetch(f"http://{host}/")


EARLY_HINTS = (
    "HTTP/1.1 102 Processing\r\n\r\n"
    "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
)


def test_informational_responses():
    """The page is what comes after them; servers that send them do so to everyone."""
    fetched = raw(f"{EARLY_HINTS}{OK}Content-Length: 1\r\n\r\na")
    assert (fetched.status, fetched.header("Link"), fetched.body) == (200, "", b"a")


def dripping(*parts):
    """Return an answer that sends its parts at once, then a byte of the last one in each 50 ms."""
    *first, last = parts

    def answer(connection, received):
        connection.sendall("".join(first).encode())
        for byte in last:
            connection.sendall(byte.encode())
            time.sleep(0.05)

    return answer


def test_a_page(fetcher, base, answers):
    """Its status, headers and body."""
    answers["/a%20b?c=d"] = [(200, {"X-Robots-Tag": "noindex"}, "ñ".encode())]
    fetched = fetcher.fetch(f"{base}/a b?c=d#e")
    assert (fetched.status, fetched.body, fetched.failure) == (200, "ñ".encode(), "")
    assert fetched.final_url == f"{base}/a%20b?c=d"
    assert fetched.header("x-robots-tag") == "noindex"
    assert 0 < fetched.seconds < 5
    _, headers, _ = answers.asked[0]
    assert headers["Host"] == base.removeprefix("http://")
    assert headers["User-Agent"] == "django-sitemapkit"
    assert headers["Accept-Encoding"] == "gzip"
    assert fetcher.fetch(f"{base}/none").status == 404
    fetcher.fetch(f"{base}/none?")
    assert answers.asked[-1][0] == "/none?"


def test_connections_are_kept(fetcher, base, answers):
    """Pages, redirects and empty answers of one server need one connection."""
    answers["/a"] = [(301, {"Location": "/b"}, b"moved")]
    answers["/b"] = [(200, {}, b"b")]
    answers["/c"] = [(204, {}, b"")]
    for path in "abcab":
        fetcher.fetch(f"{base}/{path}")
    assert len(answers.asked) == 7
    assert len(answers.clients) == 1


def test_connections_that_the_server_closed(fetcher, base, answers):
    """They are replaced."""
    answers["/"] = [(200, {"Connection": "close"}, b"a")]
    for _ in range(3):
        assert fetcher.fetch(base).body == b"a"
    assert len(answers.clients) == 3


@pytest.mark.slow
def test_a_connection_that_ends_when_it_is_used_again():
    """The page is asked for again, on a new one."""
    served = []

    def answer(connection, received):
        while received:
            served.append(received)
            if len(served) == 2:
                return  # Closed instead of an answer.
            connection.sendall(f"{OK}Content-Length: 1\r\n\r\na".encode())
            received = connection.recv(65_536)

    with serving_raw(answer) as host, LiveFetcher(allow_private=True, closed=Clock()) as fetcher:
        fetcher.clock = fetcher.closed
        for _ in range(2):
            assert fetcher.fetch(f"http://{host}/").body == b"a"
    assert len(served) == 3


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "0.0.0.0", "localhost"),
        *("10.0.0.1", "100.64.0.1", "169.254.169.254", "224.0.0.1", "[::1]", "[::]", "[fe80::1]"),
        *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[2002:7f00:1::]", "[64:ff9b::7f00:1]"),
    ],
)
def test_private_addresses(base, answers, host):
    """In no form are they asked for."""
    port = base.rpartition(":")[2]
    with LiveFetcher() as fetcher:
        fetched = fetcher.fetch(f"http://{host}:{port}/")
    assert (fetched.status, fetched.failure_code) == (None, "refused-address")
    assert answers.asked == []


def test_redirects_to_private_addresses(base, answers):
    """Each hop is checked."""
    port = base.rpartition(":")[2]
    answers["/"] = [(302, {"Location": f"http://127.0.0.1:{port}/secret"}, b"")]
    known = {"public.example": ["127.0.0.1"]}  # As a stand-in for a public one.
    with (
        pytest.MonkeyPatch.context() as patch,
        LiveFetcher(resolve=lambda host, port: known.get(host, [host])) as fetcher,
    ):
        allowed = iter([True, False])
        patch.setattr(
            "django_sitemapkit.audit.web.connections.is_public", lambda address: next(allowed)
        )
        fetched = fetcher.fetch(f"http://public.example:{port}/")
    assert (fetched.status, fetched.failure_code) == (None, "refused-address")
    assert [path for path, _, _ in answers.asked] == ["/"]
    assert fetched.hops == ((f"http://public.example:{port}/", 302),)


def test_rebinding(base, answers):
    """The address that was checked is the one that is connected to."""
    answers["/"] = [(200, {}, b"a")]
    looked_up = []

    def resolve(host, port):
        looked_up.append(host)
        return ["127.0.0.1"]

    port = base.rpartition(":")[2]
    with LiveFetcher(allow_private=True, resolve=resolve) as fetcher:
        # The system knows no such host: nobody else can have looked it up.
        fetched = fetcher.fetch(f"http://rebinding.invalid:{port}/")
    assert (fetched.body, looked_up) == (b"a", ["rebinding.invalid"])
    assert answers.asked[0][1]["Host"] == f"rebinding.invalid:{port}"


def test_a_kept_connection_is_no_way_around_the_check(base, answers):
    """Each page's host is resolved and checked, even where a connection is open."""
    answers["/"] = [(200, {}, b"a")]
    addresses = iter([["127.0.0.1"], ["10.0.0.1"]])
    port = base.rpartition(":")[2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "django_sitemapkit.audit.web.connections.is_public", lambda ip: ip == "127.0.0.1"
        )
        with LiveFetcher(resolve=lambda *a: next(addresses)) as fetcher:
            found = [fetcher.fetch(f"http://a.example:{port}/") for _ in range(2)]
    assert [fetched.failure_code for fetched in found] == ["", "refused-address"]


def test_several_addresses(base, answers, slept, fetcher):
    """The next one is tried where one does not answer."""
    answers["/"] = [(200, {}, b"a")]
    fetcher.resolve = lambda *a: ["127.0.0.2", "127.0.0.1"]
    assert fetcher.fetch(base).body == b"a"
    assert slept == []


@pytest.mark.slow
def test_the_certificate_must_be_the_hosts():
    """TLS asks for the host's name, not for the address."""
    hellos = []
    with serving_raw(lambda connection, received: hellos.append(received)) as host:
        port = host.rpartition(":")[2]
        with LiveFetcher(
            allow_private=True, resolve=lambda *a: ["127.0.0.1"], retries=0, timeout=2
        ) as fetcher:
            fetched = fetcher.fetch(f"https://shop.example:{port}/")
    assert fetched.failure_code in {"tls", "unreachable"}
    assert b"shop.example" in hellos[0]
    url = urlsplit("https://[2001:db8::1]/")
    connection = connections.Connections().pool(url, "2001:db8::1")._new_conn()
    assert (connection.host, connection.server_hostname) == ("2001:db8::1", "2001:db8::1")
    assert connection.ssl_context.check_hostname
    assert connection.cert_reqs == connection.ssl_context.verify_mode == 2


@pytest.mark.slow
def test_tls():
    """The address is pinned, the certificate verified for the host, and the connection kept."""
    pem = Path(__file__).with_name("shop.example.pem")
    with serving(pem) as (base, answers):
        port = base.rpartition(":")[2]
        answers["/"] = [(200, {}, b"a" * 100_000)]
        options = {"allow_private": True, "resolve": lambda *a: ["127.0.0.1"], "retries": 0}
        with LiveFetcher(**options) as fetcher, LiveFetcher(**options) as other:
            fetcher._connections._tls_context.load_verify_locations(pem)
            for _ in range(2):
                assert fetcher.fetch(f"https://shop.example:{port}/").body == b"a" * 100_000
            assert len(answers.clients) == 1
            for refused in (
                fetcher.fetch(f"https://other.example:{port}/"),
                other.fetch(f"https://shop.example:{port}/"),
            ):
                assert (refused.status, refused.failure_code) == (None, "tls")
                assert "certificate" in refused.failure
        assert len(answers.asked) == 2


@pytest.mark.slow
def test_a_connection_that_was_closed_meanwhile():
    """It is noticed before it is used."""
    served = []

    def answer(connection, received):
        served.append(received)
        connection.sendall(f"{OK}Content-Length: 1\r\n\r\na".encode())

    with serving_raw(answer) as host, LiveFetcher(allow_private=True, retries=0) as fetcher:
        for _ in range(2):
            assert fetcher.fetch(f"http://{host}/").body == b"a"
            time.sleep(0.05)
    assert len(served) == 2


def test_no_time_is_left():
    """Then nothing is asked for."""
    with LiveFetcher(allow_private=True, max_seconds_per_page=0) as fetcher:
        assert fetcher.fetch("http://127.0.0.1/").failure_code == "timeout"


def test_redirects(fetcher, base, answers):
    """They are followed to other hosts, too."""
    other = base.replace("127.0.0.1", "localhost")
    answers["/a"] = [(301, {"Location": f"{other}/b"}, b"x" * 100_000)]
    answers["/b"] = [(307, {"Location": "/c", "Content-Length": None}, b"")]  # No end is named.
    answers["/c"] = [(200, {}, b"c")]
    fetched = fetcher.fetch(f"{base}/a")
    assert fetched.seconds < 1
    assert (fetched.body, fetched.final_url) == (b"c", f"{other}/c")
    assert fetched.hops == ((f"{base}/a", 301), (f"{other}/b", 307))


def test_redirect_loops(fetcher, base, answers):
    """They end at once."""
    answers["/a"] = [(301, {"Location": "/b"}, b"")]
    answers["/b"] = [(301, {"Location": "/a"}, b"")]
    assert fetcher.fetch(f"{base}/a").failure_code == "redirect-loop"
    assert len(answers.asked) == 2


def test_gzip(fetcher, base, answers):
    """It is unpacked."""
    answers["/"] = [(200, {"Content-Encoding": "gzip"}, gzip.compress(b"page"))]
    assert fetcher.fetch(base).body == b"page"
    answers["/"] = [(200, {"Content-Encoding": "gzip"}, b"page")]
    assert fetcher.fetch(base).failure_code == "invalid-encoding"


@pytest.mark.slow
def test_a_gzip_bomb(fetcher, base, answers):
    """It is cut at the limit."""
    bomb = gzip.compress(bytes(30_000_000))
    answers["/"] = [(200, {"Content-Encoding": "gzip"}, bomb)]
    fetched = fetcher.fetch(base)
    assert (fetched.failure_code, len(fetched.body)) == ("too-large", 3_000_000)


def test_bodies_that_are_not_read(fetcher, base, answers):
    """Only pages, texts and XML are."""
    answers["/"] = [(200, {"Content-Type": "video/mp4"}, b"x" * 100)]
    fetched = fetcher.fetch(base)
    assert (fetched.status, fetched.body, fetched.failure) == (200, b"", "")


@pytest.mark.parametrize(
    "endless",
    [
        f"{OK}\r\n",
        f"{OK}Transfer-Encoding: chunked\r\n\r\n",
        f"{OK}Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n",
        f"{OK}X: ",
        "HTTP/1.1 200 ",
        "",
    ],
)
def test_servers_that_send_without_an_end(endless):
    """Whatever part of the response it is: memory and time are bounded."""

    def answer(connection, received):
        for block in chain([endless.encode()], repeat(b"0" * 100_000)):
            connection.sendall(block)

    start = time.monotonic()
    fetched = raw(answer, max_bytes=500_000)
    assert fetched.failure_code in {"too-large", "invalid-response"}
    assert time.monotonic() - start < 2


@pytest.mark.slow
@pytest.mark.parametrize("line", ["X-A: b\r\n", "HTTP/1.1 100 Continue\r\n\r\n"])
def test_headers_without_an_end(line):
    """They are refused."""

    def answer(connection, received):
        connection.sendall(b"HTTP/1.1 200 OK\r\n" if line.startswith("X") else b"")
        while True:
            connection.sendall(line.encode() * 1_000)

    assert raw(answer).failure_code in {"invalid-response", "too-large"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "status"),
    [
        (("", "HTTP/1.1 200 OK" + "k" * 60), None),
        ((OK, "X-A: " + "b" * 60), None),
        ((f"{OK}Content-Length: 99\r\n\r\n", "x" * 99), 200),
        ((f"{OK}\r\n", "x" * 99), 200),
        ((f"{OK}Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n" * 20), 200),
    ],
)
def test_slow_servers(parts, status):
    """A byte now and then does not keep a page beyond its deadline."""
    start = time.monotonic()
    fetched = raw(dripping(*parts), max_seconds_per_page=0.3)
    assert (fetched.failure_code, fetched.status) == ("timeout", status)
    assert time.monotonic() - start < 5


@pytest.mark.slow
def test_silent_servers():
    """They are left after the timeout, and not asked again."""
    start = time.monotonic()
    fetched = raw(lambda connection, received: time.sleep(0.4), timeout=0.2, retries=2)
    assert fetched.failure_code == "timeout"
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("", "unreachable"),
        ("nonsense\r\n\r\n", "invalid-response"),
        (f"{OK}Content-Length: 9\r\n\r\nshort", "invalid-response"),
        (f"{OK}Transfer-Encoding: chunked\r\n\r\nzz\r\n", "invalid-response"),
        (f"{OK}Content-Encoding: br\r\n\r\nx", "invalid-encoding"),
    ],
)
def test_broken_responses(answer, code):
    """Each has a reason."""
    fetched = raw(answer)
    assert fetched.failure_code == code
    assert fetched.failure


def test_a_port_where_nobody_listens(fetcher, slept):
    """It is asked again with growing pauses."""
    with serving_raw(lambda *a: None) as host:
        pass
    fetched = fetcher.fetch(f"http://{host}/")
    assert (fetched.failure_code, slept.rounded) == ("unreachable", [0.5, 1, 2, 4])
    assert "refused" in fetched.failure


def test_unknown_hosts(fetcher, slept):
    """They are not asked again."""
    assert fetcher.fetch("http://unknown.invalid/").failure_code in {"no-such-host", "unknown-host"}
    assert slept == []


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "file:///etc/passwd", "/x", "http://a@b/", ""])
def test_other_schemes(fetcher, url):
    """Only http and https are asked for."""
    assert fetcher.fetch(url).failure_code == "invalid-url"


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("retry_after", "waited"),
    [("7", [7] * 4), ("", [0.5, 1, 2, 4]), ("soon", [0.5, 1, 2, 4]), ("61", [])],
)
def test_retry_after(fetcher, base, answers, slept, status, retry_after, waited):
    """The server's wish counts, within bounds."""
    answers["/"] = [(status, {"Retry-After": retry_after}, b"")]
    assert fetcher.fetch(base).status == status
    assert slept.rounded == waited
    assert len(answers.asked) == 1 + len(waited)


def test_retry_after_a_date(fetcher, base, answers, slept):
    """It may be a moment; one in the past means that the pace alone counts."""
    moment = datetime.now(UTC) + timedelta(seconds=20)
    answers["/"] = [
        (503, {"Retry-After": format_datetime(moment, usegmt=True)}, b""),
        (503, {"Retry-After": "Fri, 25 Jun 2010 15:00:00"}, b""),
        (200, {}, b"back"),
    ]
    fetched = fetcher.fetch(base)
    assert (fetched.status, fetched.body) == (200, b"back")
    assert 15 < slept[0] <= 20
    assert slept.rounded[1:] == [0.5]
    assert fetched.seconds < 5


def test_all_pages_of_a_host_wait(fetcher, base, answers, slept):
    """Whichever was refused; those of another host do not."""
    answers["/"] = [(200, {}, b"a")]
    answers["/refused"] = [(503, {"Retry-After": "30"}, b"")]
    fetcher.retries = 0
    fetcher.fetch(f"{base}/refused")
    assert fetcher.fetch(base.replace("127.0.0.1", "localhost")).status == 200
    assert slept == []
    assert fetcher.fetch(base).status == 200
    assert slept.rounded == [30]


def test_refusals_at_the_same_time_are_one(slept):
    """Requests that were on their way say nothing of the slower pace."""
    pace, watch = HostPace(None, slept, slept), Stopwatch(30)
    begun = [pace.wait(watch) for _ in range(4)]
    for moment in begun:
        pace.record_refusal("/", moment)
    pace.wait(watch)
    assert slept.rounded == [0.5]


def test_pages_that_are_always_refused_are_not_the_host(fetcher, base, answers, slept):
    """Each is tried some times, and the next page is asked for."""
    answers["/"] = [(200, {}, b"a")]
    for name in ("/a", "/b", "/c"):
        answers[name] = [(503, {}, b"")]
        assert fetcher.fetch(base + name).status == 503
    assert fetcher.fetch(base).status == 200
    assert len(answers.asked) == 16


def test_a_host_that_refuses_for_long_is_left_alone(fetcher, base, answers, slept):
    """Nothing is asked for until the time is over that it named, or that grew with its refusals."""
    answers["/"] = [(200, {}, b"a")]
    for answer, asked in (((429, {"Retry-After": "3600"}, b""), 1), ((503, {}, b""), 8)):
        answers["/busy"], answers.asked[:] = [answer], []
        for _ in range(20):
            fetched = fetcher.fetch(f"{base}/busy")
        assert (fetched.status, fetched.failure_code) == (None, "postponed")
        assert fetcher.fetch(base).failure_code == "postponed"
        assert len(answers.asked) == asked
        slept.append(3_600)
        assert fetcher.fetch(base).body == b"a"
    assert sum(slept) < 2 * 3_600 + 70


def test_the_pace_follows_the_server(fetcher, base, answers, slept):
    """It falls with a refusal, and rises again with the answers, up to the rate."""
    fetcher.rate = 10
    answers["/"] = [*[(200, {}, b"a")] * 3, (503, {}, b""), (200, {}, b"a")]
    for _ in range(40):
        fetcher.fetch(base)
    waits = slept.rounded
    assert (waits[:3], max(waits), waits[-9:]) == ([0.1] * 3, 0.5, [0.1] * 9)


def test_the_default_rate(fetcher, base, answers, slept, monkeypatch):
    """Ten a second; this machine's own addresses have no limit."""
    answers["/"] = [(200, {}, b"a")]
    for _ in range(3):
        fetcher.fetch(base)
    assert slept == []
    monkeypatch.setattr("django_sitemapkit.audit.web.live.is_loopback", lambda ip: False)
    for _ in range(3):
        fetcher.fetch(base.replace("127.0.0.1", "localhost"))
    assert slept.rounded == [0.1, 0.1]


@pytest.mark.parametrize(("delay", "waited"), [("3", 3), ("0.5", 0.5), ("900", 60), ("soon", None)])
def test_crawl_delay(fetcher, base, answers, slept, delay, waited):
    """It counts from the request for robots.txt on, up to a minute."""
    rules = f"User-agent: *\nCrawl-delay: {delay}"
    answers["/robots.txt"] = [(200, {"Content-Type": "text/plain"}, rules.encode())]
    for path in ("/robots.txt", "/", "/"):
        fetcher.fetch(f"{base}{path}")
    assert slept.rounded == ([waited] * 2 if waited else [])


def test_robots_txt_of_any_type(fetcher, base, answers):
    """It is read, as storages serve a file without a known type; another file is not."""
    for path in ("/robots.txt", "/file"):
        answers[path] = [(200, {"Content-Type": "binary/octet-stream"}, b"Disallow: /")]
    assert fetcher.fetch(f"{base}/robots.txt").body == b"Disallow: /"
    assert fetcher.fetch(f"{base}/file").body == b""


def test_a_fetcher_that_is_closed_waits_no_longer(base, answers):
    """Its threads end."""
    answers["/"] = [(429, {"Retry-After": "30"}, b"")]
    with ThreadPoolExecutor(3) as threads:
        with LiveFetcher(allow_private=True) as fetcher:
            found = [threads.submit(fetcher.fetch, base) for _ in range(3)]
            while not answers.asked:
                time.sleep(0.01)
        assert {future.result(timeout=10).status for future in found} <= {429, None}


@pytest.mark.slow
def test_the_rate_is_shared(base, answers):
    """All threads together ask no more often, hops included."""
    answers["/a"] = [(302, {"Location": "/b"}, b"")]
    answers["/b"] = [(200, {}, b"b")]
    with LiveFetcher(allow_private=True, rate=50) as fetcher, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(fetcher.fetch, [f"{base}/a"] * 6))
    assert all(fetched.body == b"b" and fetched.seconds < 5 for fetched in found)
    times = sorted(moment for _, _, moment in answers.asked)
    assert len(times) == 12
    assert times[-1] - times[0] > 11 / 50 - 0.05


@pytest.mark.slow
def test_waiting_is_not_the_pages_time(base, answers):
    """A low rate makes no page slow, and none time out."""
    answers["/"] = [(200, {}, b"a")]
    with LiveFetcher(allow_private=True, rate=4, max_seconds_per_page=0.2) as fetcher:
        found = [fetcher.fetch(base) for _ in range(3)]
    assert [fetched.body for fetched in found] == [b"a"] * 3
    assert all(fetched.seconds < 0.2 for fetched in found)


def test_threads(fetcher, base, answers):
    """Each thread gets its own page."""
    for number in range(50):
        answers[f"/{number}"] = [(200, {}, f"{number}".encode() * 1_000)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(fetcher.fetch, [f"{base}/{number}" for number in range(50)]))
    assert [fetched.body for fetched in found] == [f"{n}".encode() * 1_000 for n in range(50)]
    assert len(answers.clients) <= 8
