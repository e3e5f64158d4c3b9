"""Settings of the example project: SQLite by default, DATABASE_URL for any other database."""

import os
from pathlib import Path

import dj_database_url

HERE = Path(__file__).resolve().parent


def _from_environment(name: str, default: bool) -> bool:
    """Read a yes-or-no variable of the environment."""
    value = os.environ.get(name, "").strip().lower()
    return default if not value else value in {"1", "true", "yes", "on"}


DEBUG = _from_environment("DEBUG", default=True)
# Good enough for an example on one's own machine; a site on the Internet sets its own.
SECRET_KEY = os.environ.get("SECRET_KEY", "gazetteer-example-not-a-secret")
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]").split(",")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_sitemapkit",
    "django_sitemapkit.audit",
    "django_sitemapkit.contrib.people",
    "django_sitemapkit.submission",
    "example_project.gazetteer",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": dj_database_url.config(default=f"sqlite:///{HERE / 'gazetteer.sqlite3'}"),
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"].setdefault("OPTIONS", {}).update(
        # Readers and a writer do not wait for each other, and a transaction that is going to
        # write takes its lock at the start instead of failing in the middle.
        init_command="PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;",
        transaction_mode="IMMEDIATE",
        timeout=20,
    )
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("es", "Español"), ("fr", "Français")]
USE_I18N = True
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = HERE / "build" / "static"

SITEMAPKIT_SERVE_FROM = "auto"
# Without a key, submit_sitemaps says what to set: an example has nothing to tell search engines.
SITEMAPKIT_SUBMIT = {"indexnow_key": os.environ.get("INDEXNOW_KEY", "")}
# Not "auto": files and times would depend on whether the tests have put ISA-L into .venv.
SITEMAPKIT_GZIP_BACKEND = "zlib"
SITEMAPKIT_BASE_URL = os.environ.get("SITEMAPKIT_BASE_URL", "http://127.0.0.1:8000")
