"""A first module ``sitemaps`` for a project, from its installed models and its URLconf."""

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import BooleanField, DateField, DateTimeField, Manager, Model, QuerySet
from django.urls import get_resolver
from django.utils.module_loading import module_has_submodule

from django_sitemapkit.reading import reader_of
from django_sitemapkit.registry import EXTRA_URLS, registry
from django_sitemapkit.scaffold.discovery import (
    LeftOut,
    contrib_sitemaps,
    is_third_party,
    models_with_pages,
    static_pages,
)
from django_sitemapkit.sections import BaseSection, adapt_contrib
from django_sitemapkit.sections.declarations import section_name_of
from django_sitemapkit.sites import SitemapSite, all_sites

WIDTH = 79
"""Longer lines are split, with a comma at their end: formatters keep that at any line length."""

MAX_CHARACTERS = 5 * WIDTH
"""Length of a comment about what is left out for one reason."""

UNKNOWN_SITE = SitemapSite.at("http://localhost")
"""Stands for the site of a project that has not set any."""

LASTMOD = re.compile(
    r"(date_?|time_?|last_?)?(changed?|edit(ed)?|modified|modification|updated?)"
    r"(_?(at|on|date|time|datetime))?|lastmod",
    re.IGNORECASE,
)
"""Names of fields with the time of the last change."""

PUBLIC = re.compile(
    r"(is_?)?(active|approved|browsable|enabled|listed|live|public|published|visible)",
    re.IGNORECASE,
)
"""Names of managers, fields and statuses of what everyone may see."""

HIDDEN = re.compile(
    r"(is_?)?(archived|deleted|disabled|draft|hidden|private|removed)|registration_required"
)
"""Names of fields of what not everyone may see."""


def propose_module() -> tuple["Module", list[str]]:
    """Return a first module ``sitemaps`` for the project, and what to do next, as lines of text.

    The module has sections for the models and pages that no section of the first site lists. Reads
    some rows of each model and calls their ``get_absolute_url()``; requests no page.
    """
    site = UNKNOWN_SITE
    with suppress(Exception):  # No site is set, or the sites framework has no table yet.
        site = all_sites()[0]
    with site.active():
        sections = registry.classes_of(site)
        module = Module(each.get_name() for each in [*registry.declared(), *sections])
        old = contrib_sitemaps(site, module.taken, module.left_out)
        module.taken.update(old)
        listed = _listed_models_and_items([*sections, *map(adapt_contrib, old.values())], site)
        for model, in_languages in models_with_pages(site, listed, module.left_out):
            module.add_model(model, in_languages=in_languages)
        module.add_pages(static_pages(site, listed, module.left_out))
        module.add_contrib(old)
    return module, _next_steps(site)


def write_module(app_label: str, text: str) -> Path:
    """Write ``text`` as the module ``sitemaps`` of an app; return the file's path.

    Raises LookupError if there is no such app, FileExistsError if it has the module in any form or
    is an installed package, and another OSError if the module cannot be written.
    """
    app = apps.get_app_config(app_label)
    if is_third_party(app.path) or module_has_submodule(app.module, "sitemaps"):
        raise FileExistsError(
            f"{app.name} has a module sitemaps, or is an installed package: it stays as it is. Name"
            " another app; or run the command without --write, and add what it prints to yours."
        )
    with Path(app.path, "sitemaps.py").open("x", encoding="utf-8") as file:
        file.write(text)
    return Path(file.name)


def _listed_models_and_items(
    sections: Iterable[type[BaseSection]], site: SitemapSite
) -> set[object]:
    """Return the models and the items, such as URL names and paths, that sections list."""
    listed: set[object] = set()
    for section in sections:
        with suppress(Exception):  # The system checks report what is wrong with a section.
            rows = reader_of(section(site)).rows
            listed.update(
                [rows.model._meta.concrete_model] if isinstance(rows, QuerySet) else map(str, rows)
            )
    return listed


def _next_steps(site: SitemapSite) -> list[str]:
    """Return lines of text: settings and URLs that are still missing, and commands to run."""
    steps = ["Read the sections. If one has a second queryset in a comment, keep the right one."]
    if site is UNKNOWN_SITE:
        steps.append('Add to the settings: SITEMAPKIT_BASE_URL = "https://www.example.com"')
    if "sitemapkit" not in get_resolver(site.urlconf).app_dict:
        steps += [
            f"Add to the beginning of urlpatterns in {site.urlconf or settings.ROOT_URLCONF}:",
            "    from django.urls import include, path",
            '    path("", include("django_sitemapkit.urls")),',
        ]
    return [
        *steps,
        "Then run:",
        "    python manage.py migrate",
        "    python manage.py check",
        "    python manage.py build_sitemaps",
    ]


class Module:
    """The text of a module ``sitemaps``, formatted as ruff and Black do; ``str()`` returns it.

    It collects imports and sections, each under an unused name. ``section_names`` are those that
    the project has already.
    """

    def __init__(self, section_names: Iterable[str]) -> None:
        self.taken = {"Section", "StaticSection", "register_all", EXTRA_URLS, *section_names}
        """Identifiers, and names of sections."""
        self.imports: dict[tuple[str, str], set[str]] = {}
        """Names by module; an alias has an entry of its own, as isort wants it."""
        self.sections: list[str] = []
        """The code of sections."""
        self.left_out = LeftOut(set)
        """What has no section, and why."""

    def __str__(self) -> str:
        """Return the module's text, with comments on what was left out."""
        comments = [
            textwrap.fill(
                textwrap.shorten(
                    f"# Left out, {reason}: {', '.join(sorted(names))}",
                    MAX_CHARACTERS,
                    placeholder=" and others",
                    break_on_hyphens=False,
                ),
                WIDTH,
                subsequent_indent="#   ",
                break_on_hyphens=False,
            )
            for reason, names in self.left_out.items()
            if names
        ]
        start = (
            f'"""The sections of the sitemap."""\n{self._import_lines()}' if self.sections else ""
        )
        return "".join([start, *self.sections, "\n\n", "\n".join(comments)]).strip() + "\n"

    def add_model(self, model: type[Model], *, in_languages: bool) -> None:
        """Add a section for a model; ``in_languages`` is whether each language has its own URL."""
        label, rows = model._meta.app_label, f"{model._default_manager.name}.all()"
        name = self._add_import(model.__module__, model.__name__, label)
        lines = [f"queryset = {name}.{rows}"]
        lines += [f"# queryset = {name}.{each}" for each in _public_rows_of(model) if each != rows]
        lines += [f'lastmod = "{field}"' for field in _lastmods_of(model)[:1]]
        self._add_section("Section", _section_class_name(model), label, lines, in_languages)

    def add_pages(self, pages: Mapping[str, bool]) -> None:
        """Add sections for pages without a model, which are URL names or paths.

        The value of each is whether each language has its own URL; those are a section of their
        own.
        """
        for in_languages, label in ((False, "static"), (True, "translated")):
            items = [json.dumps(i, ensure_ascii=False) for i in pages if pages[i] == in_languages]
            if items:
                line = f"items = ({', '.join(items)}{',' * (len(items) == 1)})"
                split = ["items = (", *(f"    {item}," for item in items), ")"]
                self._add_section(
                    "StaticSection",
                    "Pages",
                    label,
                    [line] if len(line) <= WIDTH - 4 else split,
                    in_languages,
                )

    def add_contrib(self, sitemaps: Mapping[str, type[Any]]) -> None:
        """Add a call that registers classes of contrib sitemaps by name."""
        if sitemaps:
            items = [
                f'        "{name}": {self._add_import(kind.__module__, kind.__name__, name)},\n'
                for name, kind in sitemaps.items()
            ]
            self.imports.setdefault(("django_sitemapkit", ""), set()).add("register_all")
            self.sections.append(
                ("\n\n" if self.sections else "\n")  # One blank line after imports.
                + f"register_all(\n    {{\n{''.join(items)}    }}\n)\n"
            )

    def _add_section(
        self, base: str, plural: str, label: str, lines: list[str], in_languages: bool
    ) -> None:
        """Add the code of a section class, and its import.

        ``base`` is its base class, ``plural`` its name, after ``label`` if that is taken, and
        ``lines`` its options.
        """
        name = self._claim_name(plural, label, section_name_of)
        self.imports.setdefault(("django_sitemapkit", ""), set()).update((base, "register"))
        lines += ["i18n = True", "alternates = True"] if in_languages else []
        body = textwrap.indent("\n".join(lines), "    ")
        self.sections.append(f"\n\n@register\nclass {name}({base}):\n{body}\n")

    def _add_import(self, module: str, name: str, label: str) -> str:
        """Add an import; return the name that the module then has for the imported class."""
        claimed = self._claim_name(name, label, str)
        alias = "" if claimed == name else f"{name} as {claimed}"
        self.imports.setdefault((module, alias), set()).add(alias or name)
        return claimed

    def _claim_name(self, name: str, label: str, name_in_address: Callable[[str], str]) -> str:
        """Return a name that nothing has yet, and take it.

        A taken name gets ``label`` before it. ``name_in_address`` returns the form that it has in
        addresses, which must be unused too.
        """
        while not self.taken.isdisjoint((name, name_in_address(name))):
            name = re.sub(r"\W|_", "", label.title()) + name
        self.taken.update((name, name_in_address(name)))
        return name

    def _import_lines(self) -> str:
        """Return the import statements, sorted as isort does: other packages before the project."""
        blocks = ["", ""]
        for module, shown in sorted(
            (module, sorted(names, key=lambda name: (not name.isupper(), name)))
            for (module, _), names in self.imports.items()
        ):
            line = f"from {module} import {', '.join(shown)}\n"
            split = [f"from {module} import (", *(f"    {name}," for name in shown), ")\n"]
            is_own = not is_third_party(sys.modules[module].__file__)
            blocks[is_own] += line if len(line) <= WIDTH else "\n".join(split)
        return "".join(f"\n{block}" for block in blocks if block)


def _section_class_name(model: type[Model]) -> str:
    """Return a name for a model's section class: its plural, if that is in English letters."""
    plural = re.sub(r"(?<=[^aeiou])ys$", "ies", str(model._meta.verbose_name_plural))
    name = "".join(word[0].upper() + word[1:] for word in re.findall(r"[^\W_]+", plural))
    is_free = name.isascii() and name.isidentifier() and name != model.__name__
    return name if is_free else f"{model.__name__}Section"


def _lastmods_of(model: type[Model]) -> list[str]:
    """Return the names of fields that may be the time of the last change, likeliest first."""
    found = sorted(
        (not field.auto_now, not isinstance(field, DateTimeField), field.name)
        for field in model._meta.concrete_fields
        if isinstance(field, DateField) and (field.auto_now or LASTMOD.fullmatch(field.name))
    )
    return [name for *_, name in found]


def _public_rows_of(model: type[Model]) -> list[str]:
    """Return code of querysets of what everyone may see, such as ``objects.filter(public=True)``.

    There is one for each manager, and for each method of the default manager, whose name says so;
    else one made of the names of fields.
    """
    default, filters = model._default_manager, ", ".join(_visibility_filters(model))
    managers = (name for name in dir(model) if isinstance(getattr(model, name, None), Manager))
    found = [
        *(f"{name}.all()" for name in filter(PUBLIC.fullmatch, managers)),
        *(f"{default.name}.{name}()" for name in filter(PUBLIC.fullmatch, dir(default))),
    ]
    return found or ([f"{default.name}.filter({filters})"] if filters else [])


def _visibility_filters(model: type[Model]) -> Iterator[str]:
    """Yield arguments of ``filter()`` by fields that tell public rows from hidden ones.

    The name of a boolean field or a choice of a status tells. A status without a public choice
    gets the value ``...``, which the developer fills in.
    """
    for field in model._meta.concrete_fields:
        is_public, is_hidden = PUBLIC.fullmatch(field.name), HIDDEN.fullmatch(field.name)
        if isinstance(field, BooleanField) and (is_public or is_hidden):
            yield f"{field.name}={bool(is_public)}"
        elif field.name in {"state", "status", "visibility"} and field.choices:
            yield f"{field.name}=" + next(
                (
                    json.dumps(value, ensure_ascii=False)
                    for value, label in field.flatchoices
                    if PUBLIC.fullmatch(str(value)) or PUBLIC.fullmatch(str(label))
                ),
                "...",
            )
