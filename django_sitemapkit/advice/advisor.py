"""Advises sections: what is examined, and in which order."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.advice.evaluate import gain_of
from django_sitemapkit.advice.fields import only_finding
from django_sitemapkit.advice.indexes import index_findings
from django_sitemapkit.advice.results import AdviceFinding, SectionAdvice
from django_sitemapkit.advice.routes import route_finding
from django_sitemapkit.advice.sampling import Sample, sample
from django_sitemapkit.advice.tags import tag_finding
from django_sitemapkit.mixins import SitemapMixin
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.reading import ContribReader, QuerySetReader, SectionReader, obstacle
from django_sitemapkit.reading.sources import TAGS, Method
from django_sitemapkit.reading.validation import require_pageable
from django_sitemapkit.sections import Section, name_of
from django_sitemapkit.sites import SitemapSite


def advise(site: SitemapSite) -> Iterator[SectionAdvice]:
    """Yield the advice for each section of a site, in their order."""
    for section in sections_of(site):
        yield advise_section(section)


def advise_section(section: SectionReader) -> SectionAdvice:
    """Return the advice for a section; it reports what a project's code raises."""
    kind = type(section.options)
    path = f"{kind.__module__}.{kind.__qualname__}"
    advice = SectionAdvice(section=section.get_name(), declared=path)
    try:
        require_pageable(section)
        asked = _stand_in(section) if isinstance(section, ContribReader) else section
        if not isinstance(asked, QuerySetReader):
            return replace(advice, not_examined=_why_not(section))
        require_pageable(asked)
        advice = replace(advice, head=_head(section), model=asked.keyset.field.model._meta.label)
        return _advise(asked, advice, section)
    except ImproperlyConfigured as error:
        return replace(advice, not_examined=str(error))
    except Exception as error:  # noqa: BLE001  get_queryset() and managers are the project's
        return replace(advice, not_examined=f"{type(error).__name__}: {error}")


def _advise(
    section: QuerySetReader, advice: SectionAdvice, declared: SectionReader
) -> SectionAdvice:
    found = sample(section)
    advice = replace(advice, rows=len(found.keys), obstacle=obstacle(section))
    if not found.keys:
        message = "no row was found in the sampled places."
        return replace(advice, findings=(AdviceFinding(about="rows", message=message),))
    methods = _methods(section)
    findings, options = _replace_methods(section, methods, found)
    left = {
        name: _called(section, method.function)
        for name, method in methods.items()
        if name not in options
    }
    if left and (only := only_finding(section, left, found.first)):
        findings.append(only)
    findings += _kept_methods(section, left, options)
    if declared is not section:
        findings = [*_replacement(section, options), *findings]
    gain, rows = gain_of(section, options, found.keys) if options else (None, 0)
    findings += index_findings(section, found)
    return replace(advice, findings=tuple(findings), gain=gain, gain_rows=rows)


def _methods(section: QuerySetReader) -> dict[str, Method]:
    """Return the options that are methods, by name."""
    sources = {
        section.location_option: section.location_source,
        **section.sources,
        **section.extension_sources,
    }
    if section.language_plan is not None:
        sources["object_languages"] = section.languages_source
    return {name: source for name, source in sources.items() if isinstance(source, Method)}


def _called(section: QuerySetReader, function: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Return a method as a page calls it: in each language, and to the end of an iterator."""

    def call(obj: Any) -> None:
        language_plan = section.language_plan
        for code in language_plan.rendered if language_plan else [""]:
            with language_plan.active(code, [obj]) if language_plan else nullcontext():
                value = function(obj)
                if isinstance(value, Iterator):
                    list(value)

    return call


def _replace_methods(
    section: QuerySetReader, methods: dict[str, Method], found: Sample
) -> tuple[list[AdviceFinding], dict[str, Any]]:
    """Return the findings about the methods, and the options that can replace them."""
    findings, options = [], {}
    if "location" in methods and section.language_plan is not None:
        message = "no Route is advised, because it is called in each language."
        findings.append(AdviceFinding(about="location", message=message))
    elif "location" in methods:
        finding, route = route_finding(section, found)
        findings.append(finding)
        if route is not None:
            options["location"] = route
    for tag in TAGS:
        if tag in methods:
            finding, value = tag_finding(section, tag, found)
            findings.append(finding)
            if value is not None:
                options[tag] = value
    return findings, options


def _kept_methods(
    section: QuerySetReader, left: dict[str, Any], options: dict[str, Any]
) -> Iterator[AdviceFinding]:
    """Yield findings about the methods that stay, and about what they no longer need."""
    if left and options:
        names = ", ".join(left)
        message = f"objects are still read, because of methods: {names}."
        yield AdviceFinding(about="section", message=message)
    if options and not left and section.options.only is not None:
        yield AdviceFinding(about="only", message="it no longer has an effect: remove it.")


def _head(section: SectionReader) -> str:
    """Return the first line of the class that declares the options."""
    model = getattr(section.options, "model", None)
    if isinstance(model, type) and issubclass(model, SitemapMixin):
        return "class Sitemap:"
    return f"class {type(section.options).__name__}(Section):"


def _stand_in(section: ContribReader) -> QuerySetReader | None:
    """Return a Section that calls a contrib sitemap; None where it pages a list."""
    keyset, sitemap = section.keyset, section.options.sitemap
    if keyset is None or sitemap.i18n:
        return None
    body: dict[str, Any] = {
        "__module__": section.options.__module__,
        "name": section.get_name(),
        "queryset": keyset.queryset,
        "location": lambda _, item: section.locate(item),
    }
    for tag, source in section.sources.items():
        body[tag] = _asking(source) if isinstance(source, Method) else source.value  # type: ignore[union-attr]
    kind: type[Section] = type(type(section.options).__name__, (Section,), body)
    return QuerySetReader(kind(section.site))


def _why_not(section: SectionReader) -> str:
    """Return why nothing can be advised for a section."""
    if section.keyset is None:
        return "it has no queryset that can be read by key."
    return (
        "it is called for each object in every language, and no Route is advised for that. A"
        " Section with i18n = True and a Route reads columns instead."
    )


def _asking(source: Method) -> Any:
    return lambda _, item: source.function(item)


def _replacement(section: QuerySetReader, options: dict[str, Any]) -> Iterator[AdviceFinding]:
    """Yield what a Section declares besides its columns, to replace a contrib sitemap."""
    message = "it calls a class of django.contrib.sitemaps for each object."
    if "location" not in options:
        yield AdviceFinding(about="section", message=message)
        return
    yield AdviceFinding(
        about="section",
        message=f"{message} Declare a Section instead.",
        declare="queryset = ...  # what items() returns",
    )
    if section.get_name() != name_of(type(section.options).__name__):
        line = f'name = "{section.get_name()}"'
        yield AdviceFinding(about="name", message="it keeps the addresses.", declare=line)
    for tag, value in section.constant_tags.items():
        message = "it applies to all entries, as now."
        yield AdviceFinding(about=tag, message=message, declare=f"{tag} = {value!r}")
