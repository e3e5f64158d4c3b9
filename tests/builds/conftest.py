"""What the tests of builds share."""

import os

import pytest

from tests.builds import ALL, fill, use_storage
from tests.builds.runners import by

RUNNERS = {"postgresql": ["shuffled"], "mysql": ["inline"], "sqlite": ["inline"]}
"""What makes the pages on each database, so that tests meet each runner, and each database.

Which pages a runner makes first differs by no database, and no runner asks which one it is.
"""


def pytest_generate_tests(metafunc):
    """Run a test of a build under the runner of its database, a thorough one under both.

    Not if it claims something of one of them, or of what comes after the pages.
    """
    marked = metafunc.definition.get_closest_marker
    on_s3 = os.environ.get("TEST_STORAGE") == "s3"  # It runs all tests, the thorough ones too.
    if marked("django_db") and not marked("inline_runner") and not on_s3:
        database, _, _ = os.environ.get("TEST_DATABASE_URL", "sqlite").partition(":")
        # The servers run no thorough tests.
        after = {"publication", "report"}.intersection(metafunc.definition.path.parts)
        both = marked("thorough") and database == "sqlite" and not after
        runners = ["inline", "shuffled"] if both else RUNNERS[database]
        metafunc.parametrize("each_runner", runners, indirect=True)


@pytest.fixture(autouse=True)
def each_runner(request):
    """Have the pages of builds that name no runner made by one of them, and return its name."""
    name = getattr(request, "param", "inline")
    with by(name):
        yield name


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with rows in three sections."""
    for section in ALL:
        sections.add(section)
    fill()
    return use_storage(settings, "Memory")
