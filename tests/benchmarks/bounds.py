"""Bounds: a figure that has to stay on its side, and what has to be run for it."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks.contender import ALL, BOTH

_FIGURES = {"cpu": "CPU of the process", "machine": "CPU of all processes"}
"""What figures are called that have short names."""

SIZES = ("small", "rows", "big")
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One figure that has to stay on its side."""

    label: str
    """What is asked of whom."""
    needs: tuple[tuple[str, str], ...]
    """The contenders it is made of, each with a size."""
    value: Callable
    """Makes the figure of the medians, which it gets as ``get(contender, size, figure)``."""
    bound: float
    """The largest or the smallest it may be."""
    at_least: bool = False
    """Which of the two."""
    unit: str = ""
    """What follows the number."""
    databases: tuple[str, ...] = BOTH
    """Where it holds."""

    def holds(self, value):
        """Return whether a figure is on its side."""
        return value >= self.bound if self.at_least else value <= self.bound

    def in_words(self, value):
        """Return a figure as people read it."""
        return f"{value:.3g}{self.unit}" if value < 100 else f"{value:,.0f}{self.unit}"


def faster(ours, theirs, bound, *, size="rows", figure="seconds", databases=BOTH):
    """Bound how many times as long another one takes, from below."""
    what = "" if figure == "seconds" else f", {_FIGURES.get(figure, figure)}"
    return Bound(
        label=f"{ours} against {theirs}{what}",
        needs=((ours, size), (theirs, size)),
        value=lambda get: get(theirs, size, figure) / get(ours, size, figure),
        bound=bound,
        at_least=True,
        unit="x",
        databases=databases,
    )


def relative(ours, theirs, bound, *, size="rows", figure="seconds", databases=BOTH):
    """Bound a figure relative to another's, from above: the time, if no other is named."""
    what = "" if figure == "seconds" else f", {_FIGURES.get(figure, figure)}"
    return Bound(
        label=f"{ours} relative to {theirs}{what}",
        needs=((ours, size), (theirs, size)),
        value=lambda get: get(ours, size, figure) / get(theirs, size, figure),
        bound=bound,
        databases=databases,
    )


def at_most(name, figure, bound, *, size, databases=BOTH):
    """Bound a figure as it was measured."""
    return Bound(
        label=f"{name}, {figure}",
        needs=((name, size),),
        value=lambda get: get(name, size, figure),
        bound=bound,
        databases=databases,
    )


def validated(name, megabytes):
    """Bound how many MB of XML are validated in a second of processor time, from below."""
    return Bound(
        label=f"kit-validate-{name}",
        needs=((f"kit-validate-{name}", "small"),),
        value=lambda get: get(f"kit-validate-{name}", "small", "rate"),
        bound=megabytes,
        at_least=True,
        unit=" MB/s",
        databases=("sqlite",),
    )


def highest_peak(name, megabytes):
    """Bound the peak memory at any size, on any database."""
    return _over_sizes(
        name,
        lambda get: max(get(name, size, "peak") for size in get.sizes) / MEGABYTE,
        label="highest peak of all sizes",
        bound=megabytes,
        unit=" MB",
        databases=ALL,
    )


def peak_of(name, megabytes):
    """Bound the peak memory at the middle size."""
    return Bound(
        label=f"{name}, peak",
        needs=((name, "rows"),),
        value=lambda get: get(name, "rows", "peak") / MEGABYTE,
        bound=megabytes,
        unit=" MB",
    )


def even_peak(name, megabytes):
    """Bound how far the peak memory at any size is from that at the middle one."""
    return _over_sizes(
        name,
        lambda get: (
            max(abs(get(name, size, "peak") - get(name, "rows", "peak")) for size in get.sizes)
            / MEGABYTE
        ),
        label="difference of the peaks",
        bound=megabytes,
        unit=" MB",
        databases=ALL,
    )


def peak_growth(name, megabytes):
    """Bound how much higher the peak memory is at the middle size than at the smallest one.

    On SQLite, whose library's memory is the process's.
    """
    return Bound(
        label=f"{name}, peak at the larger size above that at the smaller one",
        needs=((name, "small"), (name, "rows")),
        value=lambda get: (get(name, "rows", "peak") - get(name, "small", "peak")) / MEGABYTE,
        bound=megabytes,
        unit=" MB",
        databases=("sqlite",),
    )


def even_addition(name, base, megabytes):
    """Bound how far what is added to a peak at the smallest size is from that at the middle one.

    The base takes what the database's library in the process takes for the same queries.
    """

    def value(get):
        added = [get(name, size, "peak") - get(base, size, "peak") for size in ("small", "rows")]
        return abs(added[1] - added[0]) / MEGABYTE

    return Bound(
        label=f"{name}, what it adds to the peak of {base}, difference between sizes",
        needs=tuple((each, size) for each in (name, base) for size in ("small", "rows")),
        value=value,
        bound=megabytes,
        unit=" MB",
    )


def growth(name, bound):
    """Bound the time for a URL at a larger size, relative to that at any smaller one."""

    def value(get):
        each = [get(name, size, "seconds") / get(name, size, "urls") for size in get.sizes]
        return max(
            larger / smaller for place, smaller in enumerate(each) for larger in each[place + 1 :]
        )

    return _over_sizes(name, value, label="time for a URL, larger to smaller size", bound=bound)


def _over_sizes(name, value, *, label, **options):
    needs = tuple((name, size) for size in SIZES)
    return Bound(label=f"{name}, {label}", needs=needs, value=value, **options)


def overridden(*, bytes_each, tolerance):
    """Bound what each override takes in memory: what is kept of it, and what the process grows."""
    plain, ours = "kit-traced", "kit-traced-overridden"

    def kept(get):
        more = get(ours, "rows", "kept") - get(plain, "rows", "kept")
        return more / get(ours, "rows", "overrides")

    def grown(get):
        allowed = bytes_each * get("kit-overridden", "rows", "overrides")
        peaks = (get(name, "rows", "peak") for name in ("kit-overridden", "kit-zlib"))
        return (next(peaks) - next(peaks) - allowed) / MEGABYTE

    return (
        Bound(
            label=f"{ours} above {plain}, kept for each override",
            needs=((ours, "rows"), (plain, "rows")),
            value=kept,
            bound=bytes_each,
            unit=" bytes",
        ),
        Bound(
            label=f"kit-overridden, peak above that of kit-zlib and {bytes_each} bytes for each",
            needs=(("kit-overridden", "rows"), ("kit-zlib", "rows")),
            value=grown,
            bound=tolerance,
            unit=" MB",
        ),
    )
