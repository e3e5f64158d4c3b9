"""crawl_sitemaps: what it prints, and how it ends."""

import json
import re
import sys
from functools import partial

import pytest
from django.core.management import CommandError, call_command
from django.utils.translation import override

from django_sitemapkit import StaticSection
from django_sitemapkit.audit.kinds import BAD_KINDS, CRAWL_KINDS
from django_sitemapkit.audit.management.commands.crawl_sitemaps import Command
from django_sitemapkit.models import Lease
from tests.audit.crawl.linked import LISTED
from tests.builds import run, use_storage
from tests.management import Terminal
from tests.management import run as run_command

pytestmark = pytest.mark.django_db


class Listed(StaticSection):
    """What the sitemap lists."""

    items = LISTED


@pytest.fixture(autouse=True)
def _site(settings, sections):
    settings.ROOT_URLCONF = "tests.audit.crawl.linked"
    settings.SITEMAPKIT_AUDIT = {"soft_404": "tests.audit.faulty.is_soft_404"}
    sections.add(Listed)
    use_storage(settings, "Memory")


command = partial(run_command, "crawl_sitemaps")


@pytest.mark.slow
def test_findings_are_printed_by_kind():
    """Three of each, with what to do, in English."""
    with override("fr"):
        code, out, _ = command()
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "Site 'default': 40 URLs crawled, 7 broken links; compared with live pages."
    assert lines[1] == "  Broken link: 7. Correct or remove the links, or repair the page."
    assert lines[2].startswith("    https://www.example.com/missing/  404; linked from 3 pages: ")
    assert lines[5] == "    and 4 more"
    assert re.fullmatch(r"  \d+ findings in [0-9.]+ s\. --json prints all of them\.", lines[-1])
    assert [line.split(":")[0] for line in lines if re.match(r"  \S.*: \d+\. ", line)] == [
        "  Broken link",
        "  Link to a redirect",
        "  Link to a chain of redirects",
        "  In the sitemap, but no crawled page links to it",
        "  Linked, but not in the sitemap",
        "  Linked, but its canonical is another URL",
    ]


@pytest.mark.slow
def test_an_incomplete_crawl_says_it():
    """With the number of URLs that were not fetched; of those beyond --max-urls, one is stored."""
    run()
    for option, limit, left in (("--max-urls", "5", "1 or more"), ("--max-depth", "1", "100")):
        out = command("/calendar/1/", option, limit)[1]
        assert f" crawled, {left} not fetched, 0 broken links; compared with build " in out


@pytest.mark.slow
def test_json_has_all():
    """An object for each finding, and one for the crawl."""
    *findings, crawled = map(json.loads, command("--json", "--max-depth", "1")[1].splitlines())
    assert crawled["checked"] == 26
    assert crawled["pending"] == 5
    assert crawled["build"] is None
    assert sum(crawled["counts"].values()) == len(findings)
    assert findings[0] == {
        "site": "default",
        "section": "",
        "kind": "broken-link",
        "url": "https://www.example.com/missing/",
        "detail": "404; linked from 1 page: https://www.example.com/ (“To /missing/”)",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "code"), [("orphan", 5), ("bad", 5), ("missing, duplicate", 5), ("", 0)]
)
def test_it_may_fail_on_kinds(kinds, code):
    """After everything is printed."""
    ended, out, _ = command("--fail-on", kinds)
    assert ended == code
    assert "Broken link: 7." in out


@pytest.mark.parametrize("kind", ["redirect", "broken"])
def test_an_unknown_kind(kind):
    """The kinds of audits are unknown to it."""
    code, _, error = command("--fail-on", kind)
    assert code == 2
    assert error.startswith(f"Unknown kinds: {kind}. Known kinds: bad, broken-link, ")


def test_a_start_elsewhere():
    """The message names it."""
    code, _, error = command("https://other.example/")
    assert code == 2
    assert "https://other.example/" in error


@pytest.mark.slow
def test_starts_of_several_sites(settings):
    """Each site starts at those that it has; one without any is left out."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://www.example.com"},
        "two": {"BASE_URL": "https://two.example"},
    }
    _, out, _ = command("https://two.example/self/", "--max-depth", "1")
    lines = [line for line in out.splitlines() if line.startswith("Site ")]
    assert [line.partition(":")[0] for line in lines] == ["Site 'two'"]
    code, _, error = command("https://two.example/self/", "https://three.example/")
    assert code == 2
    assert "'https://three.example/'" in error
    assert "Site 'one'" in command("/self/", "--max-depth", "1")[1]


def test_one_folder():
    """Only what is in it is crawled and compared; a folder of no site is refused."""
    code, out, _ = command("--below", "/clean/", "--json")
    *findings, _ = map(json.loads, out.splitlines())
    assert code == 0
    assert findings
    assert all(f["url"].startswith("https://www.example.com/clean/") for f in findings)
    code, _, error = command("--below", "https://other.example/")
    assert code == 2
    assert "https://other.example/" in error


def test_another_crawl_is_running():
    """It says so, and ends with the code for it."""
    Lease.objects.acquire("crawl:default", seconds=60)
    code, _, error = command()
    assert code == 4
    assert error.startswith("The crawl lease of site 'default' is held by ")


def test_a_wrong_setting(settings):
    """The message has the way out."""
    settings.SITEMAPKIT_AUDIT = {"sample": 0}
    assert command("--skip-checks")[0] == 2


def test_without_the_extra(monkeypatch):
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "django_sitemapkit.audit.crawl", None)
    code, _, error = command()
    assert code == 2
    assert 'pip install "django-sitemapkit[audit]"' in error


@pytest.mark.parametrize(
    "option", ["--max-urls=0", "--max-depth=0", "--max-seconds=0", "--max-seconds=nan", "--rate=0"]
)
def test_numbers_that_cannot_be(option):
    """They are refused by the parser, which says what can be."""
    with pytest.raises(
        CommandError, match=r"'(0|nan)' is not a (whole )?number from .+ to 1,000,000,000"
    ):
        call_command("crawl_sitemaps", option)


def test_the_help_says_which_kinds_are_bad():
    """Of those that a crawl finds."""
    text = " ".join(Command().create_parser("manage.py", "crawl_sitemaps").format_help().split())
    assert "bad stands for broken-link." in text
    assert {"broken-link"} == BAD_KINDS & set(CRAWL_KINDS)


@pytest.mark.parametrize("option", ["--concurrency=2", "--rate=5", "--allow-private", "--external"])
def test_options_of_requests_need_live(option):
    """Without it they would do nothing."""
    code, _, error = command(option)
    assert (code, error) == (2, f"{option.partition('=')[0]} needs --live.")


@pytest.mark.slow
def test_a_terminal_shows_progress():
    """In one line, which is cleared at the end."""
    _, out, _ = command(out=Terminal())
    progress = out[: out.index("Site 'default'")]
    assert progress.startswith("\r\x1b[K1 URL, 0 a second, 0 bad, 25 left\r\r\x1b[K")
    assert "40 URLs, " in progress
    assert progress.endswith(" a second, 4 bad\r\r\x1b[K")


@pytest.mark.slow
def test_quiet():
    """Nothing is printed but errors."""
    assert command("--verbosity", "0") == (0, "", "")
