"""What a project may rely on changes only where a reviewer sees it: in public_api.txt."""

import ast
import difflib
import re

import pytest

from tests.public_api import PACKAGE, SNAPSHOT, snapshot
from tests.test_docs import PYTHON, text_of

TABLES = {f"django_sitemapkit.models.{name}" for name in ("Build", "Publication", "UrlOverride")}
"""Documented names of models; their columns are listed as tables."""


@pytest.mark.slow
def test_the_public_api_is_the_stored_one():
    """Each change of it is a change of the file; ``python -m tests.public_api`` writes it."""
    stored = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    changes = difflib.unified_diff(stored, snapshot().splitlines(), "stored", "now", "", "", 0, "")
    if lines := "\n".join(changes):
        pytest.fail(f"`python -m tests.public_api` stores these changes:\n{lines}")


def imported_names():
    """Yield each name that the documentation's Python imports from the package, by its path."""
    for block in PYTHON:
        for each in ast.walk(ast.parse(block.text)):
            if isinstance(each, ast.ImportFrom) and (each.module or "").startswith(PACKAGE):
                yield from (f"{each.module}.{alias.name}" for alias in each.names)


def test_every_documented_name_is_public():
    """What the documentation imports, and what the reference describes, is in the file."""
    text = SNAPSHOT.read_text(encoding="utf-8")
    listed = set(re.findall(rf"^(?:class )?({PACKAGE}[\w.]*)", text, re.MULTILINE))
    modules = {name.rpartition(".")[0] for name in listed}
    reference = re.findall(rf"auto\w+:: ({PACKAGE}[\w.]*)", text_of("reference.md"))
    names = {*imported_names(), *reference}
    assert len(names) > 40
    assert names - listed - modules - TABLES == set()
