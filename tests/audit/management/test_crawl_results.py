"""crawl_sitemaps: its output, what it saves, and what changed since the previous crawl."""

import csv
import json
from functools import partial

import pytest
from django.http import HttpResponse, HttpResponseNotFound
from django.urls import include, path

from django_sitemapkit import StaticSection
from django_sitemapkit.audit.management.commands import crawl_sitemaps
from django_sitemapkit.audit.models import AuditRun, SavedPage
from django_sitemapkit.audit.sections import CrawledSection
from django_sitemapkit.audit.validation import validate_source
from django_sitemapkit.models import SectionSettings
from tests.builds import BASE, in_order, served, use_storage
from tests.builds import run as build
from tests.management import run as run_command

pytestmark = pytest.mark.django_db

TITLE = "می\u200cخواهم 👩\u200d💻"
"""Persian letters and emoji with what joins them or not."""

LINKS = {}
"""The paths that each page links to; what has no entry is not found."""


def web_page(request, rest):
    """Answer with a page of links."""
    if rest not in LINKS:
        return HttpResponseNotFound()
    links = "".join(f'<a href="/{target}">To {target}</a>' for target in LINKS[rest])
    return HttpResponse(f"<!doctype html><title>{TITLE} /{rest}</title>{links}")


urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("<path:rest>", web_page),
    path("", web_page, {"rest": ""}),
]


class Listed(StaticSection):
    """What the sitemap lists besides saved pages."""

    items = ["/", "/a/"]


@pytest.fixture(autouse=True)
def _site(settings, sections):
    settings.ROOT_URLCONF = __name__
    sections.add(Listed)
    LINKS.clear()
    LINKS.update({"": ["a/", "b/", "missing/"], "a/": ["b/"], "b/": ["c/"], "c/": [""]})
    use_storage(settings, "Memory")


command = partial(run_command, "crawl_sitemaps")


def test_output_is_written(tmp_path):
    """Valid sitemaps, and tables; the last line says where."""
    folder = tmp_path / "new"
    code, out, _ = command("--output", str(folder))
    assert code == 0
    assert out.splitlines()[-1] == f"  5 files written to {folder}."
    for report in validate_source(str(folder)):
        assert report.error_count == 0
        assert report.urls == 4
    assert f">{TITLE} /c/<" in (folder / "sitemap.html").read_text()
    with (folder / "links.csv").open(encoding="utf-8-sig", newline="") as file:
        assert list(csv.reader(file))[1:] == [
            [f"{BASE}/missing/", "broken", "404", "", f"{BASE}/", "a", "To missing/"]
        ]


def test_files_of_a_web_server_are_not_judged(settings):
    """Below STATIC_URL and MEDIA_URL only what Django answers; the first line counts the others."""
    settings.STATIC_URL, settings.MEDIA_URL = "static/", f"{BASE}/files/"
    LINKS[""] = ["a/", "b/", "static/a.pdf", "files/b.pdf", "files/list/"]
    LINKS["files/list/"] = ["missing/"]
    code, out, _ = command("--fail-on", "undetermined")
    assert (code, out.splitlines()[0].partition(";")[0]) == (
        0,
        "Site 'default': 8 URLs crawled, 2 files left to the web server, 1 broken link",
    )
    settings.STATIC_URL, settings.MEDIA_URL = None, ""
    assert "8 URLs crawled, 3 broken links" in command()[1]


def test_output_that_cannot_be_written_is_refused_at_once(tmp_path, settings):
    """Before anything is fetched: a file, or several sites."""
    (tmp_path / "file").touch()
    code, _, error = command("--output", str(tmp_path / "file"))
    assert (code, error) == (2, f"{tmp_path}/file is not a folder. Name another folder.")
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example"},
    }
    code, _, error = command("--output", str(tmp_path))
    assert (code, error) == (2, "--output is for one site. Choose it with --site: one, two.")
    assert not AuditRun.objects.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_at_the_end_costs_no_crawl(tmp_path, monkeypatch):
    """The next run writes what was found, and only then is the crawl finished."""

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("django_sitemapkit.audit.crawl.output.write_sitemaps", fail)
        code, _, error = command("--output", str(tmp_path))
    assert (code, "continue the crawl" in error) == (1, True)
    assert (AuditRun.objects.get().status, list(tmp_path.iterdir())) == ("running", [])
    LINKS.clear()
    code, out, _ = command("--output", str(tmp_path))
    assert (code, "5 URLs crawled" in out, AuditRun.objects.get().status) == (0, True, "finished")
    assert (tmp_path / "urls.txt").read_text().count("\n") == 4


def test_limits_that_are_too_small_are_a_usage_error(tmp_path, settings):
    """The message names the setting."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    LINKS["a/"] = ["b/?" + "&" * 1000]
    code, _, error = command("--output", str(tmp_path))
    assert code == 2
    assert error.startswith("SITEMAPKIT_MAX_BYTES is too small for")


@pytest.mark.slow
def test_pages_are_saved_and_get_a_sitemap(sections, client):
    """What no section lists is in the section of crawled pages after the next build."""
    sections.add(CrawledSection)
    out = command("--save")[1]
    assert out.splitlines()[-1] == "  Saved pages: 2 new."
    build()
    assert [url.removeprefix(BASE) for url, _ in in_order(served(client))] == [
        "/", "/a/", "/b/", "/c/",
    ]  # fmt: skip
    LINKS["b/"] = []
    out = command("--save")[1]
    assert out.splitlines()[-1] == "  Saved pages: 1 found again, 1 not found, but kept."
    out = command("--save", "--max-urls", "2")[1]
    end = "nothing is removed by an incomplete crawl."
    assert out.splitlines()[-1] == f"  Saved pages: 2 not found, but kept; {end}"


@pytest.mark.slow
def test_saved_pages_do_not_list_themselves(sections):
    """That the section lists them does not keep a crawl from finding them again."""
    sections.add(CrawledSection)
    command("--save")
    build()
    command("--save")
    assert list(SavedPage.objects.order_by("path").values_list("path", flat=True)) == [
        "/b/",
        "/c/",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["crawled", "renamed"])
def test_what_is_still_published_does_not_count(sections, name):
    """Of a section of saved pages that was switched off or renamed since the last build."""
    sections.add(CrawledSection)
    command("--save")
    build()
    sections.remove("crawled")
    sections.add(CrawledSection, name)
    SectionSettings.objects.create(site="default", section="crawled", enabled=False)
    assert command("--save")[1].splitlines()[-1] == "  Saved pages: 2 found again."


def test_saving_without_the_section_is_a_usage_error():
    """Before anything is fetched, with what to write."""
    code, _, error = command("--save")
    assert code == 2
    assert "register(CrawledSection)" in error
    assert not AuditRun.objects.exists()


@pytest.mark.slow
def test_changes_are_printed():
    """Since the previous crawl, if there is one."""
    none = "  There is no earlier crawl with these starts to compare with."
    assert command("--diff")[1].splitlines()[-1] == none
    first = AuditRun.objects.latest("pk")
    began = f"{first.started_at:%Y-%m-%d %H:%M}"
    assert f"Since crawl {first.pk} of {began}: no changes." in command("--diff")[1]
    second = AuditRun.objects.latest("pk")
    LINKS["missing/"] = ["d/"]
    LINKS["d/"] = []
    del LINKS["c/"]
    lines = command("--diff")[1].splitlines()
    assert [line.strip() for line in lines[-4:]] == [
        f"Since crawl {second.pk} of {began}: 1 new, 1 broken, 1 repaired.",
        f"new: {BASE}/d/",
        f"broken: {BASE}/c/",
        f"repaired: {BASE}/missing/",
    ]


@pytest.mark.slow
def test_crawls_with_other_starts_are_not_compared(sections):
    """Nor does one that did not start at the home page remove pages."""
    sections.add(CrawledSection)
    command("--save")
    out = command("/c/", "--diff", "--save", "--max-depth", "9")[1].splitlines()
    assert out[-2] == "  There is no earlier crawl with these starts to compare with."
    end = "nothing is removed by an incomplete crawl."
    assert out[-1] == f"  Saved pages: 2 found again; {end}"


@pytest.mark.slow
def test_json_has_everything(sections, tmp_path):
    """Each result on a line of its own."""
    sections.add(CrawledSection)
    command()
    LINKS["b/"] = []
    code, out, _ = command("--json", "--diff", "--save", "--output", str(tmp_path))
    assert code == 0
    lines = list(map(json.loads, out.splitlines()))
    first, second = AuditRun.objects.order_by("pk").values_list("pk", flat=True)
    about = {"site": "default", "crawl": second}
    assert lines[-4:] == [
        {"site": "default", "change": "gone", "url": f"{BASE}/c/", "before": "page", "after": ""},
        {**about, "since": first, "changes": {"gone": 1}},
        {
            **about,
            "saved": {
                "is_complete": True, "new": 1, "found_again": 0, "listed_elsewhere": 0,
                "removed": 0, "missing": 0,
            },
        },
        {
            **about,
            "files": ["pages.csv", "links.csv", "sitemap.html", "urls.txt", "sitemap.xml"],
        },
    ]  # fmt: skip


def test_nothing_is_printed_without_verbosity(sections, tmp_path):
    """But all of it is done."""
    sections.add(CrawledSection)
    options = ("--diff", "--save", "--output", str(tmp_path), "--verbosity", "0")
    assert command(*options) == (0, "", "")
    assert SavedPage.objects.exists()
    assert (tmp_path / "sitemap.xml").exists()


@pytest.mark.parametrize(
    ("interrupted", "said"),
    [
        ("crawl.crawl", "Run the same command again to continue the crawl.\n"),
        ("crawl.output.write_output", "Run the same command again to continue the crawl.\n"),
        ("crawl.saving.save_pages", "All URLs had been fetched, and the findings are recorded.\n"),
    ],
)
def test_ctrl_c_says_what_is_left_to_do(interrupted, said, sections, tmp_path, monkeypatch, capfd):
    """A crawl that is finished cannot be continued, whatever was interrupted behind it."""

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    sections.add(CrawledSection)
    monkeypatch.setattr(f"django_sitemapkit.audit.{interrupted}", interrupt)
    with pytest.raises(SystemExit) as end:
        crawl_sitemaps.Command().run_from_argv(
            ["manage.py", "crawl_sitemaps", "--save", "--output", str(tmp_path / "new")]
        )
    assert end.value.code == 130
    assert capfd.readouterr().err == f"Interrupted. {said}"
