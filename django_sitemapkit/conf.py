"""The settings: one typed attribute each, read at first access and again after a change.

A wrong value raises ImproperlyConfigured with the way out. The system checks report each of them
before anything runs.
"""

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import request_finished, request_started, setting_changed
from django.db import DatabaseError
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils.module_loading import import_string

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol import limits
from django_sitemapkit.protocol.locations import normalise_base

_SITE_KEYS = {"BASE_URL", "SECTIONS", "URLCONF"}

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSettings:
    """The options of one site in ``SITEMAPKIT_SITES``."""

    base_url: str
    """The absolute URL that the site's paths begin with."""
    sections: tuple[str, ...] | None = None
    """The names of the sections the site has; None for all."""
    urlconf: str | None = None
    """The dotted path of the site's URLconf; None for ROOT_URLCONF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """The backend and options of ``SITEMAPKIT_RUNNER``."""

    backend: str
    """A short name, or the dotted path of a class."""
    options: Mapping[str, Any]
    """The keyword arguments of that class."""


class _Setting(Generic[_Value]):
    """A descriptor that reads one setting, and validates its value if it is new or has changed."""

    def __init__(self, default: object, check: Callable[[str, Any], _Value], doc: str) -> None:
        """Set the validator ``check``, which is called with the full name and the value."""
        self._default = default
        self._check = check
        self.__doc__ = f"{doc} Default: {default!r}."

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"SITEMAPKIT_{name}"

    def __get__(self, instance: "Settings", owner: type | None = None) -> _Value:
        """Return the setting's validated value; raises ImproperlyConfigured."""
        if instance is None:
            return self
        raw = getattr(django_settings, self._name, self._default)
        known = instance.checked.get(self._name)
        # A list or a dict may have been changed in place, so it is compared with a copy.
        is_mutable = isinstance(raw, dict | list | set)
        if known is None or (known[0] != raw if is_mutable else known[0] is not raw):
            snapshot = copy.deepcopy(raw) if is_mutable else raw
            # What is None by default may also be set to None.
            is_unset = raw is None and self._default is None
            checked: Any = None if is_unset else self._check(self._name, raw)
            known = instance.checked[self._name] = snapshot, checked
        value: _Value = known[1]
        return value


def _one_of(*choices: Any) -> Callable[[str, Any], Any]:
    """Return a validator that accepts these values only."""

    def check(name: str, value: Any) -> Any:
        """Return the choice that equals ``value``; raises ImproperlyConfigured if none does.

        ``name`` is that of the setting.
        """
        if value not in choices:
            known = ", ".join(map(repr, choices))
            raise ImproperlyConfigured(f"{name} must be one of {known}; it is {value!r}.")
        return choices[choices.index(value)]

    return check


def _whole_number(minimum: int, maximum: int = 1_000_000_000) -> Callable[[str, Any], int]:
    """Return a validator that accepts whole numbers in a range."""

    # The default maximum: any database can subtract as many seconds, or limit to as many rows.
    def check(name: str, value: Any) -> int:
        """Return ``value`` if it is a whole number in the range, else raise ImproperlyConfigured.

        ``name`` is that of the setting.
        """
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not minimum <= value <= maximum:
            raise ImproperlyConfigured(
                f"{name} must be a whole number from {minimum:,} to {maximum:,}; it is {value!r}."
            )
        return int(value)

    return check


_switch = _one_of(False, True)
at_least_one = _whole_number(1)
"""Returns a whole number from 1 to a billion; for others it raises ImproperlyConfigured by name."""


def _valid_fraction(name: str, value: Any) -> float:
    """Return a number from 0 to 1; raises ImproperlyConfigured for other values."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1:
        raise ImproperlyConfigured(
            f"{name} must be a number from 0 to 1, or None; it is {value!r}."
        )
    return float(value)


def _valid_header(name: str, value: Any) -> str:
    """Return the text of a header; raises ImproperlyConfigured unless it is printable ASCII."""
    if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
        raise ImproperlyConfigured(f"{name} must be printable ASCII text, for a header.")
    return value


def _valid_runner(name: str, value: Any) -> RunnerSettings:
    """Return the runner's name and options; raises ImproperlyConfigured for other values."""
    given: Any = {"BACKEND": value} if isinstance(value, str) else value
    is_dict = isinstance(given, Mapping) and given.keys() <= {"BACKEND", "OPTIONS"}
    backend, options = (given.get("BACKEND"), given.get("OPTIONS", {})) if is_dict else (None, {})
    are_options = isinstance(options, Mapping) and all(isinstance(key, str) for key in options)
    if not isinstance(backend, str) or not backend or not are_options:
        raise ImproperlyConfigured(
            f'{name} must be the name of a runner such as "processes", or a dict such as'
            ' {"BACKEND": "processes", "OPTIONS": {"workers": 4}}.'
        )
    return RunnerSettings(backend=backend, options=options)


def _valid_storage_alias(name: str, value: Any) -> str:
    """Return an alias of STORAGES; raises ImproperlyConfigured for other values."""
    aliases = list(django_settings.STORAGES)
    if value not in aliases:
        known = ", ".join(map(repr, aliases))
        raise ImproperlyConfigured(
            f"{name} must be an alias in STORAGES, one of {known}; it is {value!r}."
        )
    return value  # type: ignore[no-any-return]


def _valid_internal_path(name: str, value: Any) -> str:
    """Return a path with slashes at both ends; raises ImproperlyConfigured for other values."""
    path = _valid_header(name, value)
    if path[:1] != "/" or path[-1:] != "/":
        raise ImproperlyConfigured(f"{name} must be a path with a slash at both ends.")
    return path


def _valid_base_url(name: str, value: Any) -> str:
    """Return a base URL, which may have a path, as set; raises ImproperlyConfigured if invalid."""
    if not isinstance(value, str):
        raise ImproperlyConfigured(f'{name} must be a string such as "https://www.example.com".')
    if "//" not in value and not value.startswith("/"):
        raise ImproperlyConfigured(
            f'{name} is {value!r}: add https://, as in "https://{value or "www.example.com"}".'
        )
    try:
        normalise_base(value)
    except InvalidValue as error:
        raise ImproperlyConfigured(f"{name}: {error}") from error
    return value


ReadSites = Callable[[], Any]
"""A project's function that returns its sites, as ``SITEMAPKIT_SITES`` has them."""

_known: ContextVar[dict[Hashable, Any] | None] = ContextVar("sitemapkit_known", default=None)
"""What a project's functions returned to the request, build or command of this thread or task.

None outside of them: a thread lives longer than a tenant is its connection's.
"""


def read_once(key: Hashable, read: Callable[[], _Value]) -> _Value:
    """Return what ``read()`` returns, cached under ``key`` for this request, build or command.

    Outside of these it is called each time.
    """
    known = _known.get()
    if known is None:
        return read()
    try:
        value: _Value = known[key]
    except KeyError:
        value = known[key] = read()
    return value


@contextmanager
def caching_sites() -> Iterator[None]:
    """Cache within this context what the project's functions for sites and sections return.

    It is a decorator too.
    """
    token = _known.set({})
    try:
        yield
    finally:
        _known.reset(token)


@receiver(request_started)
def _start_request_cache(**kwargs: Any) -> None:
    """Begin to cache what the project's functions return, for a request."""
    _known.set({})


@receiver(request_finished)
def _end_request_cache(**kwargs: Any) -> None:
    """End the cache of a request."""
    _known.set(None)


def cache_sites_for(request: HttpRequest) -> None:
    """Cache what the project's functions return for a request under ASGI; else do nothing.

    There Django calls the receivers of ``request_started`` in a task of their own, and a context
    variable that they set is lost with it.
    """
    if hasattr(request, "scope"):
        _known.set(vars(request).setdefault("_sitemapkit_known", {}))


class _Sites(_Setting[Any]):
    """The sites in the settings, or those that the function named there returns."""

    def __get__(self, instance: "Settings", owner: type | None = None) -> dict[str, SiteSettings]:
        """Return the settings of each site, by key; calls the function, if there is one."""
        value = super().__get__(instance, owner)
        if not callable(value):
            return value  # type: ignore[no-any-return]
        return read_once(value, lambda: _call_sites_function(f"{self._name}()", value))


def forget_sites() -> None:
    """Drop the cached results of the project's functions for sites and sections.

    Call it if your own code has changed these during a request, build or command, and goes on to
    use them.
    """
    if known := _known.get():
        known.clear()


class SitesFunctionFailed(ImproperlyConfigured):
    """The function that SITEMAPKIT_SITES names raised an error, or did not return sites."""


def has_sites_function() -> bool:
    """Return whether SITEMAPKIT_SITES names a function, which may return none for a tenant."""
    return isinstance(getattr(django_settings, "SITEMAPKIT_SITES", None), str)


def _call_sites_function(name: str, function: ReadSites) -> dict[str, SiteSettings]:
    """Call a project's function for its sites, and return their settings by key.

    Raises SitesFunctionFailed if it raises an error or returns something else; an error of the
    database is raised as it is.
    """
    try:
        return _valid_sites(name, function())
    except DatabaseError:
        raise
    except ImproperlyConfigured as error:
        raise SitesFunctionFailed(str(error)) from error
    except Exception as error:
        raise SitesFunctionFailed(f"{name} raised {type(error).__name__}: {error}.") from error


def _valid_sites_or_function(name: str, value: Any) -> dict[str, SiteSettings] | ReadSites:
    """Return the sites that a dict has, or the function that the value names by its dotted path.

    Raises ImproperlyConfigured for other values.
    """
    if not isinstance(value, str):
        return _valid_sites(name, value)
    try:
        function = import_string(value)
    except ImportError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from error
    if not callable(function):
        raise ImproperlyConfigured(f"{name} is {value!r}, which is not a function.")
    return function  # type: ignore[no-any-return]


def _valid_sites(name: str, value: Any) -> dict[str, SiteSettings]:
    """Return the settings of each site in a dict, by key; raises ImproperlyConfigured."""
    if not isinstance(value, Mapping):
        raise ImproperlyConfigured(
            f'{name} must be a dict such as {{"main": {{"BASE_URL": "https://…"}}}}.'
        )
    return {
        key: _valid_site_settings(f"{name}[{key!r}]", key, options)
        for key, options in value.items()
    }


def _valid_site_settings(label: str, key: object, options: object) -> SiteSettings:
    """Return the settings of one site; ``label`` stands for them in messages.

    Raises ImproperlyConfigured if one is invalid or unknown, or the base URL is missing.
    """
    if not isinstance(key, str) or not key or len(key) > 100:
        raise ImproperlyConfigured(f"{label}: a key is a string of 1 to 100 characters.")
    if not isinstance(options, Mapping) or "BASE_URL" not in options:
        raise ImproperlyConfigured(f'{label} must be a dict with a "BASE_URL".')
    if unknown := sorted(set(options) - _SITE_KEYS):
        raise ImproperlyConfigured(
            f"{label} has unknown keys {unknown}; it may have {sorted(_SITE_KEYS)}."
        )
    sections = options.get("SECTIONS")
    are_names = isinstance(sections, (list, tuple, set, frozenset)) and all(
        isinstance(name, str) for name in sections
    )
    if sections is not None and not are_names:
        raise ImproperlyConfigured(f'{label}["SECTIONS"] must be a list of names, or None for all.')
    urlconf = options.get("URLCONF")
    if urlconf is not None and not isinstance(urlconf, str):
        raise ImproperlyConfigured(f'{label}["URLCONF"] must be the dotted path of a module.')
    return SiteSettings(
        base_url=_valid_base_url(f'{label}["BASE_URL"]', options["BASE_URL"]),
        sections=None if sections is None else tuple(sections),
        urlconf=urlconf,
    )


class Settings:
    """All settings of the package; each attribute is a setting with the prefix ``SITEMAPKIT_``."""

    def __init__(self) -> None:
        self.checked: dict[str, tuple[object, Any]] = {}
        """The values in force, as they are set and as they are read, by name."""

    BASE_URL: _Setting[str | None] = _Setting(
        None,
        _valid_base_url,
        "The only site: scheme, host, port and, if mounted below the root, path, as in"
        ' "https://example.com".'
        " Without it SITES, the sites framework or, in live views, the request's host decide.",
    )
    SITES = _Sites(
        {},
        _valid_sites_or_function,
        "Several sites by a key of your choice, each a dict of BASE_URL, SECTIONS and URLCONF; or"
        " the dotted path of a function that returns such a dict.",
    )
    MAX_URLS = _Setting(
        limits.MAX_URLS,
        _whole_number(1, limits.MAX_URLS),
        "URLs in one file, up to the protocol's limit.",
    )
    MAX_BYTES = _Setting(
        limits.MAX_BYTES,
        _whole_number(4096, limits.MAX_BYTES),
        "Uncompressed bytes of a page or an index, up to the protocol's limit. Baidu requires"
        " 10,485,760.",
    )
    MAX_SITEMAPS = _Setting(
        limits.MAX_URLS,
        _whole_number(1, limits.MAX_URLS),
        "Sitemaps in the index of a site, up to the protocol's limit. In 2006 the limit was 1,000.",
    )
    SCHEMA_LOCATION: _Setting[bool] = _Setting(
        False,
        _switch,
        "Whether files name their XML schema in ``xsi:schemaLocation``. Validators know where"
        " it is, and search engines ignore it.",
    )
    DEDUPLICATE: _Setting[bool] = _Setting(
        False,
        _switch,
        "Whether a build lists each URL once, on the first page that has it. Live pages are not"
        " deduplicated.",
    )
    METHODS_AS_COLUMNS: _Setting[bool] = _Setting(
        True,
        _switch,
        "Whether a method that only reads fields and calls ``reverse()`` is read as columns,"
        " instead of being called for each object.",
    )
    CACHE_CONTROL = _Setting(
        "max-age=600", _valid_header, 'The Cache-Control header of sitemaps; "" sends none.'
    )
    SERVE_FROM: _Setting[str] = _Setting(
        "auto",
        _one_of("auto", "live", "published"),
        'What the views serve. "auto" serves the published files of a section if it has any,'
        " else its rows.",
    )
    KEEP_REPLACED_SECONDS = _Setting(
        86_400,
        _whole_number(0),
        "Seconds that the files of a replaced build are kept. A crawler that has its index can"
        " still fetch every file in it.",
    )
    KEEP_BUILDS = _Setting(
        3, at_least_one, "Published builds whose files are kept beyond that, to roll back to."
    )
    LEASE_SECONDS = _Setting(
        60, at_least_one, "Seconds without a heartbeat after which a builder is presumed dead."
    )
    GZIP_BACKEND: _Setting[str] = _Setting(
        "auto",
        _one_of("auto", "zlib", "zlib-ng", "isal"),
        'The compression library. "auto" is ISA-L where the extra ``fast`` is installed, else'
        " zlib-ng where the extra ``zlib-ng`` is, else zlib.",
    )
    RUNNER = _Setting(
        "inline",
        _valid_runner,
        'What renders the pages of a build: "inline", which is only the process that builds,'
        ' "processes", "celery", "tasks", "dummy", or the dotted path of a runner; with options, a'
        " dict of BACKEND and OPTIONS.",
    )
    REBUILD: _Setting[str | None] = _Setting(
        None,
        _one_of(None, "on_change"),
        'When a build is requested besides the schedule. "on_change": after saves and deletes of'
        " models that a section lists.",
    )
    MAX_SHRINK: _Setting[float | None] = _Setting(
        None,
        _valid_fraction,
        "The part of its URLs that a section, or the site, may lose. A build that would lose more"
        " is held for review until someone publishes it. 1 holds none and warns of none. None"
        " allows 0.3 of more than 1,000 URLs, and 0.5 of fewer.",
    )
    EXPORT_STORAGE: _Setting[str | None] = _Setting(
        None, _valid_storage_alias, "An alias in STORAGES that gets a copy under stable names."
    )
    EXPORT_TEXT: _Setting[bool] = _Setting(
        False, _switch, "Whether to export each page as a gzipped text sitemap too."
    )
    SENDFILE: _Setting[str | None] = _Setting(
        None,
        _one_of(None, "x-accel-redirect", "x-sendfile"),
        "The header by which the web server sends the files.",
    )
    SENDFILE_ROOT = _Setting(
        "/sitemapkit/",
        _valid_internal_path,
        "The internal nginx location of the storage.",
    )


settings = Settings()

SETTING_NAMES = tuple(name for name in vars(Settings) if name.isupper())
"""The settings' names without their prefix."""


@receiver(setting_changed)
def _forget_checked_values(**changed: Any) -> None:
    """Validate all settings again: some depend on others that changed, such as STORAGES."""
    settings.checked.clear()
    forget_sites()
