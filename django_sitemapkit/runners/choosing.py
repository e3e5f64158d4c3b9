"""Which runner it is: by name, by the setting, or by the number of workers."""

from contextlib import suppress
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from django_sitemapkit.builds import Runner
from django_sitemapkit.conf import settings
from django_sitemapkit.extras import how_to_install

RUNNERS = {
    "inline": "django_sitemapkit.builds.InlineRunner",
    "processes": "django_sitemapkit.runners.processes.ProcessesRunner",
    "celery": "django_sitemapkit.runners.celery.CeleryRunner",
    "tasks": "django_sitemapkit.runners.tasks.TasksRunner",
    "dummy": "django_sitemapkit.runners.dummy.DummyRunner",
}
"""The runners that are known by a short name."""

PACKAGES = {
    "celery": f'the extra "celery": {how_to_install("celery")}',
    "tasks": f'Django 6.0, or the extra "tasks": {how_to_install("tasks")}',
}
"""What some of them need."""


def get_runner(name: str | None = None, workers: int | None = None) -> Runner:
    """Return a runner by its short name or dotted path; by default that of SITEMAPKIT_RUNNER.

    It has the options of the setting if that names the same runner. If only ``workers`` is given,
    the runner is "processes" for several and "inline" for one. Raises ImportError if there is no
    such runner, TypeError if it is not a runner or has no such option, and ImproperlyConfigured or
    ValueError for an invalid value of an option.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"A runner needs at least one worker, not {workers}.")
    if name is None and workers is not None:
        name = "processes" if workers > 1 else "inline"
    configured = settings.RUNNER
    kind = runner_class(name or configured.backend)
    options: dict[str, Any] = {}
    if name is None or _dotted_path_of(name) == _dotted_path_of(configured.backend):
        options.update(configured.options)
    if workers is not None and (kind.supports_workers or workers > 1):
        if not kind.supports_workers:
            raise ValueError(
                f"The runner {name!r} starts no workers, so their number cannot be given. For"
                " several processes of this machine, use 'processes'."
            )
        options["workers"] = workers
    return kind(**options)


def runner_class(name: str) -> type[Runner]:
    """Return a class of runners by its short name or dotted path.

    Raises ImportError if there is none or a package is missing, and TypeError if it is not a
    runner.
    """
    try:
        kind = import_string(_dotted_path_of(name))
    except ImportError as error:
        if name not in PACKAGES:
            raise
        raise ImportError(f"the runner {name!r} needs {PACKAGES[name]} ({error})") from error
    if not (isinstance(kind, type) and issubclass(kind, Runner)):
        raise TypeError(f"{name} is not a runner: it does not subclass builds.Runner.")
    return kind


def import_configured_runner() -> None:
    """Import the module of the runner in the settings, so that a Celery worker has its tasks.

    Does nothing if the setting is invalid; a system check reports that.
    """
    with suppress(ImportError, ImproperlyConfigured, TypeError):
        runner_class(settings.RUNNER.backend)


def _dotted_path_of(name: str) -> str:
    """Return the dotted path of a runner; a name that is not a short one is returned as it is."""
    return RUNNERS.get(name, name)
