"""The quick start, from an empty virtual environment to served and built sitemaps."""

import json
import os
import re
import shutil
import subprocess

import pytest

from django_sitemapkit.audit.reader import validate
from tests.recipes.walkthrough import Walkthrough, fresh_environment, without_moments
from tests.test_docs import ROOT, Block, blocks_of
from tests.toxini import pairs

pytestmark = pytest.mark.release

PAGE = ROOT / "docs" / "quickstart.md"
BLOCKS = list(blocks_of(PAGE))
BASE = "https://www.example.com"


def python_of(version):
    """Return the interpreter of a version; without one the test is skipped, under CI it fails."""
    python = shutil.which(f"python{version}") or ""
    # The shims of pyenv are there for versions that are not.
    if (
        not python
        or subprocess.run([python, "--version"], capture_output=True, check=False).returncode
    ):
        assert not os.environ.get("CI"), f"there is no Python {version}"
        pytest.skip(f"needs Python {version}")
    return python


@pytest.fixture(params=pairs(), ids=lambda pair: "Python {}, Django {}".format(*pair))
def variables(request, distributions, tmp_path):
    """Make an environment, and return the variables of a shell in which it is activated."""
    python, django = request.param
    (wheel,) = distributions.glob("*.whl")
    return fresh_environment(
        tmp_path / "environment", python=python_of(python), wheel=wheel, django=f"~={django}.0"
    )


@pytest.fixture
def reader(variables, tmp_path):
    """Give a reader of the page, in an empty folder."""
    (tmp_path / "project").mkdir()
    walkthrough = Walkthrough(tmp_path / "project", variables)
    yield walkthrough
    walkthrough.close()


def listed(document):
    """Return the paths that a document lists."""
    return re.findall(f"<loc>{BASE}([^<]+)</loc>", document)


def test_the_quick_start_ends_in_served_and_built_sitemaps(reader):
    """Copied line by line, with the wheel and Django alone, on each Python and Django."""
    (step,) = (n for n, block in enumerate(BLOCKS) if "build_sitemaps" in block.text)
    reader.follow(BLOCKS[:step])
    assert "Last-Modified" not in reader.get("/sitemap-products-1.xml").headers
    reader.follow(BLOCKS[step:])
    assert_that_it_ran_alone(reader)
    index = reader.output
    stored = {path.name.split("-")[0] for path in (reader.folder / "sitemaps").rglob("*.*")}
    assert {"products", "pages", "index"} <= stored
    for address in ("/sitemap.xml", *listed(index)):
        response = reader.get(address)
        assert response.headers["Last-Modified"], "it is published"
        assert validate([response.read()], f"{BASE}{address}").valid
    pages = [
        path
        for address in listed(index)
        for path in listed(reader.get(address.removesuffix(".gz")).read().decode())
    ]
    assert pages == ["/products/tea-pot/", "/"]
    assert [reader.get(path).status for path in pages] == [200, 200]
    assert f"Sitemap: {BASE}/sitemap.xml" in reader.get("/robots.txt").read().decode()


def assert_that_it_ran_alone(reader):
    """Look at what is installed, and where the package is."""
    found = json.loads(reader.run("pip list --format json"))
    names = {package["name"].lower() for package in found} - {"pip", "setuptools", "wheel"}
    assert names == {"asgiref", "django", "django-sitemapkit", "sqlparse"}
    place = reader.run('python -c "import django_sitemapkit as kit; print(kit.__file__)"')
    assert "site-packages" in place
    assert reader.run("python manage.py check") == (
        "System check identified no issues (0 silenced).\n"
    )


def test_a_page_that_is_wrong_fails(tmp_path):
    """Whether a command fails, or prints something else than is shown."""
    reader = Walkthrough(tmp_path, {})

    def follow(language, text):
        reader.follow([Block(PAGE, 1, "", language, text)])

    follow("python", "# notes.py\nyes\n")
    follow("sh", "cat notes.py\n")
    follow("xml", "# notes.py\nyes\n")
    with pytest.raises(AssertionError):
        follow("xml", "# notes.py\nno\n")
    with pytest.raises(AssertionError):
        follow("sh", "cat nothing.py\n")
    with pytest.raises(AssertionError):
        follow("sh", "curl https://www.example.com/\n")
    assert without_moments("<lastmod>a</lastmod>") == without_moments("<lastmod>b</lastmod>")
