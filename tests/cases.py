"""Cases of which each run has some, and the thorough run the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def few(number: int, cases: Iterable[Any]) -> list[Any]:
    """Return cases for ``parametrize()``: the first ``number`` as they are, the rest thorough."""
    usual, rest = (cases := list(cases))[:number], cases[number:]
    values = [case if isinstance(case, tuple) else (case,) for case in rest]
    return [*usual, *(pytest.param(*value, marks=pytest.mark.thorough) for value in values)]
