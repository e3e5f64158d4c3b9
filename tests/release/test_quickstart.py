"""The quick start, from an empty virtual environment to served and built sitemaps."""

import json
import os
import re
import shutil
import subprocess

import pytest

from django_sitemapkit.audit.reader import validate
from tests.recipes.walkthrough import Walkthrough, fresh_environment, without_moments
from tests.test_docs import PROJECT, README, ROOT, Block, blocks_of, dedented
from tests.toxini import pairs

pytestmark = pytest.mark.release

PAGE = ROOT / "docs" / "quickstart.md"
BLOCKS = list(blocks_of(PAGE))
BASE = "https://www.example.com"

MANAGE = """
    import os
    import sys

    from django.core.management import execute_from_command_line

    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    execute_from_command_line(sys.argv)
"""

BASE_SETTINGS = PROJECT["base.py"].replace('["www', '["127.0.0.1", "www')
"""The settings of the project of the README: its pages are asked for on this machine."""


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


PAIRS = pairs()
if os.environ.get("RELEASE_PAIRS") == "ends":
    PAIRS = [min(PAIRS), max(PAIRS)]


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: "Python {}, Django {}".format(*pair))
def variables(request, distributions, tmp_path_factory):
    """Make an environment, and return the variables of a shell in which it is activated."""
    python, django = request.param
    (wheel,) = distributions.glob("*.whl")
    return fresh_environment(
        tmp_path_factory.mktemp("quickstart"),
        python=python_of(python),
        wheel=wheel,
        django=f"~={django}.0",
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
    assert not list(reader.folder.rglob("*.gz")), "the database stores the files"
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


def test_the_quick_start_of_the_readme_has_three_steps(reader):
    """Copied line by line into a project that has the models and views it speaks of."""
    steps = [block for block in blocks_of(README) if block.followed]
    assert re.findall(r"^\*\*(\d)\.\*\*", README.read_text("utf-8"), re.MULTILINE) == list("123")
    assert not any("STORAGES" in block.text for block in steps)
    for name, text in (PROJECT | {"manage.py": MANAGE, "base.py": BASE_SETTINGS}).items():
        path = reader.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedented(text), encoding="utf-8")
    (reader.folder / "base.py").rename(reader.folder / "settings.py")
    for block in steps:
        reader.follow([block])
        if block.file == "settings.py":  # The dots in it stand for the project's own apps.
            reader.write(
                "settings.py", 'INSTALLED_APPS += ["django.contrib.contenttypes", "shop"]\n'
            )
        if block.file == "urls.py":
            reader.run("python manage.py makemigrations shop --verbosity 0")
    assert "published; 1 URL in 1 file and the index" in reader.output
    reader.run("python manage.py runserver")
    index = reader.get("/sitemap.xml").read().decode()
    assert listed(index) == ["/sitemap-pages-1.xml.gz"]
    assert listed(reader.get("/sitemap-pages-1.xml").read().decode()) == ["/"]
    assert not list(reader.folder.rglob("*.gz"))


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
