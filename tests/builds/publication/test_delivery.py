"""Making known what is published: once for each publication, after the export."""

import logging

import pytest

from django_sitemapkit.builds import publish
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Publication
from django_sitemapkit.signals import sitemaps_published
from tests.builds import BASE, INDEX, SITE, Articles, Products, edit_product, fill, run, served
from tests.builds.exports import export_to, exported
from tests.builds.storages import Killed, failing
from tests.testapp.models import Article, Product

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


@pytest.fixture
def shown(settings, sections):
    """Give what a site with rows in two sections is exported to."""
    for section in (Products, Articles):
        sections.add(section)
    fill()
    return export_to(settings, "tests.builds.exports.Overwriting")[1]


class Listener:
    """Takes the signal, notes its arguments, and does what else it is asked to."""

    def __init__(self):
        self.shown = []
        self.on_signal = lambda: None

    def __call__(self, sender, site, build, addresses, **rest):
        self.shown.append((sender, site, build, addresses))
        self.on_signal()

    def addresses(self):
        """Return what the one signal since the last call said, and forget it."""
        ((_, _, _, addresses),) = self.shown
        self.shown.clear()
        assert len(addresses) == len(set(addresses))
        return set(addresses)


@pytest.fixture
def listener(shown):
    """Listen to what is published."""
    listener = Listener()
    sitemaps_published.connect(listener, weak=False)
    yield listener
    sitemaps_published.disconnect(listener)


def of(*pages):
    """Return the addresses of some pages, in all forms, and that of the index."""
    forms = ("xml", "xml.gz", "txt", "txt.gz")
    return {INDEX, *(f"{BASE}/sitemap-{page}.{form}" for page in pages for form in forms)}


ALL_PAGES = of("products-1", "products-2", "products-3", "articles-1")


def test_the_first_publication_tells_of_all_pages(listener, settings):
    """With the site's key and the build's id; with or without an export."""
    settings.SITEMAPKIT_EXPORT_STORAGE = None
    build = run().build
    ((sender, site, shown, addresses),) = listener.shown
    assert (sender, site, shown) == (Publication, SITE.key, build)
    assert addresses[0] == INDEX
    assert listener.addresses() == ALL_PAGES


def test_what_changed_is_told_and_nothing_else(listener):
    """Pages that are new, changed or gone, and the index; of an unchanged build nothing."""
    run()
    listener.shown.clear()
    assert run().status == "unchanged"
    assert listener.shown == []
    edit_product()
    run()
    assert listener.addresses() == of("products-1")
    Article.objects.all().delete()
    run()
    assert listener.addresses() == of("articles-1")


@pytest.mark.thorough
def test_going_back_tells_what_that_changes(listener):
    """A reader in between may have either."""
    first = run().build
    edit_product()
    second = run().build
    Article.objects.all().delete()
    run()
    listener.shown.clear()
    publish(SITE, first)
    assert listener.addresses() == of("products-1", "articles-1")
    publish(SITE, second)
    assert listener.addresses() == of("products-1")


def test_publishing_what_is_served_tells_of_all_pages(listener):
    """Who asks for that does not trust what is out there."""
    run()
    edit_product()
    build = run().build
    listener.shown.clear()
    publish(SITE, build)
    assert listener.addresses() == ALL_PAGES


def test_the_signal_comes_after_the_export(listener, shown, client):
    """A CDN that asks again at once gets what is new, from the files and from the views."""
    seen = []
    listener.on_signal = lambda: seen.append(exported(shown) == served(client))
    run()
    edit_product()
    run()
    assert seen == [True, True]


def test_no_signal_before_the_export_has_been_done(listener, shown):
    """Where it fails, the run that does it sends the signal, though it builds nothing."""
    run()
    listener.shown.clear()
    edit_product()
    shown.on_call = lambda index, method, name, args, go: (
        failing()(method, name, args, go) if method == "save" else go()
    )
    for _ in range(2):
        with pytest.raises(StorageFailure):
            run()
    assert listener.shown == []
    shown.on_call = None
    assert run().status == "unchanged"
    assert listener.addresses() == of("products-1")


def killed():
    """End the process."""
    raise Killed


def test_the_next_run_tells_what_a_killed_one_did_not(listener):
    """Once more if it was killed while it notified; then never again."""
    run()
    edit_product()
    listener.on_signal = killed
    with pytest.raises(Killed):
        run()
    listener.on_signal = lambda: None
    listener.shown.clear()
    assert run().status == "unchanged"
    assert listener.addresses() == of("products-1")
    assert run().status == "unchanged"
    assert listener.shown == []


@pytest.mark.thorough
def test_what_two_publications_changed_is_told_where_the_first_was_killed(listener):
    """First what nobody was notified of, then what has changed since."""
    run()
    edit_product("p0")
    listener.on_signal = killed
    with pytest.raises(Killed):
        run()
    listener.on_signal = lambda: None
    listener.shown.clear()
    edit_product("p4")
    run()
    first, second = (set(addresses) for _, _, _, addresses in listener.shown)
    assert first == of("products-1")
    assert second == of("products-3")
    listener.shown.clear()
    edit_product("p2")
    run()
    assert listener.addresses() == of("products-2")


@pytest.mark.thorough
def test_going_back_after_a_killed_one_tells_of_its_pages(listener):
    """They may be out there already."""
    first = run().build
    edit_product()
    listener.on_signal = killed
    with pytest.raises(Killed):
        run()
    listener.on_signal = lambda: None
    listener.shown.clear()
    publish(SITE, first)
    assert listener.addresses() == of("products-1")


@pytest.mark.thorough
def test_the_pages_of_a_first_build_that_was_killed_are_told_when_they_are_gone(listener):
    """Of a build that nobody was notified of, some page may have been asked for even so."""
    listener.on_signal = killed
    with pytest.raises(Killed):
        run()
    listener.on_signal = lambda: None
    listener.shown.clear()
    Article.objects.all().delete()
    run()
    first, second = (set(addresses) for _, _, _, addresses in listener.shown)
    assert first == ALL_PAGES
    assert second == of("articles-1")


def test_a_receiver_that_raises_harms_nothing(listener, caplog, client):
    """It is logged; the others are notified, and the build is published and not notified again."""

    def broken(**shown):
        raise ValueError("no such zone")

    sitemaps_published.connect(broken, weak=False)
    try:
        with caplog.at_level(logging.ERROR, "django_sitemapkit"):
            assert run().status == "published"
    finally:
        sitemaps_published.disconnect(broken)
    (record,) = [record for record in caplog.records if record.name == "django_sitemapkit"]
    assert "broken" in record.getMessage()
    assert "site 'default'" in record.getMessage()
    assert record.exc_info[1].args == ("no such zone",)
    assert listener.addresses() == ALL_PAGES
    assert len(served(client)) == 4
    run()
    assert listener.shown == []


def test_a_build_that_is_held_back_is_told_when_it_is_let_go(listener, settings, shown):
    """Until then the site serves, and exports, what it did."""
    run()
    before = exported(shown)
    listener.shown.clear()
    settings.SITEMAPKIT_MAX_SHRINK = 0.1
    Product.objects.exclude(slug__in=["p0", "p1"]).delete()
    held = run()
    assert held.status == "held"
    assert listener.shown == []
    assert exported(shown) == before
    publish(SITE, held.build)
    assert listener.addresses() == of("products-2", "products-3")
    assert exported(shown).keys() < before.keys()
