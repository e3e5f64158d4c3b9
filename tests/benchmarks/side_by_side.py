"""Crawl documentation of Debian with the package and with others, and compare what they find.

    python -m tests.benchmarks.side_by_side [--package NAME] [--tree FOLDER] [--runs 3]
                                            [--folder PATH] [--write FILE]

Serves the HTML files of packages of Debian, which apt downloads and dpkg extracts. LinkChecker and
Scrapy are installed into an environment of their own; who cannot be installed does not take part.
They crawl by turns, each in a process of its own, whose processor time and largest size the kernel
tells. Prints a table of medians, what each found that the others did not, and whether the bounds
are met. A bound that is not met is a result: the exit code is 0.
"""

import argparse
import csv
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPIDER = Path(__file__).with_name("spider.py")

CONNECTIONS = "8"
"""Requests at the same time; wget makes one."""

PACKAGES = ("postgresql-doc-15", "python-django-doc")
"""What is crawled by default: 1,861 pages."""

SHOWN = 5
"""URLs that are printed of each difference."""

MAX_CPU = 0.5
"""Processor time of a crawl, as a part of Scrapy's."""

MAX_MEMORY = 100_000_000
"""Bytes that the process of a crawl has at its peak."""


class Unavailable(Exception):
    """A peer or the tree cannot be had here; the text says why."""


class Crawler:
    """A program that crawls; what it found is read from what it writes into a folder."""

    name = ""

    def __init__(self, folder):
        self.folder = folder / self.name.lower().replace(" ", "-")
        self.folder.mkdir(parents=True, exist_ok=True)

    def install(self):
        """Make the program ready. Raises Unavailable."""

    def command(self, url):
        """Return the command that crawls a site."""
        raise NotImplementedError

    def found(self):
        """Return the URLs of pages and those of broken links; None for what is not listed."""
        raise NotImplementedError

    def is_page(self, url):
        """Return whether a URL is that of a web page of the tree, by its name."""
        return url.startswith(self.home) and url.endswith(("/", ".html"))

    def run(self, url):
        """Crawl, and return the figures and what was found."""
        self.home = url
        with (self.folder / "output").open("wb") as output:
            began = time.perf_counter()
            process = subprocess.Popen(self.command(url), stdout=output, stderr=output, cwd=ROOT)
            _, _, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
            process.returncode = 0  # Broken links are an error to some of them.
        figures = {
            "seconds": seconds,
            "cpu": usage.ru_utime + usage.ru_stime,
            "memory": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        }
        return figures, *self.found()


class Kit(Crawler):
    """This package, without a project."""

    name = "django-sitemapkit"

    def command(self, url):
        """Return the command of the console script."""
        command = [sys.executable, "-m", "django_sitemapkit", "crawl", url, "--allow-private"]
        return [*command, f"--concurrency={CONNECTIONS}", f"--output={self.folder / 'site'}"]

    def found(self):
        """Read the tables."""
        pages = self._rows("pages.csv", {"page", "duplicate", "noindex"})
        return pages, self._rows("links.csv", {"broken"})

    def _rows(self, name, outcomes):
        with (self.folder / "site" / name).open(encoding="utf-8-sig", newline="") as file:
            return {row["url"] for row in csv.DictReader(file) if row["outcome"] in outcomes}


class Installed(Crawler):
    """A program of PyPI, in an environment that is shared."""

    requirement = ""

    def install(self):
        """Install it with pip."""
        environment = self.folder.parent / "environment"
        if not environment.exists():
            venv.create(environment, with_pip=True)
        self.bin = environment / "bin"
        pip = [self.bin / "python", "-m", "pip", "install", "--quiet", self.requirement]
        if subprocess.run(pip, check=False).returncode:
            raise Unavailable(f"pip cannot install {self.requirement}")


class LinkChecker(Installed):
    """LinkChecker: each URL is listed, with its status."""

    name = "LinkChecker"
    requirement = "linkchecker>=10.5"

    def command(self, url):
        """Return the command; what it lists goes into a CSV file."""
        file = f"csv/utf-8/{self.folder / 'links.csv'}"
        command = [self.bin / "linkchecker", "--config", self.folder / "linkcheckerrc"]
        command += ["--verbose", "--no-status", "--file-output", file, "--output=none"]
        return [*command, "--threads", CONNECTIONS, url]

    def install(self):
        """Let it write its file: started by root, it becomes nobody."""
        super().install()
        self.folder.chmod(0o777)
        unlimited = "[checking]\nmaxrequestspersecond=10000\n"  # Else ten, which takes longer.
        (self.folder / "linkcheckerrc").write_text(unlimited, encoding="utf-8")

    def found(self):
        """Read the CSV file."""
        pages, broken = set(), set()
        with (self.folder / "links.csv").open(encoding="utf-8", newline="") as file:
            lines = (line for line in file if not line.startswith("#"))
            for row in csv.DictReader(lines, delimiter=";"):
                url = row["url"].partition("#")[0]
                if row["valid"] != "True":
                    broken |= {url} if url.startswith(self.home) else set()
                elif self.is_page(url):
                    pages.add(url)
        return pages, broken


class Scrapy(Installed):
    """Scrapy, with the spider of its documentation, and a list of what it found."""

    name = "Scrapy"
    requirement = "scrapy>=2.12"

    def command(self, url):
        """Return the command, with the usual settings but for the requests at a time."""
        settings = {
            "CONCURRENT_REQUESTS_PER_DOMAIN": CONNECTIONS,
            "CONCURRENT_REQUESTS": CONNECTIONS,
            "DOWNLOAD_DELAY": 0,
            "LOG_LEVEL": "ERROR",
            "HTTPERROR_ALLOW_ALL": True,
        }
        options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        output = self.folder / "found.json"
        spider = ["runspider", SPIDER, "-a", f"base={url.rstrip('/')}", "-a", f"output={output}"]
        return [self.bin / "scrapy", *spider, *options]

    def found(self):
        """Read what the spider wrote."""
        statuses = json.loads((self.folder / "found.json").read_text())
        pages = {url for url, status in statuses.items() if status == 200 and self.is_page(url)}
        return pages, {url for url, status in statuses.items() if status >= 400}


class Wget(Crawler):
    """``wget --spider``, which makes one request at a time."""

    name = "wget --spider"

    def install(self):
        """Find it."""
        if shutil.which("wget") is None:
            raise Unavailable("wget is not installed")

    def command(self, url):
        """Return the command."""
        command = ["wget", "--spider", "--recursive", "--level=inf", "--no-verbose", "--no-parent"]
        return [*command, "--no-directories", f"--directory-prefix={self.folder}", url]

    def found(self):
        """Read the log."""
        log = (self.folder / "output").read_text(errors="replace")
        pages = set(filter(self.is_page, re.findall(r"URL: ?(\S+) ", log)))
        return pages, set(re.findall(r"^(http\S+):\n.*broken link!!!", log, re.MULTILINE))


# The tree -----------------------------------------------------------------------------------------


def tree_of(packages, folder):
    """Return a folder with the HTML of packages of Debian, and a home page. Raises Unavailable."""
    root = folder / "tree"
    links = []
    for package in packages:
        documents = root / "usr" / "share" / "doc" / package
        if not documents.exists():
            _extract(package, root)
        index = next(_indexes(documents), None)
        if index is None:
            raise Unavailable(f"{package} has no index.html")
        links.append(f'<a href="{index.relative_to(root)}">{package}</a>\n')
    home = f"<!doctype html><title>Documentation</title>{''.join(links)}"
    (root / "index.html").write_text(home, encoding="utf-8")
    return root


def _extract(package, root):
    """Download a package and extract it."""
    root.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=root.parent) as downloads:
            apt = ["apt-get", "download", "--quiet", package]
            subprocess.run(apt, cwd=downloads, check=True, capture_output=True)
            (archive,) = Path(downloads).glob("*.deb")
            subprocess.run(["dpkg-deb", "--extract", archive, root], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"{package} cannot be downloaded: {error}") from error


def _indexes(documents):
    """Yield the home pages of some documentation, the highest first."""
    yield from sorted(documents.rglob("index.html"), key=lambda path: len(path.parts))


@contextmanager
def served(tree):
    """Serve a folder; yield its URL."""
    command = [sys.executable, "-m", "tests.benchmarks.static_server", str(tree)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **options) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/"
        finally:
            server.kill()


# What is printed ----------------------------------------------------------------------------------


def table(rows):
    """Return the figures of each crawler as lines of Markdown."""
    yield "| | pages | broken links | seconds | CPU seconds | peak, MB |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, figures, pages, broken in rows:
        yield (
            f"| {name} | {len(pages):,} | {len(broken):,} | {figures['seconds']:.1f}"
            f" | {figures['cpu']:.1f} | {figures['memory'] / 1_000_000:.0f} |"
        )


def differences(rows):
    """Yield what the first crawler found and each of the others did not, and the reverse."""
    (first, _, *found), *others = rows
    for name, _, *theirs in others:
        for what, ours, other in zip(("pages", "broken links"), found, theirs, strict=True):
            for only, missing, urls in ((first, name, ours - other), (name, first, other - ours)):
                if urls:
                    yield f"{what}: {len(urls):,} by {only} and not by {missing}:"
                    yield from (f"    {url}" for url in sorted(urls)[:SHOWN])


def bounds(rows):
    """Yield whether each bound is met."""
    by_name = {name: figures for name, figures, *_ in rows}
    ours = by_name[Kit.name]
    if Scrapy.name in by_name:
        part = ours["cpu"] / by_name[Scrapy.name]["cpu"]
        yield f"CPU: {part:.2f} of Scrapy's, at most {MAX_CPU}: {_word(part <= MAX_CPU)}"
    memory = ours["memory"] / 1_000_000
    yield f"memory: {memory:.0f} MB, at most 100: {_word(ours['memory'] <= MAX_MEMORY)}"


def _word(is_met):
    return "met" if is_met else "RED"


def say(text):
    """Print a text at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments=None):
    """Measure once."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.side_by_side")
    parser.add_argument("--package", action="append", help=f"of Debian; default: {PACKAGES}")
    parser.add_argument("--tree", type=Path, help="a folder of HTML files, instead of a package")
    parser.add_argument("--runs", type=int, default=3, help="of each crawler")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir(), "sitemapkit-side-by-side")
    )
    parser.add_argument("--write", type=Path, help="a file for the table")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        tree = options.tree or tree_of(options.package or PACKAGES, folder)
    except Unavailable as error:
        parser.exit(1, f"{error}\n")
    crawlers = list(_available([Kit(folder), LinkChecker(folder), Scrapy(folder), Wget(folder)]))
    rows = list(_measured(crawlers, tree, options.runs))
    lines = [*table(rows), "", *differences(rows), "", *bounds(rows)]
    say("\n".join(lines))
    if options.write is not None:
        options.write.write_text("\n".join(table(rows)) + "\n", encoding="utf-8")


def _available(crawlers):
    for crawler in crawlers:
        try:
            crawler.install()
            yield crawler
        except Unavailable as error:
            say(f"{crawler.name} does not take part: {error}.")


def _measured(crawlers, tree, runs):
    """Yield each crawler's name, medians and what it found in its last run."""
    results = {crawler.name: [] for crawler in crawlers}
    with served(tree) as url:
        for number in range(1, runs + 1):
            for crawler in crawlers:
                results[crawler.name].append(crawler.run(url))
                say(f"run {number} of {runs}: {crawler.name}")
    for name, each in results.items():
        figures = [figures for figures, *_ in each]
        medians = {key: statistics.median(one[key] for one in figures) for key in figures[0]}
        yield name, medians, *each[-1][1:]


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
