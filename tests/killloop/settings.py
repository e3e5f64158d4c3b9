"""Settings of the kill loop's processes; what differs from run to run is in the environment."""

import os

from tests.killloop.places import EXPORT, STORAGE, place
from tests.settings import database

FOLDER = os.environ["KILLLOOP_FOLDER"]
# S3 takes longer for each file: passes and builds are slower, and a heartbeat waits for a request.
ON_S3 = "KILLLOOP_S3" in os.environ
GRACE_SECONDS = 30 if ON_S3 else 15
LEASE_SECONDS = 3 if ON_S3 else 1

DATABASES = {"default": database(os.environ["TEST_DATABASE_URL"])}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {"timeout": 5, "init_command": "PRAGMA journal_mode=WAL"}

ALLOWED_HOSTS = ["127.0.0.1"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django_sitemapkit", "tests.killloop"]
LOGGING = {
    "version": 1,
    "formatters": {"level": {"format": "%(levelname)s %(process)d %(message)s"}},
    "handlers": {
        "file": {
            "class": "logging.FileHandler",
            "filename": f"{FOLDER}/package.log",
            "formatter": "level",
        },
    },
    "loggers": {"django_sitemapkit": {"handlers": ["file"], "level": "INFO"}},
}
ROOT_URLCONF = "tests.killloop.urls"
SECRET_KEY = "killloop"
SITEMAPKIT_BASE_URL = os.environ["KILLLOOP_BASE_URL"]
SITEMAPKIT_MAX_SHRINK = 1  # Tests delete whole sections.
SITEMAPKIT_DEDUPLICATE = bool(os.environ.get("KILLLOOP_DEDUPLICATE"))
SITEMAPKIT_EXPORT_STORAGE = "export"
SITEMAPKIT_KEEP_REPLACED_SECONDS = GRACE_SECONDS
SITEMAPKIT_KEEP_BUILDS = 1
SITEMAPKIT_LEASE_SECONDS = LEASE_SECONDS
SITEMAPKIT_SERVE_FROM = "published"
STORAGES = {"sitemaps": place().backend(STORAGE), "export": place().backend(EXPORT)}
USE_TZ = True
