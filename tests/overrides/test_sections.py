"""Which sections a site has, and what holds for each, once editors have had their say."""

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.models import ExtraUrl, SectionSettings
from django_sitemapkit.overrides import in_force as module
from django_sitemapkit.overrides import section_of, sections_of
from django_sitemapkit.sites import all_sites
from tests.factories import EPOCH, SITE
from tests.overrides.setting import by_path, entries, extra, rule, setting

pytestmark = pytest.mark.django_db


class Pages(StaticSection):
    """Two pages by hand."""

    items = ["home", "about"]
    changefreq = "weekly"


class Hidden(StaticSection):
    """A section that is declared and switched off."""

    items = ["/hidden/"]
    enabled = False


@pytest.fixture
def site(sections):
    """Declare a section that is on, and one that is off."""
    sections.add(Pages)
    sections.add(Hidden)
    return SITE


def names(site=SITE):
    """Return the sections of a site, by both ways to them."""
    found = [section.get_name() for section in sections_of(site)]
    asked = [name for name in ("pages", "hidden", "extra-urls") if section_of(site, name)]
    assert found == asked
    return found


@pytest.mark.parametrize(
    ("section", "enabled", "found"),
    [
        ("pages", False, []),
        ("pages", True, ["pages"]),
        ("pages", None, ["pages"]),
        ("hidden", True, ["pages", "hidden"]),
        ("hidden", False, ["pages"]),
        ("hidden", None, ["pages"]),
        ("gone", True, ["pages"]),
    ],
)
def test_a_section_is_switched_on_and_off(site, section, enabled, found):
    """Whatever it declares; where that is not said, what it declares holds."""
    setting(section, enabled=enabled)
    assert names() == found


def test_settings_are_those_of_a_site(site, settings):
    """Another one has its own."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example", "SECTIONS": ["hidden"]},
    }
    one, two = all_sites()
    setting("hidden", enabled=True)
    assert (names(one), names(two)) == (["pages"], [])
    for key in ("one", "two"):
        SectionSettings.objects.create(site=key, section="hidden", enabled=True)
        SectionSettings.objects.create(site=key, section="pages", enabled=True)
    assert (names(one), names(two)) == (["pages", "hidden"], ["hidden"])


def test_what_is_set_for_a_section_holds_for_its_urls(site):
    """In the place of what it declares; and no longer when it is taken back."""
    row = setting("pages", changefreq="daily", priority="0.70")
    assert set(map(tuple, map(dict.items, entries("pages").values()))) == {
        (("changefreq", "daily"), ("priority", "0.7"))
    }
    setting("pages", changefreq="", priority="0")
    assert entries("pages")["/"] == {"changefreq": "weekly", "priority": "0.0"}
    row.delete()
    assert entries("pages")["/"] == {"changefreq": "weekly"}


def test_what_a_method_returns_gives_way_to_what_is_set(site, sections):
    """It is not even asked."""
    asked = []

    def priority(self, item):
        return asked.append(item)

    sections.add(type("Asking", (Pages,), {"priority": priority}))
    assert "priority" not in entries("asking")["/"]
    assert len(asked) == 2
    setting("asking", priority="0.5")
    assert entries("asking")["/"]["priority"] == "0.5"
    assert len(asked) == 2


def test_a_wrong_setting_is_left_out(site):
    """The URLs stay, without it."""
    setting("pages", priority="7")
    assert entries("pages")["/"] == {"changefreq": "weekly"}


# Extra URLs


def test_extra_urls_are_a_section_while_there_are_any(site):
    """The last one, and of their own site."""
    ExtraUrl.objects.create(site="other", path="/other/")
    assert names() == ["pages"]
    row = extra("/b/", lastmod=EPOCH, changefreq="daily", priority="0.9")
    extra("/a b/?c=ü")
    assert names() == ["pages", "extra-urls"]
    assert entries("extra-urls") == {
        "/b/": {"lastmod": "2024-02-29T12:30:15+00:00", "changefreq": "daily", "priority": "0.9"},
        "/a%20b/?c=%C3%BC": {},
    }
    row.path = "/c/"
    row.save()
    assert list(entries("extra-urls")) == ["/c/", "/a%20b/?c=%C3%BC"]
    ExtraUrl.objects.filter(site=SITE.key).delete()
    assert names() == ["pages"]


def test_extra_urls_are_steered_as_others(site):
    """Their own values win over those of the section; rules and overrides act on them."""
    extra("/a/", priority="0.1")
    extra("/b/", changefreq="daily")
    extra("/c/")
    setting("extra-urls", priority="0.5", changefreq="never")
    by_path("/c/", priority="0.9")
    rule("/b/")
    assert entries("extra-urls") == {
        "/a/": {"changefreq": "never", "priority": "0.1"},
        "/c/": {"changefreq": "never", "priority": "0.9"},
    }
    setting("extra-urls", enabled=False)
    assert names() == ["pages"]
    setting("extra-urls", enabled=True)
    assert names() == ["pages", "extra-urls"]


def test_extra_urls_are_of_each_site_that_has_any(site, settings):
    """Whatever sections it names; below its own path alone."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://www.example.com", "SECTIONS": ["pages"]},
        "two": {"BASE_URL": "https://www.example.com/two"},
    }
    one, two = all_sites()
    for key in ("one", "two"):
        ExtraUrl.objects.create(site=key, path="/two/a/")
        ExtraUrl.objects.create(site=key, path="/b/")
    assert names(one) == ["pages", "extra-urls"]
    assert names(two) == ["pages", "extra-urls"]
    assert list(entries("extra-urls", one)) == ["/two/a/", "/b/"]
    assert list(entries("extra-urls", two)) == ["/two/a/"]


def test_as_many_extra_urls_as_there_are_make_pages(site, client, settings):
    """As those of any section do."""
    settings.SITEMAPKIT_MAX_URLS = 2
    for n in range(5):
        extra(f"/extra/{n}/")
    index = client.get("/sitemap.xml").getvalue().decode()
    assert index.count("/sitemap-extra-urls-") == 3
    assert client.get("/sitemap-extra-urls-3.xml").getvalue().count(b"<loc>") == 1


# What is remembered


def test_few_sites_are_remembered(site, settings):
    """Those asked for last; the others are read again."""
    module._latest_of_site.cache_clear()
    settings.SITEMAPKIT_SITES = {
        f"site-{n}": {"BASE_URL": f"https://site-{n}.example"}
        for n in range(module.MAX_CACHED_SITES + 1)
    }
    first, second, *others = all_sites()
    known, forgotten = module.overrides_of(first), module.overrides_of(second)
    for other in others:
        assert module.overrides_of(first) is known
        module.overrides_of(other)
    assert module.overrides_of(first) is known
    assert module.overrides_of(second) is not forgotten
    assert repr(known) == "<overrides of site 'site-0', revision 0>"
