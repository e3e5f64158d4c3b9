"""The public API as text, a name a line: ``python -m tests.public_api`` writes public_api.txt.

Code is read and not imported, so that the optional packages need not be there, and annotations
stand as they were written. Settings, commands, template tags, URL names and tables are Django's.
"""

import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import django
import griffe
from django.apps import apps
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.template.engine import Engine

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOT = Path(__file__).with_suffix(".txt")
PACKAGE = "django_sitemapkit"

OBJECTS = (
    "django_sitemapkit",
    "django_sitemapkit.admin",
    "django_sitemapkit.audit.auditing.audit",
    "django_sitemapkit.audit.crawl",
    "django_sitemapkit.audit.moving",
    "django_sitemapkit.audit.reader",
    "django_sitemapkit.audit.sections",
    "django_sitemapkit.audit.validation",
    "django_sitemapkit.builds",
    "django_sitemapkit.builds.publication.export.ExportStatus",
    "django_sitemapkit.builds.report.differences.DifferenceKind",
    "django_sitemapkit.builds.report.due.SectionDue",
    "django_sitemapkit.builds.report.status.BuildProgress",
    "django_sitemapkit.builds.report.status.SectionStatus",
    "django_sitemapkit.contrib.s3",
    "django_sitemapkit.contrib.sitemaps",
    "django_sitemapkit.contrib.sitemaps.views.index",
    "django_sitemapkit.contrib.sitemaps.views.sitemap",
    "django_sitemapkit.contrib.wagtail",
    "django_sitemapkit.exceptions",
    "django_sitemapkit.models.SitemapFields",
    "django_sitemapkit.models.overrides.UrlOverrideQuerySet.create_for_object",
    "django_sitemapkit.models.overrides.UrlOverrideQuerySet.for_object",
    "django_sitemapkit.protocol.dates",
    "django_sitemapkit.protocol.entries",
    "django_sitemapkit.protocol.extensions",
    "django_sitemapkit.protocol.limits",
    "django_sitemapkit.protocol.locations",
    "django_sitemapkit.protocol.texts",
    "django_sitemapkit.protocol.values",
    "django_sitemapkit.protocol.writers",
    "django_sitemapkit.publishing.DatabaseStorage",
    "django_sitemapkit.rebuild.model_changed",
    "django_sitemapkit.registry.registry",
    "django_sitemapkit.registry.Registry.isolated",
    "django_sitemapkit.runners.celery.CeleryRunner",
    "django_sitemapkit.runners.dummy.DummyRunner",
    "django_sitemapkit.runners.processes.ProcessesRunner",
    "django_sitemapkit.runners.queues.QueueRunner",
    "django_sitemapkit.runners.tasks.TasksRunner",
    "django_sitemapkit.runners.helper.help_build",
    "django_sitemapkit.signals",
    "django_sitemapkit.sites.SitemapSite",
    "django_sitemapkit.sites.all_sites",
    "django_sitemapkit.testing",
    "django_sitemapkit.testing.factories",
    "django_sitemapkit.testing.fixtures",
    "django_sitemapkit.views.old_address",
    "django_sitemapkit.views.robots",
    "django_sitemapkit.views.stream_template",
)
"""Public modules, and public names of modules that are not public as a whole.

Of a module, the names in its ``__all__`` are public; without one, those that it defines.
"""


def snapshot() -> str:
    """Return the whole API as text."""
    sections = {
        "Python": python_lines(),
        "Settings": setting_lines(),
        "Commands": command_lines(),
        "Template tags": tag_lines(),
        "URL names": url_lines(),
        "Tables": table_lines(),
    }
    blocks = ["\n".join([f"# {title}", "", *lines]) for title, lines in sections.items()]
    return "\n\n".join(blocks) + "\n"


def python_lines() -> list[str]:
    """Return a line for each public name of the code, and for each public member of a class."""
    package = griffe.load(
        PACKAGE, search_paths=[ROOT], allow_inspection=False, resolve_aliases=True
    )
    lines: dict[str, None] = {}  # A name that two modules hand on has a line for each.
    for path in OBJECTS:
        found = package[path.removeprefix(PACKAGE).lstrip(".")] if path != PACKAGE else package
        for name, each in public_members(found) if found.is_module else [(path, found)]:
            lines.update(dict.fromkeys(lines_of(name, each)))
    return list(lines)


def public_members(module: griffe.Object | griffe.Alias) -> Iterator[tuple[str, griffe.Object]]:
    """Yield the public names of a module, by the path that a project imports them by."""
    for name, each in sorted(module.members.items()):
        if module.exports is None:
            is_public = not name.startswith("_") and not each.is_alias and not each.is_module
        else:
            is_public = name in module.exports
        if is_public:
            yield f"{module.path}.{name}", each


def lines_of(path: str, found: griffe.Object | griffe.Alias) -> Iterator[str]:
    """Yield the line of a name and, for a class, those of what it and its bases of ours define."""
    each = found.final_target if found.is_alias else found
    if each.is_function:
        yield each.signature(name=path)
    elif each.is_attribute:
        annotation = f": {each.annotation}" if each.annotation else ""
        # A value that __init__ sets is no default, and that of a call may be a translated text.
        has_default = each.value is not None and each.labels != {"instance-attribute"}
        is_shown = has_default and not isinstance(each.value, griffe.ExprCall)
        yield path + annotation + (f" = {each.value}" if is_shown else "")
    elif each.is_class:
        bases = ", ".join(map(str, each.bases))
        yield f"class {path}({bases})"
        if (own := each.all_members.get("__init__")) or each.parameters:
            parameters = own.signature(return_type=False, name="") if own else each.signature()
            yield f"{path}{parameters[parameters.index('(') :]}"
        for name, member in sorted(each.all_members.items()):
            if not name.startswith("_") and not member.is_class:
                yield from lines_of(f"{path}.{name}", member)
    elif (name := path.rpartition(".")[2]) in each.members:
        # A submodule hides the function that it is named for, such as builds.preview().
        yield from lines_of(path, each.members[name])
    else:
        yield path


def setting_lines() -> list[str]:
    """Return each setting with its default."""
    from django_sitemapkit import conf
    from django_sitemapkit.audit.options import AuditOptions
    from django_sitemapkit.submission.options import SubmitOptions

    defaults = {name: vars(conf.Settings)[name]._default for name in conf.SETTING_NAMES}
    options = {"AUDIT": AuditOptions, "SUBMIT": SubmitOptions}
    keys = {name: [field.name for field in fields(each)] for name, each in options.items()}
    keys["SITES"] = conf._SITE_KEYS
    return sorted(
        [
            *(f"SITEMAPKIT_{name} = {default!r}" for name, default in defaults.items()),
            *(f"SITEMAPKIT_{name}[{key!r}]" for name, known in keys.items() for key in known),
        ]
    )


def command_lines() -> Iterator[str]:
    """Yield each command with its exit codes, arguments and options."""
    from django_sitemapkit.management.base import Exit

    usual = {action.dest for action in BaseCommand().create_parser("", "")._actions}
    yield from (f"exit code {code.value}: {code.label}" for code in Exit)
    for command, app in sorted(get_commands().items()):
        if not app.startswith(PACKAGE):
            continue
        yield command
        parser = load_command_class(app, command).create_parser("manage.py", command)
        for action in parser._actions:
            if action.dest not in usual:
                flags = " ".join(action.option_strings) or action.dest
                choices = "|".join(map(str, action.choices)) if action.choices else "VALUE"
                values = "" if action.nargs == 0 else f" {choices}{action.nargs or ''}"
                yield f"{command} {flags}{values}"


def tag_lines() -> list[str]:
    """Return each template tag and filter by its library."""
    lines = []
    for library in (
        "django_sitemapkit.templatetags.sitemapkit",
        "django_sitemapkit.contrib.people.templatetags.sitemapkit_people",
    ):
        found = Engine().get_template_libraries({"all": library})["all"]
        name = library.rpartition(".")[2]
        lines += [f"{name}: {{% {tag} %}}" for tag in found.tags]
        lines += [f"{name}: |{each}" for each in found.filters]
    return sorted(lines)


def url_lines() -> list[str]:
    """Return each URL name with its pattern."""
    from django_sitemapkit import urls
    from django_sitemapkit.contrib.people import urls as people
    from django_sitemapkit.submission import urls as submission

    return [
        f"{module.app_name}:{each.name} {each.pattern}"
        for module in (urls, people, submission)
        for each in module.urlpatterns
    ]


def table_lines() -> list[str]:
    """Return each column of each table, with the kind of its field."""
    return [
        f"{model._meta.label}.{field.name}: {type(field).__name__}"
        for config in apps.get_app_configs()
        if config.name.startswith(PACKAGE)
        for model in sorted(config.get_models(), key=lambda model: model._meta.label)
        for field in model._meta.fields
    ]


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    SNAPSHOT.write_text(snapshot(), encoding="utf-8")
