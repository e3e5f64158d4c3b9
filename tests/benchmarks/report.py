"""The page that a run is worth: what was measured, on what, and whether the budgets were met."""

import datetime as dt
import os
import platform
import zlib
from importlib import metadata
from pathlib import Path

from tests.benchmarks.budgets import BUDGETS
from tests.benchmarks.contender import BOTH
from tests.benchmarks.data import name_of
from tests.benchmarks.plots import PLOTS
from tests.benchmarks.running import LONG_RUNS, LONG_SECONDS

PACKAGES = (
    "django-sitemapkit",
    "django",
    "django-icv-sitemaps",
    "django-static-sitemaps",
    "psycopg",
    "isal",
    "scrapy",
    "zlib-ng",
    "celery",
)

HEAD = """\
# Benchmarks

How fast builds, live pages, indexes, audits and crawls are, compared with
`django.contrib.sitemaps` and other packages. `python -m tests.benchmarks --write` wrote this page;
all figures are from the run described here.

## What is measured

The data is a table of products with a category, a slug (one in twenty is not ASCII), a date with
microseconds, and a body of 1,024 characters. A URL is made of the category and the slug. The rows
are the same on each database.

- Each run is a separate process, and another process prepares it. Contenders that are compared
  take turns. A figure is the median of {runs}, of {long_runs} if a run takes over {long_seconds}
  seconds.
- **Builds** are complete: they read the rows, and write and compress files of 50,000 URLs. Ours
  also plans, reads each file back, records and publishes it. The limit, which copies ready XML to
  `gzip`, neither quotes nor splits nor checks anything. The other packages run as their
  documentation says, with their default compression. `django.contrib.sitemaps` writes no files;
  for it we chose level 6. npm's sitemap writes a few bytes at a time, which we collect into blocks
  before node compresses them.
- After each build all its files are read, outside of the measured time. A contender that does not
  list every row, or lists other URLs than the others, has failed. URLs that a contender did not
  quote are quoted for that comparison.
- **Live pages and indexes** are requested from the WSGI application in the same process, after a
  first request that is not measured. The database connection stays open. Each run makes up to
  seven requests within five seconds, or alternately seven to the first and seven to the last page;
  the run's figure is the median.
- **Validating** reads gzip files of 50,000 URLs that our writer wrote. The other contender inflates
  the same files and parses them with expat, with handlers that do nothing.
- **Audits** fetch all pages that a published site lists, within the process. The usual page is
  made by a Django template from one query; it has 27 kB and 100 links. Django's test client gets
  the same pages in another process, and does nothing with them. The many pages are small ones: a
  fifth as many as rows, and those of crawls have ten links each.
- **Crawls over HTTP** follow the links of a server in a process of its own, whose 4,000 pages have
  10 kB and 50 links. Scrapy has its default settings but for the number
  of requests at a time, without a delay and without a log, and obeys robots.txt; its spider takes
  the title and follows what `LinkExtractor` finds. Ours also stores each URL in the database.
- **CPU seconds** are the processor time of the process that does the work, and **CPU of all** that
  of all processes of the machine, which has nothing else to do.
- **Value by value** is the way of sections whose rows cannot be read as text, for rows that could.
- **Peak memory** is how much the process grows beyond its memory at the start of the work. For
  worker processes it adds, for each of them, the memory of the largest one, less what the parent
  had. For the limit and for npm it is the whole memory of both processes.
- **Overridden** is one row in ten, spread evenly: 60 of 100 overrides name a path and 40 an
  object; 20 exclude the URL, 50 set its priority, 30 its changefreq. The files have to list all
  rows except the excluded ones, with exactly as many tags as were set. Building the filter that
  finds overrides is part of the measured time. The memory of an override is measured in two ways:
  by the peaks, which differ by megabytes from run to run, and by what the process still has
  allocated after the build, filter included. `tracemalloc` counts the latter in separate builds,
  whose time is not compared.
"""

RUN = """\
## Run it

```sh
tox run -e bench
tox run -e bench -- --rows 100000 --big 0 --database sqlite
tox run -e bench -- --budget 7
tox run -e bench -- --only 'audit*' --only 'crawl*' --resume
```

PostgreSQL is expected at `TEST_POSTGRESQL`, by default `postgresql://postgres@127.0.0.1:5432`, and
with `--database mariadb`, for which mysqlclient has to be installed, MariaDB at `TEST_MARIADB`, by
default `mysql://root@127.0.0.1:3306`. The databases named `sitemapkit_bench_…` are created there
and kept; they take 1.5 kB per row. Set `--folder` for the SQLite databases and the built files.
npm's sitemap takes part if `node` and `npm` are installed; the package itself is installed in that
folder.
"""


def report(bench):
    """Return the page as Markdown."""
    parts = [
        HEAD.format(
            runs=_count(bench.options.runs, "run"),
            long_runs=min(LONG_RUNS, bench.options.runs),
            long_seconds=LONG_SECONDS,
        ),
        _machine(bench),
        _budgets(bench),
        _contenders(bench),
        RUN,
    ]
    return "\n".join(parts)


class Figures:
    """The medians on one database, for a bound to make its value of."""

    def __init__(self, bench, database):
        self.bench = bench
        self.database = database
        self.sizes = [
            size
            for size in bench.options.sizes
            if size != "big" or database in bench.options.big_on
        ]

    def __call__(self, name, size, figure):
        """Return a median; raises KeyError where it was not measured, or not in every run."""
        outcome = self.bench.outcomes[name, self.database, self.bench.options.sizes[size]]
        if outcome.error:
            raise KeyError(figure)
        return outcome.figures[figure]


def verdict(bound, figures):
    """Return the measured figure and "met" or "RED"; nothing and "not measured" else."""
    try:
        value = bound.value(figures)
    except (KeyError, ValueError):
        return "", "not measured"
    return bound.in_words(value), "met" if bound.holds(value) else "**RED**"


def _budgets(bench):
    rows = []
    reasons = {}
    for budget in bench.options.budgets:
        for bound in budget.bounds:
            for database in bound.databases:
                if database not in bench.options.database:
                    continue
                value, word = verdict(bound, Figures(bench, database))
                sign = "≥" if bound.at_least else "≤"
                limit = f"{sign} {bound.in_words(bound.bound)}"
                rows.append(
                    (budget.number, budget.title, bound.label, database, limit, value, word)
                )
                if budget.reason and word == "**RED**":
                    reasons[budget.number] = budget.reason
    heads = ("", "Budget", "Of", "Database", "Bound", "Measured", "")
    red = sum(row[-1] == "**RED**" for row in rows)
    met = sum(row[-1] == "met" for row in rows)
    summary = f"Of {_count(len(rows), 'bound')}, {met} are met, {red} are red, and"
    missing = f"{len(rows) - met - red} were not measured."
    left = [f"budget {budget.number}" for budget in BUDGETS if budget not in bench.options.budgets]
    left += [name for name in BOTH if name not in bench.options.database]
    if left:
        missing += f" Not part of this run: {', '.join(left)}."
    why = "".join(f"- Budget {number}: {reason}\n" for number, reason in reasons.items())
    why = f"\nWhy they are red:\n\n{why}" if why else ""
    corrected = "".join(
        f"- Budget {budget.number}: {budget.corrected}\n"
        for budget in bench.options.budgets
        if budget.corrected
    )
    if corrected:
        why += f"\nBounds that were corrected, as they were before, and why:\n\n{corrected}"
    return f"## Budgets\n\n{summary} {missing}\n\n{_table(heads, rows)}{why}"


def _contenders(bench):
    heads = ("Contender", "Name", "Seconds", "URLs a second", "Ratio", "Peak MB", "gzip MB")
    processors = ("CPU seconds", "CPU of all")
    images = "\n".join(f"![{title}](images/{name})" for name, (title, *_) in PLOTS.items())
    parts = [
        "## Contenders\n\nSeconds are medians. The ratio is to the first row of the same table.\n",
        f"{images}\n",
    ]
    groups = {}
    for outcome in bench.outcomes.values():
        key = (outcome.contender.kind, outcome.rows, outcome.database)
        groups.setdefault(key, []).append(outcome)
    for (kind, rows, database), outcomes in groups.items():
        title = {
            "build": "Builds",
            "queue": "Builds by a task queue",
            "articles": "Builds of a route with a year, and UUIDs as keys",
            "rebuild": "Builds after one row has changed",
            "sites": "Builds of many sites after none has changed",
            "overlapping": "Builds of two sections that share some URLs",
            "traced": "Builds whose allocations are counted",
            "page": "Live pages",
            "first": "First requests",
            "pages": "First and last live page",
            "index": "Indexes",
            "inspect": "What becomes of a URL, in the admin",
            "compare": "The changes of a build, in the admin",
            "audit": "Audits within the process",
            "audit-many": "Audits of many pages",
            "crawl": "Crawls over HTTP",
            "crawl-many": "Crawls of many pages",
            "validate": "Validating",
        }[kind]
        own = {
            "page": ("First byte", "CPU seconds"),
            "compare": ("First answer", "Shown"),
            "pages": ("First page", "Last to first"),
            "rebuild": ("To full", "None changed, to full"),
            "validate": ("CPU seconds", "XML MB", "MB a CPU second", "Inflating"),
        }.get(kind, ())
        names = (*heads, *processors) if kind == "build" else (*heads[:3], *heads[4:6], *own)
        if kind == "articles":
            names = (*heads[:6], *processors)
        if kind == "queue":
            names = (*heads[:6], *processors, "Worker MB")
        if kind.startswith(("audit", "crawl")):
            names = (*heads[:6], "CPU seconds")
        if kind == "traced":
            names = (*heads[:3], "Allocated MB", "Kept MB")
        base = outcomes[0].figures.get("seconds")
        table = _table(names, [_line(outcome, base, names) for outcome in outcomes])
        parts.append(f"### {title}, {rows:,} rows, {bench.servers[database]}\n\n{table}")
    return "\n".join(parts)


def _line(outcome, base, names):
    """Return one contender's cells."""
    title = (outcome.contender.title, f"`{outcome.contender.name}`")
    if outcome.error or outcome.unavailable:
        said = f"failed: {outcome.error}" if outcome.error else outcome.unavailable
        return (*title, said.replace("|", "\\|"), *[""] * (len(names) - 3))
    figures = outcome.figures
    cells = {
        "Seconds": f"{figures['seconds']:.4g}",
        "URLs a second": f"{figures['urls'] / figures['seconds']:,.0f}",
        "Ratio": f"{figures['seconds'] / base:.3g}" if base else "",
        "Peak MB": f"{figures['peak'] / 1e6:.1f}" if "peak" in figures else "",
        "Allocated MB": f"{figures.get('traced', 0) / 1e6:.2f}",
        "Kept MB": f"{figures.get('kept', 0) / 1e6:.3f}",
        "CPU seconds": f"{figures.get('cpu', 0):.4g}",
        "CPU of all": f"{figures.get('machine', 0):.4g}",
        "Worker MB": f"{figures.get('worker MB', 0):.1f}",
        "gzip MB": f"{figures.get('bytes', 0) / 1e6:.2f}",
        "First byte": f"{figures.get('first byte', 0):.4g}",
        "First answer": f"{figures.get('first answer', 0):.3g}",
        "Shown": f"{figures.get('shown', 0):.3g}",
        "First page": f"{figures.get('first page', 0):.4g}",
        "Last to first": f"{figures.get('last to first', 0):.3g}",
        "To full": f"{figures.get('to full', 0):.3g}",
        "XML MB": f"{figures.get('xml', 0):.1f}",
        "MB a CPU second": f"{figures.get('rate', 0):.3g}",
        "Inflating": f"{figures['inflating']:.3g} s" if "inflating" in figures else "",
        "None changed, to full": f"{figures.get('untouched to full', 0):.3g}",
    }
    return (*title, *(cells[name] for name in names[2:]))


def _table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _machine(bench):
    sizes = ", ".join(name_of(rows) for rows in bench.options.sizes.values())
    facts = [
        ("Date", f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"),
        ("Processor", f"{_processor()}, {_count(_cores(), 'core')}"),
        ("Memory", _memory()),
        ("System", _system()),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("zlib", zlib.ZLIB_RUNTIME_VERSION),
        *((name, _version(name)) for name in PACKAGES),
        *(("database", server) for server in bench.servers.values()),
        ("npm sitemap", bench.npm.get("BENCHMARKS_NPM_VERSION", "none")),
        ("Rows", sizes),
        ("Runs", bench.options.runs),
    ]
    return f"## The machine\n\n{_table(('', ''), facts)}"


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        if name != "django-sitemapkit":
            return "none"
    from django_sitemapkit import __version__

    return __version__


def _processor():
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory():
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"


def _system():
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.platform(terse=True)
    return f"{name}, {platform.system()} {platform.release()}"


def _count(number, word):
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
