"""Each language version should link back to those that link to it, wherever it is listed."""

import itertools
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.audit.reader import SitemapReader, duplicates, validate
from django_sitemapkit.audit.reader.duplicates import ListedUrls
from django_sitemapkit.audit.reader.extensions import MAX_LINKS
from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.protocol.limits import NAMESPACE, NEWS, XHTML

ORIGIN = "https://www.example.com"
CODES = {"en": "en", "de": "de", "fr": "fr", "es": "es"}


def entry(page, *versions, more=""):
    """Return a ``<url>`` with links to versions, each a path without slashes."""
    links = "".join(
        f'<xhtml:link rel="alternate" hreflang="{code}" href="{ORIGIN}/{version}/"/>'
        for code, version in zip(itertools.cycle(CODES), versions, strict=False)
    )
    return f"<url><loc>{ORIGIN}/{page}/</loc>{links}{more}</url>\n"


def urlset(*entries):
    """Return a document."""
    attributes = f'xmlns="{NAMESPACE}" xmlns:xhtml="{XHTML}" xmlns:news="{NEWS}"'
    return f"<urlset {attributes}>{''.join(entries)}</urlset>".encode()


def pairs(findings):
    """Return from which page to which version a return link is missing, with the document."""
    found = []
    for finding in findings:
        if finding.code == "missing-return-link":
            _, page, _, version, rest = finding.message.split("'")
            assert (finding.level, finding.location) == ("warning", page)
            source = rest.removeprefix(", whose entry in ").split(" does not link back")[0]
            found.append((page.split("/")[3], version.split("/")[3], source))
    return found


def read(*documents):
    """Return what is missing in each of several documents of a run, and all of their codes."""
    listed, found, codes = ListedUrls(), [], set()
    for number, document in enumerate(documents):
        reader = SitemapReader(earlier=listed.of_other_documents(str(number)))
        list(reader.sitemaps([document]))
        listed.add(str(number), f"{number}.xml", reader.digests)
        found.append(pairs(reader.findings))
        codes.update(reader.counts)
    return found, codes


def missing(*entries):
    """Return what is missing in one document, which both ways of reading find."""
    document = urlset(*entries)
    ((found,), codes) = read(document)
    reader = SitemapReader()
    list(reader.read([document]))
    assert pairs(reader.findings) == found
    assert codes <= {"missing-return-link"}
    assert {source for *_, source in found} <= {"this file"}
    return [pair[:2] for pair in found]


def test_versions_that_link_to_each_other():
    """In any order, with other entries between them; a version that is not listed says nothing."""
    two = ("a", "b")
    assert missing(entry("a", *two), entry("b", *two)) == []
    assert missing(entry("b", "b", "a"), entry("x"), entry("a", *two)) == []
    assert missing(entry("a", "a", "b", "c"), entry("b", "a", "b", "c")) == []


def test_a_version_without_a_return_link():
    """It has none, or others; a link in one direction is a finding of the page that has it."""
    assert missing(entry("a", "a", "b"), entry("b", "b")) == [("a", "b")]
    assert missing(entry("a", "a", "b"), entry("b")) == [("a", "b")]
    assert missing(entry("b"), entry("a", "a", "b")) == [("a", "b")]
    three = [entry(page, "a", "b", "c") for page in "ab"]
    assert missing(*three, entry("c", "c")) == [("a", "c"), ("b", "c")]
    assert missing(*three, entry("c", "b", "c")) == [("a", "c")]


def test_the_message_has_both_urls_and_the_way_out():
    """In one sentence."""
    (finding,) = validate([urlset(entry("a", "a", "b"), entry("b"))]).findings
    assert finding.message == (
        "Missing return link: 'https://www.example.com/a/' has an hreflang link to"
        " 'https://www.example.com/b/', whose entry in this file does not link back; every version"
        " lists all versions, itself included."
    )


def test_urls_are_compared_in_normal_form():
    """With entities and escapes in either case."""
    pages = ("gr%c3%bc%C3%9f", "a?x=1&amp;y=&apos;2&apos;")
    assert missing(*(entry(page, *pages) for page in pages)) == []
    others = ("gr%C3%BC%c3%9F", "a?x=1&amp;y='2'")
    assert missing(entry(pages[0], *others), entry(pages[1], *pages)) == []
    found = missing(entry("%c3%bc", "%c3%bc", "b"), entry("b", "b", "c"))
    assert found == [("%C3%BC", "b")]


def test_links_under_any_code_count():
    """What is wrong with a code, or a second link of a language, is another finding."""
    back = entry("b", "b", "a").replace('hreflang="de"', 'hreflang="{}"')
    for code in ("en", "deutsch", "x"):
        report = validate([urlset(entry("a", "a", "b"), back.format(code))])
        assert report.counts.keys() & {"missing-return-link", "missing-self-link"} == set(), code


def test_a_page_that_does_not_list_itself():
    """Its versions need not list it less than others."""
    report = validate([urlset(entry("a", "b"), entry("b", "b"))])
    assert report.counts == {"missing-self-link": 1, "missing-return-link": 1}


def test_a_url_that_is_listed_twice():
    """All of its links count."""
    document = urlset(entry("a", "a", "b"), entry("b"), entry("b", "b", "a"))
    assert validate([document]).counts == {"duplicate-url": 1}


def test_documents_of_a_run_are_compared():
    """The document that is read last says what is missing, in one direction or the other."""
    a, b = entry("a", "a", "b"), entry("b", "a", "b")
    assert read(urlset(a), urlset(b))[0] == [[], []]
    assert read(urlset(a), urlset(entry("b")))[0] == [[], [("a", "b", "this file")]]
    assert read(urlset(entry("b")), urlset(a))[0] == [[], [("a", "b", "0.xml")]]
    assert read(urlset(entry("b", "b", "c")), urlset(a))[0] == [[], [("a", "b", "0.xml")]]
    assert read(urlset(a), urlset(entry("c")))[0] == [[], []]


@pytest.mark.slow
def test_languages_in_a_file_each():
    """Of three, one does not link to another."""
    files = [
        urlset(*(entry(f"{code}{n}", *(f"{each}{n}" for each in CODES)) for n in range(200)))
        for code in CODES
    ]
    assert read(*files)[0] == [[]] * 4
    files[2] = files[2].replace(f'href="{ORIGIN}/de7/"'.encode(), f'href="{ORIGIN}/"'.encode())
    found, _ = read(*files)
    # The links of de8 to fr8 are there; those of de7 were read before.
    assert found == [[], [], [("de7", "fr7", "this file")], []]


def test_documents_that_repeat_others():
    """A copy, news and a list of URLs take nothing back that was found to be there."""
    a, b = urlset(entry("a", "a", "b")), urlset(entry("b", "a", "b"))
    news = urlset(entry("a", "a", "b", more="<news:news/>"))
    for documents in ((a, b, a), (a, b, b), (a, b, a, b), (news, a, b), (a, b, news)):
        assert read(*documents)[0] == [[]] * len(documents)
    text = f"{ORIGIN}/b/\n".encode()
    assert read(a, b, text)[0] == [[], [], []]


def test_what_is_not_compared_is_said(monkeypatch):
    """Nothing is missing in what was not looked at."""
    many = entry("b", "a", *map(str, range(MAX_LINKS)))
    report = validate([urlset(entry("a", "a", "b"), many)])
    assert report.counts["uncompared-links"] == 1
    assert "missing-return-link" not in report.counts
    monkeypatch.setattr(duplicates, "MAX_AWAITED_URLS", 2)
    first = urlset(*(entry(f"a{n}", f"a{n}", f"b{n}") for n in range(4)))
    second = urlset(*(entry(f"b{n}", f"a{n}", f"b{n}") for n in range(4)))
    found, codes = read(first, second, urlset(entry("c", "c", "a1")))
    assert (found, codes) == ([[], [], []], {"uncompared-links"})


@pytest.mark.parametrize("end", ["<url>", "</urlset>", "<x"])
def test_a_document_that_is_cut_off(end):
    """What was read is compared."""
    document = urlset(entry("a", "a", "b"), entry("b")).replace(b"</urlset>", end.encode())
    assert validate([document]).counts["missing-return-link"] == 1


PAGES = [*"abcd", "%c3%a9", "x?a=1&amp;b=2"]


@pytest.mark.slow
@given(st.lists(st.lists(st.tuples(st.sampled_from(PAGES), st.sets(st.sampled_from(PAGES))))))
def test_what_is_missing_is_so(files):
    """By a slow comparison of all entries, for files that list no URL twice."""
    known, entries = {}, []
    for number, file in enumerate(files):
        entries.append([])
        for page, versions in file:
            if page not in known:
                known[page] = number, versions
                entries[-1].append(entry(page, *sorted(versions)))
    expected = {
        (page.upper() if "%" in page else page, version.upper() if "%" in version else version)
        for page, (_, versions) in known.items()
        for version in versions & known.keys() - {page}
        if page not in known[version][1]
    }
    found = set()
    listed = ListedUrls()
    for number, document in enumerate([urlset(*file) for file in entries]):
        reader = SitemapReader(earlier=listed.of_other_documents(str(number)))
        with suppress(InvalidSitemap):
            list(reader.sitemaps([document]))
        listed.add(str(number), str(number), reader.digests)
        warnings = [each for each in reader.findings if each.code == "missing-return-link"]
        found |= {(page, version.replace("&", "&amp;")) for page, version, _ in pairs(warnings)}
    assert {(page.replace("&", "&amp;"), version) for page, version in found} == expected
