"""Read replicas: the package's own tables are read where they are written."""

import pytest
from django.db import OperationalError, connections
from django.db.models import QuerySet

from django_sitemapkit import Section
from django_sitemapkit.audit.validation import validate_published
from django_sitemapkit.builds import prune, publish, search_published, status_of
from django_sitemapkit.models import Build, Page, Place, Plan, Publication
from django_sitemapkit.planning import (
    all_pages,
    page_of,
    pages_with_rows,
    refresh_plan,
    renumber_pages,
    split_page,
)
from django_sitemapkit.registry import registry
from django_sitemapkit.signals import sitemaps_published
from tests.builds import ALL, SITE, Readings, edit_product, fill, live, run, served, use_storage
from tests.management import run as command
from tests.testapp.models import Article, Shop

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


class ToReplica:
    """Sends reads of the package's tables to a replica that has none of them yet."""

    def db_for_read(self, model, **hints):
        return "replica" if model._meta.app_label == "sitemapkit" else None

    def db_for_write(self, model, **hints):
        return "default"


class Unbuilt(Section):
    """A section that comes after the build."""

    queryset = Article.objects.all()

    def location(self, article):
        return "/unbuilt/"


@pytest.fixture(autouse=True)
def replica(settings, sections):
    """Give a site with rows in three sections, and a replica that is far behind."""
    empty = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    connections.databases["replica"] = connections.configure_settings(
        {"default": {}, "replica": empty}
    )["replica"]
    for section in ALL:
        sections.add(section)
    fill()
    use_storage(settings, "Memory")
    settings.DATABASE_ROUTERS = [f"{__name__}.ToReplica"]
    yield
    connections["replica"].close()
    del connections["replica"], connections.databases["replica"]


def test_the_router_would_ask_the_replica():
    """Or the other tests would show nothing."""
    for model in (Build, Place, Page, Plan, Publication):
        with pytest.raises((OperationalError, AssertionError)):  # Django guards it in tests.
            list(QuerySet(model))
    assert Shop.objects.count() == 1


def test_what_is_published_is_served_at_once(client, sections):
    """A replica that is behind knows nothing of the build whose index is served."""
    run()
    assert len(served(client)) == 7
    assert client.get("/sitemap-products-99.xml").status_code == 404
    sections.add(Unbuilt)
    assert len(served(client)) == 8


def test_a_lost_file_and_a_lost_index_are_made_up_for(client, settings):
    """From the manifest, read from the primary too."""
    storage = use_storage(settings, "Memory")
    run()
    before = served(client)
    for name in storage.names():
        storage.delete(name)
    assert served(client).keys() == before.keys()


def test_live_pages_follow_the_plan_as_it_is(client, settings):
    """Index, pages and splits; a page that was split off a moment before is found."""
    assert len(live(client, settings)) == 7
    section = registry.get(SITE, "products")
    first = pages_with_rows(section)[0]
    assert page_of(section, first.number) == first
    new = split_page(section, first, first.keys.upper - 1)
    assert page_of(section, new) in all_pages(section)


def test_plans_are_changed_as_they_are(sections):
    """By the steps of a build."""
    section = registry.get(SITE, "readings")
    assert refresh_plan(section).replanned
    assert refresh_plan(section).added == ()
    assert renumber_pages(section, [1])
    sections.remove("readings")
    sections.add(type("Readings", (Readings,), {"key": "pk", "limit": 1}))
    assert refresh_plan(registry.get(SITE, "readings")).retired


def test_commands_tell_what_is():
    """Of the build that has just ended."""
    first = run().build
    edit_product()
    second = run().build
    status = status_of(SITE)
    assert status.build == second
    assert {each.built for each in status.sections} == {True}
    assert search_published(SITE, f"{SITE.origin}/products/all/p0/").found
    assert not any(each.error_count for each in validate_published(SITE))
    prune(SITE)
    publish(SITE, first)
    code, _, err = command("publish_sitemaps", second)
    assert (code, err) == (0, "")


def test_what_changed_is_announced():
    """What was announced last is read from the primary too."""
    heard = []

    def listener(sender, addresses, **values):
        heard.append(addresses)

    sitemaps_published.connect(listener, weak=False)
    try:
        run()
        edit_product()
        assert run().status == "published"
    finally:
        sitemaps_published.disconnect(listener)
    assert len(heard[1]) < len(heard[0])
