"""The screen of section settings."""

from decimal import Decimal

import pytest

from django_sitemapkit import Section, StaticSection
from django_sitemapkit.models import SectionSettings
from tests.admin.editors import ALL, add, change, chief, errors_of, live, page, tags, text_of
from tests.factories import products
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db


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


def test_says_what_is_inherited():
    """At each field stands what an empty one comes to, and below what is in force and whence."""
    row = SectionSettings(site="default", section="products", priority=Decimal("0.6"))
    row.save()
    text = text_of(chief().get(page("sectionsettings", "change", row.pk)))
    assert "Leave empty to inherit the declared value: weekly." in text
    assert "Leave empty to inherit the declared value: yes." in text
    assert "<td>weekly</td><td>declaration of the section</td>" in text
    assert "<td>0.6</td><td>these settings (declared: none)</td>" in text


def test_a_new_one_is_made_beside_what_all_sections_declare(sections):
    """Which value to change is seen before it is; rows and wrong values have words of their own."""
    sections.add(Off)
    sections.add(Odd)
    text = text_of(chief().get(page("sectionsettings", "add")))
    assert '<th scope="row">pages</th><td>yes</td><td>none</td><td>0.3</td>' in text
    assert '<th scope="row">off</th><td>no</td><td>none</td><td>none</td>' in text
    assert '<th scope="row">odd</th><td>yes</td><td>from each row</td><td>none</td>' in text


def test_a_section_that_is_off_may_be_switched_on(sections):
    """The choice has all registered sections, also those that are declared to be off."""
    sections.add(Off)
    assert live("off") == ""
    assert add("sectionsettings", section="off", enabled="true").status_code == 302
    assert "/off/</loc>" in live("off")


def test_extra_urls_are_a_section_like_any_other():
    """What is set for them holds for those that say nothing themselves."""
    add("extraurl", path="/a/")
    add("extraurl", path="/b/", priority="0.2")
    assert add("sectionsettings", section="extra-urls", priority="0.9").status_code == 302
    assert tags(live("extra-urls"), "/a/") == {"priority": "0.9"}
    assert tags(live("extra-urls"), "/b/") == {"priority": "0.2"}
    row = SectionSettings.objects.get()
    text = text_of(chief().get(page("sectionsettings", "change", row.pk)))
    assert "<td>0.9</td><td>these settings (declared: none)</td>" in text
    assert change(row, enabled="false").status_code == 302
    assert not live("extra-urls")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"section": "nothing"}, "Select a valid choice"),
        ({"section": ""}, "This field is required"),
        ({"section": "pages", "priority": "2"}, "less than or equal to 1"),
        ({"section": "pages", "changefreq": "often"}, "Select a valid choice"),
    ],
)
def test_says_what_is_wrong(values, shown):
    """Nothing is saved, and the page says why."""
    assert shown in errors_of(add("sectionsettings", **values))
    assert not SectionSettings.objects.exists()


def test_a_second_row_for_a_section_is_told_with_a_link():
    """A section has one row, which is linked."""
    row = SectionSettings(site="default", section="pages")
    row.save()
    text = text_of(add("sectionsettings", section="pages"))
    assert f'<a href="{page("sectionsettings", "change", row.pk)}">pages (default)</a>' in text
    assert change(row, priority="0.9").status_code == 302
    assert tags(live("pages"), "/about/")["priority"] == "0.9"


def test_a_section_of_another_site_is_refused(settings):
    """With several sites a site may have only some of the sections."""
    del settings.SITEMAPKIT_BASE_URL
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": "https://www.example.com", "SECTIONS": ["pages"]},
        "other": {"BASE_URL": "https://other.example"},
    }
    response = add("sectionsettings", site="main", section="products")
    assert "The site does not have this section." in errors_of(response)
    assert add("sectionsettings", site="other", section="products").status_code == 302


def test_a_preview_shows_what_is_not_saved():
    """The button shows what would be in force, and stores nothing."""
    products(1)
    text = text_of(add("sectionsettings", section="pages", priority="0.9", _preview="1"))
    assert "<td>0.9</td><td>these settings (declared: 0.3)</td>" in text
    assert not SectionSettings.objects.exists()


def test_a_section_that_is_gone_is_told():
    """Its row does nothing, and says so; it can be deleted."""
    row = SectionSettings(site="default", section="gone")
    row.save()
    text = text_of(chief().get(page("sectionsettings", "change", row.pk)))
    assert "Section “gone” does not exist, so these settings have no effect." in text
    text = text_of(chief().get(page("sectionsettings", "changelist")))
    assert "inherits" in text
