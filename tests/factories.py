"""Makes rows of the test models, sections over them, and the site they are rendered for."""

import datetime as dt
import uuid
from typing import Any

import factory
from factory import fuzzy

from django_sitemapkit import Section
from django_sitemapkit.reading import reader_of
from django_sitemapkit.sites import SitemapSite
from tests.testapp import models

SITE = SitemapSite.at("https://www.example.com")

EPOCH = dt.datetime(2024, 2, 29, 12, 30, 15, tzinfo=dt.UTC)

WORDS = (
    *("apple", "Banana", "cherry", "Date", "egg", "Fig", "grape", "_under", "-dash", "(paren"),
    *("über", "Zebra", "zoo", "ñandú", "Éclair", "a b", "a-b", "a_b", "a.b", "10", "9", "日本"),
)
"""Texts that databases and Python put in different orders."""


class ShopFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Shop

    slug = factory.Sequence("shop-{}".format)


class TagFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Tag

    name = factory.Sequence("tag-{}".format)


class ProductFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Product

    shop = factory.SubFactory(ShopFactory)
    slug = factory.Sequence("product-{:06}".format)
    updated_at = EPOCH


class TokenFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Token

    id = factory.LazyFunction(
        lambda: uuid.UUID(int=fuzzy.random.randgen.getrandbits(128), version=4)
    )


class PassFactory(TokenFactory):
    class Meta:
        model = models.Pass


class ReadingFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Reading

    level = factory.Sequence(lambda n: n - 6)


class DayFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Day

    date = factory.Sequence(lambda n: EPOCH.date() + dt.timedelta(days=n))


class MomentFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Moment

    at = factory.Sequence(lambda n: EPOCH + n * dt.timedelta(microseconds=100_001))


class WordFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Word

    text = factory.Iterator(WORDS)


class ArticleFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Article

    title = factory.Sequence("Article {}".format)
    edited_at = EPOCH


class FeatureFactory(ArticleFactory):
    class Meta:
        model = models.Feature


def products(count: int, **fields: Any) -> list[models.Product]:
    """Store ``count`` products of one shop by one statement, and return them."""
    fields = fields if "shop" in fields else {**fields, "shop": ShopFactory()}
    return models.Product.objects.bulk_create(ProductFactory.build_batch(count, **fields))


def words(*texts: str) -> list[models.Word]:
    """Store words by one statement, and return them."""
    return models.Word.objects.bulk_create(WordFactory.build(text=text) for text in texts)


def declare(base: type = Section, /, *, site: SitemapSite = SITE, **options: Any) -> Any:
    """Return what reads a section with these options, named "things", of ``site``."""
    return reader_of(type("Things", (base,), {"__module__": __name__, **options})(site))
