"""Whatever dies, whenever it dies: crawlers get complete, valid files, and the next run heals.

The short form of ``python -m tests.killloop``. With KILLLOOP_KILLS, it takes so many kills, however
long they take.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.killloop

ROOT = Path(__file__).resolve().parents[1]
SECONDS = {"disk": 15, "database": 15, "s3": 25}
"""How long builders are killed; the rest of a run takes some seconds more."""

LONGEST = 3600
"""The same where a number of kills is asked for."""


def require_server(variable, default):
    """Skip where no server answers; under CI that is a failure."""
    server = urlsplit(os.environ.get(variable, default))
    try:
        socket.create_connection((server.hostname, server.port), timeout=3).close()
    except OSError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no server at {server.hostname}:{server.port} ({error})")


@pytest.mark.parametrize(
    ("database", "storage"),  # Each of both, and what most sites have; not each pair.
    [
        *(("sqlite", storage) for storage in ("disk", "database")),
        *(("postgresql", storage) for storage in ("disk", "s3")),
        ("mariadb", "database"),
    ],
)
def test_crawlers_never_notice_that_builders_are_killed(request, database, storage):
    """Two builders, killed and paused at random; the seed and the figures are in the output."""
    from tests.killloop.project import SERVERS

    if database in SERVERS:
        pytest.importorskip("psycopg" if database == "postgresql" else "MySQLdb")
        require_server(*SERVERS[database])
    if storage == "s3":
        request.getfixturevalue("s3_endpoint")  # Skips where there can be none.
    kills = os.environ.get("KILLLOOP_KILLS")
    seconds = LONGEST if kills else SECONDS[storage]
    options = ["--database", database, "--storage", storage, "--seconds", str(seconds)]
    if kills:
        options += ["--kills", kills]
    done = subprocess.run(
        [sys.executable, "-m", "tests.killloop", *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300 + seconds,
        check=False,
    )
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stdout
