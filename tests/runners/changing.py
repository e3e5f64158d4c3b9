"""A process that saves many rows, whose changes ask for builds: run by test_rebuild."""

import json
import sys
import time

import django


def wait_until_idle(rebuild):
    """Wait for the threads: the one that asks for builds, and those that make them."""
    from django_sitemapkit.builds.requests import _threads
    from django_sitemapkit.models import BuildRequest

    deadline = time.monotonic() + 90
    while (
        rebuild._changes._threads
        or _threads._threads
        or BuildRequest.objects.filter(ended_at=None, requested_by__contains="item").exists()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def main():
    """Save a thousand rows; then some more while no build can be started."""
    from django.conf import settings

    settings.SITEMAPKIT_REBUILD = "on_change"
    django.setup()
    from django.core.management import call_command
    from django.db import transaction

    from django_sitemapkit import rebuild
    from django_sitemapkit.models import Build, BuildRequest, Place, Publication
    from tests.killloop.models import Item

    call_command("migrate", run_syncdb=True, verbosity=0)
    began = time.monotonic()
    for _ in range(20):
        with transaction.atomic():
            for _ in range(50):
                Item().save()
    seconds = time.monotonic() - began
    wait_until_idle(rebuild)
    pages = Place.objects.in_build(Publication.objects.get().build).filter(section="items")
    found = {
        "seconds": seconds,
        "builds": Build.objects.count(),
        "urls": sum(page.urls for page in pages),
        "started_by": Build.objects.first().started_by,
    }

    def no_queue(*arguments):
        raise ConnectionError("the broker is gone")

    rebuild.start_processing_on_commit = no_queue
    for item in Item.objects.all()[:10]:
        item.delete()
    deadline = time.monotonic() + 60
    while rebuild._changes._threads:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    found["left"] = Item.objects.count()
    found["open"] = BuildRequest.objects.filter(ended_at=None).count()
    found["builds after"] = Build.objects.count()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
