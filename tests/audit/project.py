"""A project of its own process, for tests that kill it: ``python -m tests.audit.project``."""

import json
import os
import sys
from pathlib import Path

from django.conf import settings

FOLDER = os.environ.get("AUDIT_FOLDER", "")
PAGES = 600

if FOLDER:
    settings.configure(
        ALLOWED_HOSTS=["www.example.com"],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": f"{FOLDER}/db.sqlite3",
                "OPTIONS": {"timeout": 10},
            }
        },
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=["django_sitemapkit", "django_sitemapkit.audit"],
        LOGGING_CONFIG=None,
        ROOT_URLCONF="tests.audit.project_urls",
        SECRET_KEY="tests",
        SITEMAPKIT_BASE_URL="https://www.example.com",
        STORAGES={
            "sitemaps": {
                "BACKEND": "django.core.files.storage.FileSystemStorage",
                "OPTIONS": {"location": f"{FOLDER}/storage"},
            }
        },
        USE_TZ=True,
    )


def main(step):
    """Build, or audit or crawl what is published and write what was found into a file.

    Steps that end with "restart" do not continue what was interrupted.
    """
    import django
    from django.core.management import call_command

    django.setup()
    from django_sitemapkit import StaticSection
    from django_sitemapkit.audit import auditing
    from django_sitemapkit.audit.crawl import crawling
    from django_sitemapkit.models import Lease
    from django_sitemapkit.registry import registry

    class Pages(StaticSection):
        items = [f"/page/{number}/" for number in range(PAGES)]
        limit = 50

    registry.add(Pages)
    if step == "build":
        call_command("migrate", verbosity=0)
        call_command("build_sitemaps", verbosity=0)
        return
    auditing.URLS_PER_RECORD = crawling.URLS_PER_RECORD = 10
    Lease.objects.update(owner="")  # A killed process's lease expires in ten minutes.
    command = ["crawl_sitemaps"] if "crawl" in step else ["audit_sitemaps", "--full"]
    options = ["--restart"] if step.endswith("restart") else []
    with Path(FOLDER, f"{step}.json").open("w") as out:
        call_command(*command, "--json", *options, stdout=out)


def document(folder, step):
    """Return what an audit or a crawl found, without its number."""
    lines = Path(folder, f"{step}.json").read_text().splitlines()
    *findings, audited = map(json.loads, lines)
    return {**audited, "audit": None, "crawl": None, "findings": findings}


if __name__ == "__main__":
    main(sys.argv[1])
