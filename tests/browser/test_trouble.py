"""Screens of builds with problems, held, cancelled and failed: nothing is cut off, axe agrees."""

import pytest

from tests.browser.axe import violations
from tests.browser.screens import FAINT, NARROW, OUTSIDE

pytestmark = pytest.mark.browser

WIDE = {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}}


@pytest.fixture
def content(troubled):
    """Return a site with builds that ended badly."""
    return troubled[:2]


@pytest.mark.parametrize("window", [WIDE, NARROW], ids=["wide", "narrow"])
def test_screens_of_trouble_are_whole(visit, troubled, window):
    """By axe, by their contrast, and by what stands out of the window."""
    visitor = visit(strict=False, **window)
    found = []
    for screen in troubled[2]:
        visitor.open(screen)
        found += violations(visitor)
        for script in (OUTSIDE, FAINT):
            found += [f"{screen}: {each}" for each in visitor.page.evaluate(script)]
    assert "\n".join(found) == ""


def test_from_a_number_to_all_rows_and_to_the_object(visit, troubled):
    """A problem's number leads to all its rows, and each of them to its object."""
    visitor = visit()
    _list, *_others, change, _file, _problems = troubled[2]
    visitor.open(change)
    visitor.page.locator("#problems td a").first.click()
    visitor.sees("during the build")
    visitor.page.locator("#content tbody th a").first.click()
    visitor.sees("Change city")
