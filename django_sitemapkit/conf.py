"""The settings: one typed property each, read at first access and again after a change.

A wrong value raises ImproperlyConfigured with the way out. The system checks report each of them
before anything runs.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.limits import MAX_BYTES, MAX_URLS
from django_sitemapkit.protocol.locations import normalise_base

_SITE_KEYS = {"BASE_URL", "SECTIONS", "URLCONF"}

_Value = TypeVar("_Value")

_UNSET = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSettings:
    """One entry of ``SITEMAPKIT_SITES``."""

    base_url: str
    """The absolute URL that the site's paths begin with."""
    sections: tuple[str, ...] | None = None
    """The names of the sections the site has; None for all."""
    urlconf: str | None = None
    """The dotted path of the site's URLconf; None for ROOT_URLCONF."""


class _setting(Generic[_Value]):  # noqa: N801  used as a decorator, as property is
    """A property of ``Settings`` that checks a value once, and again when it has changed."""

    def __init__(self, check: Callable[["Settings"], _Value]) -> None:
        self.__doc__ = check.__doc__
        self._check = check

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: "Settings", owner: type | None = None) -> _Value:
        if instance is None:
            return self
        raw = _get(self._name, _UNSET)
        known = instance.checked.get(self._name)
        # A list or a dict may have been changed in place, so it is compared with a copy.
        is_mutable = isinstance(raw, dict | list | set)
        if known is None or (known[0] != raw if is_mutable else known[0] is not raw):
            snapshot = copy.deepcopy(raw) if is_mutable else raw
            known = instance.checked[self._name] = snapshot, self._check(instance)
        value: _Value = known[1]
        return value


class Settings:
    """All settings of the package; each property is a setting with the prefix ``SITEMAPKIT_``."""

    def __init__(self) -> None:
        self.checked: dict[str, tuple[object, Any]] = {}
        """The values in force, as they are set and as they are read, by name."""

    @_setting
    def BASE_URL(self) -> str | None:  # noqa: N802
        """Scheme, host, port and, if mounted so, path of the one site: "https://example.com".

        Default None: SITES, the sites framework or, in live views, the request's host decide.
        """
        value = _get("BASE_URL", None)
        if value is not None:
            _check_base_url("SITEMAPKIT_BASE_URL", value)
        return value  # type: ignore[no-any-return]

    @_setting
    def SITES(self) -> dict[str, SiteSettings]:  # noqa: N802
        """Several sites by a key of yours, each a dict of BASE_URL, SECTIONS and URLCONF."""
        value = _get("SITES", {})
        if not isinstance(value, Mapping):
            raise ImproperlyConfigured(
                'SITEMAPKIT_SITES must be a dict such as {"main": {"BASE_URL": "https://…"}}.'
            )
        return {key: _site(key, options) for key, options in value.items()}

    @_setting
    def MAX_URLS(self) -> int:  # noqa: N802
        """URLs in one file: 1 to 50,000, the protocol's limit and the default."""
        return _whole_number("MAX_URLS", MAX_URLS)

    @_setting
    def MAX_BYTES(self) -> int:  # noqa: N802
        """Uncompressed bytes of a page or an index: up to 52,428,800, the protocol's limit.

        Baidu asks for 10,485,760.
        """
        return _whole_number("MAX_BYTES", MAX_BYTES, minimum=4096)

    @_setting
    def MAX_SITEMAPS(self) -> int:  # noqa: N802
        """Sitemaps in one index: 1 to 50,000, the protocol's limit and the default.

        In 2006 the limit was 1,000. What does not fit stands in further indexes.
        """
        return _whole_number("MAX_SITEMAPS", MAX_URLS)

    @_setting
    def SCHEMA_LOCATION(self) -> bool:  # noqa: N802
        """Whether files name the schema to check them by, in ``xsi:schemaLocation``.

        Default False: validators know where it is, and search engines do not look.
        """
        return _switch("SCHEMA_LOCATION")

    @_setting
    def DEDUPLICATE(self) -> bool:  # noqa: N802
        """Whether a build lists each URL once, on the first page that has it: default False.

        One process makes the pages then, whatever RUNNER is. Live pages do not look at each other.
        """
        return _switch("DEDUPLICATE")

    @_setting
    def CACHE_CONTROL(self) -> str:  # noqa: N802
        """The Cache-Control header of sitemaps; "" sends none. Default "max-age=600"."""
        value = _get("CACHE_CONTROL", "max-age=600")
        if not isinstance(value, str) or not value.isprintable():
            raise ImproperlyConfigured(
                'SITEMAPKIT_CACHE_CONTROL must be a header\'s text such as "max-age=600", or "".'
            )
        return value

    @_setting
    def SERVE_FROM(self) -> str:  # noqa: N802
        """What the views answer with: "auto", "live" or "published".

        Default "auto": the published files of a section that has any, else its rows.
        """
        value: str = _one_of("SERVE_FROM", "auto", ("auto", "live", "published"))
        return value

    @_setting
    def KEEP_REPLACED_SECONDS(self) -> int:  # noqa: N802
        """Seconds that the files of a replaced build stay: default 86,400, one day.

        A reader that has the index of then still gets every file it names.
        """
        return _whole_number("KEEP_REPLACED_SECONDS", None, minimum=0, default=86_400)

    @_setting
    def KEEP_BUILDS(self) -> int:  # noqa: N802
        """Published builds whose files stay beyond that, to roll back to: default 3."""
        return _whole_number("KEEP_BUILDS", None, minimum=1, default=3)

    @_setting
    def LEASE_SECONDS(self) -> int:  # noqa: N802
        """Seconds without a heartbeat after which a builder is presumed dead: default 60."""
        return _whole_number("LEASE_SECONDS", None, minimum=1, default=60)

    @_setting
    def GZIP_BACKEND(self) -> str:  # noqa: N802
        """What compresses: "auto", "zlib" or "isal".

        Default "auto": ISA-L where the extra ``fast`` is installed, else zlib.
        """
        value: str = _one_of("GZIP_BACKEND", "auto", ("auto", "zlib", "isal"))
        return value

    @_setting
    def RUNNER(self) -> str:  # noqa: N802
        """What makes the pages of a build: "inline", "processes", or a runner's dotted path.

        Default "inline": the process that builds, alone.
        """
        value = _get("RUNNER", "inline")
        if not isinstance(value, str) or not value:
            raise ImproperlyConfigured(
                'SITEMAPKIT_RUNNER must be "inline", "processes" or the dotted path of a runner.'
            )
        return value

    @_setting
    def WORKERS(self) -> int | None:  # noqa: N802
        """Processes of the runner "processes".

        Default None: as many as the machine has cores.
        """
        if _get("WORKERS", None) is None:
            return None
        return _whole_number("WORKERS", None, minimum=1)

    @_setting
    def MAX_SHRINK(self) -> float:  # noqa: N802
        """The part of a section's URLs, and so of the site's, that a build may lose: default 0.5.

        A build that would lose more is held for review until someone publishes it. 1 holds none.
        """
        value = _get("MAX_SHRINK", 0.5)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1:
            raise ImproperlyConfigured(
                f"SITEMAPKIT_MAX_SHRINK must be a number from 0 to 1; it is {value!r}."
            )
        return float(value)

    @_setting
    def EXPORT_STORAGE(self) -> str | None:  # noqa: N802
        """An alias in STORAGES that gets a copy under names that stay; default None."""
        value = _get("EXPORT_STORAGE", None)
        aliases = list(django_settings.STORAGES)
        if value is not None and value not in aliases:
            known = ", ".join(map(repr, aliases))
            raise ImproperlyConfigured(
                f"SITEMAPKIT_EXPORT_STORAGE must be an alias in STORAGES, one of {known};"
                f" it is {value!r}."
            )
        return value  # type: ignore[no-any-return]

    @_setting
    def EXPORT_TEXT(self) -> bool:  # noqa: N802
        """Whether the export has each page as a text sitemap too, a gzip file; default False."""
        return _switch("EXPORT_TEXT")

    @_setting
    def SENDFILE(self) -> str | None:  # noqa: N802
        """Let the web server send files: "x-accel-redirect" or "x-sendfile"; default None."""
        value: str | None = _one_of("SENDFILE", None, (None, "x-accel-redirect", "x-sendfile"))
        return value

    @_setting
    def SENDFILE_ROOT(self) -> str:  # noqa: N802
        """The internal location of nginx that stands for the storage: default "/sitemapkit/"."""
        value = _get("SENDFILE_ROOT", "/sitemapkit/")
        if not isinstance(value, str) or value[:1] != "/" or value[-1:] != "/":
            raise ImproperlyConfigured(
                "SITEMAPKIT_SENDFILE_ROOT must be a path with a slash at both ends."
            )
        return value


settings = Settings()

SETTING_NAMES = tuple(name for name in vars(Settings) if name.isupper())
"""The settings' names without their prefix."""


@receiver(setting_changed)
def _reset(**changed: Any) -> None:
    """Check all values again: some depend on other settings, such as STORAGES."""
    settings.checked.clear()


def _get(name: str, default: object) -> Any:
    return getattr(django_settings, f"SITEMAPKIT_{name}", default)


def _one_of(name: str, default: Any, choices: tuple[Any, ...]) -> Any:
    value = _get(name, default)
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ImproperlyConfigured(f"SITEMAPKIT_{name} must be one of {known}; it is {value!r}.")
    return value


def _switch(name: str) -> bool:
    return bool(_one_of(name, False, (False, True)))


def _whole_number(
    name: str, maximum: int | None, *, minimum: int = 1, default: int | None = None
) -> int:
    value = _get(name, maximum if default is None else default)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if maximum is None:
        if not whole or value < minimum:
            raise ImproperlyConfigured(
                f"SITEMAPKIT_{name} must be a whole number from {minimum} up; it is {value!r}."
            )
    elif not whole or not minimum <= value <= maximum:
        raise ImproperlyConfigured(
            f"SITEMAPKIT_{name} must be a whole number from {minimum:,} to {maximum:,}, the"
            f" protocol's limit; it is {value!r}."
        )
    return int(value)


def _check_base_url(setting: str, value: object) -> None:
    if not isinstance(value, str):
        raise ImproperlyConfigured(f'{setting} must be text such as "https://www.example.com".')
    if "//" not in value and not value.startswith("/"):
        raise ImproperlyConfigured(
            f'{setting} is {value!r}: add https://, as in "https://{value or "www.example.com"}".'
        )
    try:
        normalise_base(value)
    except InvalidValue as error:
        raise ImproperlyConfigured(f"{setting}: {error}") from error


def _site(key: object, options: object) -> SiteSettings:
    name = f"SITEMAPKIT_SITES[{key!r}]"
    if not isinstance(key, str) or not key or len(key) > 100:
        raise ImproperlyConfigured(f"{name}: a key is text of 1 to 100 characters.")
    if not isinstance(options, Mapping) or "BASE_URL" not in options:
        raise ImproperlyConfigured(f'{name} must be a dict with a "BASE_URL".')
    if unknown := sorted(set(options) - _SITE_KEYS):
        raise ImproperlyConfigured(
            f"{name} has unknown keys {unknown}; it may have {sorted(_SITE_KEYS)}."
        )
    _check_base_url(f'{name}["BASE_URL"]', options["BASE_URL"])
    sections = options.get("SECTIONS")
    if sections is not None and not _are_names(sections):
        raise ImproperlyConfigured(f'{name}["SECTIONS"] must be a list of names, or None for all.')
    urlconf = options.get("URLCONF")
    if urlconf is not None and not isinstance(urlconf, str):
        raise ImproperlyConfigured(f'{name}["URLCONF"] must be the dotted path of a module.')
    return SiteSettings(
        base_url=options["BASE_URL"],
        sections=None if sections is None else tuple(sections),
        urlconf=urlconf,
    )


def _are_names(value: object) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(
        isinstance(name, str) for name in value
    )
