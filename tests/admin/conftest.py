"""What the tests of the admin share."""

import pytest

from tests.builds import ALL, fill, use_storage


@pytest.fixture
def built(settings, sections):
    """Give the storage of a site with rows in three sections; threads do not start."""
    for section in ALL:
        sections.add(section)
    fill()
    return use_storage(settings, "Memory")
