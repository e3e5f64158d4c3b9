"""The set of integers finds what it was given and nothing else, and is as small as it says."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.overrides.integers import IntegerSet, integers_of

INTEGERS = st.integers(-9, 9) | st.integers(-(1 << 63), (1 << 63) - 1)
VALUES = st.one_of(INTEGERS, st.none(), st.sampled_from([1 << 63, "1", True]))


@given(st.lists(st.lists(INTEGERS), max_size=4), st.lists(VALUES))
def test_exactly_what_was_given_is_found(batches, asked):
    """In any order, however often; only integers are equal to integers."""
    given_integers = {value for batch in batches for value in batch}
    wanted = [
        index for index, value in enumerate(asked) if type(value) is int and value in given_integers
    ]
    found = IntegerSet(batches).find(asked)
    assert [index for index in found if asked[index] is not True] == wanted


@pytest.mark.slow
def test_an_integer_takes_eight_bytes():
    """Beyond a constant, when all are read."""
    count = 100_000
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        made = IntegerSet(range(begin, begin + 1_000) for begin in range(0, count, 1_000))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before <= 9 * count
    assert made.find([-1, 0, count - 1, count]) == [1, 2]
    assert made.find([count - 1, 0]) == [0, 1]


@pytest.mark.parametrize(
    ("text", "integers"),
    [
        *(("7", [7]), ("-7", [-7]), ("07", []), ("+7", []), ("٧", []), ("a", []), ("", [])),
        *((str(1 << 63), []), (str((1 << 63) - 1), [(1 << 63) - 1])),
    ],
)
def test_only_texts_as_python_writes_integers_name_one(text, integers):
    """The key of a row is written so."""
    assert integers_of([text]) == integers
