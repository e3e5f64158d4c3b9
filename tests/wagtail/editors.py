"""The admin of Wagtail: a page's entry, the report, and builds that a publication asks for."""

import re

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db.models.signals import post_save
from django.urls import reverse
from wagtail.models import GroupPagePermission, Page, PageLogEntry, Site
from wagtail.signals import page_published

from django_sitemapkit import rebuild
from django_sitemapkit.builds import build, status_of
from django_sitemapkit.contrib.wagtail import register_pages, sites_of_page
from django_sitemapkit.models import BuildRequest, UrlOverride
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import all_sites
from django_sitemapkit.words import english_of
from tests.builds import use_storage
from tests.wagtail.models import EventPage, PlainPage
from tests.wagtail.pages import add, home  # noqa: F401  home is a fixture

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def registered():
    """Register the pages, as a project does."""
    with registry.isolated():
        register_pages()
        yield


@pytest.fixture
def chief(client):
    """Return a client of a user who may do everything."""
    client.force_login(User.objects.create_superuser("chief"))
    return client


def said(response):
    """Return what a page says."""
    assert response.status_code == 200
    return " ".join(re.sub("<[^>]+>", " ", response.content.decode()).split())


def form_of(page, **values):
    """Return the form of a page's first site with these values."""
    (site, *_others) = sites_of_page(page)
    empty = {"include": "", "priority": "", "changefreq": "", "note": ""}
    data = {f"{site.key}-{name}": value for name, value in {**empty, **values}.items()}
    return {"site": site.key, **data}


def test_a_page_is_excluded_in_its_own_editor(chief, home):  # noqa: F811
    """The editor leads there; the sitemap is without the page, and its history says so."""
    about = add(home, "about")
    url = reverse("sitemapkit_page", args=[about.pk])
    assert url in chief.get(reverse("wagtailadmin_pages:edit", args=[about.pk])).content.decode()
    assert "In the sitemap: https://www.example.com/about/" in said(chief.get(url))
    response = chief.post(url, form_of(about, include="False", note="Old"), follow=True)
    assert "Not in the sitemap:" in said(response)
    override = UrlOverride.objects.get()
    assert (override.model, override.object_id) == ("wagtailcore.page", str(about.pk))
    assert PageLogEntry.objects.filter(page=about.pk, action="sitemapkit.change").count() == 1
    live = chief.get("/sitemap-pages-1.xml", headers={"host": "www.example.com"}, secure=True)
    assert b"/about/" not in live.getvalue()


def test_a_wrong_value_is_told(chief, home):  # noqa: F811
    """Nothing is saved."""
    about = add(home, "about")
    url = reverse("sitemapkit_page", args=[about.pk])
    assert "1.0" in said(chief.post(url, form_of(about, priority="7")))
    assert not UrlOverride.objects.exists()
    assert chief.post(url, {**form_of(about), "site": "x"}).status_code == 404


def test_a_draft_says_why_it_is_not_listed(chief, home):  # noqa: F811
    """So does a page that lists several URLs, and one of no site."""
    draft, event = add(home, "draft", live=False), add(home, "event", EventPage, urls=2)
    text = said(chief.get(reverse("sitemapkit_page", args=[draft.pk])))
    assert "Not in the sitemap:" in text
    assert "It is not live." in text
    assert "/event/" in said(chief.get(reverse("sitemapkit_page", args=[event.pk])))
    other = Page.objects.get(depth=1).add_child(instance=PlainPage(title="Other", slug="other"))
    text = said(chief.get(reverse("sitemapkit_page", args=[other.pk])))
    assert "This page belongs to no site." in text


def test_who_may_not_edit_a_page_does_not_change_its_entry(client, home):  # noqa: F811
    """It takes the permissions on overrides and on the page."""
    about = add(home, "about")
    url = reverse("sitemapkit_page", args=[about.pk])
    user = User.objects.create_user("editor")
    names = ("access_admin", "view_urloverride")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(user)
    assert client.get(url).status_code in {302, 403}
    group = Group.objects.create(name="editors")
    GroupPagePermission.objects.create(
        group=group,
        page=home,
        permission=Permission.objects.get(
            codename="change_page", content_type__app_label="wagtailcore"
        ),
    )
    user.groups.add(group)
    text = said(client.get(url))
    assert "In the sitemap:" in text
    assert "<form" not in text
    assert client.post(url, form_of(about, include="False")).status_code in {302, 403}
    assert not UrlOverride.objects.exists()
    assert client.get(reverse("sitemapkit_report")).status_code in {302, 403}


def test_the_report_shows_what_is_published(chief, home, settings, monkeypatch):  # noqa: F811
    """With a button that asks for a build."""
    monkeypatch.setattr(
        "django_sitemapkit.contrib.wagtail_admin.views.start_processing_on_commit",
        lambda *args: None,
    )
    use_storage(settings, "Memory")
    add(home, "about")
    report = reverse("sitemapkit_report")
    assert "Not built, served live" in said(chief.get(report))
    build(all_sites()[0])
    text = said(chief.get(report))
    assert "Section URLs Net change Problems Files pages 2 1" in text
    chief.post(report, {"site": all_sites()[0].key})
    assert BuildRequest.objects.get().requested_by == "chief"
    assert report in chief.get(reverse("wagtailadmin_home")).content.decode()


@pytest.mark.parametrize("screen", ["report", "page"])
def test_a_site_is_as_on_the_overview(chief, home, settings, monkeypatch, screen):  # noqa: F811
    """Its address, what is live, since when, what changed, and the problems."""
    use_storage(settings, "Memory")
    settings.SITEMAPKIT_MAX_SHRINK = 1
    about = add(home, "about")
    url = reverse(f"sitemapkit_{screen}", args=[about.pk] if screen == "page" else [])
    assert "Nothing is published; all sections are served live" in said(chief.get(url))
    site = all_sites()[0]
    build(site)
    monkeypatch.setattr(
        EventPage,
        "get_sitemap_urls",
        lambda page, *args: [{"location": page.full_url, "priority": 7}],
    )
    add(home, "wrong", EventPage)
    for name in ("more", "most"):
        add(home, name)
    build(site)
    status = status_of(site, rows=False, export=False)
    assert (status.urls, status.urls_before, status.problems) == (5, 2, 1)
    text = said(chief.get(url))
    titles = {"report": "Home Sitemaps ", "page": "Home Sitemap"}
    assert titles[screen] in text
    assert f"{site.base} {english_of(status.headline)}, +3 (+150 %) since build" in text
    assert f"since build {status.replaced} Published: just now · Problems: 1" in text
    settings.SITEMAPKIT_MAX_SHRINK = 0
    Page.objects.filter(slug="most").delete()
    held = build(site).build
    assert f"Build {held} is held for review" in said(chief.get(url))


def test_several_sites_have_their_keys(chief, home):  # noqa: F811
    """As the commands name them; so an editor can ask for one."""
    shop = Page.objects.get(depth=1).add_child(instance=PlainPage(title="Shop", slug="shop"))
    Site.objects.create(hostname="shop.example.com", port=443, root_page=shop)
    text = said(chief.get(reverse("sitemapkit_report")))
    for site in all_sites():
        assert f"{site.key}, {site.base} " in text


def test_who_may_not_view_builds_sees_only_the_page(client, home):  # noqa: F811
    """What is published of the whole site takes the permission that the report takes."""
    about = add(home, "about")
    group = Group.objects.create(name="editors")
    change = Permission.objects.get(codename="change_page", content_type__app_label="wagtailcore")
    GroupPagePermission.objects.create(group=group, page=home, permission=change)
    user = User.objects.create_user("editor")
    user.groups.add(group)
    names = ["access_admin", "view_urloverride"]
    for allowed in (False, True):
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
        client.force_login(user)
        text = said(client.get(reverse("sitemapkit_page", args=[about.pk])))
        assert "In the sitemap:" in text
        assert ("Nothing is published" in text) == allowed
        names.append("view_build")


def test_sites_may_have_keys_of_their_own(home, settings):  # noqa: F811
    """A page is at the site whose host its Wagtail site has."""
    shop = Page.objects.get(depth=1).add_child(instance=PlainPage(title="Shop", slug="shop"))
    Site.objects.create(hostname="shop.example.com", port=443, root_page=shop)
    settings.SITEMAPKIT_SITES = {
        "www": {"BASE_URL": "https://www.example.com"},
        "shop": {"BASE_URL": "https://shop.example.com"},
    }
    keys = [[site.key for site in sites_of_page(page)] for page in (home, shop, add(shop, "tea"))]
    assert keys == [["www"], ["shop"], ["shop"]]


@pytest.fixture
def begun(monkeypatch):
    """Give the keys of the sites whose builds begin, which nobody makes."""
    keys = []
    monkeypatch.setattr(
        rebuild, "start_processing_on_commit", lambda site, choose: keys.append(site.key)
    )
    return keys


def test_changed_pages_ask_for_a_build(home, settings, begun):  # noqa: F811
    """Whichever model they have: all are rows of the section of pages."""
    settings.SITEMAPKIT_REBUILD = "on_change"
    for model in (PlainPage, EventPage):
        rebuild.request_builds([model])
        assert post_save.has_listeners(model)
    assert begun == [all_sites()[0].key] * 2
    assert BuildRequest.objects.count() == 1


@pytest.mark.parametrize("on_change", [False, True])
def test_what_a_publication_notes(
    home,  # noqa: F811
    settings,
    monkeypatch,
    django_capture_on_commit_callbacks,
    on_change,
):
    """Its model: by a receiver of the signal, or by the setting without one."""
    about = add(home, "about")
    noted = []
    monkeypatch.setattr(rebuild._changes, "add", noted.append)
    if on_change:
        settings.SITEMAPKIT_REBUILD = "on_change"
        rebuild.request_builds([])
    else:
        page_published.connect(rebuild.model_changed)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            about.save_revision().publish()
    finally:
        page_published.disconnect(rebuild.model_changed)
    assert set(noted) == {PlainPage}
    assert on_change or noted == [PlainPage]
