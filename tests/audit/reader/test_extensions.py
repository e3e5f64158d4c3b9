"""What the validator knows of images, videos, news and links to other languages."""

import datetime as dt
import itertools
import tracemalloc

import pytest

from django_sitemapkit.audit.reader import validate
from django_sitemapkit.audit.reader.extensions import MAX_LINKS
from django_sitemapkit.protocol.limits import IMAGE, NAMESPACE, NAMESPACES, NEWS, VIDEO, XHTML

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
ADDRESS = "https://www.example.com/sitemap.xml"
LOCATION = "https://www.example.com/page"
LOC = f"<loc>{LOCATION}</loc>"
IMG = "<image:image><image:loc>https://cdn.example.net/a.png</image:loc></image:image>"

VIDEO_TAGS = {
    "thumbnail_loc": "https://cdn.example.net/t.jpg",
    "title": "T",
    "description": "D",
    "content_loc": "https://cdn.example.net/v.mp4",
}
NEWS_TAGS = {
    "name": "The Example Times",
    "language": "en",
    "publication_date": "2026-11-20",
    "title": "T",
}


def urlset(*urls, namespaces=NAMESPACES):
    """Return a urlset; each argument is the inside of one ``<url>``."""
    inner = "".join(f"<url>{url}</url>\n" for url in urls)
    declared = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in namespaces.items())
    return f'<urlset xmlns="{NAMESPACE}" {declared}>{inner}</urlset>'.encode()


def findings(*extensions, loc=LOC, **options):
    """Return what is found in a urlset of one url with these extensions."""
    report = validate([urlset(loc + "".join(extensions), **options)], ADDRESS, now=NOW)
    assert report.urls == 1
    assert report.valid == all(finding.level == "warning" for finding in report.findings)
    return report.findings


def found(*extensions, **options):
    """Return the codes and levels of what is found in a urlset of one url."""
    return [(finding.code, finding.level) for finding in findings(*extensions, **options)]


def error(code, words, *extensions, **options):
    """Assert that one error is found, with these words in its message."""
    (finding,) = findings(*extensions, **options)
    assert (finding.code, finding.level) == (code, "error")
    assert words in finding.message


def tags(prefix, values):
    """Return the tags of one prefix as XML."""
    return "".join(f"<{prefix}:{tag}>{text}</{prefix}:{tag}>" for tag, text in values.items())


def video(more="", **changes):
    """Return a ``video:video``; a tag that is None is left out."""
    values = {tag: text for tag, text in (VIDEO_TAGS | changes).items() if text is not None}
    return f"<video:video>{tags('video', values)}{more}</video:video>"


def news(**changes):
    """Return a ``news:news``; a tag that is None is left out."""
    values = {tag: text for tag, text in (NEWS_TAGS | changes).items() if text is not None}
    first = {tag: values.pop(tag) for tag in ("name", "language") if tag in values}
    publication = f"<news:publication>{tags('news', first)}</news:publication>"
    return f"<news:news>{publication}{tags('news', values)}</news:news>"


def link(hreflang="en", href=LOCATION, rel="alternate", more=""):
    """Return an ``xhtml:link``; an attribute that is None is left out."""
    pairs = {"rel": rel, "hreflang": hreflang, "href": href}
    text = "".join(f' {name}="{value}"' for name, value in pairs.items() if value is not None)
    return f"<xhtml:link{text}{more}/>"


# Namespaces


@pytest.mark.parametrize(
    ("prefix", "wrong"),
    [
        ("image", IMAGE.replace("http:", "https:")),
        ("image", IMAGE.replace("1.1", "1.0")),
        ("video", VIDEO + "/"),
        ("video", "http://google.com/schemas/sitemap-video/1.1"),
        ("news", NEWS.replace("0.9", "1.0")),
        ("news", NEWS.upper()),
        ("xhtml", XHTML.replace("http:", "https:")),
        ("xhtml", "http://www.w3.org/TR/xhtml11/xhtml11_schema.html"),
    ],
)
def test_a_wrong_namespace_is_one_finding(prefix, wrong):
    """Another scheme, host or version is named once, with the one that is right."""
    tag = "link" if prefix == "xhtml" else prefix
    report = validate(
        [urlset(*[f"{LOC}<{prefix}:{tag}/><{prefix}:{tag}/>"] * 2, namespaces={prefix: wrong})]
    )
    finding, *duplicates = report.findings
    assert {each.code for each in duplicates} == {"duplicate-url"}
    assert (finding.code, finding.level) == ("wrong-namespace", "error")
    assert finding.message.endswith(f"write {NAMESPACES[prefix]}.")


@pytest.mark.parametrize(
    "namespace",
    [
        "http://www.google.com/schemas/sitemap-mobile/1.0",
        "http://www.google.com/schemas/sitemap-pagemap/1.0",
        "https://example.com/schemas/sitemap-image/2.0",
        "urn:image",
    ],
)
def test_other_namespaces_are_no_business_of_ours(namespace):
    """Elements of any other namespace are passed over."""
    extension = "<x:image><x:loc>?</x:loc></x:image>"
    assert found(extension, namespaces={"x": namespace}) == []


def test_a_prefix_is_only_a_name():
    """Names are compared by namespace, not by how they are written."""
    xml = IMG.replace("image:", "i:")
    assert found(xml, namespaces={"i": IMAGE}) == []
    error("missing-xml-tag", "image:loc", "<i:image/>", namespaces={"i": IMAGE})


@pytest.mark.parametrize("tag", ["image:loc", "video:title", "news:title", "xhtml:a", "image:x"])
def test_what_has_no_place_within_a_url(tag):
    """A tag of a known extension stands only within its element."""
    error("invalid-xml-tag", f"<{tag}>", f"<{tag}/>")


def test_an_index_has_no_extensions_to_check():
    """Only a url has images; those of an index are passed over."""
    document = (
        f'<sitemapindex xmlns="{NAMESPACE}" xmlns:image="{IMAGE}"><sitemap>{LOC}<image:image/>'
        "</sitemap></sitemapindex>"
    )
    assert validate([document.encode()]).findings == ()


# Images


def test_an_image_and_what_google_dropped():
    """A location is enough; a caption has no effect and does no harm."""
    assert found(IMG, IMG) == []
    assert (
        found(IMG.replace("</image:loc>", "</image:loc>\n<image:caption>c</image:caption> ")) == []
    )


@pytest.mark.parametrize(
    "inner",
    [
        *("", "<image:loc/>", "<image:loc> \n </image:loc>", "<image:caption>c</image:caption>"),
        '<loc xmlns="">https://a.example/b</loc>',
        "<image:x><image:loc>https://a.example/b</image:loc></image:x>",
    ],
)
def test_an_image_without_location(inner):
    """An empty location is a missing one, and one elsewhere is none."""
    error("missing-xml-tag", "<image:loc>", f"<image:image>{inner}</image:image>")


@pytest.mark.parametrize(
    "url", ["/a.png", "a.png", "//a.example/b", "ftp://a.example/b", "https://a.example/b c"]
)
def test_the_location_of_an_image(url):
    """It is an absolute and percent-encoded URL, of any host."""
    error("invalid-url", "image:loc", IMG.replace("https://cdn.example.net/a.png", url))


@pytest.mark.parametrize(
    ("url", "codes"),
    [
        ("HTTP://CDN.example:8080/A?b=%C3%B1&amp;c", []),
        ("https://a.example/" + "b" * 2029, []),
        ("https://a.example/" + "b" * 2030, ["invalid-url"]),
        ("https://a.example/../b", ["invalid-url"]),
        ("https://a.example/%2e/b", ["invalid-url"]),
        ("https://a.example/.well-known/b", []),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_unusual_location_of_an_image(url, codes):
    """The rules are those of a loc, but for the host."""
    extension = IMG.replace("https://cdn.example.net/a.png", url)
    assert found(extension) == [(code, "error") for code in codes]


def test_a_second_location_of_an_image():
    """The first counts."""
    second = IMG.replace("</image:image>", "<image:loc>x</image:loc></image:image>")
    error("too-many-tags", "a second <image:loc>", second)


def test_images_are_counted_by_url():
    """1,000 images on each url are allowed; more of them are one finding a url."""
    locs = [LOC.replace("page", f"page/{number}") for number in range(4)]
    document = urlset(*(loc + IMG * 1000 for loc in locs[:2]))
    assert validate([document], ADDRESS).findings == ()
    images = [IMG * 1001, IMG] * 2
    report = validate([urlset(*map("".join, zip(locs, images, strict=True)))], ADDRESS)
    assert report.counts == {"too-many-tags": 2}
    assert "1,000 <image:image>" in report.findings[0].message


def test_a_finding_says_where():
    """It has the line in which the url begins, and the url's location."""
    document = urlset(LOC, f"\n {LOC.replace('page', 'other')}\n<image:image/>")
    (finding,) = validate([document]).findings
    assert (finding.line, finding.location) == (2, "https://www.example.com/other")


# Videos


def test_a_whole_video():
    """A video with all its tags at their limits is right."""
    more = (
        '<video:restriction relationship="allow">IE GB</video:restriction>'
        '<video:platform relationship="deny">web tv</video:platform>'
        f'<video:uploader info="https://www.example.com/u">{"u" * 255}</video:uploader>'
        + "<video:tag>t</video:tag>"
        * 32
    )
    whole = video(
        more,
        title="t" * 100,
        description="d" * 2048,
        player_loc="https://p.example/v",
        duration="28800",
        expiration_date="2030-01-01T00:00:00+00:00",
        rating="5.0",
        view_count="0",
        publication_date="2020-01-01",
        family_friendly="yes",
        requires_subscription="no",
        live="no",
    )
    assert found(whole, whole) == []
    assert found(video(duration="1", rating="0", price="1.99", category="c")) == []


@pytest.mark.parametrize("tag", ["thumbnail_loc", "title", "description"])
@pytest.mark.parametrize("text", [None, "", " "])
def test_a_video_without_a_required_tag(tag, text):
    """Each required tag is named where it is missing or empty."""
    error("missing-xml-tag", f"<video:video> has no <video:{tag}>", video(**{tag: text}))


def test_a_video_needs_a_source():
    """Content or player: one of them is there."""
    error("missing-xml-tag", "<video:content_loc>", video(content_loc=None))
    assert found(video(content_loc=None, player_loc="https://p.example/v")) == []


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        *(("duration", text) for text in ("0", "28801", "1.5", "", "x", "-1", "1e3", "٣")),
        *(("rating", text) for text in ("5.1", "-0.1", "NaN", "4,5", "", "1e0")),
        *(("view_count", text) for text in ("-1", "1.0", "")),
        *(("family_friendly", text) for text in ("true", "", "1")),
        ("requires_subscription", "maybe"),
        ("live", "0"),
        ("description", "d" * 2049),
        ("uploader", "u" * 256),
        ("content_loc", LOCATION),
        ("player_loc", f"\n{LOCATION} "),
    ],
    ids=lambda value: value[:20],
)
def test_an_invalid_value_of_a_video(tag, text):
    """What is out of range, or of another kind, is named with its tag."""
    error("invalid-tag-value", f"video:{tag}", video(**{tag: text}))


@pytest.mark.parametrize("tag", ["thumbnail_loc", "content_loc", "player_loc"])
def test_an_invalid_url_of_a_video(tag):
    """Each URL is absolute."""
    error("invalid-url", f"video:{tag}", video(**{tag: "/relative"}))


@pytest.mark.parametrize("tag", ["publication_date", "expiration_date"])
@pytest.mark.parametrize("text", ["2020-02-30", "2020-01-01T00:00:00", "", "x" * 9000])
def test_an_invalid_date_of_a_video(tag, text):
    """Dates are W3C datetimes."""
    error("invalid-date", f"video:{tag}", video(**{tag: text}))


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("missing-xml-attribute", "<video:restriction>IE</video:restriction>"),
        ("missing-xml-attribute", "<video:platform>web</video:platform>"),
        (
            "invalid-attribute-value",
            '<video:platform relationship="only">web</video:platform>',
        ),
        ("invalid-tag-value", '<video:platform relationship="deny">radio</video:platform>'),
        ("invalid-tag-value", '<video:platform relationship="deny"/>'),
        *(
            (
                "invalid-tag-value",
                f'<video:restriction relationship="deny">{text}</video:restriction>',
            )
            for text in ("ie", "IRL", "IE,GB", "")
        ),
        (
            "invalid-attribute-value",
            '<video:uploader info="https://other.example/u">u</video:uploader>',
        ),
        ("invalid-url", '<video:uploader info="/u">u</video:uploader>'),
    ],
)
def test_the_attributes_of_a_video(code, tag):
    """A restriction says whether it allows or denies, and whom; an uploader is of the same host."""
    error(code, f"video:{tag[7:].partition('>')[0].partition(' ')[0]}".rstrip("/"), video(tag))


def test_a_broken_page_has_no_host():
    """No uploader is on the host of a url whose own location is broken."""
    tag = '<video:uploader info="https://www.example.com/u">u</video:uploader>'
    assert found(video(tag), loc="<loc>https://[x/</loc>") == [
        ("invalid-attribute-value", "error"),
        ("invalid-url", "error"),
    ]


def test_a_long_title_is_a_warning():
    """More than 100 characters are allowed, and cut by some."""
    assert found(video(title="t" * 101)) == [("long-title", "warning")]


def test_a_video_has_32_tags_at_most():
    """33 are one finding; of other tags a second is one too many."""
    error("too-many-tags", "32 <video:tag>", video("<video:tag>t</video:tag>" * 33))
    error("too-many-tags", "a second <video:title>", video("<video:title>t</video:title>"))


# News


def test_a_whole_article():
    """An article is right in any language that Google knows."""
    assert found(news()) == []
    for language in ("ast", "zh-cn", "zh-TW"):
        assert found(news(language=language)) == []


@pytest.mark.parametrize("tag", NEWS_TAGS)
@pytest.mark.parametrize("text", [None, ""])
def test_news_without_a_required_tag(tag, text):
    """Each of the four tags is asked for."""
    error("missing-xml-tag", f"<news:{tag}>", news(**{tag: text}))


def test_a_publication_has_a_name_within():
    """A name outside of the publication is none, and an empty article lacks all four."""
    outside = news(name=None).replace("<news:title>", "<news:name>N</news:name><news:title>")
    error("missing-xml-tag", "<news:name>", outside)
    assert found("<news:news/>") == [("missing-xml-tag", "error")] * 4


@pytest.mark.parametrize("language", ["en-gb", "english", "zh-hk"])
def test_an_invalid_language_of_news(language):
    """Regions are not allowed, but for those of Chinese."""
    error("invalid-tag-value", "news:language", news(language=language))


@pytest.mark.parametrize(
    ("date", "is_old"),
    [
        ("2026-11-18T12:00:00Z", False),
        ("2026-11-18T11:59:59Z", True),
        ("2026-11-18T11:59:59-01:00", False),
        ("2026-11-17", False),
        ("2026-11-16", True),
    ],
)
def test_news_are_two_days_old_at_most(date, is_old):
    """A date is old once it is over everywhere."""
    assert found(news(publication_date=date)) == [("old-news", "warning")] * is_old


def test_an_invalid_date_of_news():
    """A time needs its zone."""
    error("invalid-date", "news:publication_date", news(publication_date="2026-11-20T12:00"))


@pytest.mark.slow
def test_one_article_a_url_and_a_thousand_a_file():
    """Both limits are one finding each."""
    error("too-many-tags", "more than one <news:news>", news() * 3)
    articles = [f"<loc>{LOCATION}?{number}</loc>{news()}" for number in range(1001)]
    assert validate([urlset(*articles[:1000])], ADDRESS, now=NOW).findings == ()
    report = validate([urlset(*articles)], ADDRESS, now=NOW)
    assert report.counts == {"too-many-tags": 1}
    assert "1,000 <news:news>" in report.findings[0].message


# Languages


def test_a_set_of_languages():
    """Every version is listed, the url itself included, on any host."""
    links = link("en"), link("es-MX", "https://mx.example/x"), link("x-default")
    assert found(*links) == []
    assert found(*links, loc=f"<loc>\n{LOCATION} </loc>") == []


@pytest.mark.parametrize("name", ["rel", "hreflang", "href"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_link_without_an_attribute(name, value):
    """All three are required, and not empty."""
    error("missing-xml-attribute", f"no {name}", link(**{name: value}), link("fr"))


def test_a_link_to_a_page_for_small_screens():
    """It has a medium instead of a language, and belongs to no set of languages."""
    assert found(link(None, "https://m.example.com/", more=' media="only screen"')) == []


def test_the_relation_of_a_link():
    """Another relation than alternate is no link to another language."""
    error("invalid-attribute-value", "rel", link(rel="canonical"))


@pytest.mark.parametrize("href", ["/page", "page", "//www.example.com/page"])
def test_an_href_is_absolute(href):
    """A relative one is invalid."""
    error("invalid-url", "href of <xhtml:link>", link("en"), link("fr", href))


@pytest.mark.parametrize("hreflang", ["en_GB", "e", "x" * 70, "en gb"])
def test_what_is_no_language(hreflang):
    """It is an invalid value."""
    error("invalid-attribute-value", "hreflang", link(), link(hreflang))


@pytest.mark.parametrize("hreflang", ["ast", "es-419", "gb", "en-UK"])
def test_a_language_that_google_does_not_know(hreflang):
    """It is a warning, with the reason."""
    assert found(link(hreflang)) == [("doubtful-hreflang", "warning")]


def test_a_language_has_one_link():
    """A code that comes twice is an error, in whatever case it is written."""
    error("duplicate-hreflang", "pt-BR", link("pt-br"), link("pt-BR", "https://b.example/"))


def test_a_set_without_its_own_url():
    """A warning: such a set is not mutual, and Google may pass over it."""
    assert found(link("fr", "https://www.example.com/fr")) == [("missing-self-link", "warning")]
    assert found(link("fr", f"{LOCATION}/")) == [("missing-self-link", "warning")]


@pytest.mark.parametrize(
    "href", ["HTTPS://www.EXAMPLE.com/a%c3%b1", "https://www.example.com:443/a%C3%B1"]
)
def test_a_url_has_many_spellings(href):
    """The own URL is found in another spelling too."""
    assert found(link("fr", href), loc="<loc>https://www.example.com/a%C3%B1</loc>") == []


def test_each_url_has_its_own_set():
    """What one url lists says nothing of the next one."""
    other = LOC.replace("page", "other")
    third = LOC.replace("page", "third")
    report = validate([urlset(LOC + link("en"), other + link("en"), third)], ADDRESS)
    assert report.counts == {"missing-self-link": 1, "missing-return-link": 1}
    assert report.findings[0].location == "https://www.example.com/other"
    assert report.findings[0].line == 2


def test_a_url_without_location_is_found_as_such():
    """Nothing else is said of its links."""
    assert found(link(), loc="") == [("missing-xml-tag", "error")]


# Order, and memory


def test_extensions_come_last():
    """They are checked also where they stand too early."""
    codes = [
        code
        for code, _ in found(
            "<image:image/>", link("fr", "https://x.example/"), video(), LOC, loc=""
        )
    ]
    assert sorted(codes) == ["missing-self-link", "missing-xml-tag", "wrong-tag-order"]


def test_the_inside_may_be_anything():
    """Text between tags, deep nesting and tags out of place do no harm."""
    inner = "<video:x>" * 20 + "</video:x>" * 20 + "stray <x xmlns='urn:x'>y</x><![CDATA[ ]]>"
    assert found(video(inner)) == []
    # What stands before a tag is no part of its text.
    assert found(video("stray <video:duration>60</video:duration>")) == []


def test_long_texts_come_in_pieces():
    """A text is whole, however the document is cut."""
    document = urlset(LOC + video(description="é" * 2048, title=" " * 70_000 + "t"))
    assert validate([document[i : i + 7] for i in range(0, len(document), 7)]).findings == ()
    document = urlset(LOC + video(description="d" * 200_000))
    assert validate([document]).counts == {"invalid-tag-value": 1}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece",
    [
        lambda i: IMG,
        lambda i: link(f"en-{i % 30_000:x}", f"https://www.example.com/{i}"),
        lambda i: link("en", f"https://www.example.com/{i}"),
        lambda i: video("<video:tag>t</video:tag>" * 5),
        lambda i: "<video:video>" + "<video:tag>t</video:tag>" * 10 + "</video:video>",
    ],
)
def test_memory_does_not_grow_with_a_url(piece):
    """A url of many extensions costs no more than one of a few."""

    def peak(count):
        chunks = [f'<urlset xmlns="{NAMESPACE}"'.encode()]
        chunks[0] += "".join(f' xmlns:{p}="{uri}"' for p, uri in NAMESPACES.items()).encode()
        chunks[0] += f"><url>{LOC}".encode()
        tracemalloc.start()
        body = (piece(i).encode() for i in range(count))
        validate(itertools.chain(chunks, body, [b"</url></urlset>"]))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak(100)
    few = peak(3 * MAX_LINKS)
    assert peak(12 * MAX_LINKS) < few + 300_000
