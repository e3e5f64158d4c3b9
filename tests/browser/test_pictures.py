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
LARGE = {"viewport": {"width": 1280, "height": 920}}
DARK = {**LARGE, "color_scheme": "dark"}
NARROW = {"viewport": {"width": 390, "height": 700}}

OVERVIEW = "sitemapkit/sitemapsoverview/"
PICTURES = {
    "healthy": {
        "overview-light": (OVERVIEW, LARGE),
        "overview-dark": (OVERVIEW, DARK),
        "overview-narrow": (OVERVIEW, NARROW),
        "inspect": (f"{OVERVIEW}inspect/?url=/about/", WIDE),
        "inline": ("gazetteer/city/203/change/", WIDE),
        "activity": (f"{OVERVIEW}activity/", {"viewport": {"width": 1280, "height": 640}}),
        "sections": ("sitemapkit/sectionsettings/", {"viewport": {"width": 1280, "height": 600}}),
    },
    "filled": {
        "rule": ("sitemapkit/exclusionrule/1/change/", WIDE),
        "differences": ("sitemapkit/build/2/differences/", WIDE),
    },
}
"""By the fixture that gives the site, and the name of the file: the address, and the window."""

PRESSES = {"rule": "Preview"}
"""The button that is pressed."""

SEES = {"inline": ".sitemapkit-inline"}
"""What is scrolled to."""


@pytest.fixture(params=PICTURES)
def kind(request):
    """Give the name of the fixture that gives the site."""
    return request.param


@pytest.fixture
def content(kind, request):
    """Return a site with something on every screen."""
    return request.getfixturevalue(kind)


def test_the_docs_have_the_pictures():
    """Each of them, and no other."""
    text = (ROOT / "docs" / "admin.md").read_text(encoding="utf-8")
    names = {name for pictures in PICTURES.values() for name in pictures}
    assert set(re.findall(r"\(images/([a-z-]+)\.png\)", text)) == names


def test_the_pictures_of_the_docs_can_be_made(visit, kind, tmp_path):
    """Those of the overview show a site in which nothing needs attention."""
    folder = Path(os.environ.get("PICTURES") or tmp_path)
    for name, (address, window) in PICTURES[kind].items():
        visitor = visit("chief", **window)
        visitor.open(address)
        if address == OVERVIEW:
            visitor.sees("Nothing needs your attention.")
        if name in PRESSES:
            visitor.press(PRESSES[name])
        visitor.wait_until_still()
        if name in SEES:
            visitor.page.locator(SEES[name]).first.evaluate("(found) => found.scrollIntoView()")
        file = folder / f"{name}.png"
        visitor.page.screenshot(path=file)
        assert 5_000 < file.stat().st_size < 150_000
