"""What audits and crawls contribute to the page "Health"."""

import datetime as dt

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from django_sitemapkit.audit.health import findings_url
from django_sitemapkit.audit.kinds import ADVICE, FindingKind
from django_sitemapkit.audit.models import AuditFinding, AuditRun
from tests.builds import Products

pytestmark = pytest.mark.django_db

NOW = timezone.now()


@pytest.fixture(autouse=True)
def _sections(sections):
    sections.add(Products)


def add_run(hours=0, *, kind="audit", status="finished", **counts):
    """Add an audit that ended some hours ago; return it."""
    at = NOW - dt.timedelta(hours=hours)
    counts = {name.replace("_", "-"): count for name, count in counts.items()}
    return AuditRun.objects.create(
        site="default",
        kind=kind,
        status=status,
        started_at=at,
        ended_at=at if status == "finished" else None,
        checked=4_000,
        bad=3,
        counts=counts,
    )


def health(client):
    """Return the page without its blanks."""
    response = client.get(reverse("admin:sitemapkit_health"))
    assert response.status_code == 200
    return " ".join(response.text.split())


def items(client):
    """Return what the page shows of audits and crawls, in its order."""
    response = client.get(reverse("admin:sitemapkit_health"))
    found = [item for look in response.context["looks"] for item in look]
    return [item for item in found if str(item.title) != "No submission is recorded"]


@pytest.mark.slow
def test_a_crawl_of_a_folder_hides_nothing(admin_client):
    """It is shown beside the crawl of the site, until that is repeated."""
    site = {"starts": ["https://www.example.com/"], "below": "", "whole_site": True}
    folder = {"starts": ["https://www.example.com/a/"], "below": "/a/", "whole_site": False}
    for hours, options, counts in ((3, site, {"orphan": 1}), (2, folder, {"missing": 2})):
        run = add_run(hours, kind="crawl", **counts)
        AuditRun.objects.filter(pk=run.pk).update(options=options)
    text = health(admin_client)
    assert str(FindingKind.ORPHAN.label) in text
    assert str(FindingKind.MISSING.label) in text
    assert "(https://www.example.com/a/ /a/)" in text
    listed = admin_client.get(reverse("admin:sitemapkit_audit_auditfinding_changelist"))
    assert listed.status_code == 200
    run = add_run(1, kind="crawl")
    AuditRun.objects.filter(pk=run.pk).update(options=site)
    assert str(FindingKind.MISSING.label) not in health(admin_client)


def user_with(client, *names):
    """Log in a user who may view builds, and what is named."""
    user = User.objects.create_user("one", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=("view_build", *names)))
    client.force_login(user)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FindingKind)
def test_each_kind_is_shown_with_its_advice(admin_client, kind):
    """With how many there are, and a link to their list."""
    run = add_run(**{kind: 1_234})
    text = health(admin_client)
    listed = reverse("admin:sitemapkit_audit_auditfinding_changelist")
    link = f"{listed}?run__id__exact={run.pk}&amp;kind__exact={kind}"
    assert f'<a href="{link}">{kind.label}</a>: 1,234' in text
    assert str(ADVICE[kind]).replace("'", "&#x27;") in text
    assert admin_client.get(link.replace("&amp;", "&")).status_code == 200


@pytest.mark.slow
def test_the_newest_audit_and_the_newest_crawl_count(admin_client):
    """Neither earlier ones, nor audits before publishing: those hold their build for review."""
    add_run(5, redirect=5)
    audit = add_run(3, gone=2, slow=7)
    crawl = add_run(2, kind="crawl", redirect=1)
    add_run(1, kind="gate", noindex=9)
    found = [(str(item.found_by), str(item.title), item.count) for item in items(admin_client)]
    assert found == [
        (f"Crawl {crawl.pk}", "Redirect", 1),
        (f"Crawl {crawl.pk}", "4,000 URLs checked, 3 bad", None),
        (f"Audit {audit.pk}", "Gone", 2),
        (f"Audit {audit.pk}", "Slow", 7),
        (f"Audit {audit.pk}", "4,000 URLs checked, 3 bad", None),
    ]
    assert [item.level.label for item in items(admin_client)[2:]] == ["error", "warning", "note"]


@pytest.mark.slow
def test_it_says_since_when_a_kind_is_found(admin_client):
    """Since the first of the audits that found it one after the other."""
    add_run(5, redirect=1, gone=1)
    add_run(4, redirect=1)
    add_run(3, redirect=4, gone=1)
    add_run(2, redirect=4, gone=1, slow=1)
    since = {str(item.title): item.since for item in items(admin_client) if item.count}
    assert since == {
        "Redirect": NOW - dt.timedelta(hours=5),
        "Gone": NOW - dt.timedelta(hours=3),
        "Slow": None,
    }
    assert health(admin_client).count('<span class="quiet">since ') == 2


def test_a_running_audit_does_not_hide_the_last_one(admin_client):
    """It may have been interrupted: then the command continues it."""
    add_run(2, redirect=4)
    add_run(1, status="running", gone=1)
    text = health(admin_client)
    assert "It is running, or was interrupted." in text
    assert "run the same command again" in text
    assert ">Redirect</a>: 4" in text
    assert ">Gone</a>" not in text


@pytest.mark.slow
def test_without_an_audit_it_says_how_to_run_one(admin_client):
    """There is no finding yet."""
    text = health(admin_client)
    assert "Nothing needs your attention." in text
    assert "audit_sitemaps" in text
    assert [str(item.title) for item in items(admin_client)] == ["Never audited", "Never crawled"]
    add_run(1, kind="crawl")
    assert "Never audited" in health(admin_client)
    assert "Never crawled" not in health(admin_client)


@pytest.mark.slow
def test_audits_are_for_those_who_may_see_them(client):
    """Their findings are linked for those who may see findings."""
    add_run(redirect=4)
    user_with(client)
    assert "Redirect" not in health(client)
    overview = reverse("admin:sitemapkit_overview")
    assert "Redirect" not in client.get(overview).text
    user = User.objects.get(username="one")
    user.user_permissions.add(Permission.objects.get(codename="view_auditrun"))
    text = health(client)
    assert "Redirect: 4" in text
    assert "auditfinding" not in text
    user.user_permissions.add(Permission.objects.get(codename="view_auditfinding"))
    assert ">Redirect</a>: 4" in health(client)
    assert ">Redirect</a>: 4" in client.get(overview).text


@pytest.mark.slow
def test_an_inspected_url_has_its_last_finding(admin_client):
    """Of the newest audit, for who may see findings; another URL has none."""
    for detail in ("301", "302"):
        run = add_run(redirect=1)
        AuditFinding.objects.create(
            run=run, section="s", kind="redirect", url="https://www.example.com/Old/", detail=detail
        )
    page = reverse("admin:sitemapkit_inspect")
    text = admin_client.get(page, {"url": "/Old/"}).text
    assert "302</a>" in text
    assert "301</a>" not in text
    assert f"Audit {run.pk}, {date_format(timezone.localtime(run.ended_at))}" in text
    assert findings_url(run, "redirect").replace("&", "&amp;") in text
    assert "302</a>" not in admin_client.get(page, {"url": "/old/"}).text
