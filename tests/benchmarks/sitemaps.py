"""Our sections; which of them there are is up to what is measured."""

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import ExtractYear

from django_sitemapkit import Route, Section, register, register_all
from tests.benchmarks import auditing, web_pages
from tests.benchmarks.data import CATEGORIES
from tests.benchmarks.models import Article, Offer, Product


class Columns(Section):
    """What we advise: a route and columns."""

    name = "products"
    queryset = Product.objects.all()
    location = Route("product", category="category", slug="slug")
    lastmod = "updated_at"


class Objects(Section):
    """What a project has that leaves its URLs to the model."""

    name = "products"
    queryset = Product.objects.all()
    lastmod = "updated_at"


class OfRelation(Objects):
    """The same with a foreign key in the URL."""

    queryset = Offer.objects.all()


class Formatted(Objects):
    """What does not name a view, but puts the URL together."""

    def location(self, product):
        return f"/{product.category}/{product.slug}/"


class Articles(Section):
    """A route with a year, and keys that are UUIDs."""

    queryset = Article.objects.all()
    location = Route("article", year=ExtractYear("published_at"), category="category", slug="slug")
    lastmod = "updated_at"


class OfSite(Columns):
    """A few rows for each of many sites."""

    def get_queryset(self):
        """Return the site's own rows."""
        first = 20 * int(self.site.key)
        return Product.objects.filter(pk__gt=first, pk__lte=first + 20)


def of_category(category, *, trusted):
    """Return a section of one category."""
    options = {
        "name": category,
        "queryset": Product.objects.filter(category=category),
        "trust_lastmod": trusted,
    }
    return type(category.title(), (Columns,), options)


match settings.BENCHMARKS_DECLARED:
    case "columns":
        register(Columns)
    case "trusted":
        register(type("Trusted", (Columns,), {"trust_lastmod": True}))
    case "sites":
        register(OfSite)
    case "articles":
        register(Articles)
    case "objects":
        register(Objects)
    case "related objects":
        register(OfRelation)
    case "formatted":
        register(Formatted)
    case "whole" | "related":
        from tests.benchmarks.contrib import SITEMAPS

        register_all(SITEMAPS)
    case "overlapping":
        # Of the first section's fifty categories the second one has one as well.
        first = Product.objects.filter(category__lt="c50")
        second = Product.objects.filter(Q(category__gte="c50") | Q(category="c00"))
        register(type("First", (Columns,), {"name": "first", "queryset": first}))
        register(type("Second", (Columns,), {"name": "second", "queryset": second}))
    case "usual-pages" | "pages" as declared:
        wanted = auditing.usual_pages() if declared == "usual-pages" else web_pages.pages()
        register(type("Pages", (Columns,), {"queryset": Product.objects.filter(pk__lte=wanted)}))
    case "hundred" | "hundred-trusted" as declared:
        for category in CATEGORIES:
            register(of_category(category, trusted=declared == "hundred-trusted"))
