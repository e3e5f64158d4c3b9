"""What an editor does: leave out, change and add URLs, one by one or many."""

import pytest

pytestmark = pytest.mark.browser

CITY = "/countries/france/town-3-203/"


def exclude_city(visitor):
    """Leave the city out on its own page."""
    visitor.open("gazetteer/city/203/change/")
    assert CITY in visitor.text()
    visitor.page.get_by_label("Include").first.select_option("No, exclude it")
    visitor.press("Save and continue editing")
    visitor.sees("A URL override excludes it.")


def test_a_city_is_excluded_on_its_own_page(site, visit):
    """Its versions go from the live page at once; the build that follows has no file with them."""
    assert CITY in site.entries("cities")
    exclude_city(visit("editor"))
    assert CITY not in site.entries("cities")
    assert len(site.entries("cities")) == 105
    operator = visit("operator")
    operator.build()
    operator.sees("Build 1")
    assert ".xml.gz" in site.get("/sitemap.xml")
    assert CITY not in site.entries("cities")
    assert len(site.entries("cities")) == 105


def test_a_published_file_has_it_until_the_next_build(site, visit):
    """What an editor changes is due; the build button brings it, and takes it back again."""
    operator, editor = visit("operator"), visit("editor")
    operator.build()
    exclude_city(editor)
    assert CITY in site.entries("cities")
    operator.open_overview()
    assert "to be checked for edits: 1 file" in operator.text()
    operator.build()
    assert CITY not in site.entries("cities")
    editor.open("gazetteer/city/203/change/")
    editor.page.get_by_label("Delete", exact=True).check()
    editor.press("Save")
    operator.build()
    assert CITY in site.entries("cities")


def test_exclude_now_does_not_wait(site, visit):
    """The published file is rendered again without the URL, and nothing else is built."""
    visit("operator").build()
    editor = visit("editor")
    editor.open("sitemapkit/urloverride/add/")
    editor.page.get_by_label("Path").fill(f"{site.base}{CITY}")
    editor.press("Preview")
    editor.sees("Preview of unsaved changes")
    editor.press("Save and continue editing")
    assert CITY in site.entries("cities")
    editor.press("Exclude now")
    editor.sees("its sitemap file is published without it")
    assert CITY not in site.entries("cities")
    assert len(site.entries("cities")) == 107


def test_a_page_is_taken_out_in_three_steps(site, visit):
    """Its address is pasted on the overview, inspected, and excluded."""
    visit("operator").build()
    editor = visit("editor")
    editor.open_overview()
    editor.page.get_by_label("URL or path").fill(f"{site.base}{CITY}")
    editor.press("Inspect")
    assert "Published now listed" in editor.text()
    editor.press("Exclude now")
    editor.sees("its sitemap file is published without it")
    assert "It is not in the sitemap." in editor.text()
    assert "Rules and overrides left out here A URL override excludes it." in editor.text()
    assert CITY not in site.entries("cities")


def test_an_override_is_previewed_and_saved(site, visit):
    """The preview shows the entry with the origin of each value; the sitemap has the same."""
    editor = visit("editor")
    editor.open("sitemapkit/urloverride/add/")
    editor.page.get_by_label("Path").fill("/about/")
    editor.page.get_by_label("Priority").fill("0.9")
    editor.press("Preview")
    editor.sees("Preview of unsaved changes")
    assert "<priority>0.9</priority>" in editor.text()
    assert "<priority>" not in site.entries("pages")["/about/"]
    editor.press("Save")
    assert "was added successfully" in editor.messages()
    assert "<priority>0.9</priority>" in site.entries("pages")["/about/"]


def test_an_extra_url_is_added(site, visit):
    """It is in the sitemap, with what was set for it."""
    editor = visit("editor")
    editor.open("sitemapkit/extraurl/add/")
    editor.page.get_by_label("Path").fill(f"{site.base}/press/kit/")
    editor.page.get_by_label("Change frequency").select_option("weekly")
    editor.press("Save")
    assert "<changefreq>weekly</changefreq>" in site.entries("extra-urls")["/press/kit/"]


def test_the_priority_of_a_section_is_changed(site, visit):
    """All URLs of the section have it, but for the one with an override."""
    editor = visit("editor")
    editor.open("sitemapkit/urloverride/add/")
    editor.page.get_by_label("Path").fill("/countries/chile/")
    editor.page.get_by_label("Priority").fill("0.1")
    editor.press("Save")
    editor.open("sitemapkit/sectionsettings/?q=countr")
    priority = editor.page.get_by_label("Priority of section “countries”")
    priority.fill("2")
    editor.press("Save")
    editor.sees("Please correct the errors below.")
    editor.sees("less than or equal to 1")
    assert priority.input_value() == "2"
    priority.fill("0.8")
    editor.press("Save")
    assert "The settings of 1 section were saved." in editor.messages()
    assert priority.input_value() == "0.80"
    entries = site.entries("countries")
    assert "<priority>0.1</priority>" in entries.pop("/countries/chile/")
    assert len(entries) == 8
    assert all("<priority>0.8</priority>" in entry for entry in entries.values())


def test_many_urls_are_pasted(site, visit):
    """A wrong line is reported by its number, and nothing is added until that is settled."""
    editor = visit("editor")
    editor.open("sitemapkit/extraurl/")
    editor.press("Paste URLs", role="link")
    lines = ["/one/", f"{site.base}/two/?a=1", "https://elsewhere.example/", "/one/"]
    editor.page.get_by_label("URLs").fill("\n".join(lines))
    editor.press("Add")
    editor.sees("No URLs were added: 2 lines are invalid.")
    rows = editor.page.locator(".sitemapkit-invalid tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["3", "4"]
    assert site.entries("extra-urls") == {}
    editor.page.get_by_label("Add the valid lines").check()
    editor.press("Add")
    assert "2 URLs added." in editor.messages()
    assert set(site.entries("extra-urls")) == {"/one/", "/two/?a=1"}


def test_overrides_travel_as_csv(site, visit, tmp_path):
    """A dry run tells what a file would do and changes nothing; what is exported comes back."""
    file = tmp_path / "overrides.csv"
    file.write_text(
        "path,include,note\n/about/,no,=1+1\nhttps://elsewhere.example/,no,\n", encoding="utf-8"
    )
    editor = visit("editor")
    editor.open("sitemapkit/urloverride/")
    editor.press("Import", role="link")
    editor.page.get_by_label("CSV file").set_input_files(file)
    editor.press("Preview")
    editor.sees("Preview: nothing has changed yet")
    assert "Created: 1" in editor.text()
    assert "Invalid: 1" in editor.text()
    assert "/about/" in site.entries("pages")
    editor.page.get_by_label("Apply the valid lines").check()
    editor.press("Apply")
    assert "1 row created." in editor.messages()
    assert "/about/" not in site.entries("pages")
    with editor.page.expect_download() as begun:
        editor.page.get_by_role("link", name="Export", exact=True).click()
    exported = begun.value.path().read_text(encoding="utf-8-sig")
    assert "/about/" in exported
    assert "'=1+1" in exported
    again = tmp_path / "again.csv"
    again.write_text(exported.replace(",no,", ",,"), encoding="utf-8")
    editor.press("Import", role="link")
    editor.page.get_by_label("CSV file").set_input_files(again)
    editor.press("Preview")
    assert "Changed: 1" in editor.text()
    editor.press("Apply")
    assert "/about/" in site.entries("pages")


def test_urls_are_changed_by_action(site, visit):
    """What is chosen in the list is excluded and reset, with its own permission."""
    editor = visit("editor")
    editor.open("sitemapkit/urloverride/add/")
    editor.page.get_by_label("Path").fill("/about/")
    editor.press("Save")
    for action, listed in (("Exclude from the sitemap", False), ("Reset", True)):
        editor.page.get_by_label("Select all objects on this page for an action").check()
        labels = editor.page.get_by_label("Action:").locator("option").all_inner_texts()
        label = next(label for label in labels if label.startswith(action))
        editor.page.get_by_label("Action:").select_option(label)
        with editor.page.expect_navigation():
            editor.page.locator("button[name=index]").click()
        assert "1 override changed." in editor.messages()
        assert ("/about/" in site.entries("pages")) == listed


@pytest.mark.parametrize("user", ["viewer", "operator"])
def test_who_only_views_has_no_buttons(visit, user):
    """An override can be looked at by who may view it, and has no button but the way back."""
    editor = visit("editor")
    editor.open("sitemapkit/urloverride/add/")
    editor.page.get_by_label("Path").fill("/about/")
    editor.press("Save and continue editing")
    address = editor.page.url
    visitor = visit(user, strict=False)
    visitor.page.goto(address)
    buttons = visitor.page.locator("#content").get_by_role("button").all_inner_texts()
    if user == "operator":
        assert "403 Forbidden" in visitor.page.content()
    else:
        assert set(buttons) <= {"Close"}
        assert visitor.faults() == []
