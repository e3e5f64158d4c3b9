"""Two plots of the builds: time and memory by rows."""

from tests.benchmarks.data import name_of

PLOTTED = {
    "limit": ("the limit", "0.55"),
    "kit-isal": ("django-sitemapkit, ISA-L", "#0b7a4b"),
    "kit-zlib": ("django-sitemapkit, zlib", "#18b26f"),
    "npm": ("npm's sitemap", "#8a63d2"),
    "icv": ("django-icv-sitemaps", "#d9822b"),
    "static": ("django-static-sitemaps", "#c23b22"),
    "contrib": ("django.contrib.sitemaps", "#3b6fd4"),
}
"""The contenders, with their names and colours."""

DATABASE = "postgresql"

SIZES = ("small", "rows")
"""The sizes at which all of them are measured."""

PLOTS = {
    "benchmarks-time.svg": ("Seconds for a build", "seconds", 1),
    "benchmarks-memory.svg": ("Peak memory of a build, MB", "peak", 1_000_000),
}
"""The title of each plot, its figure, and the unit."""


def draw(bench, folder):
    """Write the plots into a folder; return their names."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "benchmarks", "font.size": 9}
    folder.mkdir(parents=True, exist_ok=True)
    sizes = sorted(bench.options.sizes.values())
    for name, (title, figure, unit) in PLOTS.items():
        image = Figure(figsize=(7.2, 4), layout="constrained")
        axes = image.subplots()
        for contender, (label, colour) in PLOTTED.items():
            points = list(_points(bench, contender, figure, sizes))
            if points:
                rows, values = zip(*points, strict=True)
                scaled = [value / unit for value in values]
                axes.plot(rows, scaled, marker="o", color=colour, label=label)
        axes.set(title=title, xlabel="rows, PostgreSQL", xscale="log", yscale="log")
        axes.set_xticks(sizes, [name_of(size) for size in sizes], minor=False)
        axes.xaxis.minorticks_off()
        axes.grid(visible=True, alpha=0.3)
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        # White behind it, so that it can be read on a dark page.
        image.savefig(folder / name, facecolor="white", metadata={"Date": None})
    return list(PLOTS)


def _points(bench, contender, figure, sizes):
    for rows in sizes:
        outcome = bench.outcomes.get((contender, DATABASE, rows))
        if outcome and not outcome.error and figure in outcome.figures:
            yield rows, outcome.figures[figure]
