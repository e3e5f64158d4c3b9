"""With the sites framework installed, each site is the current one while it is asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
def test_in_a_project_with_the_sites_framework():
    """Its models cannot be installed for some tests alone, so they have a process of their own."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--create-db",
         str(HERE / "current_site.py")],
        cwd=HERE.parent.parent,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.framework.settings",
            "TEST_DATABASE_URL": "sqlite://",  # Which site is the current one differs by none.
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
