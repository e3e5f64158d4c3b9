"""Processes that are killed while they submit."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.submission.engines import IndexNow, serving
from tests.submission.project import REQUESTS, URLS

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]


def test_only_requests_in_flight_are_sent_twice(tmp_path):
    """Killed at every request, before or after the engine has taken it."""
    engine, kills = IndexNow(), 0
    with serving(engine.handler()) as address:
        environment = {
            **os.environ,
            "SUBMISSION_FOLDER": str(tmp_path),
            "SUBMISSION_ENDPOINT": f"{address}/indexnow",
        }
        environment.pop("DJANGO_SETTINGS_MODULE", None)

        def start(step):
            command = [sys.executable, "-m", "tests.submission.project", step]
            return subprocess.Popen(command, cwd=ROOT, env=environment)

        assert start("prepare").wait() == 0
        for turn in range(REQUESTS + 1):
            process = start("submit")
            # Each process may send one request more than the one before it, and dies in the next.
            engine.answers.extend([None] * min(turn, 1))
            engine.answers.append(lambda process=process: process.send_signal(signal.SIGKILL))
            if process.wait() == 0:
                break
            engine.answers.clear()
            kills += 1
        last = start("submit")
        engine.answers.clear()
        assert last.wait() == 0
    sent = Counter(engine.urls)
    assert kills > REQUESTS // 2
    assert len(sent) == URLS
    assert max(sent.values()) <= 2
    assert sum(sent.values()) <= URLS + kills * (URLS // REQUESTS)
