"""Code, messages and docs are free of words that a reader would need a glossary for."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BANNED = (
    "anew",
    "as good as",
    "be it",
    "errands?",
    "heed(s|ed)?",
    "let go",
    "mend(s|ed|ing)?",
    "signs? of life",
    "taken for dead",
    "told",
    "whoever",
)
"""Unambiguous words only: whether an ordinary word such as "line" fits, a reader decides."""

PATTERN = re.compile(rf"\b({'|'.join(BANNED)})\b", re.IGNORECASE)
FOLDERS = ("django_sitemapkit", "docs", "example_project", "tests", ".ci", ".github")
SUFFIXES = {".py", ".html", ".txt", ".md", ".mjs", ".css", ".js", ".toml", ".ini", ".yml", ""}


def texts() -> list[Path]:
    """Return the project's text files; the changelog and this list are not among them."""
    found = [ROOT / "README.md", ROOT / "pyproject.toml", ROOT / "tox.ini"]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return [path for path in found if path.is_file() and path != Path(__file__).resolve()]


def test_no_banned_word():
    """No line of any text has one."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if PATTERN.search(line)
    ]
    assert found == []


def test_a_banned_word_is_found():
    """In any case, and not within other words."""
    assert PATTERN.search("Mended ANEW.")
    assert not PATTERN.search("Recommended renewal.")
