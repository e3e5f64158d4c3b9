"""The screen of exclusion rules, and what they hit."""

import pytest

from django_sitemapkit.admin import hits
from django_sitemapkit.admin.hits import hits_of
from django_sitemapkit.builds import build
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import ExclusionRule, ExtraUrl
from tests.admin.editors import (
    ALL,
    add,
    change,
    chief,
    entry,
    errors_of,
    live,
    page,
    text_of,
)
from tests.builds import use_storage
from tests.factories import SITE, ArticleFactory, products

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _registered(sections):
    for section in ALL:
        sections.add(section)


def test_a_rule_leaves_out_what_it_matches():
    """It acts on the live pages at once; it may be pasted with the host."""
    assert add("exclusionrule", pattern="https://www.example.com/ab*t/$").status_code == 302
    row = ExclusionRule.objects.get()
    assert row.pattern == "/ab*t/$"
    assert not entry(live("pages"), "/about/")
    assert change(row, pattern="/press").status_code == 302
    assert entry(live("pages"), "/about/")
    assert not entry(live("pages"), "/press/")


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("", "This field is required"),
        ("about", "Begin it with / or *."),
        ("/a#b", "It has no #"),
        ("https://other.example/*", "another host"),
    ],
)
def test_says_what_is_wrong(pattern, told):
    """Nothing is saved, and the page says why."""
    assert told in errors_of(add("exclusionrule", pattern=pattern))
    assert not ExclusionRule.objects.exists()


def test_a_duplicate_is_told_with_a_link():
    """The one that is there is linked."""
    row = ExclusionRule(site="default", pattern="/%C3%A9")
    row.save()
    text = text_of(add("exclusionrule", pattern="/é"))
    assert f'It is there already: <a href="{page("exclusionrule", "change", row.pk)}">' in text


def test_shows_what_it_hits():
    """Unsaved it is tried on what is listed; saved, on what would be without it."""
    products(3)
    ArticleFactory()
    text = text_of(add("exclusionrule", pattern="/products/*-1/", _preview="1"))
    assert "It hits none of them." in text
    text = text_of(add("exclusionrule", pattern="/about", _preview="1"))
    assert '<li><a href="https://www.example.com/about/">' in text
    assert "6 URLs looked at." in text
    assert "It hits 1 URL:" in text
    assert not ExclusionRule.objects.exists()
    row = ExclusionRule(site="default", pattern="/about")
    row.save()
    text = text_of(chief().get(page("exclusionrule", "change", row.pk)))
    assert '<li><a href="https://www.example.com/about/">' in text


def test_an_unsaved_rule_is_tried_on_the_published_files(settings):
    """They are what would lose URLs; a lost file is told, and a saved rule needs none."""
    storage = use_storage(settings, "Memory")
    ExtraUrl(site="default", path="/it's/").save()
    build(SITE)
    text = text_of(add("exclusionrule", pattern="/it's", _preview="1"))
    assert "Tried on the URLs published by build" in text
    assert '<li><a href="https://www.example.com/it&#x27;s/">' in text
    row = ExclusionRule(site="default", pattern="/about")
    row.save()
    text = text_of(chief().get(page("exclusionrule", "change", row.pk)))
    assert "Tried on the URLs that the sections give now" in text
    for name in list(names(storage)):
        storage.delete(name)
    text = text_of(add("exclusionrule", pattern="/press", _preview="1"))
    assert "cannot be read" in text
    with pytest.raises(StorageFailure):
        hits_of(SITE, "/", live=False)


def names(storage, folder=""):
    """Yield the names of all files."""
    folders, files = storage.listdir(folder)
    yield from (f"{folder}{file}" for file in files)
    for name in folders:
        yield from names(storage, f"{folder}{name}/")


def test_a_look_is_bounded(monkeypatch):
    """It ends with the first hits, after a number of URLs, or when its time is up."""
    products(30)
    found = hits_of(SITE, "/products/", live=True)
    assert (len(found.locations), found.complete) == (hits.SHOWN, False)
    monkeypatch.setattr(hits, "MAX_LOOKED_AT", 10)
    found = hits_of(SITE, "/nothing", live=True)
    assert (found.looked_at, found.complete) == (30, False)
    monkeypatch.setattr(hits, "MAX_LOOKED_AT", 1_000)
    monkeypatch.setattr(hits, "SECONDS", -1)
    assert hits_of(SITE, "/nothing", live=True).looked_at == 30
    text = text_of(add("exclusionrule", pattern="/nothing", _preview="1"))
    assert "the time for a look was up" in text


def test_a_look_leaves_out_what_no_location_is(sections):
    """A row that is refused has no URL to hit."""
    products(1, slug="a")
    products(1, slug="b")
    products(1, slug="raises")
    sections.add(WithoutSome)
    found = hits_of(SITE, "/some/", live=True)
    assert found.locations == ["https://www.example.com/some/b/"]


class WithoutSome(ALL[0]):
    name = "without-some"

    def location(self, obj):
        return {"a": "no path", "b": "/some/b/"}[obj.slug]
