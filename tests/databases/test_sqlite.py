"""SQLite in a file, with WAL: one writer, and readers that it does not stop."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.killloop.places import Folders

pytestmark = [pytest.mark.thorough]

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("storage", ["disk", "database"])
def test_views_answer_while_a_build_writes(tmp_path, storage):
    """Live and from files, within each of its transactions, and none of these fails.

    If the database stores the files, others can write between two of the rows of a file.
    """
    Folders(tmp_path).create()
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.killloop.settings",
        "KILLLOOP_FOLDER": str(tmp_path),
        "KILLLOOP_BASE_URL": "http://127.0.0.1",
        "KILLLOOP_STORAGE": storage,
        "TEST_DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "PYTHONPATH": os.pathsep.join(path for path in [*sys.path, str(ROOT)] if path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.databases.writing"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.match(r"(\w+): (\d+) answers, (.*); (\d+) writes", done.stdout).groups()
    journal, answers, statuses, writes = found
    assert (journal, statuses) == ("wal", "{200}")
    assert int(answers) >= 3 * 2 * 3  # Three pages have changed.
    assert bool(int(writes)) == (storage == "database")
