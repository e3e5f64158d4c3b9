"""What django.contrib.sitemaps is given, written as its documentation shows it."""

from django.apps import apps
from django.conf import settings

from tests.benchmarks.contender import DROP_IN
from tests.benchmarks.data import CATEGORIES
from tests.benchmarks.models import Offer, Product

if apps.is_installed(DROP_IN[-1]):
    from django_sitemapkit.contrib.sitemaps import Sitemap
else:
    from django.contrib.sitemaps import Sitemap


class ProductSitemap(Sitemap):
    """All products, read whole as the documentation's examples do."""

    protocol = "https"

    def items(self):
        return Product.objects.order_by("pk")

    def lastmod(self, product):
        return product.updated_at


class LeanSitemap(ProductSitemap):
    """The same, by someone who knows what it reads."""

    def items(self):
        return super().items().only("category", "slug", "updated_at")


class OfferSitemap(ProductSitemap):
    """URLs with a category behind a foreign key, by someone who knows that it is followed."""

    def items(self):
        return Offer.objects.select_related("category").order_by("pk")


class CategorySitemap(ProductSitemap):
    """One category."""

    def __init__(self, category):
        self.category = category

    def items(self):
        return super().items().filter(category=self.category)


DECLARED = {
    "whole": {"products": ProductSitemap},
    "related": {"products": OfferSitemap},
    "lean": {"products": LeanSitemap},
    "hundred": {category: CategorySitemap(category) for category in CATEGORIES},
}

SITEMAPS = DECLARED[settings.BENCHMARKS_DECLARED]
