"""Checks of which sections there are: of those that nobody imported, Django knows nothing."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core import checks
from django.core.checks import CheckMessage, Tags, register

from django_sitemapkit.checks.asking import configured
from django_sitemapkit.registry import registry

MODULE = "sitemaps"


@register(Tags.urls)
def check_registered(**options: Any) -> list[CheckMessage]:
    """W031: no section is registered."""
    if registry.declared() or _left_modules():
        return []
    hint = (
        f"Declare a Section in the module {MODULE}.py of an installed app, with @register above it."
    )
    message = "No section is registered; there is no sitemap."
    return [checks.Warning(message, hint=hint, id="sitemapkit.W031")]


@register(Tags.urls)
def check_left_modules(**options: Any) -> list[CheckMessage]:
    """W032: a module registers sections, and nothing imports it."""
    return [
        checks.Warning(
            f"{module} is not imported: {module.rpartition('.')[0]!r} is not an installed app, and"
            " what the module registers is not known.",
            hint="Add the package to INSTALLED_APPS, or move the module into an installed app.",
            id="sitemapkit.W032",
        )
        for module in _left_modules()
    ]


def _left_modules() -> list[str]:
    """Return the modules of the project's own package that register sections, unimported.

    Beside settings and URLconf is where many put it; that package is seldom an app.
    """
    configured()  # Imports the URLconfs, which may import it.
    settings_module = getattr(django_settings, "SETTINGS_MODULE", None) or ""
    found = []
    for named in dict.fromkeys([settings_module, str(django_settings.ROOT_URLCONF)]):
        package = named.rpartition(".")[0]
        while package:
            found.append(f"{package}.{MODULE}")
            package = package.rpartition(".")[0]
    return [name for name in dict.fromkeys(found) if _is_left(name)]


def _is_left(module: str) -> bool:
    package = module.rpartition(".")[0]
    if module in sys.modules or package in {app.name for app in apps.get_app_configs()}:
        return False
    try:
        spec = find_spec(module)
    except ImportError:
        return False
    if spec is None or spec.origin is None:
        return False
    try:
        return "django_sitemapkit" in Path(spec.origin).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
