"""A build whose process is killed again and again ends, because each adopts what others stored."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runners.methods import ROWS, ROWS_PER_PAGE

ROOT = Path(__file__).resolve().parents[2]
PAGES_PER_LIFE = 2

pytestmark = pytest.mark.thorough


def start(project, *arguments):
    """Start a process with the slow section."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.runners.methods", *arguments],
        cwd=ROOT,
        env=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(project, *arguments):
    """Return what a process has printed that ended well."""
    process = start(project, *arguments)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def test_a_build_of_methods_takes_many_lives_and_ends(project, tmp_path):
    """Each life ends by SIGKILL after two pages; what is published at last is of the last rows."""
    runner = "inline" if "sqlite" in project["TEST_DATABASE_URL"] else "processes"

    def stored():
        # Not in the folders below: a build deletes its own meanwhile.
        return len(list((tmp_path / "storage" / "sitemaps").glob("*/slow-*.gz")))

    done(project, "fill")
    lives = 0
    while True:
        before, process = stored(), start(project, "build", f"--runner={runner}")
        while process.poll() is None and stored() < before + PAGES_PER_LIFE:
            time.sleep(0.02)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        lives += 1
        assert lives <= 2 * ROWS // ROWS_PER_PAGE
        if lives == 5:
            done(project, "edit")
        time.sleep(1.2)  # The lease expires a second after the last heartbeat.
    out, err = process.communicate()
    assert process.returncode == 0, err
    # Helpers that outlive the builder by a moment store some pages more.
    assert lives >= (6 if runner == "inline" else 2)
    assert json.loads(out)["urls"] == ROWS
    assert "slow-1.xml" in done(project, "find")
    assert json.loads(done(project, "build"))["status"] == "unchanged"
