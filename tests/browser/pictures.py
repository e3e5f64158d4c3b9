"""Draw every screen in every look, to be looked at: ``python -m tests.browser.pictures FOLDER``.

The arguments after the folder are pytest's, such as ``-k hebrew`` for one look alone. Of a theme
that is not installed there are no pictures.
"""

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

from tests.browser.screens import SCREENS

pytestmark = pytest.mark.browser

WIDE = {"viewport": {"width": 1280, "height": 900}}
NARROW = {"viewport": {"width": 390, "height": 800}}
DARK = {"color_scheme": "dark"}

LOOKS = {
    "light": ("", WIDE),
    "trouble": ("", WIDE),
    "trouble-narrow": ("", NARROW),
    "dark": ("", WIDE | DARK),
    "light-narrow": ("", NARROW),
    "dark-narrow": ("", NARROW | DARK),
    "spanish": ("", WIDE | {"locale": "es-ES"}),
    "french": ("", WIDE | {"locale": "fr-FR"}),
    "hebrew": ("_hebrew", WIDE),
    "hebrew-narrow": ("_hebrew", NARROW),
    "sites": ("_sites", WIDE),
    "sites-narrow": ("_sites", NARROW),
    **{
        f"{theme}{suffix}": (f"_{theme}", window)
        for theme in ("unfold", "jazzmin", "grappelli", "baton")
        if importlib.util.find_spec(theme)
        for suffix, window in (("", WIDE), ("-dark", WIDE | DARK), ("-narrow", NARROW))
    },
}
"""By name: what follows the name of the settings, and the window."""

OTHERS = [
    *("sitemapkit/build/2/change/?section=", "gazetteer/city/203/change/?sitemap_site=default"),
    "sitemapkit/sitemapsoverview/?site=default",
]
"""Screens that differ with several sites, or are folded."""


@pytest.fixture(params=LOOKS)
def look(request):
    """Give the name of a look."""
    return request.param


@pytest.fixture
def settings_of_site(look):
    """Return the settings of the look."""
    return f"tests.browser.settings{LOOKS[look][0]}"


@pytest.fixture
def content(look, filled, request):
    """Return a site with something on every screen, or with builds that ended badly."""
    return request.getfixturevalue("troubled")[:2] if look.startswith("trouble") else filled


@pytest.fixture
def screens(look, content, request):
    """Return the screens of a look."""
    if look.startswith("trouble"):
        return ["sitemapkit/sitemapsoverview/", *request.getfixturevalue("troubled")[2]]
    return [*SCREENS, *OTHERS]


def test_every_screen_is_drawn(visit, screens, look):
    """In full length, into a folder for each look."""
    folder = Path(os.environ["PICTURES"]) / look
    folder.mkdir(parents=True, exist_ok=True)
    visitor = visit(strict=False, **LOOKS[look][1])
    for number, screen in enumerate(screens):
        visitor.open(screen)
        visitor.wait_until_still()
        name = re.sub(r"[^a-z0-9]+", "-", screen).strip("-")
        visitor.page.screenshot(path=folder / f"{number:02}-{name}.png", full_page=True)


if __name__ == "__main__":
    os.environ["PICTURES"] = sys.argv[1]
    sys.exit(pytest.main(["-q", "-m", "browser", __file__, *sys.argv[2:]]))
