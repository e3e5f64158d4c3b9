"""The page "Health": what it shows of builds, in which order, to whom, by how many queries."""

import datetime as dt
from dataclasses import replace

import pytest
from django.conf import global_settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_sitemapkit import ExternalSection, StaticSection
from django_sitemapkit.admin import HealthItem, Level, health, overview, register_health
from django_sitemapkit.admin.health import builds
from django_sitemapkit.audit.models import AuditRun
from django_sitemapkit.builds import publish
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.requests import process_requests, record_request
from django_sitemapkit.models import Build, BuildRequest, Place, Publication, StoredFile
from django_sitemapkit.submission.models import SubmittedSite, SubmittedSitemap, UrlBatch
from django_sitemapkit.testing.factories import BuildFactory
from tests.admin.operating import EVIL, OVERVIEW, PEOPLE, page, person, text_of
from tests.builds import SITE, Products, problems_of, run, take_lease, use_storage
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

HEALTH = "/admin/sitemapkit/sitemapsoverview/health/"
NOW = timezone.now()


def found(client, **query):
    """Return the items that the page shows, in its order, and its text."""
    response = client.get(HEALTH, query)
    text = " ".join(text_of(response).split())
    return [item for look in response.context["looks"] for item in look], text


def titles(client, **query):
    """Return the titles of the items that the page shows."""
    return [str(item.title) for item in found(client, **query)[0]]


# Who may see it


@pytest.mark.parametrize("who", PEOPLE)
def test_who_may_look(built, who):
    """Users who may view builds, and nobody else; looking is all there is."""
    client = person(who)
    expected = {"anonymous": 302, "staff": 403}.get(who, 200)
    assert client.get(HEALTH).status_code == expected
    assert client.post(HEALTH).status_code == {200: 405}.get(expected, expected)
    assert client.get(HEALTH, {"site": "none"}).status_code == {200: 404}.get(expected, expected)


def test_links_lead_to_it(built):
    """From the page of the app, from the overview, and back."""
    client = person("viewer")
    for address in ("/admin/sitemapkit/", OVERVIEW):
        assert f'href="{HEALTH}"' in text_of(client.get(address)), address
    assert f'href="{OVERVIEW}"' in found(client)[1]


# What builds found


@pytest.mark.slow
def test_a_site_without_faults_needs_no_attention(built):
    """The page says so, and what it would show."""
    client = person("viewer")
    run()
    shown, text = found(client)
    assert shown == []
    assert "Nothing needs your attention." in text
    assert "What this page shows" in text
    assert "Rows that a build skipped" in text
    assert "audit_sitemaps" in text
    assert "Nothing needs your attention." in text_of(client.get(OVERVIEW))


class Foreign(StaticSection):
    """One page of the site, and two that are not."""

    items = ["/fine/", "https://elsewhere.example/a/", "https://elsewhere.example/b/"]


@pytest.mark.slow
def test_skipped_rows_are_shown_by_kind(built, sections):
    """How many, an example, what to do, and a link to the problems of the build."""
    sections.add(Foreign)
    client = person("viewer")
    build = run().build
    [item], text = found(client)
    assert (item.title, item.count, item.level) == ("URL not allowed", 2, Level.WARNING)
    assert f'<a href="{page("change", build)}#problems">URL not allowed</a>: 2' in text
    assert "List URLs of this site only" in text
    assert "https://elsewhere.example/a/" in item.details[0]
    assert f"Build {build}, " in text
    assert "URL not allowed</a>: 2" in " ".join(text_of(client.get(OVERVIEW)).split())


@pytest.mark.slow
def test_every_kind_of_problem_has_a_name_and_advice(built):
    """Also one that nobody has thought of."""
    build = run().build
    kinds = {
        code: {"count": 2, "examples": [[number, f"example of {code}", "1"]]}
        for number, code in enumerate([*builds.PROBLEMS, "brand-new"])
    }
    Place.objects.filter(build=build, section="articles").update(problems=kinds)
    shown, text = found(person("viewer"))
    assert len(shown) == len(kinds)
    assert all(item.advice and item.count == 2 for item in shown)
    assert "example of brand-new" in text


@pytest.mark.slow
def test_of_many_files_with_problems_some_are_counted(built, monkeypatch):
    """And the count says that there are more."""
    monkeypatch.setattr(builds, "MAX_FILES_READ", 2)
    build = run().build
    kinds = {"no-url": {"count": 1_000, "examples": [[0, "example", "1"]]}}
    files = Place.objects.filter(build=build).exclude(section="")
    assert files.count() > 2
    files.update(problems=kinds)
    assert "No URL</a>: at least 2,000" in found(person("viewer"))[1]


@pytest.mark.slow
def test_implausible_lastmods_are_shown(built):
    """Those of the published build, each in a paragraph."""
    build = run().build
    Build.objects.filter(pk=build).update(warnings=["first", EVIL])
    [item], text = found(person("viewer"))
    assert item.title == "Implausible lastmod"
    assert '<p class="quiet">first</p>' in text
    assert "last significant change" in text


@pytest.mark.slow
def test_a_held_build_is_shown_until_it_is_published(built, settings):
    """With its reason, and a link to review it."""
    settings.SITEMAPKIT_MAX_SHRINK = 0.1
    client = person("viewer")
    run()
    Product.objects.all().delete()
    held = run()
    assert held.status == "held"
    shown, text = found(client)
    assert [str(item.title) for item in shown] == ["Build held for review"]
    assert "would shrink" in text
    assert page("change", held.build) in text
    publish(SITE, held.build)
    assert titles(client) == []


@pytest.mark.slow
def test_a_failed_build_is_shown_until_one_succeeds(built):
    """The newest build of the site counts."""
    client = person("viewer")
    run()
    failed = BuildFactory(status="failed", reason=EVIL)
    [item], _text = found(client)
    assert (item.title, item.level, item.url) == (
        "Build failed",
        Level.ERROR,
        page("change", failed.pk),
    )
    run()
    assert titles(client) == []


@pytest.mark.slow
def test_an_interrupted_build_is_shown_but_a_running_one_is_not(built):
    """It runs as long as its process has the lease."""
    client = person("viewer")
    run()
    BuildFactory(status="running")
    assert titles(client) == ["Build interrupted"]
    lease = take_lease()
    assert titles(client) == ["Build interrupted"]  # Another build of the site is planned.
    Build.objects.filter(status="running").update(fence=lease.fence)
    assert titles(client) == []


@pytest.mark.slow
def test_a_forgotten_request_is_shown(built):
    """With its age, here and on the overview; not while the site is being built."""
    asked = record_request(SITE, "build", by="ann")
    client = person("viewer")
    assert titles(client) == []
    BuildRequest.objects.update(requested_at=asked.requested_at - dt.timedelta(hours=3))
    [item], _text = found(client)
    assert (item.title, item.found_by) == ("Build of changes not started", "ann")
    assert "(ann, " in (shown := text_of(client.get(OVERVIEW)).replace("\xa0", " "))
    assert "3 hours ago" in shown
    with acquire(SITE):
        assert titles(client) == []


@pytest.mark.slow
def test_a_failed_check_is_shown_until_a_build_succeeds(built):
    """It lists the damaged files, and how to repair them."""
    client = person("viewer")
    run()
    built.delete(Place.objects.pages().first().name)
    record_request(SITE, kind=BuildRequest.Kind.CHECK, by="someone")
    process_requests(SITE)
    shown, text = found(client)
    assert "File check failed" in [str(item.title) for item in shown]
    assert "validate_sitemaps --repair" in text
    assert "Damaged:" in text
    run(full=True)
    assert titles(client) == []


# What a look at the site tells


@pytest.mark.slow
def test_a_section_that_fails_is_shown(built, monkeypatch):
    """With its error; the rest of the page works."""
    run()
    monkeypatch.setattr(Products, "queryset", property(lambda self: 1 / 0))
    shown, text = found(person("viewer"))
    assert "Section cannot be read" in [str(item.title) for item in shown]
    assert "division by zero" in text


@pytest.mark.slow
def test_lost_files_are_counted(built, monkeypatch):
    """As far as the storage tells without being asked for each file."""
    run()
    monkeypatch.setattr("django_sitemapkit.builds.report.due.StoredFiles.has", lambda *_: False)
    shown, _text = found(person("viewer"))
    assert [(str(item.title), item.level) for item in shown] == [
        ("Stored file missing", Level.ERROR)
    ]
    assert shown[0].count >= Place.objects.pages().count()


@pytest.mark.slow
def test_files_that_this_server_lacks_are_shown_with_the_cause(built, settings, tmp_path):
    """On a server whose disk is not that of the server that built; the overview shows it, too."""
    use_storage(settings, "Disk", location=tmp_path / "one")
    run()
    assert titles(person("viewer")) == []
    use_storage(settings, "Disk", location=tmp_path / "two")
    shown, text = found(person("viewer"))
    assert [str(item.title) for item in shown] == ["Stored file missing"]
    assert f"Missing from {tmp_path / 'two'}" in text
    assert f"Missing from {tmp_path / 'two'}" in text_of(person("viewer").get(OVERVIEW))


@pytest.mark.slow
def test_many_bytes_in_the_database_are_a_note(built, settings):
    """Which names other storages; a large site has time to choose one."""
    settings.STORAGES = global_settings.STORAGES
    run()
    assert titles(person("viewer")) == []
    StoredFile.objects.update(size=150_000_000)
    shown, text = found(person("viewer"))
    assert [item.level for item in shown] == [Level.NOTE]
    assert "S3" in text


def test_external_sitemaps_that_are_not_listed_are_shown(built, sections):
    """Each with its reason."""
    sections.add(Elsewhere)
    shown, text = found(person("viewer"))
    assert [(str(item.title), item.count) for item in shown] == [("External sitemap not listed", 2)]
    assert "https://elsewhere.example/a.xml" in text
    assert "Duplicate: https://www.example.com/own.xml" in text


class Elsewhere(ExternalSection):
    """Two sitemaps that cannot be listed, and one that can."""

    name = "elsewhere"
    sitemaps = ["https://elsewhere.example/a.xml", "/own.xml", "/own.xml"]


class Failing(ExternalSection):
    """A method that fails."""

    name = "failing"

    def sitemaps(self):
        """Fail."""
        raise RuntimeError("no such feed")


def test_external_sitemaps_that_fail_are_shown(built, sections):
    """The rest of the page works."""
    sections.add(Failing)
    shown, text = found(person("viewer"))
    assert [str(item.title) for item in shown] == ["External sitemaps cannot be read"]
    assert "RuntimeError: no such feed" in text


def test_what_fails_now_is_shown_together(built, sections, monkeypatch):
    """Two failures of one look at the site are one group."""

    def fail():
        raise OSError("no answer")

    sections.add(Failing)
    monkeypatch.setattr(builds, "stored_bytes", fail)
    looks = person("viewer").get(HEALTH).context["looks"]
    assert [len(look) for look in looks] == [2]


def test_a_warning_comes_before_a_newer_note(built, monkeypatch):
    """However old it is: first of all one reads what is wrong."""
    old = HealthItem(site="default", title="Old", found_at=NOW - dt.timedelta(days=1))
    new = HealthItem(site="default", title="New", found_at=NOW, level=Level.NOTE)
    monkeypatch.setattr(overview, "current_items", lambda site: [new, old])
    assert titles(person("viewer"))[:2] == ["Old", "New"]


# What others contribute


@pytest.fixture
def _own_sources(monkeypatch):
    monkeypatch.setattr(overview, "current_items", lambda site: [])
    registered = list(health.sources)
    health.sources.clear()
    yield
    health.sources[:] = registered


def item(title, hours=0, **values):
    """Return an item that was found some hours ago."""
    at = NOW - dt.timedelta(hours=hours)
    return HealthItem(**{"site": "default", "title": title, "found_at": at, **values})


@pytest.mark.usefixtures("_own_sources")
def test_an_app_contributes_items(sections):
    """The newest look comes first; of one look errors come first, then the most."""

    @register_health("Visits & more", help="Count <them>.")
    def visits(request, sites):
        assert request.user.get_username() == "viewer"
        assert [site.key for site in sites] == ["default"]
        yield item("oldest", 9, level=Level.ERROR)
        yield item("few", 1, count=2)
        yield item("note", 1, level=Level.NOTE, count=99, url="/x?a=1&b=2")
        yield item("many <b>", 1, count=1_000, at_least=True, details=["<i>"], advice="Do & don't")
        yield item("error", 1, level=Level.ERROR)
        yield replace(item("of a site that is gone", 1), site="gone")

    client = person("viewer")
    shown, text = found(client)
    assert [item.title for item in shown] == ["error", "many <b>", "few", "note", "oldest"]
    assert "many &lt;b&gt;: at least 1,000" in text
    assert "&lt;i&gt;" in text
    assert "Do &amp; don&#x27;t" in text
    assert '<a href="/x?a=1&amp;b=2">note</a>: 99' in text
    assert "<dt>Visits &amp; more</dt> <dd>Count &lt;them&gt;.</dd>" in text
    overview = " ".join(text_of(client.get(OVERVIEW)).split())
    assert "2 errors, 2 warnings" in overview
    assert "note</a>: 99" not in overview


@pytest.mark.usefixtures("_own_sources")
def test_a_source_that_fails_shows_its_error(sections):
    """The rest of the page and the other sources work."""
    register_health("Broken", help="")(lambda request, sites: 1 / 0)
    register_health("Fine", help="")(lambda request, sites: [item("here it is")])
    shown, text = found(person("viewer"))
    assert {str(item.title) for item in shown} == {"Cannot be read", "here it is"}
    assert "ZeroDivisionError: division by zero" in text
    assert "Broken, " in text


# Many sites


def configure(settings, count):
    """Configure sites of which each has something of each kind."""
    keys = [f"site-{number}" for number in range(count)]
    settings.SITEMAPKIT_SITES = {key: {"BASE_URL": f"https://{key}.example"} for key in keys}
    Publication.objects.all().delete()
    for model in (Build, AuditRun, UrlBatch, SubmittedSite, SubmittedSitemap, BuildRequest):
        model.objects.all().delete()
    made = Build.objects.bulk_create(
        Build(
            site=key,
            fence=1,
            started_at=NOW,
            published_at=NOW if status == "published" else None,
            status=status,
            warnings=["w"],
            reason="r",
        )
        for key in keys
        for status in ("published", "held", "failed")
    )
    Publication.objects.bulk_create(
        Publication(site=build.site, build=build) for build in made if build.status == "published"
    )
    Place.objects.bulk_create(
        Place(build=build, section="s", problems=problems_of("e"))
        for build in made
        if build.status == "published"
    )
    BuildRequest.objects.bulk_create(
        BuildRequest(site=key, kind=kind, requested_at=NOW, ended_at=NOW, outcome="e")
        for key in keys
        for kind in BuildRequest.Kind
    )
    AuditRun.objects.bulk_create(
        AuditRun(site=key, kind=kind, status="finished", started_at=NOW, counts={"gone": 1})
        for key in keys
        for kind in ("audit", "audit", "crawl")
    )
    UrlBatch.objects.bulk_create(
        UrlBatch(site=key, host="h", build=1, status=status, count=1, created_at=NOW)
        for key in keys
        for status in ("rejected", "failed", "accepted")
    )
    SubmittedSite.objects.bulk_create(
        SubmittedSite(site=key, build=1, wait_until=NOW + dt.timedelta(days=1)) for key in keys
    )
    SubmittedSitemap.objects.bulk_create(
        SubmittedSitemap(site=key, address=f"https://{key}.example/sitemap.xml", errors=1)
        for key in keys
    )


@pytest.mark.slow
def test_many_sites_take_as_many_queries_as_few(settings, sections, admin_client):
    """They are listed in pages, with a search, each with how many items it has."""
    counts = []
    for count in (2, 60):
        configure(settings, count)
        admin_client.get(HEALTH)
        with CaptureQueriesContext(connection) as queries:
            text = " ".join(text_of(admin_client.get(HEALTH)).split())
        counts.append(len(queries))
        assert text.count("https://site-") == min(count, 50)
    assert counts[0] == counts[1] <= 24
    row = '<td class="sitemapkit-number">8</td> <td class="sitemapkit-number">5</td>'
    assert text.count(row) == 50
    assert f'<a href="{HEALTH}?site=site-0">site-0</a>' in text
    assert '<a href="?p=2">2</a>' in text
    text = text_of(admin_client.get(HEALTH, {"q": "site-59"}))
    assert text.count("https://site-") == 1
    assert "No sites found." in text_of(admin_client.get(HEALTH, {"q": "<none>"}))


@pytest.mark.slow
def test_one_of_many_sites_is_shown_alone(settings, sections, admin_client):
    """With a way back to the list of all."""
    configure(settings, 3)
    shown, text = found(admin_client, site="site-1")
    assert {item.site for item in shown} == {"site-1"}
    assert len([item for item in shown if item.level != Level.NOTE]) == 13
    assert f'<li><a href="{HEALTH}">Health</a></li>' in text
    assert f'href="{OVERVIEW}?site=site-1"' in text
    text = text_of(admin_client.get(OVERVIEW, {"site": "site-1"}))
    assert f'<li><a href="{OVERVIEW}">Sitemaps overview</a></li>' in text
    assert f'href="{HEALTH}?site=site-1"' in text


@pytest.mark.slow
def test_a_site_takes_as_many_queries_whatever_was_found(built, admin_client):
    """Neither files nor findings nor batches count."""
    build = run().build
    admin_client.get(HEALTH)
    counts = []
    for more in (3, 100):
        Place.objects.bulk_create(
            Place(
                build_id=build,
                section="products",
                number=1_000 * more + number,
                problems=problems_of("e"),
            )
            for number in range(more)
        )
        AuditRun.objects.bulk_create(
            AuditRun(site="default", status="finished", started_at=NOW, counts={"gone": number})
            for number in range(more)
        )
        UrlBatch.objects.bulk_create(
            UrlBatch(site="default", host="h", build=1, status="rejected", count=1, created_at=NOW)
            for _ in range(more)
        )
        with CaptureQueriesContext(connection) as queries:
            found(admin_client)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_wrong_settings_are_explained(settings, sections, admin_client):
    """As on the overview."""
    settings.SITEMAPKIT_SITES = {"one": {}}
    assert "errornote" in text_of(admin_client.get(HEALTH))
