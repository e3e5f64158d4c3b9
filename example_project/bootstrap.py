"""Make and keep ``.venv``, with nothing but the standard library, for the commands of the README.

Both commands run under whatever ``python3`` the reader has, and need more than that one holds.
They call `ensure_environment` first and go on with the Python it returns. What each of them needs
adds up in one environment, so they work in either order and the second one only tops it up.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
STAMP = "sitemapkit-environment.json"
"""What an environment says of itself: what is in it, or that it is not finished."""

_PIP_WITH_GROUPS = "pip>=25.1"
_SECTIONS_THAT_INSTALL = ("build-system", "project", "dependency-groups")
_TAIL_OF_A_FAILURE = 40

if sys.version_info < OLDEST:  # anyone who has an older one is informed, not shown a traceback
    raise SystemExit(
        "This needs Python {}.{} or newer; {} is Python {}.{}.".format(
            *OLDEST, sys.executable, *sys.version_info[:2]
        )
    )


def ensure_environment(groups: Sequence[str], folder: Path | None = None) -> Path:
    """Return the Python of an environment that holds the package and these dependency groups.

    ``groups`` are names from ``[dependency-groups]`` of pyproject.toml; those that earlier calls
    asked for stay installed. ``folder`` is ``.venv`` beside pyproject.toml unless given. Where
    nothing is to do it takes some hundredths of a second. Raises `SystemExit`, with the way out,
    where the environment cannot be made.
    """
    folder = folder or ROOT / ".venv"
    python = _python_of(folder)
    found = _version_of(python)
    stamp = _read_stamp(folder)
    usable = found == _own_version() and not stamp.get("unfinished")
    ground, declared = _read_ground()
    if usable and stamp.get("ground") == ground and {*groups} <= {*stamp["groups"]}:
        _say(f"The environment is ready: {_short(folder)} (Python {found}).")
        return python

    began = time.monotonic()
    if usable:
        wanted = {*groups} | ({*stamp.get("groups", ())} & declared)
        _write_stamp(folder, unfinished=True)
    else:
        wanted = {*groups}
        _make(folder, found)
    _install(python, sorted(wanted), folder)
    _write_stamp(folder, ground=ground, groups=sorted(wanted))
    _say(f"The environment is ready after {time.monotonic() - began:.1f} s.")
    return python


def _make(folder: Path, found: str | None) -> None:
    """Make the environment again, whatever is there."""
    if importlib.util.find_spec("ensurepip") is None:
        package = f"python{_own_version()}-venv"
        raise SystemExit(
            f"{sys.executable} cannot make virtual environments: its module ensurepip is missing.\n"
            f"On Debian and Ubuntu that is a package of its own: apt install {package}\n"
            "(with sudo, where you are not root). Then run the same command again."
        )
    why = ""
    if found and found != _own_version():
        why = f", again: the one there is of Python {found}"
    elif folder.exists():
        why = ", again: the one there is broken or was never finished"
    _say(f"Making {_short(folder)} with Python {_own_version()}{why} …")
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _write_stamp(folder, unfinished=True)
    # Called from inside an environment, a new one is made by the Python below it.
    base = getattr(sys, "_base_executable", None) or sys.executable
    _run([base, "-m", "venv", str(folder)], "No virtual environment could be made.")


def _install(python: Path, groups: Sequence[str], folder: Path) -> None:
    pip = [str(python), "-m", "pip", "install"]
    _say(f"Installing the package, with what it needs for: {', '.join(groups)} …")
    arguments = [argument for group in groups for argument in ("--group", group)]
    try:
        _run([*pip, "--upgrade", _PIP_WITH_GROUPS], "pip could not be brought up to date.")
        _run(
            [*pip, "--editable", str(ROOT), *arguments],
            "The package could not be installed. Is there a network? A next run goes on from here.",
        )
    except SystemExit:
        # pip has said no and undone what it had begun. Killed, it leaves anything: then the
        # environment stays marked as unfinished.
        (folder / STAMP).unlink()
        raise


def _run(command: list[str], failure: str) -> None:
    """Run a command, its current line shown on a terminal, all of its last lines if it fails."""
    lines: list[str] = []
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUNBUFFERED": "1"}
    # Both would lead pip, or the environment's Python, out of the environment.
    for name in ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX"):
        environment.pop(name, None)
    with subprocess.Popen(  # noqa: S603
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            _show(line.strip())
        code = process.wait()
    _show("")
    if code:
        shown = "".join(lines[-_TAIL_OF_A_FAILURE:])
        raise SystemExit(f"{shown}\n{' '.join(command)}\nended with exit code {code}.\n{failure}")


def _show(line: str) -> None:
    """Show what a long step is at, in one line that the next one overwrites."""
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns - 3
        sys.stdout.write(f"\r\x1b[K  {line[:width]}" if line else "\r\x1b[K")
        sys.stdout.flush()


def _say(line: str) -> None:
    print(line, flush=True)


def _short(folder: Path) -> str:
    return str(folder.relative_to(ROOT)) if folder.is_relative_to(ROOT) else str(folder)


def _python_of(folder: Path) -> Path:
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def _own_version() -> str:
    return "{}.{}".format(*sys.version_info)


def _version_of(python: Path) -> str | None:
    """Return ``3.12`` of a Python that runs, is an environment's and has pip, else None."""
    question = (
        "import pip, sys; sys.prefix != sys.base_prefix and print('%d.%d' % sys.version_info[:2])"
    )
    try:
        answer = subprocess.run(  # noqa: S603
            [str(python), "-I", "-c", question], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip() or None


def _read_ground() -> tuple[str, set[str]]:
    """Return a digest of all that decides what is installed and where, and the groups' names."""
    import tomllib  # noqa: PLC0415  (an older Python must get as far as the sentence above)

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [str(ROOT), *(declared.get(section) for section in _SECTIONS_THAT_INSTALL)]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return digest, set(declared["dependency-groups"])


def _read_stamp(folder: Path) -> dict[str, Any]:
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _write_stamp(folder: Path, **facts: object) -> None:
    (folder / STAMP).write_text(json.dumps(facts) + "\n", encoding="utf-8")
