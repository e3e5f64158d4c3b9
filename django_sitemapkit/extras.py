"""The extras of the package, and what is said if one is not installed."""

from importlib import import_module
from typing import Any

from django_sitemapkit.exceptions import MissingExtra


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f'pip install "django-sitemapkit[{extra}]"'


def import_extra(module: str, extra: str) -> Any:
    """Return a module that comes with an extra, or needs it. Raises MissingExtra."""
    try:
        return import_module(module)
    except ImportError as error:
        message = f"{error}. Install the extra: {how_to_install(extra)}."
        raise MissingExtra(message) from error
