"""The writers and the validator keep the same rules: what is written is valid."""

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.audit.reader import validate
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.extensions import image_element, news_element, video_element
from django_sitemapkit.protocol.extensions.values import Allow, Deny, Image, News, Video
from django_sitemapkit.protocol.limits import NAMESPACES
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.protocol.writers import UrlsetWriter

ORIGIN = "https://www.example.com"
SCOPE = Scope(ORIGIN)
NOW = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)

TEXTS = st.text(max_size=12) | st.sampled_from(["x" * 255, "x" * 256, "x" * 2_048, "x" * 2_049])
URLS = st.text(st.sampled_from("/.%2e:@#ab ü\t"), max_size=12).map("/{}".format) | st.sampled_from(
    [
        *("/page", f"{ORIGIN}:0/x", "https://-a.example/x", "//cdn.example/x", "https://a.b:99/x"),
        *("ftp://a.example/x", "https://[::1]/x", f"{ORIGIN}/{'x' * 2_030}", "https://a_b.example"),
    ]
)
NUMBERS = st.one_of(
    st.integers(-2, 28_802), st.integers(10**17, 10**19), st.floats(), st.decimals(), st.booleans()
)
DATES = st.one_of(
    st.dates(),
    st.datetimes(timezones=st.just(dt.UTC) | st.none()),
    st.sampled_from(["2026", "2026-01-01T00:00Z", "2026-02-30", "2026-01-01T00:00:00.5+15:00"]),
)
MAYBE = st.none() | st.booleans() | TEXTS
RESTRICTIONS = st.builds(
    lambda kind, values: kind(*values),
    st.sampled_from([Allow, Deny]),
    st.lists(st.sampled_from(["IE", "GB", "ie", "IE GB", "", "web", "tv", "WEB"]), max_size=3),
)
VIDEOS = st.builds(
    Video,
    thumbnail=URLS,
    title=TEXTS,
    description=TEXTS,
    content=st.none() | URLS,
    player=st.none() | URLS,
    duration=st.none() | NUMBERS,
    expires=st.none() | DATES,
    rating=st.none() | NUMBERS,
    views=st.none() | NUMBERS,
    published=st.none() | DATES,
    family_friendly=MAYBE,
    restriction=st.none() | RESTRICTIONS,
    platform=st.none() | RESTRICTIONS,
    requires_subscription=MAYBE,
    uploader=st.none() | TEXTS,
    uploader_info=st.none() | URLS,
    live=MAYBE,
    tags=st.lists(TEXTS, max_size=2) | st.lists(st.just("t"), min_size=31, max_size=34),
)
NEWS = st.builds(
    News,
    publication=TEXTS,
    language=TEXTS | st.sampled_from(["en", "ast", "zh-TW", "en-gb"]),
    published=DATES,
    title=TEXTS,
)


def written(write, *arguments):
    """Return what a writer returns, or None where it refuses the value."""
    try:
        return write(*arguments)
    except InvalidValue:
        return None


def require_valid(**columns):
    """Assert that the validator finds no error in a document of one entry."""
    writer = UrlsetWriter(namespaces=NAMESPACES)
    head = writer.begin()
    entry, _ = writer.add([f"{ORIGIN}/page"], **columns)
    report = validate([head + entry + writer.end()], f"{ORIGIN}/sitemap.xml", now=NOW)
    assert [finding for finding in report.findings if finding.level == "error"] == []
    assert report.valid


def valid_alone(make, changes):
    """Assert of a value, changed in one field at a time, that it is valid where it is written."""
    for xml in map(make, changes):
        if xml is not None:
            require_valid(extensions=xml)


@pytest.mark.slow
@given(VIDEOS)
def test_videos(video):
    """Each field by itself in a valid video, so that one invalid value hides no other."""
    small = {"thumbnail": "/t", "title": "T", "description": "D", "content": "/v", "uploader": "u"}

    def make(name):
        changed = Video(**(small | {name: getattr(video, name)}))
        return written(video_element, changed, SCOPE, f"{ORIGIN}/page", dt.UTC)

    valid_alone(make, Video.__dataclass_fields__)


@pytest.mark.slow
@given(NEWS)
def test_news(news):
    """Each field by itself in a valid article."""
    small = {"publication": "P", "language": "en", "published": "2026-01-01", "title": "T"}
    valid_alone(
        lambda name: written(news_element, News(**(small | {name: getattr(news, name)})), dt.UTC),
        small,
    )


@pytest.mark.slow
@given(URLS)
def test_images(url):
    """The location of an image."""
    valid_alone(lambda image: written(image_element, image, SCOPE), [Image(location=url)])


@given(
    DATES,
    NUMBERS | st.sampled_from(["0.5", "1.", "+1", Decimal("0.30")]),
    TEXTS | st.sampled_from(["daily", "Daily", " never"]),
)
def test_optional_tags(lastmod, priority, changefreq):
    """Whatever text they are given in."""
    require_valid(
        lastmod=written(format_lastmod, lastmod),
        priority=written(format_priority, priority),
        changefreq=written(format_changefreq, changefreq),
    )
