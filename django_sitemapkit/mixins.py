"""Models that declare their own part of the sitemap."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db.models import Model, QuerySet
from django.utils import translation
from django.utils.text import slugify

from django_sitemapkit import _django
from django_sitemapkit.registry import dotted_path, registry
from django_sitemapkit.sections import Section


class SitemapMixin:
    """A model that is a section: the options are in an inner ``class Sitemap``.

    All options of ``Section`` are allowed there, except ``queryset``. All rows of the default
    manager are listed; ``queryset_method`` names a method of the manager, or of its querysets,
    that returns other rows, and ``filter`` is a ``Q`` that selects from them. The section's name
    is the model's ``verbose_name_plural`` unless ``name`` is set.

    A plain class without fields: migrations contain only its import path.

    ::

        class Article(SitemapMixin, models.Model):
            ...

            class Sitemap:
                queryset_method = "published"
                location = Route("article", pk="pk")
                lastmod = "edited_at"
    """


def register_models() -> None:
    """Register each installed model that declares its sitemap, and is not registered yet.

    Django calls this again whenever a test overrides INSTALLED_APPS.
    """
    known = set(map(dotted_path, registry))
    for model, options in declared_models():
        section = section_class_for(model, options)
        if dotted_path(section) not in known:
            registry.add(section)


def declared_models() -> Iterator[tuple[type[Model], type]]:
    """Yield the installed models that declare a sitemap, each with its ``class Sitemap``."""
    for model in apps.get_models():
        if issubclass(model, SitemapMixin) and not model._meta.proxy:
            options = sitemap_options_of(model)
            if options is not None:
                yield model, options


def sitemap_options_of(model: type[Model]) -> type | None:
    """Return the ``class Sitemap`` that a model or an abstract base of it declares, or None.

    One that a concrete parent has or inherits does not count: the rows are the parent's, and listed
    there.
    """
    concrete = _django.concrete_parents(model)
    for base in model.__mro__:
        options = vars(base).get("Sitemap")
        if isinstance(options, type) and not any(issubclass(parent, base) for parent in concrete):
            return options
    return None


def section_class_for(model: type[Model], options: type) -> type[Section]:
    """Return a section class that lists a model, with the ``options`` of its ``class Sitemap``."""
    manager = model._default_manager
    method = getattr(options, "queryset_method", None)
    condition = getattr(options, "filter", None)

    def get_queryset(self: Section) -> QuerySet[Any]:
        """Return the model's rows, by ``queryset_method`` and ``filter`` of the options."""
        rows = manager.all()
        if method is not None:
            rows = (getattr(manager, method, None) or getattr(rows, method))()
        return rows if condition is None else rows.filter(condition)

    body: dict[str, Any] = {
        "__module__": model.__module__,
        "__qualname__": f"{model.__qualname__}.Sitemap",
        "model": model,
    }
    if "get_queryset" not in dir(options):
        body["get_queryset"] = get_queryset
    if getattr(options, "name", None) is None:
        with translation.override(None):  # Addresses do not change with the language.
            plural = slugify(str(model._meta.verbose_name_plural))
        body["name"] = plural or str(model._meta.model_name)
    return type("Sitemap", (options, Section), body)
