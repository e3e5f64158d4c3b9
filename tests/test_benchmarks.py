"""The benchmark keeps what it has measured: a smaller run never replaces a complete one."""

import argparse

import pytest

from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks.contenders import CONTENDERS
from tests.benchmarks.running import Bench, Outcome


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
    assert "does not replace benchmarks.md" in capsys.readouterr().err


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


def test_what_was_measured_is_kept(tmp_path):
    """Runs of other contenders, sizes or numbers of runs leave it as it is."""
    measured("audit", bench(tmp_path))
    measured("kit-zlib", bench(tmp_path))
    measured("kit-isal", bench(tmp_path, runs=2))
    later = bench(tmp_path)
    later._load()
    assert [name for name, _, _ in later.outcomes] == ["audit", "kit-zlib"]
