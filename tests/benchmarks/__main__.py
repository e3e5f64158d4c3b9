"""Measure the package against its peers and against the limit, on the same rows.

    python -m tests.benchmarks [--rows 1000000] [--big 5000000] [--small 100000] [--runs 3]
                               [--database postgresql|sqlite|mariadb] [--big-on …]
                               [--only GLOB] [--budget N] [--folder PATH] [--resume]
                               [--write [tests/benchmarks/record.md]]

Makes the rows where they are not there yet, runs contenders by turns, and prints a table of them
and one of the budgets: each is met or RED. Contenders that no budget needs run on the fewest rows.
Ends with 1 where one of our own contenders crashes or lists other URLs than the rest; a red
budget is a result, and ends with 0. Ctrl-C ends it early, with what was measured until then;
``--resume`` goes on behind it. record.md is only written with all contenders at the
default sizes or larger ones. To measure some of them again, add ``--only`` and ``--resume``: the
others are those of the run before, if the code is the same.
"""

import argparse
import copy
import fnmatch
import sys
import tempfile
from os.path import relpath
from pathlib import Path

from tests.benchmarks.budgets import BUDGETS
from tests.benchmarks.contender import ALL, BOTH
from tests.benchmarks.contenders import CONTENDERS
from tests.benchmarks.plots import DATABASE, PLOTTED, SIZES, draw
from tests.benchmarks.report import report
from tests.benchmarks.running import ROOT, Bench, Failed

PAGE = ROOT / "tests" / "benchmarks" / "record.md"


def parser():
    """Return what reads the arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--big", type=int, default=5_000_000, help="0 leaves the large size out")
    parser.add_argument(
        "--big-on",
        action="append",
        choices=ALL,
        help="where the large size is made, which takes room and time; default: PostgreSQL",
    )
    parser.add_argument("--small", type=int, default=100_000, help="0 leaves the small size out")
    parser.add_argument("--runs", type=int, default=3, help="of each contender")
    parser.add_argument(
        "--database", action="append", choices=ALL, help="default: postgresql and sqlite"
    )
    parser.add_argument("--only", action="append", metavar="GLOB", help="contenders by name")
    parser.add_argument("--budget", action="append", type=int, choices=[b.number for b in BUDGETS])
    parser.add_argument(
        "--resume", action="store_true", help="go on with a run of the same code that was cut short"
    )
    parser.add_argument("--folder", default=Path(tempfile.gettempdir(), "sitemapkit-bench"))
    parser.add_argument("--write", nargs="?", const=PAGE, type=Path, help="a file for the tables")
    parser.add_argument("--traceback", action="store_true", help="print the errors of contenders")
    return parser


def main(arguments=None):
    """Run once; return the exit code."""
    reader = parser()
    options = reader.parse_args(arguments)
    options.database = options.database or list(BOTH)
    options.big_on = options.big_on or ["postgresql"]
    options.sizes = {
        name: rows
        for name, rows in (("small", options.small), ("rows", options.rows), ("big", options.big))
        if rows
    }
    options.budgets = [b for b in BUDGETS if not options.budget or b.number in options.budget]
    if writes_page(options) and is_small(options, reader):
        reader.error(f"A run of so little does not replace {PAGE.name}: --write to another file.")
    bench = Bench(options, say)
    try:
        bench.run(wanted(options))
    except Failed as error:
        say(f"FAILED: {error}")
        return 1
    except KeyboardInterrupt:
        say("Cut short: what is reported is what was measured until now.")
    text = report(bench)
    say(f"\n{text}")
    if writes_page(options) and (missing := not_measured(bench)):
        say(f"{PAGE.name} stays as it is: {', '.join(missing)} were not measured.")
    elif options.write:
        folder = (
            ROOT / "docs" / "images" if writes_page(options) else options.write.parent / "images"
        )
        options.write.write_text(
            text.replace("](images/", f"]({relpath(folder, options.write.parent)}/")
        )
        draw(bench, folder)
    for outcome in bench.failed:
        say(f"{outcome.contender.name} on {outcome.database} FAILED: {outcome.error}")
    return 1 if bench.failed else 0


def writes_page(options):
    """Return whether the page of the documentation is to be written."""
    return options.write is not None and options.write.resolve() == PAGE


def is_small(options, reader):
    """Return whether a run measures less than one without options does."""
    sizes = (options.small, options.rows, options.big)
    usual = (reader.get_default(name) for name in ("small", "rows", "big"))
    return (
        any(size < least for size, least in zip(sizes, usual, strict=True))
        or options.runs < reader.get_default("runs")
        or not set(BOTH) <= set(options.database)
        or options.budget is not None
        or (options.only is not None and not options.resume)
    )


def not_measured(bench):
    """Return the names of the contenders that a complete run has, and this one has not."""
    complete = copy.copy(bench.options)
    complete.only = None
    return sorted({name for name, *of in wanted(complete) if (name, *of) not in bench.outcomes})


def wanted(options):
    """Return what is to be run: a contender's name, a database and a number of rows each."""
    needed = {
        (name, database, size)
        for budget in options.budgets
        for bound in budget.bounds
        for name, size in bound.needs
        for database in bound.databases
    }
    if not options.budget:
        needed |= {(name, DATABASE, size) for name in PLOTTED for size in SIZES}
        in_budgets = {name for name, _, _ in needed}
        least = min(options.sizes, key=options.sizes.get)  # Some of the rest take minutes for more.
        needed |= {
            (contender.name, database, least)
            for contender in CONTENDERS.values()
            if contender.kind == "build" and contender.name not in in_budgets
            for database in contender.databases
        }
    globs = options.only or ["*"]
    return {
        (name, database, options.sizes[size])
        for name, database, size in needed
        if database in options.database
        and size in options.sizes
        and (size != "big" or database in options.big_on)
        and database in CONTENDERS[name].databases
        and any(fnmatch.fnmatch(name, glob) for glob in globs)
    }


def say(text):
    """Write some lines at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
