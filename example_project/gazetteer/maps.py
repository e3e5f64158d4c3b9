"""Maps made of the cities themselves: one SVG path, a dot for each place."""

import dataclasses
from collections.abc import Iterable, Sequence

WIDTH = 1000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DotMap:
    """What a template needs to draw the map."""

    width: int
    """The drawing's width in its own units."""

    height: int
    """Its height in the same units."""

    path: str
    """The dots, as the data of a path whose line caps are round."""

    sparse: bool
    """Whether the dots are so few that they had better be large."""

    mark: tuple[int, int] | None
    """Where the place in question lies."""


def world(places: Iterable[tuple[float, float]]) -> DotMap:
    """Draw (longitude, latitude) pairs on the whole Earth, its empty poles cut off."""
    return _draw(list(places), west=-180.0, east=180.0, south=-58.0, north=80.0, stretch=1.0)


def region(
    places: Sequence[tuple[float, float]], mark: tuple[float, float] | None = None
) -> DotMap | None:
    """Draw (longitude, latitude) pairs as large as they fit; None where a map would say nothing."""
    if len(places) < 3:
        return None
    longitudes = [longitude for longitude, _ in places]
    if max(longitudes) - min(longitudes) > 180:  # across the date line: Russia, Fiji, New Zealand
        places = [(_eastwards(longitude), latitude) for longitude, latitude in places]
        mark = mark and (_eastwards(mark[0]), mark[1])
    everything = [*places, mark] if mark else places
    west, east = min(x for x, _ in everything), max(x for x, _ in everything)
    south, north = min(y for _, y in everything), max(y for _, y in everything)
    # A degree of longitude shrinks towards the poles; a parabola is near enough to the cosine.
    middle = abs(south + north) / 180
    stretch = 1 / max(0.25, 1 - middle * middle)
    margin = max(east - west, north - south, 0.1) * 0.04
    return _draw(
        places,
        west=west - margin,
        east=east + margin,
        south=south - margin,
        north=north + margin,
        stretch=stretch,
        mark=mark,
    )


def _eastwards(longitude: float) -> float:
    return longitude + 360 if longitude < 0 else longitude


def _draw(
    places: Sequence[tuple[float, float]],
    *,
    west: float,
    east: float,
    south: float,
    north: float,
    stretch: float,
    mark: tuple[float, float] | None = None,
) -> DotMap:
    ratio = stretch * (north - south) / (east - west)
    width, height = (WIDTH, round(WIDTH * ratio)) if ratio <= 1 else (round(WIDTH / ratio), WIDTH)

    def place(longitude: float, latitude: float) -> tuple[int, int]:
        return (
            round((longitude - west) / (east - west) * width),
            round((north - latitude) / (north - south) * height),
        )

    dots = sorted({place(*each) for each in places})
    return DotMap(
        width=width,
        height=height,
        path="".join(f"M{x} {y}h0" for x, y in dots),
        sparse=len(dots) < 200,
        mark=place(*mark) if mark else None,
    )
