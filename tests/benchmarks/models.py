"""A shop's products, with a body that a sitemap does not need and a careless query reads."""

from django.apps import apps
from django.db import models
from django.urls import reverse


class Product(models.Model):
    """Has a URL made of two columns, and a date that moves."""

    category = models.SlugField(db_index=False)
    slug = models.CharField(max_length=100)
    updated_at = models.DateTimeField()
    body = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["category", "slug"], name="benchmarks_unique")
        ]
        indexes = [
            models.Index(fields=["category", "id"], name="benchmarks_by_category"),
            models.Index(fields=["id", "updated_at"], name="benchmarks_by_date"),
            models.Index(fields=["category", "updated_at"], name="benchmarks_by_newest"),
        ]

    def __str__(self):
        return self.slug

    def get_absolute_url(self):
        return reverse("product", kwargs={"category": self.category, "slug": self.slug})


class Category(models.Model):
    """What an offer belongs to."""

    slug = models.SlugField(unique=True)

    def __str__(self):
        return self.slug


class Offer(models.Model):
    """Has the URL of a product, with the category behind a foreign key."""

    category = models.ForeignKey(Category, models.PROTECT)
    slug = models.CharField(max_length=100)
    updated_at = models.DateTimeField()
    body = models.TextField()

    def __str__(self):
        return self.slug

    def get_absolute_url(self):
        return reverse("product", kwargs={"category": self.category.slug, "slug": self.slug})


class Article(models.Model):
    """Has a UUID as key, and a URL of three values of which one is made of a date."""

    id = models.UUIDField(primary_key=True)
    category = models.SlugField(db_index=False)
    slug = models.CharField(max_length=100)
    published_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    def __str__(self):
        return self.slug


if apps.is_installed("icv_sitemaps"):
    from icv_sitemaps.mixins import SitemapMixin

    class IcvProduct(SitemapMixin, Product):
        """The same rows, as django-icv-sitemaps wants them declared."""

        sitemap_section_name = "products"

        class Meta:
            proxy = True
