"""Every screen with something on it: axe-core finds nothing, all fits and can be read."""

import pytest

from tests.browser.axe import violations
from tests.browser.screens import FAINT, NARROW, OUTSIDE, SCREENS, ZOOMED
from tests.test_translations import catalogue, messages_of

pytestmark = pytest.mark.browser

WINDOWS = {
    "by-day": ({"color_scheme": "light", "viewport": {"width": 1280, "height": 900}}, [FAINT]),
    "by-night-and-narrow": ({"color_scheme": "dark", **NARROW}, [FAINT, OUTSIDE]),
    "zoomed": (ZOOMED, [OUTSIDE]),
}
"""By name: the window, and what is looked for in it besides what axe finds."""

FADE_IN = """(effect) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`@keyframes appear { from { opacity: 0.1 } }
        body { ${effect} } body.faded { opacity: 0.1; transition: none; animation: none }`);
    document.adoptedStyleSheets = [sheet];
    document.body.classList.add("faded");
    document.body.offsetWidth;
    document.body.classList.remove("faded");
}"""


@pytest.fixture
def site(shown):
    """Return a site with something on every screen."""
    return shown


@pytest.mark.parametrize("name", WINDOWS)
def test_every_screen_is_whole(visit, name):
    """Axe finds nothing on screens and on the pages for people, by all its rules and practices.

    At 390 pixels and at 200 % nothing is cut off or stands out but in boxes that scroll, and by day
    and by night the package's own texts stand out from what is behind them.
    """
    window, scripts = WINDOWS[name]
    # Under the strict policy the browser complains of the styles that axe itself sets.
    visitor = visit(strict=False, **window)
    # A zoomed screen has the texts and colours of a narrow one: only its layout differs.
    rules = ("target-size", "scrollable-region-focusable") if name == "zoomed" else ()
    found = []
    for screen in SCREENS:
        visitor.open(screen)
        found += violations(visitor, rules=rules)
        for script in scripts:
            found += [f"{screen}: {each}" for each in visitor.page.evaluate(script)]
    for page in ("/sitemap/", "/sitemap/cities/1/"):
        visitor.page.goto(f"{visitor.site.base}{page}")
        found += violations(visitor, rules=rules)
    assert "\n".join(found) == ""


@pytest.mark.parametrize("locale", ["es-ES", "fr-FR"])
def test_other_languages(visit, locale):
    """The screens speak the visitor's language: none shows a text of the package in English."""
    visitor = visit(locale=locale)
    messages = messages_of(catalogue(locale[:2], "po"))
    english = {each["msgid"] for each in messages if each.get("msgstr") != each["msgid"]}
    english = {text for text in english if len(text) > 10 and "%" not in text}
    assert len(english) > 150
    left = []
    for screen in SCREENS:
        visitor.open(screen)
        said = visitor.text()
        left += [f"{screen}: {text}" for text in english if text in said]
    assert left == []


@pytest.mark.parametrize("effect", ["transition: opacity 1s linear", "animation: appear 1s linear"])
def test_axe_waits_until_the_page_is_still(visit, effect):
    """A page that fades in, as that of a theme may, is measured when it has its colours."""
    visitor = visit(strict=False)
    visitor.open("sitemapkit/sitemapsoverview/")
    visitor.page.evaluate(FADE_IN, effect)
    assert violations(visitor, rules=["color-contrast"], include=["#content"]) == []
    assert visitor.page.evaluate("getComputedStyle(document.body).opacity") == "1"
