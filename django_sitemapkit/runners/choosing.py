"""Which runner it is: by name, by the setting, or by the number of workers."""

from django.utils.module_loading import import_string

from django_sitemapkit.builds import Runner
from django_sitemapkit.conf import settings

RUNNERS = {
    "inline": "django_sitemapkit.builds.InlineRunner",
    "processes": "django_sitemapkit.runners.processes.ProcessesRunner",
}
"""The runners that are known by a short name."""


def get_runner(name: str | None = None, workers: int | None = None) -> Runner:
    """Return the runner of a short name or dotted path; by default that of SITEMAPKIT_RUNNER.

    Asking for several ``workers`` asks for processes, where no name is given. Raises ImportError
    where there is no such runner, TypeError where it is none, and ValueError where it cannot have
    so many workers.
    """
    if name is None:
        name = "processes" if workers is not None and workers > 1 else settings.RUNNER
    kind = import_string(RUNNERS.get(name, name))
    if not (isinstance(kind, type) and issubclass(kind, Runner)):
        raise TypeError(f"{name} is not a runner: it does not subclass builds.Runner.")
    return kind(workers)
