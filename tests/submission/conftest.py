"""What the tests of submission share."""

import pytest

from tests.builds import Products, fill, use_storage
from tests.submission.engines import IndexNow, serving

KEY = "0f4c1a2be9d84f6c"


@pytest.fixture
def site(settings, sections):
    """Give a site with one section, to be built."""
    sections.add(Products)
    fill()
    return use_storage(settings, "Memory")


@pytest.fixture
def engine(settings, site, monkeypatch):
    """Give an engine of IndexNow, which the settings name; robots.txt is in order."""
    engine = IndexNow()
    monkeypatch.setattr("django_sitemapkit.submission.submit.robots_problem", lambda site: "")
    with serving(engine.handler()) as address:
        settings.SITEMAPKIT_SUBMIT = {
            "indexnow_key": KEY,
            "indexnow_endpoint": f"{address}/indexnow",
        }
        yield engine
