"""However many sites, sections, builds and overrides: every screen takes few queries."""

import datetime as dt

import pytest
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from django_sitemapkit import Section
from django_sitemapkit.audit.models import AuditFinding, AuditRun, FindingKind
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
from django_sitemapkit.testing.factories import StoredPageFactory
from tests.admin.editors import chief, text_of
from tests.builds import problems_of, use_storage
from tests.testapp.models import Product, Shop

pytestmark = pytest.mark.django_db

MAX_QUERIES = 30
MAX_BYTES = 600_000
"""What a screen may be in size; a table of 100 sections with three fields each is the largest."""

SCALES = [
    pytest.param({"sites": 12, "sections": 30, "builds": 60, "rows": 600}, id="some"),
    pytest.param(
        {"sites": 60, "sections": 300, "builds": 1_000, "rows": 100_000},
        id="many",
        marks=pytest.mark.thorough,
    ),
]

NOW = timezone.now()

ONE = "site-0"
"""The site that is built; the others only have rows that say so."""


@pytest.fixture
def fill(settings, sections):
    """Give a function that makes sites, sections, builds and rows, so many of each."""

    def make(scale):
        use_storage(settings, "Memory")
        settings.ALLOWED_HOSTS = ["*"]
        settings.SITEMAPKIT_SITES = {
            f"site-{n}": {"BASE_URL": f"https://{n}.example.com"} for n in range(scale["sites"])
        }
        shop = Shop.objects.create(slug="all")
        Product.objects.bulk_create(Product(shop=shop, slug=f"p{n}") for n in range(20))
        for number in range(scale["sections"]):
            sections.add(section_of(number))
        site = next(site for site in all_sites() if site.key == ONE)
        build(site)
        Product.objects.filter(slug="p1").delete()
        build(site)
        Place.objects.pages().update(problems=problems_of("1 row"))
        add_builds(scale)
        add_rows(scale)

    return make


def section_of(number):
    """Return a section over some of the products, with locations by a column."""

    def location(self, obj):
        return f"/{number}/{obj.slug}/"

    rows = {"queryset": Product.objects.all(), "location": location, "name": f"section-{number}"}
    return type(f"Section{number}", (Section,), rows)


def add_builds(scale):
    """Make builds of all sites, each with the files of ten sections, and publish the last ones."""
    Build.objects.bulk_create(
        Build(
            site=f"site-{number % scale['sites']}",
            status=Build.Status.PUBLISHED if number % 7 else Build.Status.HELD,
            reason="" if number % 7 else "too many URLs lost",
            fence=1,
            started_at=NOW,
            ended_at=NOW + dt.timedelta(seconds=5),
            published_at=NOW if number % 7 else None,
        )
        for number in range(scale["builds"])
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


def add_rows(scale):
    """Make what editors set, what they did, and what an audit has found."""
    many = range(scale["rows"])
    UrlOverride.objects.bulk_create(
        UrlOverride(site=ONE, path=f"/0/{n}/", include=False) for n in many
    )
    for model in (ExtraUrl, ExclusionRule):
        field = {ExtraUrl: "path", ExclusionRule: "pattern"}[model]
        model.objects.bulk_create(model(site=ONE, **{field: f"/{n}/x/"}) for n in many[:1_000])
    SectionSettings.objects.bulk_create(
        SectionSettings(site=ONE, section=f"section-{n}", priority="0.5")
        for n in range(scale["sections"])
    )
    user = User.objects.create(username="one")
    of_overrides = ContentType.objects.get_for_model(UrlOverride)
    LogEntry.objects.bulk_create(
        LogEntry(user=user, content_type=of_overrides, object_id=pk, action_flag=CHANGE)
        for pk in UrlOverride.objects.values_list("pk", flat=True)[:1_000]
    )
    run = AuditRun.objects.create(site=ONE, status="done", started_at=NOW, ended_at=NOW, checked=1)
    AuditFinding.objects.bulk_create(
        AuditFinding(run=run, section="section-0", kind=kind, url=f"https://0.example.com/{n}/")
        for kind in FindingKind
        for n in many[:500]
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
                file = Place.objects.in_build(row).pages().first()
                keys += [file.pk, *file.problems]
            if pattern.name and not pattern.name.endswith("_export"):
                url = reverse(f"admin:{pattern.name}", args=keys[: len(pattern.pattern.converters)])
                yield url, {}
                yield url, site
    yield reverse("admin:sitemapkit_inspect"), {"url": "/3/p2/", **site}
    yield reverse("admin:sitemapkit_inspect"), {"url": "/3/p2/"}
    yield reverse("admin:app_list", args=["sitemapkit"]), {}


def asked(queries):
    """Count queries; savepoints are there because the test runs in a transaction."""
    return sum("SAVEPOINT" not in query["sql"] for query in queries)


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_every_screen_is_bounded(fill, scale):
    """In its queries and in its size, whatever the numbers are."""
    fill(scale)
    client = chief()
    client.get(reverse("admin:index"))
    # A process keeps the settings of a site once it has read them.
    client.get(reverse("admin:sitemapkit_overview"), {"site": ONE})
    found, seen = [], 0
    for url, query in screens():
        with CaptureQueriesContext(connection) as queries:
            response = client.get(url, query)
        if response.status_code == 200:
            seen += 1
            size = len(text_of(response))
            if asked(queries) > MAX_QUERIES or size > MAX_BYTES:
                found.append(f"{url} {query}: {asked(queries)} queries, {size} characters")
    assert "\n".join(found) == ""
    assert seen > 40
