"""Overrides and extra URLs as CSV, without any request."""

import csv
import datetime as dt
import io
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import ExtraUrl, UrlOverride
from django_sitemapkit.overrides import transfer
from django_sitemapkit.overrides.cells import (
    EXTRA_URL_TABLE,
    OVERRIDE_TABLE,
    RowReader,
    escape_formulas,
    unescape_formulas,
)
from django_sitemapkit.overrides.transfer import (
    LineOutcome,
    compare_file,
    exported_lines,
)
from django_sitemapkit.reading import keysets
from django_sitemapkit.sites import SitemapSite
from tests.factories import SITE, ReadingFactory, TokenFactory, products
from tests.testapp.models import Moment

pytestmark = pytest.mark.django_db

LASTMOD = dt.datetime(2024, 5, 1, 12, 30, 1, 250000, tzinfo=dt.UTC)


def text_of(table=OVERRIDE_TABLE):
    """Return the export of all rows."""
    return "".join(exported_lines(table, table.model.objects.all()))


def compare(text, table=OVERRIDE_TABLE, sites=(SITE,)):
    """Return what a file would do."""
    return compare_file(table, text.encode(), sites)


def why(text, table=OVERRIDE_TABLE):
    """Return why the one refused line of a file is refused."""
    (line,) = compare(text, table).lines_with(LineOutcome.INVALID)
    return line.error


def test_a_key_that_no_database_takes_is_refused_alone():
    """The other lines stay as they are."""
    (product,) = products(1)
    text = f"model,object_id\ntestapp.product,{10**20}\ntestapp.product,{product.pk}\n"
    comparison = compare(text)
    assert "this object does not exist" in why(text)
    assert comparison.count(LineOutcome.CREATED) == 1


def test_a_key_that_is_spelt_otherwise_is_told_as_it_is_stored():
    """Else nothing would find the override."""
    moment = Moment.objects.create(at=LASTMOD)
    spelt = f"model,object_id\ntestapp.moment,{moment.at.isoformat()}\n"
    assert compare(spelt).count(LineOutcome.CREATED) == 1
    other = moment.at.astimezone(dt.timezone(dt.timedelta(hours=1)))
    text = f"model,object_id\ntestapp.moment,{other.isoformat()}\n"
    assert f"object_id: enter {moment.at}" in why(text)


def test_round_trip_changes_nothing():
    """What is exported is, taken in again, just as it was; emptied first, it is all back."""
    (product,) = products(1)
    reading = ReadingFactory(level=-5)
    UrlOverride(site="default", path="/é/", include=False, note="'=1+1").save()
    UrlOverride(site="default", path="/b/?a=1,2;3", priority="0.5", note=' "a"\nb, é').save()
    UrlOverride(site="default", path="/c/", lastmod=LASTMOD, changefreq="daily").save()
    UrlOverride(
        site="default", model="testapp.product", object_id=str(product.pk), include=True
    ).save()
    UrlOverride(site="default", model="testapp.reading", object_id=str(reading.pk)).save()
    rows = list(UrlOverride.objects.order_by("hash").values(*OVERRIDE_TABLE.columns))
    text = text_of()
    assert compare(text).count(LineOutcome.UNCHANGED) == 5
    UrlOverride.objects.all().delete()
    created, changed = compare(text).apply()
    assert (len(created), changed) == (5, [])
    assert list(UrlOverride.objects.order_by("hash").values(*OVERRIDE_TABLE.columns)) == rows


def test_round_trip_of_extra_urls():
    """Extra URLs travel too, with fewer columns."""
    ExtraUrl(
        site="default", path="/x/", title="=X", priority=Decimal("0.90"), lastmod=LASTMOD
    ).save()
    text = text_of(EXTRA_URL_TABLE)
    assert text.startswith("\ufeffsite,path,title,lastmod,changefreq,priority,note\r\n")
    assert compare(text, EXTRA_URL_TABLE).count(LineOutcome.UNCHANGED) == 1


@pytest.mark.parametrize(
    "note", ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "'=1", "''=1", "＝1", "\n-1"]
)
def test_no_cell_begins_a_formula(note):
    """A spreadsheet would run what begins with = + - @ or a layout character before these."""
    UrlOverride(site="default", path="/a/", note=note).save()
    reader = csv.DictReader(io.StringIO(text_of().removeprefix("\ufeff"), newline=""))
    (row,) = reader
    assert row["note"].startswith("'")
    assert compare(text_of()).count(LineOutcome.UNCHANGED) == 1


@pytest.mark.slow
@given(st.text("=+-@'\"\t\r\n,; a＝", max_size=12))
def test_no_separator_begins_a_formula(note):
    """Whatever a spreadsheet takes for the separator, none of the cells it sees is a formula."""
    text = escape_formulas(note)
    assert unescape_formulas(text) == note
    for delimiter in ",;\t":
        file = io.StringIO()
        csv.writer(file).writerow(["default", "/a/", text])
        for cells in csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=delimiter):
            for cell in cells:
                assert cell.lstrip(' "')[:1] not in set("=+-@＝"), (note, cells)


def test_export_reads_some_rows_at_a_time(django_assert_num_queries, monkeypatch):
    """Memory does not grow with the rows: each query reads no more than a batch."""
    monkeypatch.setattr(keysets, "CHUNK", 2)
    for number in range(5):
        UrlOverride(site="default", path=f"/{number}/").save()
    lines = exported_lines(OVERRIDE_TABLE, UrlOverride.objects.all())
    with django_assert_num_queries(1):
        assert [next(lines) for _ in range(3)]
    with django_assert_num_queries(3):
        assert len(list(lines)) == 3


def test_compares_by_line():
    """Each line is created, changed with its columns, unchanged or refused, by its number."""
    UrlOverride(site="default", path="/same/", note="n").save()
    UrlOverride(site="default", path="/other/", include=True, priority="0.5").save()
    text = "path,include,note\n/new/,no,\n\n/same/,,n\nhttps://www.example.com/other/,no,\n/#,,\n"
    found = compare(text)
    assert [(line.number, line.outcome.value) for line in found.lines] == [
        *((2, "created"), (4, "unchanged"), (5, "changed"), (6, "invalid"))
    ]
    assert found.lines[2].changes == {"include": ("yes", "no")}
    found.apply()
    assert UrlOverride.objects.get(path="/other/").include is False
    assert UrlOverride.objects.get(path="/other/").priority == Decimal("0.5")  # No such column.
    assert UrlOverride.objects.get(path="/new/").include is False


def test_what_is_applied_raises_the_revision():
    """Live pages look at the revision, so each change has to raise it."""
    UrlOverride(site="default", path="/a/").save()
    before = UrlOverride.objects.get()
    compare("path,note\n/a/,b\n").apply()
    after = UrlOverride.objects.get()
    assert after.revision > before.revision
    assert after.changed_at > before.changed_at


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_takes_what_spreadsheets_write(delimiter, mark):
    """The separator and the byte order mark depend on the country of the spreadsheet."""
    text = mark + "Path,Include,Note\r\n/a/,YES,é\r\n".replace(",", delimiter)
    (line,) = compare(text).lines
    assert (line.row.path, line.row.include, line.row.note) == ("/a/", True, "é")


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"path,notes\n/a/,\n", "Unknown columns: 'notes'"),
        (b"path,path\n", "twice"),
        (b"site,note\n", "No column identifies"),
        (b"model,note\n", "No column identifies"),
        (b"", "No column identifies"),
        (b"path\n\xff\n", "UTF-8"),
        (b'path,note\n/a/,"open\n', "Line 2 cannot be read"),
        (b"path,note\n/a/,x" + b"y" * 140_000, "Line 2 cannot be read"),
    ],
)
def test_refuses_a_file_as_a_whole(data, shown):
    """What has no line is reported for the file, and nothing of it is looked at."""
    with pytest.raises(InvalidValue, match=shown):
        compare_file(OVERRIDE_TABLE, data, [SITE])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_refuses_what_is_too_large(monkeypatch, end):
    """Bytes and lines are limited, and counted before any row is looked at."""
    looked_at = []
    monkeypatch.setattr(RowReader, "row", lambda *args: looked_at.append(args))
    monkeypatch.setattr(transfer, "MAX_CSV_LINES", 3)
    for text in ("path\n/a/\n/b/\n/c/\n", "path\n/a/\n/b/\n/c/", "path\n\n\n\n"):
        with pytest.raises(InvalidValue, match="more than 3 lines"):
            compare(text.replace("\n", end))
    assert looked_at == []
    monkeypatch.undo()
    monkeypatch.setattr(transfer, "MAX_CSV_LINES", 3)
    assert len(compare(f"path{end}/a/{end}/b/{end}").lines) == 2
    monkeypatch.setattr(transfer, "MAX_CSV_BYTES", 10)
    with pytest.raises(InvalidValue, match="larger than 10 bytes"):
        compare("path\n/aaaaaaaa/\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("path,note\n/a/\n", "The number of cells (1) differs"),
        ("path\nhttps://other.example/\n", "path: It is on another host"),
        ("path\n?a=1\n", "path: This may be"),
        ("path,note\n/a/,\x01\n", "note: contains a control character"),
        ("path,include\n/a/,maybe\n", "include: enter yes"),
        ("path,priority\n/a/,1.5\n", "priority: "),
        ("path,priority\n/a/,NaN\n", "priority: "),
        ("path,priority\n/a/,high\n", "priority: "),
        ("path,changefreq\n/a/,often\n", "changefreq: "),
        ("path,lastmod\n/a/,yesterday\n", "lastmod: enter a date"),
        ("path,lastmod\n/a/,2999-01-01\n", "lastmod: this date is in the future"),
        ("path,note\n/a/," + "n" * 501 + "\n", "note: "),
        ("site,path\nother,/a/\n", "site: 'other' does not exist"),
        ("path,model,object_id\n/a/,testapp.product,1\n", "both"),
        ("model,object_id\ntestapp.nothing,1\n", "model: "),
        ("model,object_id\nnothing,1\n", "model: "),
        ("model,object_id\ntestapp.feature,1\n", "model: "),
        ("model,object_id\ntestapp.articleproxy,1\n", "model: "),
        ("model,object_id\ntestapp.product,\n", "object_id: "),
        ("model,object_id\ntestapp.product,x\n", "object_id: "),
        ("model,object_id\ntestapp.product,1\n", "object_id: "),
        ("model,object_id\ntestapp.product,99999999999999999999\n", "object_id: "),
    ],
)
def test_refuses_a_line_and_says_why(text, shown):
    """A wrong cell refuses its line alone, by a message that names the column."""
    assert shown in why(text)


def test_the_second_of_two_lines_for_one_url_is_refused():
    """Two lines may spell one URL otherwise; the first one is used."""
    found = compare("path\n/é/\n/%c3%a9/\n")
    assert [line.outcome for line in found.lines] == [LineOutcome.CREATED, LineOutcome.INVALID]
    assert "a duplicate of line 2" in found.lines[1].error


def test_a_key_is_brought_into_the_form_of_the_database():
    """A UUID without hyphens names the same object, and is stored as the sections spell it."""
    token = TokenFactory()
    compare(f"model,object_id,include\ntestapp.Token,{token.pk.hex},no\n").apply()
    row = UrlOverride.objects.get()
    assert (row.model, row.object_id) == ("testapp.token", str(token.pk))


def test_an_override_of_an_object_that_is_gone_stays():
    """Only a new one has to have an object: what is exported can be taken in again."""
    UrlOverride(site="default", model="testapp.product", object_id="77", include=False).save()
    assert compare(text_of()).count(LineOutcome.UNCHANGED) == 1


def test_a_naive_lastmod_is_of_the_default_time_zone(settings):
    """A date begins at midnight there, as everywhere else."""
    settings.TIME_ZONE = "Europe/Paris"
    (line,) = compare("path,lastmod\n/a/,2024-05-01\n").lines
    assert line.row.lastmod == dt.datetime(2024, 4, 30, 22, tzinfo=dt.UTC)


def test_without_time_zones_a_lastmod_is_naive(settings):
    """Under USE_TZ = False the database takes naive times only."""
    settings.USE_TZ = False
    (line,) = compare("path,lastmod\n/a/,2024-05-01T12:00:00Z\n").lines
    assert line.row.lastmod.tzinfo is None


def test_with_several_sites_a_line_has_to_name_its_own():
    """Which one is meant cannot be guessed."""
    other = SitemapSite.at("https://other.example", key="other")
    found = compare("site,path\nother,https://other.example/a/\n,/a/\n", sites=[SITE, other])
    assert [line.outcome for line in found.lines] == [LineOutcome.CREATED, LineOutcome.INVALID]
    assert found.lines[0].row.site == "other"


def test_looks_up_many_lines_by_few_queries(django_assert_max_num_queries):
    """A file of many lines is not asked for line by line, and is not written so."""
    (product, *_) = products(300)
    text = "model,object_id\n" + "".join(
        f"testapp.product,{product.pk + number}\n" for number in range(300)
    )
    with django_assert_max_num_queries(30):
        assert len(compare(text).apply()[0]) == 300


def test_many_rows_are_changed_by_statements_without_a_case_for_each(django_assert_max_num_queries):
    """Which take longer to make than a request may take: 50,000 rows took minutes."""
    text = "path,note,priority\n" + "".join(f"/{number}/,%s,0.5\n" for number in range(300))
    compare(text.replace("%s", "a")).apply()
    stored = dict(UrlOverride.objects.values_list("path", "pk"))
    with django_assert_max_num_queries(30) as queries:
        created, changed = compare(text.replace("%s", "b")).apply()
    assert (created, len(changed)) == ([], 300)
    assert not [query for query in queries.captured_queries if " WHEN " in query["sql"]]
    assert dict(UrlOverride.objects.values_list("path", "pk")) == stored
    assert set(UrlOverride.objects.values_list("note", flat=True)) == {"b"}
