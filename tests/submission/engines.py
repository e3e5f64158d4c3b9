"""Local servers of IndexNow and of Search Console."""

import json
import re
import time
from collections import deque
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote


@contextmanager
def serving(handler):
    """Serve on a port of the system's choice; yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(BaseHTTPRequestHandler):
    """Answers with JSON, and logs nothing."""

    def log_message(self, *args):
        """Log nothing."""

    def body(self):
        """Return the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, document=None, headers=()):
        """Send an answer."""
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Dripping(Quiet):
    """Sends a byte of its headers now and then, for seconds, as long as anyone listens."""

    def do_GET(self):
        with suppress(OSError):
            for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 500:
                self.wfile.write(bytes([byte]))
                time.sleep(0.01)

    def do_POST(self):
        self.body()
        self.do_GET()


def answering(raw):
    """Return a handler that answers with these bytes, whatever they are."""

    class Odd(Quiet):
        def do_POST(self):
            self.body()
            self.wfile.write(raw)
            self.close_connection = True

        def do_PUT(self):
            self.do_POST()

    return Odd


class IndexNow:
    """An engine that checks requests as https://www.indexnow.org/documentation says."""

    def __init__(self):
        self.requests = []
        """The documents that were accepted."""
        self.answers = deque()
        """Status and headers of the next answers, in the place of 200."""
        self.seen = 0

    def status_of(self, headers, text):
        """Return the status of a request by the rules of the protocol."""
        document = json.loads(text)
        right = headers["Content-Type"] == "application/json; charset=utf-8"
        urls = document.get("urlList")
        if not right or not urls or len(urls) > 10_000:
            return 400
        if not re.fullmatch("[A-Za-z0-9-]{8,128}", document["key"]):
            return 403
        if any(re.match("https?://([^/:]+)", url)[1] != document["host"] for url in urls):
            return 422
        self.requests.append(document)
        return 200

    @property
    def urls(self):
        """All URLs that were accepted, in order."""
        return [url for document in self.requests for url in document["urlList"]]

    def handler(self):
        """Return the handler of this engine's server."""
        engine = self

        class Handler(Quiet):
            def do_POST(self):
                text = self.body()
                engine.seen += 1
                planned = engine.answers.popleft() if engine.answers else None
                if planned is None:
                    self.answer(engine.status_of(self.headers, text))
                elif planned == "hang up":
                    self.close_connection = True
                    self.connection.close()
                elif callable(planned):
                    planned()
                    self.answer(engine.status_of(self.headers, text))
                else:
                    status, *headers = planned
                    self.answer(status, headers=headers)

            def do_GET(self):
                self.answer(404)

        return Handler


class SearchConsole:
    """The API of sitemaps, with the tokens of a service account."""

    def __init__(self):
        self.submitted = []
        """Property and address of each submission."""
        self.tokens = 0
        self.refusal = None
        """Status and message of the next answers."""
        self.states = {}
        """What it says of an address."""
        self.inspected = []
        """The URLs that were inspected, in order."""
        self.quota = 2_000
        """Inspections that are left."""
        self.index = {}
        """What the index has of a URL: an ``indexStatusResult``, or a status, or "hang up"."""

    def handler(self):
        """Return the handler of this server."""
        console = self

        class Handler(Quiet):
            def do_POST(self):
                if self.path == "/v1/urlInspection/index:inspect":
                    console.inspect(self)
                    return
                assert b"grant_type=" in self.body()
                console.tokens += 1
                self.answer(200, {"access_token": "secret", "expires_in": 3600})

            def do_PUT(self):
                console.take(self, submit=True)

            def do_GET(self):
                console.take(self, submit=False)

        return Handler

    def take(self, request, *, submit):
        """Answer one request of the API."""
        request.body()
        found = re.fullmatch("/v3/sites/([^/]+)/sitemaps/([^/]+)", request.path)
        if request.headers.get("Authorization") != "Bearer secret":
            request.answer(401, {"error": {"message": "Login required"}})
        elif found is None:
            request.answer(404, {"error": {"message": "Not found"}})
        elif self.refusal:
            status, message = self.refusal
            if message is None:
                request.send_error(status)
            else:
                request.answer(status, {"error": {"message": message}})
        elif submit:
            self.submitted.append(tuple(map(unquote, found.groups())))
            request.answer(204)
        else:
            address = unquote(found[2])
            request.answer(200, {"path": address, **self.states.get(address, {"isPending": True})})

    def inspect(self, request):
        """Answer one request of the URL Inspection API."""
        asked = json.loads(request.body())
        assert set(asked) == {"inspectionUrl", "siteUrl", "languageCode"}
        url = asked["inspectionUrl"]
        answer = self.index.get(url, NEVER_CRAWLED)
        if request.headers.get("Authorization") != "Bearer secret":
            request.answer(401, {"error": {"message": "Login required"}})
        elif self.quota == 0:
            request.answer(429, {"error": {"message": "Quota exceeded for sc-domain"}})
        else:
            self.quota -= 1
            self.inspected.append(url)
            if answer == "hang up":
                request.close_connection = True
                request.connection.close()
            elif isinstance(answer, int):
                request.answer(answer, {"error": {"message": "Backend Error"}})
            else:
                request.answer(200, {"inspectionResult": {"indexStatusResult": answer}})


NEVER_CRAWLED = {"verdict": "NEUTRAL", "coverageState": "URL is unknown to Google"}
"""What the index has of a URL that Google does not know."""
