"""Chromium, the site it visits, and a page that nothing goes wrong on."""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.visiting import Site, Visitor

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
"""How long any one step may take before it is taken to hang."""

BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser"]
"""The first one draws pages alone, and no window around them, which takes half the time."""

ARGUMENTS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",
]

# Appended, so that an installed wheel comes before the checkout; python -P keeps the rest away.
PATH = f"import sys; sys.path.append({str(ROOT)!r})\n"
SEED = f"{PATH}from tests.browser.seeding import seed; seed()"
HEAL = f"{PATH}from tests.browser.seeding import heal; heal()"
TROUBLE = f"{PATH}from tests.browser.seeding import trouble; trouble()"
SERVE = f"{PATH}from django.core.management import execute_from_command_line as run; run(sys.argv)"


def missing(reason):
    """End a test that the machine has not got what it takes for: under CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def chromium():
    """Give the browser."""
    if importlib.util.find_spec("playwright") is None:
        missing("playwright is not installed; it is in the dependency group browser")
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        missing("there is no Chromium here; on Debian: apt install chromium-headless-shell")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def port():
    """Return a port that is free; the files that are built name it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def environment(folder, port, settings):
    """Return the environment of the site's processes; no proxy stands before 127.0.0.1."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
    }
    return inherited | {
        "DATABASE_URL": f"sqlite:///{folder}/site.sqlite3",
        "DEBUG": "0",
        "DJANGO_SETTINGS_MODULE": settings,
        "PYTHONUNBUFFERED": "1",
        "SITEMAPKIT_BASE_URL": f"http://127.0.0.1:{port}",
    }


@pytest.fixture(scope="session")
def seeded(tmp_path_factory, port):
    """Return a folder with a filled database, and the sessions of its users."""
    folder = tmp_path_factory.mktemp("seeded")
    return folder, printed_by(SEED, folder, port)


def printed_by(code, folder, port):
    """Return what some code prints as JSON that changes the site's database."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=folder,
        env=environment(folder, port, "tests.browser.settings"),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout)


@contextmanager
def serving(folder, port, settings):
    """Serve a copy of the site; what the server said is shown where a test fails."""
    command = ["runserver", f"127.0.0.1:{port}", "--noreload", "--insecure", "--skip-checks"]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE, *command],
            cwd=folder,
            env=environment(folder, port, settings),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for_port(port, process, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        lines = log.read_text(errors="replace").splitlines()
        said = [line for line in lines if "/static/" not in line and "/favicon" not in line]
        sys.stdout.write("\n".join(["The server said:", *said[-60:], ""]))


def wait_for_port(port, process, log):
    """Wait until the server answers."""
    limit = time.monotonic() + SECONDS
    while True:
        assert process.poll() is None, log.read_text(errors="replace")[-5000:]
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < limit, "the server does not answer"
            time.sleep(0.05)
        else:
            return


@pytest.fixture
def settings_of_site():
    """Return the settings that the site runs with."""
    return "tests.browser.settings"


@pytest.fixture(scope="session")
def filled(chromium, seeded, port, tmp_path_factory):
    """Return a folder in which every screen has something to show, and the sessions."""
    from tests.browser.screens import fill

    folder, sessions = seeded
    copy = tmp_path_factory.mktemp("filled")
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    with serving(copy, port, "tests.browser.settings"), chromium.new_context() as context:
        fill(Visitor(context, Site(f"http://127.0.0.1:{port}", sessions), "chief"))
    return copy, sessions


@pytest.fixture(scope="session")
def troubled(filled, port, tmp_path_factory):
    """Return a folder in which builds have ended badly, the sessions, and the screens of these."""
    folder, sessions = filled
    copy = tmp_path_factory.mktemp("troubled")
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    return copy, sessions, printed_by(TROUBLE, copy, port)


@pytest.fixture(scope="session")
def healthy(filled, port, tmp_path_factory):
    """Return a folder in which nothing needs attention, and the sessions."""
    folder, sessions = filled
    copy = tmp_path_factory.mktemp("healthy")
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    printed_by(HEAL, copy, port)
    return copy, sessions


@pytest.fixture
def content(seeded):
    """Return the folder that the site begins with, and the sessions: nothing is built yet."""
    return seeded


@pytest.fixture
def site(chromium, content, port, tmp_path, settings_of_site):
    """Serve a site of one's own."""
    folder, sessions = content
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    with serving(tmp_path, port, settings_of_site):
        yield Site(f"http://127.0.0.1:{port}", sessions)


@pytest.fixture(scope="module")
def shown(chromium, filled, port, tmp_path_factory):
    """Serve a site with something on every screen, for the tests of a module that only look."""
    folder, sessions = filled
    copy = tmp_path_factory.mktemp("shown")
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    with serving(copy, port, "tests.browser.settings"):
        yield Site(f"http://127.0.0.1:{port}", sessions)


@pytest.fixture
def visit(chromium, site):
    """Give a function that opens a window for a user; at the end nothing has gone wrong in any."""
    visitors, contexts = [], []

    def open_window(user="chief", *, strict=True, **options):
        context = chromium.new_context(**{"locale": "en-GB", **options})
        contexts.append(context)
        visitors.append(Visitor(context, site, user))
        visitors[-1].strict = strict
        return visitors[-1]

    yield open_window
    faults = [fault for visitor in visitors if visitor.strict for fault in visitor.faults()]
    for context in contexts:
        context.close()
    assert not faults
