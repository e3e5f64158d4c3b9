"""What the gazetteer holds."""

from django.db import models
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from django_sitemapkit import Route, SitemapMixin


class Continent(models.TextChoices):
    """The continents, by the codes that GeoNames uses."""

    AFRICA = "AF", "Africa"
    ANTARCTICA = "AN", "Antarctica"
    ASIA = "AS", "Asia"
    EUROPE = "EU", "Europe"
    NORTH_AMERICA = "NA", "North America"
    OCEANIA = "OC", "Oceania"
    SOUTH_AMERICA = "SA", "South America"


class Country(models.Model):
    """A country or territory that has at least one city in the data."""

    iso = models.CharField("ISO 3166 code", max_length=2, primary_key=True)
    name = models.CharField(max_length=80)
    slug = models.SlugField(max_length=80, unique=True)
    continent = models.CharField(max_length=2, choices=Continent.choices)
    capital = models.CharField(max_length=80, blank=True)
    population = models.BigIntegerField()
    area = models.PositiveIntegerField(help_text="Square kilometres.")
    currency = models.CharField(max_length=40, blank=True)
    top_level_domain = models.CharField(max_length=10, blank=True)
    neighbour_codes = models.CharField(
        max_length=80, blank=True, help_text="ISO codes of the countries it borders, with commas."
    )

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "countries"

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """Return the path of the country's page."""
        return reverse("gazetteer:country", kwargs={"country": self.slug})


class City(models.Model):
    """A populated place. GeoNames tells no date of change here, so there is none to publish."""

    geonameid = models.BigIntegerField("GeoNames id", primary_key=True)
    country = models.ForeignKey(Country, on_delete=models.CASCADE, related_name="cities")
    name = models.CharField(max_length=200)
    slug = models.CharField(
        max_length=200, help_text="The name for the address; letters of any script stay."
    )
    latitude = models.FloatField()
    longitude = models.FloatField()
    population = models.BigIntegerField(help_text="0 where GeoNames knows none.")
    timezone = models.CharField(max_length=40)
    other_names = models.TextField(blank=True, help_text="Names in other scripts, one a line.")

    class Meta:
        verbose_name_plural = "cities"
        indexes = [
            models.Index(
                fields=["country", "-population", "geonameid"], name="gazetteer_city_by_size"
            ),
            models.Index(fields=["-population", "geonameid"], name="gazetteer_city_largest"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """Return the path of the city's page."""
        return reverse(
            "gazetteer:city",
            kwargs={
                "country": self.country.slug,
                "city": self.slug,
                "geonameid": self.geonameid,
            },
        )


class ArticleQuerySet(models.QuerySet["Article"]):
    """Articles, and which of them readers may see."""

    def published(self) -> "ArticleQuerySet":
        """Keep those whose day of publication has come."""
        return self.filter(published_at__lte=Now())


class Article(SitemapMixin, models.Model):
    """A text on geography; a draft until it has a day of publication."""

    title = models.CharField(max_length=120)
    slug = models.SlugField(max_length=120, unique=True)
    summary = models.CharField(max_length=300)
    body = models.TextField(help_text="An empty line begins a new paragraph.")
    published_at = models.DateTimeField(null=True, blank=True)
    edited_at = models.DateTimeField(
        default=timezone.now, help_text="When the text last changed in a way readers notice."
    )

    objects = ArticleQuerySet.as_manager()

    class Meta:
        ordering = ["-published_at", "pk"]

    class Sitemap:
        queryset = "published"
        location = Route("gazetteer:article", article="slug")
        lastmod = "edited_at"

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        """Return the path of the article's page."""
        return reverse("gazetteer:article", kwargs={"article": self.slug})


class Release(models.Model):
    """The data the tables were filled from: what lets a second load see that it stands."""

    source = models.CharField(max_length=80, unique=True)
    countries = models.PositiveIntegerField()
    cities = models.PositiveIntegerField()
    loaded_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.source
