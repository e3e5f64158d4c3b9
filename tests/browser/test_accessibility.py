"""axe-core finds nothing on any screen, but in what is Django's own."""

import pytest

from tests.browser.axe import violations
from tests.browser.test_looks import SCREENS

pytestmark = pytest.mark.browser

WINDOWS = {
    "by-day": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "by-night-and-narrow": {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}},
}


@pytest.fixture
def content(filled):
    """Return a site with something on every screen."""
    return filled


@pytest.mark.parametrize("window", WINDOWS)
def test_axe_finds_nothing(visit, window):
    """Neither on the screens nor on the pages for people, by all of its rules and practices."""
    # Under the strict policy the browser complains of the styles that axe itself sets.
    visitor = visit(strict=False, **WINDOWS[window])
    found = []
    for screen in SCREENS:
        visitor.open(screen)
        found += violations(visitor)
    for page in ("/sitemap/", "/sitemap/cities/1/"):
        visitor.page.goto(f"{visitor.site.base}{page}")
        found += violations(visitor)
    assert "\n".join(found) == ""
