"""Audits: each fault is found with its reason, and nothing else."""

import datetime as dt
import re
import threading
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest

from django_sitemapkit import StaticSection
from django_sitemapkit.audit import auditing
from django_sitemapkit.audit.auditing import KEEP_RUNS, audit, entries_of_places
from django_sitemapkit.audit.judge import Judge, SitemapEntry, Verdict
from django_sitemapkit.audit.kinds import ADVICE, AUDIT_KINDS, FindingKind
from django_sitemapkit.audit.models import AuditedTitle, AuditFinding, AuditRun
from django_sitemapkit.audit.options import AuditOptions
from django_sitemapkit.audit.web.responses import Fetched
from django_sitemapkit.audit.web.robots import RobotsRules
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.models import Build, Place
from django_sitemapkit.sites import all_sites
from tests.audit.faulty import BASE, FAULTS
from tests.builds import SITE, run, use_storage

pytestmark = pytest.mark.django_db


class Faulty(StaticSection):
    """The pages with a fault, after one that another repeats the title of."""

    items = ["/clean/1/", *(f"/{name}" for name in FAULTS), "/blocked/", "/chosen/"]
    lastmod = dt.date(2026, 5, 1)


class Clean(StaticSection):
    """Pages without a fault."""

    items = [f"/clean/{number}/" for number in range(2, 300)]


@pytest.fixture
def faulty(settings, sections):
    """Give the site with the faulty pages, whose soft 404s and slow pages have rules."""
    settings.ROOT_URLCONF = "tests.audit.faulty"
    settings.SITEMAPKIT_AUDIT = {"soft_404": "tests.audit.faulty.is_soft_404"}
    sections.add(Faulty)
    sections.add(Clean)
    return use_storage(settings, "Memory")


def found(audited):
    """Return the findings as path, without its slash, and kind."""
    pairs = audited.findings.values_list("url", "kind")
    return sorted((url.removeprefix(f"{BASE}/"), kind) for url, kind in pairs)


EXPECTED = sorted((name, kind) for name, (_, kind) in FAULTS.items())


@pytest.mark.slow
@pytest.mark.parametrize("built", [True, False])
def test_each_fault_is_found(faulty, built):
    """In published files and in live pages, and nothing is found that is not there."""
    assert len(FAULTS) > 30
    planted = {kind for _, kind in FAULTS.values()}
    assert planted | {"hreflang", "slow"} == set(AUDIT_KINDS)
    if built:
        run()
    audited = audit(SITE, sample=None)
    assert found(audited) == EXPECTED
    assert (audited.status, audited.checked) == ("finished", len(FAULTS) + 3 + 298)
    assert sum(audited.counts.values()) == len(FAULTS)
    assert AuditedTitle.objects.count() == 0


@pytest.mark.slow
def test_details_say_what_was_found(faulty):
    """Targets, hops, and where it was said."""
    details = dict(audit(SITE, sample=None).findings.values_list("url", "detail"))
    for name, detail in {
        "missing/": "404",
        "no-content/": "204",
        "to-nowhere/": "301 without a target",
        "error/": "500: The view raises ZeroDivisionError: a bug",
        "chain/": f"{BASE}/chain/ (302) → {BASE}/moved/ (301) → {BASE}/clean/1/",
        "to-nothing/": f"{BASE}/to-nothing/ (302) → {BASE}/missing/ (404)",
        "canonical-host/": "https://other.example/",
        "noindex-header-agent/": "X-Robots-Tag: googlebot",
        "repeated-title/": f"{BASE}/clean/1/",
        "canonical-conflict/": f"{BASE}/clean/1/, {BASE}/clean/2/",
        "en_UK/": "UK in en-UK is not a region of ISO 3166-1; write GB.",
        "to-noindex/": f"{BASE}/noindex/ (noindex: meta robots)",
        "one-way/": f"{BASE}/one-way/es/",
    }.items():
        assert details[f"{BASE}/{name}"] == detail, name


def test_each_kind_has_advice():
    """It says what to do."""
    assert set(ADVICE) == set(FindingKind)


# Samples


@pytest.mark.slow
@pytest.mark.parametrize("built", [True, False])
def test_a_sample_is_taken_of_each_section(faulty, sections, built):
    """From all of its pages, the same each time."""

    class Numbers(Clean):
        items = [f"/clean/{number}/" for number in range(1_000, 1_100)]
        limit = 7

    sections.add(Numbers)
    if built:
        run()
    seen = [[], []]
    for urls in seen:
        fetch = auditing.InProcessFetcher([SITE]).fetch

        def noted(url, urls=urls, fetch=fetch):
            urls.append(url)
            return fetch(url)

        audit(SITE, sample=30, fetch=noted)
    assert seen[0] == seen[1]
    numbers = [int(url.split("/")[-2]) for url in seen[0] if re.search("/clean/1[0-9]{3}/", url)]
    assert 28 <= len(numbers) <= 32
    assert numbers[0] < 1_007
    assert numbers[-1] >= 1_090
    assert max(b - a for a, b in pairwise(numbers)) <= 7


# Continuing


class Killed(BaseException):
    """The process ends here."""


def killed_after(count):
    """Return a fetch that ends the process after some requests."""
    fetch, left = auditing.InProcessFetcher([SITE]).fetch, [count]

    def dying(url):
        if not left[0]:
            raise Killed
        left[0] -= 1
        return fetch(url)

    return dying


def outcome(audited):
    """Return all that an audit found."""
    fields = ("section", "kind", "url", "detail")
    findings = sorted(audited.findings.values_list(*fields))
    return findings, audited.checked, audited.bad


@pytest.mark.slow
def test_an_interrupted_audit_is_continued(faulty, monkeypatch):
    """It ends with the findings of one that was not interrupted, whenever it was."""
    monkeypatch.setattr(auditing, "URLS_PER_RECORD", 7)
    run()
    whole = outcome(audit(SITE, sample=None, restart=True, fetch=killed_after(10_000)))
    for count in (0, 8, 41, 200):
        with pytest.raises(Killed):
            audit(SITE, sample=None, fetch=killed_after(count))
        with suppress(Killed):
            audit(SITE, sample=None, fetch=killed_after(count))
        audited = audit(SITE, sample=None, fetch=killed_after(10_000))
        assert outcome(audited) == whole
    assert AuditRun.objects.filter(status="running").count() == 0


@pytest.mark.slow
def test_another_build_or_sample_starts_again(faulty, monkeypatch):
    """What was begun is deleted with its findings."""
    monkeypatch.setattr(auditing, "URLS_PER_RECORD", 7)
    run()
    with pytest.raises(Killed):
        audit(SITE, sample=None, fetch=killed_after(50))
    begun = AuditRun.objects.get()
    assert begun.checked > 0
    audited = audit(SITE, sample=5)
    assert audited.pk != begun.pk
    assert set(AuditFinding.objects.values_list("run", flat=True)) == {audited.pk}


def test_old_audits_are_deleted(faulty):
    """The last thirty of a site are kept."""
    for _ in range(KEEP_RUNS + 5):
        AuditRun.objects.create(
            site="default", status="finished", started_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        )
    last = audit(SITE, sample=1)
    assert AuditRun.objects.count() == KEEP_RUNS
    assert AuditRun.objects.order_by("-pk").first() == last


# Judging


def judge(*pages, entry):
    """Return what is wrong with an entry; pages are pairs of a URL and what is in its head."""
    found = {
        url: Fetched(
            url=url,
            final_url=url,
            status=200,
            headers=(("Content-Type", "text/html"),),
            body=f"<title>{url}</title>{head}".encode(),
        )
        for url, head in pages
    }
    base = "https://a.example/"
    robots = Fetched(url="", final_url="", status=200, body=b"User-agent: *\nDisallow: /secret/")
    missing = Fetched(url="", final_url="", status=404)
    large = Fetched(url=base, final_url=base, status=200, failure="why", failure_code="too-large")
    found |= {
        f"{base}robots.txt": robots,
        f"{base}large/": large,
        f"{base}slow/": replace(missing, status=None, failure="why", failure_code="timeout"),
    }
    judging = Judge(lambda url: found.get(url, missing), slow_seconds=1)
    return judging.judge(entry).faults


def links(**versions):
    """Return language links in a head."""
    return "".join(
        f'<link rel="alternate" hreflang="{code}" href="https://a.example/{path}">'
        for code, path in versions.items()
    )


BOTH = {"en": "", "de": "de/"}


@pytest.mark.parametrize(
    ("listed", "linked", "back", "expected"),
    [
        (BOTH, BOTH, BOTH, []),
        (BOTH, {"EN": "", "De": "de/"}, BOTH, []),
        (BOTH, {}, {}, []),
        ({}, BOTH, BOTH, []),
        (BOTH, {**BOTH, "fr": "fr/"}, BOTH, ["hreflang", "hreflang-target"]),
        (BOTH, {"en": "", "de": "other/"}, BOTH, ["hreflang", "hreflang-target"]),
        ({}, BOTH, {"de": "de/"}, ["hreflang-return"]),
        ({}, BOTH, {}, ["hreflang-return"]),
        (BOTH, BOTH, {}, []),  # The sitemap may list the links of both.
        ({}, {"de": "de/"}, BOTH, ["hreflang-self"]),
        ({**BOTH, "fr": "fr/"}, {}, {}, ["hreflang-target"]),
        ({}, {**BOTH, "fr": "slow/"}, BOTH, []),
        ({}, {**BOTH, "fr": "secret/"}, BOTH, []),
        ({}, {**BOTH, "fr": "large/"}, BOTH, []),
    ],
)
def test_language_links(listed, linked, back, expected):
    """The sitemap and the head agree, and the other version is indexed and links back."""
    entry = SitemapEntry(
        section="s",
        url="https://a.example/",
        alternates=tuple((code, f"https://a.example/{path}") for code, path in listed.items()),
    )
    pages = [("https://a.example/", links(**linked)), ("https://a.example/de/", links(**back))]
    assert [kind for kind, _ in judge(*pages, entry=entry)] == expected


def test_pages_that_were_audited_are_not_fetched_for_their_links(monkeypatch):
    """Only as long as the links of so many pages are kept."""
    urls = [f"https://a.example/{code}/" for code in ("en", "de", "fr")]
    head = links(**{code: f"{code}/" for code in ("en", "de", "fr")})
    fetches = []

    def fetch(url):
        fetches.append(url)
        body = f"<title>{url}</title>{head}".encode()
        headers = (("Content-Type", "text/html"),)
        status = 404 if url.endswith("robots.txt") else 200
        return Fetched(url=url, final_url=url, status=status, headers=headers, body=body)

    def judge_all():
        judging = Judge(fetch, slow_seconds=1)
        assert not any(judging.judge(SitemapEntry(section="s", url=url)).faults for url in urls)

    judge_all()
    # The first page is known when it is a version of the others, and these were read for it.
    assert [fetches.count(url) for url in urls] == [1, 2, 2]
    fetches.clear()
    monkeypatch.setattr("django_sitemapkit.audit.judge.MAX_KNOWN_VERSIONS", 1)
    judge_all()
    assert len(fetches) == 1 + 3 * 3


@pytest.mark.parametrize(
    ("lastmod", "header", "is_fault"),
    [
        ("2026-05-01", "Fri, 01 May 2026 00:00:00 GMT", False),
        ("2026-05-01T12:00:00Z", "Fri, 01 May 2026 23:00:00 GMT", False),
        ("2026-05-01T12:00:00+02:00", "Sun, 03 May 2026 00:00:00 GMT", True),
        ("2026-05-03", "Fri, 01 May 2026 00:00:00 GMT", True),
        ("2026-05", "Fri, 01 May 2026 00:00:00 GMT", False),
        ("2026-05-01", "yesterday", False),
        ("", "Fri, 01 May 2026 00:00:00 GMT", False),
    ],
)
def test_lastmod_and_last_modified(lastmod, header, is_fault):
    """They may differ by a day; what is not a moment cannot be compared."""
    url = "https://a.example/"
    fetched = Fetched(
        url=url, final_url=url, status=200, headers=(("Last-Modified", header),), body=b""
    )
    faults = Judge(lambda url: fetched, slow_seconds=1).judge(
        SitemapEntry(section="s", url=url, lastmod=lastmod)
    )
    assert ("lastmod" in [kind for kind, _ in faults.faults]) == is_fault


@pytest.mark.parametrize(
    ("code", "expected"), [("timeout", ["undetermined"]), ("tls", ["no-answer"]), ("too-large", [])]
)
def test_incomplete_answers(code, expected):
    """A page that is too large is judged by what was read."""
    url = "https://a.example/"
    fetched = Fetched(url=url, final_url=url, status=200, failure="why", failure_code=code)
    answers = {url: fetched, f"{url}robots.txt": Fetched(url=url, final_url=url, status=404)}
    verdict = Judge(answers.get, slow_seconds=1).judge(SitemapEntry(section="s", url=url))
    assert [kind for kind, _ in verdict.faults] == expected


def test_a_robots_txt_that_broke_off_forbids_all():
    """What is missing of it may be the rule for this page; one that is too large says enough."""
    url = "https://a.example/robots.txt"
    cut = Fetched(url=url, final_url=url, status=200, failure="why", failure_code="timeout")
    assert RobotsRules.of(cut).unavailable
    assert not RobotsRules.of(replace(cut, failure_code="too-large")).unavailable


@pytest.mark.slow
def test_the_user_agent_is_an_option(faulty, settings):
    """Another crawler has other rules."""
    settings.SITEMAPKIT_AUDIT |= {"user_agent": "bingbot"}
    kinds = {url for url, kind in found(audit(SITE, sample=None)) if kind == "robots"}
    assert kinds == {"blocked/", "report.private"}
    assert AuditOptions().user_agent == "Googlebot"


@pytest.mark.parametrize(("seconds", "expected"), [(1.9, []), (2.1, ["slow"])])
def test_slow_pages(seconds, expected):
    """Slower than the option says."""
    url = "https://a.example/"
    fetched = Fetched(url=url, final_url=url, status=200, seconds=seconds)
    verdict = Judge(lambda url: fetched, slow_seconds=2).judge(SitemapEntry(section="s", url=url))
    assert [kind for kind, _ in verdict.faults] == expected


def test_a_rule_for_soft_404s_that_raises(caplog):
    """It is a finding, and not the end of the audit."""
    url = "https://a.example/"
    fetched = Fetched(url=url, final_url=url, status=200)
    judging = Judge(lambda url: fetched, slow_seconds=2, is_soft_404=lambda fetched: 1 / 0)
    faults = judging.judge(SitemapEntry(section="s", url=url)).faults
    assert faults == (("soft-404", "the rule raised ZeroDivisionError: division by zero"),)
    assert url in caplog.text


def named(name, text="There is no such page."):
    """Return the body of a page with a title and a heading."""
    return f"<title>{name}</title><h1>{name}</h1><p>{text}</p>".encode()


GOOD = {"": (200, named("Home")), "shop/*": (200, named("Oops"))}
LONG = named("Oops", " ".join(map(str, range(100))))


@pytest.mark.parametrize(
    ("answers", "page", "expected"),
    [
        ({}, named("Oops"), True),
        ({}, named("Oops", "You asked for /shop/a/ on 1 May."), True),
        ({"shop/*": (404, named("Oops"))}, named("Oops"), True),
        ({}, named("Oops").replace(b"<title>Oops", b"<title>A shoe"), False),
        ({}, named("Oops").replace(b"<h1>Oops", b"<h1>A shoe"), False),
        ({"shop/*": (200, b"<title>Oops</title>")}, b"<title>Oops</title>", False),
        ({}, LONG, False),  # It only has the name of all pages.
        ({"": (200, named("Oops"))}, named("Oops"), False),  # As an app in the browser.
        ({"": (503, b"")}, named("Oops"), False),
        ({"shop/*": (503, named("Oops"))}, named("Oops"), False),
        ({"robots.txt": (200, b"User-agent: *\nDisallow: /shop/*-")}, named("Oops"), False),
    ],
)
def test_soft_404s_without_a_rule(answers, page, expected):
    """A page is like one that cannot exist, in several ways, and not like the home page."""
    base, asked = "https://a.example/", []
    answers = {"shop/a/": (200, page), "shop/b/": (200, page), **GOOD, **answers}

    def fetch(url):
        asked.append(url)
        path = re.sub("^shop/no-such.*/$", "shop/*", url.removeprefix(base))
        status, body = answers.get(path, (404, b""))
        headers = (("Content-Type", "text/html"),)
        return Fetched(url=url, final_url=url, status=status, headers=headers, body=body)

    judging = Judge(fetch, slow_seconds=2)
    for name in ("a", "b"):
        entry = SitemapEntry(section="s", url=f"{base}shop/{name}/")
        found = ["soft-404"] if expected else []
        assert [kind for kind, _ in judging.judge(entry).faults] == found
    assert len(asked) == len(set(asked))


def test_the_last_page_of_a_list_is_no_soft_404():
    """A list may answer with it to every number, as ``Paginator.get_page()`` does."""
    base = "https://a.example/"
    headers = (("Content-Type", "text/html"),)

    def fetch(url):
        path = url.removeprefix(base)
        is_page = not path or re.fullmatch("list/[0-9]+/", path)
        status, name = (200, "Shoes" if path else "Home") if is_page else (404, "Not found")
        return Fetched(url=url, final_url=url, status=status, headers=headers, body=named(name))

    entry = SitemapEntry(section="s", url=f"{base}list/7/")
    assert Judge(fetch, slow_seconds=2).judge(entry).faults == ()


FORM = b"<form method=post><input type=password></form>"


@pytest.mark.parametrize(
    ("url", "target", "body", "expected"),
    [
        ("private/", "https://a.example/enter/?next=/private/", FORM, ["login"]),
        ("private/", "https://a.example/sign-in/", FORM, ["login"]),
        ("private/", "https://id.example/sso/?return_to=x", b"", ["login"]),
        ("private/", "https://id.example/enter/", b"", ["login"]),  # It is LOGIN_URL.
        ("private/", "https://a.example/enter/", b"", ["redirect"]),
        ("old/", "https://a.example/new/", FORM, ["redirect"]),
        ("old/", "https://a.example/blogin/?next=2", b"", ["redirect"]),
        ("login/", "https://a.example/signin/", FORM, ["redirect"]),
        ("private/", "", named("Sign in to the shop") + FORM, ["login"]),
        ("signs/", "", named("Sign in"), []),
        ("shop/", "", FORM + named("Shoes"), []),
    ],
)
def test_login_walls(settings, url, target, body, expected):
    """By two signs at least: an address, the way back, a form, or what the page is called."""
    settings.LOGIN_URL = "https://id.example/enter/"
    url = f"https://a.example/{url}"
    headers = (("Content-Type", "text/html"),)
    fetched = Fetched(url=url, final_url=target or url, status=200, headers=headers, body=body)
    if target:
        fetched = replace(fetched, hops=((url, 302),))
    missing = Fetched(url="", final_url="", status=404)
    judging = Judge(lambda asked: fetched if asked == url else missing, slow_seconds=2)
    faults = judging.judge(SitemapEntry(section="s", url=url)).faults
    assert [kind for kind, _ in faults] == expected


def test_a_login_url_that_does_not_exist(settings):
    """Redirects are just redirects then."""
    settings.LOGIN_URL = "no-such-name"
    fetched = Fetched(
        url="https://a.example/",
        final_url="https://a.example/x/",
        status=200,
        hops=(("https://a.example/", 302),),
    )
    verdict = Judge(lambda url: fetched, slow_seconds=2).judge(
        SitemapEntry(section="s", url="https://a.example/")
    )
    assert [kind for kind, _ in verdict.faults] == ["redirect"]


def test_a_site_below_the_root_has_no_robots_txt(faulty, settings):
    """Something else serves the root of its host."""
    settings.SITEMAPKIT_BASE_URL = f"{BASE}/shop"
    (site,) = all_sites()
    assert "robots" not in audit(site, sample=None).counts


def test_details_are_short_and_printable(faulty):
    """A page may say anything of itself."""
    audited = AuditRun.objects.create(site="default", started_at=dt.datetime.now(dt.UTC))
    entry = SitemapEntry(section="s", url="https://a.example/")
    detail = "https://a.example/\0" + "x" * 5_000
    auditing.record_verdicts(audited, [Verdict(entry, ((FindingKind.CANONICAL, detail),))])
    stored = audited.findings.get().detail
    assert "\0" not in stored
    assert len(stored) == 1_000


def test_audits_before_publishing_are_apart(faulty):
    """Neither deletes the other's, whether it is running or old."""
    at = dt.datetime.now(dt.UTC)
    gate = AuditRun.objects.create(site="default", started_at=at, kind="gate")
    for _ in range(KEEP_RUNS):
        AuditRun.objects.create(site="default", started_at=at, kind="gate", status="finished")
    running = AuditRun.objects.create(site="default", started_at=at, build=10**9)
    auditing.finish_run(gate, at)
    assert AuditRun.objects.filter(pk=running.pk).exists()
    gate = AuditRun.objects.create(site="default", started_at=at, kind="gate")
    audit(SITE, sample=1)
    assert AuditRun.objects.filter(pk=gate.pk).exists()


@pytest.mark.slow
@pytest.mark.parametrize(("urls", "limit", "sample"), [(200, 10, 150), (300, 2, 210)])
def test_a_sample_is_as_large_as_asked(settings, sections, urls, limit, sample):
    """However small the files are."""
    use_storage(settings, "Memory")

    class Many(StaticSection):
        items = [f"/clean/{number}/" for number in range(urls)]

    Many.limit = limit
    sections.add(Many)
    run()
    rows = Place.objects.in_build(Build.objects.published(SITE)).pages()
    assert sample <= len(list(entries_of_places(rows, sample))) <= sample * 1.2
    whole = list(entries_of_places(rows, None))
    for skip in (0, 1, 9, 10, 11, urls - 1, urls):
        assert list(entries_of_places(rows, None, skip=skip)) == whole[skip:]


@pytest.mark.thorough
def test_nothing_is_found_on_many_clean_pages(faulty, sections):
    """Five thousand of them."""

    class Many(Clean):
        items = [f"/clean/{number}/" for number in range(10_000, 15_000)]

    sections.add(Many)
    run()
    assert found(audit(SITE, sample=None)) == EXPECTED


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_heartbeat_follows_each_page(faulty, monkeypatch, concurrency):
    """A batch of slow pages may take longer than the lease."""
    events = []
    monkeypatch.setattr(BuildLease, "heartbeat", lambda lease: events.append("heartbeat"))
    fetch = auditing.InProcessFetcher([SITE]).fetch
    lock = threading.Lock()

    def noted(url):
        with lock:  # The fetcher is for one thread.
            events.append("fetch")
            return fetch(url)

    run()
    events.clear()
    checked = audit(SITE, sample=3, fetch=noted, concurrency=concurrency).checked
    assert events.count("heartbeat") == checked
    assert events.index("fetch") < events.index("heartbeat")
    if concurrency == 1:
        assert events.index("heartbeat") < len(events) - 1 - events[::-1].index("fetch")
