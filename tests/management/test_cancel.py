"""``cancel_sitemap_build``: what it says, and what the cancelled command says."""

import json

import pytest

from django_sitemapkit.builds import cancel_build, steps
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.models import Build
from tests.factories import SITE
from tests.management import run

pytestmark = pytest.mark.django_db


def test_the_running_build_is_cancelled(products):
    """The command says which one, and its reason names the command."""
    with acquire(SITE, makes_build=True):
        code, out, err = run("cancel_sitemap_build")
    build = Build.objects.get()
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"Build {build.pk} of site 'default' is cancelled. What is published stays.",
        "Its process, if it is alive, stops at its next heartbeat.",
    ]
    assert build.reason["by"].startswith("command on ")


def test_where_nothing_runs_nothing_is_cancelled(products):
    """That is a success: it can be run twice."""
    assert run("cancel_sitemap_build") == (0, "No build of site 'default' is running.\n", "")
    assert run("cancel_sitemap_build", "--verbosity", 0) == (0, "", "")


def test_json_has_the_build_or_none(products):
    """A line for each site."""
    _, out, _ = run("cancel_sitemap_build", "--json")
    assert json.loads(out) == {"site": "default", "build": None}
    with acquire(SITE, makes_build=True):
        _, out, _ = run("cancel_sitemap_build", "--json")
    assert json.loads(out) == {"site": "default", "build": Build.objects.get().pk}


@pytest.mark.usefixtures("two_sites")
def test_only_the_given_site_is_cancelled():
    """The other one goes on; the command of that site ends with a code of its own."""
    _, out, _ = run("cancel_sitemap_build", "--site", "two")
    assert out == "No build of site 'two' is running.\n"


def test_the_cancelled_command_ends_with_its_own_code(products, monkeypatch):
    """And says by whom, and what the next run does."""
    assert run("build_sitemaps")[0] == 0
    make = steps.make_pages

    def cancelled(state):
        cancel_build(SITE, by="ann")
        return make(state)

    monkeypatch.setattr(steps, "make_pages", cancelled)
    code, _, err = run("build_sitemaps", "--full")
    build = Build.objects.last()
    assert code == 6
    assert err == (
        f"Build {build.pk} of site 'default' was cancelled by ann. What is published stays; the"
        " next run starts a new build."
    )
