"""The shop's web pages, for those who fetch them, and a count of what was fetched."""

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render

from tests.benchmarks.data import CATEGORIES, path_of
from tests.benchmarks.models import Product
from tests.benchmarks.ours import rows

RELATED = 40
"""Links of a usual page to other products."""

HELP = [f"Questions and answers {number}" for number in range(1, 21)]
PARAGRAPHS = [f"Paragraph {number} says what it is made of, and why." for number in range(1, 9)]

ROBOTS = """\
User-agent: *
Disallow: /cart/
Disallow: /checkout/
Disallow: /account/
Disallow: /search
Disallow: /*?sort=
Disallow: /*&sort=
Disallow: /*.json$
Allow: /search/about/

User-agent: GreedyBot
Disallow: /

Sitemap: https://www.example.com/sitemap.xml
"""


ROWS_PER_PAGE = 5
"""Rows for one web page: fetching takes longer than building."""


def pages():
    """Return how many products have a web page that is listed."""
    return rows() // ROWS_PER_PAGE


class Served:
    """How many products were shown, and a number that each of them changes."""

    def __init__(self):
        self.pages = 0
        self.sum = 0

    def add(self, pk):
        """Count one."""
        self.pages += 1
        self.sum += pk * pk

    @property
    def figures(self):
        """What contenders of a kind have to agree on."""
        return {"urls": self.pages, "digest": f"{self.sum:x}"}


served = Served()


def usual(request, category, slug):
    """Show a product on a page of 30 kB with 100 links, by a template and one query."""
    pk = _pk_of(slug)
    served.add(pk)
    product, *related = Product.objects.filter(pk__gte=pk).order_by("pk")[: RELATED + 1]
    values = {
        "product": product,
        "related": related,
        "canonical": f"{settings.SITE}{product.get_absolute_url()}",
        "categories": CATEGORIES[:40],
        "paragraphs": PARAGRAPHS,
        "help": HELP,
    }
    return render(request, "benchmarks/product.html", values)


def small(request, category, slug):
    """Show a product on a page of few bytes, without a query."""
    pk = _pk_of(slug)
    served.add(pk)
    return HttpResponse(f'<html lang="en"><title>{slug}</title><p>{category}</p></html>')


def linked(request, category, slug):
    """Show a product on a page of few bytes, with links to ten others, if there are as many."""
    pk = _pk_of(slug)
    served.add(pk)
    below = range(10 * pk, min(10 * pk + 10, pages() + 1))
    links = "".join(f'<a href="{path_of(other)}">{other}</a>' for other in below)
    return HttpResponse(f'<html lang="en"><title>{slug}</title><p>{category}</p>{links}</html>')


def robots(request):
    """Answer with rules as a shop has them."""
    return HttpResponse(ROBOTS, content_type="text/plain")


def _pk_of(slug):
    return int(slug.rpartition("-")[2])
