"""Doubts about lastmods: what can hardly be true is said, and what is ordinary is not."""

import datetime as dt
import json
import zoneinfo

import pytest
from django.utils import timezone

from django_sitemapkit import Route, Section, StaticSection
from django_sitemapkit.models import Build
from django_sitemapkit.words import english_of
from tests.builds import manifest, run, states, use_storage
from tests.builds.storages import Killed
from tests.factories import EPOCH
from tests.management import run as command
from tests.testapp.models import Product, Shop

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]

ALIKE = (
    "products: all URLs have the same lastmod, 2024-02-29T12:30:15+00:00 (for example p10). A"
    " lastmod should say when the page itself last changed."
)


class Products(Section):
    """Rows with a lastmod each, on pages of three that have room for a fourth."""

    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    lastmod = "updated_at"
    key = "slug"
    limit = 4


@pytest.fixture(autouse=True)
def storage(settings):
    """Give a storage."""
    return use_storage(settings, "Memory")


def make(count, *, apart=dt.timedelta(0), start=EPOCH):
    """Make products, each so much older than the one before."""
    shop, _ = Shop.objects.get_or_create(slug="all")
    first = Product.objects.count() + 10
    Product.objects.bulk_create(
        Product(shop=shop, slug=f"p{first + n}", updated_at=start - n * apart) for n in range(count)
    )


def edit(slug, moment):
    """Change the lastmod of one product."""
    assert Product.objects.filter(slug=slug).update(updated_at=moment)


def declare(sections, **options):
    """Declare the products with some options changed."""
    sections.add(type("Products", (Products,), options))


def warned():
    """Build; return the warnings, which the build's record has too."""
    result = run()
    assert list(result.warnings) == list(map(english_of, Build.objects.latest("pk").warnings))
    return list(result.warnings)


def test_ordinary_lastmods_raise_no_doubt(sections):
    """Rows with moments of their own, a few together; some without; and edits of them."""
    declare(sections)
    make(9, apart=dt.timedelta(hours=1))
    make(3)
    edit("p14", None)
    assert warned() == []
    edit("p15", EPOCH + dt.timedelta(days=1))
    make(1, start=timezone.now() - dt.timedelta(minutes=5))
    assert warned() == []
    assert warned() == []


def test_a_section_without_lastmods_raises_none(sections):
    """Nothing is said that could be untrue."""
    declare(sections, lastmod=None)
    make(12)
    assert warned() == []
    assert [line.page.lastmods for line in manifest().values()] == [{}] * len(manifest())


# All alike


@pytest.mark.parametrize(("rows", "warnings"), [(9, []), (10, [ALIKE])])
def test_lastmods_that_are_all_alike_are_doubted(sections, rows, warnings):
    """From ten URLs on, whatever pages they are on; a few may well have come together."""
    declare(sections)
    make(rows)
    assert warned() == warnings
    assert len(manifest()) > 3


def test_one_that_differs_is_enough(sections):
    """On another page too."""
    declare(sections)
    make(12)
    edit("p21", EPOCH - dt.timedelta(seconds=1))
    assert warned() == []


def test_a_lastmod_for_all_is_doubted(sections):
    """A value in place of a column, where the URLs have no rows."""
    options = {"items": [f"/{n}/" for n in range(10)], "lastmod": dt.date(2024, 2, 29)}
    sections.add(type("Pages", (StaticSection,), options))
    (warning,) = warned()
    assert warning.startswith("pages: all URLs have the same lastmod, 2024-02-29 (for example ")


def test_pages_that_are_kept_count_with_those_made_anew(sections):
    """What is known of a page's lastmods stays with its file."""
    declare(sections)
    make(10)
    run()
    make(1)
    result = run()
    pages = [state for (section, _), state in states(result).items() if section]
    assert sorted(pages) == ["same", "same", "same", "stored"]
    assert result.warnings == (ALIKE,)
    lines = [line for (section, _), line in manifest().items() if section]
    assert {(line.page.lastmods["oldest"], line.page.lastmods["newest"]) for line in lines} == {
        ("2024-02-29T12:30:15+00:00",) * 2
    }
    assert run().warnings == result.warnings


def test_warnings_are_told_wherever_a_build_is(sections):
    """On stderr; and in the status, for people and for programs."""
    declare(sections)
    make(10)
    code, out, err = command("build_sitemaps")
    assert (code, err) == (0, f"Warning: {ALIKE}\n")
    assert "Warning" not in out
    assert command("build_sitemaps", "--json")[1].count(ALIKE) == 1
    out = command("sitemap_status")[1]
    assert out.count(f"    Warning: {ALIKE}\n") == 2
    (site,) = json.loads(command("sitemap_status", "--json")[1])
    assert [build["warnings"] for build in site["builds"]] == [[ALIKE], [ALIKE]]


def test_a_warning_is_printed_once(sections):
    """Not again while nothing else is wrong: neither unchanged nor with another row."""
    declare(sections)
    make(10)
    assert command("build_sitemaps")[2] == f"Warning: {ALIKE}\n"
    assert command("build_sitemaps")[2] == ""
    make(1)
    assert command("build_sitemaps")[2] == ""
    declare(sections, name="others", location=Route("article", pk="pk"), key="pk")
    (line,) = command("build_sitemaps")[2].splitlines()
    assert line.startswith("Warning: others: ")
    Product.objects.update(updated_at=EPOCH + dt.timedelta(days=1))
    assert len(command("build_sitemaps")[2].splitlines()) == 2


def test_a_warning_of_a_resumed_build_is_printed(sections):
    """The build after it, which is unchanged, is of the same run."""
    declare(sections)
    make(10)

    def die(*shown):
        raise Killed

    with pytest.raises(Killed):
        run(on_file=die)
    assert command("build_sitemaps")[2] == f"Warning: {ALIKE}\n"


def test_without_verbosity_no_warning_is_printed(sections):
    """The documented line for cron prints errors only."""
    declare(sections)
    make(10)
    assert command("build_sitemaps", "--verbosity", "0") == (0, "", "")


# The time of rendering


def build_time(self, product):
    """Return when the build that renders it began."""
    return Build.objects.latest("pk").started_at


def test_the_time_of_the_build_is_doubted(sections):
    """With keys of the pages that say so; a page of one URL may well have changed just now."""
    declare(sections, lastmod=build_time)
    make(7)
    expected = (
        "products: on 2 pages every lastmod is the time of the build or later (for example p10,"
        " p13). Do not use the time of rendering as lastmod."
    )
    assert warned() == [expected]


def test_the_present_moment_is_doubted_and_no_future(sections):
    """What is asked for the time while the page is made comes after its beginning."""
    declare(sections, lastmod=lambda self, product: timezone.now())
    make(3)
    (warning,) = warned()
    assert "every lastmod is the time of the build or later" in warning
    assert not any(line.problems for line in manifest().values())


def test_rows_edited_before_the_build_are_not_doubted(sections):
    """Though it was only just before."""
    declare(sections)
    make(8, apart=dt.timedelta(seconds=1), start=timezone.now() - dt.timedelta(seconds=2))
    assert warned() == []


def test_the_date_of_today_is_not_taken_for_the_time_of_the_build(sections):
    """A date says nothing of the time of day."""
    declare(sections, lastmod=lambda self, product: timezone.localdate())
    make(8)
    assert warned() == []


def test_without_time_zones_the_build_began_at_a_local_time(sections, settings):
    """Under USE_TZ = False moments are naive, and written with the offset of TIME_ZONE."""
    settings.USE_TZ = False
    settings.TIME_ZONE = "Pacific/Auckland"
    declare(sections, lastmod=build_time)
    make(4, start=EPOCH.replace(tzinfo=None))
    (warning,) = warned()
    assert "every lastmod is the time of the build or later" in warning
    newest = manifest()["products", 1].page.lastmods["newest"]
    assert newest.endswith(("+12:00", "+13:00"))
    earlier = timezone.now() - dt.timedelta(seconds=2)
    declare_anew(sections, lastmod=lambda self, product: earlier)
    assert "the time of the build" not in str(warned())


def declare_anew(sections, **options):
    """Declare the products once more."""
    sections.remove("products")
    declare(sections, **options)


# Backwards


def test_a_page_that_ran_backwards_is_doubted(sections):
    """Both moments are reported, and whose they are; the pages beside it are not doubted."""
    declare(sections)
    make(9, apart=dt.timedelta(hours=1))
    run()
    edit("p10", EPOCH - dt.timedelta(days=9))
    backwards = (
        "products: the newest lastmod of page 1 went back from 2024-02-29T12:30:15+00:00 (p10) to"
        " 2024-02-29T11:30:15+00:00 (p11)."
    )
    assert warned() == [backwards]
    assert warned() == []


def test_a_page_that_lost_rows_is_not_doubted(sections):
    """Its newest row may be the one that is gone."""
    declare(sections)
    make(9, apart=dt.timedelta(hours=1))
    run()
    Product.objects.get(slug="p10").delete()
    assert warned() == []
    assert manifest()["products", 1].page.lastmods["key"]


EVENING = dt.datetime(2024, 2, 29, 22, tzinfo=zoneinfo.ZoneInfo("America/New_York"))


MOVED = [
    (EVENING, EVENING.astimezone(dt.UTC), False),
    (EVENING.astimezone(dt.UTC), EVENING, False),
    (dt.datetime(2024, 3, 1, 2, tzinfo=dt.UTC), EVENING, False),
    (EVENING, dt.datetime(2024, 3, 1, 2, tzinfo=dt.UTC), True),
    (dt.date(2024, 2, 29), EPOCH, False),
    (EPOCH, dt.date(2024, 2, 29), False),
    (dt.date(2024, 3, 1), EPOCH, True),
    (EPOCH, dt.date(2024, 2, 28), True),
    (dt.date(2024, 2, 29), dt.date(2024, 2, 28), True),
    ("2024-02-29", "2024-02-29T00:10:00+14:00", False),
    (None, EPOCH, False),
    (EPOCH, None, False),
]
"""The one lastmod of a page, before and after, and whether it surely ran backwards."""


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_moments_are_compared_as_such(sections, settings, zone):
    """Whatever zone they are written in; a date may be any moment of its day."""
    settings.TIME_ZONE = zone
    values = {f"p{10 + n}": before for n, (before, _, _) in enumerate(MOVED)}
    declare(sections, lastmod=lambda self, product: values[product.slug], limit=1)
    make(len(MOVED))
    run()
    values |= {f"p{10 + n}": after for n, (_, after, _) in enumerate(MOVED)}
    doubted = [warning.split()[6] for warning in warned() if "went back" in warning]
    assert doubted == [str(n) for n, (_, _, doubt) in enumerate(MOVED, start=1) if doubt]


def test_a_key_is_shown_on_one_line(sections):
    """One warning is one line, in the record too."""
    declare(sections, location=lambda self, product: "/a/")
    make(1)
    Product.objects.update(slug="a\nb")
    run()
    Product.objects.update(updated_at=EPOCH - dt.timedelta(days=1))
    (warning,) = warned()
    assert "('a\\nb')" in warning


# The future


def test_a_date_of_the_future_is_left_out(sections):
    """It is a problem of its row, which is listed without it; it is not the newest of its page."""
    declare(sections)
    make(3, apart=dt.timedelta(hours=1))
    edit("p12", timezone.now() + dt.timedelta(days=9))
    result = run()
    (file,) = (file for file in result.files if file.section)
    (problem,) = file.problems
    assert "p12" in problem
    assert "is in the future" in problem
    assert (file.urls, file.skipped) == (3, 0)
    assert result.warnings == ()
    line = manifest()["products", 1]
    assert (line.page.lastmods["oldest"], line.page.lastmods["newest"]) == (
        "2024-02-29T11:30:15+00:00",
        "2024-02-29T12:30:15+00:00",
    )
    assert line.changes_at is not None
