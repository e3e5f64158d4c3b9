"""However many sites, sections, builds and overrides: every screen takes few queries."""

import datetime as dt
import itertools

import pytest
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from django_sitemapkit import Section
from django_sitemapkit.audit.models import AuditFinding, AuditRun, FindingKind, SavedPage
from django_sitemapkit.builds import build
from django_sitemapkit.models import (
    Build,
    ExclusionRule,
    ExtraUrl,
    Place,
    Publication,
    SectionSettings,
    UrlOverride,
)
from django_sitemapkit.sites import all_sites
from django_sitemapkit.submission.models import InspectedUrl, SubmittedSitemap, UrlBatch
from django_sitemapkit.testing.factories import StoredPageFactory
from tests.admin.editors import chief, text_of
from tests.builds import problems_of, use_storage
from tests.testapp.models import Article, Product, Shop

pytestmark = pytest.mark.django_db

MAX_QUERIES = 30
MAX_BYTES = 200_000
"""What a screen may be in size, before it is compressed."""

SCALE = {"sites": 60, "sections": 300, "builds": 1_000, "rows": 100_000}

NOW = timezone.now()

HOST = "https://0.example.com"

FINDINGS = dict.fromkeys(FindingKind, 500)

LONG = "an-address-as-long-as-they-are-in-shops"

ONE = "site-0"
"""The site that is built; the others only have rows that say so."""


@pytest.fixture
def fill(settings, sections):
    """Give a function that makes sites, sections, builds and rows, so many of each."""

    def make():
        use_storage(settings, "Memory")
        settings.ALLOWED_HOSTS = ["*"]
        settings.SITEMAPKIT_SITES = {
            f"site-{n}": {"BASE_URL": f"https://{n}.example.com"} for n in range(SCALE["sites"])
        }
        shop, few = (Shop.objects.create(slug=slug) for slug in ("all", "few"))
        Product.objects.bulk_create(Product(shop=few, slug=f"p{n}") for n in range(20))
        Product.objects.bulk_create(Product(shop=shop, slug=f"{n}-{LONG}") for n in range(1_000))
        sections.add(section_of("all", Product.objects.filter(shop=shop)))
        Article.objects.create(title="One", edited_at=NOW)
        for name, title in (("articles", "One"), ("others", "Two")):
            sections.add(section_of(name, Article.objects.filter(title=title)))
        for number in range(SCALE["sections"]):
            sections.add(section_of(number, Product.objects.filter(shop=few)))
        site = next(site for site in all_sites() if site.key == ONE)
        build(site)
        Product.objects.filter(slug="p1").delete()
        build(site)
        Place.objects.pages().update(problems=problems_of("1 row"))
        add_builds()
        add_rows()

    return make


def section_of(number, queryset):
    """Return a section over some rows, with locations by a method."""

    def location(self, obj):
        return f"/{number}/{obj}/"

    rows = {"queryset": queryset, "location": location, "name": f"section-{number}"}
    return type(f"Section{number}", (Section,), rows)


def section_at(number):
    """Return the name of a section, given any number."""
    return f"section-{number % 300}"


def add_builds():
    """Make builds of all sites, each with the files of ten sections, and publish the last ones."""
    Build.objects.bulk_create(
        Build(
            site=f"site-{number % SCALE['sites']}",
            status=Build.Status.PUBLISHED if number % 7 else Build.Status.HELD,
            reason="" if number % 7 else "too many URLs lost",
            fence=1,
            started_at=NOW,
            ended_at=NOW + dt.timedelta(seconds=5),
            published_at=NOW if number % 7 else None,
        )
        for number in range(SCALE["builds"])
    )
    builds = Build.objects.exclude(site=ONE)
    page = StoredPageFactory(site=ONE, urls=100)
    Place.objects.bulk_create(
        Place(
            build=each,
            section=f"section-{number}",
            number=1,
            position=number,
            page=page,
            skipped=number % 2,
            problems=problems_of("1 row") if number % 2 else {},
            status=Place.Status.DONE,
        )
        for each in builds
        for number in range(10)
    )
    published = {each.site: each for each in builds.exclude(published_at=None).order_by("pk")}
    Publication.objects.bulk_create(
        Publication(site=site, build=each) for site, each in published.items()
    )


def add_rows():
    """Make what editors set, what they did, and what an audit has found."""
    many = range(SCALE["rows"])
    UrlOverride.objects.bulk_create(
        UrlOverride(site=ONE, path=f"/0/{n}/", include=False) for n in many
    )
    for model in (ExtraUrl, ExclusionRule):
        field = {ExtraUrl: "path", ExclusionRule: "pattern"}[model]
        model.objects.bulk_create(model(site=ONE, **{field: f"/{n}/x/"}) for n in many[:1_000])
    SectionSettings.objects.bulk_create(
        SectionSettings(site=ONE, section=f"section-{n}", priority="0.5")
        for n in range(SCALE["sections"])
    )
    user = User.objects.create(username="one")
    of_overrides = ContentType.objects.get_for_model(UrlOverride)
    LogEntry.objects.bulk_create(
        LogEntry(user=user, content_type=of_overrides, object_id=pk, action_flag=CHANGE)
        for pk in UrlOverride.objects.values_list("pk", flat=True)[:1_000]
    )
    run = AuditRun.objects.create(
        site=ONE, status="done", started_at=NOW, ended_at=NOW, checked=1, counts=FINDINGS
    )
    AuditFinding.objects.bulk_create(
        AuditFinding(run=run, section=section_at(n), kind=kind, url=f"{HOST}/{n}/", detail=LONG * 5)
        for kind in FindingKind
        for n in many[:500]
    )
    add_submissions(many)


def add_submissions(many):
    """Make what was sent to search engines, and saved by a crawl."""
    urls = [f"{HOST}/{LONG}/{n}/" for n in many[:1_000]]
    UrlBatch.objects.create(
        site=ONE, host=HOST, build=2, count=len(urls), urls="\n".join(urls), created_at=NOW
    )
    SubmittedSitemap.objects.bulk_create(
        SubmittedSitemap(site=site.key, address=site.base, failure=LONG, errors=1, warnings=1)
        for site in all_sites()
    )
    states = itertools.cycle(InspectedUrl.State)
    InspectedUrl.objects.bulk_create(
        InspectedUrl(
            site=ONE,
            section=section_at(n),
            hash=n,
            url=url,
            inspected_at=NOW,
            state=next(states),
            coverage_state=f"state {n % 20}",
        )
        for n, url in enumerate(urls)
    )
    SavedPage.objects.bulk_create(
        SavedPage(site=ONE, hash=n, path=f"/{LONG}/{n}/", first_seen=NOW, last_seen=NOW)
        for n in many[:1_000]
    )


def screens():
    """Yield the address of every screen, with a query where it needs one, and its name."""
    site = {"site": ONE}
    for model, screen in admin.site._registry.items():
        if not model._meta.app_label.startswith("sitemapkit"):
            continue
        row = model._default_manager.order_by("-pk").first()
        if model is Build:
            row = Build.objects.filter(site=ONE).exclude(previous=None).get()
        for pattern in screen.get_urls():
            keys = [row.pk] if row is not None else [1]
            if pattern.name in {"sitemapkit_build_file", "sitemapkit_build_problems"}:
                file = Place.objects.in_build(row).pages().order_by("page__urls").last()
                keys += [file.pk, *file.problems]
            if pattern.name and not pattern.name.endswith("_export"):
                url = reverse(f"admin:{pattern.name}", args=keys[: len(pattern.pattern.converters)])
                yield url, {}
                yield url, site
    yield reverse("admin:sitemapkit_inspect"), {"url": "/3/p2/", **site}
    yield reverse("admin:sitemapkit_inspect"), {"url": "/3/p2/"}
    build = Build.objects.filter(site=ONE).exclude(previous=None).get()
    for section in ("", "section-all"):
        url = reverse("admin:sitemapkit_build_change", args=[build.pk])
        yield url, {"section": section}
    yield reverse("admin:app_list", args=["sitemapkit"]), {}


def asked(queries):
    """Count queries; savepoints are there because the test runs in a transaction."""
    return sum("SAVEPOINT" not in query["sql"] for query in queries)


def measured(client, url, query):
    """Return what a screen costs, with its address."""
    with CaptureQueriesContext(connection) as queries:
        response = client.get(url, query)
    size = len(text_of(response).encode())
    cost = {"status": response.status_code, "queries": asked(queries), "bytes": size}
    return {"url": f"{url}?{urlencode(query)}", **cost}


@pytest.mark.thorough
def test_every_screen_is_bounded(fill, settings, caplog):
    """In its queries and in its size, whatever the numbers are."""
    fill()
    client = chief()
    client.get(reverse("admin:index"))
    # A process keeps the settings and overrides of a site once it has read them.
    client.get(reverse("admin:sitemapkit_overview"), {"site": ONE})
    for url, query in screens():
        if "/problems/" in url:
            client.get(url, query)
    looked_at = [measured(client, *screen) for screen in screens()]
    settings.ROOT_URLCONF = "tests.admin.urls"
    url = reverse("inlines:testapp_article_change", args=[Article.objects.get().pk])
    looked_at += [measured(client, url, query) for query in ({}, {"sitemap_site": ONE})]
    shown = [each for each in looked_at if each["status"] == 200]
    assert len(shown) > 80
    too_much = [
        each for each in shown if each["queries"] > MAX_QUERIES or each["bytes"] > MAX_BYTES
    ]
    assert "\n".join(map(str, too_much)) == ""
    # A page that says why it cannot be shown costs little, and is logged.
    assert "could not be shown" not in caplog.text
