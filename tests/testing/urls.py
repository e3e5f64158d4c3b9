"""Responses for assert_valid_sitemap to judge, beside the addresses of the tests' project."""

from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

from tests import urls

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def urlset(*locations):
    """Return a document that lists these locations."""
    listed = "\n".join(f"<url><loc>{location}</loc></url>" for location in locations)
    return f'<urlset xmlns="{NAMESPACE}">\n{listed}\n</urlset>'.encode()


def streamed(request):
    """Answer with a good sitemap, byte by byte."""
    document = urlset("https://www.example.com/a/")
    return StreamingHttpResponse(document[n : n + 1] for n in range(len(document)))


def elsewhere(request):
    """Answer with a sitemap of another host's pages."""
    return HttpResponse(urlset(*(f"https://elsewhere.example/{n}/" for n in range(20))))


def in_catalog(request):
    """Answer with a sitemap that may only list what is below /catalog/."""
    return HttpResponse(urlset("https://www.example.com/catalog/a/", "https://www.example.com/b/"))


def doubtful(request):
    """Answer with a sitemap that some readers may not accept."""
    entry = "<url><loc>https://www.example.com/</loc><lastmod>2999-01-01</lastmod></url>"
    return HttpResponse(f'<urlset xmlns="{NAMESPACE}">{entry}</urlset>')


urlpatterns = [
    path("streamed.xml", streamed),
    path("elsewhere.xml", elsewhere),
    path("catalog/sitemap.xml", in_catalog),
    path("doubtful.xml", doubtful),
    *urls.urlpatterns,
]
