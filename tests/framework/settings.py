"""Settings of the tests that need the sites framework, which the other tests do without."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    *INSTALLED_APPS,
    "django.contrib.sites",
    "django.contrib.flatpages",
    "django.contrib.redirects",
]
