"""Run the tests, in an environment made for them: ``python3 -m tests [pytest's arguments]``."""

import os
import subprocess
import sys

from example_project.bootstrap import ROOT, ensure_environment


def main(arguments: list[str]) -> int:
    """Return pytest's own exit code."""
    python = ensure_environment(["test"])
    if not any(argument.startswith(("-n", "--numprocesses")) for argument in arguments):
        arguments = ["-n", "auto", *arguments]
    # Keep the tests as pytest rewrites them, which takes seconds, but outside the checkout.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    environment.setdefault("PYTHONPYCACHEPREFIX", str(python.parents[1] / "bytecode"))
    try:
        return subprocess.call([str(python), "-m", "pytest", *arguments], cwd=ROOT, env=environment)
    except KeyboardInterrupt:  # pytest has said so itself
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
