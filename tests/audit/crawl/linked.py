"""A site with a web page for each fault that a crawl finds, and clean ones."""

from django.http import HttpResponse
from django.urls import path, re_path

from tests.audit.faulty import BASE, canonical, fail, page, robots, to
from tests.urls import urlpatterns as usual

ROBOTS = """User-agent: *
Disallow: /blocked/
"""


def links(*targets, rel=""):
    """Return links to some URLs, each with its own text."""
    attribute = f' rel="{rel}"' if rel else ""
    return "".join(f'<a href="{target}"{attribute}>To {target}</a>' for target in targets)


def file(request):
    """Answer with a file that is not a web page."""
    response = HttpResponse(b"%PDF-1.4", content_type="application/pdf")
    response.headers["Last-Modified"] = "Fri, 01 May 2026 12:00:00 GMT"
    return response


HOME = (
    *(
        "/clean/1/",
        "clean/2/",
        "./clean/3/?x=1#part",
        f"{BASE}/clean/4/",
        "//www.example.com/clean/5/",
    ),
    *("/missing/", "/error/", "/old/", "/chain/1/", "/to-nothing/", "/loop/1/", "/forbidden/"),
    *("/noindex/", "/nofollow/", "/based/", "/canonical/", "/file.pdf", "/blocked/1/", "/account/"),
    *("/refresh/", "/soft-404/", "/outside/", "/self/", "/endless-redirect/0/", "/to-blocked/"),
    *("https://other.example/", "http://www.example.com/plain/", "mailto:a@b.example", "#top"),
    *("javascript:void(0)", "tel:1", "/images/a b.png", "https://www.example.com:8443/port/"),
)
"""What the home page links to."""

PAGES = {
    "": page(body=links(*HOME) + links("/hidden/", rel="nofollow")),
    "old/": to("/clean/1/", 301),
    "chain/1/": to("/chain/2/", 301),
    "chain/2/": to("/clean/2/", 302),
    "to-nothing/": to("/missing/"),
    "to-blocked/": to("/blocked/2/"),
    "loop/1/": to("/loop/2/"),
    "loop/2/": to("/loop/1/"),
    "outside/": to("https://other.example/"),
    "account/": to("/accounts/login/?next=/account/"),
    "forbidden/": page(status=403),
    "error/": fail,
    "noindex/": page(head=robots("robots", "noindex"), body=links("/behind-noindex/")),
    "behind-noindex/": page(body=links("/missing/")),
    "nofollow/": page(head=robots("robots", "nofollow"), body=links("/hidden/")),
    "hidden/": page(),
    "based/": page(head='<base href="/base/">', body=links("page/")),
    "base/page/": page(body="<a href='/missing/'><img alt='An image'></a>"),
    "canonical/": page(head=canonical("/clean/1/")),
    "file.pdf": file,
    "refresh/": page(head='<meta http-equiv="refresh" content="0; url=/clean/1/">'),
    "soft-404/": page(body="<h1>Sorry, not found</h1>"),
    "self/": page(head=canonical("/self/"), body=links("/self/", "/self/#here", "")),
    "images/a%20b.png": file,
    "orphan/": page(body=links("/clean/1/")),
    "lonely/": page(),
    "robots.txt": lambda request: HttpResponse(ROBOTS, content_type="text/plain"),
}
"""View by path."""

LISTED = [
    *("/", "/nofollow/", "/based/", "/base/page/", "/self/", "/behind-noindex/"),
    *("/orphan/", "/lonely/", *(f"/clean/{number}/" for number in (1, 2, 4, 5))),
]
"""What the sitemap lists: two of these are linked from nowhere."""


def clean(request, number):
    """Answer with a clean page, which links to clean ones."""
    return page(body=links("/", "/clean/1/"), title=f"Clean {number}")(request)


def calendar(request, day):
    """Answer with a page of an endless calendar: ten further days, and one that is blocked."""
    days = [f"/calendar/{10 * int(day) + number}/" for number in range(1, 11)]
    return page(body=links(*days, f"/blocked/{day}/"))(request)


def endless_redirect(request, number):
    """Redirect to another URL each time."""
    return to(f"/endless-redirect/{int(number) + 1}/")(request)


urlpatterns = [
    *(path(name.replace("%20", " "), view) for name, view in PAGES.items()),
    re_path(r"^clean/([0-9]+)/$", clean),
    re_path(r"^calendar/([0-9]+)/$", calendar),
    re_path(r"^endless-redirect/([0-9]+)/$", endless_redirect),
    *usual,
]
