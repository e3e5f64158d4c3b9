"""A build during which another thread reads, in a project of its own: run by test_sqlite."""

import sys
import threading
from contextlib import contextmanager

import django


def main():
    """Read live and published pages within each transaction of a build; say what was answered.

    Others also read and write after each row of a file, if the database stores the files.
    """
    django.setup()
    from django.core.files import File
    from django.core.management import call_command
    from django.db import connections
    from django.test import Client, override_settings

    from django_sitemapkit.builds.lease import BuildLease
    from tests.killloop.models import Item

    # A live view that would note something waits for the writer so long, and does without it.
    connections["default"].settings_dict["OPTIONS"]["timeout"] = 0.2
    call_command("migrate", run_syncdb=True, verbosity=0)
    Item.objects.bulk_create([Item() for _ in range(60)])
    call_command("build_sitemaps", verbosity=0)
    Item.objects.update(public=True, edited_at="2025-01-01T12:00:00Z")
    answers = []

    def read(serve):
        with override_settings(SITEMAPKIT_SERVE_FROM=serve):
            client = Client(headers={"host": "127.0.0.1"})
            for address in ("/sitemap.xml", "/sitemap-items-1.xml", "/sitemap-items-3.xml.gz"):
                answers.append(client.get(address))
                answers[-1].getvalue()
        connections.close_all()

    writes = []

    def write():
        writes.append(Item.objects.filter(pk=1).update(public=True))
        connections.close_all()

    def run(action, *values):
        thread = threading.Thread(target=action, args=values)
        thread.start()
        thread.join()

    fenced, chunks = BuildLease.fenced_transaction, File.chunks

    @contextmanager
    def reading_meanwhile(lease):
        with fenced(lease):
            yield
            for serve in ("live", "published"):
                run(read, serve)

    pieces = []

    def writing_meanwhile(file, size):
        for chunk in chunks(file, size):
            pieces.append(chunk)
            yield chunk
            run(write)
            run(read, "published")

    BuildLease.fenced_transaction = reading_meanwhile
    File.chunks = writing_meanwhile
    call_command("build_sitemaps", verbosity=0)
    assert len(writes) == len(pieces), "an error in a thread is printed"
    statuses = {answer.status_code for answer in answers}
    with connections["default"].cursor() as cursor:
        journal = cursor.execute("PRAGMA journal_mode").fetchone()[0]
    sys.stdout.write(f"{journal}: {len(answers)} answers, {statuses}; {len(writes)} writes\n")


if __name__ == "__main__":
    main()
