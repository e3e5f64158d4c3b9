"""A project of its own process, for tests that kill it: ``python -m tests.submission.project``."""

import os
import sys

from django.conf import settings

FOLDER = os.environ.get("SUBMISSION_FOLDER", "")
URLS = 20
REQUESTS = 10

if FOLDER:
    settings.configure(
        DATABASES={
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{FOLDER}/db.sqlite3"}
        },
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=["django_sitemapkit", "django_sitemapkit.submission"],
        ROOT_URLCONF="tests.submission.urls",
        SECRET_KEY="tests",
        SITEMAPKIT_BASE_URL="http://127.0.0.1:9",
        SITEMAPKIT_SUBMIT={
            "indexnow_key": "0f4c1a2be9d84f6c",
            "indexnow_endpoint": os.environ["SUBMISSION_ENDPOINT"],
        },
        STORAGES={
            "sitemaps": {
                "BACKEND": "django.core.files.storage.FileSystemStorage",
                "OPTIONS": {"location": f"{FOLDER}/storage"},
            }
        },
        USE_TZ=True,
    )


def build(paths):
    """Build a sitemap of these paths."""
    from django_sitemapkit import StaticSection
    from django_sitemapkit.builds import build as run
    from django_sitemapkit.registry import registry

    class Pages(StaticSection):
        items = paths

    with registry.isolated():
        registry.add(Pages)
        run(site())


def site():
    """Return the only site."""
    from django_sitemapkit.sites import all_sites

    return all_sites()[0]


def main(step):
    """Make two builds, the first one submitted, or submit the second one."""
    import django
    from django.core.management import call_command

    django.setup()
    from django_sitemapkit.models import Lease
    from django_sitemapkit.submission import indexnow
    from django_sitemapkit.submission.submit import submit

    indexnow.URLS_PER_REQUEST = URLS // REQUESTS
    if step == "prepare":
        call_command("migrate", verbosity=0)
        build(["/"])
        submit(site())
        build(["/", *(f"/{number}/" for number in range(URLS))])
    else:
        Lease.objects.update(owner="")  # A killed process's lease expires in five minutes.
        submit(site())


if __name__ == "__main__":
    main(sys.argv[1])
