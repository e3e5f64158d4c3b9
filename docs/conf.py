"""How Sphinx builds the documentation; ``tox run -e docs`` builds it with warnings as errors."""

import builtins
import os
import re
import sys
from pathlib import Path

import django

sys.path.append(str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django.core.management import get_commands, load_command_class  # noqa: E402
from django.core.management.base import BaseCommand  # noqa: E402

from django_sitemapkit import __main__ as console  # noqa: E402
from django_sitemapkit import __version__  # noqa: E402  (it may need the settings above)

project = "django-sitemapkit"
author = "The django-sitemapkit team"
project_copyright = "the django-sitemapkit team"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"{project} {version}"
myst_heading_anchors = 3

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
# A single backtick in a docstring names a Python object.
default_role = "py:obj"

nitpicky = True
# Nothing is fetched while building, so what other projects document is not linked.
nitpick_ignore_regex = [
    # The package's inner types stand in signatures, and have no page of their own.
    (
        r"py:class",
        (
            r"django_sitemapkit\."
            r"(audit\.(crawl\.\w+|models|reader\.\w+|rules)|builds\.(make|manifest|report\.differences)"
            r"|models|planning|reading|registry|rendering|sections)\..*"
        ),
    ),
    (r"py:class", "Schemas"),  # It needs lxml, so that only its type is imported.
    (r"py:.*", r"(django|lxml|idna)\..*"),
    (
        r"py:.*",
        r"(collections|contextlib|typing|types|datetime|decimal|uuid|pathlib|enum|re|io|os)(\..*)?",
    ),
]
nitpick_ignore = [
    (f"py:{role}", name) for name in dir(builtins) for role in ("class", "exc", "obj", "func")
]
# A field may have the name of a type (``bytes``): what is meant is the type.
suppress_warnings = ["ref.python"]


def options_of(command: str) -> str:
    """Return the table of a command's options and their help, as ``--help`` has them.

    The command is one of ``manage.py``, or of the console script, such as ``sitemapkit crawl``.
    """
    usual = {action.dest for action in BaseCommand().create_parser("", "")._actions}
    if command.startswith("sitemapkit "):
        (verbs,) = console._parser()._subparsers._group_actions
        parser = verbs.choices[command.partition(" ")[2]]
    else:
        name = get_commands()[command]
        parser = load_command_class(getattr(name, "name", name), command).create_parser("", command)
    rows = [
        f"| `{max(action.option_strings, key=len, default=action.dest)}`"
        f" | {action.help % vars(action)} |"
        for action in parser._actions
        if action.dest not in usual
    ]
    return "\n".join(["| | |", "|---|---|", *rows])


def write_options(app, page: str, source: list[str]) -> None:
    """Write the tables of options where a page has a block ``{options} NAME``."""
    block = re.compile(r"^```\{options\} ([\w ]+)\n```$", re.MULTILINE)
    source[0] = block.sub(lambda found: options_of(found[1]), source[0])


def setup(app) -> None:
    """Have Sphinx write the tables of options."""
    app.connect("source-read", write_options)
