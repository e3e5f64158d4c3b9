"""Programs of the tests that build with helper processes."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PROGRAMS = (
    "killloop/__main__.py",
    "killloop/roles.py",
    "runners/session.py",
    "runners/cancelled.py",
)


@pytest.mark.parametrize("path", PROGRAMS)
def test_a_program_builds_only_where_it_is_the_main_one(path):
    """Each helper imports the main module of the process that spawned it: it must start nothing."""
    statements = ast.parse((TESTS / path).read_text("utf-8")).body
    *before, last = statements
    assert isinstance(last, ast.If)
    assert ast.unparse(last.test) == "__name__ == '__main__'"
    declared = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    for statement in before:
        assert isinstance(statement, declared) or not any(
            isinstance(node, ast.Call) for node in ast.walk(statement)
        ), ast.unparse(statement)
