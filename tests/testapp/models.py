"""Models with keys of every kind."""

import uuid

from django.conf import settings
from django.db import models
from django.urls import reverse

from django_sitemapkit import Route, SitemapMixin
from django_sitemapkit.models import SitemapFields


class Shop(models.Model):
    slug = models.SlugField(unique=True)

    def __str__(self):
        return self.slug


class Tag(models.Model):
    name = models.CharField(max_length=20)

    def __str__(self):
        return self.name


class Product(models.Model):
    """Keyed by an automatic integer, and by a unique text."""

    shop = models.ForeignKey(Shop, models.CASCADE)
    slug = models.CharField(max_length=200, unique=True)
    rank = models.DecimalField(max_digits=3, decimal_places=2, null=True)
    public = models.BooleanField(default=True)
    updated_at = models.DateTimeField(null=True)
    released_on = models.DateField(null=True)
    note = models.CharField(max_length=20, blank=True)
    tags = models.ManyToManyField(Tag)

    def __str__(self):
        return self.slug

    def get_absolute_url(self):
        return f"/products/{self.shop.slug}/{self.slug}/"


class Token(models.Model):
    """Keyed by a UUID."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)

    def __str__(self):
        return str(self.pk)


class Reading(models.Model):
    """Keyed by an integer of its own, negative too."""

    level = models.IntegerField(primary_key=True)

    def __str__(self):
        return str(self.level)


class Draft(models.Model):
    """Has a unique field that may be null, which is no key."""

    code = models.CharField(max_length=20, unique=True, null=True)

    def __str__(self):
        return str(self.code)


class Pass(Token):
    """Keyed by the UUID of its concrete parent."""


class Day(models.Model):
    """Keyed by a date."""

    date = models.DateField(primary_key=True)

    def __str__(self):
        return str(self.date)


class Moment(models.Model):
    """Keyed by a date and time, to the microsecond."""

    at = models.DateTimeField(primary_key=True)

    def __str__(self):
        return str(self.at)


class Word(models.Model):
    """Keyed by a text that the database sorts as a dictionary does, and not as Python does."""

    text = models.CharField(
        max_length=100,
        unique=True,
        db_collation={
            "django.db.backends.mysql": "utf8mb4_unicode_ci",
            "django.db.backends.postgresql": "en-x-icu",
            "django.db.backends.sqlite3": "NOCASE",
        }[settings.DATABASES["default"]["ENGINE"]],
    )

    def __str__(self):
        return self.text


class ArticleQuerySet(models.QuerySet):
    def published(self):
        return self.filter(published=True)


class BaseArticle(SitemapMixin, models.Model):
    title = models.CharField(max_length=100)
    published = models.BooleanField(default=True)
    edited_at = models.DateTimeField()

    objects = ArticleQuerySet.as_manager()

    class Meta:
        abstract = True

    class Sitemap:
        location = Route("article", pk="pk")
        queryset_method = "published"
        lastmod = "edited_at"

    def __str__(self):
        return self.title


class Article(BaseArticle):
    """Registers by the ``class Sitemap`` of its abstract base."""


class Feature(Article):
    """Has a concrete parent with a sitemap, and none of its own."""


class ArticleProxy(Article):
    """Declares in vain: a proxy's rows are those of the model behind it."""

    class Meta:
        proxy = True

    class Sitemap:
        name = "proxies"


class Topic(SitemapFields):
    """Keyed by a text of its own; says of each row whether and how it is listed."""

    code = models.CharField(max_length=100, primary_key=True)
    edited_at = models.DateTimeField(null=True)

    def __str__(self):
        return self.code


class Place(models.Model):
    """Says itself what it is called in each language, as django-modeltranslation has it."""

    slug = models.CharField(max_length=50)
    slug_en = models.CharField(max_length=50, blank=True)
    slug_es = models.CharField(max_length=50, null=True)
    slug_fr = models.CharField(max_length=50, null=True)
    cover = models.FileField(blank=True)
    seen_at = models.DateTimeField(null=True)

    def __str__(self):
        return self.slug


class PlaceTranslation(models.Model):
    """What a place is called in one language, as django-parler has it."""

    place = models.ForeignKey(Place, models.CASCADE, related_name="translations")
    language_code = models.CharField(max_length=10)
    slug = models.CharField(max_length=50)

    def __str__(self):
        return self.slug


class Photo(models.Model):
    """A picture of a place."""

    place = models.ForeignKey(Place, models.CASCADE, related_name="photos")
    file = models.FileField(null=True)
    address = models.URLField(blank=True)

    def __str__(self):
        return self.file.name


class Story(models.Model):
    """In one language; its translations are rows that have the same key."""

    translation_key = models.IntegerField(null=True)
    group = models.CharField(max_length=10, blank=True)
    language = models.CharField(max_length=10)
    slug = models.CharField(max_length=50)
    public = models.BooleanField(default=True)

    def __str__(self):
        return f"{self.language}/{self.slug}"

    def get_absolute_url(self):
        return f"/{self.language}/{self.slug}/"


class Offer(models.Model):
    """Of a shop that it may not have, or that is gone."""

    shop = models.ForeignKey(Shop, models.DO_NOTHING, null=True, db_constraint=False)
    slug = models.CharField(max_length=50, null=True)
    ends_at = models.DateTimeField(null=True)

    def __str__(self):
        return str(self.slug)

    def get_absolute_url(self):
        return reverse("product", kwargs={"shop": self.shop.slug, "slug": self.slug})


class Voucher(models.Model):
    """Of an offer that may be gone, though it always has one."""

    offer = models.ForeignKey(Offer, models.DO_NOTHING, db_constraint=False)

    def __str__(self):
        return str(self.pk)
