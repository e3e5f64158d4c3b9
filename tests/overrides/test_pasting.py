"""What people paste where a path is asked for."""

import re

import pytest
from django.utils import translation

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.overrides.pasting import MAX_PASTED, pasted_path
from django_sitemapkit.sites import SitemapSite
from tests.factories import SITE


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/about/", "/about/"),
        ("  /about/\n", "/about/"),
        ("https://www.example.com/about/", "/about/"),
        ("http://www.example.com/about/", "/about/"),
        ("HTTPS://WWW.Example.COM:443/About/", "/About/"),
        ("http://www.example.com:80/", "/"),
        ("https://www.example.com", "/"),
        ("https://www.example.com?page=2", "/?page=2"),
        ("//www.example.com/about/", "/about/"),
        ("www.example.com/about/", "/about/"),
        ("WWW.EXAMPLE.COM", "/"),
        ("about/team/", "/about/team/"),
        ("about", "/about"),
        ("café/?q=a b", "/caf%C3%A9/?q=a%20b"),
        ("/caf%c3%a9/", "/caf%C3%A9/"),
        ("/100%/", "/100%25/"),
        ("/go/?to=https://other.example/", "/go/?to=https://other.example/"),
    ],
)
def test_takes_what_means_a_path_of_the_site(text, path):
    """A URL of the site, or a path, encoded or not, becomes the one normal form."""
    assert pasted_path(SITE, text) == path


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "Enter a path"),
        ("https://other.example/about/", "on another host"),
        ("//other.example/about/", "on another host"),
        ("https://www.example.com:8443/", "on another host"),
        ("https://www.example.com:80/", "on another host"),
        ("https://www.example.com.other.example/", "on another host"),
        ("javascript:alert(1)", "not a web address"),
        ("mailto:someone@www.example.com", "not a web address"),
        ("ftp://www.example.com/", "not a web address"),
        ("https://user@www.example.com/", "not a web address"),
        ("https://[::1", "not a web address"),
        ("https://www.example.com:x/", "not a web address"),
        ("https://www.example.com//a/", "not a web address"),
        ("/about/#team", "Remove the part from #"),
        ("/a\nb", "U+000A"),
        ("/a\x00b", "U+0000"),
        ("/\ud800", "U+D800"),
        ("/a/../b/", "segment"),
        ("/a/%2E%2e/b/", "segment"),
        ("about.html", "Start a path with a slash"),
        ("other.example/about/", "Start a path with a slash"),
        ("?page=2", "Start a path with a slash"),
        ("landing 3", "Start a path with a slash"),
        ("/" + "é" * 400, "too long"),
        ("/" + "a" * MAX_PASTED, "too long"),
    ],
)
def test_refuses_others_and_says_why(text, shown):
    """Whatever may mean something else is refused, by a message that says what is wrong."""
    with pytest.raises(InvalidValue, match=shown.replace("+", r"\+")):
        pasted_path(SITE, text)


@pytest.mark.parametrize("text", ["https://user@www.example.com/", "https://www.example.com//a/"])
def test_refuses_in_the_users_language(text):
    """No English text of the protocol's shines through."""
    with translation.override("es"), pytest.raises(InvalidValue) as refused:
        pasted_path(SITE, text)
    assert not re.search("Invalid|begins|user name", str(refused.value))


@pytest.mark.parametrize("host", ["münchen.example", "MÜNCHEN.example", "xn--mnchen-3ya.example"])
def test_takes_a_host_in_its_own_script(host):
    """A browser shows the host in its own script, and the site has it in punycode."""
    site = SitemapSite.at("https://xn--mnchen-3ya.example")
    assert pasted_path(site, f"https://{host}/straße/") == "/stra%C3%9Fe/"


def test_refuses_what_is_outside_of_the_sitemap():
    """A site below a path lists only what is below it (sitemaps.org, "location")."""
    site = SitemapSite.at("https://www.example.com/shop")
    assert pasted_path(site, "https://www.example.com/shop/about/") == "/shop/about/"
    with pytest.raises(InvalidValue, match="not below /shop/") as refused:
        pasted_path(site, "/about/")
    assert refused.value.code == "url-not-allowed"
