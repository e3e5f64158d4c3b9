"""Run the tests, in an environment made for them: ``python3 -m tests [pytest's arguments]``."""

import subprocess
import sys

from example_project.bootstrap import ROOT, ensure_environment


def main(arguments: list[str]) -> int:
    """Return pytest's own exit code."""
    python = ensure_environment(["test"])
    if not any(argument.startswith(("-n", "--numprocesses")) for argument in arguments):
        arguments = ["-n", "auto", *arguments]
    try:
        return subprocess.call([str(python), "-m", "pytest", *arguments], cwd=ROOT)
    except KeyboardInterrupt:  # pytest has said so itself
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
