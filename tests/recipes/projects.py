"""A project that a test writes into a folder, and runs in a process of its own."""

import importlib.util
import json
import os
import sys

import pytest

from tests.recipes.walkthrough import call


def require_package(name, module):
    """Skip the test where a package is not installed; under CI it fails."""
    if importlib.util.find_spec(module) is None:
        assert not os.environ.get("CI"), f"{name} is not installed"
        pytest.skip(f"needs {name}")


def answers_of(files, folder):
    """Write files into a folder, run the one named run.py, and return the JSON of its last line.

    ``files`` has their texts by path; ``settings.py`` has the settings.
    """
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    said = call(
        [sys.executable, folder / "run.py"],
        cwd=folder,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings",
            "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]),
        },
    )
    return json.loads(said.splitlines()[-1])
