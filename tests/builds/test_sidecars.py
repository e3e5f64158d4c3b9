"""Sidecars: they tell whether a URL may be in a file, the same on every machine."""

import io

import pytest

from django_sitemapkit.builds.sidecars import Sidecar, url_hash
from tests.builds import ALL, fill, manifest, run, use_storage

LOCATIONS = [f"https://www.example.com/{n}" for n in range(500)]


def written(sidecar):
    """Return what a sidecar writes."""
    file = io.BytesIO()
    sidecar.write(file)
    return file.getvalue()


def of(locations):
    """Return the sidecar of these URLs."""
    sidecar = Sidecar()
    sidecar.add(locations)
    return sidecar


def test_a_hash_never_changes():
    """Sidecars of earlier releases can still be read."""
    assert url_hash("https://www.example.com/") == 0xB8FC8FCCA4588474
    assert url_hash("https://www.example.com/%C3%A9") != url_hash("https://www.example.com/e")


def test_a_sidecar_is_sorted_little_endian_words():
    """Eight bytes a URL, in whichever order they came."""
    data = written(of(LOCATIONS))
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    assert words == sorted(map(url_hash, LOCATIONS))
    assert written(of(LOCATIONS[::-1])) == data
    assert written(Sidecar(map(url_hash, LOCATIONS))) == data


def test_a_big_endian_machine_writes_and_reads_the_same(monkeypatch):
    """Bytes are swapped on the way in and out."""
    ours = written(of(LOCATIONS))
    monkeypatch.setattr("django_sitemapkit.builds.sidecars.sys.byteorder", "big")
    # Here words come out swapped; there it is what puts them right.
    swapped = Sidecar.read(io.BytesIO(ours))
    assert written(swapped) != ours
    assert len(swapped) == len(LOCATIONS)


def test_what_was_written_is_found_again():
    """Each URL of the file, and no other."""
    sidecar = Sidecar.read(io.BytesIO(written(of(LOCATIONS))))
    assert len(sidecar) == 500
    assert all(location in sidecar for location in LOCATIONS)
    assert "https://www.example.com/500" not in sidecar
    assert "" not in Sidecar()


def test_a_sidecar_that_is_cut_short_is_no_sidecar():
    """It would deny URLs that are there."""
    with pytest.raises(ValueError, match="bytes length"):
        Sidecar.read(io.BytesIO(written(of(LOCATIONS))[:-1]))


@pytest.mark.django_db
def test_a_build_stores_one_beside_each_page(settings, sections):
    """With all of its URLs, and no more."""
    for section in ALL:
        sections.add(section)
    fill()
    storage = use_storage(settings, "Memory")
    run()
    for key, line in manifest().items():
        if not key[0]:
            assert line.sidecar == ""
            continue
        with storage.open(line.sidecar) as file:
            sidecar = Sidecar.read(file)
        assert len(sidecar) == line.urls
        if key == ("readings", 1):
            assert "https://www.example.com/readings/0/" in sidecar
