"""audit_sitemaps: what it prints, and how it ends."""

import json
import re
import sys
from functools import partial

import pytest
from django.core.management import CommandError, call_command

from django_sitemapkit import StaticSection
from django_sitemapkit.management.base import CLEAR_LINE
from django_sitemapkit.models import Lease
from tests.builds import run, use_storage
from tests.management import Terminal
from tests.management import run as run_command

pytestmark = pytest.mark.django_db


class Pages(StaticSection):
    """Two clean pages, and five that are not."""

    items = ["/clean/4/", "/clean/8/", "/moved/", "/found/", "/permanent/", "/chain/", "/untitled/"]


@pytest.fixture(autouse=True)
def _site(settings, sections):
    settings.ROOT_URLCONF = "tests.audit.faulty"
    sections.add(Pages)
    use_storage(settings, "Memory")


command = partial(run_command, "audit_sitemaps")


def test_findings_are_printed_by_kind():
    """Three of each, with what to do."""
    code, out, _ = command()
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "Site 'default': 7 URLs of live pages, 4 bad."
    assert lines[1] == "  Redirect: 4. List the target of the redirect instead."
    assert lines[2].startswith("    https://www.example.com/moved/  https://www.example.com/moved/")
    assert lines[5] == "    and 1 more"
    assert lines[6].startswith("  Title missing: 1. ")
    assert re.fullmatch(r"  5 findings in [0-9.]+ s\. --json prints all of them\.", lines[8])
    assert len(lines) == 9


@pytest.mark.slow
def test_json_has_all():
    """An object for each finding, and one for the audit."""
    run()
    *findings, audited = map(json.loads, command("--json")[1].splitlines())
    assert (audited["checked"], audited["bad"]) == (7, 4)
    assert audited["counts"] == {"redirect": 4, "title-missing": 1}
    assert audited["build"] is not None
    assert [finding["kind"] for finding in findings] == [*["redirect"] * 4, "title-missing"]
    assert findings[0]["url"] == "https://www.example.com/moved/"


@pytest.mark.parametrize(
    ("kinds", "code"),
    [("redirect", 5), ("noindex, title-missing", 5), ("bad", 5), ("noindex,slow", 0)],
)
def test_it_may_fail_on_kinds(kinds, code):
    """After everything is printed."""
    ended, out, error = command("--fail-on", kinds)
    assert ended == code
    assert "Redirect: 4." in out
    assert error.endswith(f"of {kinds}.") == bool(code)


def test_an_unknown_kind():
    """The message has those that are known."""
    code, _, error = command("--fail-on", "redirects")
    assert code == 2
    assert error.startswith("Unknown kinds: redirects. Known kinds: bad, not-found, ")


def test_progress_on_a_terminal():
    """A line that the findings replace."""
    out = command("--full", out=Terminal())[1]
    assert f"{CLEAR_LINE}7 URLs, " in out
    assert " a second, 4 bad\r" in out
    assert f"{CLEAR_LINE}Site 'default'" in out
    assert "\\" not in out


def test_another_audit_is_running():
    """It says so, and ends with the code for it."""
    Lease.objects.acquire("audit:default", seconds=60)
    code, _, error = command()
    assert code == 4
    assert error.startswith("The audit lease of site 'default' is held by ")


@pytest.mark.parametrize("busy", ["one", "two"])
def test_a_failed_site_decides_the_exit_code_whatever_its_place(settings, busy):
    """That another process audits a site hides no failure of the sites before or after it."""
    settings.SITEMAPKIT_SITES = {
        key: {"BASE_URL": f"https://{key}.example"} for key in ("one", "two")
    }
    run_command("build_sitemaps")
    use_storage(settings, "Memory")  # The published files are lost.
    Lease.objects.acquire(f"audit:{busy}", seconds=60)
    code, _, error = command()
    assert code == 1
    assert f"The audit lease of site '{busy}' is held by " in error


def test_a_wrong_setting(settings):
    """The message has the way out."""
    settings.SITEMAPKIT_AUDIT = {"sample": 0}
    code, _, error = command("--skip-checks")
    assert code == 2
    assert 'SITEMAPKIT_AUDIT["sample"] must be a whole number from 1 to 1,000,000,000' in error


def test_without_the_extra(monkeypatch):
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "django_sitemapkit.audit.auditing", None)
    code, _, error = command()
    assert code == 2
    assert 'pip install "django-sitemapkit[audit]"' in error


@pytest.mark.parametrize(
    "option",
    [
        *("--sample=0", "--sample=-1", "--sample=1000000001", "--concurrency=many"),
        *("--rate=0", "--rate=-1", "--rate=1e-300", "--rate=1e300", "--rate=nan"),
    ],
)
def test_numbers_that_cannot_be(option):
    """They are refused by the parser, which says what can be."""
    with pytest.raises(CommandError, match=r"' is not a (whole )?number from .+ to 1,000,000,000"):
        call_command("audit_sitemaps", option)


@pytest.mark.parametrize("option", ["--concurrency=2", "--rate=5", "--allow-private"])
def test_options_of_requests_need_live(option):
    """Without it they would do nothing."""
    code, _, error = command(option)
    assert (code, error) == (2, f"{option.partition('=')[0]} needs --live.")
