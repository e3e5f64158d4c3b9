"""Kill builders at random while crawlers read, and see that no crawler ever notices.

    python -m tests.killloop --database sqlite|postgresql|mariadb [--storage disk|database|s3]
                             [--kills 200] [--seconds 900] [--seed X]

Two builders work side by side; most are killed by SIGKILL, some paused until another has taken
over, and the clocks of half of them are an hour wrong. A writer changes the rows, two crawlers
follow the index over HTTP, and a reader does in the exported files. With ``--storage database`` the
files are rows, but for the exported ones. With ``--storage s3`` all are on a server of S3's
interface, which the run starts; exported files are read from there.

Ends with 1 at the first response that is not complete and valid, the first child of an index that
is not there, and the first pass that misses a URL of all generations; what was answered is kept.
The same seed gives the same rows, fates and moments; how the processes meet is the machine's.
"""

import argparse
import random
import sys
import time

from tests.killloop.project import SERVERS, Project


def main(arguments=None):
    """Run once; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.killloop")
    parser.add_argument("--database", choices=["sqlite", *SERVERS], default="sqlite")
    parser.add_argument("--storage", choices=["disk", "database", "s3"], default="disk")
    parser.add_argument("--kills", type=int, default=200, help="end after so many")
    parser.add_argument("--seconds", type=float, default=900, help="end after so long")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args(arguments)
    say(f"seed {options.seed} on {options.database}, files on {options.storage}")
    project = Project(options.database, options.storage)
    try:
        with project:
            say(run(project, options))
    except Exception as error:  # noqa: BLE001  whatever it is, the seed and the folder are reported
        say(f"FAILED, seed {options.seed}, see {project.folder}: {type(error).__name__}: {error}")
        return 1
    return 0


def run(project, options):
    """Let all processes meet, then check what is left; return the figures in words."""
    from django.core.management import call_command

    from django_sitemapkit.models import Build
    from tests.killloop.aftermath import check_aftermath
    from tests.killloop.killing import Slot, Toll
    from tests.killloop.rows import populate
    from tests.killloop.settings import LEASE_SECONDS

    began = time.monotonic()
    seed = options.seed
    populate(random.Random(seed))
    first = time.monotonic()
    call_command("build_sitemaps", verbosity=0)
    typical = time.monotonic() - first
    project.start("web")
    writer = project.start("writer", seed)
    crawlers = [project.start("crawler", seed + n) for n in (1, 2)]
    reader = project.start("reader", seed + 5)
    toll = Toll(options.kills, options.seconds, typical)
    slots = [Slot(project.start("builder", n), toll, seed + n, LEASE_SECONDS) for n in (3, 4)]
    watch(project, toll, slots)
    project.end(writer)
    counted = [project.end(crawler) for crawler in crawlers]
    exported = project.end(reader)
    check_aftermath()
    pruned = Build.objects.exclude(pruned_at=None).count()
    seconds = time.monotonic() - began
    return f"{report(toll, counted, exported)}; {pruned} builds pruned; {seconds:.0f} s"


def watch(project, toll, slots):
    """Let the builders build until it is over; raise RuntimeError at the first that goes wrong."""
    for slot in slots:
        slot.start()
    while any(slot.is_alive() for slot in slots):
        time.sleep(0.2)
        if wrong := project.fallen() or "; ".join(toll.bugs):
            toll.stopped.set()
            raise RuntimeError(wrong)


def report(toll, counted, exported):
    """Return the figures of a run."""
    builds, kills, at_work, pauses, jumps = (
        toll.counts[name] for name in ("builds", "kills", "kills at work", "pauses", "jumps")
    )
    passes, late, reads = (
        sum(each[name] for each in counted) for name in ("passes", "late", "reads")
    )
    generations = max(each["generations"] for each in counted)
    codes = ", ".join(f"{code}: {times}" for code, times in sorted(toll.codes.items()))
    return (
        f"all valid: {builds} builds (by exit code {codes}), {kills} kills, {at_work} of them with"
        f" the lease held, {pauses} pauses, {jumps} wrong clocks; {reads:,} reads in {passes:,}"
        f" passes, {late} more too slow to count; {generations} generations seen;"
        f" {exported['reads']:,} reads of exported files in {exported['passes']:,} passes,"
        f" {exported['late']} more too slow to count"
    )


def say(text):
    """Write one line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
