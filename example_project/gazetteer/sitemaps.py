"""What the gazetteer tells search engines; articles say it on their model."""

from django_sitemapkit import Route, Section, StaticSection, register

from .models import City, Country


@register
class Countries(Section):
    """One page a country."""

    queryset = Country.objects.all()
    location = Route("gazetteer:country", country="slug")


@register
class Cities(Section):
    """One page a city: the address is made of three columns, one of them of another table."""

    queryset = City.objects.all()
    location = Route("gazetteer:city", country="country__slug", city="slug", geonameid="geonameid")


@register
class Pages(StaticSection):
    """The pages that no table stands behind."""

    items = ["gazetteer:home", "gazetteer:about", "gazetteer:countries", "gazetteer:articles"]
