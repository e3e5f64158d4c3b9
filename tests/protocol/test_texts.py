"""Text sitemaps out of XML, whatever blocks it comes in."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.texts import text_blocks
from django_sitemapkit.protocol.writers import UrlsetWriter

SCOPE = Scope.of("https://www.example.com/sitemap.xml")
IMAGE = "<image:image><image:loc>https://cdn.example.com/a.jpg</image:loc></image:image>"
OWN = '<x:part xmlns="http://a.example/"><loc>https://a.example/</loc></x:part>'


def document(*paths, **tags):
    """Return the XML of some paths, and their locations."""
    locations = [SCOPE.normalise(path) for path in paths]
    writer = UrlsetWriter()
    head = writer.begin()
    return head + writer.add(locations, **tags)[0] + writer.end(), locations


def text(blocks):
    """Return what the blocks become."""
    return b"".join(text_blocks(blocks)).decode()


def blocks_of(data, size):
    """Cut data into blocks of a size."""
    return [data[start : start + size] for start in range(0, len(data), size)]


AWKWARD = ("/", "/a?b=1&c=2", "/it's", "/&amp;", "/&lt;loc&gt;", "/ñ", "/a;b&apos;")


@pytest.mark.parametrize("size", range(1, 40))
def test_every_boundary_of_blocks(size):
    """A tag, an entity or a location may be cut anywhere."""
    xml, locations = document(*AWKWARD, lastmod="2024-02-29", extensions=IMAGE)
    assert text(blocks_of(xml, size)) == "".join(f"{location}\n" for location in locations)


@pytest.mark.slow
@given(st.lists(st.text(st.characters(categories=["L", "N", "P", "S"])), max_size=20), st.data())
def test_text_and_xml_list_the_same(paths, data):
    """Whatever the paths and the cuts, the lines are the locations, in order."""
    xml, locations = document(*(f"/p{path.replace('#', '')}" for path in paths))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(xml)), max_size=8)))
    ends = [0, *cuts, len(xml)]
    blocks = [xml[start:end] for start, end in pairwise(ends)]
    assert text(blocks).splitlines() == locations


def test_only_the_locations_of_pages_count():
    """An image's ``loc`` is none, nor is one of a project's own element."""
    xml, locations = document("/a", "/b", extensions=IMAGE + OWN)
    assert text([xml]).splitlines() == locations == [f"{SCOPE.origin}/a", f"{SCOPE.origin}/b"]


def test_text_goes_on_as_it_comes():
    """Each block is handed on before the next is asked for."""
    asked = []

    def xml():
        for number in range(3):
            asked.append(number)
            yield document(f"/{number}", extensions=IMAGE * 1000)[0]

    blocks = text_blocks(xml())
    for number in range(3):
        assert next(blocks) == f"{SCOPE.origin}/{number}\n".encode()
        assert asked == list(range(number + 1))


def test_nothing_is_held_of_what_is_no_location():
    """Blocks of extensions alone leave no more behind than a tag may begin with."""
    seen = []

    def xml():
        yield b"<urlset><url><loc>https://www.example.com/</loc>"
        for _ in range(100):
            seen.append(len(blocks.gi_frame.f_locals["rest"]))
            yield IMAGE.encode() * 100
        yield b"</url></urlset>"

    blocks = text_blocks(xml())
    assert list(blocks) == [b"https://www.example.com/\n"]
    assert max(seen) < 10
    assert len(seen) == 100


def test_no_xml_no_text():
    """Without a location there is no line, not even an empty one."""
    assert list(text_blocks([])) == list(text_blocks([b"<urlset>", b"</urlset>"])) == []
