"""``python3 -m example_project``: the environment, the data, the sitemaps built and read back."""

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
    ("Serve what is published and read it back", ["read_sitemaps"]),
)


def main() -> int:
    """Run every step; return the exit code of the first that fails, or 0."""
    began = time.monotonic()
    total = len(STEPS) + 1
    _heading(1, total, "Make the environment")
    from example_project.bootstrap import ensure_environment  # noqa: PLC0415  (after the heading)

    python = ensure_environment(["example"])
    for number, (title, arguments) in enumerate(STEPS, start=2):
        _heading(number, total, title)
        code = subprocess.run([python, MANAGE, *arguments], check=False).returncode  # noqa: S603
        if code:
            print(f"\nStopped at step {number} of {total}: {title.lower()} (exit code {code}).")
            return code
    print(f"\nDone in {time.monotonic() - began:.1f} s.")
    return 0


def _heading(number: int, total: int, title: str) -> None:
    # Flushed, or it would come after the output of the step where output is a file.
    print(f"\n[{number}/{total}] {title}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
