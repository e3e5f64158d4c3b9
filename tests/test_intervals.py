"""What a sample says of all."""

import pytest

from django_sitemapkit.intervals import share_interval


@pytest.mark.parametrize(
    ("hits", "sampled", "total", "expected"),
    [
        (0, 0, 10, (0, 1)),
        (0, 0, 0, (0, 0)),
        (3, 10, 10, (0.3, 0.3)),
        (0, 10, 1_000, (0, 0.2775)),
        (10, 10, 1_000, (0.7225, 1)),
        (9, 50, 4_000, (0.0977, 0.3080)),
        (81, 263, 10**6, (0.2553, 0.3662)),
    ],
)
def test_intervals(hits, sampled, total, expected):
    """Those of Wilson, E. B. (1927); the last is the example of Newcombe, R. G. (1998)."""
    assert share_interval(hits, sampled, total) == pytest.approx(expected, abs=1e-4)
