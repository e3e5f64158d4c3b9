"""Settings of a project that has every package of the comparison, as their documentation says."""

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "django.contrib.sitemaps",
    "django.contrib.sites",
    "icv_sitemaps",
    "static_sitemaps",
    "tests.peers",
]
SITE_ID = 1
SITE = "https://www.example.com"

ICV_SITEMAPS_ASYNC_GENERATION = False  # There is no Celery here.
ICV_SITEMAPS_AUTO_SECTIONS = {"pages": {"model": "peers.Page"}}
ICV_SITEMAPS_BASE_URL = SITE

STATIC_ROOT = "/srv/static"
STATICSITEMAPS_ROOT_SITEMAP = "tests.peers.sitemaps.SITEMAPS"
STATICSITEMAPS_URL = SITE

# The process that runs these has a test database of its own.
if DATABASES["default"]["NAME"] != ":memory:":
    DATABASES["default"]["TEST"] = {"NAME": f"test_peers_{DATABASES['default']['NAME']}"}
