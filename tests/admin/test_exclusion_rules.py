"""The screen of exclusion rules, and what they hit."""

import re
from html import unescape

import pytest
from django.utils.translation import get_language

from django_sitemapkit import StaticSection
from django_sitemapkit.admin import rules
from django_sitemapkit.admin.rules import count_matches
from django_sitemapkit.builds import build
from django_sitemapkit.builds.report.published import UrlMatches
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import ExclusionRule, ExtraUrl, UrlOverride
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


def add_rule(pattern, confirmed=None, **values):
    """Send the form for a new rule, with the button that confirms a pattern if one is given."""
    if confirmed is not None:
        values["_confirmed"] = f"default {confirmed}"
    return add("exclusionrule", pattern=pattern, **values)


@pytest.mark.slow
def test_a_rule_leaves_out_what_it_matches():
    """It acts on the live pages at once; it may be pasted with the host."""
    assert add_rule("https://www.example.com/ab*t/$", confirmed="/ab*t/$").status_code == 302
    row = ExclusionRule.objects.get()
    assert row.pattern == "/ab*t/$"
    assert not entry(live("pages"), "/about/")
    assert change(row, pattern="/press", _confirmed="default /press").status_code == 302
    assert entry(live("pages"), "/about/")
    assert not entry(live("pages"), "/press/")


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("", "This field is required"),
        ("about", "A pattern starts with / or *."),
        ("/a#b", "cannot contain #"),
        ("https://other.example/*", "another host"),
    ],
)
def test_says_what_is_wrong(pattern, shown):
    """Nothing is saved, and the page says why."""
    assert shown in errors_of(add("exclusionrule", pattern=pattern))
    assert not ExclusionRule.objects.exists()


def test_a_duplicate_is_told_with_a_link():
    """The one that is there is linked."""
    row = ExclusionRule(site="default", pattern="/%C3%A9")
    row.save()
    text = text_of(add("exclusionrule", pattern="/é"))
    assert f'This already exists: <a href="{page("exclusionrule", "change", row.pk)}">' in text


@pytest.mark.slow
def test_shows_what_it_hits():
    """Unsaved it is tried on what is listed; saved, on what would be without it."""
    products(3)
    ArticleFactory()
    for pattern in ("/products/*-none/", "/About/"):
        text = text_of(add("exclusionrule", pattern=pattern, _preview="1"))
        assert "The rule matches none of the 6 URLs that were read." in text
        assert ("Capitals matter" in text) is (pattern == "/About/")
    text = text_of(add("exclusionrule", pattern="/about", _preview="1"))
    assert '<li><a href="https://www.example.com/about/">' in text
    assert "The rule matches 1 of 6 URLs (17 %)." in text
    stay = "URLs that an override includes are counted, too, and stay."
    assert stay not in text
    UrlOverride.objects.create(site="default", path="/about/", include=True)
    assert stay in text_of(add("exclusionrule", pattern="/about", _preview="1"))
    assert not ExclusionRule.objects.exists()
    row = ExclusionRule(site="default", pattern="/about")
    row.save()
    for name in ("change", "delete"):
        text = text_of(chief().get(page("exclusionrule", name, row.pk)))
        (count,) = re.findall('<a href="([^"]*)">Count the URLs that the rule matches</a>', text)
        assert "The rule matches 1 of 6 URLs (17 %)." in text_of(chief().get(unescape(count)))
    text = text_of(change(row, _preview="1"))
    assert '<li><a href="https://www.example.com/about/">' in text


@pytest.mark.slow
def test_an_unsaved_rule_is_tried_on_the_published_files(settings):
    """They are what would lose URLs; a lost file is reported.

    A saved rule is tried on them until it has taken URLs out of them, and then on the sections.
    """
    storage = use_storage(settings, "Memory")
    ExtraUrl(site="default", path="/it's/").save()
    build(SITE)
    text = text_of(add("exclusionrule", pattern="/it's", _preview="1"))
    assert "Counted in the files of build" in text
    assert '<li><a href="https://www.example.com/it&#x27;s/">' in text
    row = ExclusionRule(site="default", pattern="/it's")
    row.save()
    assert "Counted in the files of build" in text_of(change(row, _preview="1"))
    assert build(SITE).status == "published"
    text = text_of(change(row, _preview="1"))
    assert "The URLs that the sections produce were counted" in text
    assert "The rule matches 1 of" in text
    for name in list(names(storage)):
        storage.delete(name)
    text = text_of(add("exclusionrule", pattern="/press", _preview="1"))
    assert "cannot be read" in text
    with pytest.raises(StorageFailure):
        count_matches(SITE, "/", {})


def names(storage, folder=""):
    """Yield the names of all files."""
    folders, files = storage.listdir(folder)
    yield from (f"{folder}{file}" for file in files)
    for name in folders:
        yield from names(storage, f"{folder}{name}/")


def test_a_look_is_bounded(monkeypatch):
    """It shows the first hits, counts all, and ends when its time is up."""
    products(30)
    found = count_matches(SITE, "/products/", {})
    assert (len(found.locations), found.matched, found.complete) == (20, 30, True)
    monkeypatch.setattr(rules, "COUNT_SECONDS", -1)
    text = text_of(add_rule("/products/", _preview="1"))
    assert "Not all URLs are counted yet: the rule matches 30 of the first 30." in text


class Versions(StaticSection):
    """Pages in two languages."""

    name = "versions"
    items = ("/p/", "/q/")
    i18n = alternates = True
    languages = ("en", "es")

    def location(self, item):
        return f"/{get_language()}{item}"


@pytest.mark.slow
@pytest.mark.parametrize("has_versions", [True, False])
def test_other_languages_lose_their_links_to_what_a_rule_excludes(settings, sections, has_versions):
    """They are not counted: these URLs stay."""
    settings.LANGUAGES = [("en", "English"), ("es", "Spanish")]
    if has_versions:
        sections.add(Versions)
    use_storage(settings, "Memory")
    build(SITE)
    text = text_of(add_rule("/es/*" if has_versions else "/about/", _preview="1"))
    assert f"The rule matches {2 if has_versions else 1} of" in text
    said = "URLs of the same pages in other languages stay, and lose their links to these."
    assert (said in text) == has_versions


@pytest.mark.slow
@pytest.mark.parametrize("is_stored", [True, False])
def test_live_sections_are_counted_on(monkeypatch, settings, is_stored):
    """Of a built rule, and where nothing is published; a row that came since is counted, too."""
    products(30)
    monkeypatch.setattr(rules, "COUNT_SECONDS", -1)
    client = chief()
    if is_stored:
        use_storage(settings, "Memory")
        row = ExclusionRule.objects.create(site="default", pattern="/products/")
        build(SITE)
        text = text_of(change(row, client=client, _preview="1"))
    else:
        text = text_of(add("exclusionrule", client=client, pattern="/products/", _preview="1"))
    url = unescape(re.search(r'href="([^"]*/count/[^"]*)"', text)[1])
    while "Refresh" in (page_of_count := client.get(url)).headers:
        assert "Counting…" in text_of(page_of_count)
    text = text_of(page_of_count)
    assert "The rule matches 30 of 32 URLs (94 %)." in text
    assert ("Exclude 30 URLs" in text) == (not is_stored)
    back = unescape(re.search(r'href="([^"]*)"[^>]*>Back to the rule', text)[1])
    assert re.search(r'name="pattern" value="/products/"', text_of(client.get(back)))
    products(1, slug="late")
    while "Refresh" in (page_of_count := client.get(url)).headers:
        pass
    assert "The rule matches 31 of 33 URLs (94 %)." in text_of(page_of_count)


@pytest.fixture
def published(settings):
    """Publish 33 URLs, 20 in a file at most."""
    settings.SITEMAPKIT_MAX_URLS = 20
    storage = use_storage(settings, "Memory")
    products(30)
    ArticleFactory()
    build(SITE)
    return storage


@pytest.mark.slow
def test_a_rule_for_many_urls_is_confirmed(published):
    """First the number is shown; only the pattern that was shown can then be saved."""
    text = text_of(add_rule("/products/"))
    assert "The rule matches 30 of 33 URLs (91 %)." in text
    assert "The rule is not saved yet" in text
    assert 'name="_confirmed" value="default /products/"' in text
    assert "Exclude 30 URLs" in text
    assert 'name="_save"' not in text
    assert add_rule("/products/", confirmed="/press").status_code == 200
    assert not ExclusionRule.objects.exists()
    assert add_rule("/products/", confirmed="/products/").status_code == 302
    row = ExclusionRule.objects.get()
    assert change(row, note="Summer").status_code == 302
    assert change(row, pattern="/article").status_code == 302
    assert change(row, pattern="/*").status_code == 200


@pytest.mark.slow
def test_a_rule_for_few_urls_is_saved_at_once(published):
    """Its message has the way back."""
    response = chief().post(
        page("exclusionrule", "add"), {"site": "default", "pattern": "/about"}, follow=True
    )
    row = ExclusionRule.objects.get()
    text = text_of(response)
    assert "The published sitemap stays as it is until the next build." in text
    assert f'<a href="{page("exclusionrule", "delete", row.pk)}">Undo</a>' in text


@pytest.mark.parametrize("pattern", ["/", "*", "/*", "/*$", "/**"])
def test_a_rule_for_everything_says_so(pattern):
    """Even where there is nothing yet that it could remove."""
    text = text_of(add_rule(pattern))
    assert "This rule matches every URL of the site. Only URLs that" in text
    assert not ExclusionRule.objects.exists()


@pytest.mark.slow
def test_a_rule_that_has_matched_nothing_so_far_is_no_danger(published, monkeypatch):
    """It is not saved before all URLs were read, unless the user says so."""
    monkeypatch.setattr(UrlMatches.continue_reading, "__defaults__", (-1,))
    text = text_of(add_rule("/Products/"))
    assert "Not all URLs are counted yet: the rule matches 0 of the first 20." in text
    assert "Save the rule</button>" in text
    assert "sitemapkit-danger" not in text
    assert not ExclusionRule.objects.exists()


def test_what_was_counted_is_not_counted_again(published, monkeypatch):
    """A preview that read everything gives the number to the page that saves."""
    client = chief()
    preview = {"_preview": "1", "client": client, "pattern": "/products/"}
    assert "The rule matches 30 of 33 URLs (91 %)." in text_of(add("exclusionrule", **preview))
    monkeypatch.setattr(UrlMatches.continue_reading, "__defaults__", (-1,))
    text = text_of(add("exclusionrule", client=client, pattern="/products/"))
    assert "Exclude 30 URLs" in text


@pytest.mark.slow
def test_many_files_are_counted_on(published, monkeypatch):
    """The first answer is a lower bound; the page of the count goes on to the exact number."""
    monkeypatch.setattr(UrlMatches.continue_reading, "__defaults__", (-1,))
    client = chief()
    response = add("exclusionrule", client=client, pattern="/products/", note="Summer")
    text = text_of(response)
    url = unescape(re.search(r'href="([^"]*/count/[^"]*)"', text)[1])
    assert "Exclude 20 URLs, and those not counted yet" in text
    seen = []
    while "Refresh" in (page_of_count := client.get(url)).headers:
        seen.append(text_of(page_of_count))
    assert all("Counting…" in text for text in seen)
    text = text_of(page_of_count)
    assert "Counting…" not in text
    assert "The rule matches 30 of 33 URLs (91 %)." in text
    assert "Exclude 30 URLs" in text
    assert len(seen) < 3
    values = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', text))
    response = client.post(
        page("exclusionrule", "add"), values | {"_confirmed": "default /products/"}
    )
    assert response.status_code == 302
    assert ExclusionRule.objects.get().note == "Summer"
    assert client.get(url.replace("products", "a b")).status_code == 200


@pytest.mark.slow
def test_a_rule_is_saved_where_nothing_can_be_counted(published):
    """But only once that is confirmed: nobody has seen how many URLs would go."""
    for name in list(names(published)):
        published.delete(name)
    text = text_of(add_rule("/products/"))
    assert "cannot be read" in text
    assert 'name="_confirmed" value="default /products/"' in text
    assert add_rule("/products/", confirmed="/products/").status_code == 302


def test_a_look_leaves_out_what_no_location_is(sections):
    """A row that is refused has no URL to hit."""
    products(1, slug="a")
    products(1, slug="b")
    products(1, slug="raises")
    sections.add(WithoutSome)
    found = count_matches(SITE, "/some/", {})
    assert found.locations == ["https://www.example.com/some/b/"]


class WithoutSome(ALL[0]):
    name = "without-some"

    def location(self, obj):
        return {"a": "no path", "b": "/some/b/"}[obj.slug]
