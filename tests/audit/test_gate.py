"""The publish gate: builds whose pages are bad are held for review."""

import pytest
from django.core.checks import run_checks
from django.http import HttpResponse

from django_sitemapkit import StaticSection
from django_sitemapkit.audit.models import AuditRun
from django_sitemapkit.builds import publish
from tests.audit.faulty import FAULTS
from tests.builds import SITE, run, use_storage

pytestmark = pytest.mark.django_db

GOOD = [f"/clean/{number}/" for number in range(90)]
BAD = [f"/{name}" for name, (_, kind) in FAULTS.items() if kind == "not-found"] * 10


@pytest.fixture
def site(settings, sections):
    """Give the section of a site whose builds are audited."""
    settings.ROOT_URLCONF = "tests.audit.faulty"
    settings.SITEMAPKIT_AUDIT = {"max_bad": 0.1}

    class Pages(StaticSection):
        items = GOOD

    sections.add(Pages)
    use_storage(settings, "Memory")
    return Pages


def test_a_build_with_few_bad_pages_is_published(site):
    """A tenth is allowed."""
    site.items = [*GOOD[:45], "/missing/"]
    assert run().status == "published"
    audited = AuditRun.objects.get()
    assert (audited.status, audited.checked, audited.bad) == ("finished", 46, 1)


def test_a_build_with_many_is_held(site):
    """The reason says how many of what; someone may publish it all the same."""
    run()
    site.items = [*GOOD[:20], "/missing/", "/gone/", "/error/", "/noindex/"]
    result = run()
    assert result.status == "held"
    assert result.reason == (
        "4 of 24 web pages that were audited are bad or undetermined (gone 1, noindex 1,"
        ' not-found 1, server-error 1), and SITEMAPKIT_AUDIT["max_bad"] allows 10%'
    )
    audited = AuditRun.objects.order_by("-pk").first()
    assert (audited.build, audited.findings.count()) == (result.build, 4)
    publish(SITE, result.build)


def test_a_build_of_which_no_page_answers_is_held(site, settings):
    """Nobody knows that its pages are good."""
    site.items = GOOD[:20]
    settings.MIDDLEWARE = [f"{__name__}.in_maintenance"]
    result = run()
    assert result.status == "held"
    assert "(undetermined 20)" in result.reason


def in_maintenance(get_response):
    """Answer 503 to each request."""
    return lambda request: HttpResponse(status=503)


def test_nothing_is_audited_by_default(site, settings):
    """Nor without the setting's ``max_bad``."""
    settings.SITEMAPKIT_AUDIT = {"sample": 5}
    site.items = ["/missing/"]
    assert run().status == "published"
    assert not AuditRun.objects.exists()


def test_the_sample_is_an_option(site, settings):
    """URLs of each section."""
    settings.SITEMAPKIT_AUDIT |= {"sample": 7}
    run()
    assert AuditRun.objects.get().checked == 7


def test_long_audits_keep_the_lease(site, settings, monkeypatch):
    """A heartbeat is due between two pages."""
    beats = []
    monkeypatch.setattr(
        "django_sitemapkit.builds.lease.BuildLease.heartbeat", lambda self: beats.append(1)
    )
    settings.SITEMAPKIT_AUDIT |= {"sample": 9}
    run()
    assert len(beats) >= 9


@pytest.mark.parametrize(
    "value",
    [
        "yes",
        {"samples": 5},
        {"sample": 0},
        {"sample": True},
        {"max_bad": 1.5},
        {"max_bad": "0.1"},
        {"slow_seconds": 0},
        {"soft_404": "no.such.function"},
        {"soft_404": "tests.audit.faulty.BASE"},
        {"soft_404": None},
        {"user_agent": 5},
    ],
)
def test_each_mistake_in_the_setting(settings, value):
    """A check says so."""
    settings.SITEMAPKIT_AUDIT = value
    assert "sitemapkit.E162" in {found.id for found in run_checks()}
