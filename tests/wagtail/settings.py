"""Settings of a site in Wagtail, in two languages."""

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, INSTALLED_APPS

ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    "django.contrib.sitemaps",
    "wagtail.sites",
    "wagtail.users",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.admin",
    "wagtail",
    "taggit",
    "modelcluster",
    *INSTALLED_APPS,
    "django_sitemapkit.contrib.wagtail_admin",
    "tests.wagtail",
]
LANGUAGE_CODE = "en"
LANGUAGES = WAGTAIL_CONTENT_LANGUAGES = [("en", "English"), ("de", "German")]
ROOT_URLCONF = "tests.wagtail.urls"
SITEMAPKIT_BASE_URL = None
SITEMAPKIT_SITES = "django_sitemapkit.contrib.wagtail.sites"
STATIC_URL = "/static/"
USE_I18N = True
WAGTAIL_I18N_ENABLED = True
WAGTAIL_SITE_NAME = "Tests"
WAGTAILADMIN_BASE_URL = "https://www.example.com"

# The process that runs these has a test database of its own.
if DATABASES["default"]["NAME"] != ":memory:":
    DATABASES["default"]["TEST"] = {"NAME": f"test_wagtail_{DATABASES['default']['NAME']}"}
