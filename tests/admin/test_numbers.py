"""Each number on each screen, in the command and in results is the one that the files have."""

import datetime as dt
import json
import re

import pytest

from django_sitemapkit.builds import publish, status_of
from django_sitemapkit.builds.publication.gates import Pause, pause_publishing, resume_publishing
from django_sitemapkit.builds.run import publish_override
from django_sitemapkit.models import Build, Place, UrlOverride
from django_sitemapkit.publishing import SitemapStorage
from tests.admin.operating import OVERVIEW, page, person, text_of
from tests.builds import SITE, edit_product, run
from tests.factories import products
from tests.management import run as command
from tests.testapp.models import Product

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

MINUS = "\N{MINUS SIGN}"


def listed(build):
    """Return how many URLs the files of a build list, by section, as read from the storage."""
    found = {}
    for place in Place.objects.in_build(build).pages():
        with SitemapStorage().open(place.page.name) as file:
            data = decompressed(file.read())
        found[place.section] = found.get(place.section, 0) + data.count(b"<url>")
    return found


def decompressed(data):
    """Return the XML of a stored file."""
    import gzip

    return gzip.decompress(data)


def texts(html):
    """Return the text of a page without its tags."""
    return " ".join(re.sub("<[^>]+>", " ", html).split())


@pytest.fixture
def two(built, settings):
    """Publish a site twice; the second build has lost products."""
    settings.SITEMAPKIT_MAX_SHRINK = 1
    products(8)
    first = run().build
    Product.objects.filter(pk__gt=Product.objects.order_by("pk")[1].pk).delete()
    return first, run().build


def shown_of(build):
    """Return what each place says of the URLs of the live build, and of the change in it."""
    viewer = person("viewer")
    changelist = texts(text_of(viewer.get(page("changelist"))).partition("<tbody>")[2])
    return {
        "overview": texts(text_of(viewer.get(OVERVIEW))),
        "build list": changelist[changelist.index(f"Build {build}") :].split(" Build ")[0],
        "build": texts(text_of(viewer.get(page("change", build)))),
    }


def change_between(before, after):
    """Return a change as screens show it."""
    more = after - before
    return f"{'+' if more > 0 else MINUS}{abs(more)} ("


def test_the_change_is_against_what_was_live_before(two):
    """On every screen and in the status; after a roll-back, a build keeps its own change.

    What is live is then compared with what it has replaced, which is named.
    """
    first, second = two
    was, now = sum(listed(first).values()), sum(listed(second).values())
    (status,) = json.loads(command("sitemap_status", "--json")[1])
    assert (status["urls"], status["urls_before"]) == (now, was)
    for name, text in shown_of(second).items():
        assert change_between(was, now) in text, name
    Product.objects.all().delete()
    bad = run().build
    lost = sum(listed(bad).values())
    publish(SITE, second)
    (status,) = json.loads(command("sitemap_status", "--json")[1])
    assert (status["urls"], status["urls_before"]) == (now, lost)
    for name, text in shown_of(second).items():
        assert change_between(was, now) in text, name
    since = f"{change_between(lost, now)}+{round(100 * (now - lost) / lost)} %) since build {bad}"
    assert since in texts(text_of(person("viewer").get(OVERVIEW)))
    assert since in command("sitemap_status")[1]


def test_a_build_that_undoes_a_roll_back_says_so_and_how_much(two):
    """In its result, with the files and URLs that come back; every screen says so before it."""
    first, second = two
    before, after = listed(first), listed(second)
    comes_back = (
        f"The next build undoes the roll-back from build {second} ({sum(after.values())} URLs)"
    )
    shown = OVERVIEW, f"{OVERVIEW}health/"
    assert not any(comes_back in texts(text_of(person("viewer").get(url))) for url in shown)
    publish(SITE, first)
    assert all(comes_back in texts(text_of(person("viewer").get(url))) for url in shown)
    returning = (
        f"The next build puts back what build {second} changed, unless you correct it before:"
        f" it had {sum(after.values())} URLs, the live build has {sum(before.values())}."
    )
    assert returning in command("sitemap_status")[1]
    result = run()
    assert returning not in command("sitemap_status")[1]
    (warning,) = (text for text in result.new_warnings if "rolled back" in text)
    files = [Place.objects.in_build(each).pages().count() for each in two]
    assert warning == (
        f"It puts back {files[0] - files[1]} files of build {second}, which was rolled back:"
        f" from {sum(before.values())} to {sum(after.values())} URLs."
    )
    assert "Rolled-back files published again" in texts(text_of(person("viewer").get(OVERVIEW)))
    edit_product(Product.objects.first().slug, day=9)
    assert "rolled back" not in str(run().warnings)


def test_a_build_of_one_section_is_a_successful_one_as_well(two):
    """The last one is the newest that ended well, whatever it compared."""
    Build.objects.update(ended_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    last = Build.objects.get(pk=run(sections=["products"]).build)
    assert status_of(SITE).succeeded_at == last.ended_at > status_of(SITE).checked_at


def test_files_are_counted_alike_by_results_and_screens(two):
    """Without the index, whether a build is published or finds nothing changed."""
    files = Place.objects.in_build(two[1]).pages().count()
    unchanged = run()
    assert (unchanged.status, unchanged.pages) == ("unchanged", files)
    edit_product(day=9)
    assert run().pages == files
    assert f"in {files} files and the index" in command("build_sitemaps")[1]


def test_a_held_build_took_as_long_as_it_took(two):
    """Another build that comes to the same does not make it longer."""
    pause_publishing(SITE, Pause(by="ann", reason="why"))
    edit_product(day=9)
    held = run().build
    ended = Build.objects.get(pk=held).ended_at
    assert run().build == held
    assert Build.objects.get(pk=held).ended_at == ended
    resume_publishing(SITE)


def test_a_url_of_two_sections_is_said_to_count_twice(two, settings):
    """Unless each URL is listed once."""
    assert status_of(SITE).counts_twice
    settings.SITEMAPKIT_DEDUPLICATE = True
    assert not status_of(SITE).counts_twice


def test_a_roll_back_lasts_until_all_sections_are_published(two):
    """The overview names the newest build that it left behind, whatever was live in between."""

    def undone():
        text = texts(text_of(person("viewer").get(OVERVIEW)))
        named = re.search(r"undoes the roll-back from build (\d+)", text)
        return int(named[1]) if named else None

    first, second = two
    Product.objects.last().delete()
    third = run().build
    for build in (second, first):
        publish(SITE, build)
        assert undone() == third
    preview = run(preview=True).build
    assert undone() == third
    override = UrlOverride.objects.create(
        site=SITE.key, path=Product.objects.first().get_absolute_url(), include=False
    )
    older = "The build that it was compared with is no longer live."
    assert older not in text_of(person("viewer").get(OVERVIEW))
    assert publish_override(SITE, override).status == "published"
    assert undone() == third
    assert older in text_of(person("viewer").get(OVERVIEW))
    for build in (third, preview):  # Newer than what the exclusion left of the first one.
        publish(SITE, build)
        assert undone() is None
    run()
    assert undone() is None
