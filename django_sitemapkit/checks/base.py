"""What checks share: how one is registered, and the settings and sites they look at."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, TypeAlias

from django.apps import apps
from django.conf import settings as django_settings
from django.core import checks
from django.core.checks import CheckMessage
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from django_sitemapkit.conf import caching_sites, has_sites_function, settings
from django_sitemapkit.reading.validation import Mistake, mistake_of_crash
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import SitemapSite, all_sites

Found: TypeAlias = Iterator[Mistake | CheckMessage]
"""What every check yields: mistakes, and the messages of a project's own runner."""

OF_FUNCTION = ("sitemapkit.W003", "sitemapkit.W004", "sitemapkit.W010", "sitemapkit.W013")
"""What these ids warn of is an error unless SITEMAPKIT_SITES is a function, which reads rows."""


def message_of(mistake: Mistake | CheckMessage, warnings: Collection[str] = ()) -> CheckMessage:
    """Return a mistake as a message of Django's system checks; a message is returned as it is.

    The letter of its id is its level. An error becomes the warning with the same number, such as
    W003 for E003, if the id of that warning is in ``warnings``.
    """
    if isinstance(mistake, CheckMessage):
        return mistake
    mistake = mistake.downgraded(warnings)
    level = checks.Error if ".E" in mistake.identifier else checks.Warning
    return level(mistake.message, hint=mistake.hint, obj=mistake.obj, id=mistake.identifier)


def check(
    *tags: str, deploy: bool = False
) -> Callable[[Callable[[], Found]], Callable[..., list[CheckMessage]]]:
    """Return a decorator that registers a generator of mistakes as a system check with ``tags``.

    An error that a project's code raises in it becomes a warning, so that commands such as
    ``migrate`` still run. ``deploy`` is whether only ``check --deploy`` runs it.
    """

    def register_check(find: Callable[[], Found]) -> Callable[..., list[CheckMessage]]:
        """Register ``find`` as a system check, and return the registered function."""

        @caching_sites()
        def run_check(**options: Any) -> list[CheckMessage]:
            """Return the messages of the check; none if the database raises an error."""
            warnings = OF_FUNCTION if has_sites_function() else ()
            try:
                return [message_of(mistake, warnings) for mistake in find()]
            except DatabaseError:  # The tables may not exist yet.
                return []
            except Exception as error:  # noqa: BLE001  a project's code may raise anything
                return [message_of(mistake_of_crash(error).with_name(find.__name__))]

        run_check.__name__, run_check.__doc__ = find.__name__, find.__doc__
        return checks.register(*tags, deploy=deploy)(run_check)

    return register_check


def options_of(
    setting: str,
    kind: type[Any],
    rules: Mapping[str, tuple[Callable[[Any], bool], str]],
    example: str,
    *,
    hidden: str = "",
) -> Any:
    """Return the options that an app's setting has, as a dataclass ``kind`` with their defaults.

    ``rules`` tell which values each option may have, and how a message describes them, and
    ``example`` shows the setting. Of the option ``hidden``, a message has only the type of a wrong
    value. Raises ImproperlyConfigured for unknown keys and invalid values.
    """
    value = getattr(django_settings, setting, {})
    if not isinstance(value, Mapping):
        raise ImproperlyConfigured(f"{setting} must be a dict such as {example}.")
    if unknown := sorted(set(value) - set(rules), key=repr):
        known = sorted(rules)
        raise ImproperlyConfigured(f"{setting} has unknown keys {unknown}; it may have {known}.")
    options = kind(**value)
    for name, (is_valid, what) in rules.items():
        if not is_valid(found := getattr(options, name)):
            shown = type(found) if name == hidden else found
            raise ImproperlyConfigured(f'{setting}["{name}"] must be {what}; it is {shown!r}.')
    return options


def setting_value(name: str) -> Any:
    """Return one of the package's settings; None if its value is invalid or cannot be read."""
    try:
        return getattr(settings, name)
    except (ImproperlyConfigured, DatabaseError):
        return None


def sites_in_settings() -> list[SitemapSite]:
    """Return the sites that the settings name; none if a setting is invalid, which E001 reports.

    There are none either if a function returns them and its tables do not exist yet.
    """
    try:
        return all_sites() if settings.SITES or settings.BASE_URL else []
    except (ImproperlyConfigured, DatabaseError):
        return []


def are_sites_set() -> bool:
    """Return whether the settings name sites, even if their values are invalid."""
    unset: dict[str, object] = {"SITEMAPKIT_SITES": {}, "SITEMAPKIT_BASE_URL": None}
    return any(getattr(django_settings, name, value) != value for name, value in unset.items())


def sites_with_urlconf() -> list[SitemapSite]:
    """Return the sites of the settings that have a URLconf; E010 reports the others."""
    return [site for site in sites_in_settings() if urlconf_error(site) is None]


def uses_only_drop_in() -> bool:
    """Return whether the project has the drop-in for contrib's views, and registers no section."""
    return apps.is_installed("django_sitemapkit.contrib.sitemaps") and registry.is_empty


def urlconf_error(site: SitemapSite) -> ImportError | None:
    """Return the ImportError of a site's URLconf, or None if it can be imported."""
    try:
        import_module(site.urlconf or django_settings.ROOT_URLCONF)
    except ImportError as error:
        return error
    return None


def known_sites() -> list[SitemapSite]:
    """Return the sites of the settings, else of the sites framework, else an example."""
    if are_sites_set():
        return sites_with_urlconf()
    example = SitemapSite.at("https://www.example.com")
    if not apps.is_installed("django.contrib.sites"):
        return [example]
    # Without SITE_ID and without tables: the key of the site that migrations create.
    site_id = getattr(django_settings, "SITE_ID", None)
    example = replace(example, key=str(site_id or 1))
    if site_id:
        return [example]
    try:
        return all_sites()
    except (DatabaseError, ImproperlyConfigured):
        return [example]
