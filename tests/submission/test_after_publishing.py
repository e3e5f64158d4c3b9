"""Submitting by itself once a build has been published."""

import threading

import pytest
from django.db import connections

from django_sitemapkit.models import Build
from django_sitemapkit.submission import submit
from tests.builds import SITE, edit_product, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def submissions(monkeypatch):
    """Give what was submitted, and whether URLs were inspected; threads run at once.

    They run in the test's own transaction.
    """
    found = []

    class AtOnce(threading.Thread):
        def start(self):
            self.run()

    monkeypatch.setattr(submit, "Thread", AtOnce)
    monkeypatch.setattr(submit.connections, "close_all", lambda: None)
    monkeypatch.setattr(submit, "submit", lambda site, *, inspect: found.append((site, inspect)))
    return found


@pytest.mark.slow
def test_each_published_build_is_submitted(engine, settings, submissions):
    """Where the setting says so; a build that changes nothing publishes nothing."""
    run()
    assert submissions == []
    settings.SITEMAPKIT_SUBMIT |= {"after_publishing": True}
    edit_product()
    run()
    run()
    assert submissions == [(SITE, False)]


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemError()])
def test_a_failure_does_not_fail_the_build(
    engine, settings, submissions, monkeypatch, caplog, error
):
    """It is logged."""

    def fail(site, **options):
        raise error

    monkeypatch.setattr(submit, "submit", fail)
    settings.SITEMAPKIT_SUBMIT |= {"after_publishing": True}
    assert run().status == Build.Status.PUBLISHED
    assert "Site 'default': the build could not be submitted." in caplog.text


def test_the_build_does_not_wait(engine, settings, monkeypatch):
    """A slow search engine keeps a thread busy, and nothing else."""
    settings.SITEMAPKIT_SUBMIT |= {"after_publishing": True}
    over, begun = threading.Event(), threading.Event()

    def wait(site, **options):
        begun.set()
        over.wait(10)
        raise RuntimeError

    monkeypatch.setattr(submit, "submit", wait)
    try:
        assert run().status == Build.Status.PUBLISHED
        assert begun.wait(10)
    finally:
        over.set()
        for thread in threading.enumerate():
            if thread.name == "sitemapkit-submit-default":
                thread.join()


def test_the_thread_works_for_the_tenant_of_the_build(engine, settings, submissions, monkeypatch):
    """Its own connections begin in the public schema."""
    settings.SITEMAPKIT_SUBMIT |= {"after_publishing": True}
    switched = []
    real = connections["default"]
    monkeypatch.setattr(
        type(real), "set_tenant", lambda self, tenant: switched.append(tenant), raising=False
    )
    monkeypatch.setattr(real, "tenant", "tea", raising=False)
    assert run().status == Build.Status.PUBLISHED
    assert switched == ["tea"]
