"""The settings: defaults, right values, and for each wrong one an error with its name."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_sitemapkit.conf import SETTING_NAMES, RunnerSettings, SiteSettings
from django_sitemapkit.conf import settings as ours

MAIN = {"BASE_URL": "https://www.example.com"}


def test_the_defaults_hold_where_nothing_is_set(settings):
    """A project need set nothing."""
    for name in SETTING_NAMES:
        if hasattr(settings, f"SITEMAPKIT_{name}"):
            delattr(settings, f"SITEMAPKIT_{name}")
    assert {name: getattr(ours, name) for name in SETTING_NAMES} == {
        "BASE_URL": None,
        "SITES": {},
        "MAX_URLS": 50_000,
        "MAX_BYTES": 52_428_800,
        "MAX_SITEMAPS": 50_000,
        "SCHEMA_LOCATION": False,
        "DEDUPLICATE": False,
        "METHODS_AS_COLUMNS": True,
        "CACHE_CONTROL": "max-age=600",
        "SERVE_FROM": "auto",
        "KEEP_REPLACED_SECONDS": 86_400,
        "KEEP_BUILDS": 3,
        "LEASE_SECONDS": 60,
        "GZIP_BACKEND": "auto",
        "RUNNER": RunnerSettings(backend="inline", options={}),
        "REBUILD": None,
        "MAX_SHRINK": None,
        "EXPORT_STORAGE": None,
        "EXPORT_TEXT": False,
        "SENDFILE": None,
        "SENDFILE_ROOT": "/sitemapkit/",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BASE_URL", None),
        ("BASE_URL", "http://127.0.0.1:8000"),
        ("BASE_URL", "https://www.example.com:8443/shop/ñ/"),
        ("MAX_URLS", 1),
        ("MAX_URLS", 50_000),
        ("MAX_BYTES", 4096),
        ("MAX_BYTES", 10_485_760),
        ("MAX_SITEMAPS", 1),
        ("MAX_SITEMAPS", 1000),
        ("MAX_SITEMAPS", 50_000),
        ("SCHEMA_LOCATION", True),
        ("DEDUPLICATE", True),
        ("METHODS_AS_COLUMNS", False),
        ("MAX_SHRINK", None),
        ("MAX_SHRINK", 0),
        ("MAX_SHRINK", 1),
        ("EXPORT_STORAGE", "staticfiles"),
        ("EXPORT_TEXT", True),
        ("REBUILD", "on_change"),
        ("CACHE_CONTROL", ""),
        ("CACHE_CONTROL", "public, max-age=60"),
    ],
)
def test_a_right_value_is_taken_as_it_stands(settings, name, value):
    """It is read at access: a setting changed later takes effect."""
    setattr(settings, f"SITEMAPKIT_{name}", value)
    assert getattr(ours, name) == value


@pytest.mark.parametrize(
    ("key", "options", "named"),
    [
        pytest.param("", MAIN, "''", id="empty-key"),
        pytest.param(1, MAIN, "1", id="number-as-key"),
        pytest.param("x" * 101, MAIN, "1 to 100 characters", id="long-key"),
        pytest.param("main", {}, "BASE_URL", id="no-base-url"),
        pytest.param("main", None, "BASE_URL", id="no-dict"),
        pytest.param("main", "https://www.example.com", "BASE_URL", id="text"),
        pytest.param("main", {"BASE_URL": "example"}, "BASE_URL", id="wrong-base-url"),
        pytest.param("main", {"BASE_URL": None}, "BASE_URL", id="base-url-none"),
        pytest.param("main", MAIN | {"URLCONFIG": "x"}, "URLCONFIG", id="unknown"),
        pytest.param("main", MAIN | {"SECTIONS": "news"}, "SECTIONS", id="sections-text"),
        pytest.param("main", MAIN | {"SECTIONS": 5}, "SECTIONS", id="sections-number"),
        pytest.param("main", MAIN | {"SECTIONS": [5]}, "SECTIONS", id="sections-of-numbers"),
        pytest.param("main", MAIN | {"URLCONF": 5}, "URLCONF", id="urlconf-number"),
    ],
)
def test_a_wrong_site_is_named(settings, key, options, named):
    """The error says which site, and which part of it."""
    settings.SITEMAPKIT_SITES = {"other": MAIN, key: options}
    with pytest.raises(ImproperlyConfigured, match="SITEMAPKIT_SITES") as caught:
        _ = ours.SITES
    assert repr(key) in str(caught.value)
    assert named in str(caught.value)


def test_sites_come_as_values(settings):
    """What is not set is None: all sections, ROOT_URLCONF."""
    settings.SITEMAPKIT_SITES = {
        "main": MAIN,
        "shop": MAIN | {"SECTIONS": ["a", "b"], "URLCONF": "tests.urls"},
    }
    assert {
        "main": SiteSettings(base_url="https://www.example.com"),
        "shop": SiteSettings(
            base_url="https://www.example.com", sections=("a", "b"), urlconf="tests.urls"
        ),
    } == ours.SITES


def test_a_value_is_judged_once_and_again_after_a_change(settings):
    """A request costs no parsing; ``override_settings`` and the like take effect at once."""
    settings.SITEMAPKIT_SITES = {"main": MAIN}
    before = ours.SITES
    assert ours.SITES is before
    with override_settings(SITEMAPKIT_SITES={"shop": MAIN}):
        assert list(ours.SITES) == ["shop"]
    assert before == ours.SITES


def test_an_invalid_value_raises_at_each_access(settings):
    """An error is not remembered as a value."""
    settings.SITEMAPKIT_MAX_URLS = "many"
    for _ in range(2):
        with pytest.raises(ImproperlyConfigured, match="SITEMAPKIT_MAX_URLS"):
            _ = ours.MAX_URLS


def test_a_dict_changed_in_place_is_read_again(settings):
    """A project's tests may add a site to the setting itself."""
    settings.SITEMAPKIT_SITES = {"a": {"BASE_URL": "https://a.example"}}
    assert list(ours.SITES) == ["a"]
    settings.SITEMAPKIT_SITES["b"] = {"BASE_URL": "https://b.example"}
    assert list(ours.SITES) == ["a", "b"]
