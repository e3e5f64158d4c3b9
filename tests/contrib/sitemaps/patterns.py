"""What real projects do with contrib's classes, written with the classes of a kit."""

import datetime as dt
import itertools
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

from django.core.paginator import Paginator
from django.db.models import F, Max
from django.db.models.query import ModelIterable
from django.urls import reverse
from django.utils.translation import get_language

from tests.contrib.sitemaps.comparing import HOST
from tests.testapp.models import Article, Feature, Place, Product, Reading, Shop, Tag, Token, Topic


def product_path(product):
    """Return the path of a product, through its relation."""
    return reverse("product", kwargs={"shop": product.shop.slug, "slug": product.slug})


def site_with(domain):
    """Return what projects pass for another host."""
    return SimpleNamespace(domain=domain, name=domain)


class ProductPaths:
    """What most classes over products have."""

    limit = 2

    def location(self, product):
        return product_path(product)


class EveryProduct(ProductPaths):
    """What most of them list."""

    def items(self):
        return Product.objects.order_by("pk")


class InLanguages:
    """What classes in several languages have."""

    i18n = True
    languages = ("en", "es")
    limit = 4

    def items(self):
        return Place.objects.order_by("pk")

    def location(self, place):
        return f"/{get_language()}/places/{place.slug}/"


class SpecificIterable(ModelIterable):
    """Gives each row as an object of its own class, as django-polymorphic and Wagtail do."""

    def __iter__(self):
        for row in super().__iter__():
            yield Feature.objects.filter(pk=row.pk).first() or row


class Patterns:
    """What works as it is, and with the drop-in."""

    def a_queryset_in_an_order(self, kit):
        class Products(ProductPaths, kit.Sitemap):
            changefreq = "weekly"
            priority = 0.5

            def items(self):
                return Product.objects.order_by("-updated_at")

        return Products

    def get_absolute_url(self, kit):
        class Products(kit.Sitemap):
            def items(self):
                return Product.objects.filter(public=True).select_related("shop")

            def lastmod(self, product):
                return product.updated_at

        return Products

    def a_method_of_the_manager(self, kit):
        class Articles(kit.Sitemap):
            def items(self):
                return Article.objects.published()

            def location(self, article):
                return reverse("article", args=[article.pk])

        return Articles

    def items_is_a_method_of_a_manager(self, kit):
        class Articles(kit.Sitemap):
            items = Article.objects.all

            def location(self, article):
                return reverse("article", args=[article.pk])

        return Articles

    def only_some_fields(self, kit):
        class Products(ProductPaths, kit.Sitemap):
            def items(self):
                return Product.objects.only("slug", "shop").defer("note").prefetch_related("tags")

        return Products

    def a_join_that_repeats_rows(self, kit):
        class Products(ProductPaths, kit.Sitemap):
            def items(self):
                return Product.objects.filter(tags__name__in=["red", "blue"]).order_by("pk")

        return Products

    def distinct(self, kit):
        class Products(ProductPaths, kit.Sitemap):
            def items(self):
                return Product.objects.filter(tags__isnull=False).distinct().order_by("pk")

        return Products

    def lastmod_of_an_aggregate(self, kit):
        class Shops(kit.Sitemap):
            def items(self):
                return Shop.objects.annotate(newest=Max("product__updated_at")).order_by("slug")

            def location(self, shop):
                return f"/shops/{shop.slug}/"

            def lastmod(self, shop):
                return shop.newest

        return Shops

    def lastmod_through_a_relation(self, kit):
        class Shops(kit.Sitemap):
            def items(self):
                return Shop.objects.all()

            def location(self, shop):
                return f"/shops/{shop.slug}/"

            def lastmod(self, shop):
                return shop.product_set.latest("updated_at").updated_at.date()

        return Shops

    def an_annotation(self, kit):
        class Products(ProductPaths, kit.Sitemap):
            def items(self):
                return Product.objects.annotate(importance=F("rank")).order_by("rank")

            def priority(self, product):
                return product.importance

        return Products

    def a_sliced_queryset(self, kit):
        class Latest(ProductPaths, kit.Sitemap):
            def items(self):
                return Product.objects.order_by("-pk")[:3]

        return Latest

    def a_union(self, kit):
        class Products(ProductPaths, kit.Sitemap):
            def items(self):
                public = Product.objects.filter(public=True)
                return public.union(Product.objects.filter(public=False)).order_by("slug")

        return Products

    def values(self, kit):
        class Products(kit.Sitemap):
            def items(self):
                return Product.objects.order_by("pk").values("slug", "updated_at")

            def location(self, row):
                return f"/p/{row['slug']}/"

            def lastmod(self, row):
                return row["updated_at"]

        return Products

    def values_list(self, kit):
        class Products(kit.Sitemap):
            def items(self):
                return Product.objects.order_by("pk").values_list("slug", flat=True)

            def location(self, slug):
                return f"/p/{slug}/"

        return Products

    def months_of_an_archive(self, kit):
        class Archive(kit.Sitemap):
            def items(self):
                return Article.objects.datetimes("edited_at", "month", tzinfo=dt.UTC)

            def location(self, month):
                return f"/{month.year}/{month.month:02}/"

        return Archive

    def keys_of_other_kinds(self, kit):
        class Tokens(kit.Sitemap):
            limit = 2

            def items(self):
                return Token.objects.all().order_by("pk")

            def location(self, token):
                return reverse("token", args=[token.pk])

        return Tokens

    def keys_that_may_be_zero(self, kit):
        class Readings(kit.Sitemap):
            limit = 1

            def items(self):
                return Reading.objects.order_by("level")

            def location(self, reading):
                return reverse("reading", kwargs={"level": reading.level})

        return Readings

    def nothing_at_all(self, kit):
        class Nothing(ProductPaths, kit.Sitemap):
            def items(self):
                return Product.objects.none()

        return Nothing

    def names_of_urls(self, kit):
        class Pages(kit.Sitemap):
            priority = 1
            changefreq = "daily"

            def items(self):
                return ["home", "about"]

            def location(self, name):
                return reverse(name)

        return Pages

    def paths_in_a_tuple(self, kit):
        class Pages(kit.Sitemap):
            lastmod = dt.date(2024, 1, 2)
            limit = 2

            def items(self):
                return ("/", "/about/", "/press/")

            def location(self, path):
                return path

        return Pages

    def tuples_of_a_name_and_arguments(self, kit):
        class Pages(kit.Sitemap):
            def items(self):
                return [("home", []), ("article", [7])]

            def location(self, item):
                name, arguments = item
                return reverse(name, args=arguments)

        return Pages

    def dicts_in_a_list(self, kit):
        class Pages(kit.Sitemap):
            def items(self):
                return [{"url": "/a/", "priority": 0.3}, {"url": "/b/", "priority": None}]

            def location(self, item):
                return item["url"]

            def priority(self, item):
                return item["priority"]

        return Pages

    def a_range(self, kit):
        class Years(kit.Sitemap):
            def items(self):
                return range(2020, 2024)

            def location(self, year):
                return f"/archive/{year}/"

        return Years

    def two_models_in_one_list(self, kit):
        class Mixed(kit.Sitemap):
            limit = 4

            def items(self):
                return list(itertools.chain(Article.objects.order_by("pk"), Shop.objects.all()))

            def location(self, item):
                return f"/{type(item).__name__.lower()}/{item.pk}/"

        return Mixed

    def several_urls_of_a_row(self, kit):
        class Products(kit.Sitemap):
            limit = 3

            def items(self):
                rows = Product.objects.order_by("pk")
                return [(row, part) for row in rows for part in ("", "reviews/", "images/")]

            def location(self, item):
                row, part = item
                return f"/p/{row.slug}/{part}"

            def lastmod(self, item):
                return item[0].updated_at

        return Products

    def rows_without_a_url_are_left_out(self, kit):
        class Products(kit.Sitemap):
            def items(self):
                return [row for row in Product.objects.order_by("pk") if row.note]

            def location(self, row):
                return f"/p/{row.note}/"

        return Products

    def the_same_url_twice(self, kit):
        class Pages(kit.Sitemap):
            def items(self):
                return ["/a/", "/b/", "/a/"]

            def location(self, path):
                return path

        return Pages

    def one_location_for_all(self, kit):
        class Home(kit.Sitemap):
            location = "/"

            def items(self):
                return [None]

        return Home

    def an_f_string_through_a_relation(self, kit):
        class Products(kit.Sitemap):
            def items(self):
                return Product.objects.select_related("shop").order_by("pk")

            def location(self, product):
                return f"/shops/{product.shop.slug}/{product.slug}.html"

        return Products

    def a_query_string(self, kit):
        class Search(kit.Sitemap):
            def items(self):
                return Tag.objects.order_by("name")

            def location(self, tag):
                return f"/search/?tag={tag.name}&sort=new"

        return Search

    def a_protocol(self, kit):
        return type("Products", (EveryProduct, kit.Sitemap), {"protocol": "https"})

    def values_by_method(self, kit):
        class Products(EveryProduct, kit.Sitemap):
            def changefreq(self, product):
                return "daily" if product.public else None

            def priority(self, product):
                return [0, 1, Decimal("0.8"), "0.4", None][product.pk % 5]

            def lastmod(self, product):
                return product.updated_at if product.public else None

        return Products

    def a_latest_lastmod_of_its_own(self, kit):
        class Products(EveryProduct, kit.Sitemap):
            def get_latest_lastmod(self):
                return Product.objects.latest("updated_at").updated_at

        return Products

    def arguments_of_a_class(self, kit):
        class OfShop(ProductPaths, kit.Sitemap):
            def __init__(self, public):
                self.public = public

            def items(self):
                return Product.objects.filter(public=self.public).order_by("pk")

        return OfShop(public=True)

    def a_partial(self, kit):
        rows = Product.objects.order_by("pk")
        return partial(kit.GenericSitemap, {"queryset": rows}, priority=0.6)

    def generic(self, kit):
        info = {"queryset": Product.objects.order_by("pk"), "date_field": "updated_at"}
        return kit.GenericSitemap(info, priority=0.6, changefreq="monthly", protocol="https")

    def a_child_of_generic(self, kit):
        class Products(kit.GenericSitemap):
            priority = 0.1
            limit = 3

            def location(self, product):
                return f"/p/{product.slug}/"

        return Products({"queryset": Product.objects.order_by("pk"), "date_field": "released_on"})

    def a_mixin_for_all_classes(self, kit):
        class Base(kit.Sitemap):
            protocol = "https"
            changefreq = "weekly"

            def lastmod(self, item):
                return getattr(item, "updated_at", None)

        return type("Products", (EveryProduct, Base), {})

    def i18n(self, kit):
        return type("Places", (InLanguages, kit.Sitemap), {})

    def i18n_in_all_languages(self, kit):
        return type("Places", (InLanguages, kit.Sitemap), {"languages": None})

    def alternates(self, kit):
        return type("Places", (InLanguages, kit.Sitemap), {"alternates": True})

    def x_default(self, kit):
        return type("Places", (InLanguages, kit.Sitemap), {"alternates": True, "x_default": True})

    def languages_of_each_item(self, kit):
        class Places(InLanguages, kit.Sitemap):
            alternates = x_default = True

            def get_languages_for_item(self, place):
                return ["es"] if place.slug == "nara" else super().get_languages_for_item(place)

        return Places

    def languages_beyond_those_of_the_class(self, kit):
        class Places(InLanguages, kit.Sitemap):
            alternates = True
            languages = ("en",)

            def get_languages_for_item(self, place):
                return ["en", "fr"] if place.slug == "nara" else ["en"]

        return Places

    def columns_of_modeltranslation(self, kit):
        class Places(InLanguages, kit.Sitemap):
            alternates = True

            def location(self, place):
                code = get_language()
                return f"/{code}/{getattr(place, f'slug_{code}')}/"

        return Places

    def translations_of_parler(self, kit):
        class Places(InLanguages, kit.Sitemap):
            alternates = True

            def get_languages_for_item(self, place):
                return [row.language_code for row in place.translations.order_by("language_code")]

            def location(self, place):
                code = get_language()
                return f"/{code}/{place.translations.get(language_code=code).slug}/"

        return Places

    def a_tree_by_paths_as_of_treebeard(self, kit):
        class Topics(kit.Sitemap):
            def items(self):
                return Topic.objects.order_by("code")

            def location(self, topic):
                steps = [topic.code[:end] for end in range(4, len(topic.code) + 1, 4)]
                found = Topic.objects.filter(code__in=steps).order_by("code")
                return "".join(f"/{row.code[-4:]}" for row in found) + "/"

        return Topics

    def a_tree_by_parents_as_of_mptt(self, kit):
        class Products(kit.Sitemap):
            limit = 2

            def items(self):
                return Product.objects.order_by("shop", "-slug")

            def location(self, product):
                steps = [product.slug]
                while product.note:
                    product = Product.objects.get(slug=product.note)
                    steps.insert(0, product.slug)
                return f"/{'/'.join(steps)}/"

        return Products

    def rows_of_several_classes_as_of_polymorphic(self, kit):
        class Articles(kit.Sitemap):
            limit = 3

            def items(self):
                rows = Article.objects.order_by("pk")
                rows._iterable_class = SpecificIterable
                return rows

            def location(self, item):
                return f"/{type(item).__name__.lower()}/{item.pk}/"

        return Articles

    def the_sites_host_by_get_urls(self, kit):
        class Products(EveryProduct, kit.Sitemap):
            def get_urls(self, page=1, site=None, protocol=None):
                return super().get_urls(page=page, site=site_with(HOST), protocol="https")

        return Products

    def the_sites_host_by_get_domain(self, kit):
        class Products(EveryProduct, kit.Sitemap):
            def get_domain(self, site=None):
                return HOST

        return Products


class OwnEntries:
    """What makes its entries in a way of its own; registered, a check says what is not called."""

    def another_host_by_urls(self, kit):
        class Products(EveryProduct, kit.Sitemap):
            def _urls(self, page, protocol, domain):
                return super()._urls(page, "https", "shop.example.com")

        return Products

    def entries_with_images(self, kit):
        class Products(EveryProduct, kit.Sitemap):
            def get_urls(self, *args, **kwargs):
                urls = super().get_urls(*args, **kwargs)
                for url in urls:
                    url["images"] = [f"/media/{url['item'].slug}.jpg"]
                return urls

        return Products

    def entries_of_the_rows_themselves(self, kit):
        class Products(EveryProduct, kit.Sitemap):
            def _urls(self, page, protocol, domain):
                found = []
                for product in self.paginator.page(page).object_list:
                    for part in ("", "reviews/") if product.public else ():
                        location = f"{protocol}://{domain}{product_path(product)}{part}"
                        found.append({"location": location, "lastmod": product.updated_at})
                return found

        return Products

    def a_paginator_of_its_own(self, kit):
        class Products(EveryProduct, kit.Sitemap):
            @property
            def paginator(self):
                return Paginator(self.items(), 4, orphans=1)

        return Products

    def locations_by_a_private_member(self, kit):
        class Products(EveryProduct, kit.Sitemap):
            def _location(self, item, force_lang_code=None):
                return f"/shop{super()._location(item, force_lang_code)}"

        return Products


def declared(patterns):
    """Return the functions of a class that make a sitemap, by what they are called."""
    made = patterns()
    names = [name for name in vars(patterns) if not name.startswith("_")]
    return {name.replace("_", " "): getattr(made, name) for name in names}


AS_THEY_ARE = declared(Patterns)
BY_DROP_IN = declared(OwnEntries)
EVERY = AS_THEY_ARE | BY_DROP_IN
