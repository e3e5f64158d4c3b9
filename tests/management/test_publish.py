"""``publish_sitemaps``: back to an earlier build, and forth."""

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
def test_build_with_a_lost_file(two_builds, section):
    """Exit 1, and the file is named."""
    run("publish_sitemaps", two_builds[0])
    line = line_of(section, 2)
    run("publish_sitemaps", two_builds[1])
    path_of(line).unlink()
    refused(two_builds[0], 1, line.name)


@pytest.mark.parametrize("section", ["products", ""])
def test_build_with_a_file_cut_short(two_builds, section):
    """Exit 1: half a file is no better than none."""
    run("publish_sitemaps", two_builds[0])
    line = line_of(section, 2)
    run("publish_sitemaps", two_builds[1])
    path_of(line).write_bytes(path_of(line).read_bytes()[:-7])
    refused(two_builds[0], 1, line.name)


def test_while_the_site_is_built(two_builds):
    """Exit 4: who publishes meanwhile would be overruled."""
    Lease.objects.acquire("build:default", seconds=60, owner="other-host")
    refused(two_builds[0], 4, "on other-host since")


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


@pytest.mark.parametrize("arguments", [[], ["7", "--previous"]])
def test_either_a_build_or_the_previous_one(two_builds, arguments):
    """Neither and both are wrong usage."""
    before = Publication.objects.get().build_id
    assert run("publish_sitemaps", *arguments)[0] != 0
    assert Publication.objects.get().build_id == before
