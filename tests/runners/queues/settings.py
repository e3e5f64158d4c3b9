"""Settings of the process that builds and of all workers; the environment says what differs."""

import os

from tests.settings import database

FOLDER = os.environ.get("QUEUES_FOLDER", "")
LEASE_SECONDS = 3
REDIS = os.environ.get("TEST_REDIS", "redis://127.0.0.1:6379/0")
RABBITMQ = os.environ.get("TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//")

DATABASES = {"default": database(os.environ.get("TEST_DATABASE_URL", "sqlite://"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django_rq", "django_tasks_db", "django_sitemapkit", "tests.killloop"]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler"}},
    "loggers": {"django_sitemapkit": {"handlers": ["stderr"], "level": "WARNING"}},
}
ROOT_URLCONF = "tests.killloop.urls"
RQ_QUEUES = {"sitemaps": {"URL": REDIS}}
SECRET_KEY = "queues"
SITEMAPKIT_BASE_URL = "https://www.example.com"
SITEMAPKIT_DEDUPLICATE = bool(os.environ.get("QUEUES_DEDUPLICATE"))
SITEMAPKIT_LEASE_SECONDS = LEASE_SECONDS
SITEMAPKIT_MAX_SHRINK = 1
SITEMAPKIT_RUNNER = os.environ.get("QUEUES_RUNNER", "inline")
SITEMAPKIT_SERVE_FROM = "published"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "sitemaps": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": FOLDER},
    },
}
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}
USE_TZ = True
