"""The pages of a project that is killed while it audits or crawls them."""

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import include, path


def page(request, number):
    """Answer with one of five pages, four of which have a fault."""
    if number % 5 == 1:
        return HttpResponseRedirect("/page/0/")
    if number % 5 == 2:
        return HttpResponse(status=404)
    title = "Repeated" if number % 5 == 3 else f"Page {number}"
    robots = '<meta name="robots" content="noindex">' if number % 5 == 4 else ""
    # No page links to those whose number ends with 49 or 99.
    others = (other for other in range(number + 1, number + 11) if other % 50 != 49)
    links = "".join(f'<a href="/page/{other}/">{other}</a>' for other in others if other < 600)
    return HttpResponse(f"<html><head><title>{title}</title>{robots}</head>{links}</html>")


def home(request):
    """Answer with a page that links to the first one."""
    return HttpResponse('<title>Home</title><a href="/page/0/">First</a>', "text/html")


urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("", home),
    path("page/<int:number>/", page),
]
