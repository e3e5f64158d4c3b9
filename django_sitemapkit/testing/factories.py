"""Factories of the package's models, for factory-boy: what editors set, and records of builds.

Each makes rows of the only site, unless ``site`` is given. A path or a pattern is brought into its
normal form when a row is saved, as in the admin.
"""

from typing import TypeVar

from django.db.models import Model
from django.utils import timezone
from factory.declarations import (
    LazyAttribute,
    LazyAttributeSequence,
    LazyFunction,
    SelfAttribute,
    Sequence,
    SubFactory,
)
from factory.django import DjangoModelFactory

from django_sitemapkit.identities import identity_of
from django_sitemapkit.models import (
    Build,
    BuildRequest,
    ExclusionRule,
    ExtraUrl,
    Place,
    Publication,
    SectionSettings,
    StoredPage,
    UrlOverride,
)
from django_sitemapkit.testing.in_memory import site_with_key

__all__ = [
    "BuildFactory",
    "BuildRequestFactory",
    "ExclusionRuleFactory",
    "ExtraUrlFactory",
    "PlaceFactory",
    "PublicationFactory",
    "SectionSettingsFactory",
    "StoredPageFactory",
    "UrlOverrideFactory",
]

_Row = TypeVar("_Row", bound=Model)


class _SiteFactory(DjangoModelFactory[_Row]):
    """Base class of factories whose rows belong to the only site, unless ``site`` is given."""

    class Meta:
        abstract = True

    site = LazyFunction(lambda: site_with_key(None).key)


def _identity(obj: Model | None) -> tuple[str, str]:
    """Return the model and key of an object as an override stores them; two "" for None."""
    return ("", "") if obj is None else identity_of(obj)


class UrlOverrideFactory(_SiteFactory[UrlOverride]):
    """Makes an override of a URL, by ``path``, or of an object, ``obj``. It sets nothing by itself.

    Example::

        UrlOverrideFactory(path="/about/", include=False)
        UrlOverrideFactory(obj=product, priority="0.9")
    """

    class Meta:
        model = UrlOverride

    class Params:
        obj = None

    path = LazyAttributeSequence(lambda row, n: f"/page-{n}/" if row.obj is None else "")
    model = LazyAttribute(lambda row: _identity(row.obj)[0])
    object_id = LazyAttribute(lambda row: _identity(row.obj)[1])


class ExtraUrlFactory(_SiteFactory[ExtraUrl]):
    """Makes an extra URL.

    Example::

        ExtraUrlFactory(path="/press/", changefreq="weekly")
    """

    class Meta:
        model = ExtraUrl

    path = Sequence("/extra-{}/".format)


class ExclusionRuleFactory(_SiteFactory[ExclusionRule]):
    """Makes an exclusion rule.

    Example::

        ExclusionRuleFactory(pattern="/private/")
    """

    class Meta:
        model = ExclusionRule

    pattern = Sequence("/excluded-{}/".format)


class SectionSettingsFactory(_SiteFactory[SectionSettings]):
    """Makes the settings of a section; give its name.

    Example::

        SectionSettingsFactory(section="products", enabled=False)
    """

    class Meta:
        model = SectionSettings

    section = Sequence("section-{}".format)


class BuildFactory(_SiteFactory[Build]):
    """Makes the record of a build that was published; it has no files.

    Example::

        BuildFactory(status="failed", reason="The disk is full.")
    """

    class Meta:
        model = Build

    status = Build.Status.PUBLISHED
    fence = 1
    started_at = LazyFunction(timezone.now)
    ended_at = LazyAttribute(
        lambda row: None if row.status == Build.Status.RUNNING else row.started_at
    )
    published_at = LazyAttribute(
        lambda row: row.ended_at if row.status == Build.Status.PUBLISHED else None
    )


class StoredPageFactory(_SiteFactory[StoredPage]):
    """Makes the record of a stored file; the file itself does not exist.

    Example::

        StoredPageFactory(urls=1_000)
    """

    class Meta:
        model = StoredPage

    name = Sequence("sitemaps/pages-{}.xml.gz".format)
    sha256 = Sequence("{:064x}".format)
    urls = 1
    xml_bytes = 0
    stored_bytes = 0
    lastmod = LazyFunction(timezone.now)


class PlaceFactory(DjangoModelFactory[Place]):
    """Makes the place of a page in a ``build``, with a stored page that lists ``urls`` URLs.

    Example::

        PlaceFactory(build=build, section="products", urls=1_000)
    """

    class Meta:
        model = Place

    class Params:
        urls = 1

    section = "pages"
    number = Sequence(lambda n: n + 1)
    status = Place.Status.DONE
    page = SubFactory(
        StoredPageFactory, site=SelfAttribute("..build.site"), urls=SelfAttribute("..urls")
    )


class PublicationFactory(DjangoModelFactory[Publication]):
    """Makes the record that a site serves a ``build``.

    Example::

        PublicationFactory(build=build)
    """

    class Meta:
        model = Publication

    site = SelfAttribute("build.site")


class BuildRequestFactory(_SiteFactory[BuildRequest]):
    """Makes an open request for a build, as an editor makes it in the admin.

    Example::

        BuildRequestFactory(section="products", full=True)
    """

    class Meta:
        model = BuildRequest

    requested_at = LazyFunction(timezone.now)
