"""SITEMAPKIT_SUBMIT: what is wrong with it, and what a project without it gets."""

import sys

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command

from django_sitemapkit.submission.checks import check_credentials, check_properties, check_submit

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("key", "must be a dict"),
        ({"KEY": "x"}, r"has unknown keys \['KEY'\]"),
        ({"indexnow_key": "short"}, "must be 8 to 128 letters"),
        (
            {"indexnow_endpoint": "api.indexnow.org"},
            "must be a URL that begins with https:// or http://",
        ),
        ({"google_endpoint": None}, "must be a URL that begins with https:// or http://"),
        ({"google_credentials": 5}, "must be the path of the JSON file"),
        ({"google_properties": ["sc-domain:example.com"]}, "must be a dict such as"),
        ({"google_properties": {1: "sc-domain:example.com"}}, "must be a dict such as"),
        ({"after_publishing": "yes"}, "must be True or False"),
    ],
)
def test_each_mistake(settings, value, message):
    """A check and the command say what is wrong."""
    settings.SITEMAPKIT_SUBMIT = value
    (error,) = check_submit()
    assert error.id == "sitemapkit.E160"
    assert check_credentials() == []
    with pytest.raises(CommandError, match=message) as raised:
        call_command("submit_sitemaps", skip_checks=True)
    assert raised.value.returncode == 2


def test_credentials_that_are_missing(settings, tmp_path, monkeypatch):
    """The file, or what reads it."""
    settings.SITEMAPKIT_SUBMIT = {"google_credentials": str(tmp_path / "none.json")}
    (error,) = check_credentials()
    assert error.id == "sitemapkit.E161"
    assert "which is not a file" in error.msg
    monkeypatch.setitem(sys.modules, "requests", None)
    monkeypatch.setattr(
        "django_sitemapkit.submission.checks.find_spec",
        lambda name: None if name == "requests" else object(),
    )
    assert next(error.msg for error in check_credentials()) == "Search Console needs requests."


@pytest.mark.parametrize("broken", [ModuleNotFoundError, RuntimeError])
def test_a_package_that_cannot_be_found(settings, monkeypatch, broken):
    """A parent that is no package means that it is missing; no error hides another mistake."""

    def find_spec(name):
        raise broken(name)

    settings.SITEMAPKIT_SUBMIT = {
        "google_credentials": __file__,
        "google_properties": {"shop": "https://shop.example/"},
    }
    monkeypatch.setattr("django_sitemapkit.submission.checks.find_spec", find_spec)
    codes = ["E161", "E161"] if broken is ModuleNotFoundError else ["W100"]
    assert "sitemapkit.E168" in {error.id for error in run_checks()}
    assert [error.id for error in check_credentials()] == [f"sitemapkit.{code}" for code in codes]


def test_properties_of_sites_that_do_not_exist(settings):
    """Each is named; sites in the database are not looked up."""
    properties = {"default": "sc-domain:example.com", "shop": "https://shop.example/"}
    settings.SITEMAPKIT_SUBMIT = {"google_properties": properties}
    (error,) = check_properties()
    assert error.id == "sitemapkit.E168"
    assert "the site 'shop', which does not exist" in error.msg
    assert error.hint == "Use the keys of sites, such as 'default'."
    settings.SITEMAPKIT_SITES = {
        key: {"BASE_URL": f"https://{key}.example"} for key in ("default", "shop")
    }
    assert check_properties() == []
    settings.SITEMAPKIT_SITES, settings.SITEMAPKIT_BASE_URL = {}, None
    assert check_properties() == []
    settings.SITEMAPKIT_SUBMIT = {"unknown": 1}
    assert check_properties() == []


@pytest.mark.parametrize("option", ["--since=1", "--since=0", "--retry"])
def test_options_of_indexnow_without_a_key(settings, tmp_path, option):
    """They would have no effect on Search Console."""
    settings.SITEMAPKIT_SUBMIT = {"google_credentials": str(tmp_path / "key.json")}
    with pytest.raises(CommandError, match='has no "indexnow_key"') as raised:
        call_command("submit_sitemaps", option, skip_checks=True)
    assert raised.value.returncode == 2


def test_without_the_setting(settings):
    """The command says what to set; nothing is wrong."""
    assert not {"sitemapkit.E160", "sitemapkit.W002"} & {found.id for found in run_checks()}
    with pytest.raises(CommandError, match="Set SITEMAPKIT_SUBMIT"):
        call_command("submit_sitemaps")


def test_the_setting_without_the_app(settings):
    """A setting that nothing reads is a warning."""
    settings.INSTALLED_APPS = [
        app for app in settings.INSTALLED_APPS if app != "django_sitemapkit.submission"
    ]
    settings.SITEMAPKIT_SUBMIT = {}
    (found,) = (check for check in run_checks() if check.id == "sitemapkit.W002")
    assert found.msg == "SITEMAPKIT_SUBMIT is not a setting."
