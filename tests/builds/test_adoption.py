"""Adoption: what a build stored that ended early is not made again by the next one."""

import datetime as dt

import pytest
from django.utils import timezone

from django_sitemapkit import Section
from django_sitemapkit.builds import InlineRunner, cancel_build, publish_override, status_of
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.builds.make.page_builder import BuildMustRestart
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.models import Build, Place, Publication, UrlOverride
from django_sitemapkit.signals import build_ended
from tests.builds import (
    SITE,
    Products,
    edit_product,
    fill,
    in_order,
    live,
    manifest,
    named,
    run,
    served,
    states,
    use_storage,
)
from tests.builds.storages import Killed
from tests.testapp.models import Product

pytestmark = [pytest.mark.django_db, pytest.mark.inline_runner]

PAST = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)

rendered = []
"""The slugs that the method below was called with."""


class Called(Section):
    """Rows of which only a method tells what they are, one on each page."""

    queryset = Product.objects.all()
    limit = 1

    def location(self, product):
        """Note that the row is rendered."""
        rendered.append(product.slug)
        return f"/{product.slug}/{product.note}"


class Trusting(Called):
    """Rows of which a lastmod tells what they are."""

    lastmod = "updated_at"
    trust_lastmod = True


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with ten pages of a method."""
    sections.add(Called)
    fill(products=10)
    rendered.clear()
    return use_storage(settings, "Memory")


def killed_after(files, state="stored", **options):
    """Let a build die as soon as it has made so many pages; return what is left of it."""
    made = []

    def on_file(result, place, total):
        made.append(result.state)
        if made.count(state) == files:
            raise Killed

    with pytest.raises(Killed):
        run(on_file=on_file, **options)
    return Build.objects.filter(status="running").latest("pk")


@pytest.mark.slow
def test_a_build_of_methods_that_is_killed_again_and_again_ends(storage, client, settings):
    """Each life adds two pages to those of the lives before; what is published is of the last rows.

    Nothing is rendered twice until all is published, and then each page once more.
    """
    for life in range(5):
        left = killed_after(2)
        assert left.places.filter(status="done").count() == 2 * (life + 1)
    assert not Publication.objects.exists()
    # Inline, the page after the last recorded one is rendered already.
    assert len(rendered) <= 10 + 5
    Product.objects.filter(slug="p0").update(note="late")
    rendered.clear()
    result = run()
    assert sorted(rendered) == [f"p{n}" for n in range(10)]
    assert (result.status, result.adopted) == ("published", 10)
    assert in_order(served(client)) == in_order(live(client, settings))
    assert any("/p0/late" in location for location, _ in in_order(served(client)))
    left = Build.objects.filter(status="abandoned")
    assert [build.reason for build in left] == 5 * [{"code": "adopted"}]
    assert run().status == "unchanged"


class Moving(InlineRunner):
    """Finds three times that a view has split a page."""

    moves = 3

    def run(self, builder, rows):
        """Begin again, or make the pages."""
        if self.moves:
            self.moves -= 1
            raise BuildMustRestart("a view has split a page")
        return super().run(builder, rows)


@pytest.mark.slow
@pytest.mark.parametrize("files", [0, 10])
def test_a_build_may_begin_again_as_often_with_adopted_pages(storage, files):
    """The build of these pages, which another one follows, does not count."""
    if files:
        killed_after(files)
    rendered.clear()
    result = run(runner=Moving())
    assert (result.status, len(rendered)) == ("published" if not files else "unchanged", 10)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [(), ("hiding",)])
def test_a_held_build_of_adopted_pages_is_given_up(storage, sections, settings, chosen):
    """Its pages were of earlier rows; the build that followed at once is of the last ones."""
    settings.SITEMAPKIT_MAX_SHRINK = 0.2
    hidden = set()

    class Hiding(Called):
        def location(self, product):
            return None if product.slug in hidden else f"/{product.slug}/"

    sections.remove("called")
    sections.add(Hiding)
    run()
    hidden |= {f"p{n}" for n in range(5)}
    killed_after(5, state="empty", sections=chosen)
    hidden.clear()
    result = run(sections=chosen)
    assert (result.status, result.urls) == ("unchanged", 10)
    (held,) = Build.objects.filter(reason__code="superseded")
    assert held.status == "abandoned"
    assert SiteBuilds(SITE).held is None


def test_pages_with_fingerprints_need_no_second_build(storage, sections):
    """They are compared with their rows; those that have changed are made again."""
    sections.remove("called")
    sections.add(Products)
    left = killed_after(2)
    changed, same = left.places.pages()
    edit_product("p0")
    result = run()
    assert result.adopted == 1
    assert Build.objects.count() == 2
    assert states(result)["products", 2] == "same"
    names = named(manifest().values())
    assert same.name in names
    assert changed.name not in names


@pytest.mark.slow
def test_a_cancelled_build_is_not_adopted(storage):
    """Someone may have had a reason to doubt its pages."""
    killed_after(3)
    assert cancel_build(SITE, by="ann")
    assert run().adopted == 0


@pytest.mark.slow
def test_another_declaration_adopts_nothing(storage, sections):
    """The next build says why the one before it was abandoned."""
    killed_after(3)
    sections.remove("called")
    sections.add(type("Called", (Called,), {"priority": 0.5}))
    result = run()
    assert result.adopted == 0
    assert "have changed" in result.abandoned


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
def test_a_full_build_adopts_what_a_full_build_stored(storage, full):
    """And nothing of another one, whose pages may be those that were published before."""
    run()
    Product.objects.update(note="new")
    killed_after(4, full=full)
    result = run(full=True)
    assert (result.adopted == 4) == full
    assert result.status == ("unchanged" if full else "published")


@pytest.mark.slow
def test_what_was_excluded_since_is_not_adopted(storage, client):
    """The page that lists it is rendered; the others are not, until all is published."""
    killed_after(6)
    UrlOverride.objects.create(site=SITE.key, path="/p3/", include=False)
    result = run()
    assert result.adopted == 5
    assert not any("/p3/" in location for location, _ in in_order(served(client)))


def test_nothing_to_publish_of_adopted_pages_is_not_the_end(settings, sections, client):
    """Rows may have come since they were made."""
    sections.add(Called)
    fill(products=1)
    Product.objects.update(note="\x0b")
    use_storage(settings, "Memory")
    killed_after(1, state="empty")
    Product.objects.update(note="")
    result = run()
    assert (result.status, result.urls) == ("published", 1)
    assert "no section has a URL" in result.abandoned


@pytest.mark.slow
def test_what_is_adopted_stays_stored(storage):
    """Though the build that stored it is pruned with the others that came to nothing."""
    killed_after(4)
    run()
    assert named(manifest().values()) <= storage.names()
    assert not Place.objects.filter(build__status="abandoned").exists()
    assert [build.state for build in status_of(SITE).builds].count("abandoned") == 1


@pytest.mark.slow
def test_a_full_build_adopts_nothing_of_an_exclusion(storage):
    """That one copied all other pages from what was published."""
    run()
    override = UrlOverride.objects.create(site=SITE.key, path="/p3/", include=False)

    def die(number, method, name, args, proceed):
        if method == "save" and "index" in name:
            raise Killed
        return proceed()

    storage.on_call = die
    with pytest.raises(Killed):
        publish_override(SITE, override)
    storage.on_call = None
    rendered.clear()
    assert run(full=True).adopted == 0
    assert len(set(rendered)) == 10


@pytest.fixture
def trusting(settings, sections):
    """Give the storage of a site with four pages whose lastmods are trusted."""
    sections.add(Trusting)
    fill(products=4)
    Product.objects.update(updated_at=PAST)
    return use_storage(settings, "Memory")


def test_a_page_whose_lastmod_tells_no_more_is_not_believed(trusting, client):
    """It was made when its lastmod said what it is; now only a rendering does."""
    killed_after(2)
    later = timezone.now() + dt.timedelta(days=1)
    Product.objects.filter(slug="p0").update(note="late", updated_at=later)
    run()
    assert any("/p0/late" in location for location, _ in in_order(served(client)))


@pytest.mark.slow
def test_a_full_build_renders_what_it_adopted(trusting, client):
    """The user may know of changes that no fingerprint shows."""
    run()
    Product.objects.update(note="a")
    killed_after(2, full=True)
    Product.objects.update(note="b")
    run(full=True)
    assert all(location.endswith("/b") for location, _ in in_order(served(client)))


@pytest.mark.slow
def test_a_killed_repair_is_ended_by_the_next_build(trusting):
    """A file that it was not to use again is not reused."""
    run()
    bad = manifest()["trusting", 1].name
    killed_after(1, distrusted={bad})
    run()
    assert manifest()["trusting", 1].name != bad


@pytest.mark.slow
def test_a_build_of_a_section_leaves_what_a_build_of_all_has_stored(storage, sections):
    """That waits for the next build of all."""
    sections.add(Products)
    killed_after(3)
    run(sections=["products"])
    assert run().adopted == 3


def test_an_end_that_is_not_recorded_is_not_announced(storage, monkeypatch):
    """The build is still there for the next one."""
    left = killed_after(2)
    Build.objects.update(reason="")  # As after SIGKILL.
    ended = []

    def fails(*arguments):
        raise RuntimeError("gone")

    def listener(build, **values):
        ended.append(build)

    monkeypatch.setattr(BuildLease, "abandon_builds", fails)
    build_ended.connect(listener)
    with pytest.raises(RuntimeError, match="gone"):
        run()
    build_ended.disconnect(listener)
    assert left.pk not in ended
    left.refresh_from_db()
    assert left.status == "running"
