"""The publish gate: builds whose pages are bad are held for review."""

import pytest
from django.core.checks import run_checks
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import override

from django_sitemapkit import StaticSection
from django_sitemapkit.audit.models import AuditRun
from django_sitemapkit.audit.web.in_process import InProcessFetcher
from django_sitemapkit.builds import publish
from django_sitemapkit.models import Build, Place
from tests.audit.faulty import BASE
from tests.builds import SITE, run, use_storage
from tests.management import run as command

pytestmark = pytest.mark.django_db

GOOD = [f"/clean/{number}/" for number in range(90)]


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


@pytest.mark.slow
def test_a_build_with_many_is_held(site):
    """The reason says how many of what; someone may publish it all the same."""
    run()
    site.items = [*GOOD[:20], "/missing/", "/gone/", "/error/", "/noindex/"]
    result = run()
    assert result.status == "held"
    assert result.reason == (
        "section 'pages': 4 of 24 web pages are bad or undetermined (not-found 1, gone 1,"
        ' server-error 1, noindex 1): 16.7%; SITEMAPKIT_AUDIT["max_bad"] allows 10% of each section'
    )
    audited = AuditRun.objects.order_by("-pk").first()
    assert (audited.build, audited.findings.count()) == (result.build, 4)
    publish(SITE, result.build)


@pytest.mark.slow
def test_a_bad_section_is_not_hidden_by_good_ones(site, sections):
    """Each section has its own limit: one of twelve holds the build, whichever it is."""
    sections.remove("pages")
    twelve = [
        type(f"Pages{number}", (StaticSection,), {"items": GOOD[number * 3 : number * 3 + 3]})
        for number in range(12)
    ]
    for section in twelve:
        sections.add(section)
    assert run().status == "published"
    for section in twelve:
        good, section.items = section.items, ["/noindex/?a", "/noindex/?b", "/noindex/?c"]
        result = run()
        assert (result.status, result.code) == ("held", "bad-pages")
        assert result.reason.startswith(f"section '{section.__name__.lower()}': 3 of 3 web pages")
        section.items = good


def audited_urls(monkeypatch, build):
    """Return the URLs that are audited before a build is published."""
    urls = []
    fetch = InProcessFetcher.fetch

    def noted(self, url, **options):
        urls.append(url.removeprefix(BASE))
        return fetch(self, url, **options)

    with monkeypatch.context() as patch:
        patch.setattr(InProcessFetcher, "fetch", noted)
        assert build().build
    return {url for url in urls if url != "/robots.txt"}


@pytest.mark.slow
def test_each_build_has_another_sample(site, settings, monkeypatch):
    """What is new or changed is in it, and the rest is at other places."""
    settings.SITEMAPKIT_AUDIT |= {"sample": 20}
    run()
    samples = []
    for new in ("/clean/1000/", "/clean/1001/"):
        site.items = [*GOOD, new]
        samples.append(audited_urls(monkeypatch, run))
        assert new in samples[-1]
    first, second = samples
    assert {len(first), len(second)} <= {19, 20}  # A new one may be at one of the places.
    assert len(first & second) < 10


@pytest.mark.slow
def test_more_changes_than_fit_are_a_sample_of_their_own(site, settings, monkeypatch):
    """The reason says of how many new and changed pages it is one."""
    settings.SITEMAPKIT_AUDIT |= {"sample": 10}
    run()
    new = [f"/noindex/?{number}" for number in range(40)]
    site.items = [*GOOD, *new]
    results = []
    assert audited_urls(monkeypatch, lambda: results.append(run()) or results[0]) < set(new)
    assert (
        "10 of 10 new or changed web pages that were audited are bad or undetermined (noindex 10):"
        " 100%, and with 95% confidence 72.2 to 100% of 40 URLs that are new or changed"
    ) in results[0].reason


def test_a_sample_of_a_section_says_its_interval(site, settings):
    """Of all that is published for the first time."""
    settings.SITEMAPKIT_AUDIT |= {"sample": 10}
    site.items = [f"/noindex/?{number}" for number in range(1_000)]
    reason = run().reason
    assert "10 of 10 web pages that were audited" in reason
    assert "with 95% confidence 72.2 to 100% of all 1,000 URLs" in reason


def test_what_robots_txt_blocks_needs_no_fetch(site, monkeypatch):
    """If that alone is too much, no page is fetched."""
    site.items = [*GOOD[:10], "/blocked-for-google/?1", "/blocked-for-google/?2"]
    results = []
    assert not audited_urls(monkeypatch, lambda: results.append(run()) or results[0])
    assert "2 of 12 web pages are bad or undetermined (robots 2)" in results[0].reason


@pytest.mark.slow
def test_the_bad_urls_are_named(site, admin_client, settings):
    """By the command and on the page of the build, each with what to do."""
    site.items = [*GOOD[:5], "/missing/", "/moved/"]
    code, _out, errors = command("build_sitemaps")
    assert code == 3
    assert f"    {BASE}/missing/  Not found: 404. Exclude the URL, or correct" in errors
    assert f"    {BASE}/moved/  Redirect: {BASE}/moved/ (301) → {BASE}/clean/1/. List " in errors
    build = Build.objects.get(status="held")
    page = reverse("admin:sitemapkit_build_change", args=[build.pk])
    inspect = f"{reverse('admin:sitemapkit_inspect')}?site=default&amp;url="
    text = admin_client.get(page).text
    for name in ("missing", "moved"):
        assert f'{inspect}https%3A%2F%2Fwww.example.com%2F{name}%2F">{BASE}/{name}/</a>' in text
    assert "Exclude the URL, or correct what the section lists." in text
    with override("es"):
        assert "Not found" not in dict(build.findings)[f"{BASE}/missing/"]


@pytest.mark.slow
def test_a_lost_published_file_does_not_stop_the_audit(site, settings):
    """What is new is not known then: any page may be in the sample."""
    storage = use_storage(settings, "Memory")
    run()
    (row,) = Place.objects.in_build(Build.objects.published(SITE)).pages()
    storage.delete(row.page.name)
    site.items = [*GOOD, "/clean/1000/"]
    assert run().status == "published"
    assert AuditRun.objects.order_by("-pk").first().checked == 50


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
