"""Which runner builds: the setting, the options of a command, and what is wrong with them."""

import os
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit.builds import InlineRunner
from django_sitemapkit.runners.choosing import get_runner, import_configured_runner
from django_sitemapkit.runners.dummy import DummyRunner


def test_runners_are_known_by_short_names_and_dotted_paths(settings):
    """Several workers ask for processes; without any word the setting decides."""
    assert type(get_runner()) is InlineRunner
    assert get_runner(workers=3).workers == 3
    assert type(get_runner(workers=1)) is InlineRunner
    assert type(get_runner("django_sitemapkit.builds.InlineRunner")) is InlineRunner
    settings.SITEMAPKIT_RUNNER = "processes"
    assert get_runner().workers == os.cpu_count()
    assert get_runner(workers=2).workers == 2
    assert type(get_runner(workers=1)) is InlineRunner


def test_the_options_of_the_setting_are_those_of_its_runner(settings):
    """By either of its names; another runner gets none of them."""
    settings.SITEMAPKIT_RUNNER = {"BACKEND": "processes", "OPTIONS": {"workers": 7}}
    assert get_runner().workers == 7
    assert get_runner("processes").workers == 7
    assert get_runner("django_sitemapkit.runners.processes.ProcessesRunner").workers == 7
    assert get_runner("processes", 2).workers == 2
    assert type(get_runner("inline")) is InlineRunner
    settings.SITEMAPKIT_RUNNER = {"BACKEND": "dummy", "OPTIONS": {"in_flight": 3}}
    assert get_runner().in_flight == 3
    assert get_runner("processes").workers == os.cpu_count()


@pytest.mark.parametrize(
    ("name", "workers", "error"),
    [
        ("inline", 2, ValueError),
        ("dummy", 2, ValueError),
        ("processes", 0, ValueError),
        (None, -1, ValueError),
        ("no.such.Runner", None, ImportError),
        ("django_sitemapkit.sites.SitemapSite", None, TypeError),
    ],
)
def test_a_runner_that_cannot_be_is_refused(name, workers, error):
    """Before anything is done."""
    with pytest.raises(error):
        get_runner(name, workers)


@pytest.mark.parametrize(
    ("backend", "options", "error", "says"),
    [
        ("processes", {"workers": 0}, ImproperlyConfigured, "workers must be"),
        ("processes", {"worker": 2}, TypeError, "worker"),
        ("inline", {"workers": 1}, TypeError, "no arguments"),
        ("dummy", {"in_flight": 0}, ImproperlyConfigured, "in_flight must be"),
        ("dummy", {"stalled_seconds": "60"}, ImproperlyConfigured, "stalled_seconds must be"),
        ("dummy", {"stalled_seconds": None}, ImproperlyConfigured, "stalled_seconds must be"),
        ("dummy", {"pages_per_minute": 0}, ImproperlyConfigured, "pages_per_minute must be"),
        ("dummy", {"pages_per_minute": 1e-300}, ImproperlyConfigured, "pages_per_minute must be"),
    ],
)
def test_a_wrong_option_is_named(settings, backend, options, error, says):
    """An unknown one, and a value that cannot be."""
    settings.SITEMAPKIT_RUNNER = {"BACKEND": backend, "OPTIONS": options}
    with pytest.raises(error, match=says):
        get_runner()


@pytest.mark.parametrize(("name", "package"), [("celery", "celery"), ("tasks", "django_tasks")])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, name, package):
    """Wherever the import of it fails."""
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "django.tasks", None)
    monkeypatch.delitem(sys.modules, f"django_sitemapkit.runners.{name}", raising=False)
    with pytest.raises(ImportError, match=rf"\[{name}\]"):
        get_runner(name)


def test_the_apps_start_whatever_the_setting_is(settings):
    """The system checks report it; a worker of Celery needs the module of a right one."""
    for value in (None, "no.such.Runner", "django_sitemapkit.sites.SitemapSite", "dummy"):
        settings.SITEMAPKIT_RUNNER = value
        import_configured_runner()
    assert type(get_runner()) is DummyRunner
