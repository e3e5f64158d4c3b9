"""Spanish and French are complete, and say what the code asks for."""

import ast
import gettext
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import django
import pytest
from django.utils import translation

import django_sitemapkit

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(django_sitemapkit.__file__).parent
LANGUAGES = ("es", "fr")

UPDATE = """In django_sitemapkit, run
django-admin makemessages -l es -l fr --add-location file --no-obsolete
translate what is new, and run
django-admin compilemessages"""

pytestmark = pytest.mark.parametrize("language", LANGUAGES)


def entries_of(file):
    """Return the entries of a catalogue: comments, and texts by keyword."""
    return [entry_of(block) for block in re.split(r"\n\n+", file.read_text("utf-8").strip())]


def entry_of(block):
    """Return one entry."""
    found, keyword = {"comments": ""}, ""
    for line in block.splitlines():
        if line.startswith("#"):
            found["comments"] += line
            continue
        named, quote, text = line.partition('"')
        keyword = named.strip() or keyword
        found[keyword] = found.get(keyword, "") + ast.literal_eval(quote + text)
    return found


def catalogue(language, kind):
    """Return the path of a language's catalogue."""
    return PACKAGE / "locale" / language / "LC_MESSAGES" / f"django.{kind}"


def messages_of(file):
    """Return the messages of a catalogue, without its head."""
    head, *messages = entries_of(file)
    assert head["msgid"] == ""
    return messages


def texts(message):
    """Return the translations of a message."""
    return [text for keyword, text in message.items() if keyword.startswith("msgstr")]


def placeholders(text):
    """Return what is filled in, and the markup."""
    return sorted(re.findall(r"%\(\w+\)[a-zA-Z0-9]+|\{\w*\}|</?\w+>", text))


@pytest.mark.slow
def test_all_is_translated(language):
    """No text is missing, doubtful or obsolete, and each has the placeholders of its source."""
    messages = messages_of(catalogue(language, "po"))
    assert len(messages) > 300
    for message in messages:
        assert "fuzzy" not in message["comments"]
        assert not message["comments"].startswith("#~")
        source = message["msgid"]
        forms = texts(message)
        assert len(forms) == (3 if "msgid_plural" in message else 1), source
        for text in forms:
            assert text.strip(), source
            assert placeholders(text) == placeholders(source), source
            assert text.startswith("\n") == source.startswith("\n"), source
            assert text.endswith((".", ":", "?")) == source.endswith((".", ":", "?")), source


@pytest.mark.slow
def test_what_is_compiled_is_what_is_written(language):
    """The compiled catalogue has each text of the other one."""
    with catalogue(language, "mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)._catalog
    written = {}
    for message in messages_of(catalogue(language, "po")):
        source, forms = message["msgid"], texts(message)
        if "msgid_plural" in message:
            written |= {(source, number): text for number, text in enumerate(forms)}
        else:
            written[source] = forms[0]
    compiled.pop("")
    assert compiled == written, UPDATE


@pytest.mark.slow
def test_what_the_code_asks_for_is_in_the_catalogue(language, tmp_path):
    """``makemessages`` finds no text that is not there, and none is there that it does not find."""
    if not shutil.which("xgettext"):
        if os.environ.get("CI"):
            pytest.fail("xgettext is missing; on Debian: apt install gettext")
        pytest.skip("xgettext is not installed")
    copy = tmp_path / "django_sitemapkit"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.pyc", "*.mo"))
    file = copy / "locale" / language / "LC_MESSAGES" / "django.po"
    before = {(each["msgid"], each.get("msgid_plural")) for each in messages_of(file)}
    command = [sys.executable, "-m", "django", "makemessages", "-l", language, "--no-obsolete"]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "django.conf.global_settings"}
    subprocess.run(command, cwd=copy, env=environment, check=True, capture_output=True)
    after = {(each["msgid"], each.get("msgid_plural")) for each in messages_of(file)}
    assert after == before, UPDATE


@pytest.mark.slow
def test_texts_are_found_by_makemessages(language):
    """No module gives a function another name, by which ``makemessages`` would not know it."""
    for module in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation":
                assert {name.asname for name in node.names} <= {None, "_"}, module


@pytest.mark.slow
def test_the_words_of_django_stay(language):
    """A text that Django has too is translated as Django does: ours would take its place."""
    django_s = {}
    for file in Path(django.__file__).parent.glob(f"**/locale/{language}/LC_MESSAGES/django.mo"):
        if "gis" not in file.parts:
            with file.open("rb") as opened:
                for source, text in gettext.GNUTranslations(opened)._catalog.items():
                    django_s.setdefault(source, set()).add(text)
    with catalogue(language, "mo").open("rb") as file:
        ours = gettext.GNUTranslations(file)._catalog
    shared = {source for source in ours if source and source in django_s}
    assert len(shared) > 5
    assert {source for source in shared if ours[source] not in django_s[source]} == set()


def test_a_text_comes_out(language):
    """Django finds the catalogue."""
    expected = {"es": "Generar los cambios", "fr": "Générer les changements"}
    with translation.override(language):
        assert translation.gettext("Build changes") == expected[language]
