"""The page "Inspect a URL": what becomes of it, why, and what an editor may do about it."""

import datetime as dt
import re
from decimal import Decimal
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.db.models import CharField, F, Value
from django.utils import timezone

from django_sitemapkit import Route, StaticSection
from django_sitemapkit.admin import register_inspection, url_inspection
from django_sitemapkit.builds import Pause, build, pause_publishing, resume_publishing
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.models import (
    Build,
    BuildRequest,
    ExclusionRule,
    ExtraUrl,
    Place,
    UrlOverride,
)
from django_sitemapkit.testing.factories import SectionSettingsFactory
from tests.admin.editors import ALL, EMPTY, chief, client_of, entry, live, page, text_of
from tests.builds import SITE, use_storage
from tests.factories import products
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

PAGE = "/admin/sitemapkit/sitemapsoverview/inspect/"
EXCLUDE = "/admin/sitemapkit/urloverride/include/"


@pytest.fixture(autouse=True)
def storage(settings, sections):
    """Have the sections, and return a storage for their files."""
    for section in ALL:
        sections.add(section)
    return use_storage(settings, "Memory")


def inspect(url, client=None, **query):
    """Paste a URL, and return the page as a reader sees it."""
    response = (client or chief()).get(PAGE, {"url": url, **query})
    assert response.status_code == 200
    content = text_of(response).partition('id="content-main"')[2]
    return " ".join(re.sub("<[^>]+>", " ", content).split())


def test_before_a_build_the_live_state_is_told():
    """With its values, where they come from, and the XML."""
    text = inspect("https://www.example.com/about/")
    assert "Published now Nothing is published; all sections are served live" in text
    assert "Live listed · section pages" in text
    assert "priority 0.3 declaration of the section" in text
    assert "&lt;loc&gt;https://www.example.com/about/&lt;/loc&gt;" in text


def test_where_only_files_are_served_nothing_is_in_the_sitemap_before_a_build(settings):
    """Nothing is served live, so no file is linked: its address answers 404."""
    settings.SITEMAPKIT_SERVE_FROM = "published"
    text = inspect("/about/")
    assert "It is not in the sitemap yet. The next published build adds it." in text
    assert "After the next build listed · section pages Exclude now" in text
    assert "Why the next build lists it" in text
    assert "Tag After the next build Source" in text
    assert "Live" not in text


@pytest.mark.slow
def test_where_no_file_is_served_the_published_build_decides_nothing(settings):
    """The section is served live, with what changed since the build."""
    build(SITE)
    settings.SITEMAPKIT_SERVE_FROM = "live"
    UrlOverride.objects.create(site=SITE.key, path="/about/", include=False)
    text = inspect("/about/")
    assert "It is not in the sitemap. " in text
    assert "Published now All sections are served live, whatever is published" in text
    assert "Live not listed" in text


def test_live_sitemaps_need_no_storage(settings):
    """The page works where nothing was ever built, and no storage is set."""
    settings.STORAGES = {"default": {"BACKEND": "django.core.files.storage.InMemoryStorage"}}
    assert "Live listed · section pages" in inspect("/about/")


@pytest.mark.slow
def test_a_published_url_has_its_file_and_both_values():
    """What is published now, and what will be."""
    build(SITE)
    text = inspect("about/")
    assert "Published now listed · show the sitemap file · the file changed on" in text
    assert "After the next build listed · section pages" in text
    assert "priority 0.3 0.3 declaration of the section" in text
    assert "Publish the changes of section" not in text
    UrlOverride.objects.create(site=SITE.key, path="/about/", priority="0.9")
    text = inspect("/about/")
    assert "priority 0.3 0.9 changes URL override" in text
    assert "URL override /about/" in text
    assert "Publish the changes of section" in text


@pytest.mark.slow
def test_the_change_is_published_by_a_click():
    """It builds the section that lists the URL."""
    build(SITE)
    UrlOverride.objects.create(site=SITE.key, path="/about/", priority="0.9")
    response = chief().get(PAGE, {"url": "/about/"})
    assert 'name="section" value="pages"' in text_of(response)
    data = {"site": SITE.key, "section": "pages", "button": "section"}
    chief().post("/admin/sitemapkit/sitemapsoverview/request/", data)
    assert BuildRequest.objects.get().section == "pages"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "values", "reason", "link"),
    [
        (UrlOverride, {"path": "/about/", "include": False}, "A URL override", "URL override"),
        (ExclusionRule, {"pattern": "/ab*"}, "The exclusion rule /ab*", "Exclusion rule"),
    ],
)
def test_what_excludes_it_is_named_and_linked(model, values, reason, link):
    """And the file that still lists it, until the next build."""
    build(SITE)
    row = model.objects.create(site=SITE.key, **values)
    response = chief().get(PAGE, {"url": "/about/"})
    assert f'href="{page(model._meta.model_name, "change", row.pk)}"' in text_of(response)
    text = inspect("/about/")
    assert "Published now listed" in text
    assert text.index("It is in the sitemap until the next") < text.index("Published now")
    assert f"Rules and overrides left out here {reason}" in text
    assert link in text


@pytest.mark.slow
def test_an_object_is_linked_even_if_it_is_no_longer_listed(sections):
    """It is found in the file that has its key, and the reason is that of the queryset."""
    first, _second = products(2)
    sections.remove("products")
    sections.add(PublicProducts)
    build(SITE)
    Product.objects.filter(pk=first.pk).update(public=False)
    text = inspect(first.get_absolute_url())
    assert "Published now listed" in text
    assert "Object left out here Section public does not list it: “public” is no." in text
    assert f"Product {first}" in text


class PublicProducts(ALL[0]):
    """Products that are public."""

    name = "public"
    queryset = Product.objects.filter(public=True)
    location = Route("product", shop="shop__slug", slug="slug")


def test_other_apps_contribute_what_they_know(monkeypatch):
    """One that raises says so, and hides nothing."""

    def crawlers(request, site, url):
        yield "Crawlers", f"{site.key} {url}"

    def broken(request, site, url):
        raise ValueError("no log")
        yield

    monkeypatch.setattr(url_inspection, "_registered", [])
    for function in (broken, crawlers):
        assert register_inspection(function) is function
    text = inspect("/about/")
    assert "Crawlers default https://www.example.com/about/" in text
    assert "Whether the page answers now was not looked at; what was found last is below." in text
    assert "broken ValueError: no log" in text


@pytest.mark.slow
def test_a_url_that_two_sections_list_is_told_of_both(sections, settings):
    """With the sitemap file of the second; with deduplication, that it is left out there."""
    sections.add(type("Twice", (StaticSection,), {"items": ["/about/"]}))
    assert "Also listed by twice (https://www.example.com/sitemap-twice-1.xml" in inspect("/about/")
    assert "Live listed · section pages, twice" in inspect("/about/")
    build(SITE)
    ExtraUrl.objects.create(site=SITE.key, path="/about/")
    text = inspect("/about/")
    assert " Also listed by twice (" in text
    assert "After the next build also listed by extra-urls (" in text
    assert "After the next build listed · section pages, twice, extra-urls" in text
    sections.add(type("Late", (StaticSection,), {"items": ["/about/"]}))
    assert " Also listed by late (" in inspect("/about/")  # It is served live.
    settings.SITEMAPKIT_SERVE_FROM = "published"
    assert "After the next build also listed by late (" in inspect("/about/")
    settings.SITEMAPKIT_DEDUPLICATE = True
    assert "Also listed by" not in inspect("/about/")
    assert "Section that leaves it out twice (" in inspect("/about/")


def test_the_page_leads_back_to_the_overview():
    """By its breadcrumbs."""
    crumbs = text_of(chief().get(PAGE)).partition('class="breadcrumbs"')[2].partition("</ol>")[0]
    assert '<a href="/admin/sitemapkit/sitemapsoverview/">Sitemaps overview</a>' in crumbs


@pytest.mark.slow
def test_a_url_of_a_view_may_be_added():
    """With a link to the form, which has its path; not one at which there is no public page."""
    build(SITE)
    link = f"{page('extraurl', 'add')}?site=default&amp;path=%2F"
    assert link in text_of(chief().get(PAGE, {"url": "/"}))
    for url in ("/nowhere/", "/admin/", "/?page=2"):
        assert f"{page('extraurl', 'add')}?site" not in text_of(chief().get(PAGE, {"url": url}))
    text = inspect("/nowhere/")
    assert "Published now not listed After the next build not listed" in text
    assert "Exclude now" not in text
    form = chief().get(page("extraurl", "add"), {"site": "default", "path": "/nowhere/"})
    assert 'value="/nowhere/"' in text_of(form)
    ExtraUrl.objects.create(site=SITE.key, path="/nowhere/", priority="0.4")
    text = inspect("/nowhere/")
    assert "After the next build listed · section extra-urls" in text
    assert "Extra URL /nowhere/" in text
    assert "Values warning The site probably has no public page at this address." in text


@pytest.mark.parametrize(
    ("url", "suggested"),
    [
        ("/about", "/about/"),
        ("https://shop.example.net/about/?x=1", "https://www.example.com/about/?x=1"),
        ("HTTPS://SHOP.example.net/about/#team", "https://www.example.com/about/"),
        ("//shop.example.net/about/", "https://www.example.com/about/"),
    ],
)
def test_another_spelling_is_suggested(url, suggested):
    """A slash at the end, or the site's own host; a click leads there."""
    assert f"Did you mean: {suggested}" in inspect(url)


def test_what_is_no_url_is_refused():
    """In words that an editor understands. A fragment is a place on the page that is meant."""
    assert "It has a . or .. segment. Enter the path it leads to." in inspect("/about/../")
    assert "Live listed · section pages" in inspect("/about/#team")


def test_of_many_sites_none_is_left_out(settings):
    """A path that sixty sites may have leads to each of them, on a second page if need be."""
    settings.SITEMAPKIT_SITES = {
        f"site-{n}": {"BASE_URL": f"https://{n}.example"} for n in range(60)
    }
    client = chief()
    pages = [text_of(client.get(PAGE, {"url": "/about/", "p": p})) for p in (1, 2)]
    assert "&amp;p=2" in pages[0]
    for n in range(60):
        assert f">site-{n}</a>" in "".join(pages)


@pytest.mark.slow
def test_of_several_sites_one_is_chosen(settings):
    """By its host, or by a click."""
    settings.SITEMAPKIT_SITES = {
        name: {"BASE_URL": f"https://{name}.example.com"} for name in ("one", "two")
    }
    text = inspect("/about/")
    assert "Choose one: one (https://one.example.com) two (https://two.example.com)" in text
    assert "https://two.example.com/about/" in inspect("https://two.example.com/about/")
    assert "https://two.example.com/about/" in inspect("/about/", site="two")


@pytest.mark.slow
def test_the_search_ends_when_its_time_is_over(monkeypatch):
    """The page says how many files were not searched, and a click searches them all."""
    monkeypatch.setattr(url_inspection, "UNLISTED_SECONDS", -1)
    products(2)
    build(SITE)
    text = inspect("/gone/")
    assert "Published now not found yet; 1 file was not searched · search all files" in text
    assert "Published now not listed" in inspect("/gone/", all="1")


@pytest.mark.slow
def test_a_file_that_is_lost_is_not_taken_for_one_without_the_url(storage):
    """What it listed is not known, so that nothing is said to change."""
    build(SITE)
    for row in Place.objects.filter(section="pages"):
        storage.delete(row.name)
    text = inspect("/about/", all="1")
    assert "cannot be read" in text
    assert "not listed" not in text
    assert "Publish the changes of section" not in text


@pytest.mark.slow
def test_exclude_now_needs_no_override_before():
    """It is added, the file is published without the URL, and the page says so."""
    build(SITE)
    client = client_of(
        *("view_urloverride", "add_urloverride", "change_urloverride", "bulk_urloverride")
    )
    assert "Exclude now" in inspect("/about/", client)
    response = client.post(EXCLUDE, {"site": SITE.key, "path": "/about/"}, follow=True)
    text = text_of(response)
    assert "its sitemap file is published without it," in text
    assert "A URL override excludes it." in text
    assert not entry(live("pages"), "/about/")
    row = UrlOverride.objects.get()
    assert (row.path, row.include) == ("/about/", False)
    assert LogEntry.objects.get().user.username == "editor"
    client.post(EXCLUDE, {"site": SITE.key, "path": "/about/"})
    assert UrlOverride.objects.count() == LogEntry.objects.count() == 1


@pytest.mark.slow
def test_an_override_that_includes_it_is_turned_round():
    """There is one for each URL."""
    build(SITE)
    UrlOverride.objects.create(site=SITE.key, path="/about/", include=True, priority="0.9")
    chief().post(EXCLUDE, {"site": SITE.key, "path": "/about/"})
    row = UrlOverride.objects.get()
    assert (row.include, str(row.priority)) == (False, "0.90")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("permissions", "status"), [((), 403), (("view_build",), 200), (("view_urloverride",), 200)]
)
def test_who_may_look(permissions, status):
    """Operators and editors; neither sees a button that answers 403."""
    build(SITE)
    client = client_of(*permissions)
    response = client.get(PAGE, {"url": "/about/"})
    assert response.status_code == status
    for text in ("Exclude now", "Change its values", "Add it"):
        assert text not in text_of(response)
    assert client.post(EXCLUDE, {"site": SITE.key, "path": "/about/"}).status_code == 403
    assert client.post(PAGE).status_code == (405 if status == 200 else 403)


@pytest.mark.parametrize("action", ["view", "change"])
def test_who_may_view_or_change_an_override_gets_its_link(action):
    """Django shows its page to both."""
    row = UrlOverride.objects.create(site=SITE.key, path="/about/", include=True)
    client = client_of("view_build", f"{action}_urloverride")
    link = f'href="{page("urloverride", "change", row.pk)}">/about/</a>'
    assert link in text_of(client.get(PAGE, {"url": "/about/"}))


@pytest.mark.parametrize("values", [{}, {"site": "nowhere", "path": "/a/"}, {"site": "default"}])
def test_garbage_excludes_nothing(values):
    """What no form sends is 404."""
    assert chief().post(EXCLUDE, values).status_code == 404
    assert chief().get(EXCLUDE).status_code == 405
    assert not UrlOverride.objects.exists()


def test_it_is_offered_where_one_looks_for_it():
    """On the overview, and on the app's own page."""
    for address in ("/admin/sitemapkit/sitemapsoverview/", "/admin/sitemapkit/"):
        assert f'action="{PAGE}"' in text_of(chief().get(address))
    assert f'action="{PAGE}"' in text_of(client_of("view_urloverride").get("/admin/sitemapkit/"))


@pytest.mark.slow
@pytest.mark.parametrize("action", ["add", "change", "delete"])
def test_after_each_save_the_next_build_is_told_of(action):
    """With a link to what becomes of the URL; not where sitemaps are live."""
    note = "The published sitemap stays as it is until the next build."
    client = chief()
    assert note not in text_of(saved(client, "add", path="/live/"))
    build(SITE)
    text = text_of(saved(client, action, path="/live/" if action != "add" else "/new/"))
    assert note in text
    assert f'href="{PAGE}?site=default&amp;url=%2F' in text


def saved(client, action, path):
    """Add, change or delete an extra URL, and return the page that follows."""
    if action == "add":
        data = {**EMPTY["extraurl"], "path": path}
        return client.post(page("extraurl", "add"), data, follow=True)
    row = ExtraUrl.objects.get(path=path)
    if action == "delete":
        return client.post(page("extraurl", "delete", row.pk), {"post": "yes"}, follow=True)
    data = {**EMPTY["extraurl"], "path": path, "priority": "0.8"}
    return client.post(page("extraurl", "change", row.pk), data, follow=True)


class Careless(ALL[0]):
    """Products with values that no search engine takes, and one URL for all."""

    name = "careless"
    queryset = Product.objects.filter(public=True).exclude(slug="draft")
    location = Route("product", shop="shop__slug", slug="slug")
    priority = F("rank")
    lastmod = "updated_at"
    changefreq = Value("sometimes", output_field=CharField())


def test_values_that_are_left_out_have_their_reason(sections):
    """The declaration gives them, and the entry is without them."""
    sections.remove("products")
    sections.add(Careless)
    (row,) = products(1, rank=7.5, updated_at=timezone.now() + dt.timedelta(days=1))
    text = inspect(row.get_absolute_url())
    for word in ("priority", "sometimes", "is in the future"):
        assert word in text.partition("Values warning")[2].partition("Rules")[0]
    assert text.count("declaration of the section: no value to list") == 3


@pytest.mark.parametrize(
    ("values", "reason"),
    [({"public": False}, "“public” is no"), ({"slug": "draft"}, "“slug” is draft")],
)
def test_a_draft_is_explained_by_the_filter_that_leaves_it_out(sections, values, reason):
    """By the field and its value, not by all that the queryset asks for."""
    sections.remove("products")
    sections.add(Careless)
    (row,) = products(1, **values)
    assert f"does not list it: {reason}." in inspect(row.get_absolute_url())


STEPS = ["Section", "Object", "Language", "Values", "Rules and overrides", "Sitemap file"]


def steps(url):
    """Return the titles of the steps that decide about a URL, and what the last one says."""
    found = re.findall("<li><strong>(.*?)</strong>(.*?)</li>", inspected(url), re.DOTALL)
    titles = [title for title, _text in found]
    assert titles == sorted(titles, key=STEPS.index)
    assert all("left out here" not in text for _title, text in found[:-1])
    return titles, " ".join(re.sub("<[^>]+>", " ", found[-1][1]).split())


def inspected(url):
    """Return the HTML of the page."""
    return text_of(chief().get(PAGE, {"url": url}))


@pytest.mark.slow
def test_the_steps_end_at_the_one_that_leaves_it_out(sections, settings):
    """Each reason has its step, and what comes after it is not said to be in order."""
    sections.remove("products")
    sections.add(Careless)
    settings.LANGUAGES = [("en", "English"), ("es", "Spanish")]
    listed, draft, ruled = products(3)
    Product.objects.filter(pk=draft.pk).update(public=False)
    ExclusionRule.objects.create(site=SITE.key, pattern=ruled.get_absolute_url())
    UrlOverride.objects.create(site=SITE.key, path="/about/", include=False)
    titles, last = steps(listed.get_absolute_url())
    assert (titles[-1], titles[0]) == ("Sitemap file", "Section")
    assert "/sitemap-careless-1.xml" in last
    for path, step, says, reason in (
        ("/nowhere/", "Section", "not found", "No section lists this URL"),
        (draft.get_absolute_url(), "Object", "left out here", "list it: “public” is no."),
        (ruled.get_absolute_url(), "Rules and overrides", "left out here", "The exclusion rule"),
        ("/about/", "Rules and overrides", "left out here", "A URL override excludes it."),
    ):
        titles, last = steps(path)
        assert (titles[-1], last.startswith(says)) == (step, True)
        assert reason in last
        assert "Why it is not listed" in inspected(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_built", "change", "verdict"),
    [
        (False, None, "It is in the sitemap."),
        (True, None, "It is in the sitemap."),
        (True, "exclude", "It is in the sitemap until the next published build."),
        (True, "add", "It is not in the sitemap yet. The next published build adds it."),
        (True, "add first", "It is in the sitemap."),
        (True, "never", "It is not in the sitemap."),
        (False, "never", "It is not in the sitemap."),
        (True, "add unread", "The next build lists it."),
        (True, "never unread", "The next build does not list it."),
    ],
)
def test_the_verdict_comes_first(monkeypatch, sections, is_built, change, verdict):
    """It claims nothing of files that were not read."""
    products(1)
    kind, _, how = (change or "").partition(" ")
    ExtraUrl.objects.create(site=SITE.key, path="/early/")
    if is_built:
        build(SITE)
    url = "/late/" if kind in {"add", "never"} else "/about/"
    if how == "first":
        sections.add(type("Late", (StaticSection,), {"items": [url]}))
    elif kind == "add":
        ExtraUrl.objects.create(site=SITE.key, path=url)
    elif kind == "exclude":
        UrlOverride.objects.create(site=SITE.key, path=url, include=False)
    if how == "unread":
        monkeypatch.setattr(url_inspection, "SECONDS", -1)
        monkeypatch.setattr(url_inspection, "UNLISTED_SECONDS", -1)
    text = inspected(url)
    assert f'<h2 id="sitemapkit-verdict">{verdict}</h2>' in text
    assert ("the published build does not have section late" in text) == (how == "first")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("/none/such/page/at/all/", "No page of this site was found for this address."),
        ("/about", "may have a page at this address only with a slash at its end."),
        ("/", "This site may have a page at this address; whether it answers was not checked."),
        ("/ABOUT/", "Did you mean: /about/"),
        ("/about/?utm=1", "The sitemap lists the URL without it: /about/"),
        ("/about/", "Whether the page answers was not looked at: open the link to see."),
        (
            "http://www.example.com/about/",
            "This is about that URL, not about the pasted one.",
        ),
    ],
)
def test_what_is_wrong_with_the_url_itself_is_said(url, reason):
    """No such page, a page that no section has, or a spelling."""
    assert reason in inspect(url)


@pytest.mark.slow
def test_a_section_that_is_switched_off_is_the_reason():
    """The headline, the reason and the link to the settings belong together."""
    build(SITE)
    SectionSettingsFactory(section="pages", enabled=False)
    text = inspect("/about/")
    assert text.index("It is in the sitemap until the next") < text.index("Why the next")
    assert "Section pages is switched off. Section settings" in text
    settings_page = f'{page("sectionsettings", "changelist")}?site=default"'
    assert settings_page in inspected("/about/")
    assert settings_page in inspected("/nowhere/")
    assert "Publish the changes of section" not in inspected("/about/")
    editor = client_of("view_build", name="viewer")
    assert settings_page not in text_of(editor.get(PAGE, {"url": "/about/"}))
    assert "Change its values" not in text


@pytest.mark.slow
def test_what_may_be_done_has_an_effect():
    """Values of what is listed may be changed; what is excluded may be included again."""
    add_page = f"{page('urloverride', 'add')}?site=default&amp;path="
    assert f'{add_page}%2Fabout%2F">Change its values' in inspected("/about/")
    (draft,) = products(1)
    ExclusionRule.objects.create(site=SITE.key, pattern=draft.get_absolute_url())
    assert "Include now" in inspected(draft.get_absolute_url())
    assert "Include now" not in inspected("/about/")
    row = UrlOverride.objects.create(site=SITE.key, path="/about/", include=False)
    text = inspected("/about/")
    assert "Include now" in text
    assert f'{page("urloverride", "change", row.pk)}">Change its values</a>' in text
    assert "Change its values" not in inspected("/nowhere/")


@pytest.mark.slow
@pytest.mark.parametrize("by", ["override", "rule"])
def test_what_is_excluded_is_included_at_once(by):
    """By its own override, whatever excludes it; what waits for other files goes on waiting."""
    if by == "rule":
        ExclusionRule.objects.create(site=SITE.key, pattern="/about/")
    else:
        UrlOverride.objects.create(site=SITE.key, path="/about/", include=False, priority="0.3")
    (product,) = products(1)
    build(SITE)
    Product.objects.update(slug="renamed")
    client = chief()
    form = inspected("/about/").partition(EXCLUDE)[2].partition("</form>")[0]
    assert "Include now" in form
    values = dict(re.findall('name="(site|path)" value="([^"]*)"', form))
    text = text_of(client.post(EXCLUDE, {**values, "include": "1"}, follow=True))
    assert "The URL is included, and its sitemap file is published again" in text
    changes = page("build", "differences", Build.objects.published(SITE).pk)
    assert f'<a href="{changes}">Show changes</a>' in text
    assert "It is in the sitemap." in inspect("/about/", client)
    assert "until the next published build" in inspect(product.get_absolute_url(), client)
    row = UrlOverride.objects.get()
    assert (row.include, row.priority) == ((True, None) if by == "rule" else (None, Decimal("0.3")))
    said = LogEntry.objects.get(content_type__model="urloverride").get_change_message()
    assert said == (
        "Included in the sitemap." if by == "rule" else "No longer excluded by this override."
    )


@pytest.mark.slow
def test_an_address_from_before_a_change_is_no_misspelt_one():
    """The build that listed it last is named, from its files."""
    (product,) = products(1)
    old = product.get_absolute_url()
    first = build(SITE).build
    Product.objects.update(slug="renamed")
    build(SITE)
    assert f"not listed Build {first} listed it · live until " in inspect(old)
    assert "listed it" not in inspect("/products/other/")
    assert "listed it" not in inspect(Product.objects.get().get_absolute_url())


@pytest.mark.slow
def test_where_nothing_is_published_an_included_url_is_live():
    """Nothing is built."""
    UrlOverride.objects.create(site=SITE.key, path="/about/", include=False)
    assert ">Include now</button>" in inspected("/about/")
    values = {"site": SITE.key, "path": "/about/", "include": "1"}
    text = text_of(chief().post(EXCLUDE, values, follow=True))
    assert "It is in the sitemap." in text
    assert not Build.objects.exists()


@pytest.mark.slow
def test_what_cannot_be_included_at_once_is_offered_to_be_built(monkeypatch):
    """While the site is being built, and where something else excludes the URL, too."""
    UrlOverride.objects.create(site=SITE.key, path="/about/", include=False)
    build(SITE)
    client, values = chief(), {"site": SITE.key, "path": "/about/", "include": "1"}
    with acquire(SITE, makes_build=True):
        text = text_of(client.post(EXCLUDE, values, follow=True))
    assert "the published file could not be made again: " in text
    assert "Publish all waiting changes now" in text
    (product,) = products(1)
    values["path"] = product.get_absolute_url()
    UrlOverride.objects.create(site=SITE.key, path=values["path"], include=False)
    UrlOverride.objects.create_for_object(product, site=SITE.key, include=False)
    text = text_of(client.post(EXCLUDE, values, follow=True))
    assert "Something else still excludes the URL." in text


@pytest.mark.slow
def test_a_url_that_a_rule_would_exclude_is_included_in_spite_of_it():
    """Also by one click if an override excludes it now, and the rule waits for a build."""
    build(SITE)
    client, values = chief(), {"site": SITE.key, "path": "/about/"}
    ExclusionRule.objects.create(site=SITE.key, pattern="/about/")
    client.post(EXCLUDE, values)
    text = text_of(client.post(EXCLUDE, {**values, "include": "1"}, follow=True))
    assert "The URL is included, and its sitemap file is published again" in text
    build(SITE)
    assert "It is in the sitemap." in inspect("/about/", client)


@pytest.mark.slow
def test_what_no_published_file_has_room_for_waits_for_the_next_build():
    """The page says so, with the button to build."""
    build(SITE)
    (product,) = products(1)
    ExclusionRule.objects.create(site=SITE.key, pattern="/products/")
    values = {"site": SITE.key, "path": product.get_absolute_url(), "include": "1"}
    text = text_of(chief().post(EXCLUDE, values, follow=True))
    assert "The published sitemap stays as it is until the next build." in text
    assert "Publish all waiting changes now" in text


@pytest.mark.slow
@pytest.mark.parametrize("note", ["", "Ask Ada"])
def test_an_override_that_says_nothing_is_deleted(note):
    """Its URL is as the section says again; a note is kept."""
    build(SITE)
    client, values = chief(), {"site": SITE.key, "path": "/about/"}
    client.post(EXCLUDE, values)
    UrlOverride.objects.update(note=note)
    pause_publishing(SITE, Pause(by="ann", reason="Wrong prices"))
    client.post(EXCLUDE, {**values, "include": "1"})
    resume_publishing(SITE)
    assert [(row.include, row.note) for row in UrlOverride.objects.all()] == [(None, note)] * bool(
        note
    )
    build(SITE)
    assert "It is in the sitemap." in inspect("/about/", client)


@pytest.mark.slow
def test_every_file_that_lists_a_url_is_named(sections):
    """And how often, if it does more than once."""
    for name, items in (("twice", ["/about/", "/about/", "/x/"]), ("thrice", ["/about/"])):
        sections.add(type(name, (StaticSection,), {"items": items, "name": name}))
    build(SITE)
    text = inspect("/about/")
    assert text.partition("After the next build")[0].count("show the sitemap file") == 3


@pytest.mark.slow
def test_after_an_exclusion_all_files_have_been_searched(monkeypatch):
    """They were read to exclude it, so that the page says nothing less."""
    monkeypatch.setattr(url_inspection, "UNLISTED_SECONDS", -1)
    products(2)
    build(SITE)
    response = chief().post(EXCLUDE, {"site": SITE.key, "path": "/about/"}, follow=True)
    text = " ".join(re.sub("<[^>]+>", " ", text_of(response)).split())
    assert "Published now not listed" in text
    assert "searched" not in text


def test_a_folder_leads_to_a_rule():
    """Excluding its URL excludes nothing below it."""
    client = chief()
    text = text_of(client.get(PAGE, {"url": "/about/"}))
    (link,) = re.findall('<a href="([^"]*)">Exclude all URLs that begin with it</a>', text)
    assert 'value="/about/"' in text_of(client.get(unescape(link)))
    assert "Exclude all URLs" not in text_of(client.get(PAGE, {"url": "/nowhere/"}))
