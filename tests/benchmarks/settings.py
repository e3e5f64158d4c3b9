"""Settings of one contender's process; what differs between them is in the environment."""

import os

from tests.settings import database

BENCHMARKS_DECLARED = os.environ["BENCHMARKS_DECLARED"]
FOLDER = os.environ["BENCHMARKS_FOLDER"]
CODEC = os.environ["BENCHMARKS_CODEC"]
BENCHMARKS_PAGE = os.environ["BENCHMARKS_PAGE"]
SITE = "https://www.example.com"

DATABASES = {"default": database(os.environ["BENCHMARKS_DATABASE"])}
# A request closes its connection in the end; to open one is not what is measured.
DATABASES["default"]["CONN_MAX_AGE"] = None
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {"timeout": 20, "init_command": "PRAGMA journal_mode=WAL"}

ALLOWED_HOSTS = ["www.example.com"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# A peer's models and views in our process would count as idle memory, and ours in theirs.
INSTALLED_APPS = ["tests.benchmarks", *filter(None, os.environ["BENCHMARKS_APPS"].split(","))]
ROOT_URLCONF = "tests.benchmarks.urls"
SECRET_KEY = "benchmarks"
SILENCED_SYSTEM_CHECKS = ["icv_sitemaps.W003"]
STORAGES = {
    alias: {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": FOLDER},
    }
    for alias in ("default", "sitemaps")
}
BENCHMARKS_STORAGE = os.environ["BENCHMARKS_STORAGE"]
if BENCHMARKS_STORAGE == "database":
    del STORAGES["sitemaps"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
USE_TZ = True

SITEMAPKIT_BASE_URL = SITE
SITEMAPKIT_GZIP_BACKEND = CODEC
BENCHMARKS_WORKERS = int(os.environ["BENCHMARKS_WORKERS"])
SITEMAPKIT_RUNNER = os.environ["BENCHMARKS_RUNNER"]
if SITEMAPKIT_RUNNER == "processes":
    SITEMAPKIT_RUNNER = {"BACKEND": "processes", "OPTIONS": {"workers": BENCHMARKS_WORKERS}}
SITEMAPKIT_SERVE_FROM = os.environ["BENCHMARKS_SERVE"]
BENCHMARKS_BY_ROWS = bool(os.environ["BENCHMARKS_BY_ROWS"])
SITEMAPKIT_DEDUPLICATE = bool(os.environ["BENCHMARKS_DEDUPLICATE"])
BENCHMARKS_SITE = os.environ["BENCHMARKS_SITE"]
SITEMAPKIT_SITES = {BENCHMARKS_SITE: {"BASE_URL": SITE}} if BENCHMARKS_SITE else {}
if BENCHMARKS_DECLARED == "sites":
    SITEMAPKIT_SITES = {
        str(number): {"BASE_URL": f"https://{number}.example.com"} for number in range(1000)
    }

SITE_ID = 1

ICV_SITEMAPS_ASYNC_GENERATION = False
ICV_SITEMAPS_BASE_URL = SITE

STATIC_URL = "/static/"
STATICSITEMAPS_FORCE_PROTOCOL = "https"
# Django refuses to store under an absolute path, which is what this usually is; a relative one
# is from the folder that the command runs in.
STATICSITEMAPS_ROOT_DIR = "static"
STATICSITEMAPS_ROOT_SITEMAP = "tests.benchmarks.contrib.SITEMAPS"
STATICSITEMAPS_URL = SITE
