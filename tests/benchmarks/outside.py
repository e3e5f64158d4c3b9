"""What is measured of no Django at all: the limit of the machine, and a writer of another world.

Their memory is that of all their processes, whole.
"""

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

from django.conf import settings

from tests.benchmarks.measuring import LINUX, Unavailable, busy, peak_of

# To the second, as the package writes it: what is longer takes gzip longer.
DATE = """to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"')"""

# Nothing is quoted, split or checked: no program that does more can be expected to take less.
READY = f"""
    COPY (
        SELECT '<url><loc>{settings.SITE}/' || category || '/' || slug || '/</loc><lastmod>'
            || {DATE} || '</lastmod></url>'
        FROM benchmarks_product ORDER BY id
    ) TO STDOUT
"""
JSON = f"""
    COPY (
        SELECT json_build_object('url', '/' || category || '/' || slug || '/', 'lastmod', {DATE})
        FROM benchmarks_product ORDER BY id
    ) TO STDOUT
"""
SCRIPT = Path(__file__).with_name("sitemap.mjs")


def require_psql():
    """Raise Unavailable where the programs are missing that make the limit."""
    for program in ("psql", "gzip"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not installed")


def limit_build():
    """Let the database write the XML, and gzip compress it beside it."""
    return _piped(READY, ["gzip", "-6"], Path(settings.FOLDER, "sitemap.xml.gz"))


def require_npm():
    """Raise Unavailable unless the parent has installed npm's sitemap."""
    require_psql()
    folder = os.environ.get("BENCHMARKS_NPM", "")
    if not folder:
        raise Unavailable(os.environ.get("BENCHMARKS_NO_NPM", "npm's sitemap is not installed"))
    # Node looks for packages beside the script.
    shutil.copy(SCRIPT, folder)


def npm_build():
    """Let npm's sitemap write what the database hands out as JSON."""
    script = Path(os.environ["BENCHMARKS_NPM"], SCRIPT.name)
    return _piped(JSON, ["node", str(script), settings.SITE, settings.FOLDER], Path(os.devnull))


def _piped(statement, command, path):
    """Pipe a statement's rows into a command; return the seconds and the peak of both."""
    psql = ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", f"--command={statement}"]
    began, began_machine = time.perf_counter(), busy()
    with path.open("wb") as file:
        source = subprocess.Popen(
            [*psql, os.environ["BENCHMARKS_DATABASE"]], stdout=subprocess.PIPE
        )
        sink = subprocess.Popen(command, stdin=source.stdout, stdout=file)
        source.stdout.close()
        peaks = {source.pid: 0, sink.pid: 0}
        watch = threading.Thread(target=_watch, args=(peaks, sink), daemon=True)
        watch.start()
        codes = [sink.wait(), source.wait()]
    seconds, machine = time.perf_counter() - began, busy() - began_machine
    watch.join()
    if any(codes):
        raise RuntimeError(f"psql | {command[0]} ended with {codes}.")
    found = {"peak": sum(peaks.values()), "machine": machine} if LINUX else {}
    return {"seconds": seconds} | found


def _watch(peaks, process):
    """Note the peaks of processes while one of them runs; an ended one cannot be asked."""
    while process.returncode is None:
        for pid in peaks:
            peaks[pid] = max(peaks[pid], peak_of(pid))
        time.sleep(0.05)
