"""How old what is published is: each section by itself, and a site as its oldest section."""

import datetime as dt
import json

import pytest

from django_sitemapkit.builds import publish, status_of
from django_sitemapkit.builds.run import publish_override
from django_sitemapkit.models import Build
from tests.builds import SITE, Articles, Products, Readings, edit_product, fill, run, use_storage
from tests.management import run as command
from tests.overrides.setting import by_object
from tests.prepared import once
from tests.testapp.models import Product, Reading

pytestmark = pytest.mark.django_db

DAYS = 24


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site that was built five days ago."""
    sections.add(Products)
    sections.add(Readings)
    storage = use_storage(settings, "Memory")

    def make():
        fill()
        run()
        let_hours_pass(5 * DAYS)

    once((__name__, "storage"), make)
    return storage


def let_hours_pass(hours):
    """Let all builds have ended so much longer ago."""
    for record in Build.objects.exclude(ended_at=None):
        Build.objects.filter(pk=record.pk).update(
            ended_at=record.ended_at - dt.timedelta(hours=hours)
        )


def late(hours=6):
    """Return what the probe says, or "" where all is recent enough."""
    code, _, error = command("sitemap_status", "--quick", "--max-age", hours)
    assert code == bool(error)
    return error


@pytest.mark.slow
@pytest.mark.parametrize("changed", [True, False])
def test_a_build_of_one_section_makes_no_other_recent(storage, changed):
    """Whether it is published or finds nothing changed; the one that is late is named."""
    assert late() == "Not built within 6 hours: default."
    if changed:
        edit_product("p0")
    assert run(sections=["products"]).status == ("published" if changed else "unchanged")
    assert late() == "Not built within 6 hours: default (readings)."
    let_hours_pass(1)
    run(sections=["products"])
    assert late() == "Not built within 6 hours: default (readings)."
    let_hours_pass(1)
    run(sections=["readings"])
    assert late() == ""
    let_hours_pass(5.5)
    assert late() == "Not built within 6 hours: default (products)."


def test_a_build_of_all_makes_all_recent(storage):
    """Also where sections were built apart before."""
    run(sections=["products"])
    let_hours_pass(7)
    assert run().status == "unchanged"
    assert late() == ""


def test_the_status_has_the_age_of_each_section(storage, sections):
    """For programs too; the site's is the oldest."""
    edit_product("p0")
    run(sections=["products"])
    sections.add(Articles)
    (site,) = json.loads(command("sitemap_status", "--json")[1])
    checked = {section["name"]: section["checked_at"] for section in site["sections"]}
    assert checked["products"] > checked["readings"] == site["checked_at"]
    assert checked["articles"] is None


@pytest.mark.slow
def test_an_exclusion_makes_nothing_recent(storage):
    """It renders a page or two, and looks at no other row."""
    publish_override(SITE, by_object(Product.objects.get(slug="p0"), include=False))
    assert late() == "Not built within 6 hours: default."


@pytest.mark.slow
def test_what_is_gone_back_to_is_as_old_as_it_is(storage):
    """The build that was replaced says nothing of what is served."""
    first = status_of(SITE).build
    edit_product("p0")
    run()
    assert late() == ""
    publish(SITE, first)
    assert late() == "Not built within 6 hours: default."


def test_a_build_that_is_held_makes_nothing_recent_until_it_is_published(storage, settings):
    """Then what is served is as old as the last build that came to the same."""
    settings.SITEMAPKIT_MAX_SHRINK = 0
    Reading.objects.filter(level=0).delete()
    held = run().build
    assert late() == "Not built within 6 hours: default."
    let_hours_pass(7)
    assert run().build == held
    publish(SITE, held)
    assert late() == ""
