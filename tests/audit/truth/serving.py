"""Answers for the site: over HTTP by a server, and within the process by a URLconf."""

from collections import Counter, deque
from contextlib import contextmanager
from random import Random
from urllib.parse import unquote

from django.http import HttpResponse
from django.urls import include, path, re_path

from tests.audit.truth.site import ROBOTS
from tests.audit.web.servers import Answers, serving

BASE, OTHER = "https://www.example.com", "https://other.example"

MISSING = b"<title>Page not found</title><h1>Page not found</h1><p>There is no such page.</p>"


def answer_of(url, base, other):
    """Return the status, the headers and the body that a URL answers with."""
    links = "".join(
        f'<a href="{_href(link)}">A link</a>\n' for link in url.links if _href(link) is not None
    )
    links += "".join(f'<a rel="nofollow" href="{link}">A link</a>\n' for link in url.nofollow)
    title = f"Title of {url.path}" if url.title is None else url.title
    text = (
        f'<!doctype html><html lang="en"><head><title>{title.replace("&", "&amp;")}</title>'
        f"{url.head}</head><body>{url.text}{links}</body></html>"
    )
    body = text if url.raw is None else url.raw
    headers = {"Content-Type": "text/html", **url.headers}
    if isinstance(body, str):
        body = _placed(body, base, other).encode(url.encoding)
    return url.status, {k: v and _placed(v, base, other) for k, v in headers.items()}, body


def _href(link):
    """Return the href of a link, or None if the text of the page has it."""
    href, arrow, _ = link.rpartition(" >")
    return href if arrow and href else None if arrow else link


def _placed(text, base, other):
    host = base.partition("://")[2]
    return text.replace("BASE", base).replace("OTHER", other).replace("HOST", host)


class Limited(Answers):
    """Two requests a second are answered, and 429 says no to the others."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock
        self._answered = deque([float("-inf")] * 2, 2)

    def take(self, path):
        """Return the answer of a path, or a refusal."""
        now = self._clock()
        if now - self._answered[0] < 1:
            return 429, {}, b""
        self._answered.append(now)
        return super().take(path)


class Unsteady(Answers):
    """One request of ten is answered with 503; which ones is the same each time."""

    def __init__(self, clock):
        super().__init__()
        self._asked = Counter()

    def take(self, path):
        """Return the answer of a path, or 503."""
        self._asked[path] += 1
        fails = Random(f"{path} {self._asked[path]}").random() < 0.1
        return (503, {}, b"") if fails else super().take(path)


class Mortal(Answers):
    """After ``left`` requests it ends all connections; None is for ever."""

    left = None

    def take(self, path):
        """Return the answer of a path, or None."""
        if self.left is None:
            return super().take(path)
        self.left -= 1
        return super().take(path) if self.left >= 0 else None


@contextmanager
def served(urls, answers=None):
    """Serve URLs and a second site over HTTP; gives both base URLs and the answers."""
    with serving() as (other, fine), serving(answers=answers) as (base, answers):
        fine["/fine/"] = [(200, {}, b"<title>Fine</title>")]
        fine["/sso/login?return_to=x"] = [(200, {}, b"<title>Sign in</title>")]
        answers["/robots.txt"] = [(200, {"Content-Type": "text/plain"}, ROBOTS.encode())]
        answers.missing = (404, {}, MISSING)
        for address, url in urls.items():
            if not address.startswith("OTHER"):
                answers[address] = [answer_of(url, base, other) if url.status else None]
        yield base, other, answers


_answered = {}


def serve_here(urls):
    """Let the URLconf answer some URLs, which are given by path."""
    _answered.clear()
    _answered.update((_decoded(address), url) for address, url in urls.items())


def respond(request, rest):
    """Answer as a view does."""
    query = request.META["QUERY_STRING"]
    if rest == "robots.txt":
        return HttpResponse(ROBOTS, content_type="text/plain")
    url = _answered.get(f"/{rest}?{query}" if query else f"/{rest}")
    if url is None:
        return HttpResponse(MISSING, status=404)
    if url.path == "/answers/raises/":
        raise ZeroDivisionError("a bug")
    status, headers, body = answer_of(url, BASE, OTHER)
    response = HttpResponse(body, status=status)
    for name, value in headers.items():
        if value is None:
            del response.headers[name]
        else:
            response.headers[name] = value
    return response


def _decoded(address):
    before, mark, query = address.partition("?")
    return unquote(before) + mark + query


urlpatterns = [path("", include("django_sitemapkit.urls")), re_path(r"^(?P<rest>.*)$", respond)]
