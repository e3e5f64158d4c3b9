"""A project of its own for tests with several processes, on each database that they share."""

import os
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
POSTGRESQL = os.environ.get("TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    """Give the URL of an empty database that several processes reach."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/db.sqlite3"
        return
    server = urlsplit(POSTGRESQL)
    try:
        socket.create_connection((server.hostname, server.port), timeout=3).close()
    except OSError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no PostgreSQL at {server.hostname}:{server.port} ({error})")
    psycopg = pytest.importorskip("psycopg")

    name = f"test_processes_{os.getpid()}"
    with psycopg.connect(f"{POSTGRESQL}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{POSTGRESQL}/{name}"
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def project(tmp_path, database):
    """Give the environment of the processes."""
    for folder in ("storage", "export"):
        (tmp_path / folder).mkdir()
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.killloop.settings",
        "KILLLOOP_FOLDER": str(tmp_path),
        "KILLLOOP_BASE_URL": "https://www.example.com",
        "TEST_DATABASE_URL": database,
        "PYTHONPATH": os.pathsep.join(path for path in [*sys.path, str(ROOT)] if path),
    }
