#!/usr/bin/env python3
"""Django's command line for the example project."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Run one management command with the repository's root on the import path."""
    here = Path(__file__).resolve().parent
    # Python puts this folder first; from it every module could be imported under a second name.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    sys.path.insert(0, str(here.parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    try:
        from django.core.management import execute_from_command_line  # noqa: PLC0415
    except ImportError as error:
        raise SystemExit(
            f"{error}. Run `python3 -m example_project` in the repository once: it makes the"
            " environment; then use the Python of that environment."
        ) from error
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
