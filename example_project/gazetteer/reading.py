"""Read the project's sitemaps as a search engine does, and hold them against the database."""

import dataclasses
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from http.client import HTTPException, HTTPResponse
from urllib.parse import quote, urlsplit

from django.db.models import QuerySet
from django.urls import Resolver404, resolve, reverse
from django.utils import translation

from django_sitemapkit.audit.reader import SitemapReader
from django_sitemapkit.exceptions import InvalidSitemap

from .editing import Editing
from .models import Article, City, Country
from .naming import OTHERS
from .sitemaps import Pages

BLOCK = 65_536
SECONDS_TO_ANSWER = 120
TIMES_TO_ASK = 5
PROBLEMS_KEPT = 20
SECTIONS = {"articles", "cities", "countries", "pages"}
CODES = ("en", *OTHERS)

Progress = Callable[[str, int, int], None]


@dataclasses.dataclass(slots=True, kw_only=True)
class SectionReading:
    """What was read of one section."""

    name: str
    """The section's name."""

    pages: int = 0
    """Its files in the index."""

    urls: int = 0
    """The URLs in them."""

    bytes: int = 0
    """Their bytes of XML."""

    seconds: float = 0.0
    """How long it took to ask for them, receive and check them."""

    locations: set[str] = dataclasses.field(default_factory=set)
    """The different URLs among them."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Reading:
    """What came out of reading all sitemaps."""

    base_url: str
    """What the addresses of the site begin with."""

    served_at: str
    """Where the site is served for now."""

    sections: dict[str, SectionReading] = dataclasses.field(default_factory=dict)
    """What was read, by the names of the sections."""

    expected: int = 0
    """URLs that the database and what editors set in it call for."""

    problems: list[str] = dataclasses.field(default_factory=list)
    """All that is wrong, a line each, the first of many."""

    problem_count: int = 0
    """How many there are."""

    warnings: list[str] = dataclasses.field(default_factory=list)
    """What is not wrong, but where some readers stumble; the first of many."""

    def problem(self, text: str) -> None:
        """Note that something is wrong."""
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(text)

    def warning(self, text: str) -> None:
        """Note where some readers stumble."""
        if len(self.warnings) < PROBLEMS_KEPT:
            self.warnings.append(text)

    def open(self, address: str) -> HTTPResponse:
        """Ask for an address of the site where it is served."""
        return _open(self.served_at + address.removeprefix(self.base_url))


def read_everything(base_url: str, served_at: str, progress: Progress) -> Reading:
    """Read robots.txt, the index it names and every file the index lists, and compare.

    ``base_url`` is what addresses begin with, ``served_at`` where they are asked for.
    ``progress`` is called with a step's name, how much of it is done and how much there is.
    """
    reading = Reading(
        base_url=base_url,
        served_at=served_at,
        sections={name: SectionReading(name=name) for name in sorted(SECTIONS)},
    )
    progress("index", 0, 1)
    children = [
        child
        for index in _from_robots(base_url + reverse("robots"), reading)
        for child in _locations(index, reading)
    ]
    progress("index", 1, 1)
    for done, child in enumerate(children):
        progress("reading", done, len(children))
        _read_page(child, reading)
    progress("reading", len(children), len(children))
    _compare(base_url, reading, progress)
    return reading


def _from_robots(address: str, reading: Reading) -> list[str]:
    """Return the sitemaps that robots.txt names."""
    try:
        with reading.open(address) as response:
            text = response.read().decode()
    except (OSError, HTTPException) as error:
        reading.problem(f"{address}: {error}")
        return []
    lines = (line.partition(":") for line in text.splitlines())
    found = [value.strip() for name, _, value in lines if name.strip().lower() == "sitemap"]
    if not found:
        reading.problem(f"{address} names no sitemap.")
    return found


def _read_page(address: str, reading: Reading) -> None:
    try:
        name = str(resolve(urlsplit(address).path).kwargs["section"])
    except (Resolver404, KeyError):
        reading.problem(f"{address} is in the index, but no page of a section.")
        return
    section = reading.sections.setdefault(name, SectionReading(name=name))
    section.pages += 1
    for location in _locations(address, reading, section):
        if location in section.locations:
            reading.problem(f"{address} lists {location} a second time.")
        section.locations.add(location)


def _locations(
    address: str, reading: Reading, section: SectionReading | None = None
) -> Iterator[str]:
    """Yield every ``loc`` of the document at ``address``, checked on its way in."""
    reader = SitemapReader(address, nested=section is not None)
    began = time.perf_counter()
    try:
        with reading.open(address) as response:
            for entry in reader.read(iter(lambda: response.read(BLOCK), b"")):
                yield str(entry.location)
    except InvalidSitemap:
        pass  # It stands in the findings, too.
    except (OSError, HTTPException) as error:
        reading.problem(f"{address}: {error}")
    for finding in reader.findings:
        note = reading.problem if finding.level == "error" else reading.warning
        note(f"{address}, line {finding.line}: {finding.message}")
    if section is not None:
        section.urls += reader.urls
        section.bytes += reader.bytes
        section.seconds += time.perf_counter() - began


# A proxy of the environment would be asked for 127.0.0.1 as well, and would look at its own.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _open(address: str) -> HTTPResponse:
    """Ask for an address; wait and ask again where the server says it is still planning."""
    for again in reversed(range(TIMES_TO_ASK)):
        try:
            response: HTTPResponse = _opener.open(address, timeout=SECONDS_TO_ANSWER)
        except urllib.error.HTTPError as error:
            if error.code != 503 or not again:
                raise
            after = error.headers.get("Retry-After", "")
            time.sleep(min(int(after) if after.isdecimal() else 1, 30))
        else:
            return response
    raise AssertionError  # the last round returns or raises


def _compare(base_url: str, reading: Reading, progress: Progress) -> None:
    """Hold what was listed against what the database calls for, section by section."""
    editing = Editing()
    wanted: dict[str, tuple[str, int, Iterable[tuple[str, str]]]] = {
        "articles": _rows(Article.objects.published(), ["en"]),
        "cities": ("gazetteer.city", City.objects.count() * len(CODES), _cities(reading)),
        "countries": _rows(Country.objects.all(), CODES),
        "pages": ("", len(Pages.items) * len(CODES), _pages()),
        "extra-urls": ("", 0, editing.extra()),
    }
    total = sum(count for _, count, _ in wanted.values())
    progress("comparing", 0, total)
    for name in {**wanted, **reading.sections}:
        section = reading.sections.get(name, SectionReading(name=name))
        missing, surplus = [], set(section.locations)
        model, _count, pages = wanted.get(name, ("", 0, ()))
        for path in editing.listed(name, model, pages):
            reading.expected += 1
            try:
                surplus.remove(base_url + path)
            except KeyError:
                missing.append(base_url + path)
            if reading.expected % 5000 == 0:
                progress("comparing", min(reading.expected, total - 1), total)
        if missing:
            reading.problem(f"Section {name} does not list {_some(missing)}.")
        if surplus:
            reading.problem(
                f"Section {name} lists {_some(sorted(surplus))}; the database does not have that."
            )
    progress("comparing", total, total)


def _some(addresses: list[str]) -> str:
    """Name the first address of a list, and count the rest."""
    rest = len(addresses) - 1
    return addresses[0] + (f" and {rest:,} more" if rest else "")


def _rows(rows: QuerySet, codes: Sequence[str]) -> tuple[str, int, Iterable[tuple[str, str]]]:
    """Return a model's label, how many addresses its rows have, and each with the row's key."""
    pages = (
        (_path(row.get_absolute_url, code), str(row.pk))
        for row in rows.iterator()
        for code in codes
    )
    return rows.model._meta.label_lower, rows.count() * len(codes), pages


def _pages() -> Iterator[tuple[str, str]]:
    for name in Pages.items:
        for code in CODES:
            yield _path(partial(reverse, name), code), ""


def _cities(reading: Reading) -> Iterator[tuple[str, str]]:
    """Yield the address of each city in each language: its country's, and its own part behind it.

    It is what ``get_absolute_url()`` says, and a great deal sooner. That is asked now and then.
    """
    countries = {
        (country.pk, code): _path(country.get_absolute_url, code)
        for country in Country.objects.all()
        for code in CODES
    }
    slugs = [f"slug_{code}" for code in CODES]
    rows = City.objects.order_by("pk").values_list("pk", "country_id", *slugs)
    for number, (pk, country, *own) in enumerate(rows.iterator(chunk_size=2000)):
        paths = [
            f"{countries[country, code]}{quote(slug)}-{pk}/"
            for code, slug in zip(CODES, own, strict=True)
        ]
        if number % 1000 == 0:
            city = City.objects.select_related("country").get(pk=pk)
            if paths != [_path(city.get_absolute_url, code) for code in CODES]:
                reading.problem(f"The address of {city} is not {paths[0]}.")
        yield from ((path, str(pk)) for path in paths)


def _path(ask: Callable[[], str], code: str) -> str:
    """Return an address as it is in one language."""
    with translation.override(code):
        return ask()
