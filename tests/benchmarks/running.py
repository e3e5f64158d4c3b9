"""Runs contenders by turns, each in processes of its own, and keeps what they say."""

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path

from tests.benchmarks.checking import listed_in, sum_of
from tests.benchmarks.contender import OURS, Contender
from tests.benchmarks.contenders import CONTENDERS
from tests.benchmarks.data import name_of, url_of

ROOT = Path(__file__).resolve().parents[2]
LONG_SECONDS = 20
"""A run that takes longer than this is not done more than LONG_RUNS times."""
LONG_RUNS = 3
ROWS_ONLY = Contender(name="rows", title="the rows and our tables", kind="", run="", apps=OURS)


class Failed(Exception):
    """A process ended with an error; the text is what it said last."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of one contender on one database of one size."""

    contender: Contender
    """Who it is."""
    database: str
    """Which one it was."""
    rows: int
    """How large it was."""
    runs: list[dict] = field(default_factory=list)
    """The figures of each run."""
    unavailable: str = ""
    """Why it cannot take part."""
    error: str = ""
    """How it failed."""

    def is_done(self, most):
        """Return whether there is nothing more to run, of at most so many runs."""
        if any(run["seconds"] > LONG_SECONDS for run in self.runs):
            most = min(most, LONG_RUNS)
        return bool(self.unavailable or self.error or len(self.runs) >= most)

    @property
    def figures(self):
        """The medians of all runs, by name."""
        names = self.runs[0] if self.runs else ()
        return {name: statistics.median(run[name] for run in self.runs) for name in names}


class Bench:
    """All runs of one call."""

    def __init__(self, options, say):
        self.options = options
        self.say = say
        self.folder = Path(options.folder)
        self.outcomes = {}
        self.servers = {}
        self.npm = {}
        self._digests = {}

    @property
    def failed(self):
        """The contenders of ours that crashed or listed something else."""
        return [o for o in self.outcomes.values() if o.error and o.contender.ours]

    def run(self, wanted):
        """Run what is wanted, each a contender's name, a database and a number of rows."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.options.resume:
            self._load()
            wanted = {each for each in wanted if not self._is_done(each)}
        if any(name == "npm" for name, _, _ in wanted):
            self.npm = install_npm(self.folder / "npm")
        order = list(CONTENDERS)

        def group(each):
            name, database, rows = each
            return database, rows, CONTENDERS[name].kind

        # The sort keeps the order of the table within a group, and ours come first in it.
        ordered = sorted(sorted(wanted, key=lambda each: order.index(each[0])), key=group)
        for (database, rows, _), members in groupby(ordered, key=group):
            self._prepare(database, rows)
            outcomes = [
                Outcome(contender=CONTENDERS[name], database=database, rows=rows)
                for name, _, _ in members
            ]
            self.outcomes |= {(o.contender.name, database, rows): o for o in outcomes}
            self._alternate(outcomes)
            self._save()

    @property
    def _record(self):
        """The file of what was measured: one for each code, its sizes and its number of runs."""
        sizes = "-".join(name_of(rows) for rows in self.options.sizes.values())
        return self.folder / f"outcomes-{code()[:12]}-{sizes}-{self.options.runs}.json"

    def _save(self):
        """Keep what was measured, besides what runs of other contenders have."""
        state = self._recorded()
        outcomes = {
            _key(name, database, rows): {**asdict(outcome), "contender": name}
            for (name, database, rows), outcome in self.outcomes.items()
        }
        state["outcomes"] |= outcomes
        state["servers"] |= self.servers
        state["npm"] |= self.npm
        self._record.write_text(json.dumps(state))

    def _recorded(self):
        if self._record.exists():
            return json.loads(self._record.read_text())
        return {"servers": {}, "npm": {}, "outcomes": {}}

    def _load(self):
        """Take in what earlier runs of the same code have measured."""
        state = self._recorded()
        if not state["outcomes"]:
            self.say("There is no earlier run of this code to go on with.")
        self.servers, self.npm = state["servers"], state["npm"]
        for each in state["outcomes"].values():
            outcome = Outcome(**{**each, "contender": CONTENDERS[each["contender"]]})
            self.outcomes[outcome.contender.name, outcome.database, outcome.rows] = outcome

    def _is_done(self, each):
        outcome = self.outcomes.get(each)
        return outcome and outcome.is_done(self.options.runs)

    def _prepare(self, database, rows):
        said = self._process(
            ["tests.benchmarks.data", str(rows)], self._environment(database, rows, Path())
        )
        if said["made"]:
            self.say(f"{database} {name_of(rows)}: made the rows")
        self.servers[database] = said["server"]

    def _alternate(self, outcomes):
        for number in range(1, self.options.runs + 1):
            for outcome in outcomes:
                if outcome.is_done(self.options.runs):
                    continue
                try:
                    self._once(outcome)
                except Failed as error:
                    outcome.error = str(error)
                self.say(self._line(outcome, number))

    def _line(self, outcome, number):
        about = f"{outcome.database} {name_of(outcome.rows)} {outcome.contender.name}"
        if outcome.unavailable:
            return f"{about}: left out, {outcome.unavailable}"
        if outcome.error:
            return f"{about}: FAILED, {outcome.error}"
        run = outcome.runs[-1]
        memory = f", {run['peak'] / 1e6:.1f} MB" if "peak" in run else ""
        return f"{about} {number}/{self.options.runs}: {run['seconds']:.4g} s{memory}"

    def _once(self, outcome):
        """Prepare, run and check one contender; add what it measured."""
        contender = outcome.contender
        with tempfile.TemporaryDirectory(prefix="run-", dir=self.folder) as folder:
            environment = self._environment(outcome.database, outcome.rows, Path(folder))
            environment |= contender.environment
            module = ["tests.benchmarks.contenders", contender.name]
            said = {}
            if contender.prepare:
                said = self._process([*module, "prepare"], environment)
            if "unavailable" not in said:
                os.sync()  # Else this one waits for what the one before it wrote.
                said = self._process([*module, "run"], environment)
            if "unavailable" in said:
                outcome.unavailable = said["unavailable"]
                return
            if contender.kind in ("build", "articles"):
                said |= listed_in(Path(folder))
        self._check(outcome, said)
        outcome.runs.append(said)

    def _check(self, outcome, said):
        """Raise Failed unless a contender has listed what the others have.

        One that leaves some out on purpose has to have left out those, and set what is to be set.
        """
        promised = said.pop("promised", {"left out": 0, "their digest": "0"})
        urls, hints = outcome.rows - promised["left out"], said.pop("hints", None)
        if outcome.contender.kind == "build" and said["urls"] != urls:
            raise Failed(f"it listed {said['urls']:,} URLs of {urls:,}")
        if promised.get("hints", hints) != hints:
            raise Failed(f"it set {hints:,} tags of {promised['hints']:,}")
        digest = said.pop("digest", None)
        if digest is None:
            return
        digest = sum_of(digest, promised["their digest"])
        known = self._digests.setdefault((outcome.contender.kind, outcome.rows), digest)
        if known != digest:
            raise Failed("it listed other URLs than the contenders before it")

    def _environment(self, database, rows, folder):
        url = url_of(database, rows, self.folder.resolve())
        return {
            **os.environ,
            # For the maker of the rows; a contender has its own.
            **ROWS_ONLY.environment,
            **self.npm,
            "BENCHMARKS_DATABASE": url,
            "BENCHMARKS_FOLDER": str(folder.resolve()),
            "BENCHMARKS_ROWS": str(rows),
            "DJANGO_SETTINGS_MODULE": "tests.benchmarks.settings",
        }

    def _process(self, module, environment):
        """Run a module; return what its last line says, or raise Failed."""
        process = subprocess.run(
            [sys.executable, "-m", *module],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode:
            if self.options.traceback:
                self.say(process.stderr)
            lines = process.stderr.strip().splitlines()
            said = lines[-1] if lines else f"exit code {process.returncode}"
            raise Failed(said.replace(environment["BENCHMARKS_FOLDER"], "…"))
        return json.loads(process.stdout.splitlines()[-1])


def _key(*parts):
    return " ".join(map(str, parts))


def code():
    """Return a digest of what is measured and how: figures of different code are not compared.

    What is made of the figures afterwards does not count.
    """
    digest = hashlib.sha256()
    for folder in ("django_sitemapkit", "tests/benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name not in ("budgets.py", "report.py"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def install_npm(folder):
    """Install npm's sitemap where node is; return what the contender has to know."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            return {"BENCHMARKS_NO_NPM": f"{program} is not installed"}
    package = folder / "node_modules" / "sitemap" / "package.json"
    if not package.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", f"--prefix={folder}", "sitemap"]
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if process.returncode:
            return {"BENCHMARKS_NO_NPM": "npm could not install sitemap"}
    version = json.loads(package.read_text())["version"]
    return {"BENCHMARKS_NPM": str(folder), "BENCHMARKS_NPM_VERSION": version}
