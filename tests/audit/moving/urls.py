"""A project that has its old sitemap and the new one at the same time."""

from django.contrib.sitemaps import Sitemap
from django.contrib.sitemaps import views as contrib
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path

from django_sitemapkit.views import old_address
from tests import urls
from tests.audit.moving.documents import index
from tests.testapp.models import Product

asked = []
"""What was requested of the views below: path, scheme and host."""


class OldProducts(Sitemap):
    """Products as contrib lists them, two on a page."""

    limit = 2

    def items(self):
        return Product.objects.order_by("pk").select_related("shop")

    def lastmod(self, product):
        return product.updated_at


SITEMAPS = {"sitemaps": {"products": OldProducts}}


def listing(request):
    """List what nothing answers for."""
    asked.append((request.path, request.scheme, request.get_host()))
    return HttpResponse(index("http://old.example/nothing.xml"), "application/xml")


def circular(request):
    """List a page of the new sitemap."""
    return HttpResponse(index("https://www.example.com/sitemap-products-1.xml"), "application/xml")


def nested(request):
    """List an index."""
    return HttpResponse(index("https://www.example.com/listing.xml"), "application/xml")


def broken(request):
    """Fail."""
    raise RuntimeError("no such shelf")


def moved(request):
    """Answer elsewhere."""
    return HttpResponseRedirect("/listing.xml")


urlpatterns = [
    path("old/sitemap.xml", contrib.index, SITEMAPS, name="old-index"),
    path(
        "old/sitemap-<section>.xml",
        contrib.sitemap,
        SITEMAPS,
        name="django.contrib.sitemaps.views.sitemap",
    ),
    path("old/all.xml", contrib.sitemap, SITEMAPS, name="old-sitemap"),
    path("listing.xml", listing, name="listing"),
    path("circular.xml", circular, name="circular"),
    path("nested.xml", nested, name="nested"),
    path("broken.xml", broken, name="broken"),
    path("moved.xml", moved, name="moved"),
    path("old.xml", old_address, name="old-address"),
    *urls.urlpatterns,
]
