"""What a web page says to search engines is read as Google documents it."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from django_sitemapkit.audit.web import pages
from django_sitemapkit.audit.web.pages import LINK_ELEMENTS, MALFORMED, WebLink, WebPage

URL = "https://www.example.com/shop/page/"
HTML = ("Content-Type", "text/html; charset=utf-8")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def parsed(html, *headers):
    """Return the page of a text or of bytes, with more headers."""
    body = html if isinstance(html, bytes) else html.encode()
    return WebPage.parse(URL, [HTML, *headers], body, now=NOW)


def links(html):
    """Return the URLs of a page's links."""
    return [link.url for link in parsed(html).links]


def test_an_ordinary_page():
    """All of it is read at once."""
    page = parsed(
        """<!DOCTYPE html><html lang="en-GB"><head><title> Blue
        &amp; red  </title><link rel="canonical" href="/shop/page/">
        <link rel="alternate" hreflang="es" href="/es/page/">
        <link rel="alternate" type="application/rss+xml" hreflang="en" href="/feed/"></head>
        <body><h2> The <b>shop</b></h2><h1>Blue</h1><input type=PassWord>
        <a href="../other/?a=1&amp;b=2#part"> Other <b>page</b></a></body></html>"""
    )
    assert page == WebPage(
        is_html=True,
        title="Blue & red",
        heading="The shop",
        has_password=True,
        noindex="",
        nofollow=False,
        canonicals=(URL,),
        alternates=(("es", "https://www.example.com/es/page/"),),
        links=(
            WebLink("https://www.example.com/es/page/", "", element="link"),
            WebLink("https://www.example.com/feed/", "", element="link"),
            WebLink("https://www.example.com/shop/other/?a=1&b=2", "Other page"),
        ),
        language="en-GB",
        refresh=None,
    )


@pytest.mark.parametrize(
    ("tag", "noindex", "nofollow"),
    [
        ('<meta name="robots" content="noindex">', "meta robots", False),
        ('<META NAME=ROBOTS CONTENT="Follow, NOINDEX">', "meta robots", False),
        ('<meta content=" none " name=" robots ">', "meta robots", True),
        ('<meta name="Googlebot" content="noindex,nofollow">', "meta googlebot", True),
        ('<meta name="bingbot" content="noindex,nofollow">', "", False),
        ('<meta name="googlebot-news" content="noindex">', "", False),
        ('<meta name="description" content="none">', "", False),
        ('<meta name="robots" content="index, follow, max-snippet:-1">', "", False),
        ('<meta name="robots" content="nofollow">', "", True),
        ('<!-- <meta name="robots" content="noindex"> -->', "", False),
        ('<script>\'<meta name="robots" content="noindex">\'</script>', "", False),
        ('<body><p><meta name="robots" content="noindex">', "meta robots", False),
        ("<meta name=robots content='unavailable_after: 2026-05-31'>", "past", False),
        ("<meta name=robots content='unavailable_after: 2026-06-02'>", "", False),
        ("<meta name=robots content='unavailable_after: some day'>", "", False),
        ("<meta name=robots>", "", False),
    ],
)
def test_robots_in_tags(tag, noindex, nofollow):
    """Where a tag says noindex is returned; Google's nofollow counts."""
    page = parsed(f"<head>{tag}</head>")
    past = "meta robots (unavailable_after)"
    assert (page.noindex, page.nofollow) == (past if noindex == "past" else noindex, nofollow)


@pytest.mark.parametrize(
    ("values", "noindex", "nofollow"),
    [
        (["noindex"], "X-Robots-Tag", False),
        (["NoArchive, NONE"], "X-Robots-Tag", True),
        (["*: noindex"], "X-Robots-Tag", False),
        (["GoogleBot: noindex"], "X-Robots-Tag: googlebot", False),
        (["googlebot: nofollow", "otherbot: noindex, nofollow"], "", True),
        (["otherbot: noindex, nofollow"], "", False),
        (["unavailable_after: 25 Jun 2060 15:00:00 PST", "bingbot: none"], "", False),
        (["otherbot: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT"], "", False),
        (["otherbot: noarchive, googlebot: noindex"], "X-Robots-Tag: googlebot", False),
        (["otherbot: noindex", "noindex"], "X-Robots-Tag", False),
        (["otherbot: noindex", "googlebot: noindex"], "X-Robots-Tag: googlebot", False),
        (["googlebot-image: noindex"], "", False),
        (["max-snippet: 20, max-image-preview:large, noindex"], "X-Robots-Tag", False),
        (["all", "", ":", ","], "", False),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST"], "past", False),
        (["unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, nofollow"], "past", True),
        (["unavailable_after: 2010-06-25T15:00:00-08:00"], "past", False),
        (["googlebot: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT"], "agent", False),
        (["unavailable_after: Fri, 25 Jun 2060 15:00:00 GMT"], "", False),
    ],
)
def test_robots_in_headers(values, noindex, nofollow):
    """Each form of X-Robots-Tag: for all, for one user agent, several in one header."""
    texts = {
        "past": "X-Robots-Tag (unavailable_after)",
        "agent": "X-Robots-Tag: googlebot (unavailable_after)",
    }
    page = parsed("", *(("x-robots-tag", value) for value in values))
    assert (page.noindex, page.nofollow) == (texts.get(noindex, noindex), nofollow)


def test_headers_count_without_html():
    """A PDF may be noindex and name a canonical URL; its bytes are no page."""
    headers = {
        "content-type": "application/pdf",
        "X-Robots-Tag": "noindex",
        "Link": '<https://www.example.com/a/>; rel="canonical"',
    }
    page = WebPage.parse(URL, [*headers.items()], b"<title>no</title>")
    assert (page.is_html, page.title, page.noindex) == (False, None, "X-Robots-Tag")
    assert page.canonical == "https://www.example.com/a/"


@pytest.mark.parametrize(
    ("html", "canonical"),
    [
        ('<link rel=canonical href="?a=1">', "https://www.example.com/shop/page/?a=1"),
        ('<link href="//cdn.example.com/x" rel="nofollow CANONICAL">', "https://cdn.example.com/x"),
        ('<link rel=canonical href="/a"><link rel=canonical href="/b">', None),
        ('<link rel=canonical href="/a"><link rel=canonical href="/a#x">', "/a"),
        ('<link rel=canonical href="/a" media=print><link rel=canonical href="/b">', "/b"),
        ('<link rel=canonical href="a"><base href="/base/">', "/base/a"),
        ('<base target=_top><base href="/1/"><base href="/2/"><link rel=canonical href=a>', "/1/a"),
        ("<base href='ftp://x/'><link rel=canonical href=a>", "/shop/page/a"),
        ("<body><link rel=canonical href=/a>", None),
        ("<title>x</title><div><link rel=canonical href=/a>", None),
        ("<head><noscript><link rel=canonical href=/a></noscript>", "/a"),
        ("<meta charset=x><noscript><img></noscript><link rel=canonical href=/a>", "/a"),
        ("<link rel=canonical href=''>", None),
        ("<link rel=canonical href='mailto:a@b.c'>", None),
        ("<link rel=canonical href='http://[oops/'>", None),
        ("<link rel=canonical href='/españa#x'>", "/espa%C3%B1a"),
        ("<link rel=canonical href='\n/a\tb \n'>", "/ab"),
        ("<link rel='canonical' href='/a' href='/b'>", "/a"),
        ("<link rel='canonical' href='https://u:p@h/'>", "https://u:p@h/"),
    ],
)
def test_canonical(html, canonical):
    """The only one in the head, resolved against the first base, in normal form."""
    origin = "https://www.example.com" if canonical and canonical.startswith("/") else ""
    assert parsed(html).canonical == (canonical and origin + canonical)


def test_link_headers():
    """Canonical and alternates may be in one header or several, and contradict the head."""
    header = (
        '</de/>; rel="alternate"; hreflang="de-AT" , <../x>;rel=canonical; title="a, <b>; c",'
        '<https://www.example.com/fr/>; hreflang=fr; rel="x alternate", </feed/>; rel=alternate,'
        " <mailto:x@y.z>; rel=canonical, <broken"
    )
    more = ("Link", '</es/>; rel="alternate"; hreflang="es"')
    page = parsed("<base href='/elsewhere/'>", ("Link", header), more)
    assert page.canonical == "https://www.example.com/shop/x"
    assert page.alternates == (
        ("de-AT", "https://www.example.com/de/"),
        ("fr", "https://www.example.com/fr/"),
        ("es", "https://www.example.com/es/"),
    )
    page = parsed("<link rel=canonical href=/a>", ("Link", "</b>; rel=canonical"))
    assert page.canonicals == ("https://www.example.com/a", "https://www.example.com/b")
    assert page.canonical is None


def test_alternates():
    """Those of the head with a language and a URL."""
    html = """<link rel="alternate" hreflang=" x-default " href="/">
        <link rel="stylesheet alternate" hreflang="pt-BR" href="/pt/">
        <link rel="alternate" hreflang="" href="/no/"><link rel="alternate" hreflang="no">
        <link rel="alternate" hreflang="no" href="javascript:1">
        <body><link rel="alternate" hreflang="no" href="/no/">"""
    origin = "https://www.example.com"
    assert parsed(html).alternates == (("x-default", f"{origin}/"), ("pt-BR", f"{origin}/pt/"))


def test_links():
    """Anchors and areas with an http or https URL, in their order."""
    html = """<a href="/a">A</a><a name=x>no</a><a href="#top">no</a><a href="">no</a>
        <a href=" HTTP://Other.Example:80/x ">Other</a><a href="mailto:a@b.c">no</a>
        <a href="javascript:void(0)">no</a><a href="tel:1">no</a><a href="ssh://host/">no</a>
        <map><area href="b?q=ñ" alt=" The  area "><area></map>"""
    assert parsed(html).links == (
        WebLink("https://www.example.com/a", "A"),
        WebLink("http://other.example/x", "Other"),
        WebLink("https://www.example.com/shop/page/b?q=%C3%B1", "The area", element="area"),
    )


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<img src=/a srcset='/b 1x, /c,d 2x,/e 3x'>", "/a /b /c,d /e"),
        ("<img srcset=' ,/a, /b 100w,'><img src='data:image/png;base64,x'>", "/a /b"),
        ("<picture><source srcset='/a, /b 2x'></picture>", "/a /b"),
        ("<video src=/a poster=/b><source src=/c><track src=/d></video><audio src=/e>", None),
        ("<script src=/a></script><script>'<img src=/no>'</script><q cite=/b>q</q>", "/a /b"),
        ("<link rel='Alternate Stylesheet' href=/a><link rel=preconnect href=/no>", "/a"),
        ("<iframe src=/a></iframe><iframe src=about:blank></iframe><embed src=/b>", "/a /b"),
        ("<object data=/a></object><input type=image src=/b><q cite=/c>q</q>", "/a /b /c"),
        ("<form action=/a></form><form method=Post action=/no></form><form></form>", "/a"),
        ("<svg><image href=/a></image><image xlink:href=/b></image></svg>", "/a /b"),
        ("<frameset><frame src=/a></frameset>", "/a"),
    ],
)
def test_files(html, expected):
    """What browsers load with the page, and what else it names; each with its element."""
    expected = (expected or "/a /b /c /d /e").split()
    found = [link for link in parsed(html).links if link.element not in LINK_ELEMENTS]
    assert [link.url for link in found] == [f"https://www.example.com{path}" for path in expected]
    assert all(f"<{link.element}" in html and not link.text for link in found)


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("b", "/shop//old/b"),
        ("go/http://other.example/x", "/shop//old/go/http://other.example/x"),
        ("../..//b/./?..//c", "/shop//b/?..//c"),
        ("https://www.example.com/a/../b#c", "/b"),
        ("/a/%2e%2E/b", "/b"),
        ("?b\\\\c", "/shop//old/page?b%5C%5Cc"),
        ("\\\\www.example.com\\a\\..\\b", "/b"),
    ],
)
def test_links_are_resolved_as_browsers_do(href, expected):
    """Empty segments are kept, and all dot segments are resolved; urljoin() does neither."""
    html = f"<base href='/shop//old/page?d'><a href='{href}'>"
    assert links(html) == [f"https://www.example.com{expected}"]


def test_a_link_that_is_no_valid_url_is_kept():
    """It is for the report of broken links."""
    assert links(f"<a href='/{'x' * 2_100}'>") == [f"https://www.example.com/{'x' * 2_100}"]
    assert links("<a href='https://user@www.example.com/'>") == ["https://user@www.example.com/"]
    assert links("<a href='/a/./b/../c#d'>") == ["https://www.example.com/a/c"]
    same = "https://www.example.com/shop/page/?"  # Another URL than without the question mark.
    assert links("<a href='?#a'><a href='/shop/page/?'><a href='../page/?'>") == [same] * 3


@pytest.mark.parametrize(
    "url",
    [
        *("htp://a.example/", "hhtp://a.example/", "http://?a", "https:"),
        *("http:// a.example/", "http://a b/", "//a b/x", "http://https://a.example/"),
        *(
            "http://a.example:x/",
            "http://a.example:99999/",
            "http://u@a.example:8x",
            "http://[::1/",
        ),
    ],
)
def test_what_no_browser_opens_is_kept_as_it_is_written(url):
    """Also of files."""
    assert links(f"<a href=' {url} '>a</a><img src='{url}'>") == [url, url]


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http:///a.example/",
            "http:/a.example/",
            "http://a.example:/",
            "https://a.example:65535/",
            "http://user:word@a.example/",
        ),
        *("http://[::1]:80/", "https:page", "http:\\\\a.example/", "/a b:c", "?u=htp://x"),
        *("https.example.com/x", "http://https.example/", "https://a.example/x:y z"),
    ],
)
def test_what_browsers_open_is_not_malformed(url):
    """However odd it looks."""
    assert not MALFORMED.match(url)
    assert url not in links(f"<a href='{url}'>a</a>") or url.startswith("http")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<a href=/> one\n <i>two</i>&nbsp;&lt; </a>", "one two <"),
        ("<a href=/><img alt=' The logo '></a>", "The logo"),
        ("<a href=/><img alt='x'>Text</a>", "Text"),
        ("<a href=/><img><img alt='second'></a>", "second"),
        ("<a href=/>One<a href=/x>Two", "One"),
        ("<a href=/>open", "open"),
        ("<a href=/><script>no()</script><style>no</style>yes</a>", "yes"),
        ("<a href=/></a><img alt=no>", ""),
        (f"<a href=/>{'x' * 5_000}</a>", "x" * 200),
        (f"<a href=/>{' ' * 9_000}late</a>", ""),
    ],
)
def test_link_texts(html, text):
    """Collapsed, cut to 200 characters; the image's alternative where there is no text."""
    assert parsed(html).links[0].text == text


def test_nofollow_of_a_link():
    """It is a word of rel."""
    html = (
        "<a rel='noopener NoFollow' href=/>a</a><a rel=ugc href=/>b</a><area rel=nofollow href=/>"
    )
    assert [link.nofollow for link in parsed(html).links] == [True, False, True]


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("", None),
        ("<title></title>", ""),
        ("<title>open", "open"),
        ("<title>a</title><title>b</title>", "a"),
        ("<body><svg><title>icon</title></svg><title>late</title>", "late"),
        ("<svg/></svg><title>a</title>", "a"),
        ("<TITLE>a < b &eacute;</TITLE>", "a < b é"),
        (f"<title>{'y' * 10_000}</title>", "y" * 2_000),
    ],
)
def test_titles(html, title):
    """The first one that is not an image's; empty is not missing."""
    assert parsed(html).title == title


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ("0;url=/next", "/next"),
        ("5; URL='/next/?a=1' x", "/next/?a=1"),
        ('0 ,url="/next"', "/next"),
        ("1.5 /next", "/next"),
        ("30", None),
        ("30;", None),
        ("url=/next", None),
    ],
)
def test_refresh(content, path):
    """The target of a tag or header; reloading the page is none."""
    expected = path and f"https://www.example.com{path}"
    assert parsed("", ("Refresh", content)).refresh == expected
    content = content.replace('"', "&quot;")
    assert parsed(f'<meta http-equiv="Refresh" content="{content}">').refresh == expected


def test_language():
    """That of the html tag, else nothing."""
    assert parsed("<html xml:lang=' es '>").language == "es"
    assert parsed("<html>").language == ""


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html; charset=ISO-8859-1", "<title>ñ€</title>".encode("cp1252")),
        ("text/html; charset='shift_jis'", "<title>ñ€</title>".encode("cp1252")[:0]),
        ("text/html", b"\xef\xbb\xbf<title>" + "ñ€</title>".encode()),
        ("text/html; charset=latin-1", b"\xef\xbb\xbf<title>" + "ñ€</title>".encode()),
        ("text/html", b"\xff\xfe" + "<title>ñ€</title>".encode("utf-16-le")),
        ("text/html", "<meta charset=windows-1252><title>ñ€</title>".encode("cp1252")),
        (
            "text/html",
            b"<meta http-equiv=content-type content='text/html; charset=windows-1252'>"
            + "<title>ñ€</title>".encode("cp1252"),
        ),
        ("text/html", "<meta charset=utf-16><title>ñ€</title>".encode()),
        ("text/html; charset=nonsense", "<title>ñ€</title>".encode()),
        ("text/html; charset=punycode", "<title>ñ€</title>".encode()),
        ("text/html; charset=hex", "<title>ñ€</title>".encode()),
        ("", "<!doctype HTML><title>ñ€</title>".encode()),
        ("application/xhtml+xml", "<html><title>ñ€</title>".encode()),
    ],
)
def test_encodings(content_type, body):
    """The byte order mark, the header, the meta tag, else UTF-8; unknown ones are ignored."""
    page = WebPage.parse(URL, [("Content-Type", content_type)] if content_type else [], body)
    assert page.title == ("ñ€" if body else None)


def test_broken_bytes_are_replaced():
    """A page is read as a browser does."""
    assert parsed(b"<title>a\xff</title>").title == "a\ufffd"


@pytest.mark.parametrize(
    "broken",
    ["<![if !IE]>", "<![endif]-->", "<![<x>", "<![CDATA[ x ]]>", "<!-- a -->", "<!x>", "<?php ?>"],
)
def test_declarations_are_skipped(broken):
    """Whatever kind they are."""
    assert links(f"<p>{broken}<a href=/a>a</a>") == ["https://www.example.com/a"]


@pytest.mark.parametrize(
    "around",
    [
        "<div data-x='<a href=/no>' title=\"'>\">{}</div>",
        "<p title=it's \"quoted>{}</p>",
        "<p title = 'a > b'/>{}",
        "<textarea><a href=/no></textarea>{}",
        "<SCRIPT>'<a href=/no>' </scripts></Script >{}",
        "<iframe><a href=/no></iframe><!----><!--> <!---> <!-- <a href=/no> --!>{}",
        "<!-- > <a href=/no> -->{}<!-- <a href=/no>",
        "< a href=/no></ a href=/no>{}<script><a href=/no>",
        "{}<a href=/no",
        "<tag\0=a>{}",
    ],
)
def test_markup(around):
    """Quotes, comments and content without tags are those of a browser."""
    assert (
        links(around.format("<a href=/a>a</a>"))
        in (
            ["https://www.example.com/a"],
            ["https://www.example.com/a", "https://www.example.com/no"],
        )[: 2 if around.endswith("<a href=/no") else 1]
    )


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ("a=1&region=2&copy=3&lang", "a=1&region=2&copy=3&lang"),
        ("a=1&amp;b=2&AMP;c&#61;3&#x26;d", "a=1&b=2&c=3&d"),
        ("a=1&ampb&amp", "a=1&ampb&"),
        ("&notit;&not", "&notit;%C2%AC"),
        ("&unknown;&;&#;&#99999999;", "&unknown;&;&"),
        ("x&#" + "9" * 5_000, None),
    ],
)
def test_character_references_in_urls(written, query):
    """A parameter is none, unless it ends with a semicolon."""
    (found,) = links(f'<a href="?{written}">a</a>')
    assert query is None or found == f"https://www.example.com/shop/page/?{query}"


def test_character_references_in_text():
    """They may end without one, and any number is harmless."""
    text = f"&lt;b&gt &copy2; &#233 &unknown; &#x110000; &#{'9' * 5_000};"
    title = parsed(f"<title>{text}</title>").title
    assert title.startswith("<b> ©2; é &unknown; \ufffd \ufffd")


def test_bounds(monkeypatch):
    """Links, alternates and bytes are limited."""
    monkeypatch.setattr(pages, "MAX_PAGE_LINKS", 3)
    html = "<link rel=alternate hreflang=es href=/>" * 5 + "<a href=/>" * 5
    page = parsed(html)
    assert (len(page.alternates), len(page.links)) == (3, 3)
    assert parsed(b" " * 3_000_000 + b"<title>x</title>").title is None


@pytest.mark.parametrize(
    "text",
    [
        "<!--",
        "<a ",
        "<a x='",
        "<!",
        "<![",
        "<?",
        "</",
        "<script>",
        "<title>",
        "&",
        "<",
        "<a href=/>",
        "<div>",
        "<svg>",
        "<b></i>",
        "<a\x00",
        "<meta name=robots content=",
        "<!DOCTYPE [",
        "<p/",
    ],
)
def test_no_page_takes_long(text):
    """Neither deep nesting nor what is never closed costs more than its length."""
    start = time.process_time()
    parsed(text * (150_000 // len(text)))
    assert time.process_time() - start < 2


@pytest.mark.parametrize("folder", ["a" * 400_000, "a/" * 100_000, "a" * 2_047])
@pytest.mark.parametrize("link", ['<a href="x">', '<link rel=alternate hreflang=es href="x">'])
def test_a_long_base_is_ignored(folder, link):
    """Else each link would be as long: what a URL is joined with is a URL of valid length."""
    page = parsed(f'<base href="/{folder}/">' + link * 1_000)
    found = [one.url for one in page.links] or [url for _, url in page.alternates]
    assert found == [f"{URL}x"] * 1_000


def test_a_long_href_leads_nowhere():
    """None of its length is resolved; a fragment that is long makes no long URL."""
    assert links(f'<a href="/{"y" * 400_000}">a</a><a href="{"../" * 100_000}">b</a>') == []
    assert links(f'<a href="/y#{"z" * 3_000}">a</a>') == ["https://www.example.com/y"]


@pytest.mark.parametrize("text", ["<", "<a>;", ";", "<a>; ", ",", "a:", "unavailable_after:", " "])
def test_no_header_takes_long(text):
    """A header of any length is read in its length."""
    start = time.process_time()
    parsed("", ("Link", text * 100_000), ("X-Robots-Tag", text * 100_000))
    parsed("", ("Refresh", text * 100_000), ("Content-Language", text * 100_000))
    assert time.process_time() - start < 1


FRAGMENTS = st.sampled_from(
    [
        "<a href=",
        "<link rel=canonical href=",
        "<base href=",
        "<meta name=robots content='",
        "<!--",
        "<![",
        '"',
        "<script>",
        "<title>",
        "</",
        ">",
        "'",
        "http://[",
        "//",
        "\x00",
        "&#x110000;",
        "ñ",
        "unavailable_after: ",
        "charset=",
        "\udcff",
        "http-equiv=refresh content=0;",
        "1e400 -9999",
    ]
)


@pytest.mark.slow
@given(st.lists(FRAGMENTS | st.text(max_size=5), max_size=30), st.binary(max_size=40))
def test_nothing_raises(fragments, noise):
    """Whatever the bytes of the page and its headers are."""
    text = "".join(fragments)
    body = text.encode("utf-8", "surrogatepass") + noise
    header = noise.decode("latin-1") + text
    names = ("Content-Type", "Link", "X-Robots-Tag", "Refresh", "Content-Language")
    for headers in ([HTML], [(name, header) for name in names]):
        page = WebPage.parse(URL, headers, body)
        assert all(MALFORMED.match(link.url) or link.url[:4] == "http" for link in page.links)


MARKUP = st.sampled_from(
    [
        *(
            "<head>",
            "</head>",
            "<body>",
            "<html lang=es>",
            "<p class='a>b'>",
            "<!--",
            "-->",
            "<!x>",
        ),
        *("<title>", "</title>", "<svg>", "</svg>", "<script>", "</script>", "<textarea>", "<"),
        *("<meta name=robots content=noindex>", "<meta http-equiv=refresh content='0;url=/r'>"),
        *("<META NAME=googlebot CONTENT=none>", "<base href=/b/>", "<link rel=canonical href=c>"),
        *("<link rel=alternate hreflang=es href=e>", "<a href=x>", "</a>", "<img alt=y>", "text"),
        *('<div title="', "='", "'", '"', ">", "<metadata>", "<titles>", "<noscript>", "<a"),
    ]
)


@example("<title>a</title><p><meta name=robots content=noindex>")
@example("<title>a</title><p><META http-equiv=refresh content='0;url=/r'>")
@example("<title>a</title><link rel=canonical href=c><p><base href=/b/>")
@example("<title>a</title><p><html lang=es><a href=x>")
@example("<p><svg><title>icon</title></svg><title>a</title><a href=x>")
@given(st.lists(MARKUP, max_size=20).map("".join))
def test_a_page_without_its_links(html):
    """All else is the same."""
    page = parsed(html)
    without = WebPage.parse(URL, [HTML], html.encode(), with_links=False, now=NOW)
    assert without == replace(page, links=())
