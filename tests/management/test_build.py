"""``build_sitemaps``: what it does, says, and ends with."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.models.expressions import RawSQL

from django_sitemapkit.builds import FileResult
from django_sitemapkit.management import base
from django_sitemapkit.models import Build, Lease, Page, Place, Plan, Publication
from django_sitemapkit.rendering import PageRendering
from tests.management import Terminal, line_of, names, run
from tests.testapp.models import Product, Reading, Tag
from tests.testapp.serving import (
    Products,
    Readings,
    declare,
    locations,
    make_products,
    make_readings,
)

pytestmark = pytest.mark.django_db


def test_a_line_for_each_file_and_a_total(products):
    """Every file has its line with state, entries and bytes; the total has them all."""
    code, out, err = run("build_sitemaps")
    lines = out.splitlines()

    assert (code, err) == (0, "")
    assert [line.split()[:4] for line in lines[:2]] == [
        ["products", "1", "stored", "2"],
        ["products", "2", "stored", "1"],
    ]
    assert lines[2].split()[:4] == ["index", "stored", "2", "sitemaps"]
    page = line_of("products")
    assert f"{page.xml_bytes} bytes" in " ".join(lines[0].split())
    assert f"{page.page.stored_bytes} bytes stored" in " ".join(lines[0].split())
    assert len(lines) == 5
    build = Build.objects.get().pk
    assert (
        lines[3]
        == f"Build {build} of site 'default': published; 3 URLs in 2 files and the index, 3 new."
    )
    assert re.fullmatch(r"It took [0-9.]+ s; 3 URLs rendered, [0-9,]+ per second\.", lines[4])


def test_lines_fit_a_terminal(bad):
    """The largest numbers do too; what was skipped has a line of its own."""
    _, out, _ = run("build_sitemaps")
    assert max(map(len, out.splitlines())) <= 80
    largest = FileResult(
        section="landing-pages",
        number=1_000,
        state="stored",
        urls=50_000,
        xml_bytes=1_023,
        stored_bytes=52_428_799,
        seconds=99.99,
        skipped=1_000,
        kinds={"duplicate-url": (900, "")},
    )
    line, skipped = base.file_lines(largest)
    assert len(line) == 80
    expected = "landing-pages 1000 stored 50,000 URLs 1023 bytes 50.0 MB stored 99.99 s"
    assert " ".join(line.split()) == expected
    assert skipped == "  1,000 rows skipped, 900 of them duplicates"


@pytest.mark.usefixtures("methods_are_called")
def test_a_row_that_comes_twice_is_one_line(products, sections, storage):
    """Where no check could see it, the build fails by section and row, and publishes nothing."""
    tags = Tag.objects.bulk_create([Tag(name="one"), Tag(name="two")])
    for product in Product.objects.all():
        product.tags.set(tags)
    rows = Product.objects.filter(tags__name__gt="").distinct()
    twice = rows.annotate(tag=RawSQL("testapp_tag.name", ()))
    declare(sections, Products, name="twice", queryset=twice, location=lambda self, obj: "/")
    code, _, err = run("build_sitemaps")
    assert code == 1
    assert "Section 'twice': the row with key" in err
    assert len(err.strip().splitlines()) == 1
    assert not Publication.objects.exists()


def test_second_build_stores_nothing(products, storage):
    """What has not changed is the same, and is listed only with ``--verbosity 2``."""
    run("build_sitemaps")
    before = names(storage)
    code, out, _ = run("build_sitemaps")
    assert code == 0
    assert out.startswith("Build ")
    _, out, _ = run("build_sitemaps", "--verbosity", 2)
    assert [line.split()[2] for line in out.splitlines()[:2]] == ["same", "same"]
    assert "unchanged; 3 URLs in 2 files and the index, 0 new" in out
    assert names(storage) == before


@pytest.mark.slow
def test_named_sections_alone_are_made_anew(products, sections):
    """The others keep their files, though their rows have changed."""
    declare(sections, Readings)
    make_readings([1])
    run("build_sitemaps")
    name = line_of("products").name
    Product.objects.filter(slug="a").delete()
    Reading.objects.create(level=2)
    code, out, _ = run("build_sitemaps", "readings")
    assert code == 0
    assert "products" not in out
    assert line_of("products").name == name
    assert line_of("readings").urls == 2


@pytest.mark.slow
def test_named_site_alone_is_built(two_sites):
    """Without ``--site`` all are; a key is enough for ``call_command()``."""
    assert run("build_sitemaps", "--site", "two")[0] == 0
    assert [p.site for p in Publication.objects.all()] == ["two"]
    call_command("build_sitemaps", site="one", verbosity=0)
    assert {p.site for p in Publication.objects.all()} == {"one", "two"}


def test_unknown_site_or_section_is_a_usage_error(two_sites):
    """Exit 2, with the names there are; nothing is done before that."""
    code, out, err = run("build_sitemaps", "--site", "three")
    assert (code, out) == (2, "")
    assert "Site 'three' does not exist. Known sites: one, two." in err
    for option in ([], ["--plan-only"], ["--dry-run"]):
        code, out, err = run("build_sitemaps", "nothing", *option)
        assert (code, out) == (2, ""), option
        assert "no section 'nothing'; it has: products." in err
    assert not Build.objects.exists()
    assert not Plan.objects.exists()


def test_no_site_is_a_usage_error(settings, products):
    """Where no setting says where the site is, the error says which would."""
    settings.SITEMAPKIT_BASE_URL = None
    code, _, err = run("build_sitemaps")
    assert code == 2
    assert "SITEMAPKIT_BASE_URL" in err


def test_plan_makes_no_file(products, storage):
    """``--plan-only`` stores the pages and nothing else."""
    code, out, _ = run("build_sitemaps", "--plan-only")
    assert code == 0
    assert out.startswith(f"{'products':<34}2 pages, 2 new, 0 retired\n  replanned: ")
    assert re.fullmatch(
        r"Plans of site 'default' updated: 2 pages in 1 section, [0-9.]+ s\.",
        out.splitlines()[-1],
    )
    assert Page.objects.count() == 2
    assert not Build.objects.exists()
    assert names(storage) == []


def test_plan_of_named_sections(products, sections):
    """Only those named are planned."""
    declare(sections, Readings)
    run("build_sitemaps", "readings", "--plan-only")
    assert [plan.section for plan in Plan.objects.all()] == ["readings"]


@pytest.mark.parametrize("mode", ["--plan-only", "--dry-run"])
@pytest.mark.parametrize("option", [["--runner", "processes"], ["--workers", "2"]])
def test_a_runner_without_a_build_is_refused(products, mode, option):
    """It would do nothing."""
    code, _, err = run("build_sitemaps", mode, *option)
    assert code == 2
    assert "--workers cannot be combined with --plan-only" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--runner", "tests.runners.missing"], "missing"),
        (["--workers", "0"], "not 0"),
        (["--runner", "inline", "--workers", "2"], "'inline' starts no workers"),
    ],
)
def test_a_runner_that_cannot_be_is_wrong_usage(products, options, said):
    """Exit 2, before anything is built."""
    code, _, err = run("build_sitemaps", *options)
    assert code == 2
    assert said in err
    assert not Build.objects.exists()


def test_dry_run_writes_nothing(products, storage):
    """It says what would be stored: no statement but SELECT runs, no file comes."""
    statements = []

    def note(execute, sql, params, many, context):
        statements.append(sql.split()[0].upper())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        code, out, _ = run("build_sitemaps", "--dry-run")
    assert code == 0
    assert set(statements) == {"SELECT"}
    assert names(storage) == []
    assert [line.split()[:4] for line in out.splitlines()[:2]] == [
        ["products", "1", "stored", "2"],
        ["products", "2", "stored", "1"],
    ]
    assert "Dry run of site 'default': dry-run; 3 URLs" in out


def test_dry_run_compares_with_what_is_published(products, storage):
    """A page that would be stored again is distinguished from one that is the same."""
    run("build_sitemaps")
    before, rows = names(storage), Place.objects.count()
    make_products("d")
    _, out, _ = run("build_sitemaps", "--dry-run")
    assert [line.split()[:3] for line in out.splitlines()[:-2]] == [["products", "2", "stored"]]
    _, out, _ = run("build_sitemaps", "--dry-run", "--verbosity", 2)
    assert [line.split()[2] for line in out.splitlines()[:2]] == ["same", "stored"]
    assert (names(storage), Place.objects.count()) == (before, rows)


@pytest.mark.slow
def test_fail_on_skipped_ends_with_5_where_a_row_was_skipped(bad, storage):
    """The files are published all the same; without the option the exit code is 0."""
    code, out, err = run("build_sitemaps", "--fail-on-skipped")
    assert code == 5
    assert "1 row skipped." in err
    assert "1 row skipped" in out
    assert line_of("bad").urls == 1
    assert run("build_sitemaps")[0] == 0
    assert run("build_sitemaps", "--fail-on-skipped", "--dry-run")[0] == 5
    Product.objects.filter(slug="b").delete()
    assert run("build_sitemaps", "--fail-on-skipped")[0] == 0


def test_strict_holds_a_build_with_skipped_rows(bad):
    """It is published once it was reviewed, or when no row is skipped any more."""
    code, _, err = run("build_sitemaps", "--strict")
    assert code == 3
    assert "is held for review" in err
    held = Build.objects.get()
    assert held.status == Build.Status.HELD
    assert held.reason["sections"][0]["section"] == "bad"
    assert run("publish_sitemaps", held.pk)[0] == 0
    Product.objects.filter(slug="b").delete()
    assert run("build_sitemaps", "--strict")[0] == 0


def test_json_has_the_result_of_each_site(bad):
    """One line and nothing else, for builds, dry runs and plans."""
    code, out, err = run("build_sitemaps", "--json")
    (result,) = map(json.loads, out.splitlines())
    assert (code, err) == (0, "")
    assert result["site"] == "default"
    assert result["build"] == Build.objects.get().pk
    assert (result["status"], result["urls"], result["skipped"]) == ("published", 1, 1)
    assert result["problems"][0].startswith("Problem: bad")
    assert json.loads(run("build_sitemaps", "--json", "--dry-run")[1])["status"] == "dry-run"
    plan = json.loads(run("build_sitemaps", "--json", "--plan-only")[1])
    assert plan["plans"] == [
        {"section": "bad", "pages": 1, "added": [], "retired": [], "replanned": ""}
    ]


@pytest.mark.slow
def test_verbosity(bad):
    """0 is silent, 1 has a line for each kind of problem, 2 one for each problem."""
    assert run("build_sitemaps", "--verbosity", 0) == (0, "", "")
    row = f"bad {Product.objects.get(slug='b').pk}: "
    for verbosity, start in ((1, f"Problem: {row}"), (2, f"  {row}")):
        _, out, err = run("build_sitemaps", "--verbosity", verbosity)
        assert out
        assert [line.startswith(start) for line in err.splitlines()] == [True]
        assert "evil.example" in err
    assert run("build_sitemaps", "--plan-only", "--verbosity", 0) == (0, "", "")
    assert run("build_sitemaps", "--dry-run", "--verbosity", 0) == (0, "", "")


def test_another_builder_has_the_site(products):
    """Exit 4, or 0 where that was asked for; the line says who builds, and since when."""
    lease = Lease.objects.acquire("build:default", seconds=60, owner="other-host")
    who = f"process {os.getpid()} on other-host since {lease.acquired_at:%Y-%m-%d %H:%M:%S} UTC"
    code, out, err = run("build_sitemaps")
    assert (code, out) == (4, "")
    assert who in err
    code, out, err = run("build_sitemaps", "--skip-if-running")
    assert (code, err) == (0, "")
    assert out.startswith("Site 'default' skipped: ")
    assert who in out
    assert run("build_sitemaps", "--skip-if-running", "--verbosity", 0) == (0, "", "")
    code, out, err = run("build_sitemaps", "--skip-if-running", "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert (result["site"], result["build"], result["status"]) == ("default", None, "running")
    assert (result["urls"], result["files"]) == (0, 0)
    assert who in result["reason"]
    assert not Build.objects.exists()
    lease.release()
    assert run("build_sitemaps")[0] == 0


def test_skipped_site_does_not_keep_the_others_waiting(two_sites):
    """``--skip-if-running`` goes on with the next site."""
    Lease.objects.acquire("build:one", seconds=60)
    assert run("build_sitemaps", "--skip-if-running")[0] == 0
    assert [p.site for p in Publication.objects.all()] == ["two"]


def test_failed_site_does_not_keep_the_others_waiting(two_sites, monkeypatch):
    """A site without a URL, such as that of a new shop, fails alone; the command exits with 1."""
    monkeypatch.setattr(
        Products,
        "get_queryset",
        lambda self: Product.objects.filter(slug="" if self.site.key == "one" else "a"),
    )
    code, _, err = run("build_sitemaps")
    assert code == 1
    assert "Site 'one': no section has a URL" in err
    assert [p.site for p in Publication.objects.all()] == ["two"]


def test_failed_site_is_told_if_another_error_ends_the_command(two_sites, monkeypatch):
    """Its message comes first."""

    def get_queryset(section):
        if section.site.key == "two":
            raise OperationalError("gone")
        return Product.objects.none()

    monkeypatch.setattr(Products, "get_queryset", get_queryset)
    code, _, err = run("build_sitemaps")
    assert code == 1
    assert "Site 'one': no section has a URL" in err.splitlines()[0]
    assert "The database failed: gone" in err


def test_nothing_to_publish_is_a_failure(sections):
    """Exit 1: an empty index would be invalid."""
    declare(sections, Products)
    code, _, err = run("build_sitemaps")
    assert code == 1
    assert "no section has a URL" in err


def test_storage_that_is_full_is_a_failure(products, storage, monkeypatch):
    """Exit 1 with the reason, and what is published stays."""
    run("build_sitemaps")
    published = Publication.objects.get().build_id
    make_products("d")

    def full(self, name, content, max_length=None):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("django.core.files.storage.FileSystemStorage.save", full)
    code, _, err = run("build_sitemaps")
    assert code == 1
    assert "No space left on device" in err
    assert Publication.objects.get().build_id == published
    assert not Lease.objects.exclude(owner="").exists()


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(143)])
def test_whatever_breaks_a_build_gives_the_lease_back(products, storage, monkeypatch, error):
    """An error of the project's code is not taken for a wrong option, and nothing is left over."""
    run("build_sitemaps")
    published, stored = Publication.objects.get().build_id, names(storage)
    make_products("d")
    monkeypatch.setattr(PageRendering, "blocks", Mock(side_effect=error))
    with pytest.raises(type(error)):
        run("build_sitemaps")

    assert not Lease.objects.exclude(owner="").exists()
    assert Publication.objects.get().build_id == published
    assert names(storage) == stored
    assert not list(storage.rglob(".building-*"))


def test_bar_only_on_a_terminal(products):
    """A log file gets plain lines; a terminal gets a bar that is gone in the end."""
    _, plain, _ = run("build_sitemaps", "--dry-run")
    assert "\r" not in plain
    assert "█" not in plain
    _, shown, _ = run("build_sitemaps", "--dry-run", out=Terminal())
    assert "1 of 2" in shown
    assert shown.count("2 of 2") == 1
    assert shown.split("2 of 2")[1].startswith("\r\r\x1b[K")
    for verbosity in (0, 2):
        _, other, _ = run("build_sitemaps", "--dry-run", "--verbosity", verbosity, out=Terminal())
        assert "█" not in other


def test_the_bar_has_the_rate_and_the_time_left(products, monkeypatch):
    """Once they say something; a short build shows neither."""
    pattern = r"░ 1 of 2, [0-9,]+ URLs/s, 0:00:\d\d left\r"
    monkeypatch.setattr(base, "ESTIMATE_SECONDS", 3600)
    assert not re.search(pattern, run("build_sitemaps", "--dry-run", out=Terminal())[1])
    monkeypatch.setattr(base, "ESTIMATE_SECONDS", 0)
    assert re.search(pattern, run("build_sitemaps", "--dry-run", out=Terminal())[1])
    assert "left" not in run("build_sitemaps", "--dry-run")[1]


def test_the_time_left_is_that_of_rendering(monkeypatch):
    """Files that are reused come first, take no time and do not count."""
    out = Terminal()
    command = base.SiteCommand(stdout=out)
    command.terminal = True
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=100.0)
    monkeypatch.setattr(base, "time", clock)

    def shown(place, now, **options):
        out.seek(0)
        out.truncate()
        clock.now = now
        progress(FileResult(section="a", number=place, urls=50_000, **options), place, 2_000)
        return out.getvalue().rpartition("\x1b[K")[2]

    progress = base.Progress(command)
    assert shown(1, 150, state="same") == f"{'░' * 20} 1 of 2,000\r"
    assert shown(1_000, 160, state="same") == f"{'█' * 10}{'░' * 10} 1,000 of 2,000\r"
    text = shown(1_001, 164, state="stored", seconds=4.0)
    assert text.endswith(" 1,001 of 2,000, 12,500 URLs/s, 1:06:36 left\r")
    text = shown(1_002, 166, state="stored", seconds=6.0)  # By another process, at the same time.
    assert text.endswith(" 1,002 of 2,000, 16,667 URLs/s, 0:49:54 left\r")
    assert len(text.splitlines()[-1]) <= 80


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({"force_color": True}, "\x1b[33;1mBuild "),
        ({"no_color": True}, "Build "),
    ],
)
def test_the_total_has_a_colour(bad, options, start):
    """That of a warning if rows were skipped, else that of success; the text is the same."""
    out = StringIO()
    call_command("build_sitemaps", stdout=out, stderr=StringIO(), **options)
    *_, total, took = out.getvalue().splitlines()
    assert total.startswith(start)
    assert took.endswith("Skipped: 1 row." + "\x1b[0m" * ("\x1b" in start))
    Product.objects.filter(slug="b").delete()
    out = StringIO()
    call_command("build_sitemaps", stdout=out, **options)
    assert out.getvalue().splitlines()[-2].startswith(start.replace("33", "32"))


def test_signal_handler_is_put_back(products):
    """Who calls the command from a longer program keeps its own handling of SIGTERM."""
    before = signal.getsignal(signal.SIGTERM)
    run("build_sitemaps")
    assert signal.getsignal(signal.SIGTERM) is before


# In a process of its own --------------------------------------------------------------------------

CHILD = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # Ignored by what runs in the background.
sys.path.append({root!r})
sys.path.append({folder!r})
os.environ["DJANGO_SETTINGS_MODULE"] = "child_settings"
import django
django.setup()
from django.core.management import execute_from_command_line
from django_sitemapkit.registry import registry
from tests.testapp.models import Reading
from tests.testapp.serving import Readings, declare

class Slow(Readings):
    name = "readings"

    def location(self, reading):
        if "SLOW" in os.environ:
            print("rendering", flush=True)
            time.sleep(60)
        return f"/readings/{{reading.pk}}/"

registry._sections.clear()
registry.add(Slow)
if sys.argv[1] == "prepare":
    execute_from_command_line(["child", "migrate", "--run-syncdb", "--verbosity", "0"])
    Reading.objects.create(level=1)
    sys.argv[1:] = ["build_sitemaps"]
execute_from_command_line(sys.argv)
"""

SETTINGS = """
from tests.settings import *
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": {database!r}}}}}
STORAGES = {{"sitemaps": {{"BACKEND": "django.core.files.storage.FileSystemStorage",
                         "OPTIONS": {{"location": {files!r}}}}}}}
"""


class Project:
    """A project in a folder, whose commands run as processes."""

    def __init__(self, folder):
        self.database = folder / "db.sqlite3"
        self.files = folder / "files"
        self.script = folder / "child.py"
        root = str(Path(__file__).parents[2])
        self.script.write_text(CHILD.format(root=root, folder=str(folder)))
        (folder / "child_settings.py").write_text(
            SETTINGS.format(database=str(self.database), files=str(self.files))
        )

    def start(self, *arguments, **environment):
        return subprocess.Popen(
            [sys.executable, str(self.script), *arguments],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments):
        process = self.start(*arguments)
        out, _ = process.communicate(timeout=60)
        return process.returncode, out

    def ask(self, sql):
        database = sqlite3.connect(self.database)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()


@pytest.fixture
def project(tmp_path, tmp_path_factory, request):
    """Give a project that has a build published."""
    ready = request.config.stash.get(READY, None)
    if ready is None:
        ready = tmp_path_factory.mktemp("project")
        code, out = Project(ready).run("prepare")
        assert code == 0, out
        request.config.stash[READY] = ready
    folder = tmp_path / "project"
    shutil.copytree(ready, folder)
    return Project(folder)


READY = pytest.StashKey()


@pytest.mark.thorough
def test_exit_codes_of_processes(project):
    """A shell sees them: 0, 1, 2 and 4, each with a line and no traceback."""
    assert project.run("build_sitemaps")[0] == 0
    assert project.run("sitemap_status", "--max-age", "1")[0] == 0
    code, out = project.run("build_sitemaps", "nothing")
    assert code == 2
    assert "no section 'nothing'" in out
    project.run("build_sitemaps")
    for file in project.files.rglob("*.xml.gz"):
        file.write_bytes(b"")
    code, damaged = project.run("validate_sitemaps")
    assert code == 1
    assert "INVALID" in damaged
    assert "Traceback" not in out + damaged


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.thorough
def test_signal_ends_a_build_cleanly(project, number):
    """The lease is free, what is published stays, nothing half lies about; the next run builds."""
    published = project.ask("SELECT build_id FROM sitemapkit_publication")
    files = names(project.files)
    process = project.start("build_sitemaps", SLOW="1")
    try:
        assert process.stdout.readline() == "rendering\n"
        time.sleep(0.05)
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()

    assert process.returncode == 128 + number
    assert "Traceback" not in out
    said = "Interrupted. The published files stay; the next run adopts its pages.\n"
    assert number != signal.SIGINT or out == said
    assert project.ask("SELECT owner FROM sitemapkit_lease WHERE owner <> ''") == []
    assert project.ask("SELECT build_id FROM sitemapkit_publication") == published
    assert names(project.files) == files
    assert not list(project.files.rglob(".building-*"))
    assert project.run("build_sitemaps", "--fail-on-skipped")[0] == 0
    page = next(project.files.rglob("readings-1-*.xml.gz")).read_bytes()
    assert locations(page) == ["https://www.example.com/readings/1/"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("sitemap_status", "--quick"),
        ("sitemap_status", "--json"),
        ("inspect_sitemap_url", "/readings/1/"),
        ("validate_sitemaps", "--verbosity", "2"),
        ("build_sitemaps", "--full", "--verbosity", "2"),
        ("prune_sitemaps",),
    ],
)
@pytest.mark.thorough
def test_a_reader_that_closes_the_output_ends_a_command_quietly(project, arguments):
    """As `head` does: no traceback, neither at once nor on exit."""
    process = subprocess.Popen(
        [sys.executable, str(project.script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), error) == (141, "")
