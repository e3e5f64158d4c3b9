"""Images of a column: of the rows themselves, or of rows beside them."""

from urllib.parse import quote

import pytest
from django.core.files.storage import FileSystemStorage, InMemoryStorage
from django.db.models import F, Value
from django.db.models.functions import Concat, Lower

from tests.languages import ROUTE, place, places, render, texts
from tests.testapp.models import Photo, Place

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.urls_languages")]

CDN = "https://cdn.example.net/media"


def images(**options):
    """Return the images of each place, without the host of the site."""
    section = places(**{"i18n": False, "alternates": False, **options})
    found = texts(render(section)[1], "i:image/i:loc")
    return [[text.removeprefix("https://www.example.com") for text in some] for some in found]


class Cloud(FileSystemStorage):
    """Names its files by absolute URLs on another host, and one of them by none."""

    def url(self, name):
        if "gone" in name:
            raise FileNotFoundError(name)
        if "slow" in name:
            raise TimeoutError(name)
        return f"{CDN}/{name}?sig=1&x=2"


@pytest.fixture
def cloud(monkeypatch):
    """Let the files of places be in a storage of another host."""
    for model, field in ((Place, "cover"), (Photo, "file")):
        monkeypatch.setattr(model._meta.get_field(field), "storage", Cloud())


@pytest.mark.slow
@pytest.mark.parametrize("option", ["cover", F("cover")], ids=["text", "F()"])
@pytest.mark.parametrize("by_objects", [False, True], ids=["columns", "objects"])
def test_a_file_has_the_url_of_its_storage(settings, option, by_objects):
    """By whatever is read; a path is on the host of the site, and a row without a file has none."""
    settings.MEDIA_URL = "/media/"
    place("a", cover="x y/ü.jpg")
    place("b")
    more = {"lastmod": lambda self, obj: None} if by_objects else {}
    assert images(images=option, **more) == [["/media/x%20y/%C3%BC.jpg"], []]


class Plain(FileSystemStorage):
    """Changes nothing, which nobody can tell."""


@pytest.mark.parametrize(
    ("option", "storage", "media", "prefix"),
    [
        ("cover", None, "/media/", "/media/"),
        ("cover", None, "", "/"),
        ("cover", None, "/media", "/"),
        ("cover", None, "/a b/?c", "/a b/"),
        ("cover", FileSystemStorage(base_url=CDN), "", f"{CDN}/"),
        ("cover", FileSystemStorage(base_url="s3:"), "", ""),
        ("cover", Plain(), "/media/", ""),
        ("cover", Cloud(), "/media/", ""),
        ("cover", InMemoryStorage(), "/media/", ""),
        (Lower("cover"), None, "/media/", ""),
        ("slug", None, "/media/", ""),
        ("photos__file", None, "/media/", ""),
    ],
)
def test_the_urls_of_local_files_are_known_by_their_prefix(
    settings, monkeypatch, option, storage, media, prefix
):
    """Of Django's own storage alone; any other may do as it likes."""
    settings.MEDIA_URL = media
    if storage is not None:
        monkeypatch.setattr(Place._meta.get_field("cover"), "storage", storage)
    assert places(images=option).images_path.url_prefix() == prefix
    if prefix:
        for name in ("a.jpg", "2024/b_-.c/d.jpg", "ü"):
            assert Place(cover=name).cover.url == prefix + quote(name)


def test_a_storage_may_be_on_another_host(cloud):
    """Google lets images be anywhere; its query is escaped once."""
    place("a", cover="a.jpg")
    assert images(images="cover") == [[f"{CDN}/a.jpg?sig=1&x=2"]]


def test_media_may_be_on_another_host(settings):
    """So does MEDIA_URL."""
    settings.MEDIA_URL = f"{CDN}/"
    place("a", cover="a.jpg")
    assert images(images="cover") == [[f"{CDN}/a.jpg"]]


@pytest.mark.parametrize("option", ["cover", "photos__file"])
def test_a_storage_that_raises_costs_the_image(cloud, option):
    """It is named, and the row and its other images are listed."""
    made = place("a", cover="gone.jpg")
    made.photos.create(file="gone.jpg")
    made.photos.create(file="b.jpg")
    section = places(images=option, i18n=False, alternates=False)
    rendering, document = render(section)
    assert document.count(b"<url>") == 1
    assert document.count(b"<image:image>") == (option != "cover")
    (problem,) = rendering.problems.examples
    assert (problem.code, problem.skipped) == ("exception", False)
    assert problem.message == "images raised FileNotFoundError: gone.jpg"


def test_a_storage_that_is_down_fails_the_page(cloud):
    """That says nothing about the row it happened to meet."""
    place("a", cover="slow.jpg")
    with pytest.raises(TimeoutError):
        images(images="cover")


def test_a_column_may_hold_urls(settings):
    """Or an expression make them, whatever MEDIA_URL is."""
    settings.MEDIA_URL = "/media/"
    made = place("a")
    Photo.objects.create(place=made, address=f"{CDN}/1.jpg")
    Photo.objects.create(place=made, address="")
    assert images(images="photos__address") == [[f"{CDN}/1.jpg"]]
    assert images(images=Concat(Value("/i/"), "slug")) == [["/i/a"]]
    annotated = Place.objects.annotate(picture=Concat(Value("/p/"), "slug"))
    assert images(queryset=annotated, images="picture") == [["/p/a"]]


def test_a_path_may_lead_over_a_relation_to_one():
    """To a file, whose storage is asked."""
    made = place("a", cover="a.jpg")
    Photo.objects.create(place=made)
    Photo.objects.create(place=place("b"))
    found = images(queryset=Photo.objects.all(), location=lambda self, o: f"/{o.pk}/",
                   images="place__cover")  # fmt: skip
    assert found == [["/a.jpg"], []]


def test_a_path_to_many_gives_them_in_their_order():
    """That of their keys, and those of each row alone; None and the empty text are none."""
    a, b, _ = place("a"), place("b"), place("c")
    for made, file in ((b, "1"), (a, "2"), (b, "3"), (a, None), (a, ""), (a, "0"), (b, "2")):
        Photo.objects.create(place=made, file=file)
    for more in ({}, {"lastmod": lambda self, obj: None}):
        assert images(images="photos__file", **more) == [["/2", "/0"], ["/1", "/3", "/2"], []]


def test_each_version_has_the_images_of_its_object():
    """A column is the same in all languages."""
    place("a", cover="a.jpg").photos.create(file="b.jpg")
    assert (
        texts(render(places(images="cover"))[1], "i:image/i:loc")
        == [["https://www.example.com/a.jpg"]] * 3
    )
    assert (
        texts(render(places(images="photos__file"))[1], "i:image/i:loc")
        == [["https://www.example.com/b.jpg"]] * 3
    )


def test_the_namespace_is_declared_where_images_are():
    """And nowhere else."""
    place("a")
    assert b"sitemap-image" in render(places(images="cover"))[1]
    assert b"sitemap-image" not in render(places())[1]


def test_a_declaration_tells_where_the_files_are(settings, monkeypatch):
    """Another MEDIA_URL or storage gives all images other URLs, which no row tells."""

    def shown():
        return places(images="cover", location=ROUTE).declaration_text()

    before = shown()
    assert shown() == before
    settings.MEDIA_URL = "/files/"
    moved = shown()
    monkeypatch.setattr(Place._meta.get_field("cover"), "storage", Cloud())
    assert len({before, moved, shown()}) == 3


def test_a_storage_that_knows_its_files_alone_is_no_trouble(monkeypatch):
    """One with a manifest raises for any name that is not in it."""

    class Strict(FileSystemStorage):
        def url(self, name):
            raise ValueError(name)

    monkeypatch.setattr(Place._meta.get_field("cover"), "storage", Strict())
    assert places(images="cover").declaration_text()
