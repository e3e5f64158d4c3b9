"""``python -m tests.runners.queues.manage COMMAND``: a process that builds, or a worker."""

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.runners.queues.settings")


def main():
    """Run a command of Django or, as ``celery``, a worker of Celery."""
    import django

    django.setup()
    from tests.runners.queues.app import slow_down

    if seconds := float(os.environ.get("QUEUES_PAGE_SECONDS", "0")):
        slow_down(seconds)
    if sys.argv[1] == "celery":
        from celery.__main__ import main as celery

        sys.argv[1:2] = ["-A", "tests.runners.queues.app", "worker"]
        celery()
    else:
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
