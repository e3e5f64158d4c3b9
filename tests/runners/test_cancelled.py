"""A build of several processes is seen, and cancelled, by a process that has no part in it."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.thorough


@pytest.fixture
def build(project):
    """Start a slow build; return what starts it."""
    started = []

    def start(runner):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.runners.cancelled", runner],
            cwd=ROOT,
            env=project,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def manage(project, *arguments):
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "django", *arguments],
        cwd=ROOT,
        env=project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def status(project):
    """Return what ``sitemap_status`` says of the site; None as long as there are no tables."""
    done = manage(project, "sitemap_status", "--quick", "--json")
    return json.loads(done.stdout)[0] if done.returncode == 0 else None


def wait_until(process, condition, what):
    """Return what ``condition`` gives as soon as it is true, while the build runs."""
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert process.poll() is None, f"the build ended before {what}: {process.communicate()}"
        assert time.monotonic() < deadline, what
    return found


@pytest.mark.parametrize(
    ("database", "runner"),
    [("sqlite", "inline"), ("postgresql", "processes")],
    indirect=["database"],
)
def test_a_build_is_followed_and_cancelled_from_another_process(project, build, runner):
    """Its command ends with 6; nothing is published, and the next run starts a new build."""
    process = build(runner)

    def progress():
        found = status(project)
        is_known = found and found["progress"] and found["progress"]["urls_per_second"]
        return found["progress"] if is_known else None

    first = wait_until(process, progress, "its rate is known")
    assert first["total"] == 203  # Items in 200 files, words and static pages in one each: index.
    assert 0 < first["done"] < first["total"]
    later = wait_until(
        process,
        lambda: (now := progress()) and now["done"] > first["done"] and now,
        "more files are done",
    )
    assert later["build"] == first["build"]
    assert later["urls"] > first["urls"]

    done = manage(project, "cancel_sitemap_build")
    assert done.returncode == 0, done.stderr
    assert f"Build {first['build']} of site 'default' is cancelled." in done.stdout
    process.wait(timeout=15)
    error = process.stderr.read()
    assert process.returncode == 6, error
    assert f"Build {first['build']} of site 'default' was cancelled by command on " in error
    assert "Traceback" not in error

    after = status(project)
    assert (after["running"], after["progress"], after["published_at"]) == ("", None, None)
    (ended,) = after["builds"]
    assert (ended["status"], ended["reason"][:12]) == ("abandoned", "cancelled by")
    done = manage(project, "build_sitemaps", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["status"], result["adopted"], result["urls"]) == ("published", 0, 4_002)


def test_a_build_whose_process_was_killed_is_not_adopted(project, build):
    """It is abandoned by the cancellation, while its lease has not expired."""
    process = build("processes")
    wait_until(process, lambda: (found := status(project)) and found["progress"], "it has begun")
    process.kill()
    process.wait()
    assert "is cancelled" in manage(project, "cancel_sitemap_build").stdout
    done = manage(project, "build_sitemaps", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["adopted"] == 0
