"""Audits in the admin: findings and their actions."""

import csv
import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.urls import reverse
from django.utils import timezone

from django_sitemapkit.audit.models import AuditFinding, AuditRun, SavedPage
from django_sitemapkit.models import UrlOverride, hash_of
from tests.builds import BASE, Products

pytestmark = pytest.mark.django_db

FINDINGS = reverse("admin:sitemapkit_audit_auditfinding_changelist", urlconf="tests.urls")


@pytest.fixture
def audited(sections):
    """Give an audit with findings of three kinds."""
    sections.add(Products)
    audited = AuditRun.objects.create(
        site="default",
        status="finished",
        started_at=timezone.now(),
        checked=40,
        bad=3,
        counts={"redirect": 2, "not-found": 1, "slow": 1},
    )
    for kind, path, detail in (
        ("redirect", "/old/a/", "→ /new/a/"),
        ("redirect", "/old/b/?x=1&y=2", "=1+1"),
        ("not-found", "/gone/", "404"),
        ("slow", "/gone/", "3.0 s"),
    ):
        AuditFinding.objects.create(
            run=audited, section="products", kind=kind, url=f"{BASE}{path}", detail=detail
        )
    return audited


def act(client, action, **filters):
    """Post an action on the findings with these values."""
    chosen = AuditFinding.objects.filter(**filters).values_list("pk", flat=True)
    return client.post(FINDINGS, {"action": action, "_selected_action": list(chosen)})


def test_an_audit_shows_its_kinds(audited, admin_client):
    """With what to do about each, and a link to its findings."""
    address = reverse("admin:sitemapkit_audit_auditrun_change", args=[audited.pk])
    text = admin_client.get(address).text
    assert "List the target of the redirect instead." in text
    link = f"{FINDINGS}?run__id__exact={audited.pk}&amp;kind__exact=redirect"
    assert link in text
    listed = admin_client.get(link.replace("&amp;", "&")).text
    assert f"{BASE}/old/a/" in listed
    assert "/gone/" not in listed
    assert "7.5%" in admin_client.get(reverse("admin:sitemapkit_audit_auditrun_changelist")).text


@pytest.mark.slow
def test_excluding_sets_overrides(audited, admin_client):
    """For each URL once; one that includes its URL is changed."""
    UrlOverride.objects.create(site="default", path="/old/a/", include=True)
    response = admin_client.post(
        FINDINGS,
        {
            "action": "exclude_urls",
            "_selected_action": list(AuditFinding.objects.values_list("pk", flat=True)),
        },
        follow=True,
    )
    assert "3 URLs will be excluded by the next build." in response.text
    rows = UrlOverride.objects.order_by("path").values_list("path", "include")
    assert list(rows) == [("/gone/", False), ("/old/a/", False), ("/old/b/?x=1&y=2", False)]
    assert LogEntry.objects.filter(content_type__model="urloverride").count() == 3
    act(admin_client, "exclude_urls")
    assert UrlOverride.objects.count() == 3


def test_a_rule_is_made_of_the_common_folder(audited, admin_client):
    """Its form is opened; nothing is stored yet."""
    response = act(admin_client, "open_rule_form", kind="redirect")
    parts = urlsplit(response["Location"])
    assert parts.path == reverse("admin:sitemapkit_exclusionrule_add")
    assert parse_qs(parts.query) == {"site": ["default"], "pattern": ["/old/"]}
    assert 'value="/old/"' in admin_client.get(response["Location"]).text
    one = act(admin_client, "open_rule_form", kind="slow")
    assert parse_qs(urlsplit(one["Location"]).query)["pattern"] == ["/gone/$"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "urls",
    [
        ["https://elsewhere.example/"],
        [f"{BASE}/a/", f"{BASE}/b/"],
        [f"{BASE}/a/x*/", f"{BASE}/a/y/"],
        [f"{BASE}/$/"],
    ],
)
def test_no_rule_is_made_of_these(audited, admin_client, urls):
    """Not of the whole site, nor of what a pattern reads in another way."""
    AuditFinding.objects.all().delete()
    for url in urls:
        AuditFinding.objects.create(run=audited, section="s", kind="redirect", url=url)
    chosen = list(AuditFinding.objects.values_list("pk", flat=True))
    data = {"action": "open_rule_form", "_selected_action": chosen}
    response = admin_client.post(FINDINGS, data, follow=True)
    assert "Select URLs of one site that have a folder in common" in response.text


def test_a_folder_ends_at_a_slash(audited, admin_client):
    """What else begins with the same letters is not meant."""
    for number in (10, 12):
        AuditFinding.objects.create(
            run=audited, section="s", kind="gone", url=f"{BASE}/products/{number}/"
        )
    response = act(admin_client, "open_rule_form", kind="gone")
    assert parse_qs(urlsplit(response["Location"]).query)["pattern"] == ["/products/"]


def test_too_many_are_refused(audited, admin_client, monkeypatch):
    """One request does not change thousands of rows."""
    monkeypatch.setattr("django_sitemapkit.audit.admin.MAX_SELECTED", 3)
    response = act(admin_client, "exclude_urls")
    assert response.status_code == 302
    assert not UrlOverride.objects.exists()
    assert "Select at most 3 findings at a time." in admin_client.get(FINDINGS).text


def test_only_the_newest_audit_is_listed(audited, admin_client):
    """Unless an older one is chosen; the sections are those of the newest."""
    newer = AuditRun.objects.create(site="default", started_at=timezone.now())
    AuditFinding.objects.create(run=newer, section="new", kind="gone", url=f"{BASE}/newer/")
    text = admin_client.get(FINDINGS).text
    assert f"{BASE}/newer/" in text
    assert f"{BASE}/old/a/" not in text
    assert "section__exact=new" in text
    assert "section__exact=products" not in text
    older = admin_client.get(f"{FINDINGS}?run__id__exact={audited.pk}").text
    assert f"{BASE}/old/a/" in older


def test_findings_are_exported_as_csv(audited, admin_client):
    """No cell is taken for a formula."""
    response = act(admin_client, "export_csv", kind="redirect")
    rows = list(csv.reader(b"".join(response.streaming_content).decode("utf-8-sig").splitlines()))
    assert rows[0] == ["site", "audit", "section", "kind", "url", "detail"]
    assert [row[3:] for row in rows[1:]] == [
        ["redirect", f"{BASE}/old/a/", "→ /new/a/"],
        ["redirect", f"{BASE}/old/b/?x=1&y=2", "'=1+1"],
    ]


@pytest.mark.slow
def test_actions_need_permissions(audited, client):
    """Viewers may export; who may not change overrides does not change them here."""
    user = User.objects.create_user("viewer", is_staff=True)
    names = ("view_auditfinding", "add_urloverride", "bulk_urloverride")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(user)
    text = client.get(FINDINGS).text
    assert "export_csv" in text
    assert "exclude_urls" not in text
    assert "open_rule_form" not in text
    act(client, "exclude_urls")
    assert not UrlOverride.objects.exists()


@pytest.mark.slow
def test_a_finding_says_what_to_do_and_leads_to_its_url(audited, admin_client):
    """On its page and in the list, where each has its advice."""
    finding = AuditFinding.objects.get(kind="not-found")
    page = reverse("admin:sitemapkit_audit_auditfinding_change", args=[finding.pk])
    advice = "Exclude the URL, or correct what the section lists."
    for address in (FINDINGS, page):
        text = admin_client.get(address).text
        link = re.search(f'{advice} <a href="([^"]*/inspect/[^"]*)">Inspect</a>', text)[1]
        assert f"{BASE}/gone/" in admin_client.get(unescape(link)).text


@pytest.mark.slow
def test_an_audit_begins_with_its_errors(audited, admin_client):
    """With the number of each kind, a link to its findings, and what to do."""
    audited.counts = {"title-missing": 7, "not-found": 1200}
    audited.save()
    text = admin_client.get(
        reverse("admin:sitemapkit_audit_auditrun_change", args=[audited.pk])
    ).text
    plain = " ".join(re.sub("<[^>]+>", " ", text.partition("Findings:")[2]).split())
    assert plain.startswith(
        "error Not found : 1,200 Exclude the URL, or correct what the section lists. warning"
        " Title missing : 7 Give the page a title."
    )
    assert f'href="{FINDINGS}?run__id__exact={audited.pk}&amp;kind__exact=not-found"' in text


def test_nobody_changes_an_audit(audited, admin_client):
    """It says what was found."""
    for model, pk in (("auditrun", audited.pk), ("auditfinding", AuditFinding.objects.first().pk)):
        base = f"admin:sitemapkit_audit_{model}"
        assert admin_client.get(reverse(f"{base}_add")).status_code == 403
        assert admin_client.post(reverse(f"{base}_change", args=[pk]), {}).status_code == 403
        assert admin_client.post(reverse(f"{base}_delete", args=[pk])).status_code == 403


def test_saved_pages_are_listed(admin_client, django_assert_max_num_queries):
    """With when they were seen; nobody changes them by hand."""
    now = timezone.now()
    for number in range(3):
        path = f"/saved/{number}/"
        SavedPage.objects.create(
            site="default", hash=hash_of(path), path=path, title="=T", first_seen=now, last_seen=now
        )
    base = "admin:sitemapkit_audit_savedpage"
    with django_assert_max_num_queries(8):
        text = admin_client.get(reverse(f"{base}_changelist"), {"q": "saved/1"}).text
    assert "/saved/1/" in text
    assert "/saved/2/" not in text
    address = reverse(f"{base}_change", args=[SavedPage.objects.latest("pk").pk])
    assert "/saved/2/" in admin_client.get(address).text
    assert admin_client.post(address, {}).status_code == 403


def test_lists_take_few_queries(audited, admin_client, django_assert_max_num_queries):
    """However many findings there are."""
    with django_assert_max_num_queries(11):
        admin_client.get(FINDINGS)
    with django_assert_max_num_queries(8):
        admin_client.get(reverse("admin:sitemapkit_audit_auditrun_changelist"))


# Crawls


@pytest.fixture
def crawled(audited):
    """Give a crawl with an orphan, and a page that no section lists."""
    crawled = AuditRun.objects.create(
        site="default",
        kind="crawl",
        status="finished",
        started_at=timezone.now(),
        options={"starts": [f"{BASE}/"], "max_urls": 5_000, "max_depth": 3},
        checked=50,
        bad=1,
        pending=2_000,
        counts={"orphan": 1, "missing": 1},
    )
    for kind, section, path in (("orphan", "products", "/shop/a/"), ("missing", "", "/shop/b/")):
        AuditFinding.objects.create(run=crawled, section=section, kind=kind, url=f"{BASE}{path}")
    return crawled


@pytest.mark.slow
def test_a_crawl_shows_its_kinds_and_limits(crawled, admin_client):
    """Where an audit shows its sample."""
    address = reverse("admin:sitemapkit_audit_auditrun_change", args=[crawled.pk])
    text = admin_client.get(address).text
    assert "List the page in a section, or mark it noindex." in text
    assert f"{BASE}/<" in text
    assert "5,000 URLs, 3 links deep" in text
    assert "2000" in text.replace(",", "")
    assert "field-sample" not in text
    listed = admin_client.get(reverse("admin:sitemapkit_audit_auditrun_changelist")).text
    assert "crawl</td>" in listed


def test_newest_findings_are_those_of_an_audit_and_a_crawl(audited, crawled, admin_client):
    """None hides another, nor does an audit before publishing; an orphan has no section."""
    gate = AuditRun.objects.create(site="default", kind="gate", started_at=timezone.now())
    AuditFinding.objects.create(run=gate, section="products", kind="gone", url=f"{BASE}/held/")
    text = admin_client.get(FINDINGS).text
    assert f"{BASE}/held/" in text
    assert f"{BASE}/old/a/" in text
    assert f"{BASE}/shop/b/" in text
    assert "section__exact=products" in text
    assert 'section__exact="' not in text


def test_orphans_are_excluded_and_what_is_not_listed_is_not(crawled, admin_client):
    """The message says it."""
    data = {
        "action": "exclude_urls",
        "_selected_action": list(crawled.findings.values_list("pk", flat=True)),
    }
    text = admin_client.post(FINDINGS, data, follow=True).text
    assert "1 URL will be excluded by the next build." in text
    assert "1 finding is not about an entry of the sitemap: there is nothing to exclude." in text
    assert list(UrlOverride.objects.values_list("path", flat=True)) == ["/shop/a/"]


@pytest.mark.parametrize("action", ["exclude_urls", "open_rule_form"])
def test_nothing_is_excluded_for_a_missing_page(crawled, admin_client, action):
    """It is not in the sitemap."""
    missing = crawled.findings.get(kind="missing")
    data = {"action": action, "_selected_action": [missing.pk]}
    text = admin_client.post(FINDINGS, data, follow=True).text
    assert "1 finding is not about an entry of the sitemap" in text
    assert "excluded by the next build" not in text
    assert not UrlOverride.objects.exists()
