"""Asks contrib's views and those of the drop-in for all pages of a sitemap, and reads them."""

from importlib import import_module

from django.http import Http404
from django.test import RequestFactory
from lxml import etree

NAMESPACES = {
    "s": "http://www.sitemaps.org/schemas/sitemap/0.9",
    "x": "http://www.w3.org/1999/xhtml",
}
HOST = "www.example.com"
BASE = f"https://{HOST}"


class Kit:
    """Contrib or the drop-in: its classes, and its views with its templates."""

    def __init__(self, module, use):
        self.Sitemap = module.Sitemap
        self.GenericSitemap = module.GenericSitemap
        self.views = import_module(f"{module.__name__}.views")
        self._use = lambda: use(module)

    def activate(self):
        """Let the templates be those of the module."""
        self._use()

    def sitemap(self, sitemaps, page=1, section=None, headers=(), **options):
        """Return the answer of the view ``sitemap``, rendered."""
        request = asked("/old.xml", headers, p=page)
        return self._rendered(self.views.sitemap(request, sitemaps, section, **options))

    def index(self, sitemaps, headers=(), **options):
        """Return the answer of the view ``index``, rendered."""
        options = {"sitemap_url_name": "section", **options}
        return self._rendered(self.views.index(asked("/index.xml", headers), sitemaps, **options))

    def _rendered(self, response):
        self.activate()
        return response.render() if hasattr(response, "render") else response

    def documents(self, sitemap, **options):
        """Return all pages of one sitemap as documents."""
        self.activate()
        found = []
        while True:
            try:
                response = self.sitemap({"all": sitemap}, page=len(found) + 1, **options)
            except Http404:
                return found
            found.append(response.getvalue())

    def entries(self, sitemap):
        """Return what all pages of one sitemap list, sorted."""
        found = [entry for body in self.documents(sitemap) for entry in entries_of(body)]
        return sorted(found, key=repr)


def asked(path, headers=(), **query):
    """Return a request for the tests' host."""
    return RequestFactory().get(path, query, secure=True, headers={"host": HOST, **dict(headers)})


def entries_of(body):
    """Return what a document lists, in its order: location, day, frequency, priority, links."""
    found = []
    for url in etree.fromstring(body).iterfind("s:url", NAMESPACES):
        priority = url.findtext("s:priority", "", NAMESPACES)
        links = url.iterfind("x:link", NAMESPACES)
        found.append(
            (
                url.findtext("s:loc", None, NAMESPACES),
                url.findtext("s:lastmod", "", NAMESPACES)[:10],
                url.findtext("s:changefreq", "", NAMESPACES),
                float(priority) if priority else None,
                tuple(sorted((link.get("hreflang"), link.get("href")) for link in links)),
            )
        )
    return found


def paths_of(body):
    """Return the paths that a document lists, in its order."""
    return [entry[0].removeprefix(BASE) for entry in entries_of(body)]
