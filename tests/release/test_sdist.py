"""The source distribution is the whole project, and its tests run in it."""

import re
import subprocess
import sys
import tarfile

import pytest

from tests.recipes.walkthrough import call, own_variables
from tests.test_docs import ROOT

pytestmark = pytest.mark.release


@pytest.fixture
def unpacked(distributions, tmp_path):
    """Give the folder that the source distribution unpacks to."""
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    (project,) = tmp_path.iterdir()
    return project


def test_it_has_each_file_of_the_repository(unpacked):
    """Each file that git tracks is in it, and no other but its metadata."""
    found = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if found.returncode:
        pytest.skip("this is not a clone")
    tracked = set(found.stdout.split("\0")) - {""}
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    assert files - tracked == {"PKG-INFO"}
    assert tracked - files == set()


def test_its_tests_pass(unpacked):
    """Where it is unpacked, all tests are found, and those of the project as a whole pass."""
    pytest_command = [sys.executable, "-m", "pytest", "-q", "--color=no"]
    # Under CI a test fails if a server or a schema is missing; those are not what is tested here.
    options = {"cwd": unpacked, "env": {**own_variables(), "CI": ""}}
    collected = call([*pytest_command, "--collect-only"], **options)
    assert "tests collected" in collected.splitlines()[-1]
    modules = [str(path) for path in (unpacked / "tests").glob("test_*.py")]
    output = call([*pytest_command, *modules], **options)
    assert re.search(r"\d{3,} passed", output.splitlines()[-1])
