"""The site that the crawls of these tests crawl."""

import pytest

from django_sitemapkit import StaticSection
from tests.audit.crawl.linked import LISTED
from tests.builds import use_storage


class Listed(StaticSection):
    """What the sitemap lists."""

    items = LISTED


@pytest.fixture
def linked(settings, sections):
    """Serve the site with faults, and let its sitemap list some of its pages."""
    settings.ROOT_URLCONF = "tests.audit.crawl.linked"
    settings.SITEMAPKIT_AUDIT = {"soft_404": "tests.audit.faulty.is_soft_404"}
    sections.add(Listed)
    return use_storage(settings, "Memory")
