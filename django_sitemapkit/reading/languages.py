"""Rows in several languages: each object once in every language it has, one after the other.

Where the tables of a project keep translated fields is found by what a model looks like, so that
neither django-modeltranslation nor django-parler has to be installed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from itertools import repeat
from operator import is_not
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import FieldError
from django.db.models import Model, QuerySet
from django.utils.functional import Promise

from django_sitemapkit._django import LOOKUP_SEP
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.extensions import Restriction
from django_sitemapkit.protocol.locations import normalise_url
from django_sitemapkit.reading.chunks import Chunk, call_for_each
from django_sitemapkit.reading.keysets import field_named
from django_sitemapkit.reading.sources import Method, Source
from django_sitemapkit.sections import BaseSection, Translated
from django_sitemapkit.sites import SitemapSite, site_at

ObjectLanguages = set[tuple[int, str]]
"""Places of objects, with each of their languages."""

LINKS = 10_000
"""Links in one chunk, about: in twenty languages each object has four hundred of them."""


def x_default_url(url: object, section: BaseSection) -> str:
    """Return the URL of an ``x_default`` that is not a language. Raises InvalidValue.

    With ``language_hosts`` it may not be a path, which would be another page on each host.
    """
    if section.language_hosts and isinstance(url, str) and url.startswith("/"):
        raise InvalidValue(
            "invalid-url",
            f"Invalid URL: {quoted(url)}: with language_hosts a path is a different page on each"
            " host; write the absolute URL.",
        )
    return normalise_url(url, section.site.origin)


@dataclass(slots=True)
class LanguageVersion:
    """The locations and values of some objects in one language, by column."""

    language: str
    """Its code, as settings.LANGUAGES has it."""
    locations: Sequence[Any]
    """As those of a chunk; None where an object has no such version."""
    extensions: dict[str, Sequence[Any]] = field(default_factory=dict)
    """Images, videos, news and own elements that differ by language, by option."""
    columns: dict[str, Sequence[Any]] = field(default_factory=dict)
    """The tags that differ by language, by name."""


class Languages:
    """The languages of a section, and the site that lists the versions in each of them."""

    def __init__(self, section: BaseSection) -> None:
        every = [code for code, _ in django_settings.LANGUAGES]
        named = every if section.languages is None else section.languages
        self.codes: list[str] = list(dict.fromkeys(named))
        """The languages that an object may have, in the order in which they are listed."""
        hosts = section.language_hosts
        self.sites: dict[str, SitemapSite] = {
            code: site_at(hosts[code]) if code in hosts else section.site for code in self.codes
        }
        """The sites of the versions in each language."""
        own, linked = section.site, section.alternates
        self.listed = [code for code, site in self.sites.items() if site.base == own.base]
        """The languages that the section's own site lists."""
        self.rendered = self.codes if linked else self.listed
        """The languages to render: versions on other sites are only linked to."""
        links = len(self.rendered) ** 2 if linked else len(self.rendered)
        self.objects_per_chunk = max(1, LINKS // max(1, links))
        """Objects of one chunk: each of their versions may link to all of them."""
        self._own = own

    def versions(
        self,
        objects: Sequence[Any],
        locate: Callable[[Any], Any],
        object_languages: ObjectLanguages | None,
    ) -> list[LanguageVersion]:
        """Return a LanguageVersion for each language, with what ``locate`` returns for the objects.

        ``object_languages`` is None if all objects have all languages.
        """
        versions = []
        for code in self.rendered:
            wanted = [
                object_languages is None or (n, code) in object_languages
                for n in range(len(objects))
            ]
            with self.active(code, objects):
                versions.append(
                    LanguageVersion(code, call_for_each(locate, objects, "location", wanted))
                )
        return versions

    @contextmanager
    def active(self, code: str, objects: Iterable[Any] = ()) -> Iterator[None]:
        """Activate a language and its site for the thread within the block.

        Objects of django-parler, which have a language of their own, are switched to it and keep it
        after the block.
        """
        with self.sites[code].active(code, current=self._own):
            for obj in objects:
                if hasattr(obj, "set_current_language"):  # As those of django-parler do.
                    obj.set_current_language(code)
            yield


def extensions_of(
    sources: Mapping[str, Source], objects: Sequence[Any], wanted: Iterable[bool] = repeat(True)
) -> dict[str, Sequence[Any]]:
    """Return the images, videos, news and elements that methods return for objects, by option.

    The methods are called only for objects that are ``wanted``; the others get None.
    """
    return {
        option: call_for_each(partial(_method_result, source.function), objects, option, wanted)
        for option, source in sources.items()
        if isinstance(source, Method)
    }


def _method_result(method: Callable[[Any], Any], obj: Any) -> Any:
    """Return what a method returns for an object, with lazy text evaluated.

    A queryset is read here, where an error costs the value alone.
    """
    value = method(obj)
    return _without_lazy_text(list(value) if isinstance(value, QuerySet) else value)


def _without_lazy_text(value: Any) -> Any:
    """Return a value with lazy text evaluated, so that it no longer changes with the language.

    A value without lazy text is returned unchanged; an iterator is read once, into a list.
    """
    match value:
        case None | str() | int() | Restriction():
            pass
        case Promise():
            return str(value)
        case list() | tuple():
            rendered = [_without_lazy_text(one) for one in value]
            if any(map(is_not, rendered, value)):
                return rendered
        case _ if is_dataclass(value) and not isinstance(value, type):
            if changed := _evaluated_values(
                (one.name, getattr(value, one.name)) for one in fields(value)
            ):
                return replace(value, **changed)
        case Mapping():
            if changed := _evaluated_values(value.items()):
                return {**value, **changed}
        case Iterator():
            return [_without_lazy_text(one) for one in value]
    return value


def _evaluated_values(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return those values that contain lazy text, with the text evaluated, by name."""
    return {name: found for name, one in values if (found := _without_lazy_text(one)) is not one}


def repeat_for_versions(chunk: Chunk, versions: Sequence[LanguageVersion]) -> Chunk:
    """Return a chunk with one row for each version of each object, object by object.

    ``chunk`` has a row for each object, and a location only for an object that is invalid.
    """
    order = [
        (place, version)
        for place in range(len(chunk.keys))
        for version in versions
        if version.locations[place] is not None
    ]
    # An object whose languages are not known is refused in all of them.
    refused = {place: why for place, why in enumerate(chunk.locations) if why is not None}
    spread = chunk.repeat_rows(
        [place for place, _ in order],
        [refused.get(place, version.locations[place]) for place, version in order],
        [version.language for _, version in order],
    )
    for option in versions[0].extensions if versions else ():
        spread.extensions[option] = [version.extensions[option][place] for place, version in order]
    for tag in versions[0].columns if versions else ():
        spread.columns[tag] = [version.columns[tag][place] for place, version in order]
    return spread


@dataclass(frozen=True, slots=True)
class RelatedTranslation:
    """A translated value that related rows hold, one row for each language."""

    value: str
    """The path to it."""
    language: str
    """The path to the code of its language."""


def translation_column(
    field: Translated, model: type[Model], code: str
) -> str | RelatedTranslation:
    """Return the field path of a field's value in one language, or the related rows that hold it.

    Raises FieldError if the model has no translation of the field.
    """
    before, separator, name = field.path.rpartition(LOOKUP_SEP)
    target, prefix = _model_at_path(model, before), before + separator
    if field.relation is not None:
        return _related_translation(prefix + field.relation, name, field.language)
    own = f"{name}_{code.replace('-', '_')}"
    # django-modeltranslation's name for Indonesian: foreign keys have columns that end in _id.
    for column in (f"{name}_ind", own) if code == "id" else (own,):
        if field_named(target, column) is not None:
            return prefix + column
    for translations in getattr(target, "_parler_meta", None) or ():
        if name in translations.get_translated_fields():
            return _related_translation(prefix + translations.rel_name, name, field.language)
    raise FieldError(
        f"{target.__name__} has neither a field {own!r} nor translations of {name!r};"
        " name the relation that holds them."
    )


def _related_translation(rows: str, name: str, language: str) -> RelatedTranslation:
    """Return where the rows at the end of a path hold a value and its language."""
    return RelatedTranslation(f"{rows}{LOOKUP_SEP}{name}", f"{rows}{LOOKUP_SEP}{language}")


def _model_at_path(model: type[Model], path: str) -> type[Model]:
    """Return the model at the end of a path over relations."""
    for name in path.split(LOOKUP_SEP) if path else ():
        found = model._meta.get_field(name).related_model
        if not isinstance(found, type):
            raise FieldError(f"{path!r}: {name!r} is not a relation of {model.__name__}.")
        model = found
    return model
