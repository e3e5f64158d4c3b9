"""The screen of URL overrides."""

import json
from copy import copy
from decimal import Decimal

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from django_sitemapkit import Section
from django_sitemapkit.builds import BuildResult, build
from django_sitemapkit.exceptions import BuildFailed, BuildRunning
from django_sitemapkit.models import Build, ExclusionRule, ExtraUrl, SectionSettings, UrlOverride
from tests.admin.editors import (
    ALL,
    EMPTY,
    add,
    change,
    chief,
    client_of,
    entry,
    errors_of,
    live,
    page,
    tags,
    text_of,
)
from tests.builds import use_storage
from tests.factories import SITE, ReadingFactory, products
from tests.testapp.models import Product, Reading

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _registered(sections):
    for section in ALL:
        sections.add(section)


def preview(model, row=None, **values):
    """Press the button, and return the page."""
    if row is None:
        return add(model, _preview="1", **values)
    return change(row, _preview="1", **values)


def run_action(client, name, *rows, **query):
    """Run an action on some rows."""
    data = {"action": name, "_selected_action": [row.pk for row in rows]}
    return client.post(page("urloverride", "changelist"), data, query_params=query)


def overrides(*paths, **values):
    """Store overrides of some paths."""
    for path in paths:
        UrlOverride(site="default", path=path, **values).save()
    return list(UrlOverride.objects.filter(path__in=paths).order_by("pk"))


def test_a_pasted_url_becomes_its_path():
    """A whole URL, http and in capitals, becomes the path that the section gives."""
    response = add("urloverride", path=" http://WWW.example.com:80/about/ ", include="False")
    assert response.status_code == 302, errors_of(response)
    assert UrlOverride.objects.get().path == "/about/"
    assert entry(live("pages"), "/about/") == ""
    assert entry(live("pages"), "/press/")


def test_a_changed_path_is_normalised_too():
    """The path of an override may be repaired, and its hash follows."""
    (row,) = overrides("/abuot/", include=False)
    assert change(row, path="https://www.example.com/about/").status_code == 302
    assert entry(live("pages"), "/about/") == ""


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"path": "https://other.example/"}, "another host"),
        ({"path": "javascript:alert(1)"}, "not a web address"),
        ({"path": ""}, "Enter a path."),
        ({"path": "/a/", "object_id": "1"}, "not both"),
        ({"model": "testapp.product", "object_id": "77"}, "object does not exist"),
        ({"model": "testapp.product", "object_id": "x"}, "object does not exist"),
        ({"model": "testapp.product"}, "object does not exist"),
        ({"object_id": "1"}, "object does not exist"),
        ({"model": "testapp.shop", "object_id": "1"}, "Select a valid choice"),
        ({"path": "/a/", "lastmod_0": "2999-01-01", "lastmod_1": "0:00"}, "in the future"),
        ({"path": "/a/", "priority": "1.1"}, "less than or equal to 1"),
        ({"path": "/a/", "site": "other"}, "Select a valid choice"),
    ],
)
def test_says_what_is_wrong(values, shown):
    """Nothing is saved, and the page says why."""
    response = add("urloverride", **values)
    assert shown in errors_of(response)
    assert not UrlOverride.objects.exists()


@pytest.mark.slow
def test_a_duplicate_is_told_with_a_link():
    """The one that is there is linked, even if spelt otherwise; itself is no duplicate."""
    (row,) = overrides("/caf%C3%A9/")
    text = text_of(add("urloverride", path="https://www.example.com/café/"))
    assert f'This already exists: <a href="{page("urloverride", "change", row.pk)}">' in text
    assert change(row, note="why").status_code == 302


def test_by_object_it_follows_the_object():
    """The object is named by its key; where its URL goes, the override goes too."""
    (product,) = products(1)
    key = f"0{product.pk}"
    response = add("urloverride", model="testapp.product", object_id=key, priority="0.9")
    assert response.status_code == 302, errors_of(response)
    row = UrlOverride.objects.get()
    assert (row.model, row.object_id) == ("testapp.product", str(product.pk))
    Product.objects.update(slug="renamed")
    assert tags(live("products"), "/renamed/")["priority"] == "0.9"
    assert "This already exists" in errors_of(
        add("urloverride", model="testapp.product", object_id=product.pk)
    )


@pytest.mark.slow
def test_the_object_is_not_changed_once_it_is_chosen():
    """The page names it, linked if it has a page, and takes no other."""
    (product,) = products(1)
    row = UrlOverride(site="default", model="testapp.product", object_id=str(product.pk))
    row.save()
    text = text_of(chief().get(page("urloverride", "change", row.pk)))
    assert f"Product: {product.slug}" in text
    assert 'name="object_id"' not in text
    assert change(row, model="testapp.article", object_id="9", note="n").status_code == 302
    row.refresh_from_db()
    assert (row.model, row.object_id, row.note) == ("testapp.product", str(product.pk), "n")
    product.delete()
    text = text_of(chief().get(page("urloverride", "change", row.pk)))
    assert "deleted" in text
    assert "The object was deleted, so the override has no effect." in text


def test_shows_where_each_value_comes_from():
    """Of each tag the value in force stands there with its origin, and the whole entry."""
    products(1)
    SectionSettings(site="default", section="products", priority=Decimal("0.6")).save()
    (row,) = overrides("/about/", changefreq="daily")
    by_object = UrlOverride(
        site="default", model="testapp.product", object_id=str(Product.objects.get().pk)
    )
    by_object.save()
    text = text_of(chief().get(page("urloverride", "change", row.pk)))
    assert '>daily</td><td data-label="Source">URL override</td>' in text
    assert '>0.3</td><td data-label="Source">declaration of the section</td>' in text
    assert '>–</td><td data-label="Source">not set</td>' in text
    assert "&lt;changefreq&gt;daily&lt;/changefreq&gt;" in text
    assert '<a href="https://www.example.com/sitemap-pages-1.xml' in text
    text = text_of(chief().get(page("urloverride", "change", by_object.pk)))
    assert '>0.6</td><td data-label="Source">section settings</td>' in text
    assert '>weekly</td><td data-label="Source">declaration of the section</td>' in text


@pytest.mark.slow
def test_says_why_a_url_is_not_listed():
    """It may be left out by a rule, or no section may give it."""
    ExclusionRule(site="default", pattern="/about").save()
    about, nowhere = overrides("/about/", "/nowhere/")
    text = text_of(chief().get(page("urloverride", "change", about.pk)))
    assert "The exclusion rule /about excludes it." in text
    text = text_of(chief().get(page("urloverride", "change", nowhere.pk)))
    assert "No section was found for this URL" in text


def test_an_object_of_no_section_is_told():
    """An override of it does nothing, and says so."""
    ReadingFactory(level=3)
    row = UrlOverride(site="default", model="testapp.reading", object_id="3")
    row.save()
    text = text_of(chief().get(page("urloverride", "change", row.pk)))
    assert "No section of this site lists objects of this model." in text


@pytest.mark.slow
def test_a_preview_shows_what_is_not_saved():
    """The button shows the entry as it would be; nothing is stored, not even a revision."""
    text = text_of(preview("urloverride", path="/about/", priority="0.9"))
    assert "unsaved changes" in text
    assert '>0.9</td><td data-label="Source">URL override</td>' in text
    assert 'value="0.9"' in text
    assert not UrlOverride.objects.exists()
    (row,) = overrides("/about/", priority="0.5")
    before = live("pages")
    text = text_of(preview("urloverride", row, include="False"))
    assert "A URL override excludes it." in text
    assert UrlOverride.objects.get().include is None
    assert live("pages") == before
    assert not LogEntry.objects.exists()


def test_a_preview_of_what_is_wrong_says_what():
    """There is nothing to show then."""
    response = preview("urloverride", path="/about/", priority="7")
    assert "less than or equal to 1" in errors_of(response)
    assert response.context["preview"] is None


def test_a_section_that_fails_does_not_take_the_page_along(sections):
    """What is wrong with the project's own code is reported on the page."""

    class Broken(Section):
        name = "broken"
        queryset = Reading.objects.all()

        def location(self, obj):
            raise KeyError("no such thing")

    sections.add(Broken)
    ReadingFactory(level=3)
    row = UrlOverride(site="default", model="testapp.reading", object_id="3")
    row.save()
    text = text_of(chief().get(page("urloverride", "change", row.pk)))
    assert "location raised KeyError" in text


@pytest.fixture
def failing(sections):
    """Give a section that fails as a whole."""

    class Failing(Section):
        name = "failing"
        fails = True

        def get_queryset(self):
            if self.fails:
                raise KeyError("no such thing")
            return Reading.objects.all()

        def location(self, obj):
            return f"/readings/{obj.pk}/"

    sections.add(Failing)
    return Failing


def test_a_section_that_fails_takes_no_page_along(failing):
    """Neither where models are chosen, nor where all URLs are looked at."""
    text = text_of(chief().get(page("urloverride", "add")))
    assert "testapp.product" in text
    assert "testapp.reading" not in text
    row = ExclusionRule(site="default", pattern="/a/")
    row.save()
    text = text_of(change(row, _preview="1"))
    assert "KeyError: &#x27;no such thing&#x27;" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        ExtraUrl(path="/a/"),
        ExclusionRule(pattern="/a/"),
        UrlOverride(path="/a/"),
    ],
    ids=lambda row: row._meta.model_name,
)
def test_with_several_sites_one_has_to_be_chosen(row, settings):
    """A row that has one loses it to nobody."""
    del settings.SITEMAPKIT_BASE_URL
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": "https://www.example.com"},
        "other": {"BASE_URL": "https://other.example"},
    }
    row = copy(row)
    row.site = "main"
    row.save()
    for button in ({}, {"_preview": "1"}):
        response = change(row, site="", **button)
        assert response.status_code == 200
        assert "This field is required." in errors_of(response)


@pytest.mark.slow
def test_a_site_that_is_gone_is_told(settings):
    """The row stays, and its page says that it does nothing."""
    row = UrlOverride(site="gone", path="/a/")
    row.save()
    text = text_of(chief().get(page("urloverride", "change", row.pk)))
    assert "Site “gone” does not exist." in text
    assert "This field is required." in errors_of(change(row, site=""))


@pytest.mark.slow
def test_no_site_is_told_as_a_message(settings):
    """Where no site is known, each page says what to set, and nothing can be saved."""
    (row,) = overrides("/a/")
    del settings.SITEMAPKIT_BASE_URL
    for url in ("changelist", "add", "import"):
        text = text_of(chief().get(page("urloverride", url)))
        assert "set SITEMAPKIT_BASE_URL or SITEMAPKIT_SITES" in text
    assert chief().get(page("urloverride", "change", row.pk)).status_code == 200
    assert "Select a valid choice" in errors_of(add("urloverride", path="/b/"))


def test_a_link_with_a_path_asks_for_no_object():
    """Only the values are left to fill in, as from the page that inspects the URL."""
    url = f"{page('urloverride', 'add')}?site=default&path=/about/"
    client = chief()
    assert "Kind of object" not in text_of(client.get(url))
    data = {"site": "default", "path": "/about/", "include": "", "priority": "0.9"}
    assert client.post(url, data).status_code == 302
    assert str(UrlOverride.objects.get()) == "/about/"
    assert "Kind of object" in text_of(client.get(page("urloverride", "add")))


@pytest.mark.slow
def test_one_site_is_not_asked_for_and_several_are(settings):
    """With one site nobody is bothered with the choice; with several the list has it too."""
    overrides("/a/")
    form = chief().get(page("urloverride", "add")).context["adminform"].form
    assert form["site"].is_hidden
    assert "column-site" not in text_of(chief().get(page("urloverride", "changelist")))
    del settings.SITEMAPKIT_BASE_URL
    settings.SITEMAPKIT_SITES = {
        "default": {"BASE_URL": "https://www.example.com"},
        "other": {"BASE_URL": "https://other.example"},
    }
    form = chief().get(page("urloverride", "add")).context["adminform"].form
    assert not form["site"].is_hidden
    text = text_of(chief().get(page("urloverride", "changelist"), {"site": "other"}))
    assert "0 URL overrides" in text
    text = text_of(chief().get(page("urloverride", "changelist"), {"site": "default"}))
    assert "column-site" in text
    assert "1 URL override" in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, 4),
        ({"include__exact": "1"}, 1),
        ({"include__exact": "0"}, 2),
        ({"include__isnull": "True"}, 1),
        ({"changefreq__exact": "daily"}, 1),
        ({"q": "note-of-a"}, 1),
        ({"q": "https://www.example.com/a/"}, 1),
        ({"q": "https://www.example.com/é/"}, 1),
        ({"q": "http://elsewhere.example/a/"}, 1),
        ({"q": "77"}, 1),
    ],
)
def test_finds_by_filters_and_words(query, found):
    """The list is filtered by what is set and for what, and searched, also for a pasted URL."""
    overrides("/a/", include=True, note="note-of-a")
    overrides("/b/", include=False, changefreq="daily")
    overrides("/é/", include=False)
    UrlOverride(site="default", model="testapp.product", object_id="77").save()
    response = chief().get(page("urloverride", "changelist"), query)
    assert response.context["cl"].result_count == found


@pytest.mark.slow
def test_actions_change_many_at_once():
    """Include, exclude and reset act on the live pages at once, and the history tells of it."""
    about, press = overrides(
        *("/about/", "/press/"),
        priority="0.5",
        changefreq="daily",
        lastmod=timezone.now(),
        note="n",
    )
    client = client_of("view_urloverride", "bulk_urloverride")
    response = run_action(client, "exclude_urls", about, press)
    assert response.status_code == 302
    assert live("pages") == ""
    run_action(client, "include_urls", about)
    assert entry(live("pages"), "/about/")
    assert not entry(live("pages"), "/press/")
    run_action(client, "reset_overrides", about)
    about.refresh_from_db()
    values = (about.include, about.priority, about.changefreq, about.lastmod, about.note)
    assert values == (None, None, "", None, "n")
    entries = LogEntry.objects.filter(object_id=str(about.pk)).order_by("pk")
    assert [entry.user.username for entry in entries] == ["editor"] * 3
    assert json.loads(entries[2].change_message) == [
        {"changed": {"fields": ["include", "priority", "change frequency", "last modified"]}}
    ]
    history = text_of(chief().get(page("urloverride", "history", about.pk)))
    for sentence in ("Excluded from the sitemap.", "Included in the sitemap.", "Changed include, "):
        assert sentence in history


@pytest.mark.slow
def test_an_action_on_a_filtered_list_changes_what_was_chosen(django_assert_max_num_queries):
    """Show changes leaves the filter; and many rows are not changed one by one."""
    overrides(*(f"/{number}/" for number in range(120)), include=True)
    data = {"action": "exclude_urls", "_selected_action": [1], "select_across": "1"}
    client = chief()
    url = page("urloverride", "changelist")
    with django_assert_max_num_queries(40):
        client.post(url, data, query_params={"include__exact": "1"})
    assert UrlOverride.objects.filter(include=False).count() == 120
    assert LogEntry.objects.count() == 120


def test_a_page_left_open_lists_no_url_again():
    """Somebody has excluded the URL since the form was shown."""
    (row,) = overrides("/about/")
    url = page("urloverride", "change", row.pk)
    form = chief().get(url).context["adminform"].form
    assert 'name="initial-include"' in str(form["include"])
    UrlOverride.objects.update(include=False)
    data = {**EMPTY["urloverride"], "path": "/about/", "note": "n", "initial-include": ""}
    assert chief().post(url, data).status_code == 302
    row.refresh_from_db()
    assert (row.note, row.include) == ("n", False)
    data |= {"initial-include": "False", "include": ""}
    chief().post(url, data)
    row.refresh_from_db()
    assert row.include is None


@pytest.mark.slow
def test_to_exclude_many_is_confirmed(settings):
    """More than a twentieth of what is published goes only after the number was shown."""
    use_storage(settings, "Memory")
    build(SITE)
    (row, other) = overrides("/about/", "/nowhere/")
    client = client_of("view_urloverride", "bulk_urloverride")
    text = text_of(run_action(client, "exclude_urls", row, other))
    assert "Site “default”: 1 of 2 published URLs (50 %) are chosen." in text
    assert f'name="_selected_action" value="{row.pk}"' in text
    row.refresh_from_db()
    assert row.include is None
    assert run_action(client, "exclude_urls", other).status_code == 302  # Nothing is lost.
    data = {"action": "exclude_urls", "_selected_action": [row.pk], "select_across": "0"}
    response = client.post(page("urloverride", "changelist"), {**data, "confirmed": "1"})
    assert response.status_code == 302
    row.refresh_from_db()
    assert row.include is False


def test_actions_need_their_own_permission():
    """Who may change overrides one by one may not change many at once."""
    (row,) = overrides("/about/")
    client = client_of("view_urloverride", "change_urloverride")
    text = text_of(client.get(page("urloverride", "changelist")))
    assert "exclude_urls" not in text
    run_action(client, "exclude_urls", row)
    row.refresh_from_db()
    assert row.include is None


@pytest.mark.slow
def test_exclude_now_takes_a_url_out_of_its_file(settings):
    """The override is set, and the published page is without the URL at once."""
    use_storage(settings, "Memory")
    build(SITE)
    (row,) = overrides("/about/")
    assert entry(live("pages"), "/about/")  # published
    client = client_of("view_urloverride", "bulk_urloverride")
    response = client.post(page("urloverride", "exclude", row.pk), follow=True)
    assert "its sitemap file is published without it," in text_of(response)
    assert not entry(live("pages"), "/about/")
    assert entry(live("pages"), "/press/")
    assert LogEntry.objects.get().user.username == "editor"
    response = client.post(page("urloverride", "exclude", row.pk), follow=True)
    assert "No published file lists it." in text_of(response)
    assert LogEntry.objects.count() == 1  # Nothing was set a second time.


@pytest.mark.slow
def test_exclude_now_links_what_it_changed(settings):
    """Its file follows all that editors have changed since the last build."""
    use_storage(settings, "Memory")
    products(2)
    build(SITE)
    (row,) = overrides("/about/")
    overrides("/press/", include=False)
    response = chief().post(page("urloverride", "exclude", row.pk), follow=True)
    assert "its sitemap file is published without it, with any changes" in text_of(response)
    changes = page("build", "differences", Build.objects.published(SITE).pk)
    assert f'href="{changes}"' in response.content.decode()
    assert "/press/" in text_of(chief().get(changes))


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (BuildRunning("someone builds"), "file could not be made again: someone builds"),
        (BuildFailed("the disk is full"), "file could not be made again: the disk is full"),
        (KeyError("x"), "file could not be made again: KeyError: &#x27;x&#x27;"),
    ],
)
def test_exclude_now_says_what_kept_it_from_its_file(error, shown, monkeypatch):
    """The override holds all the same: live pages leave the URL out."""

    def fail(*args, **options):
        raise error

    monkeypatch.setattr("django_sitemapkit.admin.overrides.publish_override", fail)
    (row,) = overrides("/about/")
    response = chief().post(page("urloverride", "exclude", row.pk), follow=True)
    assert shown in text_of(response)
    assert not entry(live("pages"), "/about/")


@pytest.mark.slow
def test_exclude_now_is_not_kept_from_it_by_another_section(failing, settings):
    """Pages of a section that fails are not concerned."""
    use_storage(settings, "Memory")
    (product,) = products(1)
    failing.fails = False
    build(SITE)
    failing.fails = True
    row = UrlOverride(site="default", model="testapp.product", object_id=str(product.pk))
    row.save()
    response = chief().post(page("urloverride", "exclude", row.pk), follow=True)
    assert "its sitemap file is published without it," in text_of(response)


@pytest.mark.slow
def test_exclude_now_says_where_a_path_has_it_listed(settings):
    """An override by path wins over one by object."""
    use_storage(settings, "Memory")
    product, _other = products(2)
    build(SITE)
    overrides(product.get_absolute_url(), include=True)
    row = UrlOverride(site="default", model="testapp.product", object_id=str(product.pk))
    row.save()
    text = text_of(chief().post(page("urloverride", "exclude", row.pk), follow=True))
    assert "The URL is still listed: an override by path includes it." in text
    assert "published without it" not in text
    assert entry(live("products"), product.get_absolute_url())


@pytest.mark.slow
def test_exclude_now_says_that_its_build_is_held(monkeypatch):
    """A build that would lose too much is published by someone who looks at it."""
    held = BuildResult(site="default", build=1, status="held", cause="too few URLs")
    monkeypatch.setattr("django_sitemapkit.admin.overrides.publish_override", lambda *a, **o: held)
    (row,) = overrides("/about/")
    response = chief().post(page("urloverride", "exclude", row.pk), follow=True)
    assert "the build is held for review: too few URLs" in text_of(response)


def test_exclude_now_of_a_gone_site_and_a_gone_row():
    """There is nothing to publish then, and nothing to find."""
    row = UrlOverride(site="gone", path="/a/")
    row.save()
    assert chief().post(page("urloverride", "exclude", row.pk)).status_code == 302
    row.refresh_from_db()
    assert row.include is False
    assert chief().post(page("urloverride", "exclude", 9_999)).status_code == 404


def test_the_history_of_a_change_tells_the_fields():
    """Who changed which override, and what of it."""
    (row,) = overrides("/about/")
    change(row, priority="0.4", note="n")
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.get_change_message()) == (
        *("chief", "Changed Priority and Note."),
    )


def test_the_history_says_that_a_url_was_excluded():
    """When it is, by a new override or a stored one; not each time that its override changes."""
    add("urloverride", path="/about/", include="False")
    (row,) = overrides("/press/")
    change(row, include="False", note="n")
    change(row, note="m")
    entries = LogEntry.objects.order_by("pk")
    assert [(entry.action_flag, entry.get_change_message()) for entry in entries] == [
        (1, "Excluded from the sitemap."),
        (2, "Excluded from the sitemap."),
        (2, "Changed Note."),
    ]


def test_an_action_on_very_many_is_one_entry(monkeypatch):
    """That says how many there were."""
    monkeypatch.setattr("django_sitemapkit.admin.overrides.MAX_LOGGED_ROWS", 2)
    rows = overrides("/a/", "/b/", "/c/")
    run_action(chief(), "exclude_urls", *rows)
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.object_repr) == (None, "3 URL overrides")
    assert entry.change_message == "Excluded from the sitemap."
