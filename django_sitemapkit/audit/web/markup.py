"""Cuts HTML into tags and text, as a browser does, in time that grows with its length only.

``html.parser`` of several supported Pythons (3.11.7, 3.13.0) reads ``?a=1&region=2`` as
``?a=1®ion=2``, raises for ``<![<``, and takes an hour for 3 MB of comments that are not closed.
Here each pattern goes forward only: nothing is tried twice.
"""

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5

_TOKEN = re.compile(
    r"<(?:"
    r"(/?+)([a-zA-Z][^\s/>]*+)"  # A tag. A quote in it counts behind "=" only.
    r"((?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+)*+)(>|\Z)"
    r"|!--(?:-?>|.*?(?:--!?>|\Z))"
    r"|[!?/][^>]*+(?:>|\Z)"
    r")",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>]*+)))?+"
)

_NUMBER = r"#(?:\d{1,8}+|[xX][0-9a-fA-F]{1,7}+);?+"
_REFERENCE = re.compile(rf"&(?:{_NUMBER}|[a-zA-Z][a-zA-Z0-9]{{1,40}}+;?+)")
# In an attribute, "&copy" of "&copy=1" or "&copying" is no reference (HTML, 13.2.5.73).
_REFERENCE_IN_ATTRIBUTE = re.compile(
    rf"&(?:{_NUMBER}|[a-zA-Z][a-zA-Z0-9]{{1,40}}+(?:;|(?![=a-zA-Z0-9])))"
)

RAW_TAGS = frozenset({"iframe", "noembed", "noframes", "script", "style", "textarea", "xmp"})
"""Tags whose content has no tags, and is nothing that a search engine reads."""

_RAW_ENDS = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in RAW_TAGS | {"title"}
}


def tags(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each tag as the text before it, its name and its attributes as written.

    The name is in lower case; that of an end tag begins with a slash. At the end there is one
    more without a name.
    """
    position, end = 0, len(text)
    start = 0
    while token := _TOKEN.search(text, position):
        before, position = text[start : token.start()], token.end()
        slash, name, attributes, closing = token.groups()
        start = position
        if not closing:  # A comment, or a tag that the end of the text cuts off.
            yield before, "!", ""
            continue
        name = name.lower()
        yield before, slash + name, attributes
        if not slash and name in _RAW_ENDS:
            # What is never closed takes all that follows.
            found = _RAW_ENDS[name].search(text, position)
            position = end if found is None else found.start()
            if name in RAW_TAGS:
                start = position
    yield text[start:], "", ""


def attributes_of(written: str) -> dict[str, str]:
    """Return a tag's attributes; the first one of a name counts."""
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(written):
        value = double or single or bare
        if "&" in value:
            value = _REFERENCE_IN_ATTRIBUTE.sub(_whole_character, value)
        found.setdefault(name.lower(), value)
    return found


def plain(text: str) -> str:
    """Return the text between tags with its character references resolved."""
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _whole_character(reference: re.Match[str]) -> str:
    name = reference[0][1:]
    return unescape(reference[0]) if name[0] == "#" else html5.get(name, reference[0])


def _character(reference: re.Match[str]) -> str:
    return unescape(reference[0])
