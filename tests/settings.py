"""Settings of the tests: SQLite in memory, or the server that TEST_DATABASE_URL names."""

import os
from urllib.parse import unquote, urlsplit

ENGINES = {
    "mysql": "django.db.backends.mysql",
    "postgresql": "django.db.backends.postgresql",
    "sqlite": "django.db.backends.sqlite3",
}


def database(url: str) -> dict[str, object]:
    """Return the settings of the database at ``url``."""
    parts = urlsplit(url)
    options: dict[str, object] = {}
    if parts.scheme == "mysql":
        options = {"charset": "utf8mb4"}
    return {
        "ENGINE": ENGINES[parts.scheme],
        "NAME": unquote(parts.path[1:]) or ":memory:",
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname or "",
        "PORT": parts.port or "",
        "OPTIONS": options,
    }


SECRET_KEY = "tests"
ALLOWED_HOSTS = ["testserver", "www.example.com"]
DATABASES = {"default": database(os.environ.get("TEST_DATABASE_URL", "sqlite://"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django_sitemapkit",
    "django_sitemapkit.audit",
    "django_sitemapkit.contrib.people",
    "django_sitemapkit.submission",
    "tests.testapp",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
# The usual one takes a third of a second for each user, on purpose.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LANGUAGES = [("en", "English"), ("es", "Spanish"), ("fr", "French")]
ROOT_URLCONF = "tests.urls"
SITEMAPKIT_BASE_URL = "https://www.example.com"
SITEMAPKIT_MAX_SHRINK = 1  # Tests delete whole sections.
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.request",
            ]
        },
    }
]
USE_TZ = True
