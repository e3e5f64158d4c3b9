"""The screens under themes of the admin, which bring templates and looks of their own."""

import importlib.util

import pytest

from tests.browser.axe import violations
from tests.browser.conftest import missing

pytestmark = pytest.mark.browser

THEMES = ["unfold", "grappelli", "jazzmin", "baton"]

LOOKS = [*((theme, "en-GB") for theme in THEMES), ("hebrew", "he"), ("", "es-ES"), ("", "fr-FR")]
"""Themes and languages; "" is the plain admin."""

BUTTONS = {
    "sitemapkit/sitemapsoverview/": ["Build changes", "Check published files"],
    "sitemapkit/sitemapsoverview/health/": [],
    "sitemapkit/sitemapsoverview/activity/": ["Filter"],
    "sitemapkit/sitemapsoverview/inspect/?url=/about/": ["Inspect", "Exclude now"],
    "sitemapkit/build/": [],
    "sitemapkit/build/1/publish/": ["Yes, roll back"],
    "sitemapkit/sitemapsoverview/pause/?site=default": ["Pause publishing"],
    "sitemapkit/urloverride/": [],
    "sitemapkit/urloverride/add/": ["Save", "Preview"],
    "sitemapkit/urloverride/1/change/": ["Save", "Preview", "Exclude now"],
    "sitemapkit/urloverride/import/": ["Preview"],
    "sitemapkit/extraurl/paste/": ["Add"],
    "sitemapkit/exclusionrule/add/": ["Save", "Preview"],
    "sitemapkit/sectionsettings/": ["Save"],
    "gazetteer/city/203/change/": ["Save"],
}

TITLES = {
    "sitemapkit/sitemapsoverview/health/": "Health",
    "sitemapkit/sitemapsoverview/inspect/?url=/about/": "Inspect a URL",
    "sitemapkit/sitemapsoverview/pause/?site=default": "Pause publishing",
    "sitemapkit/urloverride/import/": "Import URL overrides",
    "sitemapkit/extraurl/paste/": "Paste extra URLs",
    "sitemapkit/sectionsettings/": "Section settings",
}
"""Screens that are the package's own, some without a button, with their headings."""

OWN = [
    *(".sitemapkit-button", ".sitemapkit-exclude button", ".sitemapkit-status"),
    *(".sitemapkit-notice", ".sitemapkit-error", ".sitemapkit-left-out"),
]
"""What the package colours itself; the colours of links and texts are the theme's."""

UNSEEN = """() => {
    // What nobody would take for what it is: a button without its text or without a line around it,
    // a field that has neither border nor background, a status without its colour.
    const seen = (element) => element.checkVisibility({visibilityProperty: true});
    const clear = (colour) => /^rgba\\(.*, 0\\)$|^transparent$|\\/ 0\\)$/.test(colour);
    const drawn = (style) => !clear(style.backgroundColor) || style.boxShadow !== "none"
        || (parseFloat(style.borderTopWidth) > 0 && !clear(style.borderTopColor));
    const small = (element) => element.scrollWidth > element.clientWidth + 1
        || element.getBoundingClientRect().height < 24;
    const own = ".sitemapkit-button, .sitemapkit-exclude button";
    const fields = ".app-sitemapkit.change-form form, .sitemapkit-inline, .sitemapkit-pause";
    const plain = "input:not([type=hidden], [type=checkbox], [type=radio], [type=file]), select, "
        + "textarea";
    const found = (selector, wrong) => [...document.querySelectorAll(selector)]
        .filter((element) => seen(element) && wrong(element, getComputedStyle(element)));
    return [
        ...found(own, (element, style) => small(element) || !drawn(style)),
        ...found(`:is(${fields}) :is(${plain})`, (element, style) => !drawn(style)
            && !element.closest("[role=combobox], .select2")),
        ...found(".sitemapkit-published", (element, style) => clear(style.backgroundColor)),
    ].map((element) => element.outerHTML.slice(0, 120));
}"""


@pytest.fixture(params=THEMES)
def theme(request):
    """Give the name of a theme; skip where it is not installed."""
    if request.param in THEMES and importlib.util.find_spec(request.param) is None:
        missing(f"django-{request.param} is not installed; it is in the dependency group browser")
    return request.param


@pytest.fixture
def content(filled):
    """Return a site with something on every screen."""
    return filled


@pytest.fixture
def settings_of_site(theme):
    """Return the settings with the theme."""
    return f"tests.browser.settings_{theme}" if theme else "tests.browser.settings"


def reveal(visitor, name):
    """Open the tab of a part of a form, where the theme makes tabs of them."""
    tab = visitor.page.get_by_role("tab", name=name)
    if tab.count():
        tab.click()


def has(visitor, name, role="button", **options):
    """Return whether the page shows an element of that role and name."""
    return visitor.page.get_by_role(role, name=name, **options).first.is_visible()


def test_screens_are_usable_and_seen_under_a_theme(site, visit):
    """A build and an override come through the screens, and each has its buttons, day and night.

    Buttons, fields and statuses look like what they are, and their texts can be read.
    """
    visitor = visit(strict=False, color_scheme="light")
    visitor.build()
    visitor.open("sitemapkit/urloverride/add/")
    visitor.page.locator("#id_path").fill("/countries/japan/")
    reveal(visitor, "Values")
    visitor.page.locator("#id_include").select_option("No, exclude it")
    visitor.press("Save")
    visitor.build("Full build")
    found = []
    for looker in (visitor, visit(strict=False, color_scheme="dark")):
        for screen, buttons in BUTTONS.items():
            looker.open(screen)
            looker.wait_until_still()
            found += [f"{screen}: no button {name}" for name in buttons if not has(looker, name)]
            if screen in TITLES and not has(looker, TITLES[screen], "heading", level=1, exact=True):
                found.append(f"{screen}: no heading {TITLES[screen]}")
            found += [f"{screen}: {each}" for each in looker.page.evaluate(UNSEEN)]
            found += violations(looker, rules=["color-contrast"], include=OWN)
    assert "\n".join(found) == ""
    assert "/countries/japan/" not in site.entries("countries")
    assert [fault for fault in visitor.faults() if fault.startswith(("5", "4"))] == []


@pytest.mark.parametrize(("theme", "locale"), LOOKS, indirect=["theme"])
def test_axe_finds_nothing_on_the_overview(visit, theme, locale):
    """By all of its rules and practices, whatever surrounds it and whichever language it is in.

    The colours of links and texts are the theme's, "hebrew" and "" are none.
    """
    for scheme in ("light", "dark"):
        visitor = visit(strict=False, locale=locale, color_scheme=scheme)
        visitor.open("sitemapkit/sitemapsoverview/")
        found = violations(visitor, include=["#content-main"])
        if theme in THEMES:
            found = [each for each in found if ": color-contrast: " not in each]
        assert found == []
