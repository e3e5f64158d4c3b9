"""Cuts HTML into tags and text, as a browser does, in time that grows with its length only.

``html.parser`` of several supported Pythons (3.11.7, 3.13.0) reads ``?a=1&region=2`` as
``?a=1®ion=2``, raises for ``<![<``, and takes an hour for 3 MB of comments that are not closed.
Here each pattern goes forward only: nothing is tried twice.
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from html.entities import html5

_NAME = r"[a-zA-Z][^\s/>]*+"
_ATTRIBUTES = r"(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+)*+"  # A quote counts behind "=" only.
_COMMENT = r"<(?:!--(?:-?>|.*?(?:--!?>|\Z))|(?:[!?]|/(?![a-zA-Z]))[^>]*+(?:>|\Z))"
_TAG_OR_COMMENT = re.compile(rf"</?+{_NAME}{_ATTRIBUTES}(?:>|\Z)|{_COMMENT}", re.DOTALL)
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


def tag_pattern(names: Iterable[str] = ()) -> re.Pattern[str]:
    """Return the pattern of a tag of one of these names, or of any, and of all that is before it.

    ``RAW_TAGS`` are always among the names.
    """
    wanted = sorted({*names, *RAW_TAGS})
    initials = "".join(sorted({name[0] for name in wanted}))
    is_wanted = rf"/?+(?=[{initials}{initials.upper()}])(?i:{'|'.join(wanted)})[\s/>]"
    other = rf"|<(?!{is_wanted})/?+{_NAME}{_ATTRIBUTES}(?:>|\Z)" if names else ""
    return re.compile(
        rf"((?:[^<]++|<(?![a-zA-Z/!?])|{_COMMENT}{other})*+)"
        rf"(?:<(/?+)({_NAME})({_ATTRIBUTES})(>|\Z)|\Z)",
        re.DOTALL,
    )


ANY_TAG = tag_pattern()


def tags(
    text: str, pattern: re.Pattern[str] = ANY_TAG, position: int = 0
) -> Iterator[tuple[str, str, str, int]]:
    """Yield each tag of a pattern: what is before it, its name, its attributes as written, its end.

    The name is in lower case; that of an end tag begins with a slash. Comments and other tags are
    part of what is before it. At the end of the text there is one more, without a name.
    """
    content = ""
    while True:
        for token in pattern.finditer(text, position):
            before, slash, name, attributes, closing = token.groups()
            if not closing:  # It is the end of the text, or a tag that is cut off there.
                yield content + before, "", "", len(text)
                return
            name = name.lower()
            if slash or name not in _RAW_ENDS:
                yield content + before, slash + name, attributes, token.end()
                content = ""
                continue
            # What is never closed takes all that follows.
            found = _RAW_ENDS[name].search(text, token.end())
            position = found.start() if found else len(text)
            yield content + before, name, attributes, position
            content = "" if name in RAW_TAGS else text[token.end() : position]
            break


def attributes_of(written: str) -> dict[str, str]:
    """Return a tag's attributes; the first one of a name counts."""
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(written):
        value = double or single or bare
        if "&" in value:
            value = _REFERENCE_IN_ATTRIBUTE.sub(_whole_character, value)
        found.setdefault(name.lower(), value)
    return found


def without_tags(text: str) -> str:
    """Return the text between tags and comments, where no tag is of ``RAW_TAGS``."""
    return _TAG_OR_COMMENT.sub("", text) if "<" in text else text


def plain(text: str) -> str:
    """Return the text between tags with its character references resolved."""
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _whole_character(reference: re.Match[str]) -> str:
    name = reference[0][1:]
    return unescape(reference[0]) if name[0] == "#" else html5.get(name, reference[0])


def _character(reference: re.Match[str]) -> str:
    return unescape(reference[0])
