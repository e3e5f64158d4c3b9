"""Holding back: a build that loses too much waits for someone to look at it."""

import datetime as dt
import re

import pytest

from django_sitemapkit import News
from django_sitemapkit.builds import differences_of, prune, publish
from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.builds.publication.gates import FinishedBuild, shrinkage, warnings_of
from django_sitemapkit.exceptions import BuildFailed, NothingToPublish
from django_sitemapkit.models import Build, ExtraUrl, Publication, StoredPage
from django_sitemapkit.testing.factories import BuildFactory, PlaceFactory
from django_sitemapkit.words import code_of
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
    take_lease,
    use_storage,
)
from tests.builds import Readings as SmallReadings
from tests.builds.storages import Killed
from tests.cases import few
from tests.factories import EPOCH
from tests.management import run as command
from tests.prepared import once
from tests.testapp.models import Product, Reading

pytestmark = pytest.mark.django_db

LEVELS = range(0, 100, 10)
HALF = "section 'readings' would shrink from 10 to 4 URLs; a loss of 50% is allowed"


class Readings(SmallReadings):
    """Ten rows on three pages."""

    limit = 4


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with ten readings and two products."""
    settings.SITEMAPKIT_MAX_SHRINK = 0.5
    sections.add(Readings)
    sections.add(Products)
    fill(products=2, readings=10)
    return use_storage(settings, "Memory")


@pytest.fixture
def live_id(storage):
    """Publish a first build; give its id."""
    return once((__name__, "live_id"), run).build


def lose(count):
    """Delete so many readings, of all pages."""
    Reading.objects.filter(level__in=[*LEVELS[::2], *LEVELS[1::2]][:count]).delete()


def bring_back():
    """Make the readings again that are gone."""
    levels = set(LEVELS) - set(Reading.objects.values_list("level", flat=True))
    Reading.objects.bulk_create(Reading(level=level) for level in levels)


def status_of(build):
    """Return what became of a build."""
    return Build.objects.get(pk=build).status


# What is held back


@pytest.mark.slow
@pytest.mark.parametrize(
    ("allowed", "lost", "status"),
    few(
        2,
        [
            (0.5, 5, "published"),
            (0.5, 6, "held"),
            (0.7, 7, "published"),
            (0.7, 8, "held"),
            (0, 0, "unchanged"),
            (0, 1, "held"),
            (1, 10, "published"),
        ],
    ),
)
def test_a_section_may_lose_just_what_the_setting_says(
    storage, live_id, client, settings, allowed, lost, status
):
    """What is held back is not served: all that was published still is."""
    before = served(client)
    settings.SITEMAPKIT_MAX_SHRINK = allowed
    lose(lost)
    result = run()
    assert result.status == status_of(result.build) == status
    assert bool(result.reason) == (status == "held")
    assert (served(client) == before) == (status != "published")
    assert (Publication.objects.get().build_id == live_id) == (status != "published")


def test_the_limit_is_exact(storage, settings):
    """No part of a hundred URLs is one URL more or less for being a binary fraction."""
    for percent in (7, 29, 57, 70):
        settings.SITEMAPKIT_MAX_SHRINK = percent / 100
        for lost, held in ((percent, False), (percent + 1, True)):
            finished = judged(("readings", 100, 100 - lost))
            assert bool(shrinkage(finished)) == held, (percent, lost)


@pytest.mark.parametrize(("allowed", "words"), few(1, [(0.125, "12.5"), (0.5, "50"), (0, "0")]))
def test_the_reason_names_the_section_and_its_figures(storage, live_id, settings, allowed, words):
    """In the result, and with the build."""
    settings.SITEMAPKIT_MAX_SHRINK = allowed
    lose(6)
    result = run()
    figures = {"before": 10, "urls": 4, "moved": 0, "allowed": words}
    assert result.cause == {"code": "shrinkage", "section": "readings", **figures}
    assert Build.objects.get(pk=result.build).reason == result.cause


def test_the_reason_names_the_section_that_loses_the_most(storage, live_id):
    """Two of two products are fewer than six of ten readings."""
    Product.objects.all().delete()
    lose(6)
    assert str(run().reason) == HALF


@pytest.mark.slow
def test_what_other_sections_gain_makes_up_for_nothing(storage, live_id):
    """The site has more URLs than before, and is held back for one section."""
    lose(6)
    shop = Product.objects.first().shop
    Product.objects.bulk_create(Product(shop=shop, slug=f"more{n}") for n in range(20))
    assert run().code == "shrinkage"


@pytest.mark.thorough
def test_a_section_that_went_away_is_a_loss(storage, live_id, sections, client, settings):
    """Of all of its URLs; a project that means it says so by the setting, or by publishing."""
    before = served(client)
    sections.remove("readings")
    result = run()
    assert result.status == "held"
    assert (result.cause["section"], result.cause["urls"]) == ("readings", 0)
    assert served(client) == before
    settings.SITEMAPKIT_MAX_SHRINK = 1
    assert run().status == "published"
    assert len(in_order(served(client))) == 2


def test_a_first_build_is_never_held_back(storage, settings):
    """There is nothing to lose yet."""
    settings.SITEMAPKIT_MAX_SHRINK = 0
    assert run().status == "published"


@pytest.mark.parametrize("how", ["no section", "no row"])
def test_nothing_at_all_is_never_published(storage, live_id, sections, client, settings, how):
    """Whatever the setting allows: such a build fails, and does not wait to be released."""
    settings.SITEMAPKIT_MAX_SHRINK = 1
    before = served(client)
    if how == "no row":
        Reading.objects.all().delete()
        Product.objects.all().delete()
    else:
        sections.remove("readings")
        sections.remove("products")
    reason = "no section has a URL" if how == "no row" else "no section is registered"
    with pytest.raises(NothingToPublish, match=reason):
        run()
    assert status_of(Build.objects.latest("pk").pk) == "failed"
    assert Publication.objects.get().build_id == live_id
    if how == "no row":
        assert served(client) == before


# What has moved


class Others(SmallReadings):
    """The same rows at the same URLs, from another section."""


class Half(SmallReadings):
    """Half of these rows."""

    queryset = Reading.objects.filter(level__lt=50)


@pytest.mark.slow
@pytest.mark.parametrize("since", ["before", "now"])
def test_a_section_that_is_dropped_is_no_loss_if_another_lists_its_urls(
    storage, sections, client, since
):
    """Whether it has listed them all along, or lists them now."""
    if since == "before":
        sections.add(Others)
    run()
    before = {location for location, _ in in_order(served(client))}
    sections.remove("readings")
    if since == "now":
        sections.add(Others)
    assert run().status == "published"
    assert {location for location, _ in in_order(served(client))} == before
    assert list(differences_of(SITE)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("allowed", "status"), [(0.5, "published"), (0.4, "held")])
def test_urls_that_only_partly_move_are_a_loss_of_the_others(
    storage, live_id, sections, settings, allowed, status
):
    """Exactly those are counted that no section lists."""
    settings.SITEMAPKIT_MAX_SHRINK = allowed
    sections.remove("readings")
    sections.add(Half)
    assert run().status == status
    gone = {f"- https://www.example.com/readings/{level}/" for level in LEVELS[5:]}
    assert set(map(str, differences_of(SITE))) == gone


@pytest.mark.slow
def test_urls_that_move_into_a_section_that_is_there_are_no_loss(storage, sections):
    """A page of it changes, and others do not."""
    sections.add(Half)
    run()
    sections.remove("readings")
    sections.remove("half")
    sections.add(type("Half", (SmallReadings,), {}))
    assert run().status == "published"
    assert list(differences_of(SITE)) == []


@pytest.mark.slow
def test_a_loss_is_held_if_the_files_cannot_be_read(storage, live_id, sections):
    """Nobody knows then what has moved."""
    sections.remove("readings")
    sections.add(Others)
    storage.delete(manifest()["readings", 1].name)
    assert run().status == "held"


def test_added_urls_that_another_section_lists_are_no_difference(storage, live_id, sections):
    """The site has them already."""
    sections.add(Half)
    assert run().status == "published"
    assert list(differences_of(SITE)) == []


# How much may be lost


def judged(*sections, **options):
    """Return a finished build; of each section the URLs that are published, and those it has."""
    first, second = BuildFactory.create_batch(2)
    published, pages = (
        [
            PlaceFactory(build=build, section=name, urls=urls[number])
            for name, *urls in sections
            if urls[number]
        ]
        for number, build in enumerate((first, second))
    )
    return FinishedBuild(site=SITE, build=second, rows=pages, published=published, **options)


@pytest.mark.parametrize(
    ("counts", "held"),
    [
        ([("many", 1_001, 701)], ""),
        ([("many", 1_001, 700)], "shrinkage"),
        ([("few", 1_000, 500)], ""),
        ([("few", 1_000, 499)], "shrinkage"),
        ([("a", 600, 400), ("b", 600, 400)], "site-shrinkage"),
        ([("a", 600, 400), ("b", 600, 450)], ""),
    ],
)
def test_more_than_a_thousand_urls_may_lose_less(storage, settings, counts, held):
    """Three tenths, of a section or of the site, unless the project sets a part for all."""
    settings.SITEMAPKIT_MAX_SHRINK = None
    assert code_of(shrinkage(judged(*counts))) == held
    settings.SITEMAPKIT_MAX_SHRINK = 0.6
    assert shrinkage(judged(*counts)) == ""
    settings.SITEMAPKIT_MAX_SHRINK = 0.1
    assert shrinkage(judged(*counts))["section"] == counts[0][0]


@pytest.mark.parametrize(
    ("counts", "warned"),
    [
        ([("a", 100, 91)], []),
        ([("a", 100, 90)], [("loss", 10)]),
        ([("a", 100, 40)], []),
        ([("a", 100, 90), ("b", 300, 300)], [("loss", 10)]),
        ([("a", 100, 80), ("b", 100, 100)], [("loss", 20), ("site-loss", 20)]),
        ([("a", 100, 80), ("b", 100, 500)], [("loss", 20)]),
    ],
)
def test_a_loss_from_a_tenth_on_is_a_warning(storage, settings, counts, warned):
    """With the numbers; what holds the build is no warning too, and nothing is if all may go."""
    settings.SITEMAPKIT_MAX_SHRINK = None
    found = list(warnings_of(judged(*counts)))
    assert [(state["code"], state["lost"]) for state in found] == warned
    settings.SITEMAPKIT_MAX_SHRINK = 1
    assert list(warnings_of(judged(*counts))) == []


def test_urls_that_are_meant_to_go_are_no_loss(storage, settings):
    """Those that an editor excludes at once."""
    settings.SITEMAPKIT_MAX_SHRINK = None
    assert list(warnings_of(judged(("a", 100, 80), leaving={"a": 20}))) == []


@pytest.mark.slow
def test_news_may_go(storage, monkeypatch):
    """They leave their sitemap after two days; what else the site loses counts all the same."""
    news = News(publication="P", language="en", published=EPOCH, title="T")
    monkeypatch.setattr(Readings, "news", lambda self, reading: news)
    run()
    Reading.objects.exclude(level=LEVELS[0]).delete()
    result = run()
    assert (result.status, result.warnings) == ("published", ())
    Product.objects.all().delete()
    assert run().cause["section"] == "products"


@pytest.mark.slow
def test_extra_urls_may_go(storage, settings):
    """An editor has deleted them by hand; a limit that the project sets holds for them, too."""
    settings.SITEMAPKIT_MAX_SHRINK = None
    for number in range(40):
        ExtraUrl.objects.create(site=SITE.key, path=f"/landing/{number}/")
    run()
    ExtraUrl.objects.exclude(path="/landing/0/").delete()
    result = run()
    assert (result.status, result.warnings) == ("published", ())
    for number in range(1, 40):
        ExtraUrl.objects.create(site=SITE.key, path=f"/landing/{number}/")
    run()
    settings.SITEMAPKIT_MAX_SHRINK = 0.5
    ExtraUrl.objects.exclude(path="/landing/0/").delete()
    assert run().cause["section"] == "extra-urls"


def test_the_warning_is_told_wherever_a_build_is(storage, live_id, settings, caplog):
    """On stderr, in the log, and with the build; URLs that others list are not lost."""
    settings.SITEMAPKIT_MAX_SHRINK = None
    lose(2)
    code, _out, err = command("build_sitemaps")
    assert code == 0
    section, site = err.splitlines()
    assert "readings: 2 of 10 URLs are gone (20%)" in section
    assert "The whole site: 2 of 12 URLs are gone (17%)" in site
    logged = [record for record in caplog.records if getattr(record, "event", "") == "warning"]
    assert len(logged) == 2
    assert [warning["code"] for warning in Publication.objects.get().build.warnings] == [
        "loss",
        "site-loss",
    ]
    assert "readings: 2 of 10" in command("sitemap_status")[1]


@pytest.mark.slow
def test_urls_that_have_moved_are_no_warning(storage, sections, settings):
    """The files are read to find that out."""
    settings.SITEMAPKIT_MAX_SHRINK = None
    run()
    sections.remove("readings")
    sections.add(Others)
    assert run().warnings == ()


# What becomes of it


@pytest.fixture
def held(storage, live_id):
    """Hold a build back; give its id."""
    lose(6)
    result = run()
    assert result.status == "held"
    return result.build


@pytest.mark.slow
def test_what_is_let_go_is_the_build_that_was_held_back(storage, live_id, client, settings):
    """Its files are stored; what the rows are by now is the next build's."""
    lose(6)
    expected = live(client, settings)
    held = run().build
    assert named(manifest(held).values()) <= storage.names()
    bring_back()
    edit_product()
    publish(SITE, held)
    assert in_order(served(client)) == in_order(expected)
    assert Publication.objects.get().build_id == held
    record = Build.objects.get(pk=held)
    assert (record.status, record.reason) == ("published", "")
    assert run().status == "published"
    assert len(in_order(served(client))) == 12


def test_the_same_rows_are_held_back_as_the_same_build(storage, held, monkeypatch):
    """It renders no page and stores nothing, and who waits to let it go finds it as it was."""
    before = {key: (line.name, line.fingerprint) for key, line in manifest(held).items()}
    storage.calls.clear()
    monkeypatch.setattr("django_sitemapkit.builds.make.page_builder.make_page", None)
    result = run()
    assert (result.status, result.build) == ("held", held)
    assert result.code == "shrinkage"
    assert set(states(result).values()) == {"same"}
    assert storage.saved() == []
    assert {k: (line.name, line.fingerprint) for k, line in manifest(held).items()} == before
    last = Build.objects.latest("pk")
    assert last.pk != held
    assert (last.status, last.places.count()) == ("abandoned", 0)
    assert last.reason == {"code": "identical", "build": held}


@pytest.mark.thorough
def test_a_page_that_did_not_change_since_is_not_made_again(storage, held):
    """Though it differs from what is published: the files of the build held back are known."""
    edit_product()
    storage.calls.clear()
    result = run()
    assert result.status == "held"
    assert result.build != held
    made = {key for key, state in states(result).items() if state == "stored"}
    assert made == {("products", 1), ("", 0)}
    assert len(storage.saved()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("status", ["published", "unchanged"])
def test_a_build_in_order_again_gives_up_what_was_held_back(
    storage, live_id, client, settings, status
):
    """Nobody can publish it any more, and its own files go."""
    settings.SITEMAPKIT_MAX_SHRINK = 0
    lose(1)
    held = run().build
    own = named(manifest(held).values()) - named(manifest().values())
    assert own
    assert own <= storage.names()
    bring_back()
    if status == "published":
        edit_product()
    result = run()
    assert result.status == status
    record = Build.objects.get(pk=held)
    assert (record.status, record.reason) == (
        "abandoned",
        {"code": "superseded", "build": Build.objects.latest("pk").pk},
    )
    with pytest.raises(BuildFailed, match=f"Build {held}\\b"):
        publish(SITE, held)
    assert not own & storage.names()
    assert len(in_order(served(client))) == 12


@pytest.mark.slow
def test_pruning_keeps_what_waits(storage, held, settings):
    """However long, and however few builds are kept."""
    settings.SITEMAPKIT_KEEP_BUILDS, settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 1, 0
    record = Build.objects.get(pk=held)
    record.ended_at -= dt.timedelta(days=300)
    record.save()
    assert prune(SITE).files == ()
    publish(SITE, held)


@pytest.mark.thorough
def test_of_two_that_wait_the_later_one_is_kept(storage, held, settings):
    """The other one can be released through the grace period, and is pruned then."""
    edit_product()
    later = run().build
    assert (status_of(held), status_of(later)) == ("held", "held")
    assert SiteBuilds(SITE).held.pk == later
    prune(SITE)
    own = named(manifest(held).values()) - named(manifest(later).values())
    assert own <= storage.names()
    record = Build.objects.get(pk=held)
    record.ended_at -= dt.timedelta(days=2)
    record.save()
    assert set(prune(SITE).files) >= own - named(manifest().values())
    with pytest.raises(BuildFailed, match=f"{held} was pruned"):
        publish(SITE, held)
    publish(SITE, later)


@pytest.mark.thorough
def test_letting_one_go_gives_up_those_before_it(storage, held):
    """Nothing waits any more."""
    edit_product()
    publish(SITE, run().build)
    assert status_of(held) == "abandoned"
    assert SiteBuilds(SITE).held is None


@pytest.mark.thorough
def test_a_build_that_a_killed_process_left_is_held_back_too(storage, live_id, client):
    """The next run finishes it, and finds that its own is the same."""
    before = served(client)
    lose(6)

    def die(result, place, total):
        if result.state == "stored":
            raise Killed

    with pytest.raises(Killed):
        run(on_file=die)
    left = Build.objects.get(status="running").pk
    code, out, err = command("build_sitemaps")
    assert code == 3
    held = Build.objects.get(status="held").pk
    assert f"Build {held} of site 'default' is held for review" in err
    assert "1 page of interrupted builds adopted." in out
    assert status_of(left) == "abandoned"
    assert served(client) == before


# The commands


@pytest.mark.slow
def test_the_command_ends_with_3_and_says_the_way_out(held, client):
    """What it names lets the build go."""
    before = served(client)
    code, out, err = command("build_sitemaps")
    assert code == 3
    assert f"Build {held} of site 'default': held;" in out
    assert err == (
        f"Build {held} of site 'default' is held for review:\n"
        f"  {HALF}.\n"
        "The site serves what it served before.\n"
        f"diff_sitemaps {held} shows the changes, publish_sitemaps {held} publishes them."
    )
    assert served(client) == before
    assert command("publish_sitemaps", held) == (
        0,
        f"Site 'default' now serves build {held}.\n",
        "",
    )
    assert len(in_order(served(client))) == 6
    assert command("build_sitemaps")[0] == 0


def test_the_status_says_what_is_held_back_and_why(held):
    """Beside the build."""
    out = command("sitemap_status", "--quick")[1]
    assert re.search(rf"\n  {held} +held .* just now\n    {re.escape(HALF)}\n", out)
    assert f"\n  Build {held} is held for review:\n  diff_sitemaps {held} shows the " in out


@pytest.fixture
def two_sites(storage, settings):
    """Publish two sites with a section each; then one of them loses too much."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example", "SECTIONS": ["readings"]},
        "two": {"BASE_URL": "https://two.example", "SECTIONS": ["products"]},
    }
    assert command("build_sitemaps")[0] == 0
    lose(6)
    edit_product()


@pytest.mark.thorough
def test_one_site_held_back_does_not_stop_the_others(two_sites):
    """They are published, and the command ends with 3."""
    code, out, err = command("build_sitemaps")
    assert code == 3
    assert "of site 'one' is held for review" in err
    assert "of site 'two': published;" in out


@pytest.mark.thorough
def test_a_site_that_fails_does_not_hide_the_one_held_back(two_sites):
    """The exit code is that of the failure; both are reported."""
    take_lease("build:two")
    code, _, err = command("build_sitemaps")
    assert code == 4
    assert "of site 'one' is held for review" in err
    assert "elsewhere" in err


@pytest.mark.thorough
def test_a_repair_that_is_held_back_says_so(storage, live_id):
    """The damaged file is still published, so that exit 1 has a reason."""
    name = manifest()["readings", 1].name
    storage.put(name, b"short")
    lose(6)
    code, _, err = command("validate_sitemaps", "--repair")
    assert code == 1
    assert "is held for review" in err


# What else is built while one waits


@pytest.mark.thorough
def test_a_build_of_other_sections_lets_nothing_go(held):
    """It has not looked at the section that waits."""
    edit_product()
    assert run(sections=["products"]).status == "published"
    assert status_of(held) == "held"
    assert run(sections=["products"]).status == "unchanged"
    publish(SITE, held)
    assert status_of(held) == "published"


@pytest.mark.thorough
def test_a_held_build_that_lost_its_index_is_held_anew(held, storage):
    """Else it would stand in the way of one that can be published."""
    storage.delete(manifest(held)["", 0].name)
    result = run()
    assert (result.status, result.stored) == ("held", 1)
    assert result.build != held
    publish(SITE, result.build)


@pytest.mark.thorough
def test_a_held_build_of_other_addresses_is_held_anew(held):
    """Its index would list what answers 404."""
    StoredPage.objects.filter(places__build=held, places__section="").update(sha256="0" * 64)
    result = run()
    assert result.status == "held"
    assert result.build != held
