"""What the gazetteer holds."""

from django.db import models
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_sitemapkit import Route, SitemapMixin

from .naming import active_language


class Continent(models.TextChoices):
    """The continents, by the codes that GeoNames uses."""

    AFRICA = "AF", _("Africa")
    ANTARCTICA = "AN", _("Antarctica")
    ASIA = "AS", _("Asia")
    EUROPE = "EU", _("Europe")
    NORTH_AMERICA = "NA", _("North America")
    OCEANIA = "OC", _("Oceania")
    SOUTH_AMERICA = "SA", _("South America")


class Named(models.Model):
    """What has a name and a part of its address in each language.

    The columns of addresses are filled in every language, so that each has a page in all of them.
    """

    name = models.CharField(max_length=200)
    name_es = models.CharField(
        "name in Spanish",
        max_length=200,
        blank=True,
        help_text="Leave empty if it is the same as the name.",
    )
    name_fr = models.CharField(
        "name in French",
        max_length=200,
        blank=True,
        help_text="Leave empty if it is the same as the name.",
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    @property
    def local_name(self) -> str:
        """The name in the language of the page."""
        return getattr(self, f"name_{active_language()}", "") or self.name

    @property
    def slug(self) -> str:
        """The part of the address in the language of the page."""
        return getattr(self, f"slug_{active_language()}")


class Country(Named):
    """A country or territory that has at least one city in the data."""

    iso = models.CharField("ISO 3166 code", max_length=2, primary_key=True)
    slug_en = models.SlugField("address", max_length=80, unique=True)
    slug_es = models.SlugField("address in Spanish", max_length=80, unique=True)
    slug_fr = models.SlugField("address in French", max_length=80, unique=True)
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

    def get_absolute_url(self) -> str:
        """Return the path of the country's page in the active language."""
        return reverse("gazetteer:country", kwargs={"country": self.slug})


class City(Named):
    """A populated place. GeoNames tells no date of change here, so there is none to publish."""

    geonameid = models.BigIntegerField("GeoNames id", primary_key=True)
    country = models.ForeignKey(Country, on_delete=models.CASCADE, related_name="cities")
    slug_en = models.CharField(
        "address", max_length=200, help_text="Derived from the name; non-ASCII letters are kept."
    )
    slug_es = models.CharField("address in Spanish", max_length=200)
    slug_fr = models.CharField("address in French", max_length=200)
    latitude = models.FloatField()
    longitude = models.FloatField()
    population = models.BigIntegerField(help_text="0 if unknown.")
    timezone = models.CharField(max_length=40)
    other_names = models.TextField(blank=True, help_text="Names in other scripts, one per line.")

    class Meta:
        verbose_name_plural = "cities"
        indexes = [
            models.Index(
                fields=["country", "-population", "geonameid"], name="gazetteer_city_by_size"
            ),
            models.Index(fields=["-population", "geonameid"], name="gazetteer_city_largest"),
        ]

    def get_absolute_url(self) -> str:
        """Return the path of the city's page in the active language."""
        return reverse(
            "gazetteer:city",
            kwargs={
                "country": self.country.slug,
                "city": self.slug,
                "geonameid": self.geonameid,
            },
        )


class Fault(models.TextChoices):
    """What can be wrong with a web page that a sitemap lists."""

    BROKEN = "broken", "The page answers 404."
    NOINDEX = "noindex", "The page asks not to be indexed."
    ORPHAN = "orphan", "No page links to the page."
    REDIRECT = "redirect", "The page redirects to the list of articles."


class ArticleQuerySet(models.QuerySet["Article"]):
    """Articles, and which of them readers may see."""

    def published(self) -> "ArticleQuerySet":
        """Keep those whose day of publication has come."""
        return self.filter(published_at__lte=Now())

    def linked(self) -> "ArticleQuerySet":
        """Keep the published ones that other pages link to."""
        return self.published().exclude(fault=Fault.ORPHAN)


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
    fault = models.CharField(
        max_length=10,
        blank=True,
        choices=Fault,
        help_text="What is wrong with the page on purpose, so that audits and crawls find it.",
    )

    objects = ArticleQuerySet.as_manager()

    class Meta:
        ordering = ["-published_at", "pk"]

    class Sitemap:
        queryset_method = "published"
        location = Route("gazetteer:article", article="slug")
        lastmod = "edited_at"
        heading = _("Articles")
        title = "title"

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
