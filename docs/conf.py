"""How Sphinx builds the documentation; ``tox run -e docs`` builds it with warnings as errors."""

import builtins
import os
import sys
from pathlib import Path

import django

sys.path.append(str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

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
            r"(audit\.(crawl\.\w+|models|reader\.\w+|rules)|builds\.(make|manifest)|models|planning|reading|registry"
            r"|rendering|sections)\..*"
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
