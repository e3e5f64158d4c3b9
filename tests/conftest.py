"""What all tests share."""

import gc
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, settings

from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import indexes

pytest_plugins = ["django_sitemapkit.testing.fixtures"]

TESTS = Path(__file__).parent

ROOMS_WITH_SQL = {
    *("databases", "inspection", "models", "overrides", "planning", "reading", "upgrade"),
}
"""Folders whose slow tests run on each database: what these tests see may differ by it."""

ROOMS_WITH_QUERIES = {"builds", "publishing", "runners", "views"}
"""Folders whose slow tests run on one server besides SQLite, which is PostgreSQL."""

WITHOUT_SQL = {
    *("framework", "protocol", "reader", "scaffold", "web", "test_benchmarks.py"),
    *("test_console.py", "test_docs.py", "test_example.py", "test_extras.py"),
    *("test_public_api.py", "test_translations.py", "test_words.py"),
}
"""What no database changes, and what starts projects of its own: SQLite shows it."""

WITHOUT_SQL_OF_ITS_OWN = {
    *("admin", "contrib", "management", "rendering", "submission", "testing"),
}
"""Folders whose tests see through others what a database gives: one server shows it."""

# Examples of each property; the thorough run has more, by `--hypothesis-profile=thorough`. What
# changes how rows are read is tried with `exhaustive`, too: with 5,000 methods and more.
# How long one takes says nothing: other processes may keep the machine busy.
for name, examples in (("exhaustive", 250), ("thorough", 60), ("few", 20)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("few")


def pytest_configure():
    """End with a reason where the database server is down; under CI that is a failure."""
    server = urlsplit(os.environ.get("TEST_DATABASE_URL", ""))
    if not server.hostname or not server.port or os.environ.get("CI"):
        return
    try:
        socket.create_connection((server.hostname, server.port), timeout=3).close()
    except OSError as error:
        pytest.exit(f"skipped: no server at {server.hostname}:{server.port} ({error})", 0)


def sees_the_same(item, database):
    """Return whether a test sees on a server what it sees on another one, or on SQLite."""
    folders = set(item.path.relative_to(TESTS).parts)
    on_each = ROOMS_WITH_SQL if database == "mysql" else ROOMS_WITH_SQL | ROOMS_WITH_QUERIES
    if folders & WITHOUT_SQL or (item.get_closest_marker("slow") and not folders & on_each):
        return True
    return database == "mysql" and bool(folders & WITHOUT_SQL_OF_ITS_OWN)


def pytest_collection_modifyitems(config, items):
    """Leave tests that see the same on each database to the runs on SQLite."""
    database, _, _ = os.environ.get("TEST_DATABASE_URL", "sqlite").partition(":")
    if database == "sqlite":
        return
    left_out = [item for item in items if sees_the_same(item, database)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not sees_the_same(item, database)]


def pytest_collection_finish():
    """Leave what is imported out of garbage collections: it stays, and looking at it takes long."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture
def sections(sitemap_registry):
    """Give the registry as empty, and restore it afterwards."""
    return sitemap_registry


@pytest.fixture(scope="session")
def s3_endpoint():
    """Give the address of a server of S3's interface; under CI its absence is a failure."""
    try:
        import moto.server  # noqa: F401

        from tests.s3 import shared_endpoint
    except ImportError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"needs django-storages[s3] and moto[server]: {error}")

    return shared_endpoint()


@pytest.fixture
def methods_are_called(settings):
    """Have no method read as columns."""
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = False


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    """Let no storage wait before it is tried again."""
    monkeypatch.setattr(SitemapStorage, "pause", lambda self, seconds: None)


@pytest.fixture(autouse=True)
def time_to_read(monkeypatch):
    """Give indexes the time to read new pages: a busy machine must not change what a test sees."""
    monkeypatch.setattr(indexes, "MAX_READ_SECONDS", 60.0)
