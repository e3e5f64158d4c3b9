"""A section that fails stops no command that needs none: it is reported, and the rest is done."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from django_sitemapkit.models import Build
from tests.builds import Products, Readings, edit_product, fill, run
from tests.factories import SITE
from tests.management import line_of, path_of
from tests.prepared import once

pytestmark = pytest.mark.django_db

FAULT = "no such shelf"


def broken(self):
    """Fail, as a queryset may whose model or setting has gone."""
    raise LookupError(FAULT)


@pytest.fixture
def first(sections):
    """Publish two builds, break a section, and return the first build."""
    for section in (Products, Readings):
        sections.add(section)

    def make():
        fill()
        first = run().build
        edit_product("p0")
        run()
        return first

    first = once((__name__, "first"), make)
    sections.remove("products")
    sections.add(type("Products", (Products,), {"get_queryset": broken}))
    return first


def checked(*arguments):
    """Run a command with its checks, as a shell does; return its code, output and errors."""
    out, err = StringIO(), StringIO()
    try:
        call_command(*map(str, arguments), stdout=out, stderr=err, skip_checks=False)
    except CommandError as error:
        return error.returncode, out.getvalue(), f"{err.getvalue()}{error}"
    return 0, out.getvalue(), err.getvalue()


def test_a_roll_back_is_done_and_the_fault_reported(first):
    """That is when it is needed most."""
    code, out, err = checked("publish_sitemaps", first)
    assert (code, out) == (0, f"Site 'default' now serves build {first}.\n")
    assert Build.objects.published(SITE).pk == first
    assert FAULT in err


@pytest.mark.parametrize("quick", [[], ["--quick"]])
def test_the_status_is_told_with_the_fault(first, quick):
    """Among what is due, for people and programs; all of the others is reported."""
    code, out, err = checked("sitemap_status", *quick)
    assert code == 0
    assert f"  due: products: cannot be read: LookupError: {FAULT}\n" in out
    assert out.endswith("\n  A build would fail: correct what cannot be read.\n")
    assert "readings" in out
    assert FAULT in err
    code, out, _ = checked("sitemap_status", "--json", *quick)
    assert code == 0
    (site,) = json.loads(out)
    assert [item["error"] for item in site["due"]] == [f"LookupError: {FAULT}"]


@pytest.mark.parametrize(
    "command",
    [
        ["inspect_sitemap_url", "/readings/10/"],
        ["diff_sitemaps"],
        ["cancel_sitemap_build"],
        ["sitemap_status", "--max-age=1"],
        ["advise_sitemaps"],
    ],
    ids=lambda command: command[0],
)
def test_what_is_published_is_read(first, command):
    """A section that fails keeps no such command from its work."""
    assert checked(*command)[0] == 0


def test_published_files_are_validated(first):
    """Those of the section that fails, too."""
    code, out, err = checked("validate_sitemaps")
    assert code == 0
    assert "sitemap-products-1" in out
    assert FAULT in err


def test_a_repair_says_that_it_needs_the_section(first):
    """What is lost cannot be rendered without it; nothing is changed."""
    before = Build.objects.published(SITE).pk
    path_of(line_of("products", 2)).unlink()
    code, _, err = checked("validate_sitemaps", "--repair")
    assert code == 1
    assert err.count(FAULT) == 2  # By the check, and by the repair.
    assert Build.objects.published(SITE).pk == before
    assert not Build.objects.filter(status="running").exists()


def test_old_files_are_pruned(first):
    """Rows are no matter."""
    code, out, err = checked("prune_sitemaps")
    assert code == 0
    assert "orphans deleted" in out
    assert FAULT in err


def test_a_build_needs_all_sections(first):
    """One section that fails ends it."""
    with pytest.raises(CommandError, match=FAULT):
        call_command("build_sitemaps", skip_checks=False)
