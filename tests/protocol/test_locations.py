"""Locations: one normal form for what may be listed, a named refusal for all else."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol import locations
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.protocol.locations import (
    QUICK_URL,
    Scope,
    check_url,
    is_escaped_twice,
    normalise_base,
    normalise_path,
    normalise_url,
    normalise_written,
)

ORIGIN = "https://www.example.com"
SCOPE = Scope.of(f"{ORIGIN}/sitemap.xml")
CATALOG = Scope.of(f"{ORIGIN}/catalog/sitemap.xml")
NORMAL = re.compile(r"/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-F]{2})*")
"""A path and query as RFC 3986 writes them, escapes in upper case."""

CHARACTERS = st.one_of(
    st.characters(),
    st.sampled_from("/.%?#&;'\"<> \\:@[]|^`{}~\t\r\n\0\x0b\x7f\x85\ud800\udfff\ufffe\uffffüñ漢😀"),
    st.sampled_from("0123456789abcdefABCDEF"),
)
TEXTS = st.text(CHARACTERS, max_size=30)
PATHS = TEXTS.map("/{}".format)


def code(function, *arguments):
    """Return what a function returns, or the code of its refusal."""
    try:
        return function(*arguments)
    except InvalidValue as refusal:
        return refusal.code


def refusal(url, scope=SCOPE):
    """Return the refusal of a URL that has to be refused."""
    with pytest.raises(InvalidValue) as caught:
        scope.normalise(url)
    return caught.value


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/", "/"),
        ("/a/b.html", "/a/b.html"),
        ("/españa.html&q=nombre", "/espa%C3%B1a.html&q=nombre"),
        ("/ümlat.html&q=name", "/%C3%BCmlat.html&q=name"),
        ("/catalog?item=12&desc=x", "/catalog?item=12&desc=x"),
        ("/a'b\"c<d>e&f", "/a'b%22c%3Cd%3Ee&f"),
        ("/a%20b", "/a%20b"),
        ("/espa%F1a.html", "/espa%F1a.html"),
        ("/%70age", "/page"),
        ("/%50age%7e%5F%2d%2E%39", "/Page~_-.9"),
        ("/%2f%3F%40%5b%60%7b%25", "/%2F%3F%40%5B%60%7B%25"),
        ("/a b", "/a%20b"),
        ("/100%", "/100%25"),
        ("/100%25", "/100%25"),
        ("/100%/x", "/100%25/x"),
        ("/%zz%1", "/%25zz%251"),
        ("/%%41", "/%25A"),
        ("/%c3%b1", "/%C3%B1"),
        ("/%C3%B1", "/%C3%B1"),
        ("/%2fa%2Fb", "/%2Fa%2Fb"),
        ("/漢字/😀", "/%E6%BC%A2%E5%AD%97/%F0%9F%98%80"),
        ("/a\\b|c^d`e{f}[g]", "/a%5Cb%7Cc%5Ed%60e%7Bf%7D%5Bg%5D"),
        ("/a//b", "/a//b"),
        ("/a?b?c=/..", "/a?b?c=/.."),
        ("/.well-known/x", "/.well-known/x"),
        ("/a/...", "/a/..."),
        ("/a/..b/.c", "/a/..b/.c"),
        ("/~a!$&'()*+,;=:@-._", "/~a!$&'()*+,;=:@-._"),
    ],
)
def test_a_path_gets_its_one_normal_form(path, normal):
    """What is encoded stays so, in upper case, unless it needs no escape (RFC 3986, 6.2.2)."""
    assert SCOPE.normalise(path) == ORIGIN + normal
    assert SCOPE.normalise(ORIGIN + path) == ORIGIN + normal


@pytest.mark.parametrize(
    "url",
    [
        "HTTPS://WWW.Example.COM/Path",
        "https://www.example.com:443/Path",
        "https://www.example.com:0443/Path",
        "https://www.example.com:/Path",
        "https://WWW.example.com/Path",
    ],
)
def test_one_origin_has_one_spelling(url):
    """Scheme and host are in lower case, the default port goes, the path keeps its case."""
    assert SCOPE.normalise(url) == f"{ORIGIN}/Path"


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://h.example", "//h.example/x"),
        ("https://h.example", "//H.example:443/x"),
        ("https://h.example", "//h.example:80/x"),
        ("https://h.example", "http://h.example/x"),
        ("https://h.example", "HTTP://h.example:80/x"),
        ("https://h.example", "http://h.example:443/x"),
        ("https://h.example:8443", "//h.example:8443/x"),
        ("https://h.example:8443", "http://h.example:8443/x"),
        ("http://h.example", "//h.example/x"),
        ("https://bücher.example", "//bücher.example/x"),
    ],
)
def test_the_own_host_is_known_without_tls(base, url):
    """What a project behind a proxy takes for its own address becomes the base URL's."""
    origin, _ = normalise_base(base)
    assert Scope(origin).normalise(url) == f"{origin}/x"


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h.example", "https://h.example/x"),
        ("http://h.example", "//h.example:443/x"),
        ("https://h.example:8443", "http://h.example/x"),
        ("https://h.example:8443", "//h.example/x"),
        ("https://h.example", "https://h.example:80/x"),
    ],
)
def test_another_port_or_a_better_scheme_is_another_origin(base, url):
    """Only what a proxy hides is taken for the same: no port that is named, and no TLS."""
    assert code(Scope.of(base).normalise, url) == "url-not-allowed"


def test_two_slashes_that_name_another_host_are_named():
    """After joining two paths wrongly, the message says what such a URL means."""
    assert "two slashes at the beginning mean a host" in str(refusal("//img/x"))


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://cdn.example.com//img.png", "https://cdn.example.com//img.png"),
        ("//cdn.example.com/img.png", "https://cdn.example.com/img.png"),
        ("//cdn.example.com//%69mg.png", "https://cdn.example.com//img.png"),
        ("/img.png", f"{ORIGIN}/img.png"),
        ("https://cdn.example.com?a", "https://cdn.example.com/?a"),
        ("https://cdn.example.com:0/img.png", "invalid-url"),
    ],
)
def test_a_url_of_any_host_is_resolved_as_rfc_3986_says(url, normal):
    """Two slashes begin a host; behind a host they begin a path."""
    assert code(normalise_url, url, ORIGIN) == normal


def test_a_path_behind_the_own_host_may_begin_with_two_slashes():
    """By itself it would name a host, and is refused where a path is asked for."""
    assert SCOPE.normalise(f"{ORIGIN}//x") == f"{ORIGIN}//x"
    assert code(normalise_path, "//x") == "invalid-url"
    assert code(normalise_base, f"{ORIGIN}//x") == "invalid-url"


@pytest.mark.parametrize(
    ("url", "normal"),
    [(ORIGIN, "/"), (f"{ORIGIN}/", "/"), (f"{ORIGIN}?a=b", "/?a=b"), (f"{ORIGIN}/?a", "/?a")],
)
def test_an_origin_alone_is_its_root(url, normal):
    """A URL without a path gets the slash that belongs to it."""
    assert SCOPE.normalise(url) == ORIGIN + normal


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("javascript:alert(1)", "absolute"),
        ("mailto:a@example.com", "absolute"),
        ("ftp://www.example.com/x", "absolute"),
        ("www.example.com/", "absolute"),
        ("catalog/", "absolute"),
        ("?a=b", "absolute"),
        ("", "absolute"),
        ("https:/x", "absolute"),
        ("https:///x", "absolute"),
        ("https://user:pw@www.example.com/x", "user name"),
        ("https://user@www.example.com/x", "user name"),
        ("https://@www.example.com/x", "user name"),
        ("///x", "absolute"),
        ("https://www.example.com:0/x", "0 is not a port"),
        ("/page#s", "fragment"),
        ("https://www.example.com/page#s", "fragment"),
        ("https://www.example.com#s", "fragment"),
        ("/#", "fragment"),
        ("/a/../b", "segment"),
        ("/..", "segment"),
        ("/.", "segment"),
        ("/a/./b", "segment"),
        ("/a/..?b", "segment"),
        ("/%2e%2E/b", "segment"),
        ("/.%2e/b", "segment"),
        ("/ü/../b", "segment"),
        ("https://www.example.com/../b", "segment"),
        ("https://www.example.com:99999/x", "Port"),
        ("https://www.example.com:x/x", "Port"),
        ("https://[::1/x", "IPv6"),
        ("https://exa mple.com/x", "host name"),
        ("https://-example.com/x", "host name"),
        ("https://a.-b.example/x", "host name"),
        ("https://example..com/x", "host name"),
        ("https://%65xample.com/x", "host name"),
        ("https://www.example.com\\x/y", "host name"),
        (None, "not a string"),
        (b"/x", "not a string"),
        (1, "not a string"),
    ],
    ids=ascii,
)
def test_what_is_no_url_of_a_page_is_refused(url, why):
    """The refusal has Search Console's words, and says what is wrong."""
    error = refusal(url)
    assert (error.code, str(error)[:13]) == ("invalid-url", "Invalid URL: ")
    assert why in str(error)


@pytest.mark.parametrize(
    "character", "\0\t\n\r\x0b\x1f\x7f\ud800\udbff\udfff\ufffe\uffff", ids=ascii
)
@pytest.mark.parametrize(
    "url", ["/a{}b", "/{}", "/ü{}%", ORIGIN + "/{}b", "https://www.{}example.com/", "x{}"]
)
def test_a_character_that_no_url_has_use_for_is_refused(url, character):
    """Controls, surrogates and noncharacters are named by number, never repeated raw."""
    error = refusal(url.format(character))
    assert error.code == "invalid-url"
    assert str(error).isprintable()
    assert f"contains U+{ord(character):04X}" in str(error)


@pytest.mark.parametrize(
    "url",
    [
        "//host/x",
        "//www.example.com:8443/x",
        "http://example.com/x",
        "http://www.example.com:8080/x",
        "https://example.com/x",
        "https://shop.www.example.com/x",
        "https://www.example.org/x",
        "https://www.example.com.evil.org/x",
        "https://www.example.comx/x",
        "https://www.example.com:8443/x",
        "https://www.example.com:80/x",
        "https://www.example.com./x",
        "https://[::1]/x",
    ],
)
def test_another_origin_is_out_of_scope(url):
    """Scheme, host and port have to be the sitemap's own."""
    error = refusal(url)
    assert (error.code, str(error)[:17]) == ("url-not-allowed", "URL not allowed: ")
    assert ORIGIN in str(error)


@pytest.mark.parametrize(
    ("url", "outcome"),
    [
        ("/catalog/show", f"{ORIGIN}/catalog/show"),
        ("/catalog/", f"{ORIGIN}/catalog/"),
        (f"{ORIGIN}/catalog/show?item=12", f"{ORIGIN}/catalog/show?item=12"),
        ("/image/", "url-not-allowed"),
        ("/", "url-not-allowed"),
        ("/catalog", "url-not-allowed"),
        ("/catalog?x", "url-not-allowed"),
        ("/catalogue/", "url-not-allowed"),
        ("/Catalog/", "url-not-allowed"),
        ("/catalog/../x", "invalid-url"),
        ("/catalog/%2E%2E/x", "invalid-url"),
        ("http://www.example.com/catalog/show", f"{ORIGIN}/catalog/show"),
        ("//www.example.com/image/", "url-not-allowed"),
    ],
)
def test_a_sitemap_covers_its_own_folder(url, outcome):
    """A sitemap in /catalog/ lists what is below /catalog/, and no dots lead out of it."""
    assert code(CATALOG.normalise, url) == outcome


@pytest.mark.parametrize("scope", [SCOPE, CATALOG], ids=["root", "folder"])
@pytest.mark.parametrize("unit", ["x", "ü", "&", "%F1", "<"])
def test_a_location_has_2047_characters_at_most(scope, unit):
    """It is counted percent-encoded, before entity escaping."""
    written = len(locations._encode(f"/{unit}")) - 1
    head = scope.directory
    count, rest = divmod(MAX_LOCATION - len(ORIGIN + head), written)
    path = head + unit * count + "x" * rest
    assert len(scope.normalise(path)) == 2047
    error = refusal(path + "x", scope)
    assert (error.code, "2,048 characters" in str(error)) == ("invalid-url", True)
    assert len(str(error)) < 300


@pytest.mark.parametrize(
    ("address", "origin", "directory"),
    [
        ("https://www.example.com/sitemap.xml", ORIGIN, "/"),
        ("https://www.example.com", ORIGIN, "/"),
        ("https://www.example.com/a/b/sitemap.xml", ORIGIN, "/a/b/"),
        ("https://www.example.com/ü b/sitemap.xml?c=/d/", ORIGIN, "/%C3%BC%20b/"),
        ("HTTP://Example.com:80/a/", "http://example.com", "/a/"),
        ("http://example.com:8080/x", "http://example.com:8080", "/"),
        ("http://[::1]:8000/x", "http://[::1]:8000", "/"),
        ("http://127.0.0.1:8000/x", "http://127.0.0.1:8000", "/"),
    ],
)
def test_the_scope_follows_from_the_address(address, origin, directory):
    """A sitemap's scope is the folder it stands in, in normal form."""
    assert Scope.of(address) == Scope(origin, directory)


@pytest.mark.parametrize("address", ["/sitemap.xml", "", "//www.example.com/x", "x:y"])
def test_a_scope_needs_an_absolute_address(address):
    """Without an origin nothing can be listed."""
    assert code(Scope.of, address) == "invalid-url"


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://www.example.com", (ORIGIN, "")),
        ("https://www.example.com/", (ORIGIN, "")),
        ("https://WWW.example.com:443/shop/", (ORIGIN, "/shop")),
        ("https://www.example.com/a b/ü", (ORIGIN, "/a%20b/%C3%BC")),
        ("https://www.example.com:8443/x//", (f"{ORIGIN}:8443", "/x")),
        ("https://www.example.com/?a=b", "invalid-url"),
        ("https://www.example.com?", "invalid-url"),
        ("https://www.example.com/#a", "invalid-url"),
        ("www.example.com", "invalid-url"),
        ("/shop", "invalid-url"),
    ],
)
def test_a_base_url_is_an_origin_and_a_path(url, base):
    """A site's base may be mounted below a path; it has neither query nor fragment."""
    assert code(normalise_base, url) == base


def test_a_port_belongs_to_the_origin():
    """A sitemap on port 844 lists URLs with that port alone, and paths get it."""
    scope = Scope.of("https://www.example.com:844/sitemap.xml")
    assert scope.normalise("/x") == "https://www.example.com:844/x"
    assert scope.normalise("https://www.example.com:844/x") == "https://www.example.com:844/x"
    for other in ("https://www.example.com/x", "https://www.example.com:8443/x"):
        assert refusal(other, scope).code == "url-not-allowed"


@pytest.mark.parametrize(
    ("host", "ascii_host"),
    [
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("faß.example", "xn--fa-hia.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
    ],
)
def test_a_host_beyond_ascii_is_written_by_idna_2008(host, ascii_host):
    """``faß`` is a name of its own, where Python's codec of 2003 would write ``fass``."""
    pytest.importorskip("idna")
    scope = Scope.of(f"https://{host}/sitemap.xml")
    assert scope.origin == f"https://{ascii_host}"
    assert scope.normalise(f"https://{host}/ü") == f"https://{ascii_host}/%C3%BC"


@pytest.mark.parametrize("host", ["ü..example", "ü☃.example", "ü-.example", "ü" * 64 + ".example"])
def test_a_host_that_idna_2008_does_not_allow_is_refused(host):
    """The refusal names the rule."""
    pytest.importorskip("idna")
    error = refusal(f"https://{host}/")
    assert (error.code, "IDNA 2008" in str(error)) == ("invalid-url", True)


def test_without_idna_the_refusal_names_the_way_out(monkeypatch):
    """A host beyond ASCII asks for punycode or the extra; other hosts do not need it."""
    monkeypatch.setitem(sys.modules, "idna", None)
    locations._idna_host.cache_clear()
    error = refusal("https://bücher.example/")
    assert error.code == "invalid-url"
    assert 'punycode, or pip install "django-sitemapkit[idna]"' in str(error)
    assert SCOPE.normalise("/ü") == f"{ORIGIN}/%C3%BC"
    assert Scope.of("https://xn--bcher-kva.example/x").origin == "https://xn--bcher-kva.example"


@given(PATHS)
def test_a_normal_path_has_the_bytes_of_what_went_in(path):
    """Whatever is not refused is plain RFC 3986, decodes to the same bytes, and stays as it is."""
    location = code(SCOPE.normalise, path)
    if location in {"invalid-url", "url-not-allowed"}:  # "//0" is a URL of another host.
        return
    normal = location.removeprefix(ORIGIN)
    assert NORMAL.fullmatch(normal)
    assert unquote_to_bytes(normal) == unquote_to_bytes(path)
    assert SCOPE.normalise(location) == SCOPE.normalise(normal) == location
    assert urlsplit(location).netloc == "www.example.com"


@pytest.mark.slow
@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "Zs"]), max_size=30))
def test_letters_digits_and_spaces_are_never_refused(text):
    """A path of ordinary text always has a location."""
    assert SCOPE.normalise(f"/{text}").startswith(f"{ORIGIN}/")


@given(TEXTS | TEXTS.map("https://{}".format) | PATHS.map((ORIGIN + "{}").format))
def test_whatever_text_is_a_location_in_scope_or_a_refusal_in_print(text):
    """No text raises anything else, and no refusal repeats control characters."""
    if code(CATALOG.normalise, text) in {"invalid-url", "url-not-allowed"}:
        message = str(refusal(text, CATALOG))
        assert message.isprintable()
        assert len(message) < 500
    else:
        assert CATALOG.normalise(text).startswith(f"{ORIGIN}/catalog/")


SCOPES = st.sampled_from([SCOPE, CATALOG, Scope(f"{ORIGIN}:8443"), Scope(ORIGIN, "/a/")])
SHORT = st.sampled_from(
    ["/", "/catalog/x", "/catalog/.x/", "/a/b", "/.well-known/x", "/a/..b?/../"]
)
LONG = st.integers(2010, 2050).map(lambda length: "/catalog/".ljust(length, "x"))
NORMAL_PATHS = st.lists(PATHS | SHORT | LONG, max_size=6).map(
    lambda paths: [
        location.removeprefix(ORIGIN)
        for location in (code(Scope(ORIGIN).normalise, path) for path in paths)
        if location.startswith(ORIGIN)
    ]
)


@pytest.mark.slow
@given(SCOPES, NORMAL_PATHS, st.sets(st.integers(0, 6)))
def test_enclosing_many_paths_is_enclosing_each(scope, paths, holes):
    """One row that is refused, or that has no path, changes nothing for the others."""
    column = [None if row in holes else path for row, path in enumerate(paths)]
    outcomes = [getattr(location, "code", location) for location in scope.enclose_all(column)]
    assert outcomes == [path and code(scope.normalise, path) for path in column]


def test_one_refused_path_leaves_the_others_in_place():
    """Each error takes the place of its path; what is no path, or an error already, stays."""
    known = InvalidValue("no-url", "No URL")
    paths = ["/catalog/a", "/catalog/../b", None, "/c", "/catalog/" + "x" * 2048, known]
    first, climbing, none, outside, long, same = CATALOG.enclose_all([*paths])
    assert (first, none, same) == (f"{ORIGIN}/catalog/a", None, known)
    assert (climbing.code, outside.code, long.code) == (
        *("invalid-url", "url-not-allowed", "invalid-url"),
    )


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    "path", ["/a/../b", "/..", "/a/.", "/".ljust(2048 - len(ORIGIN), "x")], ids=lambda p: p[:8]
)
def test_no_bad_path_hides_in_a_column_of_good_ones(path, place):
    """The question asked of all at once finds the one row that fails it."""
    paths, locations = ["/a/", "/b"], [f"{ORIGIN}/a/", f"{ORIGIN}/b"]
    paths.insert(place, path)
    enclosed = SCOPE.enclose_all(paths)
    assert enclosed.pop(place).code == "invalid-url"
    assert enclosed == locations


def test_no_paths_have_no_locations():
    """An empty column is no error."""
    assert SCOPE.enclose_all([]) == []


@pytest.mark.slow
def test_the_protocol_needs_no_settings():
    """A document can be written in a Python where Django is never configured."""
    script = """
        import datetime as dt
        from django_sitemapkit.protocol.dates import format_lastmod
        from django_sitemapkit.protocol.locations import Scope
        from django_sitemapkit.audit.reader import validate
        from django_sitemapkit.protocol.values import format_changefreq, format_priority
        from django_sitemapkit.protocol.writers import UrlsetWriter

        location = Scope.of("https://www.example.com/sitemap.xml").normalise("/ü")
        writer = UrlsetWriter()
        entry, _ = writer.add(
            [location], format_lastmod(dt.date(2005, 1, 1)), format_changefreq("daily"),
            format_priority(1),
        )
        print(validate([writer.begin() + entry + writer.end()], None).urls)

        from django.conf import settings
        assert not settings.configured
    """
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", "if True:" + script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("1", "", 0)


AUTHORITIES = st.builds(
    "{}{}".format,
    st.sampled_from(["cdn.example.com", "CDN.Example.com.", "a_b.example", "127.0.0.1", "[::1]"]),
    st.one_of(st.just(""), st.just(":"), st.integers(0, 70_000).map(":{}".format)),
)


@pytest.mark.slow
@given(st.sampled_from(["http:", "HTTPS:", ""]), AUTHORITIES, TEXTS)
def test_what_is_written_of_any_host_is_what_the_validator_takes(scheme, authority, rest):
    """No URL is written that our own validator refuses, and both have one normal form of it."""
    with suppress(InvalidValue):
        url = normalise_url(f"{scheme}//{authority}/{rest}", ORIGIN)
        check_url(url)
        assert normalise_written(url) == url
        assert normalise_url(url, ORIGIN) == url


@pytest.mark.slow
@given(
    st.sampled_from(["http:", "https:"]),
    st.sampled_from(["www.example.com", "-a.example", "a.-b.example", "a.b", "a_b.example"]),
    st.sampled_from(["", ":80", ":0443", ":99", ":65536"]),
    st.text(st.sampled_from("ab/.%2eE?&"), max_size=12),
)
def test_the_quick_form_takes_no_invalid_url(scheme, host, port, rest):
    """The pattern that most URLs match is within the grammar."""
    url = f"{scheme}//{host}{port}/{rest}"
    if QUICK_URL.fullmatch(url):
        assert normalise_written(url)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/a?x=1&amp;y=2", True),
        ("/a?x=1&#38;y=2", True),
        ("/tom%26amp%3Bjerry/", True),
        ("/caf%25C3%25A9/", True),
        ("/caf%25c3%25a9/", True),
        ("/a%2520b/", True),
        ("/search?q=caf%25C3%25A9", True),
        ("/caf%C3%A9/?x=1&y=2", False),
        ("/a;b?x=1;y=2", False),
        ("/100%25/", False),
        ("/100%2550/", False),
        ("/login?next=%2Fa%2Fcaf%25C3%25A9", False),
        ("/login?next=/a?b=%2520", False),
    ],
)
def test_a_url_that_is_escaped_twice_is_known(location, expected):
    """What has to be escaped is never left to be escaped again, but in a URL within a URL."""
    assert is_escaped_twice(f"{ORIGIN}{location}") is expected
