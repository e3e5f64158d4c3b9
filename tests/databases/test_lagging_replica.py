"""A router that reads from a replica which is behind: rows may be old, the package's tables never.

test_replicas of builds has a replica that knows nothing of the package's tables at all.
"""

import datetime as dt

import pytest
from django.apps import apps
from django.db import connections
from django.test.utils import CaptureQueriesContext

from django_sitemapkit.models import Lease
from tests.builds import ALL, BASE, fill, in_order, live, manifest, run, served
from tests.overrides.setting import by_path
from tests.testapp.models import Article, Product, Reading, Shop

pytestmark = [
    pytest.mark.django_db(databases=["default", "replica"]),
    pytest.mark.thorough,
]

ROWS = (Shop, Product, Reading, Article)


class ReadsFromReplica:
    """Sends all reads to the replica, and all writes to the primary, as most routers do."""

    def db_for_read(self, model, **hints):
        return "replica"

    def db_for_write(self, model, **hints):
        return "default"


def catch_up():
    """Let the replica have the rows that the primary has now."""
    for model in reversed(ROWS):
        model.objects.using("replica").all()._raw_delete("replica")
    for model in ROWS:
        model.objects.using("replica").bulk_create(list(model.objects.using("default")))


@pytest.fixture(scope="module", autouse=True)
def alias(django_db_setup, django_db_blocker):
    """Configure a second database, which has the tables of the rows and no others."""
    empty = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    configured = connections.configure_settings({"default": {}, "replica": empty})
    connections.databases["replica"] = configured["replica"]
    with django_db_blocker.unblock(), connections["replica"].schema_editor() as editor:
        for model in ROWS:
            editor.create_model(model)
    yield
    connections["replica"].connection.close()
    del connections["replica"], connections.databases["replica"]


@pytest.fixture(autouse=True)
def replica(settings, sections):
    """Give a site whose rows are read from a replica; it has them as they are at first."""
    for section in ALL:
        sections.add(section)
    fill()
    catch_up()
    settings.DATABASE_ROUTERS = [f"{__name__}.ReadsFromReplica"]
    with CaptureQueriesContext(connections["replica"]) as queries:
        yield queries


def change_primary():
    """Change rows that the replica does not know yet: one goes, one comes, one is edited."""
    rows = Product.objects.using("default")
    rows.filter(slug="p0").delete()
    rows.create(shop=Shop.objects.using("default").get(), slug="new")
    rows.filter(slug="p3").update(updated_at=dt.datetime(2025, 1, 1, tzinfo=dt.UTC))


def urls(client):
    """Return the URLs of products that a reader finds, without their host."""
    found = (location for location, _ in in_order(served(client)))
    return {url.removeprefix(f"{BASE}/products/all/") for url in found if "/products/" in url}


def test_rows_are_those_of_the_replica_until_it_has_caught_up(client, settings):
    """Built and live; then a build renders what has come, though the rows changed before."""
    change_primary()
    run()
    old = {f"p{n}/" for n in range(5)}
    assert urls(client) == old
    assert in_order(live(client, settings)) == in_order(served(client))
    assert run().status == "unchanged"
    catch_up()
    assert run().status == "published"
    assert urls(client) == old - {"p0/"} | {"new/"}
    assert in_order(live(client, settings)) == in_order(served(client))


def test_the_tables_of_the_package_are_never_read_from_it(client, settings, replica):
    """Nor is anything written there: leases, plans, manifests, publications, overrides, files."""
    run()
    change_primary()
    catch_up()
    before = len(replica)
    run(full=True)
    served(client)
    live(client, settings)
    asked = [query["sql"] for query in replica.captured_queries[before:]]
    assert any("testapp_product" in sql for sql in asked)
    assert not [sql for sql in asked if 'FROM "sitemapkit' in sql or 'JOIN "sitemapkit' in sql]
    assert {sql.partition(" ")[0] for sql in asked} == {"SELECT"}


@pytest.mark.parametrize("name", ["sitemapkit", "sitemapkit_audit", "sitemapkit_submission"])
def test_each_table_of_the_package_is_read_from_the_primary(name):
    """By whatever asks its manager, as the pages of the admin do, or follows a foreign key."""
    models = list(apps.get_app_config(name).get_models())
    assert models
    assert {model._default_manager.all().db for model in models} == {"default"}
    fields = [field for model in models for field in model._meta.fields]
    linked = {field.related_model for field in fields if field.remote_field}
    assert {model._base_manager.all().db for model in linked} <= {"default"}


def test_what_editors_set_acts_at_once(client):
    """However far behind the replica is."""
    run()
    by_path("/products/all/p1/", include=False)
    run()
    assert "p1/" not in urls(client)


def test_a_lease_is_seen_at_once():
    """The next process that asks is refused, and the holder keeps it."""
    lease = Lease.objects.acquire("build:default", seconds=60)
    assert Lease.objects.acquire("build:default", seconds=60) is None
    assert lease.renew()
    lease.release()
    run()
    assert manifest()
