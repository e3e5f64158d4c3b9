"""What keeps the rows of a section from being read as text."""

from itertools import permutations
from typing import TYPE_CHECKING

from django.conf import settings as django_settings

from django_sitemapkit._django import PathConverter
from django_sitemapkit.reading.formulas import Formula
from django_sitemapkit.reading.lines import SEPARATORS
from django_sitemapkit.reading.routes import FastPattern
from django_sitemapkit.reading.sources import Column, Constant, Method

if TYPE_CHECKING:
    from django_sitemapkit.reading.rows import QuerySetReader


def obstacle(reader: "QuerySetReader") -> str:
    """Return why the rows of a section cannot be read as text; "" where they can."""
    if reader.keyset is None:
        return "its items are a list"
    sources = {
        reader.location_option: reader.location_source,
        **reader.sources,
        **reader.extension_sources,
    }
    for option, source in sources.items():
        if isinstance(source, Method):
            return f"{option} is a method"
    if reader.links_rows:
        return "its rows link to their translations"
    options = set(reader.extension_sources)
    if options and (options != {"images"} or not image_prefix_of(reader)):
        return f"{', '.join(reader.extension_sources)} are read for each row"
    return (
        _obstacle_of_tags(reader)
        or _obstacle_of_location(reader)
        or (_obstacle_of_languages(reader) if reader.language_plan is not None else "")
    )


def image_prefix_of(reader: "QuerySetReader") -> str:
    """Return what the URL of each row's image has before the name of its file; "" if unknown."""
    with reader.site.active():  # A relative MEDIA_URL is below the path of the site.
        return "" if reader.images_path is None else reader.images_path.prefix()


def _obstacle_of_tags(reader: "QuerySetReader") -> str:
    for tag, source in reader.sources.items():
        if isinstance(source, Formula):
            return f"{tag} is computed for each row"
    if reader.sources_by_language:
        return f"{', '.join(reader.sources_by_language)} differ by language"
    for tag in ("changefreq", "priority"):
        if isinstance(reader.sources.get(tag), Column):
            return f"{tag} differs from row to row"
    if "lastmod" in reader.columns and reader.lastmod_text is None:
        return "lastmod is not a column of dates, or of times that are stored in UTC"
    return ""


def _obstacle_of_location(reader: "QuerySetReader") -> str:
    if reader.locator is None:
        return "location is computed for each row, and not by reverse() alone"
    if reader.locator.is_translated:
        return "its columns differ by language"
    patterns = patterns_of(reader)
    if not patterns:
        return "its URL pattern has more than text and Django's own converters"
    for pattern in patterns:
        most = len(SEPARATORS) - len(reader.extension_sources)
        if not 0 < len(pattern.converters) <= most:
            return f"its URL pattern has no argument, or more than {most}"
        kinds = map(type, pattern.converters)
        filled = pattern.template % tuple("/" if kind is PathConverter else "_" for kind in kinds)
        if "/." in filled:
            return "its URL pattern has a dot behind a slash, or behind a path"
    return ""


def _obstacle_of_languages(reader: "QuerySetReader") -> str:
    """Return why not all rows have the same languages, or why two URLs of a row may be equal."""
    plan, patterns = reader.language_plan, patterns_of(reader)
    if not isinstance(reader.languages_source, Constant):
        return "object_languages differ from row to row"
    if plan is not None and plan.rendered != plan.listed:
        return "another site lists some of its languages"
    if any(_kinds_of(pattern) != _kinds_of(patterns[0]) for pattern in patterns):
        return "its URL pattern has other converters in another language"
    heads = [pattern.template.partition("%s")[0].replace("%%", "%") for pattern in patterns]
    # An x-default has a URL without this prefix, if its URL begins with it.
    default = f"{reader.site.path}/{django_settings.LANGUAGE_CODE}/"
    pairs = [*permutations(heads, 2), *((default, head) for head in heads if head != default)]
    if any(one.startswith(other) for one, other in pairs):
        return "its URL patterns begin alike in two languages"
    return ""


def patterns_of(reader: "QuerySetReader") -> list[FastPattern]:
    """Return the quick pattern of a Route in each language; none if one language has none."""
    locator = reader.locator
    if locator is None or locator.is_translated:
        return []
    found = [language_route.route.candidates[0].fast for language_route in locator.language_routes]
    patterns = [pattern for pattern in found if pattern is not None]
    return patterns if len(patterns) == len(found) else []


def _kinds_of(pattern: FastPattern) -> dict[int, type]:
    """Return the classes of a pattern's converters, by argument."""
    return dict(zip(pattern.order, map(type, pattern.converters), strict=True))
