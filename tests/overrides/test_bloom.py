"""The filter never misses what it was given, and is as small as it says."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.overrides import lookups
from django_sitemapkit.overrides.lookups import BloomFilter

TEXTS = st.lists(st.text(st.characters(codec=None)))


def filled(texts):
    """Return a filter with these texts in it."""
    made = BloomFilter(len(texts))
    made.update(texts)
    return made


@pytest.mark.slow
@given(TEXTS, TEXTS)
def test_what_was_given_is_found(given_texts, others):
    """Each time it is asked for, wherever it stands, and beside whatever else."""
    asked = [*others, *given_texts, *others]
    found = filled(given_texts).find(asked)
    assert found == sorted(set(found))
    wanted = set(given_texts)
    assert {place for place, text in enumerate(asked) if text in wanted} <= set(found)


@pytest.mark.slow
def test_few_others_are_found():
    """One in 32, or there would be too much to look up."""
    for count in (1, 100, 1_000, 4_095, 4_096):
        made = filled([f"/given/{n}/" for n in range(count)])
        found = made.find([f"https://www.example.com/other/{n}/" for n in range(20_000)])
        assert len(found) < 1.3 * 20_000 / 32, count


def test_a_filter_with_room_for_none_takes_any():
    """Texts may come between the count and the reading."""
    made = BloomFilter(0)
    made.update(["/late/"])
    assert 0 in made.find(["/late/"])
    assert BloomFilter(0).find(["/a/", "/b/"]) == []


def test_a_text_takes_eight_bytes():
    """Beyond a constant: the texts themselves are not kept."""
    # What other threads allocate meanwhile, such as those of the test runner, says nothing.
    ours = [tracemalloc.Filter(True, file) for file in (__file__, lookups.__file__)]
    for count in (100_000, 131_072):
        tracemalloc.start()
        try:
            made = BloomFilter(count)
            made.update(f"/a/path/that/is/rather/long/{n}/" for n in range(0, count, 100))
            kept = tracemalloc.take_snapshot().filter_traces(ours).traces
        finally:
            tracemalloc.stop()
        assert sum(trace.size for trace in kept) <= 8 * count + 2_000
        assert made.find(["/a/path/that/is/rather/long/0/"]) == [0]
