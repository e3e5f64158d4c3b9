"""The site map for people, in a browser: by day and by night, narrow, by keyboard alone."""

import pytest

from tests.browser.screens import FAINT, OUTSIDE
from tests.browser.test_keyboard import tab_to

pytestmark = pytest.mark.browser

PAGES = ["", "cities/1/", "cities/1/?from=205", "countries/1/", "pages/1/"]
NARROW = {"width": 390, "height": 844}


def open_page(visitor, path=""):
    """Open a page of the site map."""
    visitor.page.goto(f"{visitor.site.base}/sitemap/{path}")


def found_by(script, visitor):
    """Return what a script finds on every page, a line each."""
    found = []
    for path in PAGES:
        open_page(visitor, path)
        found += [f"{path}: {each}" for each in visitor.page.evaluate(script)]
    return "\n".join(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read(visit, scheme):
    """By day and by night all texts stand out, the links of the footer too; nothing is on top."""
    everywhere = FAINT.replace('element.closest("#content")', "element.innerText.trim()")
    assert everywhere != FAINT
    visitor = visit(None, color_scheme=scheme)
    assert found_by(everywhere, visitor) == ""
    page = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (page == "rgb(20, 24, 28)") is (scheme == "dark")


def test_it_fits_a_narrow_window(visit):
    """At 390 pixels nothing stands out, and links are far enough from each other for fingers."""
    visitor = visit(None, viewport=NARROW)
    assert found_by(OUTSIDE, visitor) == ""
    open_page(visitor, "cities/1/")
    heights = visitor.page.evaluate(
        """[...document.querySelectorAll(".sitemapkit-entries a")].map(
            (link) => link.getBoundingClientRect().height)"""
    )
    assert len(heights) == 10
    assert min(heights) >= 24


def test_a_wide_window_has_columns(visit):
    """Entries stand in columns where there is room, in their order."""
    visitor = visit(None, viewport={"width": 1100, "height": 760})
    open_page(visitor, "cities/1/")
    lefts = visitor.page.evaluate(
        """[...document.querySelectorAll(".sitemapkit-entries a")].map(
            (link) => Math.round(link.getBoundingClientRect().left))"""
    )
    assert len(set(lefts)) == 4
    assert lefts == sorted(lefts)


def test_the_keyboard_is_enough(visit):
    """A link skips what is before the content; Tab and Enter lead to a part, and to its cities."""
    visitor = visit(None)
    page, keyboard = visitor.page, visitor.page.keyboard
    open_page(visitor)
    keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to main content")
    assert skip.evaluate("(link) => link === document.activeElement")
    assert skip.evaluate("(link) => link.getBoundingClientRect().left") >= 0
    keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    tab_to(visitor, page.get_by_role("link", name="Town 10 in Chile – Town 7 in France"))
    with page.expect_navigation():
        keyboard.press("Enter")
    tab_to(visitor, page.get_by_role("link", name="Town 3 in France"))
    with page.expect_navigation():
        keyboard.press("Enter")
    assert page.get_by_role("heading", level=1).inner_text() == "Town 3 in France"


def test_it_works_without_scripts(visit):
    """From a part of a page to the one before, and to the first page."""
    visitor = visit(None, java_script_enabled=False)
    open_page(visitor, "cities/1/?from=205")
    assert visitor.page.locator(".sitemapkit-entries li").first.inner_text() == "Town 5 in France"
    visitor.press("Previous page", role="link")
    assert visitor.page.locator(".sitemapkit-entries li").last.inner_text() == "Town 4 in France"
    visitor.press("Site map", role="link")
    assert visitor.page.get_by_role("heading", level=2).count() == 3
    for name in ("XML sitemap", "robots.txt"):
        assert visitor.page.get_by_role("link", name=name).count() == 1


def test_landmarks_and_headings(visit):
    """One main part with one heading; each navigation has a name of its own."""
    visitor = visit(None)
    for path in PAGES:
        open_page(visitor, path)
        page = visitor.page
        assert page.get_by_role("main").count() == page.get_by_role("heading", level=1).count() == 1
        for name in ("Breadcrumbs", "For search engines"):
            assert page.get_by_role("navigation", name=name).count() == 1
        others = {"": "Sections", "cities": "More entries"}.get(path.split("/")[0])
        assert page.get_by_role("navigation").count() == 2 + bool(others)
        assert not others or page.get_by_role("navigation", name=others).count() == 1


@pytest.mark.parametrize(
    ("code", "word", "city"),
    [("es", "Mapa del sitio", "Pueblo 0 de Chile"), ("fr", "Plan du site", "Ville 0 de Chile")],
)
def test_other_languages(visit, code, word, city):
    """The page speaks that of its address, lists no other, and says to the browser which it is."""
    visitor = visit(None, locale=code)
    page = visitor.page
    page.goto(f"{visitor.site.base}/{code}/sitemap/")
    assert page.get_by_role("heading", level=1).inner_text() == word
    assert page.evaluate("document.documentElement.lang") == code
    with page.expect_navigation():
        page.locator(".sitemapkit-pages a").first.click()
    assert page.locator(".sitemapkit-entries li").first.inner_text() == city
    links = page.locator(".sitemapkit-entries a").evaluate_all("(all) => all.map((a) => a.href)")
    assert all(link.startswith(f"{visitor.site.base}/{code}/") for link in links)


def test_it_prints(visit):
    """Without what only leads elsewhere, in dark letters on white."""
    visitor = visit(None, color_scheme="dark")
    open_page(visitor, "cities/1/")
    visitor.page.emulate_media(media="print", color_scheme="dark")
    assert not visitor.page.get_by_role("navigation", name="Breadcrumbs").is_visible()
    assert not visitor.page.get_by_role("link", name="Next", exact=True).is_visible()
    assert visitor.page.get_by_role("link", name="Town 3 in Chile").is_visible()
    colours = visitor.page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert colours == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
