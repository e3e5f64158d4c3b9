"""What the tests of builds share."""

import pytest

from tests.builds import ALL, fill, use_storage


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with rows in three sections."""
    for section in ALL:
        sections.add(section)
    fill()
    return use_storage(settings, "Memory")
