"""What the writers write: the protocol's form, its limits, and nothing but what went in."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree as lxml_etree

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.limits import CHANGEFREQS, MAX_BYTES, MAX_URLS, NAMESPACE
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.protocol.writers import IndexWriter, UrlsetWriter, escaped

ORIGIN = "https://www.example.com"
SCOPE = Scope.of(f"{ORIGIN}/sitemap.xml")
TAGS = ("lastmod", "changefreq", "priority")
HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{NAMESPACE}">\n'
TAIL = "</urlset>\n"


def entry(location, inner=""):
    """Return one ``<url>`` as it has to stand in a document."""
    return f"<url><loc>{location}</loc>{inner}</url>\n"


def document(writer, *adds):
    """Return the whole document; each of ``adds`` is the columns of one ``add()``.

    The writer's own counts have to be true whenever it could end.
    """
    output = writer.begin()
    for columns in adds:
        before = writer.urls
        data, count = writer.add(*columns)
        output += data
        assert writer.urls == before + count
        assert writer.bytes == len(output + writer.end())
    return output + writer.end()


def sliced(columns, start, stop):
    """Return the rows from start to stop of columns, as a caller in chunks would cut them."""
    return [
        column if column is None or isinstance(column, str) else column[start:stop]
        for column in columns
    ]


def read(output, parser):
    """Return what a parser that is not ours reads: the tags and texts of each entry, in order."""
    root = parser(output)
    return [
        [(child.tag.removeprefix(f"{{{NAMESPACE}}}"), child.text) for child in item]
        for item in root
    ]


PARSERS = pytest.mark.parametrize(
    "parser", [ET.fromstring, lxml_etree.fromstring], ids=["et", "lxml"]
)


def test_a_urlset_is_written_to_the_letter():
    """Declaration first, then the namespace, then loc, lastmod, changefreq, priority."""
    columns = ([f"{ORIGIN}/a", f"{ORIGIN}/b"], ["2005-01-01", None], "daily", ["0.5", "1.0"])
    first = "<lastmod>2005-01-01</lastmod><changefreq>daily</changefreq><priority>0.5</priority>"
    second = "<changefreq>daily</changefreq><priority>1.0</priority>"
    expected = HEAD + entry(f"{ORIGIN}/a", first) + entry(f"{ORIGIN}/b", second) + TAIL
    assert document(UrlsetWriter(), columns) == expected.encode()


def test_an_index_is_written_to_the_letter():
    """An index has its own root and items, and loc before lastmod."""
    columns = ([f"{ORIGIN}/a.xml", f"{ORIGIN}/b.xml"], ["2005-01-01", None])
    assert document(IndexWriter(), columns).decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"<sitemap><loc>{ORIGIN}/a.xml</loc><lastmod>2005-01-01</lastmod></sitemap>\n"
        f"<sitemap><loc>{ORIGIN}/b.xml</loc></sitemap>\n"
        "</sitemapindex>\n"
    )


def test_a_document_without_entries_is_well_formed():
    """Without entries there is an empty root, and the count of its bytes."""
    writer = UrlsetWriter()
    assert document(writer, ([],)) == (HEAD + TAIL).encode()
    assert writer.urls == 0


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("/catalog?item=12&desc=x", "/catalog?item=12&amp;desc=x"),
        ("/españa.html&q=nombre", "/espa%C3%B1a.html&amp;q=nombre"),
        ("/a'b\"c<d>e&f", "/a&apos;b%22c%3Cd%3Ee&amp;f"),
        ("/a&amp;b", "/a&amp;amp;b"),
        ("/ümlat.html", "/%C3%BCmlat.html"),
        ("/]]>", "/%5D%5D%3E"),
    ],
)
def test_a_location_is_escaped_once(url, written):
    """First percent-encoded, then entity-escaped, each once."""
    location = SCOPE.normalise(url)
    expected = HEAD + entry(ORIGIN + written) + TAIL
    assert document(UrlsetWriter(), ([location],)) == expected.encode()


@pytest.mark.parametrize(
    ("character", "entity"),
    [("&", "&amp;"), ("'", "&apos;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")],
)
def test_each_of_the_five_is_escaped_wherever_it_stands(character, entity):
    """One location that needs escaping is enough, and leaves its neighbours alone."""
    columns = [["a", f"b{character}{character}", "c"], ["a", "b", f"{character}c"]]
    assert [list(escaped(column)) for column in columns] == [
        ["a", f"b{entity}{entity}", "c"],
        ["a", "b", f"{entity}c"],
    ]


TEXT = st.text(
    st.characters() | st.sampled_from("/&'\"<>%;#?.\0\x0b\ud800\ufffe\r\n ]"), max_size=12
)
ROWS = st.lists(
    st.tuples(
        TEXT.map("/{}".format),
        st.none() | st.dates() | st.datetimes(timezones=st.none() | st.timezones()) | TEXT,
        st.none() | st.sampled_from(sorted(CHANGEFREQS)) | TEXT,
        st.none() | st.floats() | st.decimals(0, 1) | TEXT,
    ),
    max_size=8,
)


def texts(row):
    """Return a row's values as the protocol writes them, or None where it refuses one."""
    formatters = (SCOPE.normalise, format_lastmod, format_changefreq, format_priority)
    try:
        return tuple(format_(value) for format_, value in zip(formatters, row, strict=True))
    except InvalidValue:
        return None


@pytest.mark.slow
@PARSERS
@given(rows=ROWS, size=st.integers(1, 9))
def test_a_parser_reads_what_went_in(parser, rows, size):
    """Of any values, what is not refused is read back exactly, in any chunks, in one order."""
    listed = [row for row in map(texts, rows) if row is not None]
    columns = [list(column) for column in zip(*listed, strict=True)] or [[]]
    starts = range(0, len(listed), size)
    chunks = [sliced(columns, start, start + size) for start in starts]
    output = document(UrlsetWriter(), *chunks)
    assert output == document(UrlsetWriter(), columns)
    assert read(output, parser) == [
        [(tag, text) for tag, text in zip(("loc", *TAGS), row, strict=True) if text is not None]
        for row in listed
    ]


COLUMN = st.one_of(
    st.none(),
    st.just("2005-01-01"),
    st.lists(st.none() | st.sampled_from(["a", "bc"]), min_size=7, max_size=7),
    st.lists(st.sampled_from(["a", "bc"]), min_size=7, max_size=7).map(tuple),
)


@given(
    st.tuples(COLUMN, COLUMN, COLUMN),
    st.integers(0, 7),
    st.integers(0, 9),
    st.integers(0, 900),
    st.integers(1, 7),
)
def test_columns_of_any_kind_fill_a_document_row_by_row(tags, rows, max_urls, room, size):
    """A text stands in each row, None in none; rows are written in order until one is too many."""
    locations = [f"{ORIGIN}/{'&' * row}" for row in range(rows)]
    lines = []
    for row, location in enumerate(locations):
        inner = ""
        for tag, column in zip(TAGS, tags, strict=True):
            text = column if column is None or isinstance(column, str) else column[row]
            inner += f"<{tag}>{text}</{tag}>" if text is not None else ""
        lines.append(entry(location.replace("&", "&amp;"), inner))
    max_bytes = len(HEAD + TAIL) + room
    fitting = max(
        count for count in range(min(rows, max_urls) + 1) if len("".join(lines[:count])) <= room
    )
    writer = UrlsetWriter(max_urls=max_urls, max_bytes=max_bytes)
    output = writer.begin()
    columns = [locations, *tags]
    written = 0
    while written < rows:
        data, count = writer.add(*sliced(columns, written, written + size))
        output += data
        written += count
        if count < min(size, rows - written + count):
            break
    output += writer.end()
    assert output.decode() == HEAD + "".join(lines[:fitting]) + TAIL
    assert (writer.urls, writer.bytes) == (fitting, len(output))


@pytest.mark.parametrize("writer_class", [UrlsetWriter, IndexWriter])
def test_the_50001st_entry_belongs_to_the_next_document(writer_class):
    """A urlset holds 50,000 URLs, an index 50,000 sitemaps."""
    locations = [f"{ORIGIN}/{number}" for number in range(50_001)]
    writer = writer_class()
    output = document(writer, (locations[:49_999],), (locations[49_999:],), (locations[50_000:],))
    assert (writer.urls, output.count(b"<loc>")) == (50_000, 50_000)
    assert f"{ORIGIN}/49999</loc>".encode() in output
    assert f"{ORIGIN}/50000</loc>".encode() not in output


@pytest.mark.parametrize("writer_class", [UrlsetWriter, IndexWriter])
def test_the_limits_can_be_lowered_and_never_raised(writer_class):
    """More than the protocol allows is what nobody may ask for."""
    lowered = writer_class(max_urls=10, max_bytes=1000)
    assert (lowered.max_urls, lowered.max_bytes) == (10, 1000)
    raised = writer_class(max_urls=MAX_URLS + 1, max_bytes=MAX_BYTES + 1)
    assert (raised.max_urls, raised.max_bytes) == (50_000, 52_428_800)


@pytest.mark.parametrize("chunked", [True, False], ids=["one by one", "at once"])
def test_a_document_of_exactly_the_byte_limit_is_accepted(chunked):
    """The limit counts declaration and closing tag; one byte less room, and an entry moves on."""
    locations = [f"{ORIGIN}/{'x' * number}" for number in range(5)]
    adds = [([location],) for location in locations] if chunked else [(locations,)]
    size = len(document(UrlsetWriter(), (locations,)))
    fits, full = UrlsetWriter(max_bytes=size), UrlsetWriter(max_bytes=size - 1)
    assert len(document(fits, *adds)) == size
    output = document(full, *adds)
    assert (fits.urls, full.urls) == (5, 4)
    assert output.decode() == HEAD + "".join(map(entry, locations[:4])) + TAIL
    exact = UrlsetWriter(max_bytes=len(output))
    assert document(exact, *adds) == output


def test_bytes_are_counted_as_written():
    """An entity has the bytes of its escaped form, a document those of its encoding."""
    location = f"{ORIGIN}/{'&' * 100}"
    size = len(HEAD + entry(f"{ORIGIN}/{'&amp;' * 100}") + TAIL)
    writer = UrlsetWriter(max_bytes=size)
    assert len(document(writer, ([location],))) == size
    full = UrlsetWriter(max_bytes=size - 1)
    document(full, ([location],))
    assert (writer.urls, full.urls) == (1, 0)


@pytest.mark.parametrize("excess", [0, 1])
def test_the_byte_limit_of_the_protocol_is_kept(excess):
    """52,428,800 bytes are one document, 52,428,801 are more than one."""
    overhead = len(entry(""))
    length = 2_000
    count, rest = divmod(MAX_BYTES - len(HEAD + TAIL), length + overhead)
    shortened = length - (overhead + 40 - rest)  # and one short entry of 40 characters
    rows = ["x" * length] * (count - 1) + ["x" * shortened, "x" * (40 + excess)]
    writer = UrlsetWriter()
    size = len(writer.begin())
    for start in range(0, len(rows), 2_000):
        data, _ = writer.add(rows[start : start + 2_000])
        size += len(data)
    size += len(writer.end())
    assert writer.bytes == size
    if excess:
        assert (writer.urls, size) == (len(rows) - 1, MAX_BYTES - 40 - overhead)
    else:
        assert (writer.urls, size) == (len(rows), MAX_BYTES)


def test_one_entry_over_the_limit_alone_is_not_written():
    """It is refused at once, and the writer goes on with an entry that fits."""
    big, small = f"{ORIGIN}/{'x' * 500}", f"{ORIGIN}/"
    writer = UrlsetWriter(max_bytes=400)
    output = writer.begin()
    assert writer.add([big, small]) == (b"", 0)
    data, count = writer.add([small])
    assert count == 1
    assert output + data + writer.end() == (HEAD + entry(small) + TAIL).encode()


def test_the_first_entry_that_does_not_fit_ends_the_document():
    """Order is kept: a later, shorter entry never takes the place of an earlier one."""
    locations = [f"{ORIGIN}/a", f"{ORIGIN}/{'b' * 500}", f"{ORIGIN}/c"]
    data, count = UrlsetWriter(max_bytes=300).add(locations)
    assert (data, count) == (entry(f"{ORIGIN}/a").encode(), 1)


def test_a_plain_text_stands_in_each_entry_that_fits():
    """Where a document is full, the columns are cut together."""
    locations = [f"{ORIGIN}/{number}" for number in range(4)]
    writer = UrlsetWriter(max_urls=2)
    data, count = writer.add(locations, ["2005-01-01", None, "2005-01-03", "x"], "daily", None)
    assert count == 2
    assert data.decode() == (
        entry(f"{ORIGIN}/0", "<lastmod>2005-01-01</lastmod><changefreq>daily</changefreq>")
        + entry(f"{ORIGIN}/1", "<changefreq>daily</changefreq>")
    )
