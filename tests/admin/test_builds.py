"""The builds in the admin: what each is made of, what it changes, and publishing one."""

import datetime as dt
import re
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from django_sitemapkit import Section
from django_sitemapkit.admin import base, builds, differences, publishing
from django_sitemapkit.builds import publish, publish_override
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.builds.report import differences as stored_differences
from django_sitemapkit.builds.requests import process_requests, record_request
from django_sitemapkit.models import (
    Build,
    BuildDifferences,
    BuildRequest,
    Place,
    Publication,
    SectionSettings,
    StoredPage,
    UrlOverride,
)
from django_sitemapkit.testing.factories import StoredPageFactory
from tests.admin.operating import EVIL, OVERVIEW, PEOPLE, page, person, text_of
from tests.builds import SITE, edit_product, let_time_pass, manifest, problems_of, run, served
from tests.builds.storages import failing
from tests.testapp.models import Product, Reading, Shop

pytestmark = pytest.mark.django_db

OUTSIDERS = {"anonymous": 302, "staff": 403}


def make(count, **values):
    """Record so many builds."""
    values = {"site": "default", "fence": 1, "started_at": timezone.now(), **values}
    return Build.objects.bulk_create(Build(**values) for _ in range(count))


def lines(build, count, name="some.xml.gz", **values):
    """Record so many files of a build."""
    first = Place.objects.filter(build=build).count() + 1
    page = StoredPageFactory(name=name, urls=2, xml_bytes=9)
    values = {"section": "products", "status": "done", "page": page, **values}
    return Place.objects.bulk_create(
        Place(build=build, number=first + n, **values) for n in range(count)
    )


@pytest.fixture
def two(built):
    """Publish two builds; return their numbers."""
    first = run(started_by="command on here").build
    edit_product()
    return first, run().build


@pytest.fixture
def held(built, settings):
    """Publish a build, and have another one held for review; return their numbers."""
    first = run().build
    settings.SITEMAPKIT_MAX_SHRINK = 0.5
    Product.objects.filter(slug__in=["p0", "p1", "p2"]).delete()
    result = run()
    assert result.status == "held"
    return first, result.build


# Who may what


@pytest.mark.thorough
@pytest.mark.parametrize("view", ["changelist", "change", "history", "differences"])
def test_who_may_look(two, view):
    """Who may view builds; nothing is changed by looking, and nothing by writing."""
    address = page(view) if view == "changelist" else page(view, two[1])
    before = list(Build.objects.values())
    for who in PEOPLE:
        client = person(who)
        assert client.get(address).status_code == OUTSIDERS.get(who, 200), who
        strict = person(who, enforce_csrf_checks=True)
        assert strict.post(address, {"site": "other"}).status_code in {403, 405}, who
        response = client.post(address, {"site": "other", "action": "delete_selected"})
        expected = {302} if who == "anonymous" else {200, 302, 403, 405}
        assert response.status_code in expected, who
    assert list(Build.objects.values()) == before


@pytest.mark.slow
def test_nobody_makes_changes_or_deletes_a_build(built):
    """Not even a superuser: the files would not know of it."""
    (build,) = make(1)
    for who in (*PEOPLE, "super"):
        client = person(who)
        expected = 302 if who == "anonymous" else 403
        for address in (page("add"), page("delete", build.pk)):
            assert client.get(address).status_code == expected, who
            assert client.post(address, {"post": "yes"}).status_code == expected, who
        response = client.post(page("change", build.pk), {"site": "other"})
        assert response.status_code == expected, who
    assert Build.objects.filter(site="default").count() == 1


@pytest.mark.slow
def test_who_may_publish(two):
    """Who may, by POST and with a token, and nobody else; a GET only asks."""
    first, second = two
    outsiders = {**OUTSIDERS, "viewer": 403, "builder": 403}
    address = page("publish", first)
    for who in PEOPLE:
        client = person(who)
        assert client.get(address).status_code == outsiders.get(who, 200), who
        assert client.put(address).status_code == outsiders.get(who, 405), who
        assert person(who, enforce_csrf_checks=True).post(address).status_code == 403, who
        assert Publication.objects.get().build_id == second
        response = client.post(address)
        assert response.status_code == outsiders.get(who, 302), who
        served_now = first if who == "publisher" else second
        assert Publication.objects.get().build_id == served_now, who
    assert response.url == f"{OVERVIEW}?site=default"


@pytest.mark.thorough
def test_to_publish_one_must_see_too(two):
    """The permission to publish alone opens no page."""
    PEOPLE["half"] = ("publish_build",)
    try:
        client = person("half")
    finally:
        del PEOPLE["half"]
    assert client.post(page("publish", two[0])).status_code == 403
    assert client.get(page("change", two[0])).status_code == 403


@pytest.mark.thorough
def test_only_who_may_publish_sees_the_button(held):
    """And only where there is something to publish."""
    for who in ("viewer", "builder", "publisher"):
        client = person(who)
        text = text_of(client.get(page("change", held[1])))
        assert (page("publish", held[1]) in text) == (who == "publisher")
        assert page("publish", held[0]) not in text_of(client.get(page("change", held[0])))


@pytest.mark.parametrize("view", ["publish", "differences"])
@pytest.mark.parametrize("number", ["999", "x", "1_2Fchange"])
def test_there_is_nothing_of_a_build_that_is_not(view, number):
    """Its address is not found."""
    assert person("super").get(page(view, number)).status_code == 404


# The list


@pytest.mark.thorough
def test_the_list_tells_what_became_of_each_build(two):
    """How many URLs, how long it took, and why."""
    Build.objects.filter(pk=two[0]).update(reason="It was in the way.")
    text = text_of(person("viewer").get(page("changelist")))
    for shown in ("It was in the way.", "field-duration"):
        assert shown in text
    rows = text.partition("<tbody>")[2].split("<tr>")[1:]
    assert ">live<" in rows[0]
    assert ">replaced<" in rows[1]
    assert ">5<" not in rows[0]
    changes = f'<a href="{page("differences", two[1])}">Show changes</a>'
    assert f'<td class="field-url_count">9<div>{changes}</div></td>' in rows[0]
    assert "Show changes" not in rows[1]  # Nothing was live before it.
    assert "It was in the way." in rows[1]
    assert 'name="action"' not in text
    assert "By status" in text


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, "-"), (3.25, "3.2 s"), (75, "0:01:15"), (90000, "1 day, 1:00:00")]
)
def test_a_duration_is_told_in_seconds_or_hours(seconds, shown):
    """A build that is not over has none."""
    now = timezone.now()
    ended = None if seconds is None else now + dt.timedelta(seconds=seconds)
    make(1, started_at=now, ended_at=ended)
    text = text_of(person("viewer").get(page("changelist")))
    assert f'<td class="field-duration">{shown}</td>' in text


@pytest.mark.thorough
def test_the_list_costs_the_same_for_a_thousand_builds():
    """A page of them costs one query more than the builds themselves, whatever their files."""
    client = person("viewer")
    counts = []
    for count in (5, 1000):
        for build in make(count)[-5:]:
            lines(build, 5 if count == 5 else 300)
        client.get(page("changelist"))
        with CaptureQueriesContext(connection) as queries:
            text_of(client.get(page("changelist")))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 15


@pytest.mark.thorough
def test_the_sites_are_told_apart_where_there_are_several(settings):
    """With one site, nobody is bothered by it."""
    make(1)
    client = person("viewer")
    text = text_of(client.get(page("changelist")))
    assert "column-site" not in text
    assert "By site" not in text
    settings.SITEMAPKIT_SITES = {
        "default": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example"},
    }
    make(3, site="two")
    text = text_of(client.get(page("changelist")))
    assert "column-site" in text
    assert "By site" in text
    assert "4 builds" in text
    assert "3 builds" in text_of(client.get(page("changelist"), {"site": "two"}))


@pytest.mark.thorough
def test_of_many_sites_some_are_listed_and_all_are_found(settings, monkeypatch):
    """The filter says that it lists only some, and the search finds the builds of any."""
    monkeypatch.setattr(base, "MAX_LISTED_SITES", 2)
    settings.SITEMAPKIT_SITES = {
        f"site-{n}": {"BASE_URL": f"https://{n}.example"} for n in range(3)
    }
    make(1, site="site-1")
    make(1, site="gone")
    client = person("viewer")
    make(2, site="site-2")
    text = text_of(client.get(page("changelist")))
    assert "By site (only the first 2, search for others)" in text
    assert "?site=site-1" in text
    assert "?site=site-2" not in text
    assert "1 build" in text_of(client.get(page("changelist"), {"site": "gone"}))
    text = text_of(client.get(page("changelist"), {"site": "site-2"}))
    assert "2 builds" in text
    assert 'class="selected">\n    <a href="?site=site-2">site-2</a>' in text
    assert "2 builds" in text_of(client.get(page("changelist"), {"q": "site-2"}))


# The page of one build


@pytest.mark.slow
def test_the_page_has_the_manifest_and_who_asked(built):
    """Each file with its address while it is served, and the request that it answered."""
    record_request(SITE, "build", by="ann")
    process_requests(SITE)
    build = Publication.objects.get().build
    response = person("viewer").get(page("change", build.pk))
    text = text_of(response)
    assert "ann" in text
    assert "Build of changes (ann, " in text
    sums = {row["section"]: row for row in response.context["page"]}
    assert (sums["products"]["pages"], str(sums["products"]["urls"])) == ("3", "5")
    assert "/files/" not in text  # They have a page of their own.
    assert '<a href="?section=#sitemapkit-files">All files, with the index and empty ones' in text
    assert f" ({len(manifest())})</a>" in text
    text = text_of(person("viewer").get(page("change", build.pk), {"section": ""}))
    for line in manifest().values():
        address = page("change", build.pk).replace("change/", f"files/{line.pk}/")
        assert f'href="{address}"' in text
        assert line.name in text_of(person("viewer").get(address))
    assert 'href="https://www.example.com/sitemap.xml"' in text
    assert text.count('href="https://www.example.com/sitemap-products-') == 3
    assert 'name="_save"' not in text
    # What the index lists are no URLs.
    sitemaps = len(manifest()) - 1
    assert f'<td class="sitemapkit-number">{sitemaps} sitemaps</td>' in text
    assert "Uncompressed size</th>" in text
    assert ">Size</th>" not in text


@pytest.mark.thorough
def test_a_build_that_is_not_served_links_no_address(two):
    """Its files have other names, or none."""
    text = text_of(person("viewer").get(page("change", two[0])))
    assert 'href="https://www.example.com/sitemap' not in text
    text = text_of(person("viewer").get(page("change", two[1])))
    assert f'<a href="{page("change", two[0])}">Build {two[0]}</a>' in text


@pytest.mark.thorough
def test_a_site_that_is_gone_hides_no_build(two, settings):
    """Its builds can be looked at; to publish one there is nowhere."""
    settings.SITEMAPKIT_SITES = {"other": {"BASE_URL": "https://other.example"}}
    client = person("super")
    text = text_of(client.get(page("change", two[1])))
    assert 'href="https://www.example.com/sitemap' not in text
    assert "Site “default” does not exist." in text_of(client.get(page("differences", two[1])))
    text = text_of(client.post(page("publish", two[0]), follow=True))
    assert "Site “default” does not exist." in text
    assert Publication.objects.get().build_id == two[1]


@pytest.mark.thorough
def test_problems_are_told_with_their_reasons(two):
    """The first files of those that have any."""
    Place.objects.filter(build=two[1], section="products").update(
        skipped=1, problems=problems_of(f"first {EVIL}", "second")
    )
    text = text_of(person("viewer").get(page("change", two[1])))
    assert 'id="problems"' in text
    assert text.count('<td class="sitemapkit-name">first &lt;script&gt;') == 3
    assert '<a href="#problems">6</a>' in text
    assert "There are more" not in text
    text = text_of(person("viewer").get(page("change", two[0])))
    assert 'id="problems"' not in text


@pytest.mark.slow
def test_all_rows_with_a_problem_are_behind_their_number(built, sections):
    """A build keeps the first of each kind; the page reads the rows again, and says so."""

    class Stations(Section):
        queryset = Product.objects.all()
        location = F("slug")

    sections.add(Stations)
    shop = Shop.objects.first()
    Product.objects.bulk_create(
        Product(shop=shop, slug=f"https://elsewhere.example/{n}/") for n in range(25)
    )
    build = run().build
    place = Place.objects.get(build=build, section="stations")
    client = person("viewer")
    address = page("change", build).replace("change/", f"files/{place.pk}/problems/%s/")
    (code,) = {code for code, kind in place.problems.items() if kind["count"] >= 25}
    text = text_of(client.get(page("change", build)))
    assert f'<a href="{address % code}">' in text
    text = text_of(client.get(address % code))
    for n in (0, 24):
        assert f"elsewhere.example/{n}/" in text
    assert f"{place.problems[code]['count']} during the build" in text
    sections.remove("stations")  # The section is gone: the first that the build kept are left.
    text = text_of(client.get(address % code))
    assert "which kept the first 20" in text
    assert "elsewhere.example/24/" not in text
    assert client.get(address % "no-such-kind").status_code == 404
    assert client.get(address.replace(str(place.pk), "99999") % code).status_code == 404


@pytest.mark.thorough
def test_of_many_problems_and_files_a_page_is_shown(built, monkeypatch):
    """With links to the others; a section can be looked at by itself."""
    monkeypatch.setattr(builds, "FILES_PER_PAGE", 10)
    (build,) = make(1)
    lines(build, 60, problems=problems_of("It is so."), name="here")
    lines(build, 5, section="readings", name="there")
    client = person("viewer")
    text = text_of(client.get(page("change", build.pk)))
    assert text.count("It is so.") == 50
    assert "More files have problems" in text
    assert text.count("/files/") == 50
    assert '<a href="#problems">60</a>' in text
    text = text_of(client.get(page("change", build.pk), {"section": "", "p": "7"}))
    assert text.count(">readings ") == 5
    assert '<a href="?section=&amp;p=6#sitemapkit-files">6</a>' in text
    text = text_of(client.get(page("change", build.pk), {"section": "products", "p": "2"}))
    assert text.count("/files/") == 10 + 50
    assert '<a href="?section=products&amp;p=1#sitemapkit-files">1</a>' in text
    assert "Files of section “products”" in text
    text = text_of(client.get(page("change", build.pk), {"section": EVIL, "p": "x"}))
    assert "Files of section" not in text  # It has no such section.
    assert "<script>alert" not in text


@pytest.mark.thorough
def test_a_page_costs_the_same_for_five_files_and_for_three_hundred(two, monkeypatch):
    """Served or not, with problems or without."""
    client = person("publisher")
    counts = []
    for count in (5, 300):
        lines(Build.objects.get(pk=two[1]), count, problems=problems_of("so"), skipped=1)
        client.get(page("change", two[1]))
        with CaptureQueriesContext(connection) as queries:
            text_of(client.get(page("change", two[1])))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 20


@pytest.mark.thorough
def test_a_build_without_files_says_why(built):
    """One that was the same as another has none of its own; of no section it says that it went."""
    run()
    build = run().build
    text = text_of(person("viewer").get(page("change", build)))
    assert "This build found no change: its files are those of the build that was live." in text
    assert "unchanged" in text
    assert ">products</a>" not in text


@pytest.mark.slow
def test_the_page_of_a_build_has_the_sections_that_went(built):
    """They are part of the change that it names above."""
    run()
    Reading.objects.all().delete()
    text = text_of(person("viewer").get(page("change", run().build)))
    row = text[text.index('<th scope="row">readings</th>') :].partition("</tr>")[0]
    assert "(\N{MINUS SIGN}100 %)" in row


@pytest.mark.thorough
def test_files_to_be_made_are_counted(built):
    """While a build runs its page tells how far it is."""
    (build,) = make(1)
    lines(build, 3)
    lines(build, 2, status="pending")
    assert "(2 pending)" in text_of(person("viewer").get(page("change", build.pk)))


# Show changes


@pytest.mark.slow
def test_the_differences_are_told_by_kind(two):
    """What was added, removed and changed: the numbers, the folders, and each URL."""
    Reading.objects.create(level=77)
    Reading.objects.filter(level=0).delete()
    third = run().build
    client = person("viewer")
    text = text_of(client.get(page("differences", two[1])))
    assert '<dt>Changed</dt> <dd><a href="?kind=changed">1</a></dd>' in text
    assert "<dt>Added</dt> <dd>0</dd>" in text
    assert ">https://www.example.com/products/all/p0/</a>" in text
    text = text_of(client.get(page("differences", third)))
    assert '<dt>Removed</dt> <dd><a href="?kind=removed">1</a></dd>' in text
    assert ">https://www.example.com/readings/77/</a>" in text
    assert f'href="{page("differences", third)}"' in text_of(client.get(page("change", third)))
    stored = BuildDifferences.objects.get(build=third)
    section = Build.objects.get(pk=third).places.filter(section__startswith="reading").first()
    counted = {tuple(group) for group in stored.groups}
    assert counted == {(sign, section.section, "/readings/", 1) for sign in "+-"}


@pytest.mark.slow
def test_the_differences_name_the_build_that_was_live_before(two, settings):
    """A roll-back changes nothing of it, nor of the change in URLs, unless it comes between."""
    settings.SITEMAPKIT_MAX_SHRINK = 0
    client = person("viewer")
    first, second = two
    said = "Compared with build %s, which was live before this one."
    assert said % first in text_of(client.get(page("differences", second)))
    assert page("differences", first) not in text_of(client.get(page("change", first)))
    Reading.objects.filter(level=0).delete()
    held = run().build
    text = text_of(client.get(page("differences", held)))
    assert f"Compared with build {second}, which is live." in text
    publish(SITE, first)
    assert page("differences", first) not in text_of(client.get(page("change", first)))
    assert said % first in text_of(client.get(page("differences", second)))
    publish(SITE, held)
    assert said % first in text_of(client.get(page("differences", held)))
    (tile,) = re.findall(r"<dt>URLs</dt><dd>.*?</dd>", text_of(client.get(OVERVIEW)))
    assert f"since build {first}</span>" in tile


@pytest.mark.slow
def test_a_folder_of_the_differences_is_split(two):
    """Into the folders in it, with the URLs of each; a folder that has none leads nowhere."""
    other = Shop.objects.create(slug="other")
    for slug, shop in (("n1", other), ("n2", other), ("n3", Shop.objects.first())):
        Product.objects.create(slug=slug, shop=shop)
    Reading.objects.create(level=77)
    url = page("differences", run().build)
    client = person("viewer")
    link = (
        '<a href="?below=%2Fproducts%2F{}#sitemapkit-groups" title="Show the folders in it">'
        '/products/{} <span aria-hidden="true">▸</span></a>'
    )
    text = text_of(client.get(url))
    assert link.format("", "") in text
    text = text_of(client.get(url, {"below": "/products/"}))
    assert "By section and folder: /products/" in text
    assert link.format("other%2F", "other/") in text
    assert text.count("inspect/?site=") == 3
    for folder, urls in (("all", 1), ("other", 2)):
        sent = {"below": "/products/", "folder": f"/products/{folder}/"}
        assert text_of(client.get(url, sent)).count("inspect/?site=") == urls
    text = text_of(client.get(url, {"below": "/products/other/"}))
    assert '<th scope="row" class="sitemapkit-name">/products/other/</th>' in text
    assert text.count("inspect/?site=") == 2
    assert "No URLs found." in text_of(client.get(url, {"below": "/x/"}))


@pytest.mark.slow
def test_the_differences_are_searched_and_downloaded(two):
    """By kind, section, folder, and part of a URL; they are compared only once."""
    Reading.objects.bulk_create(Reading(level=level) for level in range(100, 150))
    Reading.objects.filter(level=0).delete()
    url = page("differences", run().build)
    client = person("viewer")
    assert text_of(client.get(url)).count("inspect/?site=") == 51
    with CaptureQueriesContext(connection) as queries:
        text = text_of(client.get(url, {"kind": "added", "q": "readings/14"}))
    assert text.count("inspect/?site=") == 10
    assert not any("sitemapkit_storedpage" in query["sql"] for query in queries)
    for wrong in ({"section": "x"}, {"folder": "/x/"}, {"q": "zzz"}, {"kind": "x"}):
        assert "No URLs found." in text_of(client.get(url, wrong))
    response = client.get(url, {"kind": "removed", "csv": "1"})
    name = f"sitemap-build-{Build.objects.last().pk}-changes.csv"
    assert name in response.headers["Content-Disposition"]
    lines = b"".join(response).decode().splitlines()
    assert lines[0] == "\ufeffchange,section,url,tags"
    assert len(lines) == 2
    assert lines[1].startswith("removed,")


@pytest.mark.thorough
def test_of_many_differences_the_first_are_kept(two, monkeypatch):
    """All are counted."""
    monkeypatch.setattr(stored_differences, "MAX_KEPT", 2)
    monkeypatch.setattr(differences, "MAX_KEPT", 2)
    monkeypatch.setattr(stored_differences, "MAX_GROUPS", 0)
    Reading.objects.bulk_create(Reading(level=level) for level in range(100, 150))
    text = text_of(person("viewer").get(page("differences", run().build)))
    assert '<a href="?kind=added">50</a>' in text
    assert "Only 2 URLs of each kind are listed here and in the file." in text
    assert text.count("inspect/?site=") == 2
    assert "other folders" in text


@pytest.mark.slow
def test_many_differences_are_compared_in_the_background(two, monkeypatch):
    """The page answers at once, and shows them when they are there; or why they are not."""
    monkeypatch.setattr(differences, "MAX_COMPARED_AT_ONCE", 1)
    monkeypatch.setattr(differences, "start_processing_on_commit", lambda site, choose, kinds: None)
    client = person("viewer")
    url = page("differences", two[1])
    for _ in range(2):
        response = client.get(url)
        assert response.headers["Refresh"] == f"2; url={url}?before={two[0]}"
        assert "URLs are being compared." in text_of(response)
    assert BuildRequest.objects.count() == 1
    with acquire(SITE, "compare"):
        assert process_requests(SITE, wait_seconds=0) == []
    changed = StoredPage.objects.filter(places__build=two[1]).exclude(places__build=two[0])
    changed.update(name="lost")
    process_requests(SITE)
    response = client.get(url)
    assert "lost cannot be read" in text_of(response)
    assert "Refresh" not in response.headers
    assert "Refresh" in client.get(url, {"again": ""}).headers
    BuildRequest.objects.all().delete()
    assert "has no previous build" in text_of(client.get(page("differences", two[0])))


@pytest.mark.slow
def test_what_was_compared_in_the_background_is_shown(two, monkeypatch):
    """No build waits for it, and the overview, which is about builds, does not list it."""
    monkeypatch.setattr(differences, "MAX_COMPARED_AT_ONCE", 1)
    monkeypatch.setattr(differences, "start_processing_on_commit", lambda site, choose, kinds: None)
    client = person("viewer")
    client.get(page("differences", two[1]))
    (done,) = process_requests(SITE)
    assert done.outcome == {"code": "compared", "added": 0, "removed": 0, "changed": 1}
    assert ">https://www.example.com/products/all/p0/</a>" in text_of(
        client.get(page("differences", two[1]))
    )
    assert f"Changes in build {two[1]}" not in text_of(client.get(OVERVIEW))


@pytest.mark.thorough
def test_what_cannot_be_compared_is_told(two, built):
    """The first build, a pruned one, and one whose files are lost."""
    client = person("viewer")
    assert "has no previous build" in text_of(client.get(page("differences", two[0])))
    built.on_call = lambda number, *call: failing(OSError(EVIL))(*call)
    assert "cannot be read" in text_of(client.get(page("differences", two[1])))
    Build.objects.filter(pk=two[0]).update(pruned_at=timezone.now())
    assert "was pruned" in text_of(client.get(page("differences", two[1])))
    assert "Continue to publishing" not in text_of(person("super").get(page("differences", two[0])))
    (running,) = make(1)
    assert "neither published nor held for review" in text_of(
        client.get(page("differences", running.pk))
    )


# Publishing


@pytest.mark.slow
def test_a_held_build_is_reviewed_and_published(held, client):
    """The page says what is lost; then the site serves it, and the history tells who did it."""
    before = served(client)
    browser = person("publisher")
    text = text_of(browser.get(page("change", held[1])))
    assert "would shrink from 5 to 2" in text
    assert page("differences", held[1]) in text
    text = text_of(browser.get(page("publish", held[1])))
    assert "This build is held for review: section &#x27;products&#x27; would shrink from 5" in text
    assert f"It replaces build {held[0]} (started " in text
    assert "URLs: 9)." in text
    assert "URLs: 6)." in text
    assert "What has changed in the database since then is not in this build." in text
    # The button says what is lost, and looks like it.
    button = re.search(r'<button type="submit" class="([^"]*)">Yes, publish it(.*?)</button>', text)
    assert "sitemapkit-danger" in button[1]
    assert button[2] == ': URLs <bdi dir="ltr">\N{MINUS SIGN}3 (\N{MINUS SIGN}33 %)</bdi>'
    text = text_of(browser.post(page("publish", held[1]), follow=True))
    assert f"Build {held[1]} is now live at {SITE.base}." in text
    after = served(client)
    gone = {url for urls in before.values() for url, _ in urls} - {
        url for urls in after.values() for url, _ in urls
    }
    assert gone == {f"https://www.example.com/products/all/p{n}/" for n in (0, 1, 2)}
    assert "Published." in text_of(browser.get(page("history", held[1])))
    assert LogEntry.objects.get().user.username == "publisher"


@pytest.mark.slow
def test_a_held_build_is_outdated_by_a_later_one_and_discarded(held):
    """The list, its page and the page that publishes it say so; then nobody can publish it."""
    browser = person("publisher")
    Product.objects.filter(slug="p3").delete()
    later = run().build
    outdated = f"build {later} came later"
    assert outdated in text_of(browser.get(page("change", held[1])))
    assert outdated not in text_of(browser.get(page("change", later)))
    assert text_of(browser.get(page("changelist"))).count(outdated) == 1
    text = text_of(browser.get(page("publish", held[1])))
    assert f"Build {later} was made or published after this one." in text
    assert 'name="discard"' in text
    assert 'name="discard"' not in text_of(browser.get(page("publish", held[0])))
    response = browser.post(page("publish", held[1]), {"discard": "1"}, follow=True)
    assert "Its changes still wait." in text_of(response)
    build = Build.objects.get(pk=held[1])
    assert (build.status, build.reason_text) == ("abandoned", "discarded by publisher")
    assert "The build was never published" in text_of(browser.get(page("publish", held[1])))
    assert SiteBuilds(SITE).held.pk == later
    assert Publication.objects.get().build_id == held[0]
    assert LogEntry.objects.get().change_message == "Build discarded."


@pytest.mark.slow
def test_a_held_build_is_outdated_by_what_was_published_since(held, settings):
    """An earlier one, too; what is served, or is being built, is not discarded."""
    browser = person("publisher")
    assert "came later" not in text_of(browser.get(page("changelist")))
    with acquire(SITE):
        browser.post(page("publish", held[1]), {"discard": "1"})
    for pk in held:
        Build.objects.filter(pk=pk).update(published_at=F("ended_at"))
    Build.objects.filter(pk=held[1]).update(published_at=None)
    assert Build.objects.get(pk=held[1]).status == "held"
    Build.objects.filter(pk=held[0]).update(published_at=timezone.now())
    assert f"build {held[0]} came later" in text_of(browser.get(page("change", held[1])))
    browser.post(page("publish", held[0]), {"discard": "1"})
    assert Publication.objects.get().build.outcome == "live"


@pytest.mark.slow
def test_publishing_a_newer_build_again_is_no_roll_back(two):
    """After a roll-back, the way forward has the title of what it does."""
    browser = person("publisher")
    text = text_of(browser.get(page("publish", two[0])))
    assert f"Roll back to build {two[0]}?" in text
    assert "Yes, roll back" in text
    browser.post(page("publish", two[0]))
    text = text_of(browser.get(page("publish", two[1])))
    assert f"Publish build {two[1]}?" in text
    assert "Yes, publish it" in text
    assert page("differences", two[1]) in text
    text = text_of(browser.get(page("change", two[1])))
    assert "Publish this build" in text
    assert "Roll back to this build" not in text


@pytest.mark.slow
def test_a_roll_back_names_what_goes_and_comes(two):
    """Compared with the live build, whatever lies between them."""
    product = Product.objects.get(slug="p4")
    gone = product.get_absolute_url()
    product.delete()
    Reading.objects.create(level=77)
    UrlOverride.objects.create(site="default", path="/readings/0/", include=False)
    third = run().build
    browser = person("super")

    def shown(build):
        return " ".join(text_of(browser.get(page("publish", build))).split())

    def named(kind, build, before, *paths):
        link = f"{page('differences', build)}?before={before}&amp;kind={kind.lower()}"
        rows = "".join(f"<li><bdi>{path}</bdi></li>" for path in paths)
        return f'<li>{kind}: <a href="{link}">{len(paths)}</a><ul>{rows}</ul></li>'

    text = shown(two[1])
    assert named("Removed", two[1], third, "/readings/77/") in text
    assert named("Added", two[1], third, gone, "/readings/0/") in text
    assert "<li>Changed: 0</li>" in text
    again = "Excluded since then, and published again:"
    assert f"{again} <ul><li><bdi>/readings/0/</bdi></li></ul>" in text
    rows = page("changelist").replace("/build/", "/urloverride/")
    assert (
        "Changed on the Sitemaps screens since then: "
        f'<a href="{rows}?site=default&amp;revision__gt=0">URL overrides (1)</a>'
    ) in text
    link = f"{page('differences', two[1])}?before={third}"
    assert f'<a href="{link}">Show changes</a>' in text
    text = text_of(browser.get(f"{link}&kind=added&q=readings"))
    assert f"Compared with build {third}, which is live." in text
    assert f'href="{page("publish", two[1])}">Continue to publishing</a>' in text
    assert text.count("inspect/?site=") == 1
    browser.post(page("publish", two[0]))
    assert named("Removed", third, two[0], gone, "/readings/0/") in shown(third)
    assert "published again" not in shown(third)  # This is the way forward.


@pytest.mark.slow
def test_what_takes_long_to_compare_is_compared_on_its_own_page(two, monkeypatch):
    """Until then, it is not said that an excluded URL comes back."""
    monkeypatch.setattr(publishing, "MAX_COMPARED_TO_PUBLISH", 1)
    product = Product.objects.first()
    UrlOverride.objects.create(site="default", path=product.get_absolute_url(), include=False)
    third = run().build
    text = text_of(person("super").get(page("publish", two[1])))
    link = f"{page('differences', two[1])}?before={third}"
    assert f'<a href="{link}">Show which URLs go and come</a>' in text
    assert "Excluded since then, and published again if this build lists them:" in text


@pytest.mark.slow
def test_what_a_build_left_out_does_not_come_back_with_it(two):
    """Its "Exclude now" is as old as its other files, which list what was excluded later."""
    row = UrlOverride.objects.create(site="default", path="/readings/0/", include=False)
    third = publish_override(SITE, row).build
    product = Product.objects.first()
    UrlOverride.objects.create(site="default", path=product.get_absolute_url(), include=False)
    run()
    text = " ".join(text_of(person("super").get(page("publish", third))).split())
    again = "Excluded since then, and published again:"
    assert f"{again} <ul><li><bdi>{product.get_absolute_url()}</bdi></li></ul>" in text
    UrlOverride.objects.create(
        site="default", model="testapp.product", object_id=product.pk, include=False
    )
    text = text_of(person("super").get(page("publish", third)))
    assert "Excluded since then, and published again if this build lists them:" in text


@pytest.mark.slow
def test_a_build_that_another_one_gives_up_is_named_before(two, settings):
    """That is one that waits, or is held for review, and is older."""
    settings.SITEMAPKIT_MAX_SHRINK = 0
    Reading.objects.filter(level=0).delete()
    held = run().build
    path = Product.objects.first().get_absolute_url()
    row = UrlOverride.objects.create(site="default", path=path, include=False)
    newer = publish_override(SITE, row).build
    publish(SITE, two[1])
    browser = person("super")
    said = f"This gives up build {held}, which is held for review."
    assert said in text_of(browser.get(page("publish", newer)))
    assert said not in text_of(browser.get(page("publish", two[0])))
    browser.post(page("publish", two[0]))
    assert Build.objects.get(pk=held).status == "held"
    browser.post(page("publish", newer))
    assert Build.objects.get(pk=held).status == "abandoned"


@pytest.mark.slow
def test_what_was_reset_since_a_build_is_in_the_activity(held):
    """Its row is gone, so only the log has it."""
    browser = person("super")
    done = "All changes by editors since that day, including deletions"
    assert done not in text_of(browser.get(page("publish", held[1])))
    settings = SectionSettings.objects.create(site="default", section="products", priority="0.3")
    settings.delete()
    text = text_of(browser.get(page("publish", held[1])))
    day = timezone.localdate(Build.objects.get(pk=held[1]).started_at).isoformat()
    activity = reverse("admin:sitemapkit_activity")
    assert f'<a href="{activity}?since={day}">{done}</a>' in text


@pytest.mark.slow
def test_an_earlier_build_is_gone_back_to(two, client):
    """What it served then is served again."""
    browser = person("publisher")
    assert "Roll back to this build" in text_of(browser.get(page("change", two[0])))
    link = f'<a href="{page("publish", two[0])}">Roll back to build {two[0]}</a>'
    assert link in text_of(browser.get(page("change", two[1])))
    assert link not in text_of(person("viewer").get(page("change", two[1])))
    now = served(client)
    browser.post(page("publish", two[0]))
    then = served(client)
    assert then != now
    assert Publication.objects.get().build_id == two[0]
    browser.post(page("publish", two[1]))
    assert served(client) == now
    messages = LogEntry.objects.values_list("change_message", flat=True)
    assert sorted(messages) == ["Published.", "Rolled back to this build."]


@pytest.mark.thorough
def test_the_first_build_of_a_site_replaces_nothing(held):
    """It is said so."""
    Publication.objects.all().delete()
    assert "Nothing is currently published." in text_of(
        person("publisher").get(page("publish", held[1]))
    )


@pytest.mark.thorough
def test_what_cannot_be_published_is_told(two, settings):
    """The one served, a pruned one, and one that was never finished."""
    browser = person("publisher")
    assert "The site already serves this build." in text_of(browser.get(page("publish", two[1])))
    (running,) = make(1)
    assert "The build was never published" in text_of(browser.get(page("publish", running.pk)))
    settings.SITEMAPKIT_KEEP_BUILDS = 1
    let_time_pass(200_000)
    record_request(SITE, "prune")
    process_requests(SITE)
    text = text_of(browser.get(page("publish", two[0])))
    assert "The files of this build were deleted." in text
    assert 'class="button sitemapkit-button default"' not in text
    assert page("publish", two[0]) not in text_of(browser.get(page("change", two[0])))
    text = text_of(browser.post(page("publish", two[0]), follow=True))
    assert '<li class="error">The files of this build were deleted.</li>' in text
    assert Publication.objects.get().build_id == two[1]
    assert not LogEntry.objects.exists()


@pytest.mark.thorough
def test_while_the_site_is_built_nothing_is_published(two):
    """The message names the builder."""
    with acquire(SITE):
        text = text_of(person("publisher").post(page("publish", two[0]), follow=True))
    assert "The build lease of site &#x27;default&#x27; is held by process" in text
    assert Publication.objects.get().build_id == two[1]


@pytest.mark.thorough
def test_an_error_of_the_storage_is_told(two, built):
    """Each storage has errors of its own."""
    built.on_call = lambda number, *call: failing(RuntimeError(EVIL))(*call)
    text = text_of(person("publisher").post(page("publish", two[0]), follow=True))
    assert "&lt;script&gt;" in text
    assert Publication.objects.get().build_id == two[1]


@pytest.mark.thorough
def test_any_error_is_told(built, monkeypatch, caplog):
    """And logged: it is nobody's fault who clicks."""

    def fail(*arguments, **options):
        raise KeyError(EVIL)

    monkeypatch.setattr(publishing, "publish", fail)
    (build,) = make(1, status="held")
    text = text_of(person("publisher").post(page("publish", build.pk), follow=True))
    assert "KeyError: " in text
    assert "could not be published" in caplog.text
    assert not LogEntry.objects.exists()


@pytest.mark.thorough
def test_the_page_leads_back_to_the_overview(two):
    """Of its own site."""
    Build.objects.update(site="two/<b>&")
    text = text_of(person("viewer").get(page("change", two[0])))
    assert f'href="{OVERVIEW}?site=two%2F%3Cb%3E%26"' in text


# Builds that have not ended


@pytest.mark.slow
def test_a_build_is_running_only_as_long_as_its_process_has_the_lease(built):
    """The list, the build's page and the overview say what sitemap_status says."""
    client = person("viewer")
    with acquire(SITE) as lease:
        (build,) = make(1, fence=lease.fence)
        pages = [page("changelist"), page("change", build.pk), OVERVIEW]
        for state in ("running", "interrupted", "failed"):
            if state == "interrupted":
                lease.take_next_fence()
            if state == "failed":
                Build.objects.update(reason="the disk is full")
            for shown in pages:
                html = client.get(shown).content.decode()
                assert f'sitemapkit-{state}">{state}</span>' in html, (state, shown)


@pytest.mark.slow
def test_a_problem_leads_to_its_object(built, sections):
    """To its page in the admin or, without one, to its own; what is gone is 404."""
    row = Product.objects.order_by("pk").last()
    Product.objects.filter(pk=row.pk).update(slug="xxx")
    sections.add(NoUrls)
    build = run().build
    client = person("viewer")
    text = text_of(client.get(f"/admin/sitemapkit/build/{build}/change/"))
    (address,) = {unescape(each) for each in re.findall('href="([^"]*/object/[^"]*)"', text)}
    response = client.get(address)
    row.refresh_from_db()
    assert (response.status_code, response.url) == (302, row.get_absolute_url())
    assert client.get(address.replace("key=", "key=9")).status_code == 404
    assert client.get(address.replace("no-urls", "none")).status_code == 404


class NoUrls(Section):
    """Products, one of which has an invalid URL."""

    name = "no-urls"
    queryset = Product.objects.all()

    def location(self, product):
        """Return where it is, or no path."""
        return "no path" if product.slug == "xxx" else f"/no/{product.pk}/"
