"""The sections of a project, by name."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from inspect import isabstract
from types import MappingProxyType
from typing import Any, Self, TypeVar, overload

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.db import Error as DatabaseFailure

from django_sitemapkit.conf import read_once
from django_sitemapkit.printable import writable
from django_sitemapkit.reading import SectionReader, reader_of
from django_sitemapkit.sections import (
    BaseSection,
    ExternalSection,
    Registered,
    adapt_contrib,
    is_contrib,
)
from django_sitemapkit.sections.declarations import NAME
from django_sitemapkit.sites import NoFrameworkSite, SitemapSite
from django_sitemapkit.words import State

_Declared = TypeVar("_Declared")

Switched = Mapping[str, bool]
"""Sections by name that are on or off whatever they declare."""

NOT_SWITCHED: Switched = MappingProxyType({})

SectionsOf = Callable[[SitemapSite], Mapping[str, Any]]
"""Returns sections of a site by name."""

EXTRA_URLS = "extra-urls"
"""The name of the section of URLs that editors add; no other may have it."""

MAX_NAME = 80
"""Characters of a section's name; it becomes part of file names and database columns."""


class Registry:
    """Section classes by name, in the order they were registered."""

    def __init__(self) -> None:
        self._sections: dict[str, type[Registered]] = {}
        self._functions: list[SectionsOf] = []

    def __iter__(self) -> Iterator[type[BaseSection]]:
        """Iterate over the registered section classes, without external ones."""
        return (s for s in self._sections.values() if issubclass(s, BaseSection))

    def declared(self) -> list[type[Registered]]:
        """Return all registered classes, those of external sections included."""
        return list(self._sections.values())

    def add(
        self, section: Any, name: str | None = None, new_sitemap: Callable[[], Any] | None = None
    ) -> None:
        """Register a section class, or a contrib sitemap, which may be a class or an instance.

        For a contrib sitemap, ``new_sitemap`` may return a new instance for each read. Raises
        ImproperlyConfigured for anything else, and for a name that is invalid or taken.
        """
        if isabstract(section):
            lacks = ", ".join(sorted(section.__abstractmethods__))
            raise ImproperlyConfigured(
                f"{dotted_path(section)} is abstract: it lacks {lacks}. Register the classes"
                " derived from it instead."
            )
        if is_contrib(section):
            section = adapt_contrib(section, name, new_sitemap)
        elif not (isinstance(section, type) and issubclass(section, Registered)):
            raise ImproperlyConfigured(
                f"{section!r} cannot be registered: it is neither a Section nor a"
                " django.contrib.sitemaps.Sitemap."
            )
        elif name is not None:
            origin = {"__module__": section.__module__, "__qualname__": section.__qualname__}
            section = type(section.__name__, (section,), {"name": name, **origin})
        name = section.get_name()
        if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > MAX_NAME:
            raise ImproperlyConfigured(
                f"{dotted_path(section)}: the name {name!r} cannot be part of an address; set name"
                f" to at most {MAX_NAME} lower-case letters, digits and single - or _."
            )
        if name == EXTRA_URLS:
            raise ImproperlyConfigured(
                f"{dotted_path(section)}: the name {name!r} is reserved for the URLs added in the"
                " admin."
            )
        sites = section.sites
        if sites is not None and (isinstance(sites, str) or not isinstance(sites, Collection)):
            raise ImproperlyConfigured(
                f"{dotted_path(section)}: sites is {sites!r}; give a list of keys of sites, as"
                " strings."
            )
        if taken := self._sections.get(name):
            message = (
                f"Two sections are named {name!r}: {dotted_path(taken)} and {dotted_path(section)};"
                " set name on one of them."
            )
            if dotted_path(taken) == dotted_path(section):
                message = (
                    f"{dotted_path(section)} is registered twice as {name!r}: register it once, or"
                    " set name if these are two classes."
                )
            raise ImproperlyConfigured(message)
        self._sections[name] = section

    def add_all(self, sections: Mapping[str, Any]) -> None:
        """Register sections by name; a value may be a function that returns one."""
        for name, section in sections.items():
            is_factory = callable(section) and not isinstance(section, type)
            made = section() if is_factory else section
            self.add(made, name, section if is_factory and not isinstance(made, type) else None)

    def add_function(self, function: SectionsOf) -> None:
        """Register a function that returns sections for a site, called when they are needed."""
        self._functions.append(function)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is registered."""
        return not (self._sections or self._functions)

    @property
    def why_no_url(self) -> State:
        """Why no sitemap has a URL, as a state to be shown."""
        return {"code": "no-section" if self.is_empty else "no-url"}

    @property
    def has_functions(self) -> bool:
        """Whether functions return sections, so that a site may have others than the registered."""
        return bool(self._functions)

    def remove(self, name: str) -> None:
        """Unregister a section. Raises KeyError for an unknown name."""
        del self._sections[name]

    @contextmanager
    def isolated(self, *, empty: bool = True) -> Iterator[Self]:
        """Let tests register sections of their own; afterwards the registry is as before.

        With ``empty=False`` it begins with the sections that are registered already. ::

            with registry.isolated():
                register(Products)
                assert client.get("/sitemap.xml").status_code == 200
        """
        before = self._sections, self._functions
        self._sections = {} if empty else dict(before[0])
        self._functions = [] if empty else list(before[1])
        try:
            yield self
        finally:
            self._sections, self._functions = before

    def enabled_readers(
        self, site: SitemapSite, switched: Switched = NOT_SWITCHED
    ) -> list[SectionReader]:
        """Return the enabled sections of a site, ready to be read.

        ``switched`` says by name which are on or off, whatever they declare.
        """
        return [_reader(s, site) for s in self.classes_of(site) if _is_enabled(s, site, switched)]

    def classes_of(self, site: SitemapSite) -> list[type[BaseSection]]:
        """Return the section classes that are registered, or that functions return for a site.

        They may be disabled, or for other sites only; external sections are not among them.
        """
        return [s for s in self._classes_by_name(site).values() if issubclass(s, BaseSection)]

    def enabled_classes(self, site: SitemapSite) -> list[type[BaseSection]]:
        """Return a site's enabled section classes, without calling functions for more."""
        return [section for section in self if _is_enabled(section, site, NOT_SWITCHED)]

    def get(
        self, site: SitemapSite, name: str, switched: Switched = NOT_SWITCHED
    ) -> SectionReader | None:
        """Return one enabled section of a site by name, ready to be read, or None."""
        section = self._classes_by_name(site).get(name)
        if section is None or not issubclass(section, BaseSection):
            return None
        return _reader(section, site) if _is_enabled(section, site, switched) else None

    def externals(self, site: SitemapSite) -> list[ExternalSection]:
        """Return the enabled external sections of a site."""
        return [
            section(site)
            for section in self._classes_by_name(site).values()
            if issubclass(section, ExternalSection) and _is_enabled(section, site, NOT_SWITCHED)
        ]

    def _classes_by_name(self, site: SitemapSite) -> dict[str, type[Registered]]:
        """Return all registered classes by name, with those that functions return for a site.

        Raises ImproperlyConfigured if a function returns a name that is taken.
        """
        if not self._functions:
            return self._sections
        found = dict(self._sections)
        for function in self._functions:
            returned = read_once((function, site), partial(_call_sections_function, function, site))
            for name, section in returned.items():
                if taken := found.get(name):
                    raise ImproperlyConfigured(
                        f"{dotted_path(function)} returns a section {name!r}, which"
                        f" {dotted_path(taken)} is already: give it another name."
                    )
                found[name] = section
        return found


registry = Registry()
"""The registry that ``register`` fills and the views read."""


_NOTHING: Any = object()


@overload
def register(section: _Declared, *, name: str | None = ...) -> _Declared: ...
@overload
def register(*, name: str | None = ...) -> Callable[[_Declared], _Declared]: ...
def register(section: Any = _NOTHING, *, name: str | None = None) -> Any:
    """Register a section: a class, with the decorator ``@register``, or a contrib sitemap.

    ``name`` overrides the section's own: ``@register(name="goods")``. Returns ``section``.
    Raises ImproperlyConfigured if it is not a section, or the name is taken.
    """
    if section is _NOTHING:
        return partial(register, name=name)
    registry.add(section, name)
    return section


def register_all(sections: Mapping[str, Any] | SectionsOf) -> None:
    """Register a dict of names and sections, such as one made for contrib's ``sitemap`` view.

    As there, a value may be a function without arguments that returns one: a ``partial`` of a
    class.

    Instead of a dict it may be a function that gets the site and returns one. It is called once for
    each request, build and command, and elsewhere each time the sections are needed. It may read
    the database: no check calls it.
    """
    if callable(sections):
        registry.add_function(sections)
    else:
        registry.add_all(sections)


def _call_sections_function(function: SectionsOf, site: SitemapSite) -> dict[str, type[Registered]]:
    """Call a project's function for the sections of a site, and return them by name.

    Raises ImproperlyConfigured if it raises an error; one of the database is raised as it is.
    """
    found = Registry()
    try:
        found.add_all(function(site))
    except (DatabaseError, ImproperlyConfigured):
        raise
    except Exception as error:
        raise ImproperlyConfigured(
            f"{dotted_path(function)}, which returns the sections of site {site.key!r}, raised"
            f" {type(error).__name__}: {error}."
        ) from error
    return found._sections


def _reader(section: type[BaseSection], site: SitemapSite) -> SectionReader:
    """Return the reader of a new instance of a section.

    Raises ImproperlyConfigured, which names it, if its own code raises an error.
    """
    try:
        return reader_of(section(site))
    except (DatabaseFailure, MemoryError, NoFrameworkSite):
        raise
    except Exception as error:
        raised = f"{dotted_path(section)} raised {type(error).__name__}: "
        what = f"{'' if isinstance(error, ImproperlyConfigured) else raised}{writable(error)}"
        raise ImproperlyConfigured(f"Section {section.get_name()!r}: {what}") from error


def belongs_to(section: type[Registered], site: SitemapSite) -> bool:
    """Return whether a section is one of a site's, enabled or not."""
    here = section.sites is None or site.key in map(str, section.sites)
    return here and (site.sections is None or section.get_name() in site.sections)


def _is_enabled(section: type[Registered], site: SitemapSite, switched: Switched) -> bool:
    """Return whether a site has a section, and it is switched on or else declared as enabled."""
    return switched.get(section.get_name(), section.enabled) and belongs_to(section, site)


def dotted_path(class_or_function: Any) -> str:
    """Return the dotted path of a section class or a function."""
    return f"{class_or_function.__module__}.{class_or_function.__qualname__}"
