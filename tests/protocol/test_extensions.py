"""What is said of a page beyond the protocol: each element, its order, and each limit's edge."""

import copy
import datetime as dt
import pickle
from collections import Counter
from dataclasses import FrozenInstanceError, fields, replace
from decimal import Decimal
from xml.etree import ElementTree as ET

import pytest
from django.conf import global_settings
from hypothesis import example, given
from hypothesis import strategies as st

from django_sitemapkit.audit.reader import validate
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.extensions import (
    Restriction,
    alternate_elements,
    format_hreflang,
    hreflang_doubt,
    image_element,
    news_element,
    own_element,
    video_element,
)
from django_sitemapkit.protocol.extensions.languages import LANGUAGES, REGIONS
from django_sitemapkit.protocol.extensions.values import Allow, Deny, Element, Image, News, Video
from django_sitemapkit.protocol.limits import MAX_LOCATION, NAMESPACES
from django_sitemapkit.protocol.locations import Scope, normalise_url

ORIGIN = "https://www.example.com"
SCOPE = Scope(ORIGIN)
PAGE = f"{ORIGIN}/page"
MADRID = dt.timezone(dt.timedelta(hours=1))
SHOP = "https://example.com/schemas/shop"

VIDEO = Video(thumbnail="/t.jpg", title="T", description="D", content="/v.mp4")
NEWS = News(publication="P", language="en", published="2026-11-20", title="T")

ILLEGAL = ["\x00", "\x0b", "\ufffe", "\ud800"]
BAD_URLS = [
    *("javascript:alert(1)", "mailto:a@b.example", "data:image/png;base64,AA", "ftp://a.example/b"),
    *("https://user:pw@a.example/b", "///b", "https://cdn.example:0/b", "cdn.example/b", "b.png"),
    "https://",
    *("/a\tb", "/a\nb", "/a\rb", "/a\x00b", "/a\ud800b", "/a\ufffeb", "/a#b", "/a/../b"),
    *(f"{ORIGIN}/" + "a" * (MAX_LOCATION - len(ORIGIN)), 1, b"/a", ["/a"]),
]


def image(location):
    """Return the element of one image."""
    return image_element(Image(location=location), SCOPE)


def video(**changes):
    """Return the element of a small video with changes."""
    return video_element(replace(VIDEO, **changes), SCOPE, PAGE, MADRID)


def news(**changes):
    """Return the element of a small article with changes."""
    return news_element(replace(NEWS, **changes), MADRID)


def own(**fields):
    """Return an element of the namespace ``shop``."""
    return own_element(Element(**fields), {"shop"})


def tag_of(xml, name):
    """Return the elements of one name in ``xml``, as they stand."""
    begin = xml.partition(f"<{name}")[2]
    return begin and f"<{name}{begin.rpartition(f'</{name}>')[0]}</{name}>"


def parsed(xml):
    """Return ``xml`` as a parser sees it."""
    declared = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    return ET.fromstring(f'<url {declared} xmlns:shop="{SHOP}">{xml}</url>')[0]


def refusal(write, *arguments, **changes):
    """Return code and message of the refusal of a value."""
    with pytest.raises(InvalidValue) as caught:
        write(*arguments, **changes)
    str(caught.value).encode()  # fit for any log
    assert len(str(caught.value)) < 400
    return caught.value.code, str(caught.value)


# Values


@pytest.mark.parametrize(
    "value",
    [
        Image(location="/a"),
        VIDEO,
        NEWS,
        Element(name="a:b"),
        Allow("IE"),
        Deny("tv"),
    ],
)
def test_values_are_frozen_and_slotted(value):
    """Values cannot be changed, have no room for more, are equal by content, and travel."""
    name = fields(value)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, "other")
    assert not hasattr(value, "__dict__")
    assert pickle.loads(pickle.dumps(value)) == copy.copy(value) == value


def test_to_allow_is_not_to_deny():
    """Two restrictions of the same places are equal only if they say the same."""
    assert Allow("IE", "GB") == Allow("IE", "GB") != Deny("IE", "GB")
    assert Allow("IE") != Allow("GB")
    assert len({Allow("IE"), Allow("IE"), Deny("IE")}) == 2


def test_what_google_dropped_is_not_offered():
    """Neither captions of images nor prices, categories and galleries of videos are fields."""
    assert set(Image.__dataclass_fields__) == {"location"}
    assert not {"category", "gallery", "price", "tvshow"} & set(Video.__dataclass_fields__)


# Images


def test_an_image():
    """An image is its location, as an absolute URL, percent-encoded, its entities escaped once."""
    assert image("/españa & co/a b.png?w=1&h=2") == (
        "<image:image><image:loc>https://www.example.com/espa%C3%B1a%20&amp;%20co/a%20b.png"
        "?w=1&amp;h=2</image:loc></image:image>"
    )


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("HTTP://CDN.Example.NET:80/A.png", "http://cdn.example.net/A.png"),
        ("https://cdn.example.net:8443", "https://cdn.example.net:8443/"),
        ("https://bücher.example/a", "https://xn--bcher-kva.example/a"),
        ("/a%c3%b1", f"{ORIGIN}/a%C3%B1"),
        ("/100%", f"{ORIGIN}/100%25"),
        ("/a'b\"c<d>e&f", f"{ORIGIN}/a&apos;b%22c%3Cd%3Ee&amp;f"),
    ],
)
def test_an_image_may_be_on_any_host(location, text):
    """A path is on the sitemap's origin, a URL where it says; both are normalised as a loc."""
    assert image(location) == f"<image:image><image:loc>{text}</image:loc></image:image>"


def test_an_image_may_stand_above_the_sitemap():
    """Only pages must be below the sitemap's directory."""
    scope = Scope.of(f"{ORIGIN}/catalog/sitemap.xml")
    assert f"<image:loc>{ORIGIN}/media/a.png<" in image_element(
        Image(location="/media/a.png"), scope
    )


@pytest.mark.parametrize("url", BAD_URLS, ids=ascii)
def test_what_is_no_url_of_an_image(url):
    """What a page cannot show over http is refused, and the field is named."""
    code, message = refusal(image, url)
    assert (code, message.split(": ")[:2]) == (
        "invalid-url",
        ["Invalid URL", "location of an image"],
    )


def test_the_longest_url_of_an_image():
    """2,047 characters are accepted, counted percent-encoded and before entity escaping."""
    room = MAX_LOCATION - len(f"{ORIGIN}/")
    assert "&amp;" * room in image("/" + "&" * room)
    assert "2,048 characters, 2,047 at most" in refusal(image, "/" + "&" * (room + 1))[1]
    assert refusal(image, "/" + " " * (room // 3 + 1))[0] == "invalid-url"


# Videos


def test_a_whole_video_in_the_order_of_google():
    """Every tag stands in the order of Google's table, with its texts as they must be."""
    xml = video(
        title="Cats & <dogs>",
        description="\"Both\" and 'more'",
        player="https://play.example.net/?v=1&w=2",
        duration=600,
        expires=dt.datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC),
        rating=4.2,
        views=12_345,
        published=dt.datetime(2020, 1, 2, 3, 4, 5),  # noqa: DTZ001  in the zone given
        family_friendly=True,
        restriction=Allow("IE", "GB", "US"),
        platform=Deny("tv", "mobile"),
        requires_subscription=False,
        uploader="Ann & Bob",
        uploader_info="/people?a&b",
        live=False,
        tags=["a", "b & c"],
    )
    assert xml == (
        "<video:video>"
        "<video:thumbnail_loc>https://www.example.com/t.jpg</video:thumbnail_loc>"
        "<video:title>Cats &amp; &lt;dogs&gt;</video:title>"
        "<video:description>&quot;Both&quot; and &apos;more&apos;</video:description>"
        "<video:content_loc>https://www.example.com/v.mp4</video:content_loc>"
        "<video:player_loc>https://play.example.net/?v=1&amp;w=2</video:player_loc>"
        "<video:duration>600</video:duration>"
        "<video:expiration_date>2030-01-02T03:04:05+00:00</video:expiration_date>"
        "<video:rating>4.2</video:rating>"
        "<video:view_count>12345</video:view_count>"
        "<video:publication_date>2020-01-02T03:04:05+01:00</video:publication_date>"
        "<video:tag>a</video:tag><video:tag>b &amp; c</video:tag>"
        "<video:family_friendly>yes</video:family_friendly>"
        '<video:restriction relationship="allow">IE GB US</video:restriction>'
        "<video:requires_subscription>no</video:requires_subscription>"
        '<video:uploader info="https://www.example.com/people?a&amp;b">Ann &amp; Bob'
        "</video:uploader>"
        '<video:platform relationship="deny">tv mobile</video:platform>'
        "<video:live>no</video:live>"
        "</video:video>"
    )


@pytest.mark.parametrize("content", ["/v.mp4", None, ""])
def test_the_smallest_video(content):
    """What is None, or empty text, is left out; a player does instead of the content."""
    player = None if content else "/p"
    source = (
        "content_loc>https://www.example.com/v.mp4" if content else "player_loc>" + ORIGIN + "/p"
    )
    assert video(content=content, player=player, uploader="", uploader_info="") == (
        "<video:video><video:thumbnail_loc>https://www.example.com/t.jpg</video:thumbnail_loc>"
        "<video:title>T</video:title><video:description>D</video:description>"
        f"<video:{source}</video:{source.partition('>')[0]}></video:video>"
    )


@pytest.mark.parametrize(
    ("changes", "tag", "text"),
    [
        ({"description": "é" * 2048}, "description", "é" * 2048),
        ({"description": "&" * 2048}, "description", "&amp;" * 2048),
        ({"title": "t" * 101}, "title", "t" * 101),
        ({"duration": 1}, "duration", "1"),
        ({"duration": 28_800}, "duration", "28800"),
        ({"duration": dt.timedelta(minutes=1, milliseconds=900)}, "duration", "60"),
        ({"rating": 0}, "rating", "0.0"),
        ({"rating": -0.0}, "rating", "0.0"),
        ({"rating": 5}, "rating", "5.0"),
        ({"rating": Decimal("3.14")}, "rating", "3.1"),
        ({"rating": 0.1 + 0.2}, "rating", "0.3"),
        ({"views": 0}, "view_count", "0"),
        ({"expires": dt.date(2030, 1, 1)}, "expiration_date", "2030-01-01"),
        ({"published": "2020-01-02T03:04Z"}, "publication_date", "2020-01-02T03:04:00+00:00"),
        ({"live": True}, "live", "yes"),
        ({"requires_subscription": True}, "requires_subscription", "yes"),
        ({"family_friendly": False}, "family_friendly", "no"),
        ({"uploader": "u" * 255}, "uploader", "u" * 255),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_video_at_its_limits(changes, tag, text):
    """Each limit itself is allowed, and characters are counted before they are escaped."""
    assert tag_of(video(**changes), f"video:{tag}") == f"<video:{tag}>{text}</video:{tag}>"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"description": "d" * 2049}, "description of a video: 'ddd.* 2,049 .* 2,048 at most"),
        ({"uploader": "u" * 256}, "uploader of a video: .* 255 at most"),
        ({"duration": 0}, "duration of a video: '0' is not from 1 to 28,800"),
        ({"duration": 28_801}, "duration"),
        ({"duration": dt.timedelta(milliseconds=999)}, "duration"),
        ({"duration": dt.timedelta(days=-1)}, "duration"),
        ({"duration": 60.0}, "duration"),
        ({"duration": "60"}, "duration"),
        ({"duration": True}, "duration"),
        ({"rating": 5.01}, "rating of a video: '5.01' is not a decimal number from 0.0 to 5.0"),
        *(({"rating": rating}, "rating") for rating in (-0.1, True, "4", 1j, 10**400)),
        *(({"rating": float(word)}, "rating") for word in ("nan", "inf", "-inf")),
        *(({"rating": Decimal(word)}, "rating") for word in ("NaN", "sNaN", "Infinity", "5.01")),
        *(({"views": views}, "views of a video") for views in (-1, 1.0, True, "1")),
        *(({"live": live}, "live of a video") for live in ("yes", 1, 0)),
        ({"family_friendly": "no"}, "family_friendly of a video: 'no' is neither True nor False"),
        ({"requires_subscription": 1}, "requires_subscription of a video"),
        ({"content": PAGE}, "content of a video: .* the page's own URL"),
        ({"player": "/page"}, "player of a video: '/page' is the page's own URL"),
        ({"player": "HTTPS://www.example.com:443/page"}, "player of a video"),
        ({"restriction": Allow("ie")}, "restriction of a video: 'ie' is not a country"),
        *(({"restriction": Deny(c)}, "restriction") for c in ("", "IRL", "I", "I1", "IE GB", 1)),
        ({"restriction": ["IE"]}, "restriction of a video: .* is neither Allow"),
        ({"restriction": Restriction("IE")}, "restriction of a video: .* is neither Allow"),
        ({"platform": Allow("web", "radio")}, "platform of a video: 'radio'"),
        ({"platform": Allow("WEB")}, "platform of a video: 'WEB'"),
        ({"platform": Deny(1)}, "platform of a video: 1"),
        ({"tags": "abc"}, "tags of a video: 'abc' is a single string"),
        ({"tags": [1]}, "tag of a video: 1 is not a string"),
        ({"title": 1}, "title of a video: 1 is not a string"),
        (
            {"uploader": "u", "uploader_info": "https://other.example/u"},
            "uploader_info of a video: 'https://other.example/u' is not on the host",
        ),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_video_beyond_its_limits(changes, words):
    """One over, or of another kind, is an invalid value; field, value and limit are named."""
    with pytest.raises(InvalidValue, match=words) as caught:
        video(**changes)
    assert caught.value.code == "invalid-tag-value"
    assert str(caught.value).startswith("Invalid tag value: ")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        *(({field: empty}, field) for field in ("thumbnail", "title") for empty in (None, "")),
        ({"title": " \n"}, "title"),
        ({"description": ""}, "description"),
        ({"content": None}, "neither content nor player"),
        ({"content": "", "player": ""}, "neither content nor player"),
        ({"uploader_info": "/u"}, "uploader"),
        ({"restriction": Allow()}, "restriction"),
        ({"platform": Deny()}, "platform"),
        ({"tags": [""]}, "tag of a video"),
    ],
)
def test_a_video_without_what_it_needs(changes, field):
    """A required tag that is empty is missing; so is a source of the video, or its uploader."""
    code, message = refusal(video, **changes)
    assert code == "missing-xml-tag"
    assert message.startswith("Missing XML tag: ")
    assert field in message


def test_a_video_has_32_tags_at_most():
    """32 tags are written, in their order; more are refused."""
    tags = [f"t{number}" for number in range(33)]
    assert video(tags=tags[:32]).count("<video:tag>") == 32
    code, message = refusal(video, tags=tags)
    assert (code, "the limit is 32" in message) == ("too-many-tags", True)


PARTS = [
    ({"tags": ["t"] * 40}, {"too-many-tags": 1}, "<video:tag>t</video:tag>" * 32),
    ({"tags": ["a", "", 1, "b"]}, {"missing-xml-tag": 1, "invalid-tag-value": 1},
     "<video:tag>a</video:tag><video:tag>b</video:tag>"),
    ({"tags": 5}, {"invalid-tag-value": 1}, ""),
    ({"tags": None}, {}, ""),
    ({"tags": iter("ab")}, {}, "<video:tag>a</video:tag><video:tag>b</video:tag>"),
    ({"family_friendly": "no"}, {"invalid-tag-value": 1}, ""),
    ({"rating": 9}, {"invalid-tag-value": 1}, ""),
    ({"duration": "PT1H"}, {"invalid-tag-value": 1}, ""),
    ({"views": 10**5000}, {"invalid-tag-value": 1}, ""),
    ({"expires": "soon"}, {"invalid-date": 1}, ""),
    ({"uploader": "u" * 256}, {"invalid-tag-value": 1}, ""),
    ({"uploader": "u", "uploader_info": "mailto:u"}, {"invalid-url": 1},
     "<video:uploader>u</video:uploader>"),
    ({"restriction": Allow("IE", "uk")}, {"invalid-tag-value": 1},
     '<video:restriction relationship="allow">IE</video:restriction>'),
    ({"platform": Deny("radio")}, {"invalid-tag-value": 1}, ""),
    ({"player": PAGE}, {"invalid-tag-value": 1}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "problems", "written"), PARTS)
def test_an_optional_part_costs_itself(changes, problems, written):
    """The video keeps what is right, and each part that it loses is reported."""
    found = Counter()
    whole = replace(VIDEO, **changes)
    xml = video_element(whole, SCOPE, PAGE, MADRID, lambda error: found.update([error.code]))
    assert xml.replace(written, "") == video()
    assert written in xml
    assert found == problems


def test_a_source_that_is_wrong_leaves_the_other():
    """A video needs one of them; without any, it is refused and not reported in parts."""
    found = []
    one = replace(VIDEO, content="mailto:x", player="/p")
    xml = video_element(one, SCOPE, PAGE, MADRID, found.append)
    assert ("<video:player_loc>" in xml, "content_loc" in xml) == (True, False)
    assert [error.code for error in found] == ["invalid-url"]
    with pytest.raises(InvalidValue):
        video_element(replace(one, player=PAGE), SCOPE, PAGE, MADRID, found.append)
    assert len(found) == 1


@pytest.mark.parametrize("field", ["thumbnail", "content", "player", "uploader_info"])
@pytest.mark.parametrize("url", BAD_URLS, ids=ascii)
def test_every_url_of_a_video_is_checked(field, url):
    """The rules for an image's location hold for each URL of a video."""
    code, message = refusal(video, uploader="u", **{field: url})
    assert (code, message.split(": ")[1]) == ("invalid-url", f"{field} of a video")


@pytest.mark.parametrize("field", ["published", "expires"])
@pytest.mark.parametrize("value", ["2005-02-30", "2005", "x" * 10_000, 1, "2005-01-01 00:00:00"])
def test_the_dates_of_a_video_are_checked(field, value):
    """What is no W3C datetime is refused as an invalid date, and the field is named."""
    code, message = refusal(video, **{field: value})
    assert (code, message.split(": ")[1]) == ("invalid-date", f"{field} of a video")


def test_the_host_of_an_uploader_is_that_of_the_page():
    """Scheme and port may be others, a subdomain may not."""
    assert 'info="http://www.example.com:8080/u"' in video(
        uploader="u", uploader_info="http://www.example.com:8080/u"
    )
    assert refusal(video, uploader="u", uploader_info="https://example.com/u")[0]


# News


def test_a_whole_article():
    """The publication comes first, its name and its language within; then date and title."""
    assert news(
        publication="The <Example> Times",
        published=dt.datetime(2026, 11, 20, 12),  # noqa: DTZ001  in the zone given
        title="A & B",
    ) == (
        "<news:news><news:publication><news:name>The &lt;Example&gt; Times</news:name>"
        "<news:language>en</news:language></news:publication>"
        "<news:publication_date>2026-11-20T12:00:00+01:00</news:publication_date>"
        "<news:title>A &amp; B</news:title></news:news>"
    )


@pytest.mark.parametrize(
    ("language", "written"),
    [
        *(("en", "en"), ("EN", "en"), ("ast", "ast"), ("zh-cn", "zh-cn"), ("zh-TW", "zh-tw")),
        *(("en-us", "en"), ("en_GB", "en"), ("pt-br", "pt"), ("es-419", "es"), ("sr-latn", "sr")),
        *(("zh-hans", "zh-cn"), ("zh-hant", "zh-tw"), ("zh-Hant-CN", "zh-tw"), ("zh", "zh")),
        *(("zh-hk", "zh-tw"), ("zh-sg", "zh-cn"), ("zh_cn", "zh-cn")),
    ],
)
def test_the_languages_of_news(language, written):
    """Codes as Django has them are written as Google takes them: without a region, but Chinese."""
    assert f"<news:language>{written}</news:language>" in news(language=language)


def test_each_language_that_django_knows_is_one_of_news():
    """Whatever LANGUAGE_CODE is, an article in it is written."""
    for language, _ in global_settings.LANGUAGES:
        assert "<news:language>" in news(language=language)


@pytest.mark.parametrize("language", ["e", "engl", "english-gb", "-en", "e1", "en ", "ñ€", 5])
def test_what_is_no_language_of_news(language):
    """What has no code of two or three letters is refused."""
    code, message = refusal(news, language=language)
    assert (code, "language of news" in message) == ("invalid-tag-value", True)


@pytest.mark.parametrize("field", ["publication", "language", "published", "title"])
def test_news_without_what_it_needs(field):
    """All four are required."""
    code, message = refusal(news, **{field: None})
    assert code == "missing-xml-tag"
    assert message.startswith(f"Missing XML tag: {field} of news is empty")
    assert refusal(news, **{field: ""})[0] in {"missing-xml-tag", "invalid-date"}


def test_the_date_of_news_is_checked():
    """An invalid date is refused by name."""
    assert "published of news" in refusal(news, published="2026-11-31")[1]


# Elements of one's own


def test_an_element_of_ones_own():
    """Text, attributes and children are escaped; the text comes before the children."""
    xml = own(
        name="shop:offer",
        text="1 < 2 & 3",
        attributes={"currency": 'E"U\n\t\rR', "shop:x": "<y>", "xml:lang": "es"},
        children=[Element(name="shop:price", text="9"), Element(name="shop:stock.a-b_c")],
    )
    assert xml == (
        '<shop:offer currency="E&quot;U&#10;&#9;&#13;R" shop:x="&lt;y&gt;" xml:lang="es">'
        "1 &lt; 2 &amp; 3<shop:price>9</shop:price><shop:stock.a-b_c/></shop:offer>"
    )


@pytest.mark.parametrize("name", ["price", "other:price", "image:loc", ":price"])
def test_an_element_needs_a_declared_prefix(name):
    """Without a prefix it would be one of the protocol's; an undeclared one is no XML."""
    assert refusal(own, name=name)[0] in {"wrong-namespace", "invalid-xml-tag"}
    assert refusal(own, name="shop:a", children=[Element(name=name)])[0]


@pytest.mark.parametrize(
    "name",
    ["", "shop:", "shop:1", "shop:a b", "shop:a:b", "shop:a>", "shop:a/><x", "shop:é", 1, None],
)
def test_what_is_no_name(name):
    """A name cannot smuggle anything into the document."""
    assert refusal(own, name=name)[0] == "invalid-xml-tag"
    assert refusal(own, name="shop:a", attributes={name: "x"})[0] == "invalid-xml-tag"


@pytest.mark.parametrize("name", ["xmlns", "xmlns:shop", "other:x"])
def test_an_attribute_declares_no_namespace(name):
    """Namespaces are declared on the root, where the writer does it."""
    assert refusal(own, name="shop:a", attributes={name: "x"})[0] in {
        "wrong-namespace",
        "invalid-xml-tag",
    }


def test_an_element_may_be_empty():
    """Empty text is text, and an empty attribute is one."""
    assert own(name="shop:a", text="", attributes={"b": ""}) == '<shop:a b=""/>'
    code, message = refusal(own, name="shop:a", attributes={"b": None})
    assert code == "invalid-tag-value"
    assert "b of shop:a: None is not a string" in message
    assert refusal(own, name="shop:a", text=1)[0] == "invalid-tag-value"


# Text in general

TEXTS = {
    "title of a video": lambda text: video(title=text),
    "description of a video": lambda text: video(description=text),
    "uploader of a video": lambda text: video(uploader=text),
    "tag of a video": lambda text: video(tags=[text]),
    "publication of news": lambda text: news(publication=text),
    "title of news": lambda text: news(title=text),
    "text of shop:a": lambda text: own(name="shop:a", text=text),
    "b of shop:a": lambda text: own(name="shop:a", attributes={"b": text}),
}


@pytest.mark.parametrize("field", TEXTS)
@pytest.mark.parametrize("character", ILLEGAL, ids=ascii)
def test_text_that_xml_forbids_is_refused(field, character):
    """A character XML forbids is refused in every text, never written raw nor as ``&#N;``."""
    code, message = refusal(TEXTS[field], f"a{character}b")
    assert (code, field in message) == ("invalid-tag-value", True)
    assert f"U+{ord(character):04X}" in message


@pytest.mark.slow
@pytest.mark.parametrize("field", TEXTS)
@given(text=st.text() | st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
@example(text="a\rb\r\nc\td ]]> &amp; <![CDATA[x")
def test_any_text_comes_back_or_is_refused(field, text):
    """A parser gives back every text that is written, to the character; the rest is refused."""
    try:
        xml = TEXTS[field](text)
    except InvalidValue:
        return
    element = parsed(xml)
    found = [node.text or "" for node in element.iter()] + list(element.attrib.values())
    assert text in found


@pytest.mark.slow
@given(hreflang=st.text(max_size=40), path=st.text())
def test_any_link_is_well_formed_or_refused(hreflang, path):
    """Whatever the code and the URL, a link has its three attributes and nothing else."""
    try:
        location = normalise_url(f"/{path}", ORIGIN)
        xml = alternate_elements([(format_hreflang(hreflang), location)])
    except InvalidValue:
        return
    link = parsed(xml)
    assert link.tag == f"{{{NAMESPACES['xhtml']}}}link"
    assert dict(link.attrib) == {
        "rel": "alternate",
        "hreflang": format_hreflang(hreflang),
        "href": location,
    }
    assert len(link) == 0


# Languages


def test_a_link_to_another_language():
    """The code is as Google writes it, the URL escaped."""
    assert alternate_elements([(format_hreflang("zh-hant"), f"{ORIGIN}/?a&b")]) == (
        '<xhtml:link rel="alternate" hreflang="zh-Hant" href="https://www.example.com/?a&amp;b"/>'
    )


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "en"),
        ("EN", "en"),
        ("en-gb", "en-GB"),
        ("pt-br", "pt-BR"),
        ("zh-hans", "zh-Hans"),
        ("ZH-HANT-tw", "zh-Hant-TW"),
        ("sr-latn", "sr-Latn"),
        ("es-419", "es-419"),
        ("ca-valencia", "ca-valencia"),
        ("X-Default", "x-default"),
        ("ckb", "ckb"),
    ],
)
def test_codes_are_written_as_google_writes_them(code, text):
    """Language in lower case, script capitalised, region in capitals."""
    assert format_hreflang(code) == text


@pytest.mark.parametrize(
    "code",
    [
        *("", "e", "en_GB", "en GB", " en", "en\n", 'en"', "en<", "en-", "-en", "x-other", "ñu"),
        *("\ud800", "e\x00n", "en--gb", "abcdefghi", "en-abcdefghi", "en" + "-a" * 5, "en" * 999),
        *(None, 1, ["en"]),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_what_can_be_no_code(code):
    """Control characters, spaces, quotes and other shapes are refused, also within a link."""
    code_of_it, message = refusal(format_hreflang, code)
    assert code_of_it == "invalid-attribute-value"
    assert message.startswith("Invalid attribute value: hreflang ")
    assert refusal(format_hreflang, code)[0] == "invalid-attribute-value"
    assert refusal(hreflang_doubt, code)[0] == "invalid-attribute-value"


def test_the_languages_and_regions_of_iso():
    """There are 183 languages with two letters, and 249 regions."""
    assert len(LANGUAGES) == 183
    assert len(REGIONS) == 249
    assert {"en", "es", "fr", "zh", "he", "id", "yi", "uk"} <= LANGUAGES
    assert not {"iw", "in", "ji", "jp", "gb", "bh", "sh"} & LANGUAGES
    assert {"GB", "ES", "FR", "TW"} <= REGIONS
    assert not {"UK", "EU", "EN"} & REGIONS


@pytest.mark.parametrize("code", ["en", "en-gb", "zh-hant-tw", "sr-latn", "x-default", "zh-hans"])
def test_what_google_understands(code):
    """A language, a script and a region, or x-default, leave no doubt."""
    assert hreflang_doubt(code) == ""


@pytest.mark.parametrize(
    ("code", "doubt"),
    [
        *(
            (code, f"{code} is not a language of ISO 639-1.")
            for code in ("ast", "ckb", "dsb", "hsb")
        ),
        *(
            (code, f"{code} is not a language of ISO 639-1.")
            for code in ("hsb", "kab", "udm", "xx")
        ),
        ("gb", "gb is a region without a language."),
        ("US", "us is a region without a language."),
        ("en-uk", "UK in en-UK is not a region of ISO 3166-1; write GB."),
        ("en-eu", "EU in en-EU is not a region of ISO 3166-1."),
        ("es-419", "es-419 is not understood"),
        ("ca-valencia", "ca-valencia is not understood"),
        ("en-gb-latn", "en-GB-Latn is not understood"),
    ],
)
def test_what_google_will_not_understand(code, doubt):
    """Django's codes beyond ISO 639-1, a bare region and UN regions are doubted, with a reason."""
    assert hreflang_doubt(code).startswith(doubt)


# All together


@pytest.mark.parametrize(
    "xml",
    [
        image("https://cdn.example.net/a b.png?c&d"),
        video(
            duration=1,
            rating=5,
            restriction=Allow("IE"),
            platform=Deny("tv"),
            tags=["a"] * 32,
        ),
        video(uploader="u", uploader_info="/u", live=True, published=dt.date(2020, 1, 1), views=3),
        news(),
        alternate_elements([("en", PAGE), ("zh-Hans", "https://cn.example/")]),
        own(name="shop:a", text="b"),
    ],
    ids=lambda xml: xml[:20],
)
def test_the_validator_finds_nothing_wrong(xml):
    """What is written here is what the reader asks for."""
    declared = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    report = validate(
        [
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
            f'xmlns:shop="{SHOP}" {declared}><url><loc>{PAGE}</loc>{xml}</url></urlset>'.encode()
        ],
        f"{ORIGIN}/sitemap.xml",
        now=dt.datetime(2026, 11, 20, tzinfo=dt.UTC),
    )
    assert report.findings == ()
    assert report.valid
