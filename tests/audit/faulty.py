"""A site with one web page for each fault that an audit finds, and clean ones."""

from django.http import HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.urls import path, re_path

from tests.urls import urlpatterns as usual

BASE = "https://www.example.com"

ROBOTS = """User-agent: *
Disallow: /blocked/
Disallow: /*.private$

User-agent: Googlebot
Disallow: /blocked-for-google/
Disallow: /*.private$
"""


def page(title="", head="", status=200, body="<p>Text</p>", **headers):
    """Return a view that answers with a web page."""

    def view(request):
        name = title or f"Page {request.path}"
        text = f'<!doctype html><html lang="en"><head><title>{name}</title>{head}</head><body>'
        response = HttpResponse(f"{text}{body}</body></html>", status=status)
        for header, value in headers.items():
            response.headers[header.replace("_", "-")] = value
        return response

    return view


def to(target, status=302):
    """Return a view that redirects."""

    def view(request):
        response = HttpResponseRedirect(target)
        response.status_code = status
        return response

    return view


def fail(request):
    """Fail as a view with a bug does."""
    raise ZeroDivisionError("a bug")


def untitled(request):
    """Answer without a title."""
    return HttpResponse("<!doctype html><html><head></head><body>Text</body></html>")


def broken_stream(request):
    """Break off in the middle."""

    def blocks():
        yield b"<html><head><title>Broken</title>"
        raise OSError("the disk is gone")

    return StreamingHttpResponse(blocks())


def robots(name, content):
    """Return a robots meta element."""
    return f'<meta name="{name}" content="{content}">'


def alternates(*versions):
    """Return language links in a head."""
    return "".join(
        f'<link rel="alternate" hreflang="{code}" href="{url}">' for code, url in versions
    )


def canonical(url):
    """Return a canonical link."""
    return f'<link rel="canonical" href="{url}">'


FAULTS = {
    "missing/": (page(status=404), "not-found"),
    "gone/": (page(status=410), "gone"),
    "bad-request/": (page(status=400), "client-error"),
    "forbidden/": (page(status=403), "client-error"),
    "too-many/": (page(status=429), "undetermined"),
    "unauthorised/": (page(status=401), "login"),
    "error/": (fail, "server-error"),
    "unavailable/": (page(status=503), "undetermined"),
    "broken-stream/": (broken_stream, "server-error"),
    "no-content/": (page(status=204), "no-answer"),
    "partial/": (page(status=206), "no-answer"),
    "to-nowhere/": (page(status=301), "redirect"),
    "login-redirect/": (to("/accounts/login/?next=/x/"), "login"),
    "moved/": (to("/clean/1/", 301), "redirect"),
    "found/": (to("/clean/1/"), "redirect"),
    "permanent/": (to("/clean/1/", 308), "redirect"),
    "chain/": (to("/moved/"), "redirect"),
    "elsewhere/": (to("https://other.example/"), "redirect"),
    "to-nothing/": (to("/missing/"), "not-found"),
    "loop/": (to("/loop/"), "redirect-loop"),
    "long-loop/": (to("/long-loop-2/"), "redirect-loop"),
    "refresh/": (page(head='<meta http-equiv="refresh" content="0; url=/clean/1/">'), "refresh"),
    "noindex/": (page(head=robots("robots", "noindex")), "noindex"),
    "none/": (page(head=robots("ROBOTS", "None")), "noindex"),
    "noindex-google/": (page(head=robots("googlebot", "noindex, follow")), "noindex"),
    "noindex-header/": (page(X_Robots_Tag="noindex"), "noindex"),
    "noindex-header-agent/": (page(X_Robots_Tag="googlebot: nofollow, noindex"), "noindex"),
    "expired/": (page(X_Robots_Tag="unavailable_after: 1 Jan 2020 00:00:00 GMT"), "noindex"),
    "canonical/": (page(head=canonical("/clean/1/")), "canonical"),
    "canonical-host/": (page(head=canonical("https://other.example/")), "canonical"),
    "canonical-header/": (page(Link=f'<{BASE}/clean/1/>; rel="canonical"'), "canonical"),
    "blocked-for-google/": (page(), "robots"),
    "report.private": (page(), "robots"),
    "soft-404/": (page(body="<h1>Sorry, not found</h1>"), "soft-404"),
    "untitled/": (untitled, "title-missing"),
    "empty-title/": (page(title=" "), "title-missing"),
    "repeated-title/": (page(title="Page /clean/1/"), "title-repeated"),
    "lastmod/": (page(Last_Modified="Wed, 01 Jan 2020 00:00:00 GMT"), "lastmod"),
    "canonical-conflict/": (
        page(head=canonical("/clean/1/"), Link=f'<{BASE}/clean/2/>; rel="canonical"'),
        "canonical-conflict",
    ),
    "en_UK/": (page(head=alternates(("en-UK", f"{BASE}/en_UK/"))), "hreflang-code"),
    "no-self/": (page(head=alternates(("es", f"{BASE}/no-self/es/"))), "hreflang-self"),
    "to-noindex/": (
        page(head=alternates(("en", f"{BASE}/to-noindex/"), ("es", f"{BASE}/noindex/"))),
        "hreflang-target",
    ),
    "one-way/": (
        page(head=alternates(("en", f"{BASE}/one-way/"), ("es", f"{BASE}/one-way/es/"))),
        "hreflang-return",
    ),
}
"""View and kind of finding by path."""

HELPERS = {
    "long-loop-2/": to("/long-loop/"),
    "accounts/login/": page(),
    "chosen/": page(head=alternates(("en", f"{BASE}/chosen/"), ("x-default", f"{BASE}/moved/"))),
    "no-self/es/": page(head=alternates(("en", f"{BASE}/no-self/"))),
    "one-way/es/": page(head=alternates(("es", f"{BASE}/one-way/es/"))),
    "robots.txt": lambda request: HttpResponse(ROBOTS, content_type="text/plain"),
    "blocked/": page(),
}
"""What the faulty pages lead to; not in the sitemap, but for what Googlebot may fetch."""


def is_soft_404(fetched):
    """Return whether a page says that there is none."""
    return b"Sorry, not found" in fetched.body


def clean(request, number):
    """Answer with a page that is as it should be, in many ways."""
    address = f"{BASE}{request.path}"
    heads = ("", canonical(address), canonical(request.path), robots("robots", "index, follow"))
    return page(head=heads[int(number) % len(heads)])(request)


urlpatterns = [
    *(path(name, view) for name, (view, _) in FAULTS.items()),
    *(path(name, view) for name, view in HELPERS.items()),
    re_path(r"^clean/([0-9]+)/$", clean),
    *usual,
]
