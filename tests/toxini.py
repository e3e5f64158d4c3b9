"""The environments of tox.ini, without tox."""

import re
from configparser import ConfigParser
from itertools import product
from pathlib import Path

TOX_INI = Path(__file__).resolve().parent.parent / "tox.ini"


def read():
    """Return tox.ini as a parser."""
    parser = ConfigParser(interpolation=None)
    parser.read(TOX_INI, encoding="utf-8")
    return parser


def expanded(names):
    """Return names with braces as tox expands them: ``a-{b,c}`` as ``a-b`` and ``a-c``."""
    found = []
    for name in re.findall(r"(?:[^\s,{]|\{[^}]*\})+", names):
        parts = [part.strip("{}").split(",") for part in re.findall(r"\{[^}]*\}|[^{]+", name)]
        found += ["".join(map(str.strip, each)) for each in product(*parts)]
    return found


def environments():
    """Return all environments of ``env_list``."""
    return expanded(read()["tox"]["env_list"])


def pairs():
    """Return the supported pairs of a Python and a Django, as ``("3.12", "6.1")``."""
    matches = [re.fullmatch(r"py(\d)(\d+)-django(\d)(\d)", name) for name in environments()]
    return [(f"{m[1]}.{m[2]}", f"{m[3]}.{m[4]}") for m in matches if m]
