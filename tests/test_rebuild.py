"""Changed rows ask for a build: of which sites, how often, and never at the cost of a save."""

import datetime as dt

import pytest
from django.core.management import call_command
from django.db import connection, models, transaction
from django.db.models.signals import post_delete, post_save
from django.test.utils import CaptureQueriesContext, isolate_apps
from django.utils import timezone

from django_sitemapkit import Section, StaticSection, rebuild, tenants
from django_sitemapkit.builds import requests
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.requests import process_requests
from django_sitemapkit.contrib.sitemaps import Sitemap
from django_sitemapkit.models import Build, BuildRequest, Lease, Publication
from django_sitemapkit.rebuild import model_changed, request_builds
from django_sitemapkit.runners.dummy import DummyRunner
from django_sitemapkit.runners.queues import QueueRunner
from django_sitemapkit.runners.queues import process_requests as process_of_worker
from django_sitemapkit.tenants import BackgroundJobs
from tests.builds import SITE, Products, Readings, edit_product, fill, run, use_storage
from tests.testapp.models import Article, ArticleProxy, Feature, Product, Reading, Shop

pytestmark = pytest.mark.django_db


class Noted:
    """Takes the place of what notes changed models."""

    def __init__(self):
        self.models = []

    def add(self, model):
        self.models.append(model)


@pytest.fixture
def noted(monkeypatch):
    """Give the models that are noted, in order."""
    noted = Noted()
    monkeypatch.setattr(rebuild, "_changes", noted)
    return noted.models


@pytest.fixture
def begun(monkeypatch):
    """Give the keys of the sites whose builds begin, which nobody makes."""
    keys = []
    monkeypatch.setattr(
        rebuild, "start_processing_on_commit", lambda site, choose: keys.append(site.key)
    )
    return keys


@pytest.fixture
def on_change(settings, sections, noted, begun):
    """Declare a section, and let changes of its rows ask for builds."""
    sections.add(Products)
    settings.SITEMAPKIT_REBUILD = "on_change"


@pytest.fixture
def commit(django_capture_on_commit_callbacks):
    """Give what runs what waits for the end of a transaction."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


def has_receivers(model):
    """Return whether the package hears of saves and deletes of a model."""
    return post_save.has_listeners(model), post_delete.has_listeners(model)


# What is noted


def test_saves_and_deletes_are_noted_after_the_transaction(on_change, noted, commit):
    """So that a build sees them, and none is made for what is rolled back."""
    with commit() as callbacks:
        shop = Shop.objects.create(slug="all")
        product = Product.objects.create(shop=shop, slug="a")
        product.delete()
        assert noted == []
    assert noted == [Shop, Product, Product]
    assert len(callbacks) == 3
    with commit() as callbacks, transaction.atomic():
        Product.objects.create(shop=shop, slug="b")
        transaction.set_rollback(True)
    assert callbacks == []


def test_without_the_setting_no_receiver_is_there(sections, settings):
    """A save costs nothing, and a delete is as fast as ever; so it is when it is switched off."""
    sections.add(Products)
    assert has_receivers(Product) == (False, False)
    request_builds([])  # As after model_changed().
    assert has_receivers(Product) == (False, False)
    settings.SITEMAPKIT_REBUILD = "on_change"
    assert has_receivers(Product) == (True, True)
    request_builds([])
    assert has_receivers(Product) == (True, True)
    settings.SITEMAPKIT_REBUILD = None
    assert has_receivers(Product) == (False, False)


def test_a_wrong_setting_watches_nothing_and_stops_nobody(settings):
    """Django starts, and the system check says what is wrong."""
    settings.SITEMAPKIT_REBUILD = "always"
    rebuild.watch_if_set()
    assert has_receivers(Product) == (False, False)


def test_fixtures_ask_for_nothing(on_change, noted, commit, tmp_path):
    """Their rows may refer to others that are not there yet."""
    path = tmp_path / "shops.json"
    path.write_text('[{"model": "testapp.shop", "pk": 1, "fields": {"slug": "all"}}]')
    with commit():
        call_command("loaddata", path, verbosity=0)
    assert Shop.objects.get().slug == "all"
    assert noted == []


@isolate_apps("tests.testapp")
def test_models_of_a_migration_ask_for_nothing(noted, commit):
    """The tables of the package may not be there."""

    class Product(models.Model):
        class Meta:
            app_label = "testapp"

    with commit():
        model_changed(Product)
    assert noted == []


def test_code_can_ask_after_what_sends_no_signal(noted, commit):
    """Whatever the setting."""
    with commit():
        model_changed(Product)
    assert noted == [Product]


def test_a_queryset_sends_no_signal(on_change, noted, commit):
    """As the documentation says: of an update and of many new rows."""
    with commit():
        Shop.objects.bulk_create([Shop(slug="all")])
        Shop.objects.update(slug="some")
    assert noted == []


# Which sites, and which models


def test_only_sites_that_list_the_rows_are_asked_for(settings, sections, begun):
    """Each once, however many of its models changed; a section may be of one site."""
    settings.SITEMAPKIT_SITES = {
        "shop": {"BASE_URL": "https://shop.example", "SECTIONS": ["products", "readings"]},
        "news": {"BASE_URL": "https://news.example", "SECTIONS": ["readings"]},
        "none": {"BASE_URL": "https://none.example", "SECTIONS": []},
    }
    sections.add(Products)
    sections.add(Readings)
    request_builds([Product])
    assert begun == ["shop"]
    asked = BuildRequest.objects.get()
    assert (asked.site, asked.kind, asked.full) == ("shop", "build", False)
    assert asked.requested_by == "SITEMAPKIT_REBUILD: testapp.product"
    begun.clear()
    request_builds([Product, Reading, Shop])
    assert begun == ["shop", "news"]
    assert BuildRequest.objects.count() == 2


class OwnQueue(QueueRunner):
    """A queue of a project that is for pages alone, as in docs/queues.md: threads do requests."""

    def enqueue_helper(self, *arguments):
        """Do nothing."""


def test_a_queue_gets_one_message_for_what_is_open(on_change, settings, begun):
    """Its worker looks again by itself; else each change during a build would add a message."""
    own = f"{OwnQueue.__module__}.OwnQueue"
    for runner, expected in (("dummy", 1), ("inline", 3), (own, 3)):
        settings.SITEMAPKIT_RUNNER = runner
        BuildRequest.objects.all().delete()
        begun.clear()
        for _ in range(3):
            request_builds([Product])
        assert begun == ["default"] * expected
        assert BuildRequest.objects.count() == 1


def test_a_lost_message_is_sent_again(settings, sections, commit):
    """Once for each while by the database's clock, not once for each save."""
    sections.add(Products)
    settings.SITEMAPKIT_RUNNER = "dummy"
    DummyRunner.enqueued.clear()
    for expected in (1, 2, 3):
        for _ in range(3):
            with commit():
                request_builds([Product])
        assert len(DummyRunner.enqueued) == expected
        Lease.objects.update(heartbeat=timezone.now() - dt.timedelta(minutes=11))
    assert BuildRequest.objects.count() == 1


def test_a_worker_that_looks_again_later_is_waited_for(settings, sections, commit):
    """Its message counts like one of a save, however long the build of others takes."""
    sections.add(Products)
    settings.SITEMAPKIT_RUNNER = "dummy"
    DummyRunner.enqueued.clear()
    with acquire(SITE):
        for expected in (1, 2, 3):
            with commit():
                request_builds([Product])
            assert len(DummyRunner.enqueued) == expected
            Lease.objects.filter(name__startswith="requests").update(
                heartbeat=timezone.now() - dt.timedelta(minutes=11)
            )
            process_of_worker(SITE.key, ["build"])


def test_models_of_other_tenants_stay_watched(on_change, monkeypatch):
    """Their sites may have other sections."""
    monkeypatch.setattr(rebuild, "current_tenants", lambda: {"default": "shop"})
    request_builds([Product])
    assert has_receivers(Reading) == (True, True)


def test_models_that_no_section_lists_are_left_alone_from_then_on(on_change):
    """Rows of theirs are deleted by one statement, unread."""
    Reading.objects.create(level=1)
    request_builds([Reading])
    assert has_receivers(Product) == (True, True)
    assert has_receivers(Reading) == (False, False)
    with CaptureQueriesContext(connection) as queries:
        Reading.objects.all().delete()
    assert len(queries) == 1
    assert not BuildRequest.objects.exists()


def test_where_no_site_is_all_models_are_watched(on_change, settings, begun, caplog):
    """Such as in the public schema of django-tenants; the log has a line without a traceback."""
    settings.SITEMAPKIT_BASE_URL = None
    request_builds([Product, Product])
    (record,) = caplog.records
    assert record.getMessage().startswith("A change requests no build: ")
    assert record.exc_info is None
    assert begun == []
    assert has_receivers(Reading) == (True, True)


@pytest.mark.parametrize("listed", [Article, Feature, ArticleProxy])
def test_proxies_and_inherited_tables_are_the_same_rows(on_change, sections, begun, listed):
    """Whichever of the models is listed, and whichever is saved."""
    rows = listed.objects.all()
    sections.add(type("Listed", (Section,), {"queryset": rows}))
    for saved in (Article, Feature, ArticleProxy):
        request_builds([saved])
        assert has_receivers(saved) == (True, True)
    assert begun == ["default"] * 3


def test_sections_of_a_function_are_found_late(settings, sections, begun, commit):
    """It is called by the thread, which may read the database, and never by a save."""
    called = []

    def of_site(site):
        called.append(site.key)
        return {"things": Readings}

    sections.add_function(of_site)
    settings.SITEMAPKIT_REBUILD = "on_change"
    with CaptureQueriesContext(connection) as queries:
        Reading.objects.create(level=1)
    assert called == []
    assert not [query for query in queries.captured_queries if "sitemapkit" in query["sql"]]
    request_builds([Reading])
    assert (called, begun) == (["default"], ["default"])


def test_sections_of_contrib_and_lists(on_change, sections, begun):
    """A queryset has a model, a list has none; it is made only once."""
    made = []

    class Old(Sitemap):
        def items(self):
            return Reading.objects.all()

    class Listed(Sitemap):
        def items(self):
            made.append(1)
            return [1, 2]

    sections.add(Old, "old")
    sections.add(Listed, "listed")
    sections.add(type("Home", (StaticSection,), {"items": ["/"]}))
    for _ in range(3):
        request_builds([Reading])
    assert begun == ["default"] * 3
    assert made == [1]
    assert has_receivers(Article) == (False, False)


def test_a_site_that_fails_does_not_stop_the_others(settings, sections, begun, caplog):
    """The log says why; and all models are watched until it can be read."""
    settings.SITEMAPKIT_SITES = {
        "bad": {"BASE_URL": "https://bad.example"},
        "good": {"BASE_URL": "https://good.example", "SECTIONS": ["products"]},
    }
    sections.add(Products)
    broken = type("Broken", (Section,), {"get_queryset": lambda self: 1 / 0, "name": "broken"})
    sections.add(broken)
    settings.SITEMAPKIT_REBUILD = "on_change"
    request_builds([Product])
    assert begun == ["good"]
    assert "Site 'bad': a change could not have the site built." in caplog.text
    assert has_receivers(Reading) == (True, True)
    sections.remove("broken")
    request_builds([Product])
    assert has_receivers(Reading) == (False, False)


# The thread


@pytest.mark.parametrize("place", ["current_tenants", "Thread"])
def test_no_failure_reaches_a_save(on_change, monkeypatch, commit, caplog, place):
    """Not even of what notes it; the log has it."""

    def fail(*arguments, **options):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(rebuild, "_changes", BackgroundJobs(print, "It failed."))
    monkeypatch.setattr(tenants, place, fail)
    with commit():
        Shop.objects.create(slug="all")
    assert Shop.objects.exists()
    assert "can't start new thread" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_manual_transactions_are_no_failure_of_a_save(on_change, noted, caplog):
    """There is no moment after the commit that Django knows; the log says so."""
    connection.set_autocommit(False)
    try:
        Shop.objects.create(slug="all")
        connection.commit()
    finally:
        connection.set_autocommit(True)
    assert Shop.objects.exists()
    assert noted == []
    assert "No build can be requested after a change of testapp.Shop." in caplog.text


# The builds


@pytest.fixture
def storage(settings, sections, monkeypatch):
    """Give the storage of a site with a section of five products."""
    monkeypatch.setattr(requests, "REQUEST_POLL_SECONDS", 0)
    sections.add(Products)
    fill()
    return use_storage(settings, "Memory")


@pytest.mark.slow
def test_the_build_says_what_asked_for_it(storage, begun):
    """It is not the admin."""
    request_builds([Product])
    (done,) = process_requests(SITE)
    assert (done.outcome["code"], done.outcome["build"]) == ("published", done.build_id)
    assert Publication.objects.get().build.started_by == "SITEMAPKIT_REBUILD: testapp.product"


@pytest.mark.slow
def test_changes_during_a_build_ask_for_one_more_and_no_third(storage, begun):
    """The running one may have passed those rows already; what is queued is not queued twice."""
    seen = []

    def on_file(*shown):
        edit_product(day=len(seen) + 1)
        request_builds([Product])
        seen.append(BuildRequest.objects.open(SITE).count())

    request_builds([Product])
    run(on_file=on_file)
    assert set(seen) == {2}
    assert len(seen) == 4
    process_requests(SITE)
    assert Build.objects.count() == 2
    assert not BuildRequest.objects.open(SITE).exists()
