"""``--help`` of the commands."""

import re

import pytest
from django.core.management import get_commands, load_command_class

NAMES = [name for name, app in get_commands().items() if app.startswith("django_sitemapkit")]


@pytest.mark.parametrize("name", NAMES)
def test_help_lists_the_exit_codes_that_the_documentation_has(name, docs):
    """Each command lists its own codes and what they mean."""
    command = load_command_class(get_commands()[name], name)
    text = " ".join(command.create_parser("manage.py", name).format_help().split())
    listed = text.partition("Exit codes: ")[2]
    assert "0 success; 1 failure; 2 invalid arguments or settings" in listed
    assert "130 interrupted" in listed
    section = docs.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    documented = section.rpartition("Exit codes: ")[2]
    for code in "3456":
        codes = re.findall(r"\b\d+\b", documented.partition("\n\n")[0])
        assert (f"; {code} " in listed) == (code in codes)


@pytest.fixture(scope="module")
def docs(pytestconfig):
    """Return the documentation of the commands."""
    return (pytestconfig.rootpath / "docs" / "commands.md").read_text("utf-8")
