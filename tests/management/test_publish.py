"""``publish_sitemaps``: back to an earlier build, and forth."""

import datetime as dt
import json

import pytest
from django.utils import timezone

from django_sitemapkit.models import Build, Lease, Publication
from tests.management import line_of, path_of, run
from tests.prepared import once
from tests.testapp.serving import BASE, locations, make_products

pytestmark = pytest.mark.django_db

PAGE = "/sitemap-products-2.xml.gz"


@pytest.fixture
def two_builds(products):
    """Publish two builds, the second with one product more."""

    def make():
        run("build_sitemaps")
        first = Publication.objects.get().build_id
        make_products("d")
        run("build_sitemaps")
        return first, Publication.objects.get().build_id

    return once((__name__, "two_builds"), make)


def slugs(client):
    """Return the products that the second page lists."""
    content = client.get(PAGE).getvalue()
    return "".join(location[len(f"{BASE}/products/all/") : -1] for location in locations(content))


def test_back_and_forth(client, two_builds):
    """The site serves what it is asked to, at once."""
    first, second = two_builds
    assert slugs(client) == "cd"
    code, out, err = run("publish_sitemaps", first)
    assert (code, out, err) == (0, f"Site 'default' now serves build {first}.\n", "")
    assert slugs(client) == "c"
    assert run("validate_sitemaps")[0] == 0
    assert run("publish_sitemaps", second, "--verbosity", 0) == (0, "", "")
    assert slugs(client) == "cd"
    assert run("publish_sitemaps", second)[0] == 0
    assert slugs(client) == "cd"


def test_json_has_the_build_of_each_site(two_builds):
    """One line for each site."""
    out = run("publish_sitemaps", two_builds[0], "--json")[1]
    assert json.loads(out) == {"site": "default", "build": two_builds[0], "exported": 0}


@pytest.mark.slow
def test_next_build_is_what_the_database_has(client, two_builds):
    """Going back holds only until a build finds that the rows say otherwise."""
    run("publish_sitemaps", two_builds[0])
    assert run("build_sitemaps")[0] == 0
    assert slugs(client) == "cd"


def refused(build, code, reason):
    """Ask for a build in vain; what is published stays."""
    before = Publication.objects.get().build_id
    got, out, err = run("publish_sitemaps", build)
    assert (got, out) == (code, "")
    assert reason in err
    assert Publication.objects.get().build_id == before


@pytest.mark.slow
def test_unknown_build(two_builds):
    """Exit 2, and nothing changes."""
    refused(max(two_builds) + 1000, 2, "None of these sites has a build")


def test_build_that_was_never_published(two_builds):
    """What did not change was not published, what failed neither: exit 1."""
    run("build_sitemaps")
    unchanged = Build.objects.get(status="unchanged")
    refused(unchanged.pk, 1, "is neither published nor held for review")


def test_pruned_build(two_builds):
    """Its files are gone: exit 1."""
    Build.objects.filter(pk=two_builds[0]).update(pruned_at=timezone.now())
    refused(two_builds[0], 1, "was pruned")


@pytest.mark.parametrize("section", ["products", ""])
@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "cut short"])
def test_build_with_a_damaged_file(two_builds, section, is_lost):
    """Exit 1, and the file is named: half a file is no better than none."""
    run("publish_sitemaps", two_builds[0])
    line = line_of(section, 2)
    run("publish_sitemaps", two_builds[1])
    path = path_of(line)
    path.unlink() if is_lost else path.write_bytes(path.read_bytes()[:-7])
    refused(two_builds[0], 1, line.name)


@pytest.mark.slow
def test_while_the_site_is_built(two_builds):
    """Exit 4: who publishes meanwhile would be overruled."""
    Lease.objects.acquire("build:default", seconds=60, owner="other-host")
    refused(two_builds[0], 4, "on other-host since")


@pytest.mark.slow
def test_build_of_another_site(two_sites):
    """The build knows its site; the other's publication stays."""
    run("build_sitemaps")
    first = Publication.objects.get(site="one").build_id
    other = Publication.objects.get(site="two").build_id
    make_products("d")
    run("build_sitemaps")
    latest = Publication.objects.get(site="two").build_id
    assert latest != other
    code, out, _ = run("publish_sitemaps", first)
    assert code == 0
    assert "Site 'one'" in out
    assert Publication.objects.get(site="one").build_id == first
    assert Publication.objects.get(site="two").build_id == latest


@pytest.mark.slow
def test_a_site_that_is_built_does_not_keep_the_others_from_rolling_back(two_sites):
    """Exit 4; both have an earlier build."""
    run("build_sitemaps")
    first = Publication.objects.get(site="two").build_id
    make_products("d")
    run("build_sitemaps")
    Lease.objects.acquire("build:one", seconds=60)
    assert run("publish_sitemaps", "--previous")[0] == 4
    assert Publication.objects.get(site="two").build_id == first


@pytest.mark.slow
def test_build_of_a_site_that_is_gone(two_sites, settings):
    """Exit 2: it is not a build of any site there is."""
    run("build_sitemaps")
    build = Publication.objects.get(site="one").build_id
    settings.SITEMAPKIT_SITES = {"two": {"BASE_URL": "https://two.example"}}
    code, _, err = run("publish_sitemaps", build)
    assert code == 2
    assert err == f"None of these sites has a build {build}."


def test_previous_rolls_back(client, two_builds):
    """Without the id of the build; twice is refused, since nothing was published before."""
    first, _ = two_builds
    code, out, err = run("publish_sitemaps", "--previous")
    assert (code, out, err) == (0, f"Site 'default' now serves build {first}.\n", "")
    assert slugs(client) == "c"
    code, out, err = run("publish_sitemaps", "--previous")
    assert (code, out) == (1, "")
    assert err == "Site 'default' has no earlier published build."


@pytest.mark.slow
def test_a_roll_back_pauses_publishing_until_it_is_resumed(client, two_builds):
    """The next builds are held; the status says who, why and until when."""
    first, _ = two_builds
    until = timezone.localtime(timezone.now() + dt.timedelta(days=1)).replace(tzinfo=None)
    when = until.isoformat(timespec="minutes")
    code, out, err = run("publish_sitemaps", "--previous", "--pause", "d is wrong", "--until", when)
    assert (code, err) == (0, "")
    said = f"Site 'default' now serves build {first}. Publishing is paused by command on "
    assert out.startswith(said)
    assert f" until {when.replace('T', ' ')}" in out
    assert out.endswith(": d is wrong.\n")
    code, _, err = run("build_sitemaps")
    assert code == 3
    assert "is held for review:\n  publishing was paused by command on " in err
    assert slugs(client) == "c"
    assert "  Publishing is paused by command on " in run("sitemap_status")[1]
    assert json.loads(run("sitemap_status", "--json")[1])[0]["pause"]["reason"] == "d is wrong"
    resumed = "Publishing of site 'default' is resumed.\n"
    assert run("publish_sitemaps", "--resume") == (0, resumed, "")
    assert "Publishing is paused" not in run("sitemap_status")[1]
    assert run("build_sitemaps")[0] == 0
    assert slugs(client) == "cd"
    out = run("publish_sitemaps", "--resume", "--json")[1]
    assert json.loads(out) == {"site": "default", "resumed": False}
    assert run("publish_sitemaps", "--resume")[1].endswith(" was not paused.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--resume", "--pause", "why"],
        ["--previous", "--pause", " "],
        ["--previous", "--until", "2030-01-31T09:00"],
        ["--previous", "--pause", "why", "--until", "2020-01-31T09:00"],
        ["--previous", "--pause", "why", "--until", "9999-01-31T09:00"],
        ["--previous", "--pause", "why", "--until", "tomorrow"],
    ],
)
def test_a_pause_has_a_reason_and_an_end_in_the_next_year(two_builds, arguments):
    """Else it is wrong usage: exit 2, and nothing is published or paused."""
    code, out, err = run("publish_sitemaps", *arguments)
    assert (code, out) == (2, "")
    assert "--pause" in err or "--until" in err
    publication = Publication.objects.get()
    assert (publication.build_id, publication.pause) == (two_builds[1], {})


@pytest.mark.parametrize("arguments", [[], ["7", "--previous"], ["7", "--resume"]])
def test_either_a_build_or_the_previous_one(two_builds, arguments):
    """Neither and both are wrong usage."""
    before = Publication.objects.get().build_id
    assert run("publish_sitemaps", *arguments)[0] != 0
    assert Publication.objects.get().build_id == before
