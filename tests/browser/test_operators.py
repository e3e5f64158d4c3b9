"""What an operator does: build, review what is held back, publish it, roll back, check, prune."""

import pytest

from tests.browser.seeding import PASSWORD
from tests.browser.visiting import PUBLISH, Visitor

pytestmark = pytest.mark.browser


def test_the_way_in(site, chromium):
    """Who types name and password finds the overview, without an address."""
    with chromium.new_context(locale="en-GB") as context:
        visitor = Visitor(context, site)
        visitor.open("")
        visitor.page.get_by_label("Username").fill("typist")
        visitor.page.get_by_label("Password").fill(PASSWORD)
        visitor.press("Log in")
        visitor.press("Sitemaps", role="link")
        with visitor.page.expect_navigation():  # The list of models links to it, too.
            visitor.page.locator(".sitemapkit-tools").get_by_text("Sitemaps overview").click()
        assert "Nothing is published; all sections are served live" in visitor.text()
        assert visitor.faults() == []


def test_a_held_build_is_reviewed_and_published_and_rolled_back(site, visit):
    """A rule too many holds the build back; who has seen the difference publishes it, or not."""
    operator, editor = visit("operator"), visit("editor")
    operator.build()
    editor.open("sitemapkit/exclusionrule/add/")
    editor.page.get_by_label("Pattern").fill("/*town-")
    editor.press("Preview")
    editor.sees("First URLs that the rule matches:")
    editor.press("Exclude 108 URLs")
    operator.build()
    assert len(site.entries("cities")) == 108
    assert "Build 2 was held for review" in operator.messages()
    operator.follow("Review this build")
    operator.follow("Show changes")
    assert "Removed 108" in operator.text()
    assert f"{site.base}/countries/france/town-3-203/" in operator.text()
    operator.follow("Back to the build")
    operator.follow("Publish or discard")
    operator.sees("Publish build 2?")
    assert len(site.entries("cities")) == 108
    operator.press(PUBLISH)
    assert "Build 2 is now live" in operator.messages()
    assert site.entries("cities") == {}
    operator.open("sitemapkit/build/")
    operator.follow("Build 1")
    operator.follow("Roll back to this build")
    operator.press(PUBLISH)
    assert "Build 1 is now live" in operator.messages()
    assert len(site.entries("cities")) == 108


def test_publishing_is_paused_after_a_roll_back_and_resumed(site, visit):
    """Builds are held meanwhile; then the next one is published."""
    operator, editor = visit("operator"), visit("editor")
    operator.build()
    editor.open("sitemapkit/urloverride/add/")
    editor.page.get_by_label("Path").fill("/about/")
    editor.page.get_by_label("Include").select_option("No, exclude it")
    editor.press("Save")
    operator.build()
    assert "/about/" not in site.entries("pages")
    operator.open("sitemapkit/build/1/publish/")
    operator.page.get_by_label("Pause publishing after it").check()
    operator.page.get_by_label("Reason for the pause").fill("It is wrong")
    operator.press(PUBLISH)
    operator.build()
    operator.sees("Publishing is paused by operator until someone resumes it: It is wrong")
    assert "was held for review: publishing was paused by operator" in operator.messages()
    assert "/about/" in site.entries("pages")
    operator.press("Resume publishing")
    assert "Publishing resumed." in operator.messages()
    operator.build()
    assert "/about/" not in site.entries("pages")


def test_published_files_are_checked_and_pruned(visit):
    """The outcome of what was asked for stands on the overview, with who asked."""
    operator = visit("operator")
    operator.build()
    operator.build("Check published files")
    operator.sees("checked, no damage found.")
    operator.open_overview()
    operator.press("Delete old files")
    operator.sees("Files that no build has: 0.")
    operator.press("Delete old files")
    operator.wait_for_build()
    operator.sees("Deleted: ")
    assert "operator" in operator.text()


def test_one_section_is_built(site, visit):
    """The button beside a section builds that one; the others stay as they are."""
    operator, editor = visit("operator"), visit("editor")
    operator.build()
    for path in ("/about/", "/countries/chile/"):
        editor.open("sitemapkit/urloverride/add/")
        editor.page.get_by_label("Path").fill(path)
        editor.page.get_by_label("Include").select_option("No, exclude it")
        editor.press("Save")
    operator.build("Build section “countries”")
    assert "/countries/chile/" not in site.entries("countries")
    assert "/about/" in site.entries("pages")


def test_the_address_of_the_index_is_copied(site, visit):
    """By a click on the overview."""
    operator = visit("operator")
    operator.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    operator.open_overview()
    operator.page.get_by_role("button", name="Copy", exact=True).click()
    operator.sees("Copied")
    copied = operator.page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{site.base}/sitemap.xml"


def test_who_only_views_sees_no_button(visit):
    """The overview and a build can be looked at; nothing on them can be pressed."""
    visit("operator").build()
    viewer = visit("viewer")
    viewer.open_overview()
    assert viewer.page.locator("#content form[method=post]").count() == 0
    viewer.open("sitemapkit/build/1/change/")
    assert viewer.page.locator("#content form button, #content [type=submit]").count() == 0
    assert "Roll back" not in viewer.text()
