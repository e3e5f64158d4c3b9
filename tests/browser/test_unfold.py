"""The screens under django-unfold, which brings templates and looks of its own."""

import importlib.util

import pytest

from tests.browser.conftest import missing

pytestmark = pytest.mark.browser

BUTTONS = {
    "sitemapkit/build/overview/": ["Build all that changed", "Check the published files"],
    "sitemapkit/build/": [],
    "sitemapkit/urloverride/": [],
    "sitemapkit/urloverride/add/": ["Save", "Preview"],
    "sitemapkit/urloverride/1/change/": ["Save", "Preview", "Exclude now"],
    "sitemapkit/urloverride/import/": ["Dry run"],
    "sitemapkit/extraurl/paste/": ["Add"],
    "sitemapkit/exclusionrule/add/": ["Save", "Preview"],
    "sitemapkit/sectionsettings/add/": ["Save"],
    "gazetteer/city/203/change/": ["Save"],
}


@pytest.fixture
def settings_of_site():
    """Return the settings with unfold; skip where it is not installed."""
    if importlib.util.find_spec("unfold") is None:
        missing("django-unfold is not installed; it is in the dependency group browser")
    return "tests.browser.settings_unfold"


def test_screens_are_usable_under_unfold(site, visit):
    """Each screen answers and has its buttons; a build and an override come through them."""
    visitor = visit(strict=False)
    visitor.build()
    visitor.open("sitemapkit/urloverride/add/")
    visitor.page.get_by_label("Path").fill("/about/")
    visitor.page.get_by_label("Include").select_option("No, leave it out")
    visitor.press("Save")
    for screen, buttons in BUTTONS.items():
        visitor.open(screen)
        for button in buttons:
            assert visitor.page.get_by_role("button", name=button).first.is_visible(), (
                screen,
                button,
            )
    visitor.build()
    assert "/about/" not in site.entries("pages")
    assert [fault for fault in visitor.faults() if fault.startswith(("5", "4"))] == []
