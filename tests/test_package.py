"""What is installed is what the checkout has, and its metadata are true."""

import re
import tomllib
from pathlib import Path

import django_sitemapkit
from tests import toxini

ROOT = Path(__file__).resolve().parent.parent


def files_of(package):
    """Return a package's files, but what Python and translators make beside them."""
    files = (path for path in package.rglob("*") if path.is_file())
    return {str(path.relative_to(package)) for path in files if path.suffix not in {".pyc", ".pot"}}


def test_all_files_are_installed():
    """The wheel has each file of the checkout: templates, styles, scripts and translations too."""
    installed = files_of(Path(django_sitemapkit.__file__).parent)
    assert installed == files_of(ROOT / "django_sitemapkit")
    for wanted in (".html", ".css", ".js", ".po", ".mo"):
        assert any(name.endswith(wanted) for name in installed)


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CLASSIFIERS = PROJECT["classifiers"]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
"""The headings that Keep a Changelog allows in a release."""


def versions(prefix):
    """Return the versions that the classifiers with a prefix name."""
    found = [re.fullmatch(rf"{re.escape(prefix)} :: (\d+\.\d+)", each) for each in CLASSIFIERS]
    return {match[1] for match in found if match}


def test_the_classifiers_are_what_is_tested():
    """They name each Python and each Django of tox.ini, the system it runs on, and nothing else."""
    assert versions("Programming Language :: Python") == {python for python, _ in toxini.pairs()}
    assert versions("Framework :: Django") == {django for _, django in toxini.pairs()}
    systems = [each for each in CLASSIFIERS if each.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    oldest = min(toxini.pairs())
    assert PROJECT["requires-python"] == f">={oldest[0]}"
    assert PROJECT["dependencies"] == [f"django>={oldest[1]}"]
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    pythons = {f"3.{minor}" for minor in re.findall(r"py3(\d+)-", run)}
    assert versions("Programming Language :: Python") == pythons


def headings(level):
    """Return the changelog's headings of a level."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.findall(rf"^{'#' * level} (.+)$", text, re.MULTILINE)


def test_the_changelog_is_that_of_the_version():
    """A version in development is unreleased; a release has its version and its day."""
    version = django_sitemapkit.__version__
    newest, *others = headings(2)
    if version.endswith(".dev0"):
        assert newest == "Unreleased"
    else:
        assert re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", newest)
    assert "Unreleased" not in others
    assert headings(3)
    assert set(headings(3)) <= KINDS


def test_a_release_does_not_call_itself_unreleased():
    """These pages say that there is no release yet, until there is one that is no candidate."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    said = {
        page.name
        for page in pages
        if re.search("(?i)no release yet|until the first release", page.read_text(encoding="utf-8"))
    }
    is_first = re.fullmatch(r"1\.0\.0\D.*", django_sitemapkit.__version__)
    expected = {"README.md", "migrating.md", "quickstart.md"}
    assert said == (expected if is_first else set())
