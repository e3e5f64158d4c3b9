"""The mistakes of a first day, and the words they are answered with: no traceback, a way out."""

import datetime as dt
import errno
import json
import logging
import sys
import tempfile
from io import BytesIO, StringIO, TextIOWrapper

import pytest
from django.conf import global_settings
from django.core import checks as django_checks
from django.core.management import call_command
from django.core.management.base import OutputWrapper
from django.db import OperationalError, connections
from django.db.migrations.recorder import MigrationRecorder

from django_sitemapkit import checks
from django_sitemapkit.management.base import PrintableOutput
from django_sitemapkit.management.commands.build_sitemaps import Command
from django_sitemapkit.models import Build, Lease, Publication, Revision
from tests.factories import SITE
from tests.management import Terminal, run
from tests.testapp.models import Product
from tests.testapp.serving import Products, declare, make_products

pytestmark = pytest.mark.django_db

FUTURE = dt.datetime(2999, 1, 1, tzinfo=dt.UTC)


class Many(Products):
    """Rows on two pages, of which all but one are refused, for two reasons."""

    name = "many"
    limit = 3

    def location(self, product):
        if product.slug == "a":
            return "/a/"
        if product.slug == "b":
            raise ValueError("no \x1b[31mpath")
        return f"https://evil.example/{product.slug}"


# Rows that are left out


@pytest.fixture
def many(sections):
    """Declare a section whose rows are refused for two reasons."""
    sections.add(Many)
    make_products(*"abcde")


def test_skipped_rows_have_a_line_for_each_reason(many, caplog):
    """How often, the first example, the count in the total; the log has the same lines."""
    first, second = Product.objects.order_by("pk").values_list("pk", flat=True)[1:3]
    code, out, err = run("build_sitemaps")
    lines = err.splitlines()
    assert code == 0
    assert lines[0].startswith(f"Problem: many {first}: location raised ValueError: no \\x1b[31m")
    assert lines[1].startswith(f"Problem (3 times): many {second}: ")
    assert "evil.example/c" in lines[1]
    assert lines[2:] == ["--verbosity 2 prints the first 20 of each kind in each file."]
    assert out.splitlines()[-1].endswith(" per second. Skipped: 4 rows.")
    logged = [record.getMessage() for record in caplog.records]
    assert logged == [f"Site 'default': {line}" for line in lines[:2]]


@pytest.mark.slow
def test_pages_that_did_not_change_tell_their_reasons_too(many):
    """The next build says the same, though it renders nothing; so does a dry run."""
    _, _, first = run("build_sitemaps")
    _, out, again = run("build_sitemaps")
    assert "unchanged" in out
    assert again == first
    assert run("build_sitemaps", "--dry-run")[2] == first


def test_values_that_are_left_out_are_counted(sections):
    """The row is listed, and the total says that something is missing."""
    declare(sections, Products, lastmod=lambda self, product: FUTURE)
    make_products("a", "b")
    _, out, err = run("build_sitemaps")
    assert err.startswith("Problem (2 times): products ")
    assert out.splitlines()[-1].endswith(" Skipped: 2 values.")


def test_a_build_of_nothing_but_skipped_rows_says_why(bad, caplog):
    """Where no row is left there is nothing to publish, and the reason is what matters."""
    Product.objects.filter(slug="a").delete()
    code, _, err = run("build_sitemaps")
    assert code == 1
    reason, failure = err.splitlines()
    assert reason.startswith(f"Problem: bad {Product.objects.get().pk}: URL not allowed: ")
    assert failure.startswith("Site 'default': no section has a URL")
    assert f"Site 'default': {reason}" in [record.getMessage() for record in caplog.records]


def test_without_a_log_nothing_is_printed_twice(many, monkeypatch, capsys):
    """Python would print a warning that no handler takes, beside the command's own line."""
    monkeypatch.setattr(logging.getLogger("django_sitemapkit"), "propagate", False)
    run("build_sitemaps")
    assert capsys.readouterr().err == ""


@pytest.mark.django_db
def test_a_database_that_is_locked_is_one_line(products, monkeypatch):
    """It is none that a developer has to look for in the code."""

    def locked(*args, **options):
        raise OperationalError("database is locked")

    monkeypatch.setattr(Build.objects, "create", locked)
    monkeypatch.setattr(Build, "save", locked)
    assert run("build_sitemaps") == (1, "", "The database failed: database is locked")


# Migrations that were forgotten


@pytest.fixture
def unmigrated(monkeypatch, products):
    """Let the tables be missing, as before ``migrate``."""
    for model in (Build, Lease, Publication, Revision):
        monkeypatch.setattr(model._meta, "db_table", f"no_{model._meta.db_table}")
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda self: {})


ALL_COMMANDS = [
    ["build_sitemaps"],
    ["build_sitemaps", "--plan-only"],
    ["build_sitemaps", "--dry-run"],
    ["publish_sitemaps", "1"],
    ["prune_sitemaps"],
    ["cancel_sitemap_build"],
    ["validate_sitemaps"],
    ["sitemap_status"],
]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", ALL_COMMANDS, ids=" ".join)
def test_forgotten_migrate(unmigrated, command):
    """Each command ends with 1 and one line that names what to run."""
    code, out, err = run(*command)
    assert (code, out) == (1, "")
    assert err.endswith(" are not applied: run `python manage.py migrate`.")
    assert "sitemapkit" in err.partition("Migrations of ")[2]
    assert "\n" not in err


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("address", ["/sitemap.xml", "/sitemap-products-1.xml"])
def test_forgotten_migrate_in_the_log_of_a_503(unmigrated, client, caplog, address):
    """One line without a traceback, beside Django's own of the status."""
    assert client.get(address).status_code == 503
    (record,) = [record for record in caplog.records if record.name == "django_sitemapkit"]
    assert record.getMessage().endswith(" are not applied: run `python manage.py migrate`.")
    assert record.exc_info is None


@pytest.mark.parametrize("options", [{}, {"databases": ["default"]}], ids=["plain", "database"])
def test_forgotten_migrate_in_the_checks(monkeypatch, options):
    """``check`` says it unless all is applied; no command that comes before it does."""
    monkeypatch.setattr("sys.argv", ["manage.py", "check"])

    def found():
        messages = django_checks.run_checks(**options)
        return [message.msg for message in messages if message.id == "sitemapkit.W041"]

    assert checks.sites.check_migrations() == []
    assert found() == []
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda self: {})
    assert found() == ["Migrations of sitemapkit are not applied: run `python manage.py migrate`."]
    for earlier in ["makemigrations", "migrate"]:
        monkeypatch.setattr(sys, "argv", ["manage.py", earlier])
        assert found() == []


# No place for the files


def test_no_storage_is_the_database(products, settings):
    """A project as ``startproject`` makes it has nothing to set."""
    settings.STORAGES = global_settings.STORAGES
    assert run("build_sitemaps")[0] == 0
    assert "Live: build" in run("sitemap_status")[1]


def test_a_storage_that_cannot_be_imported(products, settings):
    """The command names what is wrong."""
    settings.STORAGES = {**global_settings.STORAGES, "sitemaps": {"BACKEND": "no.such.Storage"}}
    code, out, err = run("build_sitemaps")
    assert (code, out) == (1, "")
    assert err.startswith("There is no storage for sitemaps: ")
    assert "no.such.Storage" in err


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (
            errno.EACCES,
            (
                "This process may not write to {folder} (Permission denied). Let its user write"
                ' there, or set another location in STORAGES["sitemaps"].'
            ),
        ),
        (errno.ENOSPC, "There is no space for files in {folder}: No space left on device."),
        (
            errno.ENOTDIR,
            (
                "This process may not write to {folder} (Not a directory). Let its user write"
                ' there, or set another location in STORAGES["sitemaps"].'
            ),
        ),
    ],
)
def test_a_folder_that_takes_no_file(products, storage, monkeypatch, number, said):
    """A missing permission is distinguished from a full disk, and each names the folder."""

    def refuse(*arguments, **options):
        raise OSError(
            number,
            {20: "Not a directory", 28: "No space left on device"}.get(number, "Permission denied"),
        )

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    code, _, err = run("build_sitemaps")
    (folder,) = (storage / "sitemaps").iterdir()
    assert code == 1
    assert err == said.format(folder=folder)


# Hosts


def test_a_base_url_that_django_refuses(settings):
    """A typing error in one of the two settings: crawlers would be answered 400."""
    settings.SITEMAPKIT_BASE_URL = "https://www.exmaple.com:8443/shop/"
    (message,) = checks.sites.check_allowed_hosts()
    assert message.id == "sitemapkit.W040"
    assert message.msg == (
        "Site 'default': ALLOWED_HOSTS does not have 'www.exmaple.com', the host of"
        " https://www.exmaple.com:8443: requests for its sitemaps there get 400."
    )
    assert message.hint == "Add 'www.exmaple.com' to ALLOWED_HOSTS, or change the base URL."
    for hosts in (["*"], [".exmaple.com"], ["www.exmaple.com"], []):
        settings.ALLOWED_HOSTS = hosts
        assert checks.sites.check_allowed_hosts() == []
    settings.ALLOWED_HOSTS, settings.DEBUG = ["localhost"], True
    assert checks.sites.check_allowed_hosts() == []


# Options


@pytest.mark.parametrize("hours", ["nan", "inf", "-1", "1e300"])
def test_an_age_that_is_none(products, hours):
    """Exit 2 with a line, and not a traceback."""
    code, out, err = run("sitemap_status", "--max-age", hours)
    assert (code, out) == (2, "")
    assert err == f"--max-age must be from 0 to 876,000 hours, not {float(hours)}."
    assert SITE.key not in err


@pytest.mark.parametrize("command", [["publish_sitemaps"], ["diff_sitemaps"]])
def test_a_build_that_no_database_could_have(products, command):
    """Exit 2, as for any other build there is not."""
    code, _, err = run(*command, "9" * 30)
    assert code == 2
    assert err.startswith("None of these sites has a build 999")


# Text from elsewhere, and signals

EVIL = "gone\nBuild 99: published\x1b[2J"
SHOWN = r"gone\nBuild 99: published\x1b[2J"


def test_what_a_storage_says_forges_no_line(products, monkeypatch):
    """Its error is one line of the command's, and orders the terminal nothing."""

    def refuse(self, name, content, max_length=None):
        raise OSError(errno.ENOSPC, EVIL)

    monkeypatch.setattr("django.core.files.storage.FileSystemStorage.save", refuse)
    _, _, err = run("build_sitemaps")
    assert err.endswith(f"could not be stored: [Errno 28] {SHOWN}")


def test_what_a_server_says_forges_no_line(monkeypatch):
    """The reason phrase of HTTP is the server's own text."""

    def refuse(*args, **options):
        raise OSError(f"HTTP Error 500: {EVIL}")

    monkeypatch.setattr("django_sitemapkit.audit.validation.open_document", refuse)
    code, out, _ = run("validate_sitemaps", "https://evil.example/sitemap.xml")
    assert code == 1
    assert out.splitlines()[1] == f"  error: HTTP error: HTTP Error 500: {SHOWN}"


@pytest.mark.slow
def test_what_is_kept_of_a_build_forges_no_line(products):
    """Whatever wrote the reason into the database."""
    run("build_sitemaps")
    Build.objects.update(reason=EVIL)
    assert f"\n    {SHOWN}\n" in run("sitemap_status")[1]
    assert json.loads(run("sitemap_status", "--json")[1])[0]["builds"][0]["reason"] == EVIL
    padded = f"gone{' ' * 80}build 99: published"
    Build.objects.update(reason=padded)
    assert f"\n    {padded}\n" in run("sitemap_status")[1]


def test_an_output_that_is_not_in_utf_8_has_escapes(products):
    """A build does not fail because a terminal has no character for its bar, or for a name."""
    terminal = TextIOWrapper(BytesIO(), encoding="latin-1")
    terminal.isatty = lambda: True
    call_command("build_sitemaps", stdout=terminal)
    PrintableOutput(OutputWrapper(terminal)).write("→")
    terminal.seek(0)
    assert "##" in (text := terminal.read())
    assert "\\u2192" in text


def test_colours_are_the_commands_own(products, sections):
    """They stay where they were, around the text."""
    declare(sections, Products, name="future", lastmod=lambda self, product: FUTURE)
    err = Terminal()
    call_command("build_sitemaps", stdout=StringIO(), stderr=err, force_color=True)
    assert "\x1b[33;1mProblem (3 times): future " in err.getvalue()


def test_a_build_needs_no_output(sections, monkeypatch):
    """As from a daemon that has closed its own."""
    declare(sections, Products, lastmod=lambda self, product: FUTURE)
    make_products("a")
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(connections, "close_all", lambda: None)
    Command().run_from_argv(["manage.py", "build_sitemaps", "--skip-checks"])
    assert Publication.objects.exists()


def test_ctrl_c_is_one_line(products, monkeypatch):
    """Exit 130, and no traceback; a caller in Python still gets its KeyboardInterrupt."""

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("django_sitemapkit.management.commands.build_sitemaps.build", interrupt)
    monkeypatch.setattr(connections, "close_all", lambda: None)
    out, err = Terminal(), StringIO()
    with pytest.raises(SystemExit) as ended:
        Command(stdout=out, stderr=err).run_from_argv(["manage.py", "build_sitemaps"])
    assert ended.value.code == 130
    assert err.getvalue() == (
        "Interrupted. The published files stay; the next run adopts its pages.\n"
    )
    assert out.getvalue().endswith("\r\x1b[K")
    with pytest.raises(KeyboardInterrupt):
        run("build_sitemaps")


@pytest.mark.parametrize("colours", [False, True])
def test_a_command_within_another_leaves_no_traces_of_a_bar(products, colours):
    """Another command's output ends each piece with a line feed, on a terminal too.

    No line is empty, because colours end before it does.
    """
    terminal = Terminal()
    call_command("build_sitemaps", stdout=OutputWrapper(terminal), force_color=colours)
    assert not set("\r█░") & set(terminal.getvalue())
    assert ("\x1b[32;1mBuild " in terminal.getvalue()) == colours
    assert len(terminal.getvalue().splitlines()) == 5


def test_a_bar_is_gone_when_a_build_fails(bad):
    """What went wrong stands in a line of its own."""
    Product.objects.filter(slug="a").delete()
    terminal = Terminal()
    assert run("build_sitemaps", out=terminal)[0] == 1
    assert terminal.getvalue().endswith("\r\x1b[K")
