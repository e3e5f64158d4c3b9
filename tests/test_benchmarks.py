"""The benchmark keeps what it has measured: a smaller run never replaces a complete one."""

import argparse
import json
import os
import re
import subprocess
import sys

import pytest

from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks.contenders import CONTENDERS
from tests.benchmarks.running import ROOT, Bench, Outcome


def bench(folder, **options):
    """Return a run that has measured one contender, and saved it."""
    values = {"folder": folder, "sizes": {"small": 2_000}, "runs": 1, "resume": True} | options
    return Bench(argparse.Namespace(**values), print)


def measured(name, bench):
    """Let a run have measured a contender."""
    key = (name, "sqlite", 2_000)
    bench.outcomes[key] = Outcome(contender=CONTENDERS[name], database="sqlite", rows=2_000)
    bench._save()


@pytest.mark.parametrize(
    "options",
    [
        ("--rows", "5000"),
        ("--small", "0"),
        ("--runs", "1"),
        ("--database", "sqlite"),
        ("--budget", "7"),
        ("--only", "audit*"),
    ],
)
def test_the_page_is_not_written_by_a_smaller_run(options, capsys):
    """It is refused before anything is measured."""
    with pytest.raises(SystemExit) as refused:
        benchmarks.main([*options, "--write"])
    assert refused.value.code == 2
    assert "does not replace record.md" in capsys.readouterr().err


def test_the_page_is_not_written_without_all_contenders(monkeypatch, tmp_path, capsys):
    """A run that was cut short prints what it has."""
    page = tmp_path / "benchmarks.md"
    monkeypatch.setattr(benchmarks, "PAGE", page)
    monkeypatch.setattr(Bench, "run", lambda bench, wanted: None)
    monkeypatch.setattr(benchmarks, "draw", lambda bench, folder: None)
    assert benchmarks.main(["--write", str(page)]) == 0
    assert not page.exists()
    assert "audit-client, audit-many" in capsys.readouterr().out
    other = tmp_path / "other.md"
    assert benchmarks.main(["--write", str(other), "--only", "audit*"]) == 0
    assert other.read_text().startswith("# Benchmarks")


@pytest.mark.slow
def test_what_was_measured_is_kept(tmp_path):
    """Runs of other contenders, sizes or numbers of runs leave it as it is."""
    measured("audit", bench(tmp_path))
    measured("kit-zlib", bench(tmp_path))
    measured("kit-isal", bench(tmp_path, runs=2))
    later = bench(tmp_path)
    later._load()
    assert [name for name, _, _ in later.outcomes] == ["audit", "kit-zlib"]


QUOTED = {
    "A full build": ("kit-zlib", "contrib", "icv"),
    "A build after one row has changed": ("kit-rebuild", None, None),
    "A live page of 50,000 URLs": ("kit-page", "contrib-page", None),
    "First byte of a live page": ("kit-page", "contrib-page", None),
}
"""The contenders of each row that the README quotes."""

RECORD = ROOT / "tests" / "benchmarks" / "record.md"
CONDITIONS = "1,000,000 rows, PostgreSQL"


def tables_of(page):
    """Yield the lines of each table of a page under the last heading before it, cell by cell."""
    heading = ""
    for block in page.read_text(encoding="utf-8").split("\n\n"):
        if block.startswith("#"):
            heading = block.lstrip("# ")
        elif block.startswith("|"):
            yield (
                heading,
                [[c.strip() for c in r.strip("| ").split("|")] for r in block.split("\n")],
            )


def figures():
    """Return each contender's measured values by column, under the conditions of the README."""
    found = {}
    for heading, (header, _, *rows) in tables_of(RECORD):
        if CONDITIONS in heading and header[1] == "Name":
            found.update({row[1].strip("`"): dict(zip(header, row, strict=True)) for row in rows})
    return found


def rounded(text):
    """Return a figure as the README has it."""
    value = float(text)
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def test_the_readme_quotes_what_was_measured():
    """Each figure of its table is one of the record, rounded."""
    ((_, (header, _, *rows)),) = (
        table for table in tables_of(ROOT / "README.md") if table[0] == "Measured"
    )
    assert header[0].startswith("1,000,000 URLs, PostgreSQL")
    assert [row[0] for row in rows] == list(QUOTED)
    measured = figures()
    for name, *cells in rows:
        for cell, contender in zip(cells, QUOTED[name], strict=True):
            if contender is None:
                assert cell == "–"
                continue
            values = measured[contender]
            column = "First byte" if name.startswith("First byte") else "Seconds"
            quoted = re.fullmatch(r"\*{0,2}([\d.]+) s\*{0,2}(?:, ([\d.]+) MB)?", cell)
            assert quoted[1] == rounded(values[column])
            assert quoted[2] in {None, rounded(values["Peak MB"])}


def test_the_page_quotes_the_record():
    """Each contender's row in docs/benchmarks.md is one of the record."""
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    quoted = [line for line in page.splitlines() if re.match(r"\| .* \| `[\w-]+` \|", line)]
    assert len(quoted) > 10
    assert set(quoted) <= set(RECORD.read_text("utf-8").splitlines())


def costs_of(folder, pages):
    """Run tests.benchmarks.scale on a section of so many pages; return what its builds took."""
    command = [sys.executable, "-m", "tests.benchmarks.scale", "--rows", str(pages * 10)]
    command += ["--limit", "10", "--database", f"sqlite:///{folder}/{pages}.sqlite3"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(ROOT)]))}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    costs = json.loads(done.stdout)
    assert costs["pages"] == pages
    return costs["builds"]


def total(build, what):
    """Return how many queries, or calls of a method of the storage, a build has made."""
    steps = build["steps"].values()
    if what == "queries":
        return sum(step[what] for step in steps)
    return sum(step["calls"].get(what, 0) for step in steps)


@pytest.mark.slow
def test_what_a_page_costs(tmp_path):
    """The numbers of storage calls that docs/scale.md gives, and no query for an unchanged page."""
    few, many = costs_of(tmp_path, 10), costs_of(tmp_path, 30)
    assert [build["status"] for build in many.values()] == ["published", "unchanged", "published"]

    def more(build, what):
        return (total(many[build], what) - total(few[build], what)) / 20

    for method in ("save", "size"):
        assert more("full", method) == 1
        assert total(many["unchanged"], method) == 0
        # The page, and the index, unless it is of the same second and so the same.
        assert total(many["one row changed"], method) in (1, 2)
    for name in many:
        assert total(many[name], "listdir") == (2 if name != "one row changed" else 3)
        assert total(many[name], "open") == total(many[name], "delete") == 0
    # SQLite digests each page by a query of its own; PostgreSQL those of ten pages by one.
    # A slow machine records rows somewhat more often, since it does so at least once a second.
    for name in ("unchanged", "one row changed"):
        assert round(more(name, "queries")) == 1
