"""``python3 -m example_project``: the environment, the data, the sitemaps built and read back."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

MANAGE = Path(__file__).resolve().parent / "manage.py"
STEPS = (
    ("Bring the database up to date", ["migrate", "--no-input"]),
    ("Load the gazetteer", ["load_gazetteer"]),
    ("Build the sitemaps and publish them", ["build_sitemaps"]),
    ("Rename a city, and build again", ["rename_city"]),
    ("Audit a sample of the pages it lists", ["audit_sitemaps", "--sample", "20"]),
    ("Crawl the articles, and compare them with it", ["crawl_sitemaps", "--below", "/articles/"]),
    ("Serve what is published and read it back", ["read_sitemaps"]),
)


def main() -> int:
    """Run every step; return the exit code of the first that fails, or 0."""
    total = len(STEPS) + 1
    _parser(total).parse_args()
    began = time.monotonic()
    _heading(1, total, "Create the environment")
    from example_project.bootstrap import ensure_environment  # noqa: PLC0415  (after the heading)

    python = ensure_environment(["example"])
    # Else what a step writes to stdout comes behind its warnings, where output is a file.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    for number, (title, arguments) in enumerate(STEPS, start=2):
        _heading(number, total, title)
        command = [python, MANAGE, *arguments]
        code = subprocess.run(command, check=False, env=environment).returncode  # noqa: S603
        if code:
            print(f"\nStopped at step {number} of {total}: {title.lower()} (exit code {code}).")
            return code
    print(f"\nDone in {time.monotonic() - began:.1f} s.")
    return 0


def _parser(total: int) -> argparse.ArgumentParser:
    """Return what answers ``--help``, and refuses arguments: there are none."""
    titles = ["Create the environment", *(title for title, _ in STEPS)]
    return argparse.ArgumentParser(
        prog="python3 -m example_project",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=f"Build the sitemaps of a gazetteer and read them back, in {total} steps:\n\n"
        + "\n".join(f"  {number}. {title}" for number, title in enumerate(titles, start=1)),
        epilog="It takes no arguments. DATABASE_URL and SITEMAPKIT_BASE_URL in the environment"
        "\nchoose another database and address.",
    )


def _heading(number: int, total: int, title: str) -> None:
    # Flushed, or it would come after the output of the step where output is a file.
    print(f"\n[{number}/{total}] {title}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
