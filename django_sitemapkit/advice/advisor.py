"""What is looked at, in which order, and what is passed over."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.advice.fields import only_finding
from django_sitemapkit.advice.gain import gain_of
from django_sitemapkit.advice.indexes import index_finding
from django_sitemapkit.advice.results import Finding, SectionAdvice
from django_sitemapkit.advice.routes import route_finding
from django_sitemapkit.advice.sampling import Sample, sample
from django_sitemapkit.advice.tags import tag_finding
from django_sitemapkit.mixins import SitemapMixin
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.sections import BaseSection, Section
from django_sitemapkit.sections.base import name_of
from django_sitemapkit.sections.contrib import ContribSection
from django_sitemapkit.sections.options import TAGS, Method
from django_sitemapkit.sections.validation import require_pageable
from django_sitemapkit.sites import Site


def advise(site: Site) -> Iterator[SectionAdvice]:
    """Yield what is advised for each section of a site, in their order."""
    for section in sections_of(site):
        yield advise_section(section)


def advise_section(section: BaseSection) -> SectionAdvice:
    """Return what is advised for a section; what a project's code raises is said, not raised."""
    kind = type(section)
    path = f"{kind.__module__}.{kind.__qualname__}"
    advice = SectionAdvice(section=section.get_name(), declared=path)
    try:
        require_pageable(section)
        asked = _stand_in(section) if isinstance(section, ContribSection) else section
        if not isinstance(asked, Section):
            return replace(advice, passed_over=_why_not(section))
        require_pageable(asked)
        advice = replace(advice, head=_head(section), model=asked.keyset.field.model._meta.label)
        return _advise(asked, advice, section)
    except ImproperlyConfigured as error:
        return replace(advice, passed_over=str(error))
    except Exception as error:  # noqa: BLE001  get_queryset() and managers are the project's
        return replace(advice, passed_over=f"{type(error).__name__}: {error}")


def _advise(section: Section, advice: SectionAdvice, declared: BaseSection) -> SectionAdvice:
    found = sample(section)
    advice = replace(advice, rows=len(found.keys))
    if not found.keys:
        message = "no row was found in the places looked at."
        return replace(advice, findings=(Finding(about="rows", message=message),))
    findings, options = _columns(section, found)
    methods = {
        name: _called(section, source.function) for name, source in _methods(section).items()
    }
    left = {name: method for name, method in methods.items() if name not in options}
    if left and (only := only_finding(section, left, found.first)):
        findings.append(only)
    findings += _kept(section, left, options)
    if declared is not section:
        findings = [*_instead(section, options), *findings]
    gain, rows = gain_of(section, options, found.keys) if options else (None, 0)
    if index := index_finding(section, found):
        findings.append(index)
    return replace(advice, findings=tuple(findings), gain=gain, gain_rows=rows)


def _methods(section: Section) -> dict[str, Method]:
    """Return the options that are methods, by name."""
    sources = {
        "location": section.location_source,
        **section.sources,
        **section.extension_sources,
    }
    if section.spoken is not None and section.get_languages is not None:
        sources["get_languages"] = Method(section.get_languages)
    return {name: source for name, source in sources.items() if isinstance(source, Method)}


def _called(section: Section, function: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Return a method as a page calls it: in each language, and to the end of what it yields."""

    def call(obj: Any) -> None:
        spoken = section.spoken
        for code in spoken.asked if spoken else [""]:
            with spoken.active(code, [obj]) if spoken else nullcontext():
                value = function(obj)
                if isinstance(value, Iterator):
                    list(value)

    return call


def _columns(section: Section, found: Sample) -> tuple[list[Finding], dict[str, Any]]:
    """Return what was found about the methods, and what may stand in their place."""
    findings, options = [], {}
    methods = _methods(section)
    if "location" in methods and section.spoken is not None:
        message = "no Route is advised: it is asked for in each language."
        findings.append(Finding(about="location", message=message))
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


def _kept(section: Section, left: dict[str, Any], options: dict[str, Any]) -> Iterator[Finding]:
    """Yield what to know of the methods that stay, and of what they no longer need."""
    if left and options:
        names = ", ".join(left)
        message = f"objects are still read, for {names} being a method."
        yield Finding(about="section", message=message)
    if options and not left and section.only is not None:
        yield Finding(about="only", message="it has no effect any more: leave it out.")


def _head(section: BaseSection) -> str:
    """Return the line of the class that the options stand in."""
    model = getattr(section, "model", None)
    if isinstance(model, type) and issubclass(model, SitemapMixin):
        return "class Sitemap:"
    return f"class {type(section).__name__}(Section):"


def _stand_in(section: ContribSection) -> Section | None:
    """Return a Section that asks a contrib sitemap for everything; None where it pages a list."""
    keyset, sitemap = section.keyset, section.sitemap
    if keyset is None or sitemap.i18n:
        return None
    body: dict[str, Any] = {
        "__module__": section.__module__,
        "name": section.get_name(),
        "queryset": keyset.queryset,
        "location": lambda _, item: section.locate(item),
    }
    for tag, source in section.sources.items():
        body[tag] = _asking(source) if isinstance(source, Method) else source.value  # type: ignore[union-attr]
    kind: type[Section] = type(type(section).__name__, (Section,), body)
    return kind(section.site)


def _why_not(section: BaseSection) -> str:
    """Return why nothing can be advised for a section."""
    if section.keyset is None:
        return "it has no queryset that could be read by key."
    return (
        "it is asked for each object in every language, and no Route is advised for that. A"
        " Section with i18n = True and a Route reads columns instead."
    )


def _asking(source: Method) -> Any:
    return lambda _, item: source.function(item)


def _instead(section: Section, options: dict[str, Any]) -> Iterator[Finding]:
    """Yield what a Section has to say beside its columns, to stand for a contrib sitemap."""
    message = "it asks a class of django.contrib.sitemaps for each object."
    if "location" not in options:
        yield Finding(about="section", message=message)
        return
    yield Finding(
        about="section",
        message=f"{message} Declare a Section in its place.",
        declare="queryset = ...  # what items() returns",
    )
    if section.get_name() != name_of(type(section).__name__):
        line = f'name = "{section.get_name()}"'
        yield Finding(about="name", message="it keeps the addresses as they are.", declare=line)
    for tag, value in section.plain.items():
        message = "it holds for all entries, as now."
        yield Finding(about=tag, message=message, declare=f"{tag} = {value!r}")
