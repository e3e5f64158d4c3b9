"""Work in threads: one for each job of a tenant, which ends when nothing is left to do."""

import threading

import pytest
from django.db import connections

from django_sitemapkit import tenants
from django_sitemapkit.tenants import BackgroundJobs

FAILURE = "The work could not be done."


def threads():
    """Return the threads at work."""
    return [thread for thread in threading.enumerate() if thread.name == "sitemapkit-job"]


def end():
    """Wait for the threads."""
    for thread in threads():
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def done():
    """Give what was worked on, each time; wait for the threads in the end."""
    yield []
    end()


def test_what_is_added_meanwhile_is_done_by_the_same_thread(done):
    """Nothing is overlooked, nothing is done twice, and later work starts another thread."""
    began, go = threading.Semaphore(0), threading.Semaphore(0)

    def work(items):
        began.release()
        assert go.acquire(timeout=10)
        done.append((items, threading.current_thread()))

    background = BackgroundJobs(work, FAILURE)
    background.add(1, job="job")
    assert began.acquire(timeout=10)
    for item in (2, 3):
        background.add(item, job="job")
    go.release(2)
    end()
    background.add(4, job="job")
    go.release()
    end()
    assert [items for items, _thread in done] == [[1], [2, 3], [4]]
    first, second, third = (thread for _items, thread in done)
    assert first is second
    assert first is not third
    assert first.daemon


@pytest.mark.slow
def test_a_thread_collects_what_is_added_within_its_delay(done):
    """As many changes ask for one build."""
    background = BackgroundJobs(done.append, FAILURE, delay_seconds=0.2)
    for item in range(1_000):
        background.add(item, job="job")
    end()
    assert done == [list(range(1_000))]


def test_an_error_is_logged_and_the_next_work_is_done(done, caplog):
    """It reaches nobody else."""

    def work(items):
        if items == ["failing"]:
            raise RuntimeError("what nobody hears")
        done.append(items)

    background = BackgroundJobs(work, FAILURE)
    for item in ("failing", "working"):
        background.add(item, job="job")
        end()
    assert done == [["working"]]
    assert caplog.text.count(FAILURE) == 1
    assert "what nobody hears" in caplog.text


def test_without_room_for_a_thread_the_next_one_does_the_work(done, monkeypatch):
    """A thread that never started, or that a fork has lost, is there as an object."""

    class NoThread(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    background = BackgroundJobs(done.append, FAILURE)
    with monkeypatch.context() as patch:
        patch.setattr(tenants, "Thread", NoThread)
        with pytest.raises(RuntimeError):
            background.add(1, job="job")
    background.add(2, job="job")
    end()
    assert done == [[1, 2]]


@pytest.mark.slow
def test_each_tenant_has_a_thread_with_connections_of_its_own(done, monkeypatch):
    """They begin in the public schema, and are closed. Sites of two may have the same key."""
    switched, closed = [], []
    monkeypatch.setattr(
        type(connections["default"]),
        "set_tenant",
        lambda self, tenant: switched.append(tenant),
        raising=False,
    )
    monkeypatch.setattr(tenants.connections, "close_all", lambda: closed.append(1))
    background = BackgroundJobs(done.append, FAILURE, delay_seconds=0.2)
    for tenant in ("tea", "coffee", "tea"):
        background.add(tenant, job="job", tenants={"default": tenant})
    end()
    assert sorted(switched) == ["coffee", "tea"]
    assert sorted(done) == [["coffee"], ["tea", "tea"]]
    assert len(closed) == 2
