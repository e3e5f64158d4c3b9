"""Audits and crawls that are killed again and again end with what an undisturbed one finds."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.audit.project import PAGES, document

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("AUDIT_KILLS", "6"))


AUDITED = {"redirect": 120, "not-found": 120, "noindex": 120, "title-repeated": 119}
CRAWLED = {"broken-link": 120, "redirect-link": 120, "orphan": 12, "missing": 1}


@pytest.mark.parametrize(
    ("step", "checked", "counts"), [("audit", PAGES, AUDITED), ("crawl", PAGES - 12 + 1, CRAWLED)]
)
def test_what_is_killed_is_continued(tmp_path, step, checked, counts):
    """By SIGKILL or by Ctrl-C, at random, until it comes to its end."""
    environment = {**os.environ, "AUDIT_FOLDER": str(tmp_path)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)

    def start(step):
        command = [sys.executable, "-m", "tests.audit.project", step]
        return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)

    assert start("build").wait() == 0
    began = time.monotonic()
    assert start(f"{step}-restart").wait() == 0
    whole = time.monotonic() - began
    undisturbed = document(tmp_path, f"{step}-restart")
    assert undisturbed["checked"] == checked
    assert undisturbed["counts"] == counts
    chance, kills = random.Random(9), 0
    while kills < KILLS:
        process = start(step)
        try:
            process.wait(chance.uniform(0.3, 1) * whole)
        except subprocess.TimeoutExpired:
            process.send_signal(chance.choice((signal.SIGKILL, signal.SIGINT)))
            kills += 1
        process.wait()
    assert start(step).wait() == 0
    assert document(tmp_path, step) == undisturbed
