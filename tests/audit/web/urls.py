"""Views as a project may have them."""

import asyncio

from django.contrib.sites.shortcuts import get_current_site
from django.core.signals import got_request_exception
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import get_script_prefix, path, re_path, reverse
from django.utils import timezone, translation

closed = []
"""What was closed, in this order."""


def show(request, **kwargs):
    """Answer with what the request is."""
    response = JsonResponse(
        {
            "url": request.build_absolute_uri(),
            "path_info": request.path_info,
            "prefix": get_script_prefix(),
            "reverse": reverse("show", args=["x"]),
            "language": translation.get_language(),
            "time_zone": timezone.get_current_timezone_name(),
            "agent": request.headers["User-Agent"],
            "audit": request.headers.get("X-Sitemapkit-Audit"),
            "cookies": request.COOKIES,
            "secure": request.is_secure(),
            "host": get_current_site(request).domain,
        },
        content_type="text/plain",
    )
    response.set_cookie("seen", "1")
    response["Vary"] = "Cookie"
    return response


def activate(request):
    """Leave a language and a time zone active, as LocaleMiddleware does."""
    translation.activate("fr")
    timezone.activate("Asia/Tokyo")
    return HttpResponse("ok")


def fail(request):
    """Raise with a message that is no single line."""
    raise LookupError("no\nsuch\x1bthing")


def fail_elsewhere(request):
    """Answer while another thread's view raises."""
    try:
        raise LookupError("not here")
    except LookupError:
        got_request_exception.send(sender=None, request=HttpRequest())
    return HttpResponse("ok")


def leave(request, target):
    """Redirect to what the query names."""
    return redirect(request.GET["to"], permanent=target == "permanent")


def query(request):
    """Use the database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse("ok")


def blocks(*, fails=False):
    """Yield without an end, and note that it was closed."""
    try:
        while True:
            yield b"x" * 1_000
            if fails:
                raise OSError("broken")
    finally:
        closed.append("stream")


async def async_blocks():
    """Yield without an end."""
    try:
        while True:
            await asyncio.sleep(0)
            yield b"x" * 1_000
    finally:
        closed.append("async")


def stream(request, kind):
    """Stream without an end."""
    content_type = "video/mp4" if "video" in kind else "text/html"
    content = async_blocks() if "async" in kind else blocks(fails=kind == "fails")
    return StreamingHttpResponse(content, content_type=content_type)


def image(request):
    """Answer with what is not read."""
    return HttpResponse(b"GIF89a", content_type="image/gif")


def large(request):
    """Answer with more than is read."""
    return HttpResponse("y" * 5_000)


def robots(request):
    """Answer as a static file of an unknown type."""
    return HttpResponse("Disallow: /", content_type="application/octet-stream")


urlpatterns = [
    path("robots.txt", robots),
    path("show/<str:what>/", show, name="show"),
    re_path("^$", show, {"what": "home"}),
    path("activate/", activate),
    path("fail/", fail),
    path("fail-elsewhere/", fail_elsewhere),
    path("leave/<str:target>/", leave),
    path("loop/", lambda request: redirect("/loop/")),
    path("query/", query),
    path("stream/<str:kind>/", stream),
    path("bad/", lambda request: HttpResponse("no", status=400)),
    path("image/", image),
    path("large/", large),
]
