"""The names of places in Spanish and French, as the Unicode CLDR has them; it comes with Babel."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.utils.translation import get_language

OTHERS = ("es", "fr")
"""The languages beside English, which GeoNames gives all names in."""

Names = dict[str, str]
"""A name by the code of its language; none where the common one is used."""


def active_language() -> str:
    """Return which of the site's languages the page is in."""
    code = (get_language() or settings.LANGUAGE_CODE).partition("-")[0]
    return code if code in OTHERS else "en"


def of_countries(rows: Iterable[dict[str, Any]]) -> dict[str, Names]:
    """Return what countries are called where that is not the name of the data, by ISO code."""
    territories = {code: locale.territories for code, locale in _locales(*OTHERS).items()}
    return {
        row["iso"]: {
            code: names[row["iso"]]
            for code, names in territories.items()
            if names.get(row["iso"], row["name"]) != row["name"]
        }
        for row in rows
    }


def of_cities(rows: Iterable[dict[str, Any]]) -> dict[int, Names]:
    """Return what cities are called where that is not the name of the data, by GeoNames id.

    CLDR knows the city that a time zone is named after. A zone may be named after an island, too:
    so a name is taken only where GeoNames lists it among those of the city, with no language.
    """
    english = _locales("en")["en"]
    others = _locales(*OTHERS)
    by_zone: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_zone[row["timezone"]].append(row)
    found: dict[int, Names] = defaultdict(dict)
    for zone, members in by_zone.items():
        last = zone.rpartition("/")[2].replace("_", " ")
        common = english.time_zones.get(zone, {}).get("city", last)
        members.sort(key=lambda row: -row["population"])
        for code, locale in others.items():
            name = locale.time_zones.get(zone, {}).get("city", common)
            for row in members if name != common else ():
                known = {row["name"], *row["alternatenames"]}
                if name != row["name"] and {name, common} <= known:
                    found[row["geonameid"]][code] = name
                    break
    return found


def _locales(*codes: str) -> dict[str, Any]:
    # Only a load needs the package: pages and sitemaps are served without it.
    from babel import Locale  # noqa: PLC0415

    return {code: Locale(code) for code in codes}
