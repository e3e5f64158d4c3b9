"""Why a URL is listed as it is, or not at all: for editors."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Model
from django.template.defaultfilters import yesno
from django.utils.formats import localize
from django.utils.translation import gettext as _

from django_sitemapkit._django import querysets_by_condition
from django_sitemapkit.identities import label_of
from django_sitemapkit.inspection.candidates import (
    all_rows,
    candidate_rows,
    find_item,
    has_readable_rows,
    is_searchable,
    label_or_none,
    listed_locations_of,
    listed_row_indexes,
    route_of,
    unlisted_locations,
    url_match,
)
from django_sitemapkit.overrides import (
    Overrides,
    disabled_sections_of,
    overrides_of,
    sections_of,
)
from django_sitemapkit.planning import all_pages
from django_sitemapkit.printable import printable
from django_sitemapkit.protocol.locations import normalise_path
from django_sitemapkit.protocol.writers import url_element
from django_sitemapkit.reading import (
    EVERYTHING,
    TAGS,
    Chunk,
    QuerySetReader,
    SectionReader,
    reader_of,
)
from django_sitemapkit.registry import belongs_to, registry
from django_sitemapkit.rendering import ChunkPipeline, page_address, with_tag_texts
from django_sitemapkit.sections import BaseSection, Section
from django_sitemapkit.sites import SitemapSite


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """The value of a tag, and where it comes from."""

    text: str | None
    """The text in the sitemap; None for no tag."""
    origin: str
    """Where it comes from, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlInspection:
    """Whether and where one URL is listed, its values, and the reason if it is not."""

    section: str
    """The name of the section that gives it; "" where that is not known."""
    location: str | None = None
    """The URL; None where there is none."""
    listed: bool = False
    """Whether it is in the sitemap, as the rows and the overrides are now."""
    why: str = ""
    """Why it is not; "" where it is."""
    step: str = ""
    """What leaves it out: "section", "row", "language", "values" or "rules"; "" where it is listed.

    They decide in this order.
    """
    language: str = ""
    """The code of its language; "" where its section has none."""
    values: dict[str, ValueOrigin] = field(default_factory=dict)
    """The optional tags."""
    xml: str = ""
    """Its ``<url>``; "" where it is not listed."""
    page: str = ""
    """The address of the page that has it; "" where none has."""
    pk: Any = None
    """The primary key of the row that it is a URL of; None where there is none."""
    rule: str = ""
    """The pattern of the rule that excludes it; "" where none does."""
    problems: tuple[str, ...] = ()
    """Why it is listed without values that are declared, or is doubtful."""


def inspect_object(site: SitemapSite, obj: Model) -> list[UrlInspection]:
    """Return inspections of an object: one for each URL in each section over its model.

    A section that does not list the object gives one too, with the reason. The list is empty if
    no section lists objects of the model.
    """
    return list(inspections_of(site, obj))


def inspections_of(site: SitemapSite, obj: Model) -> Iterator[UrlInspection]:
    """Yield what ``inspect_object()`` returns, a section at a time."""
    label = label_of(type(obj))
    on = {section.get_name(): section for section in sections_of(site)}
    sections = [section for section in on.values() if label_or_none(section) == label]
    for section in sections:
        yield from _inspect_row(section, obj.pk)
    for cls in registry.classes_of(site):
        if cls.get_name() not in on and label_or_none(reader_of(cls(site))) == label:
            name = cls.get_name()
            why = _("This site does not have section %(section)s.") % {"section": name}
            why = _switched_off_text(name) if belongs_to(cls, site) else why
            yield UrlInspection(section=name, why=why, step="section")


def inspect_path(site: SitemapSite, path: str, *, without_section: str = "") -> UrlInspection:
    """Return the first inspection of a URL, given by its normalised path on a site.

    The row is found through the routes and the lists of the sections. If no section lists it, it is
    looked for among all rows of their models; if there is none either, only the values that editors
    set for the URL are known. The section named ``without_section`` is ignored.
    """
    return inspect_listings(site, path, without_section=without_section)[0]


def inspect_listings(
    site: SitemapSite, path: str, *, without_section: str = ""
) -> list[UrlInspection]:
    """Return an inspection for each row and item that lists a URL, in the order of the index.

    At most ``MAX_CANDIDATES`` rows of a section are inspected, or one item. If nothing lists the
    URL, there is one inspection, which says why. The section named ``without_section`` is ignored.
    """
    sections = [section for section in sections_of(site) if section.get_name() != without_section]
    order = [section.get_name() for section in sections]
    found = list(_inspections_at(site, path, sections))
    listed = [inspected for inspected in found if inspected.listed]
    listed.sort(key=lambda inspected: order.index(inspected.section))
    return listed or found[:1] or [_inspect_unlisted(site, path, sections)]


def _inspections_at(
    site: SitemapSite, path: str, sections: Sequence[SectionReader]
) -> Iterator[UrlInspection]:
    """Yield an inspection for each row and item of some sections that has the URL at a path."""
    location = site.origin + path
    seen: set[tuple[str, Any]] = set()
    for section, pk in candidate_rows(site, path, sections):
        identity = section.get_name(), pk
        if identity in seen:
            continue
        seen.add(identity)
        versions = _inspect_row(section, pk, location)
        yield from (each for each in versions if each.location == location)
    for section in sections:
        if label_or_none(section) is None and (found := find_item(section, location)):
            number, index, chunk = found
            page = page_address(site, section.get_name(), number)
            yield _inspect_chunk_row(section, chunk, index, page=page)


def _inspect_unlisted(
    site: SitemapSite, path: str, sections: Sequence[SectionReader]
) -> UrlInspection:
    """Return the inspection of a URL that no section has: why, and the values that editors set."""
    no_section = SectionReader(BaseSection(site))
    pipeline = ChunkPipeline(no_section)
    effects = overrides_of(site).effects(no_section, [path], [site.origin + path])
    section, found, why, step = _why_unlisted_at(site, path, sections)
    rule = effects.excluded.get(0, "")
    excluded = _excluded_text(rule) if 0 in effects.excluded else ""
    if excluded and not (why or all(map(is_searchable, sections))):
        why, step = excluded, "rules"  # A section that cannot be searched may produce it.
    else:
        why = f"{why or _why_no_section(site, path, sections)} {excluded}".rstrip()
    texts = pipeline.override_texts(effects, [path])
    values = {tag: ValueOrigin(rows[0], _("URL override")) for tag, rows in texts.items()}
    return UrlInspection(
        section=section,
        location=site.origin + path,
        why=why,
        step=step,
        values=values,
        pk=found,
        rule=rule,
    )


def _why_unlisted_at(
    site: SitemapSite, path: str, sections: Sequence[SectionReader]
) -> tuple[str, Any, str, str]:
    """Return which section leaves out the URL at a path: its name, the row's key, reason and step.

    If it leaves out no row, it is a switched-off section, or the one whose Route makes URLs like
    this. If there is none of these, name and reason are "".
    """
    for reader, pk in candidate_rows(site, path, sections, listed=False):
        if why := _why_not_at(reader, pk, site.origin + path):
            return reader.get_name(), pk, why, "row"
    for hidden in _inspections_at(site, path, disabled_sections_of(site)):
        return hidden.section, None, _switched_off_text(hidden.section), "section"
    match = url_match(site, path) if all(map(is_searchable, sections)) else None
    for reader in [*sections, *disabled_sections_of(site)] if match else ():
        route = route_of(reader) if has_readable_rows(reader) else None
        if match and route and route.viewname == match.view_name:
            text = _("Section %(section)s produces such URLs, but not this one. Check the address.")
            return reader.get_name(), None, text % {"section": reader.get_name()}, "row"
    return "", None, "", "section"


def similar_path(site: SitemapSite, path: str) -> str:
    """Return a listed path that differs from one only a little; "" if none is.

    It may differ by the slash at the end, by the query, or by capitals.
    """
    plain, _, query = path.partition("?")
    slashed = plain.removesuffix("/") if plain.endswith("/") else f"{plain}/"
    lower = [normalise_path(each.lower()) for each in (plain, slashed) if each]
    others = [slashed + f"?{query}" * bool(query), plain, slashed, *lower]
    tried = (other for other in dict.fromkeys(others) if other not in {"", path})
    return next((other for other in tried if inspect_path(site, other).listed), "")


def _why_no_section(site: SitemapSite, path: str, sections: Sequence[SectionReader]) -> str:
    """Return why no section lists a URL: if the site has a page there, and what was searched."""
    page = _("No page of this site was found for this address.")
    if url_match(site, path):
        page = _("This site may have a page at this address; whether it answers was not checked.")
    elif not path.endswith("/") and url_match(site, f"{path}/"):
        page = _("This site may have a page at this address only with a slash at its end.")
    text = _("No section lists this URL.")
    tried = [*sections, *disabled_sections_of(site)]
    if names := [section.get_name() for section in tried if not is_searchable(section)]:
        text = _("No section was found for this URL. Not searched by URL: %(sections)s.")
        text %= {"sections": ", ".join(names)}
    return f"{page} {text}"


def _switched_off_text(name: str) -> str:
    """Return a sentence that says that a section is switched off."""
    return _("Section %(section)s is switched off.") % {"section": name}


def _why_not_at(section: SectionReader, pk: Any, location: str) -> str:
    """Return why a section does not list a row at a location; "" if it is not known to be there."""
    if location in unlisted_locations(section, pk):
        return _why_row_absent(section, pk)
    if not isinstance(section, QuerySetReader) or section.route is None:
        return ""  # Only a Route says whose URL it is.
    urls = [
        f"{each.location}{each.language and f' ({each.language})'}"
        for each in _inspect_row(section, pk)
        if each.listed
    ]
    text = _("Section %(section)s lists the object of this address elsewhere: %(urls)s")
    return text % {"section": section.get_name(), "urls": ", ".join(urls)} if urls else ""


def _inspect_row(
    section: SectionReader, pk: Any, location: str | None = None
) -> list[UrlInspection]:
    """Return an inspection of each URL of a row; with ``location``, only of those equal to it.

    A row outside the section's queryset, or without URLs, has an inspection with the reason.
    """
    name = section.get_name()
    why = ""
    try:
        chunk = next(iter(section.filtered(pk=pk).chunks(EVERYTHING)), None)
        page = _page_address_of(section, chunk.keys[0]) if chunk is not None and chunk.keys else ""
    except Exception as error:  # noqa: BLE001  a project's section may raise anything
        chunk = None
        why = f"{type(error).__name__}: {error}"
    if chunk is None:
        why = why or _why_row_absent(section, pk)
        absent = UrlInspection(section=name, why=why, step="row", pk=pk)
        locations = unlisted_locations(section, pk)
        return [replace(absent, location=each) for each in locations] or [absent]
    indexes = listed_row_indexes(section, chunk)
    if location is not None:
        found = listed_locations_of(section, chunk)
        indexes = [index for index in indexes if found.get(index) == location]
    elif not indexes:
        text = _("It has no version in a language that section %(section)s lists here.")
        why = text % {"section": name} if section.languages else _no_url_text(section)
        return [UrlInspection(section=name, why=why, step="language", pk=pk)]
    return [
        replace(_inspect_chunk_row(section, chunk, index, page=page), pk=pk) for index in indexes
    ]


def _why_row_absent(section: SectionReader, pk: Any) -> str:
    """Return why the queryset of a section does not contain a row, as a sentence."""
    text, values = _("Section %(section)s does not list it: it is not in the queryset."), ""
    obj = all_rows(section).filter(pk=pk).first()
    if obj is not None:  # One that is gone has no values.
        has_own_values = isinstance(section, QuerySetReader) and section.row_value_columns
        if has_own_values and not getattr(obj, "sitemap_include", True):
            return _("Its own setting “list in the sitemap” excludes it.")
        if own := _own_reason(section, obj):
            return own
        if values := ", ".join(_failed_filter_texts(section, obj)):
            text = _("Section %(section)s does not list it: %(values)s.")
    return text % {"section": section.get_name(), "values": values}


def _failed_filter_texts(section: SectionReader, obj: Model) -> list[str]:
    """Return the values by which filters exclude an object, as texts; [] if they are not known."""
    names = set[str]()
    with suppress(Exception):  # What filters it may be anything that Django can write.
        for rows, columns in querysets_by_condition(section.required_keyset.queryset):
            if not rows.filter(pk=obj.pk).exists():
                names |= columns
    return [_field_value_clause(obj, name) for name in sorted(names)]


def _field_value_clause(obj: Model, name: str) -> str:
    """Return a clause that names a field of an object and its value: "“status” is draft"."""
    value = getattr(obj, f"get_{name}_display", lambda: getattr(obj, name))()
    text = yesno(value) if isinstance(value, bool) else printable(localize(value))
    return _("“%(field)s” is %(value)s") % {
        "field": getattr(obj._meta.get_field(name), "verbose_name", name),
        "value": _("empty") if value in (None, "") else text,
    }


def _own_reason(section: SectionReader, obj: Model) -> str:
    """Return what ``why_not_listed()`` of a section says of an object, or its error, or ""."""
    if not isinstance(section.options, Section):
        return ""
    try:
        with section.site.active():
            return section.options.why_not_listed(obj)
    except Exception as error:  # noqa: BLE001  a project's section may raise anything
        return f"{type(error).__name__}: {error}"


def _no_url_text(section: SectionReader) -> str:
    """Return a sentence that says that a section gives an object no URL."""
    return _("Section %(section)s gives it no URL.") % {"section": section.get_name()}


def _inspect_chunk_row(
    section: SectionReader, chunk: Chunk, index: int, *, page: str
) -> UrlInspection:
    """Return the inspection of the row of a chunk with an index; ``page`` is the page's address.

    The chunk has the row's versions in all languages.
    """
    name, languages = section.get_name(), chunk.versions.languages if chunk.versions else None
    row = chunk.repeat_rows([index], [chunk.locations[index]], languages and [languages[index]])
    language = languages[index] if languages else ""
    pipeline = ChunkPipeline(section)
    declared, problems = pipeline.declared_entries(row), pipeline.problems.examples
    if not declared.locations:
        reasons = (problem.message for problem in problems if problem.skipped)
        why = next(reasons, _no_url_text(section))
        return UrlInspection(section=name, why=why, step="values", language=language)
    doubts = tuple(problem.message for problem in problems)
    overrides: Overrides = section.overrides
    effects = overrides.effects(section, declared.keys, declared.locations)
    texts = pipeline.override_texts(effects, declared.keys)
    entries = with_tag_texts(declared, texts)
    location = declared.locations[0]
    entry = entries.entry(0)
    values = {
        tag: ValueOrigin(
            text := getattr(entry, tag),
            _origin_of(section, row, tag, text, overridden=tag in texts),
        )
        for tag in TAGS
    }
    if 0 in effects.excluded:
        rule = effects.excluded[0]
        return UrlInspection(
            section=name,
            location=location,
            why=_excluded_text(rule),
            step="rules",
            language=language,
            values=values,
            rule=rule,
            problems=doubts,
        )
    extensions: dict[str, str | None] = {}
    if section.extension_sources or section.languages or section.links_rows:
        # Of the whole chunk, for versions link to each other.
        listed = ChunkPipeline(section).entries(chunk)
        extensions = dict(zip(listed.locations, listed.extensions or (), strict=False))
    return UrlInspection(
        section=name,
        location=location,
        listed=True,
        language=language,
        values=values,
        xml=url_element(replace(entry, extensions=extensions.get(location))),
        page=page,
        problems=doubts,
    )


def _origin_of(
    section: SectionReader, chunk: Chunk, tag: str, text: str | None, *, overridden: bool
) -> str:
    """Return where the value of a tag comes from, as text: an override, the object, the section.

    ``text`` is the value; None for an empty or invalid one. ``overridden`` says whether an
    override sets it.
    """
    if overridden:
        return _("URL override")
    if tag in chunk.row_values and chunk.row_values[tag][0] not in (None, ""):
        return _("the object's own field")
    if tag in section.setting_values:
        return _("section settings")
    if tag in section.tag_sources:
        return (
            _("declaration of the section: no value to list")
            if text is None
            else _("declaration of the section")
        )
    return _("not set")


def _excluded_text(pattern: str) -> str:
    """Return a sentence that says what excludes a URL: a rule's pattern, or an override for ""."""
    return (
        _("The exclusion rule %(pattern)s excludes it.") % {"pattern": pattern}
        if pattern
        else _("A URL override excludes it.")
    )


def _page_address_of(section: SectionReader, key: Any) -> str:
    """Return the address of the sitemap page whose key range has a key; "" if there are no pages.

    The database compares the keys.
    """
    pages = all_pages(section)
    if not pages:
        return ""
    page = pages[section.required_keyset.index_of_range(key, [page.keys for page in pages])]
    return page_address(section.site, section.get_name(), page.number)
