"""How the screens are used: by keyboard alone, and without scripts."""

import pytest

pytestmark = pytest.mark.browser

LOOK = """(element) => {
    const style = getComputedStyle(element);
    return [style.outlineStyle, style.outlineWidth, style.boxShadow, style.borderColor,
            style.backgroundColor, style.textDecorationLine].join(";");
}"""


def tab_to(visitor, wanted, presses=80):
    """Press Tab until something has the focus; that is to be seen."""
    visitor.page.evaluate("document.activeElement.blur()")
    before = wanted.evaluate(LOOK)
    for _ in range(presses):
        visitor.page.keyboard.press("Tab")
        if wanted.evaluate("(element) => element === document.activeElement"):
            assert wanted.evaluate(LOOK) != before, "the focus is not to be seen"
            return
    raise AssertionError("it is not reached by Tab")


def test_the_keyboard_is_enough(site, visit):
    """Tab, Space and Enter are all that it takes to set an override and to begin a build."""
    visitor = visit()
    page, keyboard = visitor.page, visitor.page.keyboard
    visitor.open("sitemapkit/urloverride/add/")
    tab_to(visitor, page.get_by_label("Path"))
    keyboard.type("/about/")
    tab_to(visitor, page.get_by_label("Include"))
    keyboard.type("No")
    tab_to(visitor, page.get_by_role("button", name="Preview"))
    with page.expect_navigation():
        keyboard.press("Space")
    assert "A URL override excludes it." in visitor.text()
    tab_to(visitor, page.get_by_label("Note"))
    keyboard.type("By hand")
    with page.expect_navigation():
        keyboard.press("Enter")
    assert "/about/" not in site.entries("pages")
    visitor.open_overview()
    tab_to(visitor, page.get_by_role("button", name="Build changes"))
    with page.expect_navigation():
        keyboard.press("Enter")
    visitor.sees("No build is running.")
    table = page.locator(".sitemapkit-scroll").first
    tab_to(visitor, table)
    assert "/about/" not in site.entries("pages")
    assert ".xml.gz" in site.get("/sitemap.xml")


def test_it_works_without_scripts(site, visit):
    """Without JavaScript a build is asked for and its end is seen after a reload."""
    visitor = visit(java_script_enabled=False)
    visitor.open_overview()
    assert visitor.page.get_by_role("button", name="Copy").count() == 0
    visitor.press("Build changes")
    for _ in range(100):
        if "No build is running." in visitor.text():
            break
        visitor.page.wait_for_timeout(100)
        visitor.page.reload()
    assert "Build 1" in visitor.text()
    assert ".xml.gz" in site.get("/sitemap.xml")
