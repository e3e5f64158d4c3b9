"""What is written, read by the parser of the npm package ``sitemap``: each element, in its order.

The package is installed into a folder of the run, by npm; without npm or a network the tests are
skipped, under CI they fail.
"""

import datetime as dt
import json
import os
import shutil
import subprocess

import pytest
from lxml import etree

from django_sitemapkit import Allow, Deny, Element, Image, News, Video
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering
from tests.factories import SITE
from tests.languages import COLUMNS, place, places

pytestmark = [
    pytest.mark.readers, pytest.mark.django_db, pytest.mark.urls("tests.urls_languages"),
]  # fmt: skip

HOST = "https://www.example.com"
PARSE = """
import { XMLToSitemapItemStream } from "sitemap";

const reported = [];
const logger = (...message) => reported.push(message);
const items = [];
for await (const item of process.stdin.pipe(new XMLToSitemapItemStream({ logger }))) {
    items.push(item);
}
console.log(JSON.stringify({ items, reported }));
"""


@pytest.fixture(scope="session")
def npm(tmp_path_factory):
    """Return a folder in which node finds the package."""
    folder = tmp_path_factory.mktemp("npm")
    if shutil.which("npm") is None:
        reason = "there is no npm"
    else:
        done = subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--no-fund", "sitemap@9"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            (folder / "parse.mjs").write_text(PARSE)
            return folder
        reason = f"npm could not install sitemap: {done.stderr[-500:]}"
    return pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


def parsed(npm, section):
    """Return the items that the parser finds, which has nothing to remark, and the document."""
    rendering = PageRendering(section, EVERYTHING, SITE.scope())
    document = b"".join(rendering)
    assert not rendering.problems, rendering.problems.summary()
    done = subprocess.run(
        ["node", "parse.mjs"], cwd=npm, input=document, capture_output=True, check=True
    )
    answer = json.loads(done.stdout)
    assert answer["reported"] == []
    return answer["items"], document


def names(document):
    """Return the names of the elements of each URL in their order, with prefixes as written."""
    return [
        [f"{tag.prefix}:{etree.QName(tag).localname}" if tag.prefix else etree.QName(tag).localname
         for tag in url.iterdescendants()]
        for url in etree.fromstring(document)
    ]  # fmt: skip


def alone(**options):
    """Return a section that lists each place once."""
    at = {"location": lambda self, obj: f"/{obj.slug}/", "i18n": False, "alternates": False}
    return places(**at | options)


def test_links_are_read(npm, settings):
    """Each version with all of them, and x-default."""
    settings.LANGUAGES = [("en", "English"), ("zh-hans", "Chinese")]
    place("a")
    items, document = parsed(npm, places(x_default="en"))
    en, zh = f"{HOST}/en/places/a/", f"{HOST}/zh-hans/places/a/"
    every = [
        {"lang": "en", "url": en}, {"lang": "zh-Hans", "url": zh}, {"lang": "x-default", "url": en},
    ]  # fmt: skip
    assert [(item["url"], item["links"]) for item in items] == [(en, every), (zh, every)]
    assert names(document) == [["loc", "xhtml:link", "xhtml:link", "xhtml:link"]] * 2


def test_images_are_read(npm):
    """In their order, escaped once."""
    place("a")
    images = ["/a b.jpg?x=1&y=2", Image(location="https://cdn.example.net/é.png")]
    (item,), document = parsed(npm, alone(images=lambda self, obj: images))
    assert item["img"] == [
        {"url": f"{HOST}/a%20b.jpg?x=1&y=2"}, {"url": "https://cdn.example.net/%C3%A9.png"},
    ]  # fmt: skip
    assert names(document) == [["loc", *["image:image", "image:loc"] * 2]]


def test_a_full_video_is_read(npm):
    """With every field that Google knows, in the order of sitemap-video.xsd."""
    place("a")
    video = Video(
        thumbnail="/t.jpg", title="A & B", description="It's <new>", content="/v.mp4", player="/p",
        duration=dt.timedelta(minutes=10), expires=dt.date(2030, 1, 2), rating=4.25, views=12345,
        published=dt.datetime(2026, 3, 1, 9, 30, tzinfo=dt.UTC), family_friendly=True,
        restriction=Allow("IE", "GB"), platform=Deny("tv", "mobile"),
        requires_subscription=False, uploader="Ann", uploader_info="/ann", live=False,
        tags=["one", "two"],
    )  # fmt: skip
    (item,), document = parsed(npm, alone(videos=lambda self, obj: video))
    assert item["video"] == [
        {
            "thumbnail_loc": f"{HOST}/t.jpg", "title": "A & B", "description": "It's <new>",
            "content_loc": f"{HOST}/v.mp4", "player_loc": f"{HOST}/p", "duration": 600,
            "expiration_date": "2030-01-02", "rating": 4.2, "view_count": 12345,
            "publication_date": "2026-03-01T09:30:00+00:00", "family_friendly": "yes",
            "restriction": "IE GB", "restriction:relationship": "allow",
            "platform": "tv mobile", "platform:relationship": "deny",
            "requires_subscription": "no", "uploader": "Ann", "uploader:info": f"{HOST}/ann",
            "live": "no", "tag": ["one", "two"],
        }
    ]  # fmt: skip
    fields = (
        "thumbnail_loc title description content_loc player_loc duration expiration_date rating"
        " view_count publication_date tag tag family_friendly restriction requires_subscription"
        " uploader platform live"
    )
    assert names(document) == [["loc", "video:video", *[f"video:{f}" for f in fields.split()]]]


def test_the_least_video_is_read(npm):
    """And two of one page."""
    place("a")
    videos = [
        Video(thumbnail="/t.jpg", title=title, description="D", player="/p") for title in "AB"
    ]
    (item,), _ = parsed(npm, alone(videos=lambda self, obj: videos))
    assert [video["title"] for video in item["video"]] == ["A", "B"]


def test_news_is_read(npm):
    """The publication, its language, the date and the title."""
    place("a")
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    news = News(publication="The Times", language="zh-cn", published=now, title="A & B")
    (item,), document = parsed(npm, alone(news=lambda self, obj: news))
    assert item["news"] == {
        "publication": {"name": "The Times", "language": "zh-cn"},
        "publication_date": now.isoformat(), "title": "A & B",
    }  # fmt: skip
    assert names(document) == [
        ["loc", "news:news", "news:publication", "news:name", "news:language",
         "news:publication_date", "news:title"]
    ]  # fmt: skip


def test_all_of_them_are_read_together(npm):
    """Beside the tags of the protocol, which come first."""
    place("a", "en", "es", cover="c.jpg")
    edited = dt.datetime(2026, 3, 1, 9, 30, tzinfo=dt.UTC)
    section = places(
        location=COLUMNS, images="cover", priority=0.5, changefreq="weekly",
        lastmod=lambda self, obj: edited,
        videos=lambda self, obj: Video(thumbnail="/t", title="T", description="D", player="/p"),
        news=lambda self, obj: News(
            publication="P", language="en", published=dt.datetime.now(dt.UTC), title="T"
        ),
    )  # fmt: skip
    items, document = parsed(npm, section)
    assert len(items) == 2
    for item in items:
        assert (item["priority"], item["changefreq"]) == (0.5, "weekly")
        assert dt.datetime.fromisoformat(item["lastmod"]) == edited
        assert [len(item[name]) for name in ("links", "img", "video")] == [2, 1, 1]
        assert item["news"]["title"] == "T"
    for tags in names(document):
        assert tags[:4] == ["loc", "lastmod", "changefreq", "priority"]


def test_own_elements_are_passed_over(npm):
    """A reader that does not know them reads the rest; this one says that it does not."""
    place("a")
    section = alone(
        elements=lambda self, obj: Element(name="shop:price", text="1"),
        namespaces={"shop": "https://example.com/shop"},
    )
    document = b"".join(PageRendering(section, EVERYTHING, SITE.scope()))
    done = subprocess.run(
        ["node", "parse.mjs"], cwd=npm, input=document, capture_output=True, check=True
    )
    answer = json.loads(done.stdout)
    assert [item["url"] for item in answer["items"]] == [f"{HOST}/a/"]
    assert all("shop:price" in str(message) for message in answer["reported"])
