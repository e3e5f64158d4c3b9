"""A build of a slow section with methods, to be killed: run by test_adopted."""

import sys
import time

import django

from django_sitemapkit import Section
from django_sitemapkit.runners import entrance

ROWS = 80
ROWS_PER_PAGE = 4


def declare():
    """Let one section of methods be all that there is."""
    django.setup()
    from django_sitemapkit.registry import registry
    from tests.killloop.models import Item

    class Slow(Section):
        queryset = Item.objects.all()
        limit = ROWS_PER_PAGE

        def location(self, item):
            time.sleep(0.1)
            return f"/items/{item.pk}/{item.permanent}/"

    for name in ("thirds", "items", "words", "pages"):
        registry.remove(name)
    registry.add(Slow)


def enter_slowly(databases, arguments):
    """Be a helper with the same section."""
    declare()
    entrance.run_helper(databases, arguments)


def main(job, *arguments):
    """Fill the database, edit a row, say which files list it, or build."""
    declare()
    from django.core.management import execute_from_command_line

    from django_sitemapkit.builds import search_published
    from django_sitemapkit.runners import processes
    from django_sitemapkit.sites import all_sites
    from tests.killloop.models import Item

    if job == "fill":
        execute_from_command_line(["manage.py", "migrate", "--run-syncdb", "--verbosity=0"])
        Item.objects.bulk_create([Item() for _ in range(ROWS)])
    elif job == "edit":
        Item.objects.filter(pk=Item.objects.earliest("pk").pk).update(permanent=True)
    elif job == "find":
        site = all_sites()[0]
        found = search_published(
            site, f"{site.origin}/items/{Item.objects.earliest('pk').pk}/True/"
        ).found
        sys.stdout.write(" ".join(each.address for each in found))
    else:
        processes.run_helper = enter_slowly
        execute_from_command_line(["manage.py", "build_sitemaps", "--json", *arguments])


if __name__ == "__main__":
    main(*sys.argv[1:])
