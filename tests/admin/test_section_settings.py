"""The table of section settings."""

import re
from decimal import Decimal

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_sitemapkit import Section, StaticSection
from django_sitemapkit.admin import sections as module
from django_sitemapkit.models import Revision, SectionSettings
from django_sitemapkit.testing.factories import (
    BuildFactory,
    PlaceFactory,
    PublicationFactory,
    SectionSettingsFactory,
)
from tests.admin.editors import (
    ALL,
    Fields,
    add,
    chief,
    client_of,
    live,
    page,
    set_section,
    tags,
    text_of,
)
from tests.builds import problems_of
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

TABLE = "/admin/sitemapkit/sectionsettings/"
EDITING = tuple(f"{action}_sectionsettings" for action in ("view", "add", "change", "delete"))
LATER = "The published sitemap stays as it is until the next build."


@pytest.fixture(autouse=True)
def _registered(sections):
    for section in ALL:
        sections.add(section)


class Off(StaticSection):
    name = "off"
    items = ("/off/",)
    enabled = False


class Odd(Section):
    name = "odd"
    queryset = Product.objects.all()
    priority = 7
    changefreq = str


class Failing(StaticSection):
    name = "failing"
    items = ("/failing/",)

    def __init__(self, site):
        raise KeyError("no such thing")


@pytest.fixture
def many(sections):
    """Declare so many sections that the table has several pages."""
    for number in range(300):
        name = f"section-{number:03}"
        sections.add(type("Many", (StaticSection,), {"name": name, "items": [f"/{number}/"]}))


@pytest.fixture
def two_sites(settings):
    """Configure two sites; one has a single section."""
    del settings.SITEMAPKIT_BASE_URL
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": "https://www.example.com", "SECTIONS": ["pages"]},
        "other": {"BASE_URL": "https://other.example"},
    }


def shown(client=None, **query):
    """Return what the table says, without needless spaces."""
    response = (client or chief()).get(TABLE, query)
    assert response.status_code == 200
    return " ".join(text_of(response).split())


def row_of(text, name):
    """Return the HTML of the row of a section."""
    rows = re.findall("<tr>.*?</tr>", text)
    return next(row for row in rows if re.search(f'<th scope="row">(<a [^>]*>)?{name}<', row))


def names(text):
    """Return the sections of the rows with fields, in their order."""
    return re.findall('name="section-([a-z0-9-]+)-enabled"', text)


def stored():
    """Return the values of all rows, by section."""
    rows = SectionSettings.objects.values_list("section", "enabled", "changefreq", "priority")
    return {section: tuple(values) for section, *values in rows}


# What it shows


def test_it_has_all_sections_with_what_they_declare(sections):
    """The empty choice of each field says which value is inherited."""
    sections.add(Off)
    sections.add(Odd)
    text = shown()
    assert names(text) == ["articles", "extra-urls", "odd", "off", "pages", "products"]
    assert ">Default (yes)</option>" in row_of(text, "products")
    assert ">Default (weekly)</option>" in row_of(text, "products")
    assert 'placeholder="Default (none)"' in row_of(text, "products")
    assert 'placeholder="Default (0.3)"' in row_of(text, "pages")
    assert ">Default (no)</option>" in row_of(text, "off")
    assert ">Default (from each row)</option>" in row_of(text, "odd")
    assert 'placeholder="Default (none)"' in row_of(text, "odd")  # 7 is no priority.
    assert "sitemapkit-own" not in text


def test_values_of_its_own_stand_out():
    """They are marked, one by one; what is inherited is not."""
    SectionSettingsFactory(section="products", priority=Decimal("0.6"))
    row = row_of(shown(), "products")
    own = re.findall('<td class="sitemapkit-own"[^>]*>(.*?)</td>', row)
    assert len(own) == 1
    assert 'value="0.60"' in own[0]


def test_each_field_has_a_label():
    """It names the field and the section, for the headings are far from most rows."""
    fields = re.findall(r'<(?:select|input type="number")[^>]*name="section-[^>]*>', shown())
    assert len(fields) == 12
    labels = [re.search('aria-label="([^"]+)"', field)[1] for field in fields]
    assert len(set(labels)) == 12
    assert "Change frequency of section “products”" in labels


def test_numbers_are_those_of_the_published_build():
    """URLs with their change, and what was left out, with links to the build for its viewers."""
    first, build = BuildFactory(), BuildFactory()
    build.previous = first
    build.save()
    PublicationFactory(build=build)
    PlaceFactory(build=first, section="products", urls=1000)
    PlaceFactory(build=build, section="products", urls=400, skipped=1)
    PlaceFactory(build=build, section="products", urls=200, skipped=2)
    PlaceFactory(build=build, section="articles", problems=problems_of("It is so."))
    PlaceFactory(build=build, section="pages", urls=0)
    text = shown()
    change = f'href="/admin/sitemapkit/build/{build.pk}/change/'
    row = row_of(text, "products")
    assert f'{change}?section=products#sitemapkit-files">products</a>' in row
    assert "sitemapkit-loss" in row
    assert ">600 <" in row
    assert f'{change}#problems">3</a>' in row
    assert f'{change}#problems">1</a>' in row_of(text, "articles")
    assert 'data-label="Published URLs">0</td>' in row_of(text, "pages")
    assert change not in row_of(text, "extra-urls")
    text = shown(client_of("view_sectionsettings"))
    assert 'data-label="Problems">3</td>' in row_of(text, "products")
    assert change not in text


def test_without_a_build_it_says_so():
    """There are no numbers then."""
    assert "Nothing is published; all sections are served live." in shown()


@pytest.mark.slow
def test_a_section_that_fails_takes_no_other_along(sections):
    """It says why, and can still be switched off."""
    sections.add(Failing)
    text = shown()
    assert "KeyError: &#x27;no such thing&#x27;" in row_of(text, "failing")
    assert ">Default</option>" in row_of(text, "failing")
    assert ">Default (weekly)</option>" in row_of(text, "products")
    assert set_section("failing", enabled="False").status_code == 302
    assert stored() == {"failing": (False, "", None)}


def test_a_function_of_sections_that_fails_is_shown(sections):
    """What is stored stays, and is not taken for settings of sections that are gone."""

    def failing(site):
        raise KeyError("no such thing")

    SectionSettingsFactory(section="products")
    sections.add_function(failing)
    text = shown()
    assert "KeyError" in text
    assert "Settings without effect" not in text


@pytest.mark.slow
def test_sections_are_searched_and_paged(many):
    """By a part of the name; a page has eighty of them and links to the others."""
    text = shown()
    assert len(names(text)) == 80
    assert "304 sections" in text
    assert 'href="?p=4"' in text
    assert len(names(shown(p="4"))) == 304 - 3 * 80
    text = shown(q="SECTION-29")
    assert len(names(text)) == 10
    assert "10 sections" in text
    assert 'href="?q=section&amp;p=2"' in shown(q="section")
    text = shown(q="<none>")
    assert "No sections found." in text
    assert 'name="_save"' not in text


@pytest.mark.slow
def test_a_page_by_itself_is_saved(many):
    """The request has no more fields than Django accepts, and leads back to the same page."""
    query = {"q": "section", "p": "2"}
    response = set_section("section-150", query=query, priority="0.5")
    assert (response.status_code, response.url) == (302, f"{TABLE}?q=section&p=2")
    assert stored() == {"section-150": (None, "", Decimal("0.50"))}


def queries_of(url):
    """Return how many queries a page takes."""
    client = chief()
    client.get(url)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url).status_code == 200
    return len(queries)


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow(request):
    """With 300 sections, settings for each, and a build, it is what it is with four."""
    build = BuildFactory(previous=BuildFactory())
    PublicationFactory(build=build)
    SectionSettingsFactory(section="gone")
    before = queries_of(TABLE)
    request.getfixturevalue("many")
    for number in range(300):
        name = f"section-{number:03}"
        PlaceFactory(build=build, section=name, skipped=1)
        SectionSettingsFactory(section=name, priority="0.5")
        SectionSettingsFactory(section=f"gone-{number}")
    assert queries_of(TABLE) == before <= 13


# What it stores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"enabled": "False"}, None),
        ({"changefreq": "hourly"}, {"changefreq": "hourly", "priority": "0.3"}),
        ({"priority": "0.7"}, {"priority": "0.7"}),
        ({"priority": "0"}, {"priority": "0.0"}),
    ],
)
def test_each_field_reaches_the_output(values, expected):
    """It is in the live sitemap at once, and gone when the field is empty again."""
    assert set_section("pages", **values).status_code == 302
    xml = live("pages")
    assert tags(xml, "/about/") == expected if expected else not xml
    assert set_section("pages", **dict.fromkeys(values, "")).status_code == 302
    assert tags(live("pages"), "/about/") == {"priority": "0.3"}
    assert not SectionSettings.objects.exists()


def test_a_section_that_is_off_may_be_switched_on(sections):
    """The table has all declared sections, also those that are declared to be off."""
    sections.add(Off)
    assert live("off") == ""
    assert set_section("off", enabled="True").status_code == 302
    assert "/off/</loc>" in live("off")


@pytest.mark.slow
def test_extra_urls_are_a_section_like_any_other():
    """What is set for them holds for those that say nothing themselves."""
    add("extraurl", path="/a/")
    add("extraurl", path="/b/", priority="0.2")
    assert set_section("extra-urls", priority="0.9").status_code == 302
    assert tags(live("extra-urls"), "/a/") == {"priority": "0.9"}
    assert tags(live("extra-urls"), "/b/") == {"priority": "0.2"}
    assert set_section("extra-urls", enabled="False").status_code == 302
    assert not live("extra-urls")


def test_only_what_changed_is_stored_and_recorded():
    """Rows are created, updated and deleted; all others stay as they are."""
    kept = SectionSettingsFactory(section="extra-urls", enabled=True)
    SectionSettingsFactory(section="products", changefreq="daily")
    SectionSettingsFactory(section="articles", priority=Decimal("0.2"))
    client = chief()
    sent = Fields(text_of(client.get(TABLE))).values | {
        "section-products-priority": "0.9",
        "section-articles-priority": "",
        "section-pages-enabled": "False",
    }
    response = client.post(TABLE, sent, follow=True)
    assert response.redirect_chain == [(TABLE, 302)]
    assert "The settings of 3 sections were saved." in text_of(response)
    assert LATER not in text_of(response)  # Nothing is published.
    assert stored() == {
        "extra-urls": (True, "", None),
        "pages": (False, "", None),
        "products": (None, "daily", Decimal("0.90")),
    }
    assert SectionSettings.objects.get(section="extra-urls").changed_at == kept.changed_at
    pages = SectionSettings.objects.get(section="pages")
    entries = LogEntry.objects.order_by("object_repr")
    assert [(e.object_repr, e.action_flag, e.get_change_message()) for e in entries] == [
        ("articles (default)", DELETION, ""),
        ("pages (default)", ADDITION, "Section switched off."),
        ("products (default)", CHANGE, "Changed priority."),
    ]
    assert entries[1].object_id == str(pages.pk)
    assert {entry.user.username for entry in entries} == {"chief"}


@pytest.mark.slow
def test_what_is_saved_acts_with_the_next_build():
    """Of a site with a published build, the message says so; what is served live acts at once."""
    build = BuildFactory()
    PublicationFactory(build=build)
    PlaceFactory(build=build, section="pages", urls=1)
    client = chief()
    assert set_section("products", client=client, priority="0.9").status_code == 302
    assert "In effect now: section products is served live" in shown(client)
    assert set_section("pages", client=client, priority="0.9").status_code == 302
    assert LATER in shown(client)


@pytest.mark.slow
def test_what_switching_off_takes_out_is_counted_and_undone():
    """Of what is published; the way back is offered where the settings had nothing before."""
    build = BuildFactory()
    PublicationFactory(build=build)
    PlaceFactory(build=build, section="products", urls=1234)
    PlaceFactory(build=build, section="pages", urls=1)
    client = chief()
    assert set_section("products", client=client, enabled="False").status_code == 302
    text = shown(client)
    assert "1,234 published URLs leave the sitemap with the next published build." in text
    undo = page("sectionsettings", "delete", SectionSettings.objects.get().pk)
    assert f'<a href="{undo}">Undo</a>' in text
    assert client.post(undo, {"post": "yes"}).status_code == 302
    assert not SectionSettings.objects.exists()
    set_section("pages", client=client, priority="0.9")
    text = shown(client)
    assert "Undo" in text
    assert "leaves the sitemap" not in text
    set_section("pages", client=client, enabled="False")
    text = shown(client)
    assert "1 published URL leaves the sitemap with the next published build." in text
    assert "Undo" not in text  # It would take the priority back, too.


def test_nothing_is_stored_if_nothing_changed():
    """Not even a revision, which would make all processes read the settings again."""
    SectionSettingsFactory(section="products", priority=Decimal("0.50"), enabled=True)
    before = list(Revision.objects.values()), list(SectionSettings.objects.values())
    client = chief()
    assert set_section("products", client=client, priority="0.5").status_code == 302
    assert "Nothing was changed." in shown(client)
    assert (list(Revision.objects.values()), list(SectionSettings.objects.values())) == before
    assert not LogEntry.objects.exists()


@pytest.mark.slow
def test_what_another_editor_has_saved_meanwhile_stays():
    """Of a row, and even of a field, that the user did not change in the form."""
    SectionSettingsFactory(section="pages", enabled=False)
    client = chief()
    sent = Fields(text_of(client.get(TABLE))).values
    set_section("products", changefreq="daily")
    set_section("articles", priority="0.1")
    set_section("pages", enabled="")
    sent |= {"section-products-priority": "0.9", "section-extra-urls-priority": "0.8"}
    assert client.post(TABLE, sent).status_code == 302
    assert stored() == {
        "articles": (None, "", Decimal("0.10")),
        "extra-urls": (None, "", Decimal("0.80")),
        "products": (None, "daily", Decimal("0.90")),
    }


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("priority", "2", "less than or equal to 1"),
        ("priority", "x", "Enter a number."),
        ("changefreq", "often", "Select a valid choice."),
    ],
)
def test_an_error_stands_beside_its_field_and_nothing_is_lost(name, value, error):
    """Nothing is saved; what was typed into other rows is there, and saved with the correction."""
    client = chief()
    sent = Fields(text_of(client.get(TABLE))).values | {
        f"section-pages-{name}": value,
        "section-products-changefreq": "daily",
    }
    response = client.post(TABLE, sent)
    assert response.status_code == 200
    text = " ".join(text_of(response).split())
    assert f'id="id_section-pages-{name}_error"' in row_of(text, "pages")
    assert error in row_of(text, "pages")
    assert "<title>Error:" in text
    assert not SectionSettings.objects.exists()
    sent = Fields(text).values | {f"section-pages-{name}": ""}
    assert client.post(TABLE, sent).status_code == 302
    assert stored() == {"products": (None, "daily", None)}


# Sites, and what is gone


@pytest.mark.slow
def test_with_several_sites_one_is_chosen(two_sites):
    """Each has its own table, of the sections that it has."""
    client = chief()
    text = shown(client)
    assert "Choose a site." in text
    assert names(text) == []
    assert names(shown(client, site="main")) == ["extra-urls", "pages"]
    assert "products" in names(shown(client, site="other"))
    assert client.get(TABLE, {"site": "none"}).status_code == 404
    assert client.post(TABLE, {"section-pages-priority": "0.5"}).status_code == 200
    set_section("pages", query={"site": "other"}, priority="0.5")
    assert SectionSettings.objects.get().site == "other"
    assert "sitemapkit-own" not in shown(client, site="main")


@pytest.mark.slow
def test_settings_without_effect_are_listed_to_be_deleted(two_sites):
    """Of sections that the site has not, and of sites that are gone; the others are elsewhere."""
    gone = SectionSettingsFactory(site="main", section="products", priority=Decimal("0.5"))
    SectionSettingsFactory(site="closed", section="pages", enabled=False)
    SectionSettingsFactory(site="other", section="products")
    client = chief()
    text = shown(client, site="main")
    assert "Settings without effect" in text
    row = row_of(text, "products")
    assert "<td>main</td> <td></td><td></td><td>0.5</td>" in row
    assert "<td>closed</td> <td>no</td>" in text
    assert "<td>other</td>" not in text
    assert "<td>closed</td>" in shown(client)
    address = page("sectionsettings", "delete", gone.pk)
    link = re.search(f'href="({address}[^"]*)"', row)[1].replace("&amp;", "&")
    assert "Are you sure" in text_of(client.get(link))
    response = client.post(link, {"post": "yes"}, follow=True)
    assert response.redirect_chain == [(f"{TABLE}?site=main", 302)]
    assert "was deleted successfully" in text_of(response)
    assert not SectionSettings.objects.filter(site="main").exists()
    assert "/delete/" not in shown(client_of("view_sectionsettings"), site="main")


def test_of_many_without_effect_the_first_are_listed(monkeypatch):
    """So that the page stays small; it says that there are more."""
    monkeypatch.setattr(module, "MAX_UNUSED_ROWS", 2)
    for number in range(3):
        SectionSettingsFactory(section=f"gone-{number}")
    text = shown()
    assert "gone-1" in text
    assert "gone-2" not in text
    assert "Only the first 2 are shown." in text


# Who may what, and the pages that it replaces


@pytest.mark.slow
@pytest.mark.parametrize("missing", EDITING[1:])
def test_it_is_edited_with_all_three_permissions(missing):
    """A save may create, update and delete rows; with fewer permissions there are only texts."""
    SectionSettingsFactory(section="products", priority=Decimal("0.6"), changefreq="daily")
    editor = client_of(*EDITING)
    assert 'name="section-products-priority"' in shown(editor)
    viewer = client_of(*(name for name in EDITING if name != missing), name="viewer")
    row = row_of(shown(viewer), "products")
    assert "name=" not in row
    assert "<b>0.6</b>" in row
    assert '<b>daily</b> <span class="quiet">(declared: weekly)</span>' in row
    assert '<td data-label="Enabled">yes <span class="quiet">(inherited)</span></td>' in row
    before = stored()
    sent = Fields(shown(editor)).values | {"section-products-priority": "0.9"}
    assert viewer.post(TABLE, sent).status_code == 403
    assert stored() == before
    assert editor.post(TABLE, sent).status_code == 302
    assert stored() != before


def test_links_to_a_row_lead_to_the_table(two_sites):
    """Django's history and its index link the page of a row; there is no form for a new one."""
    row = SectionSettingsFactory(site="other", section="products")
    gone = SectionSettingsFactory(site="closed", section="products")
    client = chief()
    response = client.get(page("sectionsettings", "change", row.pk))
    assert (response.status_code, response.url) == (302, f"{TABLE}?site=other&q=products")
    assert names(text_of(client.get(response.url))) == ["products"]
    for url in (page("sectionsettings", "change", gone.pk), page("sectionsettings", "add")):
        response = client.get(url)
        assert (response.status_code, response.url) == (302, TABLE)
    assert client_of().get(page("sectionsettings", "change", row.pk)).status_code == 403
    index = text_of(client.get("/admin/sitemapkit/"))
    assert f'href="{TABLE}"' in index
    assert page("sectionsettings", "add") not in index
