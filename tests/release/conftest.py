"""The distributions that are tested."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def distributions():
    """Give the folder with the wheel and the source distribution."""
    if "DISTRIBUTIONS" not in os.environ:
        pytest.skip("`tox run -e release` builds the distributions and says where they are")
    return Path(os.environ["DISTRIBUTIONS"])
