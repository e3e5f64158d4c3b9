"""Mistakes in where locations come from, and what is passed over or costs more than it need."""

import inspect

from django.urls import NoReverseMatch

from django_sitemapkit.sections.base import BaseSection
from django_sitemapkit.sections.contrib import ContribSection
from django_sitemapkit.sections.items import StaticSection
from django_sitemapkit.sections.options import Method, Plain
from django_sitemapkit.sections.querysets import Section, get_absolute_url
from django_sitemapkit.sections.routes import Route
from django_sitemapkit.sections.validation.faults import Fault, queryset_of


def unknown_route(section: BaseSection) -> Fault | None:
    """Find a Route that the URLconf has no pattern for."""
    if not isinstance(section, Section) or not isinstance(section.location_source, Route):
        return None
    try:
        with section.site.active():
            section.location_source.compile()
    except NoReverseMatch as error:
        return Fault(f"location: {error}", "Check the URL's name and its arguments.")
    return None


def wrong_location(section: BaseSection) -> Fault | None:
    """Find a location that is neither a Route, nor an expression, nor a method."""
    if not isinstance(section, Section) or not isinstance(section.location_source, Plain):
        return None
    return Fault(
        f"location is {section.location!r}",
        'Use Route("url-name", argument="column"), an F() of a path, or a method.',
    )


def no_location(section: BaseSection) -> Fault | None:
    """Find a section that relies on a get_absolute_url() its model does not have."""
    rows = queryset_of(section)
    if rows is None or not isinstance(section, Section) or section.location is not None:
        return None
    if hasattr(rows.model, "get_absolute_url"):
        return None
    return Fault(
        f"it has no location, and {rows.model.__name__} no get_absolute_url()",
        'Set location = Route("url-name", argument="column").',
    )


def unknown_item(section: BaseSection) -> Fault | None:
    """Find an item of a StaticSection that is neither a path nor a URL name."""
    if not isinstance(section, StaticSection) or callable(section.items):
        return None
    if type(section).location is not StaticSection.location:
        return None
    for item in section.items:
        try:
            with section.site.active():
                section.location(item)
        except (NoReverseMatch, TypeError) as error:
            return Fault(f"items: {error}", "An item is a URL name without arguments, or a path.")
    return None


def reads_objects(section: BaseSection) -> Fault | None:
    """Find a section that reads objects where columns would do."""
    if not isinstance(section, Section) or not section.reads_objects or no_location(section):
        return None
    if section.location_source == Method(get_absolute_url):
        return Fault(
            "get_absolute_url() makes it read whole objects and reverse each URL by itself",
            'Set location = Route("url-name", argument="column"), which gives the same URLs.',
        )
    if section.only is not None:
        return None
    methods = [name for name, source in section.sources.items() if isinstance(source, Method)]
    if isinstance(section.location_source, Method):
        methods.insert(0, "location")
    return Fault(
        f"{', '.join(methods)} being a method makes it read objects with all their columns",
        "Use a column or an expression, or name the fields that the method needs in only.",
    )


def idle_only(section: BaseSection) -> Fault | None:
    """Find an only that nothing reads."""
    if not isinstance(section, Section) or section.only is None or section.reads_objects:
        return None
    return Fault("only has no effect: no option reads objects", "Leave it out.")


def overridden_urls(section: BaseSection) -> Fault | None:
    """Find a contrib sitemap whose own making of entries is passed over."""
    if not isinstance(section, ContribSection):
        return None
    from django.contrib.sitemaps import Sitemap  # noqa: PLC0415

    for name in ("get_urls", "_urls", "_items", "_location", "paginator"):
        if inspect.getattr_static(type(section.sitemap), name) is not vars(Sitemap)[name]:
            return Fault(
                f"it overrides {name}, which is not asked",
                "Declare it as a Section: items, location and the tags are all that counts.",
            )
    return None
