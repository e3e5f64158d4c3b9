"""What the tests of overrides share: setting them, and reading what is listed then."""

from lxml import etree

from django_sitemapkit.models import SectionSettings
from django_sitemapkit.overrides import section_of
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.testing.factories import (
    ExclusionRuleFactory,
    ExtraUrlFactory,
    UrlOverrideFactory,
)
from tests.factories import SITE
from tests.testapp.serving import BASE, NAMESPACE


def by_path(path, include=None, **values):
    """Override a URL of the tests' site."""
    return UrlOverrideFactory(site=SITE.key, path=path, include=include, **values)


def by_object(obj, include=None, **values):
    """Override an object at the tests' site."""
    return UrlOverrideFactory(obj=obj, site=SITE.key, include=include, **values)


def rule(pattern):
    """Exclude all URLs of the tests' site that match a pattern."""
    return ExclusionRuleFactory(site=SITE.key, pattern=pattern)


def extra(path, **values):
    """Add a URL to the tests' site."""
    return ExtraUrlFactory(site=SITE.key, path=path, **values)


def setting(section, **values):
    """Set something for a section of the tests' site, whatever was set before."""
    row, _ = SectionSettings.objects.get_or_create(site=SITE.key, section=section)
    for name, value in values.items():
        setattr(row, name, value)
    row.save()
    return row


def rendered(name="things", site=SITE):
    """Return how a section's only page is rendered, from its first block to its last."""
    section = section_of(site, name)
    rows = KeyRange(0, section.count_items()) if section.keyset is None else EVERYTHING
    rendering = PageRendering(section, rows, site.scope())
    return rendering, b"".join(rendering)


def entries(name="things", site=SITE):
    """Return the entries of a section of one page: their tags by path."""
    return entries_in(rendered(name, site)[1])


def entries_in(document):
    """Return the entries of a document: their tags by path."""
    found = {}
    for url in etree.fromstring(document).iterfind("s:url", NAMESPACE) if document else ():
        tags = {etree.QName(tag).localname: tag.text for tag in url}
        path = tags.pop("loc").removeprefix(BASE)
        assert path not in found
        found[path] = tags
    return found
