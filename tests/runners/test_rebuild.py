"""Changed rows ask for builds in a process as it is: with its threads, and commits of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.thorough


def test_a_thousand_saves_are_two_builds_at_most_and_no_queue_fails_one(project, tmp_path):
    """All of them are listed afterwards; what cannot be started is left to the next build."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.runners.changing"],
        cwd=ROOT,
        env=project,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert 1 <= found["builds"] <= 2, found
    assert found["urls"] == 1_000
    assert found["started_by"] == "SITEMAPKIT_REBUILD: killloop.item"
    assert (found["left"], found["open"]) == (990, 1)
    assert found["builds after"] == found["builds"]
    assert "the broker is gone" in (tmp_path / "package.log").read_text()
