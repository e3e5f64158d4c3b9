"""What editors come for, each from the overview, with the actions it takes.

An action is a click, a filled field, or a key pressed to send.
"""

import re

import pytest

from tests.browser.conftest import PATH, printed_by
from tests.browser.visiting import PUBLISH

EXCLUDE = re.compile(r"Exclude [\d,]+ URLs?")
"""The button that excludes what a rule matches."""

pytestmark = pytest.mark.browser

CITY = "/countries/france/town-3-203/"


class Actions:
    """Counts what a visitor does from the overview on."""

    def __init__(self, visitor):
        self.visitor = visitor
        self.count = 0
        visitor.open_overview()

    def fill(self, label, text):
        """Fill in a field."""
        self.count += 1
        self.visitor.page.get_by_label(label).first.fill(text)

    def press(self, name, role="button"):
        """Press a button, or what looks like one."""
        self.count += 1
        self.visitor.press(name, role)

    def publish(self):
        """Publish the change by the button in the message about it, and wait until it is done."""
        self.press("Publish all waiting changes now")
        self.visitor.wait_for_build()

    def follow(self, name):
        """Follow a link of the page."""
        self.count += 1
        self.visitor.follow(name)

    def follow_sidebar(self, model, kind):
        """Follow a link of the sidebar: the list of a model, or the one to add a row."""
        self.count += 1
        row = self.visitor.page.locator(f"#nav-sidebar tr.model-{model}")
        with self.visitor.page.expect_navigation():
            row.locator("a.addlink" if kind == "add" else "th a").click()


@pytest.fixture
def chief(visit):
    """Open a window for someone who may do everything, with a build published."""
    visitor = visit("chief")
    visitor.build()
    return visitor


def test_a_page_is_out_now(site, chief):
    """Its address is pasted, inspected, and excluded."""
    actions = Actions(chief)
    actions.fill("URL or path", f"{site.base}{CITY}")
    actions.press("Inspect")
    actions.press("Exclude now")
    assert CITY not in site.entries("cities")
    assert actions.count <= 4


def test_forty_landing_pages_are_added(site, chief):
    """They are pasted, and published by the button in the message."""
    actions = Actions(chief)
    actions.follow("Paste URLs")
    actions.fill("URLs", "\n".join(f"/landing/{number}/" for number in range(40)))
    actions.press("Add")
    assert "40 URLs added." in chief.messages()
    actions.publish()
    assert len(site.entries("extra-urls")) == 40
    assert actions.count <= 4


def test_a_folder_is_out(site, chief):
    """The number of its URLs is seen before the rule is saved."""
    actions = Actions(chief)
    actions.follow_sidebar("exclusionrule", "add")
    actions.fill("Pattern", "/countries/france/")
    actions.press("Save")
    assert "The rule matches 13 of " in chief.text()
    actions.press("Exclude 13 URLs")
    assert "was added successfully" in chief.messages()
    actions.publish()
    assert not any(path.startswith("/countries/france/") for path in site.entries("cities"))
    assert actions.count <= 5


def test_the_home_page_gets_a_priority(site, chief):
    """It is set in four steps; one more publishes it before the next build."""
    actions = Actions(chief)
    actions.follow_sidebar("urloverride", "add")
    actions.fill("Path", "/")
    actions.fill("Priority", "1.0")
    actions.press("Save")
    assert "was added successfully" in chief.messages()
    assert actions.count <= 4
    actions.publish()
    assert "<priority>1.0</priority>" in site.entries("pages")["/"]


def test_why_a_page_is_not_listed(chief):
    """The box of the overview says it: a rule, with a link to it, or nothing that has this URL."""
    add_rule(chief, "/countries/france/town-3")
    actions = Actions(chief)
    actions.fill("URL or path", CITY)
    actions.press("Inspect")
    assert "The exclusion rule /countries/france/town-3 excludes it." in chief.text()
    assert chief.page.get_by_role("link", name="/countries/france/town-3", exact=True).is_visible()
    assert actions.count <= 2
    actions = Actions(chief)
    actions.fill("URL or path", "/countries/atlantis/")
    actions.press("Inspect")
    assert "Published now not listed" in chief.text()
    assert "produces such URLs, but not this one" in chief.text()
    assert actions.count <= 2


REASONS = {
    "a rule": (CITY, "The exclusion rule /countries/france/town-3 excludes it."),
    "an override": ("/countries/japan/town-3-303/", "A URL override excludes it."),
    "a draft": ("/articles/on-maps/", "does not list it: “published at” is empty."),
    "a dot segment": ("/countries/../japan/", "It has a . or .. segment."),
    "deleted": ("/countries/chile/town-2-102/", "produces such URLs, but not this one"),
    "no section": ("/sitemap/", "This site may have a page at this address;"),
    "no such page": ("/no/such/page/", "No page of this site was found for this address."),
    "capitals": ("/Countries/Japan/", "Did you mean: /countries/japan/"),
    "a slash": ("/countries/japan", "Did you mean: /countries/japan/"),
    "a query string": ("/countries/japan/?utm=1", "lists the URL without it: /countries/japan/"),
    "another host": ("https://example.net/countries/japan/", "Did you mean:"),
    "not built": (
        "/countries/japan/town-3-999/",
        "It is not in the sitemap yet. The next published build adds it.",
    ),
}
"""Why a page is not listed: a URL that is pasted, and what the page says of it."""


def test_each_of_twelve_reasons_is_given(chief, tmp_path, port):
    """A URL is pasted, and sent."""
    assert len(REASONS) == 12
    printed_by(f"{PATH}from tests.browser.seeding import leave_out; leave_out()", tmp_path, port)
    said = {}
    for name, (url, reason) in REASONS.items():
        actions = Actions(chief)
        actions.fill("URL or path", url)
        actions.press("Inspect")
        said[name] = reason if reason in chief.text() else chief.text()
        assert actions.count <= 2
    assert said == {name: reason for name, (_url, reason) in REASONS.items()}


def test_whether_it_is_fresh_and_what_changed(chief):
    """The overview says it without a click: the age, the problems, the change of each section."""
    add_rule(chief, "/countries/france/town-3")
    chief.build()
    actions = Actions(chief)
    text = chief.text()
    assert "Live: build 2, 128 URLs in 3 files" in text
    assert "Published: just now" in text
    assert "Needs attention: 15 errors, 19 warnings" in text
    row = chief.page.locator("#content").get_by_role("row", name="cities")
    cities = row.first.inner_text()
    assert "107\t\N{MINUS SIGN}1" in cities
    assert actions.count == 0


def add_rule(chief, pattern):
    """Save an exclusion rule."""
    chief.open("sitemapkit/exclusionrule/add/")
    chief.page.get_by_label("Pattern").fill(pattern)
    chief.press("Save")
    confirm = chief.page.get_by_role("button", name=EXCLUDE)
    if confirm.count():
        chief.press(EXCLUDE)


def hold_a_build(chief):
    """Let a build be held that loses all cities."""
    add_rule(chief, "/*town-")
    chief.build()


def test_a_site_is_rolled_back(site, chief):
    """The overview links the live build, whose page leads to the one before."""
    hold_a_build(chief)
    chief.open_overview()
    chief.follow("Review this build")
    chief.follow("Publish or discard")
    chief.press(PUBLISH)
    assert site.entries("cities") == {}
    actions = Actions(chief)
    actions.follow("Build 2")
    actions.follow("Roll back to build 1")
    actions.press(PUBLISH)
    assert len(site.entries("cities")) == 108
    assert actions.count <= 3


def test_what_would_disappear(site, chief):
    """It is built and not published; one more click publishes just that."""
    chief.build()
    add_rule(chief, "/countries/france/town")
    actions = Actions(chief)
    actions.press("What would change?")
    chief.sees("Preview (what would change) finished.")
    actions.follow("Show changes")
    assert "Removed 12" in chief.text()
    assert actions.count <= 2
    assert any(path.startswith("/countries/france/town") for path in site.entries("cities"))
    actions.follow("Continue to publishing")
    actions.press(PUBLISH)
    assert not any(path.startswith("/countries/france/town") for path in site.entries("cities"))
