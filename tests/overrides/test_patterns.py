"""Patterns match what robots.txt would, in time that grows with their length alone."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.overrides.patterns import Pattern, first_matching_patterns
from django_sitemapkit.protocol.locations import normalise_pattern

# The examples of RFC 9309 (2.2.2, 2.2.3), and of Google's page about robots.txt.
VECTORS = {
    "/": (["/", "/a", "/a/b?c=d"], []),
    "/fish": (
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    "/fish*": (
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads/yummy.html"],
        ["/Fish.asp", "/catfish"],
    ),
    "/fish/": (["/fish/", "/fish/?id=anything", "/fish/salmon.htm"], ["/fish", "/fish.html"]),
    "/*.php": (
        ["/index.php", "/filename.php", "/folder/filename.php?parameters", "/a.php5"],
        ["/", "/windows.PHP", "/php"],
    ),
    "/*.php$": (
        ["/filename.php", "/folder/filename.php", "/.php"],
        ["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"],
    ),
    "/fish*.php": (
        ["/fish.php", "/fishheads/catfish.php?parameters"],
        ["/Fish.PHP", "/catfish.php"],
    ),
    "/path/file-with-a-%2A.html": (["/path/file-with-a-%2A.html"], ["/path/file-with-a-x.html"]),
    "/path/foo-%24": (["/path/foo-%24", "/path/foo-%24/"], ["/path/foo-"]),
    "/foo/bar?baz=http://foo.bar": (["/foo/bar?baz=http://foo.bar"], ["/foo/bar?baz="]),
    "/foo/bar/ツ": (["/foo/bar/%E3%83%84"], ["/foo/bar/%E3"]),
    "/foo/bar/%E3%83%84": (["/foo/bar/%E3%83%84"], []),
    "/foo/bar/%62%61%7A": (["/foo/bar/baz"], ["/foo/bar/%62%61%7A"]),
    "/$": (["/"], ["/a", "/$"]),
    "*": (["/", "/a"], []),
    "*$": (["/", "/a"], []),
    "*/print$": (["/news/print", "/print"], ["/news/printer", "/print/"]),
    "*?page=": (["/a?page=2", "/?page="], ["/a?x=1&page=2", "/page="]),
    "/a**b": (["/ab", "/axb"], ["/a"]),
    "/a*a$": (["/aa", "/aba"], ["/a", "/ab"]),
    "/a$b": (["/a$b", "/a$bc"], ["/a"]),
    "/.": (["/.well-known/x"], ["/a"]),
    "*%c3%a9": (["/caf%C3%A9"], ["/caf%c3%a9"]),
    "/100%": (["/100%25", "/100%25/"], ["/100"]),
    " /a ": (["/a"], []),
}


@pytest.mark.parametrize("text", VECTORS)
def test_a_pattern_matches_what_the_standard_says(text):
    """And nothing else, once it is in its normal form."""
    matching, others = VECTORS[text]
    pattern = Pattern(normalise_pattern(text))
    assert {path: pattern.matches(path) for path in (*matching, *others)} == {
        path: path in matching for path in (*matching, *others)
    }


@pytest.mark.parametrize(
    "text", ["", "a", "http://a/", "$", "?x", "/a#b", "/a\0", "*\n*", "//a", "/../", "*/./"]
)
def test_a_pattern_that_is_none_is_refused(text):
    """So is what would match no location."""
    with pytest.raises(InvalidValue):
        normalise_pattern(text)


SOME = st.text(st.sampled_from("ab/?$."), max_size=12)


@given(st.lists(st.sampled_from(["a", "b", "/", "*", "*", "$", ".", "?", "ab"]), max_size=9), SOME)
def test_a_pattern_is_the_regular_expression_it_stands_for(parts, path):
    """The first is written down, the second tries all ways there are."""
    text, path = "".join(["/", *parts]), f"/{path}"
    body, end = (text[:-1], r"\Z") if text.endswith("$") else (text, "")
    expression = ".*".join(map(re.escape, body.split("*"))) + end
    pattern, matches = Pattern(text), bool(re.match(expression, path, re.DOTALL))
    assert pattern.matches(path) == bool(re.fullmatch(pattern.expression, path)) == matches


@pytest.mark.slow
@given(st.lists(st.sampled_from(["/a", "/b", "/", "*", "$", "%C3%A9", "~"]), max_size=6))
def test_the_normal_form_is_its_own(parts):
    """A pattern that is edited and saved stays the same."""
    text = normalise_pattern("".join(["/x", *parts]))
    assert normalise_pattern(text) == text


@given(st.text("/ab*$", max_size=6).map("/{}".format), st.text("/ab", max_size=6))
def test_a_pattern_that_may_not_match_a_beginning_matches_no_path_with_it(text, rest):
    """Whatever follows."""
    pattern, path = Pattern(normalise_pattern(f"/x{text}")), f"/x/{rest}"
    for length in range(len(path) + 1):
        assert pattern.may_match(path[:length]) or not pattern.matches(path)
    assert not Pattern("/drafts/").may_match("/products/")


def test_many_patterns_are_asked_in_their_order():
    """Each location is reported with the first that it matches; origins are no part of it."""
    patterns = [Pattern(text) for text in ("/a", "*b$", "/ab", "/https:")]
    paths = ["/a", "/b", "/ab", "/c", "/cb", "/https:"]
    found = first_matching_patterns(patterns, "https://b", [f"https://b{path}" for path in paths])
    assert [(paths[place], pattern.text) for place, pattern in found] == [
        ("/a", "/a"),
        ("/b", "*b$"),
        ("/ab", "/a"),
        ("/cb", "*b$"),
        ("/https:", "/https:"),
    ]


def test_thousands_of_patterns_match_as_few_do():
    """Of so many, only those that may match are searched for."""
    locations = [f"https://b/cat/{number % 9}/product-{number}/" for number in range(2_000)]
    texts = [f"/cat/{number}/product-{number}/$" for number in range(5_000)]
    patterns = [Pattern(text) for text in (*texts, "*/product-1999/", "/cat/3/product-3/")]

    found = dict(first_matching_patterns(patterns, "https://b", locations))
    matching = {
        place: next((one for one in patterns if one.matches(location[len("https://b") :])), None)
        for place, location in list(enumerate(locations))[::37]
    }
    assert {place: found.get(place) for place in matching} == matching
    assert found[1999].text == "*/product-1999/"
    assert found[3].text == "/cat/3/product-3/$"


class Counted(str):
    """A text that counts how often it is searched, and over how many characters."""

    __slots__ = ()
    looks = 0

    def find(self, part, begin, end):
        found = super().find(part, begin, end)
        type(self).looks += (end if found < 0 else found + len(part)) - begin
        return found


def test_no_character_is_looked_at_twice():
    """Each search begins where the one before it ended, whatever the pattern."""
    path = Counted("/" + "ab" * 1_000)
    Counted.looks = 0
    assert not Pattern("/*a*a*b*a*b*b*c*" + "a*" * 50).matches(path)
    assert Counted.looks <= len(path)
