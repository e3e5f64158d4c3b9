"""What was promised: each budget is a few bounds, and each bound says what it has to be run for.

A new one is a line in ``BUDGETS``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks.contenders import BOTH

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A promise, with the bounds that it comes down to."""

    number: int
    """Its number, for ``--budget``."""
    title: str
    """What is promised."""
    bounds: tuple[Bound, ...]
    """All of them have to hold."""
    reason: str = ""
    """Why one of them is out of reach, where it is red."""


def faster(ours, theirs, bound, *, size="rows", figure="seconds", databases=BOTH):
    """Bound how many times as long another one takes, from below."""
    what = "" if figure == "seconds" else f", {figure}"
    return Bound(
        label=f"{ours} against {theirs}{what}",
        needs=((ours, size), (theirs, size)),
        value=lambda get: get(theirs, size, figure) / get(ours, size, figure),
        bound=bound,
        at_least=True,
        unit="x",
        databases=databases,
    )


def relative(ours, theirs, bound, *, databases=BOTH):
    """Bound the time relative to another's, from above."""
    return Bound(
        label=f"{ours} relative to {theirs}",
        needs=((ours, "rows"), (theirs, "rows")),
        value=lambda get: get(ours, "rows", "seconds") / get(theirs, "rows", "seconds"),
        bound=bound,
        databases=databases,
    )


def at_most(name, figure, bound, *, size):
    """Bound a figure as it was measured."""
    return Bound(
        label=f"{name}, {figure}",
        needs=((name, size),),
        value=lambda get: get(name, size, figure),
        bound=bound,
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
    """Bound the peak memory at any size."""
    return _over_sizes(
        name,
        lambda get: max(get(name, size, "peak") for size in get.sizes) / MEGABYTE,
        label="highest peak of all sizes",
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


BUDGETS = (
    Budget(
        number=1,
        title="A full gzip build against django.contrib.sitemaps, one process",
        bounds=(faster("kit-zlib", "contrib", 20), faster("kit-isal", "contrib", 30)),
        reason=(
            "ISA-L makes compression almost free. The rest is Python code under the interpreter's"
            " lock, so a second core does not help a single process."
        ),
    ),
    Budget(
        number=2,
        title="A full build against django-icv-sitemaps",
        bounds=(faster("kit-zlib", "icv", 7), faster("kit-isal", "icv", 10)),
        reason=(
            "It waits for the same rows, and also compresses with zlib. ISA-L saves less time than"
            " reading takes, especially on SQLite, which reads in the same process."
        ),
    ),
    Budget(
        number=3,
        title="Time relative to the limit, `COPY` and `gzip -6` in two processes",
        bounds=(
            relative("kit-zlib", "limit", 1.1, databases=("postgresql",)),
            relative("kit-isal", "limit", 0.9, databases=("postgresql",)),
        ),
        reason=(
            "The limit never brings rows into Python. Merely reading the columns through psycopg"
            " and the ORM, without making URLs, takes about as long as the whole limit."
        ),
    ),
    Budget(
        number=4,
        title="Two processes against one, same codec",
        bounds=(
            faster("kit-processes-zlib", "kit-zlib", 1.5),
            faster("kit-processes-isal", "kit-isal", 1.5),
        ),
        reason=(
            "On two cores, a single process already uses much of the second one, for its"
            " compression thread and the database server."
        ),
    ),
    Budget(
        number=5,
        title="Peak memory of a build over the idle process, the same at any size",
        bounds=(
            highest_peak("kit-zlib", 16),
            even_peak("kit-zlib", 4),
            highest_peak("kit-isal", 16),
            even_peak("kit-isal", 4),
        ),
    ),
    Budget(
        number=6,
        title="A section with `get_absolute_url()` against django.contrib.sitemaps",
        bounds=(faster("kit-objects-zlib", "contrib", 3),),
        reason=(
            "Both create an object for each row and call its method, and `reverse()` in that"
            " method takes most of the time. `advise_sitemaps` finds the route that replaces it."
        ),
    ),
    Budget(
        number=7,
        title="A live page of 50,000 against django.contrib.sitemaps",
        bounds=(
            faster("kit-page", "contrib-page", 50, figure="first byte"),
            faster("kit-page", "contrib-page", 12),
        ),
    ),
    Budget(
        number=8,
        title="The last live page relative to the first",
        bounds=(at_most("kit-pages", "last to first", 1.1, size="big"),),
    ),
    Budget(
        number=9,
        title="The index of 100 sections against django.contrib.sitemaps with `lastmod()`",
        bounds=(
            *(
                faster(f"kit-index-{how}", "contrib-index", 100, size="big")
                for how in ("live", "trusted", "published")
            ),
            at_most("kit-index-trusted", "seconds", 0.5, size="big"),
        ),
    ),
    Budget(
        number=10,
        title="Cost grows with the rows and no faster",
        bounds=(growth("kit-zlib", 1.15), growth("kit-isal", 1.15)),
        reason=(
            "The cause is unknown. With zlib, which leaves the database more time, it does not"
            " occur."
        ),
    ),
    Budget(
        number=11,
        title="A build after one of the rows has changed, relative to a full one",
        bounds=(
            at_most("kit-rebuild", "to full", 0.12, size="rows"),
            at_most("kit-rebuild-trusted", "to full", 0.08, size="rows"),
        ),
        reason=(
            "Checking all rows takes the time: a table with a kilobyte per row has to be read page"
            " by page, which alone takes longer than the bound allows."
        ),
    ),
    Budget(
        number=20,
        title="A build of 1,000 sites of which none has changed, seconds for each",
        bounds=(at_most("kit-sites", "each", 0.04, size="small"),),
    ),
    Budget(
        number=12,
        title="A build of one row in ten overridden, against one of none",
        bounds=(
            relative("kit-overridden", "kit-zlib", 1.3),
            *overridden(bytes_each=8, tolerance=4),
        ),
    ),
    Budget(
        number=13,
        title="A build of a site where an override was set once and is gone, against one of none",
        bounds=(faster("kit-reset", "kit-zlib", 0.97),),
    ),
    Budget(
        number=14,
        title="De-duplication of two sections that list one URL in a hundred both, against none",
        bounds=(
            relative("kit-distinct", "kit-overlapping", 1.5),
            relative("kit-proven", "kit-zlib", 1.02),
            even_peak("kit-distinct", 4),
            even_addition("kit-distinct", "kit-overlapping", 4),
        ),
    ),
    Budget(
        number=15,
        title="An audit within the process against Django's test client on the same pages",
        bounds=(faster("audit", "audit-client", 0.8, size="small"),),
    ),
    Budget(
        number=16,
        title="Peak memory of an audit, the same for ten times as many pages",
        bounds=(peak_growth("audit-many", 4),),
    ),
    Budget(
        number=17,
        title="A crawl over HTTP against Scrapy, 8 requests at a time",
        bounds=(faster("crawl-live", "crawl-scrapy", 0.8, size="small", databases=("sqlite",)),),
    ),
    Budget(
        number=18,
        title="Peak memory of a crawl, the same for ten times as many pages",
        bounds=(peak_growth("crawl-many", 4),),
    ),
    Budget(
        number=19,
        title="Validating, in MB of XML per second of processor time, and against parsing alone",
        bounds=tuple(
            bound
            for name in ("plain", "hreflang", "images")
            for bound in (
                validated(name, 40),
                faster(
                    f"kit-validate-{name}",
                    f"expat-{name}",
                    1,
                    size="small",
                    figure="cpu",
                    databases=("sqlite",),
                ),
            )
        ),
    ),
)
