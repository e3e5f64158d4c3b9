"""What the gazetteer tells search engines; articles say it on their model."""

from django.utils.translation import gettext_lazy as _

from django_sitemapkit import Route, Section, StaticSection, Translated, register

from .models import City, Country

PAGES = {
    "gazetteer:home": _("Gazetteer"),
    "gazetteer:about": _("About"),
    "gazetteer:countries": _("Countries"),
    "gazetteer:articles": _("Articles"),
}


class InEveryLanguage:
    """Each page once in every language, linked to the others; English for all other readers."""

    i18n = True
    alternates = True
    x_default = "en"


@register
class Countries(InEveryLanguage, Section):
    """One page a country and language, by the columns ``slug_en``, ``slug_es`` and ``slug_fr``."""

    queryset = Country.objects.all()
    key = "slug_en"  # In the order of the alphabet, which readers of the site map expect.
    heading = _("Countries")
    location = Route("gazetteer:country", country=Translated("slug"))

    def title(self, country: Country) -> str:
        """Return what people read for it, in their language."""
        return country.local_name


@register
class Cities(InEveryLanguage, Section):
    """One page a city and language; one of the columns of its address is in another table."""

    queryset = City.objects.all()
    heading = _("Cities")
    location = Route(
        "gazetteer:city",
        country=Translated("country__slug"),
        city=Translated("slug"),
        geonameid="geonameid",
    )

    def title(self, city: City) -> str:
        """Return what people read for it, in their language."""
        return city.local_name


@register
class Pages(InEveryLanguage, StaticSection):
    """The pages that no table stands behind."""

    items = list(PAGES)
    heading = _("Pages")

    def title(self, item: str) -> str:
        """Return what people read for it, in their language."""
        return str(PAGES[item])
