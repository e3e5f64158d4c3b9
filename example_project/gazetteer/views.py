"""The gazetteer's pages for people."""

from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.generic import DetailView, ListView, TemplateView

from . import maps
from .models import Article, City, Continent, Country, Fault
from .naming import active_language

WORLD_DOTS = 12_000
COUNTRY_DOTS = 1500
NEIGHBOURS = 4


class Home(TemplateView):
    template_name = "gazetteer/home.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        largest = City.objects.order_by("-population", "geonameid")
        return super().get_context_data(
            map=maps.world(largest.values_list("longitude", "latitude")[:WORLD_DOTS]),
            dots=WORLD_DOTS,
            largest=largest.select_related("country")[:12],
            cities=City.objects.count(),
            countries=Country.objects.count(),
            articles=Article.objects.linked()[:3],
            page="gazetteer:home",
            **kwargs,
        )


class About(TemplateView):
    template_name = "gazetteer/about.html"
    extra_context = {"page": "gazetteer:about"}


class CountryList(ListView):
    template_name = "gazetteer/countries.html"
    context_object_name = "countries"
    extra_context = {"page": "gazetteer:countries"}

    def get_queryset(self) -> QuerySet[Country]:
        # By the address, which has no accents: É stands beside E.
        return Country.objects.order_by(f"slug_{active_language()}")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        members: dict[str, list[Country]] = {}
        for country in self.object_list:
            members.setdefault(country.continent, []).append(country)
        continents = [
            (continent, members[continent.value])
            for continent in sorted(Continent, key=lambda each: str(each.label))
            if continent.value in members
        ]
        return super().get_context_data(continents=continents, **kwargs)


class CountryPage(ListView):
    """A country's facts and its cities, the largest first."""

    template_name = "gazetteer/country.html"
    context_object_name = "cities"
    paginate_by = 120

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.country = get_object_or_404(
            Country, **{f"slug_{active_language()}": kwargs["country"]}
        )

    def get_queryset(self) -> QuerySet[City]:
        return (
            self.country.cities.select_related("country")
            .defer("other_names")
            .order_by("-population", "geonameid")
        )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        codes = [code for code in self.country.neighbour_codes.split(",") if code]
        return super().get_context_data(
            country=self.country,
            page=self.country,
            capital=self.country.cities.filter(name=self.country.capital)
            .order_by("-population", "geonameid")
            .first(),
            neighbours=Country.objects.filter(pk__in=codes).order_by(f"slug_{active_language()}"),
            map=maps.region(_dots(self.country)),
            dots=COUNTRY_DOTS,
            **kwargs,
        )


class CityPage(DetailView):
    """A city's facts, and the cities of its country that are nearest to it in size."""

    template_name = "gazetteer/city.html"
    context_object_name = "city"
    object: City

    def get_object(self, queryset: QuerySet[City] | None = None) -> City:
        return get_object_or_404(
            City.objects.select_related("country"), pk=self.kwargs["geonameid"]
        )

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        city = self.object = self.get_object()
        if (city.country.slug, city.slug) != (kwargs["country"], kwargs["city"]):
            return redirect(city, permanent=True)
        return self.render_to_response(self.get_context_data(object=city))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        city = self.object
        others = city.country.cities.select_related("country").defer("other_names")
        larger = others.filter(
            Q(population__gt=city.population)
            | Q(population=city.population, geonameid__lt=city.geonameid)
        ).order_by("population", "-geonameid")[:NEIGHBOURS]
        smaller = others.filter(
            Q(population__lt=city.population)
            | Q(population=city.population, geonameid__gt=city.geonameid)
        ).order_by("-population", "geonameid")[:NEIGHBOURS]
        return super().get_context_data(
            page=city,
            larger=list(larger)[::-1],
            smaller=smaller,
            map=maps.region(_dots(city.country), (city.longitude, city.latitude)),
            **kwargs,
        )


class ArticleList(ListView):
    template_name = "gazetteer/articles.html"
    context_object_name = "articles"
    extra_context = {"page": "gazetteer:articles"}
    queryset = Article.objects.linked()

    def get_queryset(self) -> QuerySet[Article]:
        return super().get_queryset().order_by("-published_at", "pk")


class ArticlePage(DetailView):
    template_name = "gazetteer/article.html"
    context_object_name = "article"
    queryset = Article.objects.published()
    slug_url_kwarg = "article"
    object: Article

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        article = self.object = self.get_object()
        if article.fault == Fault.BROKEN:
            raise Http404
        if article.fault == Fault.REDIRECT:
            return redirect("gazetteer:articles")
        return self.render_to_response(self.get_context_data(object=article))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        others = Article.objects.linked().exclude(pk=self.object.pk)
        return super().get_context_data(others=others[:3], **kwargs)


def _dots(country: Country) -> list[tuple[float, float]]:
    """Return where the country's largest cities lie: enough of them draw its shape."""
    largest = country.cities.order_by("-population", "geonameid")
    return list(largest.values_list("longitude", "latitude")[:COUNTRY_DOTS])
