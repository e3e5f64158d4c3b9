"""The example project: what it says of itself, and what its last lines tell to run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments, **environment):
    """Return a process of Python that has ended, with the repository on its path."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--hlep", 2)])
def test_help_begins_nothing(argument, code):
    """It says what would be done; nor does a wrong option make an environment."""
    done = run("-m", "example_project", argument)
    assert done.returncode == code
    assert "[1/8]" not in done.stdout
    assert "python3 -m example_project" in done.stdout + done.stderr
    assert argument != "--help" or "8. Serve what is published and read it back" in done.stdout


LAST_LINES = """
import socket, sys
import django
django.setup()
from django.conf import settings
from django.core.management import call_command
from example_project.gazetteer.management.commands.read_sitemaps import Command

taken = socket.create_server(("127.0.0.1", 0))
port = taken.getsockname()[1]
settings.SITEMAPKIT_BASE_URL = f"http://127.0.0.1:{port}"
call_command("migrate", verbosity=0)
Command()._way_in()
taken.close()
print("taken:", port)
print("gzip:", settings.SITEMAPKIT_GZIP_BACKEND)
"""


@pytest.mark.slow
def test_the_last_lines_name_a_port_that_is_free():
    """Where another process has the port of the site, and they say which one that is."""
    pytest.importorskip("dj_database_url")
    done = run(
        *("-c", LAST_LINES),
        DJANGO_SETTINGS_MODULE="example_project.settings",
        DATABASE_URL="sqlite://:memory:",
    )
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    taken = next(line for line in lines if line.startswith("taken: ")).split()[1]
    (serve,) = [line for line in lines if " runserver " in line]
    port = serve.rpartition(" ")[2]
    assert port != taken
    assert f"and open http://127.0.0.1:{port}/ or http://127.0.0.1:{port}/sitemap.xml" in lines
    assert any(line.startswith(f"(Port {taken} is taken. The sitemaps list") for line in lines)
    assert "gzip: zlib" in lines  # Else it would depend on what the tests have installed.
