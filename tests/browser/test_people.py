"""The site map for people, in a browser: by day and by night, narrow, by keyboard alone."""

import pytest

from tests.browser.test_looks import FAINT, OUTSIDE, tab_to

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
    assert len(heights) == 108
    assert min(heights) >= 24


def test_a_wide_window_has_columns(visit):
    """Entries stand in columns where there is room, in their order."""
    visitor = visit(None, viewport={"width": 1100, "height": 760})
    open_page(visitor, "cities/1/")
    lefts = visitor.page.evaluate(
        """[...document.querySelectorAll(".sitemapkit-entries a")].map(
            (link) => Math.round(link.getBoundingClientRect().left))"""
    )
    assert len(set(lefts)) == 3
    assert lefts == sorted(lefts)


def test_the_keyboard_is_enough(visit):
    """A link skips what is before the content; Tab and Enter lead to a city of a section."""
    visitor = visit(None)
    page, keyboard = visitor.page, visitor.page.keyboard
    open_page(visitor)
    keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to main content")
    assert skip.evaluate("(link) => link === document.activeElement")
    assert skip.evaluate("(link) => link.getBoundingClientRect().left") >= 0
    keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    tab_to(visitor, page.get_by_role("link", name="Cities"))
    with page.expect_navigation():
        keyboard.press("Enter")
    tab_to(visitor, page.get_by_role("link", name="Town 3 in France"))
    with page.expect_navigation():
        keyboard.press("Enter")
    assert page.get_by_role("heading", level=1).inner_text() == "Town 3 in France"


def test_it_works_without_scripts(visit):
    """From the first page to a portion of another, and back to its beginning."""
    visitor = visit(None, java_script_enabled=False)
    open_page(visitor, "cities/1/?from=205")
    assert visitor.page.locator(".sitemapkit-entries li").count() == 57
    visitor.press("Back to the beginning", role="link")
    assert visitor.page.locator(".sitemapkit-entries li").count() == 108
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
        assert page.get_by_role("navigation").count() == 2 + ("from=" in path)


@pytest.mark.parametrize(
    ("locale", "word"), [("es-ES", "Mapa del sitio"), ("fr-FR", "Plan du site")]
)
def test_other_languages(visit, locale, word):
    """The page speaks the visitor's language, and tells the browser which one it is."""
    visitor = visit(None, locale=locale)
    open_page(visitor)
    assert visitor.page.get_by_role("heading", level=1).inner_text() == word
    assert visitor.page.evaluate("document.documentElement.lang") == locale[:2]
