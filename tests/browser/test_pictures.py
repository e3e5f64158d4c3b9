"""The pictures of docs/admin.md, so that they show the screens as they are.

To renew them: ``PICTURES=docs/images pytest -m browser tests/browser/test_pictures.py``.
"""

import os
import re
from pathlib import Path

import pytest

from tests.test_docs import ROOT

pytestmark = pytest.mark.browser

WIDE = {"viewport": {"width": 1100, "height": 700}}
DARK = {**WIDE, "color_scheme": "dark"}
NARROW = {"viewport": {"width": 390, "height": 700}}

OVERVIEW = "sitemapkit/sitemapsoverview/"
PICTURES = {
    "overview-light": (OVERVIEW, WIDE),
    "overview-dark": (OVERVIEW, DARK),
    "overview-narrow": (OVERVIEW, NARROW),
    "inspect": ("sitemapkit/sitemapsoverview/inspect/?url=/about/", WIDE),
    "inline": ("gazetteer/city/203/change/", WIDE),
    "override": ("sitemapkit/urloverride/1/change/", WIDE),
    "rule": ("sitemapkit/exclusionrule/1/change/", WIDE),
    "sections": ("sitemapkit/sectionsettings/", {"viewport": {"width": 1280, "height": 600}}),
    "activity": ("sitemapkit/sitemapsoverview/activity/", WIDE),
    "differences": ("sitemapkit/build/2/differences/", WIDE),
}
"""By the name of the file: the address in the admin, and the window."""

PRESSES = {"rule": "Preview"}
"""The button that is pressed."""

SEES = {"inline": ".sitemapkit-inline"}
"""What is scrolled to."""


@pytest.fixture
def content(filled):
    """Return a site with something on every screen."""
    return filled


def test_the_pictures_of_the_docs_can_be_made(visit, tmp_path):
    """Each that is in the docs, and no other."""
    text = (ROOT / "docs" / "admin.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(images/([a-z-]+)\.png\)", text)) == set(PICTURES)
    folder = Path(os.environ.get("PICTURES") or tmp_path)
    for name, (address, window) in PICTURES.items():
        visitor = visit("chief", **window)
        visitor.open(address)
        if name in PRESSES:
            visitor.press(PRESSES[name])
        visitor.wait_until_still()
        if name in SEES:
            visitor.page.locator(SEES[name]).first.evaluate("(found) => found.scrollIntoView()")
        file = folder / f"{name}.png"
        visitor.page.screenshot(path=file)
        assert file.stat().st_size > 5_000
