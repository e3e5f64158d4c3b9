"""What the tests of the advice share: sections in want of it, and what is said of them."""

from typing import Any

from django_sitemapkit import Section
from django_sitemapkit.advice.advisor import advise_section
from django_sitemapkit.advice.results import AdviceFinding, SectionAdvice
from django_sitemapkit.sites import SitemapSite
from tests.factories import SITE, declare
from tests.testapp.models import Product

ODD = SitemapSite.at("https://www.example.com/below/ü/", urlconf="tests.advice.urls")
"""A site below a path, with views of every kind."""


def advice_for(location: Any = None, *, site: SitemapSite = SITE, **options: Any) -> SectionAdvice:
    """Return what is advised for a section of products whose location is a method."""
    if callable(location):
        options["location"] = lambda _, row: location(row)
    elif location is not None:
        options["location"] = location
    return advise_section(
        declare(Section, site=site, **{"queryset": Product.objects.all(), **options})
    )


def found(advice: SectionAdvice, about: str) -> AdviceFinding:
    """Return the only finding about something."""
    assert advice.not_examined == ""
    (finding,) = (finding for finding in advice.findings if finding.about == about)
    return finding


def seen(advice: SectionAdvice) -> set[str]:
    """Return all that something was found about."""
    assert advice.not_examined == ""
    return {finding.about for finding in advice.findings}
