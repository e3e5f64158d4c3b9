"""The table of packages in docs/comparison.md: each cell is what a test in tests/peers claims.

Those tests need the packages, and run in an environment of their own; this one reads them.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("kit", "icv", "static", "contrib")
"""The modules of tests/peers, in the order of the columns."""


def rows():
    """Return the cells of the table, row by row, with its header and without links."""
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n## Packages that write files\n")
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)[0]
    lines = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", table).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def sentences(cell):
    """Return what a cell says as the docstring of a test would."""
    return f"{cell[0].upper()}{cell[1:]}."


def claims(module):
    """Return the docstrings of a module's tests, in order, each in one line."""
    source = (ROOT / "tests" / "peers" / f"{module}.py").read_text(encoding="utf-8")
    return [
        " ".join(ast.get_docstring(each).replace("``", "`").split())
        for each in ast.parse(source).body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    ]


@pytest.mark.parametrize("column", range(len(MODULES)), ids=MODULES)
def test_each_cell_is_what_its_test_claims(column):
    """In the order of the rows; a dash claims nothing."""
    _, _, *body = rows()
    assert len(body) > 12
    cells = [row[column + 1] for row in body]
    assert [sentences(cell) for cell in cells if cell != "–"] == claims(MODULES[column])
    assert column or "–" not in cells


def test_the_versions_are_those_that_run():
    """The header names the versions that are installed for the tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = re.findall(r"(\S+?)>=([0-9.]+)", " ".join(project["dependency-groups"]["peers"]))
    assert rows()[0][2:4] == [f"{name} {version}" for name, version in installed]
