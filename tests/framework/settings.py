"""Settings of the tests that need the sites framework, which the other tests do without."""

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, INSTALLED_APPS

ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    *INSTALLED_APPS,
    "django.contrib.sites",
    "django.contrib.flatpages",
    "django.contrib.redirects",
]

# The process that runs these has a test database of its own.
if DATABASES["default"]["NAME"] != ":memory:":
    DATABASES["default"]["TEST"] = {"NAME": f"test_framework_{DATABASES['default']['NAME']}"}
