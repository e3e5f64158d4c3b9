"""Why a URL is listed as it is, or not at all: for the people who steer it."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from django.core.exceptions import FieldError, ValidationError
from django.db.models import Model
from django.urls import Resolver404, ResolverMatch, resolve
from django.utils.translation import get_language_from_path
from django.utils.translation import gettext as _

from django_sitemapkit.exceptions import NotPlanned, RefusedValue
from django_sitemapkit.models import hash_of
from django_sitemapkit.overrides import EXTRA_URLS, Overrides, overrides_of, sections_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.protocol.entries import Entry
from django_sitemapkit.protocol.writers import url_element
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering.columns import Checker
from django_sitemapkit.rendering.entries import Entries, with_texts
from django_sitemapkit.rendering.indexes import page_address
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.sections import BaseSection, Route, Section
from django_sitemapkit.sections.chunks import Chunk, Versions
from django_sitemapkit.sections.keysets import EVERYTHING, KeyRange
from django_sitemapkit.sections.languages import default_language
from django_sitemapkit.sections.objects import label_of
from django_sitemapkit.sections.options import TAGS
from django_sitemapkit.sections.translations import Related, Translated
from django_sitemapkit.sites import Site

logger = logging.getLogger("django_sitemapkit")

CANDIDATES = 3
"""Rows of a section that are looked at for one URL."""

ITEMS = 2_000
"""Items of a list that are looked at for one URL."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The value of a tag, and where it comes from."""

    text: str | None
    """The text in the sitemap; None for no tag."""
    origin: str
    """Where it comes from, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What becomes of one URL, and why."""

    section: str
    """The name of the section that gives it; "" where that is not known."""
    location: str | None = None
    """The URL; None where there is none."""
    listed: bool = False
    """Whether it is in the sitemap, as the rows and the overrides are now."""
    why: str = ""
    """Why it is not; "" where it is."""
    values: dict[str, Origin] = field(default_factory=dict)
    """The optional tags."""
    xml: str = ""
    """Its ``<url>``; "" where it is not listed."""
    page: str = ""
    """The address of the page that has it; "" where none has."""


def explain_object(site: Site, obj: Model) -> list[Explanation]:
    """Return what becomes of an object in each section over its model; none where there is none."""
    label = label_of(type(obj))
    on = {section.get_name(): section for section in sections_of(site)}
    explained = [_explain(s, obj.pk) for s in on.values() if _label(s) == label]
    for cls in registry:
        if cls.get_name() not in on and _label(cls(site)) == label:
            why = _("The section %(section)s is switched off, or not one of this site.")
            explained.append(
                Explanation(section=cls.get_name(), why=why % {"section": cls.get_name()})
            )
    return explained


def explain_path(site: Site, path: str, *, without: str = "") -> Explanation:
    """Return what becomes of a URL of a site, given by its normalised path.

    The row is found through the routes and the lists of the sections; where it cannot be, the
    values that hold whatever the row says are told. The section ``without`` is not looked at.
    """
    location = site.origin + path
    for section, pk in _rows_at(site, path):
        if section.get_name() == without:
            continue
        explained = _explain(section, pk, location)
        if explained.location == location:
            return explained
    for section in sections_of(site):
        if _label(section) is None and (found := _item_at(section, location)):
            position, place, chunk = found
            number = position // section.rows_per_page + 1
            page = page_address(site, section.get_name(), number)
            return _explained(section, _row(chunk, place), page=page, versions=chunk)
    return _unknown(site, path)


def _unknown(site: Site, path: str) -> Explanation:
    """Return what holds for a URL that no section is known to give."""
    nowhere = BaseSection(site)
    checker = Checker(nowhere, site.scope(), ProblemLog(""))
    effects = overrides_of(site).effects(nowhere, [path], [site.origin + path])
    why = _("No section is known to give this URL: it is listed where one does.")
    if 0 in effects.excluded:
        why = _excluded(effects.excluded[0])
    texts = checker.texts(effects, [path])
    values = {tag: Origin(rows[0], _("URL override")) for tag, rows in texts.items()}
    return Explanation(section="", location=site.origin + path, why=why, values=values)


def _label(section: BaseSection) -> str | None:
    try:
        return section.label
    except Exception:  # noqa: BLE001  a section of the project's that fails says nothing here
        return None


def _explain(section: BaseSection, pk: Any, location: str = "") -> Explanation:
    """Return what becomes of one row of a section; of its several URLs, of that one."""
    name = section.get_name()
    try:
        chunk = next(iter(section.narrowed(pk).chunks(EVERYTHING)), None)
        page = _page_of(section, chunk.keys[0]) if chunk is not None and chunk.keys else ""
    except Exception as error:  # noqa: BLE001  a project's section may raise anything
        return Explanation(section=name, why=f"{type(error).__name__}: {error}")
    if chunk is None:
        return Explanation(section=name, why=_left_out(section, pk))
    place = _place_of(section, chunk, location)
    if place is None:
        place = next(iter(_places_here(section, chunk)), None)
    if place is None:
        why = _("It has no version in a language that section %(section)s lists here.")
        return Explanation(section=name, why=why % {"section": name})
    return _explained(section, _row(chunk, place), page=page, versions=chunk)


def _left_out(section: BaseSection, pk: Any) -> str:
    """Return why a section has no row with a key."""
    if isinstance(section, Section) and section.own_columns:
        model = section._rows.model
        if model._base_manager.filter(pk=pk, sitemap_include=False).exists():
            return _("It is left out by its own setting “list in the sitemap”.")
    text = _("The section %(section)s does not have it: its queryset leaves it out.")
    return text % {"section": section.get_name()}


def _explained(
    section: BaseSection, chunk: Chunk, *, page: str, versions: Chunk | None = None
) -> Explanation:
    """Return what becomes of a row, which is a chunk of its own; ``versions`` has all languages."""
    name = section.get_name()
    problems = ProblemLog(name)
    checker = Checker(section, section.site.scope(), problems)
    declared = checker._entries(chunk)
    if not declared.locations:
        why = next(problem.message for problem in problems.examples if problem.skipped)
        return Explanation(section=name, why=why)
    overrides: Overrides = section.overrides
    effects = overrides.effects(section, declared.keys, declared.locations)
    texts = checker.texts(effects, declared.keys)
    entries = with_texts(declared, texts)
    location = declared.locations[0]
    final = {tag: _text(entries, tag) for tag in TAGS}
    values = {
        tag: Origin(final[tag], _origin(section, chunk, tag, overridden=tag in texts))
        for tag in TAGS
    }
    if 0 in effects.excluded:
        why = _excluded(effects.excluded[0])
        return Explanation(section=name, location=location, why=why, values=values)
    beyond = {}
    if section.extension_sources or section.spoken:
        beyond = _extensions_of(section, chunk if versions is None else versions)
    entry = Entry(location=location, **final, extensions=beyond.get(location))
    return Explanation(
        section=name,
        location=location,
        listed=True,
        values=values,
        xml=url_element(entry),
        page=page,
    )


def _extensions_of(section: BaseSection, chunk: Chunk) -> dict[str, str | None]:
    """Return the elements of other namespaces of each listed row, by location."""
    entries = Checker(section, section.site.scope(), ProblemLog("")).entries(chunk)
    texts = entries.extensions
    return dict(zip(entries.locations, texts, strict=True)) if texts is not None else {}


def _text(entries: Entries, tag: str) -> str | None:
    column = entries.tags.get(tag)
    return column if column is None or isinstance(column, str) else column[0]


def _origin(section: BaseSection, chunk: Chunk, tag: str, *, overridden: bool) -> str:
    """Return where the value of a tag comes from, in the order in which one wins over another."""
    if overridden:
        return _("URL override")
    if tag in chunk.own and chunk.own[tag][0] not in (None, ""):
        return _("the object's own field")
    if tag in section.preset:
        return _("section settings")
    if tag in section.sources:
        return _("declaration of the section")
    return _("not set")


def _excluded(pattern: str) -> str:
    if pattern:
        return _("The exclusion rule %(pattern)s leaves it out.") % {"pattern": pattern}
    return _("A URL override leaves it out.")


def _rows_at(site: Site, path: str) -> Iterator[tuple[BaseSection, Any]]:
    """Yield sections with the keys of rows that may have a path, as the URLconf reads it."""
    match = _match(site, path)
    for section in sections_of(site):
        if _label(section) is None:
            continue
        if section.get_name() == EXTRA_URLS:
            some: Iterable[dict[str, Any]] = [{"hash": hash_of(path)}]
        else:
            some = _filters(section, match) if match else ()
        for filters in some:
            for pk in _keys(section, filters) if filters else ():
                yield section, pk


def _keys(section: BaseSection, filters: dict[str, Any]) -> list[Any]:
    """Return the primary keys of a section's first rows that have these values."""
    assert section.keyset is not None  # noqa: S101  it has a label
    try:
        rows = section.keyset.queryset.filter(**filters).values_list("pk", flat=True)
        with section.site.active():
            return list(rows[:CANDIDATES])
    except (FieldError, ValidationError, ValueError, TypeError, OverflowError):
        return []  # What the URL says is no value of these fields.


def _match(site: Site, path: str) -> ResolverMatch | None:
    plain = unquote(path.partition("?")[0])
    if not plain.startswith(site.prefix):
        return None
    try:
        rooted = "/" + plain.removeprefix(site.prefix)
        with site.active(get_language_from_path(rooted)):
            return resolve(rooted, site.urlconf)
    except Resolver404:
        return None


def _filters(section: BaseSection, match: ResolverMatch) -> Iterator[dict[str, Any]]:
    """Yield what a row has to have for its path to be that of the match, in any language."""
    # The arguments of a get_absolute_url() are most often fields of the same names.
    assert section.keyset is not None  # noqa: S101  it has a label
    model = section.keyset.queryset.model
    route = section.location if isinstance(section, Section) else None
    if isinstance(route, Route):
        if route.viewname != match.view_name:
            return
        pairs = (  # reverse() takes what has no name for arguments that have one, in their order.
            zip(route.args, match.args or match.kwargs.values(), strict=False)
            if route.args
            else ((column, match.kwargs.get(name)) for name, column in route.kwargs.items())
        )
        said = list(pairs)
        is_translated = any(isinstance(column, Translated) for column, _value in said)
        for code in _codes(section) if is_translated else [""]:
            columns = [(_path_of(column, model, code), value) for column, value in said]
            yield {column: value for column, value in columns if isinstance(column, str)}
        return
    fields = {field.name for field in model._meta.concrete_fields} | {"pk"}
    yield {name: value for name, value in match.kwargs.items() if name in fields}


def _codes(section: BaseSection) -> list[str]:
    return section.spoken.here if section.spoken else [default_language()]


def _path_of(column: Any, model: type[Model], code: str) -> Any:
    """Return a Route's column, or the path to what it is in one language."""
    if not isinstance(column, Translated):
        return column
    found = column.column(model, code)
    return found.value if isinstance(found, Related) else found


def _item_at(section: BaseSection, location: str) -> tuple[int, int, Chunk] | None:
    """Return the position of the item of a list that has a location, and its row in a chunk."""
    begin = 0
    try:
        for chunk in section.chunks(KeyRange(0, min(section.size(), ITEMS))):
            place = _place_of(section, chunk, location)
            if place is not None:
                item = place if chunk.versions is None else chunk.versions.objects[place]
                return begin + item, place, chunk
            begin += len(chunk.keys) if chunk.read is None else chunk.read
    except Exception:
        logger.exception("%r could not be asked for its URLs.", section)
    return None


def _place_of(section: BaseSection, chunk: Chunk, location: str) -> int | None:
    """Return the place of a row that has a location, or None."""
    scope = section.site.scope()
    for place in _places_here(section, chunk):
        with suppress(RefusedValue):
            url = chunk.locations[place]
            if place not in chunk.refusals and scope.normalise(url) == location:
                return place
    return None


def _places_here(section: BaseSection, chunk: Chunk) -> list[int]:
    """Return the places of the rows that the section's own site lists."""
    if section.spoken is None or chunk.versions is None:
        return list(range(len(chunk.keys)))
    here = section.spoken.here
    return [place for place, code in enumerate(chunk.versions.languages) if code in here]


def _row(chunk: Chunk, place: int) -> Chunk:
    """Return one row of a chunk as a chunk."""
    here = slice(place, place + 1)
    return replace(
        chunk,
        keys=chunk.keys[here],
        locations=chunk.locations[here],
        columns={tag: column[here] for tag, column in chunk.columns.items()},
        own={tag: column[here] for tag, column in chunk.own.items()},
        extensions={option: column[here] for option, column in chunk.extensions.items()},
        versions=chunk.versions
        and Versions(chunk.versions.objects[here], chunk.versions.languages[here]),
        refusals={0: chunk.refusals[place]} if place in chunk.refusals else {},
    )


def _page_of(section: BaseSection, key: Any) -> str:
    """Return the address of the page whose key range has a key; the database compares."""
    keyset = section.keyset
    assert keyset is not None  # noqa: S101  asked for rows
    try:
        pages = all_pages(section)
    except NotPlanned:
        pages = []
    if not pages:
        return ""
    low, high = 0, len(pages)
    while high - low > 1:
        middle = (low + high) // 2
        bound = pages[middle].keys.lower
        if bound == key or keyset.increasing([bound, key]):
            low = middle
        else:
            high = middle
    return page_address(section.site, section.get_name(), pages[low].number)
