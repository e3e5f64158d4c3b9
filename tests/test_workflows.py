"""The workflows for GitHub are valid, and call what exists."""

import re
from itertools import product
from pathlib import Path

import pytest
import yaml

from tests import toxini

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in FOLDER.glob("*.yml")}
JOBS = [(name, job) for name, flow in sorted(WORKFLOWS.items()) for job in flow["jobs"].values()]
LEFT_OUT = {"browser", "killloop"}
"""Environments that need a browser of Debian, or kill processes for minutes: `.ci/run` has them."""

TOOLS = ("python -m pip install tox", "sudo apt-get ", "test -f ", "bash .ci/")
"""What a step runs besides tox."""


def combinations(job):
    """Return the values of each run of a job's matrix."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    excluded = matrix.pop("exclude", [])
    found = [dict(zip(matrix, values, strict=True)) for values in product(*matrix.values())]
    return [each for each in found if not any(part.items() <= each.items() for part in excluded)]


def commands(job):
    """Return what a job runs, for each combination of its matrix, with its values."""
    lines = [step["run"] for step in job["steps"] if "run" in step]
    return [
        re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda found, values=values: values[found[1]], line)
        for values in combinations(job)
        for line in lines
    ]


def environments(job):
    """Return the environments of tox that a job runs."""
    calls = [re.fullmatch(r"tox run -e (\S+)", command) for command in commands(job)]
    return {call[1] for call in calls if call}


def known_factors():
    """Return the factors that environments of `[testenv]` may consist of, but for Pythons."""
    values = "\n".join(toxini.read()["testenv"].values())
    return set(re.findall(r"^!?(\w+): ", values, re.MULTILINE))


@pytest.mark.parametrize(("workflow", "job"), JOBS)
def test_each_step_calls_what_exists(workflow, job):
    """A step uses an action at a version, or runs a tool, a script or an environment of tox.ini."""
    listed = {*toxini.environments()}
    for name in environments(job):
        factors = {factor for factor in name.split("-") if not re.fullmatch(r"py(3\d+)?", factor)}
        assert name in listed or factors <= known_factors(), name
    for command in commands(job):
        assert command.startswith(("tox run -e ", *TOOLS)), command
        assert all((ROOT / script).is_file() for script in re.findall(r"\.ci/\w+", command))
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step.get("uses", "a/b@v1"))
    assert job["timeout-minutes"] <= 60


def test_every_pair_runs_on_every_database():
    """The matrix has the pairs of tox.ini, and Django's main branch, which alone may fail."""
    job = WORKFLOWS["tests"]["jobs"]["pairs"]
    found = [(each["python"], each["django"], each["database"]) for each in combinations(job)]
    databases = {"sqlite", "postgresql", "mariadb"}
    expected = {
        (python, django.replace(".", ""), database)
        for python, django in toxini.pairs()
        for database in databases
    }
    newest = max(version for version, _ in toxini.pairs())
    assert set(found) == expected | {(newest, "main", database) for database in databases}
    assert len(found) == len(set(found))
    assert job["continue-on-error"] == "${{ matrix.django == 'main' }}"


def test_every_environment_runs_in_a_workflow():
    """Nothing of tox.ini is left out by accident."""
    called = {name for _, job in JOBS for name in environments(job)}
    others = {name for name in toxini.environments() if not re.match(r"py\d+-django\d+", name)}
    assert others - called == LEFT_OUT


def test_only_the_upload_may_ask_for_an_identity():
    """It is a job of its own, in an environment, after the distributions were checked."""
    assert all(flow["permissions"] == {"contents": "read"} for flow in WORKFLOWS.values())
    jobs = WORKFLOWS["release"]["jobs"]
    assert environments(jobs["build"]) == {"release"}
    assert [job for _, job in JOBS if "permissions" in job] == [jobs["publish"]]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert (jobs["publish"]["needs"], jobs["publish"]["environment"]) == ("build", "release")


@pytest.mark.parametrize("kind", ["browser", "killloop", "readers", "recipes", "release", "s3"])
def test_each_marked_file_is_where_its_environment_looks(kind):
    """An environment that runs one kind of tests collects only the folders that have them."""
    found = re.search(
        rf"pytest -m {kind} .*\{{posargs\}} (.+)", toxini.read()[f"testenv:{kind}"]["commands"]
    )
    folders = [ROOT / folder for folder in found[1].split()]
    marked = re.compile(rf"mark\.{kind}\b")
    files = [path for path in ROOT.glob("tests/**/*.py") if marked.search(path.read_text("utf-8"))]
    assert files
    elsewhere = [path for path in files if not any(map(path.is_relative_to, folders))]
    assert elsewhere == []
