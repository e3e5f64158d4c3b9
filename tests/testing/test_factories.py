"""The factories make rows that act as those of the admin and of builds."""

import pytest
from django.utils import timezone

from django_sitemapkit import Route, Section
from django_sitemapkit.models import Build, Place, UrlOverride
from django_sitemapkit.testing import assert_listed, assert_not_listed, factories
from tests.factories import SITE, ProductFactory
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db


class Products(Section):
    """All products."""

    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    priority = 0.5


@pytest.mark.parametrize("name", factories.__all__)
def test_each_factory_makes_rows_that_may_stand_together(name):
    """Of the only site; what editors set is as their forms would take it."""
    factory = getattr(factories, name)
    given = {}
    if name in {"PlaceFactory", "PublicationFactory"}:
        given["build"] = factories.BuildFactory()
    assert factory.build(**given).pk is None
    rows = [factory(**given) for _ in range(1 if name == "PublicationFactory" else 3)]
    for row in rows:
        assert row.pk
        assert str(row)
        assert getattr(row, "site", SITE.key) == SITE.key
        if not name.startswith(("Build", "Place", "Publication")):
            row.full_clean()


def test_an_override_of_a_url_or_an_object(sections):
    """It sets what is given, and nothing by itself."""
    sections.add(Products)
    one, other = ProductFactory.create_batch(2)
    row = factories.UrlOverrideFactory(obj=one)
    assert list(UrlOverride.objects.for_object(one, site=SITE.key)) == [row]
    assert row.path == ""
    assert_listed(one)
    factories.UrlOverrideFactory(path=other.get_absolute_url(), include=False)
    assert_not_listed(other)
    built = factories.UrlOverrideFactory.build(obj=other, include=False)
    assert (built.model, built.object_id) == ("testapp.product", str(other.pk))


def test_what_editors_set_acts(sections):
    """An extra URL, a rule, the settings of a section."""
    sections.add(Products)
    product = ProductFactory()
    factories.ExtraUrlFactory(path="/é/")
    assert_listed("/%C3%A9/")
    assert_listed(factories.ExtraUrlFactory().path)
    factories.ExclusionRuleFactory()
    factories.SectionSettingsFactory(section="products", priority="0.7")
    assert_listed(product)
    factories.ExclusionRuleFactory(pattern="/products/")
    assert_not_listed(product)
    factories.SectionSettingsFactory(section="other", enabled=False)


@pytest.mark.parametrize("status", Build.Status)
def test_a_build_has_ended_as_its_status_says(status):
    """A running one has not, and only a published one was published."""
    build = factories.BuildFactory(status=status)
    assert (build.ended_at is None) == (status == Build.Status.RUNNING)
    assert (build.published_at is None) == (status != Build.Status.PUBLISHED)


def test_a_publication_is_of_the_site_of_its_build():
    """So that the build is the published one."""
    build = factories.BuildFactory()
    factories.PublicationFactory(build=build)
    assert Build.objects.published(SITE) == build
    file = factories.PlaceFactory(build=build, section="products", urls=5)
    assert list(Place.objects.in_build(build).pages()) == [file]


def test_a_request_is_open():
    """Until it has ended."""
    request = factories.BuildRequestFactory()
    ended = factories.BuildRequestFactory(ended_at=timezone.now())
    opened = type(request).objects.open(SITE)
    assert request in opened
    assert ended not in opened


def test_the_only_site_is_the_default(settings):
    """Of several, one has to be given."""
    settings.SITEMAPKIT_SITES = {
        key: {"BASE_URL": f"https://{key}.example.com"} for key in ("uk", "us")
    }
    assert factories.ExtraUrlFactory(site="uk").site == "uk"
    with pytest.raises(ValueError, match="more than one site"):
        factories.ExtraUrlFactory()
