"""What a sample says of all: between which shares that of all lies."""

from math import sqrt
from statistics import NormalDist

CONFIDENCE = 0.95
"""How often an interval has the true share in it."""

_DEVIATIONS = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def share_interval(hits: int, sampled: int, total: int) -> tuple[float, float]:
    """Return the least and the greatest share that all may have, if ``hits`` of a sample have it.

    It is Wilson's score interval, which holds for few and for none too. If all were looked at, both
    are the share itself; if none, they are 0 and 1.
    """
    if not sampled:
        return 0.0, float(total > 0)
    share = hits / sampled
    if sampled >= total:
        return share, share
    spread = _DEVIATIONS**2 / sampled
    margin = _DEVIATIONS * sqrt(share * (1 - share) / sampled + spread / (4 * sampled))
    middle = share + spread / 2
    return max(0.0, (middle - margin) / (1 + spread)), min(1.0, (middle + margin) / (1 + spread))
