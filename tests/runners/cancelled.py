"""One slow build by several processes, to be cancelled by others: run by test_cancelled."""

import sys
import time

import django

from django_sitemapkit.runners import entrance


def slow_down():
    """Let each page take a twentieth of a second more."""
    from django_sitemapkit.builds import PageBuilder

    render = PageBuilder.render

    def slowly(self, row):
        time.sleep(0.05)
        return render(self, row)

    PageBuilder.render = slowly


def enter_slowly(databases, arguments):
    """Be a helper that is as slow."""
    django.setup()
    slow_down()
    entrance.run_helper(databases, arguments)


def main(runner):
    """Fill the database of the kill loop's settings, and build; end as the command does."""
    django.setup()
    from django.core.management import execute_from_command_line

    from django_sitemapkit.runners import processes
    from tests.killloop.models import Item

    execute_from_command_line(["manage.py", "migrate", "--run-syncdb", "--verbosity=0"])
    Item.objects.bulk_create([Item() for _ in range(4_000)])
    slow_down()
    processes.run_helper = enter_slowly
    execute_from_command_line(["manage.py", "build_sitemaps", f"--runner={runner}"])


if __name__ == "__main__":
    main(sys.argv[1])
