"""Rows in several languages: each object once in every language it has, one after the other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from itertools import repeat
from operator import is_not
from typing import TYPE_CHECKING, Any

from django.conf import settings as django_settings
from django.utils.functional import Promise
from django.utils.translation import get_supported_language_variant

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.extensions import Restriction
from django_sitemapkit.protocol.locations import normalise_url, shown
from django_sitemapkit.sections.chunks import INFRASTRUCTURE, Chunk, Versions, each, refusal_of
from django_sitemapkit.sections.options import Method
from django_sitemapkit.sites import Site, site_at

if TYPE_CHECKING:
    from django_sitemapkit.sections.base import BaseSection

Spoken = set[tuple[int, str]]
"""Places of objects, with each of their languages."""

LINKS = 10_000
"""Links in one chunk, about: in twenty languages each object has four hundred of them."""


def default_language() -> str:
    """Return the code of LANGUAGE_CODE in settings.LANGUAGES: "en" where that has no "en-us"."""
    with suppress(LookupError):
        return get_supported_language_variant(django_settings.LANGUAGE_CODE)
    return django_settings.LANGUAGE_CODE


def default_url(url: object, section: "BaseSection") -> str:
    """Return an x_default that is no language as a URL; raises RefusedValue where it is none.

    Where languages have hosts of their own, a path would be another page on each of them.
    """
    if section.language_hosts and isinstance(url, str) and url.startswith("/"):
        raise RefusedValue(
            "invalid-url",
            f"Invalid URL: {shown(url)}: with language_hosts a path is another page on each host;"
            " write the whole URL.",
        )
    return normalise_url(url, section.site.origin)


@dataclass(slots=True)
class Version:
    """Some objects in one language, by column."""

    language: str
    """Its code, as settings.LANGUAGES has it."""
    locations: Sequence[Any]
    """As those of a chunk; None where an object has no such version, or it is refused."""
    refusals: dict[int, RefusedValue] = field(default_factory=dict)
    """Why a version is refused, by its object's place."""
    extensions: dict[str, Sequence[Any]] = field(default_factory=dict)
    """Images, videos, news and own elements that differ by language, by option."""


class Languages:
    """The languages of a section, and the site that has the versions in each."""

    def __init__(self, section: "BaseSection") -> None:
        named = section.languages
        every = [code for code, _ in django_settings.LANGUAGES]
        some = every if named is None or isinstance(named, str) else named
        self.codes: list[str] = list(dict.fromkeys(some))
        """The languages that an object may have, in the order in which they are listed."""
        hosts = section.language_hosts
        self.sites: dict[str, Site] = {
            code: site_at(hosts[code]) if code in hosts else section.site for code in self.codes
        }
        """Where the versions in each language stand."""
        self._section = section

    @cached_property
    def here(self) -> list[str]:
        """The languages that the section's own site lists."""
        own = self._section.site
        return [code for code, site in self.sites.items() if site.base == own.base]

    @cached_property
    def asked(self) -> list[str]:
        """The languages to ask for: those of other sites are only linked to."""
        return self.codes if self._section.alternates else self.here

    @property
    def at_once(self) -> int:
        """Objects of one chunk: each of their versions may link to all of them."""
        links = len(self.asked) ** 2 if self._section.alternates else len(self.asked)
        return max(1, LINKS // max(1, links))

    def spoken_by(self, objects: Sequence[Any], refusals: dict[int, RefusedValue]) -> Spoken | None:
        """Return the languages that objects say they have; None where all have all.

        An object whose method raises is refused, in all of them.
        """
        ask = self._section.get_languages or self._section._languages_of
        if ask is None:
            return None
        told, refused = each(lambda obj: list(ask(obj)), objects, "get_languages")
        refusals.update(refused)
        return {
            (place, code)
            for place, codes in enumerate(told)
            for code in (self.codes if codes is None else codes)
        }

    def located(
        self, objects: Sequence[Any], locate: Callable[[Any], Any], spoken: Spoken | None
    ) -> list[Version]:
        """Return the versions of objects whose locations a method tells, asked in each language."""
        versions = []
        for code in self.asked:
            places = [n for n in range(len(objects)) if spoken is None or (n, code) in spoken]
            with self.active(code, objects):
                some, refusals = each(locate, [objects[place] for place in places], "location")
            locations: list[Any] = [None] * len(objects)
            for place, location in zip(places, some, strict=True):
                locations[place] = location
            refusals = {places[row]: why for row, why in refusals.items()}
            versions.append(Version(code, locations, refusals))
        return versions

    def extend(self, versions: Iterable[Version], objects: Sequence[Any]) -> None:
        """Ask for what else there is to say of objects, in the language of each version.

        Of versions that other sites list nothing is said here.
        """
        for version in versions:
            here = version.language in self.here
            there = [here and location is not None for location in version.locations]
            with self.active(version.language, objects):
                version.extensions = extensions_of(self._section, objects, there)

    def chunk(
        self,
        chunk: Chunk,
        objects: Sequence[Any],
        locate: Callable[[Any], Any],
        spoken: Spoken | None,
    ) -> Chunk:
        """Return a chunk of objects as one of all their versions, located by a method."""
        versions = self.located(objects, locate, spoken)
        self.extend(versions, objects)
        return in_languages(chunk, versions)

    @contextmanager
    def active(self, code: str, objects: Iterable[Any]) -> Iterator[None]:
        """Let a language be the active one, and that of objects which hold one of their own."""
        with self.sites[code].active(code, current=self._section.site):
            for obj in objects:
                if hasattr(obj, "set_current_language"):  # As those of django-parler do.
                    obj.set_current_language(code)
            yield


def extensions_of(
    section: "BaseSection", objects: Sequence[Any], there: Iterable[bool] = repeat(True)
) -> dict[str, Sequence[Any]]:
    """Return what a section's methods say of images, videos, news and elements, by option.

    Asked is about the objects that are ``there``. What a method raises stands in the place of its
    value: it costs the row no more than that.
    """
    return {
        option: [
            _value(source, option, obj) if is_there else None
            for obj, is_there in zip(objects, there, strict=False)
        ]
        for option, source in section.extension_sources.items()
        if isinstance(source, Method)
    }


def _value(source: Method, option: str, obj: Any) -> Any:
    try:
        return _settled(source.function(obj))
    except INFRASTRUCTURE:
        raise
    except Exception as error:  # noqa: BLE001  a project's method may raise anything
        return refusal_of(error, option)


def _settled(value: Any) -> Any:
    """Return a value that does not change with the language any more: no lazy text is left.

    What has none is returned as it is, but for an iterator, which can be read only once.
    """
    match value:
        case None | str() | int() | Restriction():
            pass
        case Promise():
            return str(value)
        case list() | tuple():
            settled = [_settled(one) for one in value]
            if any(map(is_not, settled, value)):
                return settled
        case _ if is_dataclass(value) and not isinstance(value, type):
            if changed := _changed((one.name, getattr(value, one.name)) for one in fields(value)):
                return replace(value, **changed)
        case Mapping():
            if changed := _changed(value.items()):
                return {**value, **changed}
        case Iterator():
            return [_settled(one) for one in value]
    return value


def _changed(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: found for name, one in values if (found := _settled(one)) is not one}


def in_languages(chunk: Chunk, versions: Sequence[Version]) -> Chunk:
    """Return a chunk of objects as one of all their versions, object by object."""
    order = [
        (place, version)
        for place in range(len(chunk.keys))
        for version in versions
        if version.locations[place] is not None or place in version.refusals
    ]
    places = [place for place, _ in order]

    def repeated(column: Sequence[Any]) -> list[Any]:
        return [column[place] for place in places]

    spread = Chunk(
        repeated(chunk.keys),
        [version.locations[place] for place, version in order],
        {tag: repeated(column) for tag, column in chunk.columns.items()},
        {tag: repeated(column) for tag, column in chunk.own.items()},
        normal=chunk.normal,
        ready=chunk.ready,
        extensions={option: repeated(column) for option, column in chunk.extensions.items()},
        versions=Versions(places, [version.language for _, version in order]),
        read=len(chunk.keys),
    )
    for option in versions[0].extensions if versions else ():
        spread.extensions[option] = [version.extensions[option][place] for place, version in order]
    for row, (place, version) in enumerate(order):
        refusal = version.refusals.get(place) or chunk.refusals.get(place)
        if refusal is not None:
            spread.refusals[row] = refusal
    return spread
