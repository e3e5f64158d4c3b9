"""The console script, in an environment of its own, on a site that any web server serves."""

import os
import shutil

import pytest

from tests.recipes.walkthrough import Walkthrough, fresh_environment
from tests.test_docs import ROOT, blocks_of

pytestmark = pytest.mark.release

LINES = next(blocks_of(ROOT / "docs" / "crawling.md")).text.splitlines()
"""How the page about crawling begins: one line to install, and one to crawl."""


@pytest.fixture
def reader(distributions, tmp_path):
    """Give a reader of the page, who has installed the extra, in a folder with a static site."""
    (wheel,) = distributions.glob("*.whl")
    variables = fresh_environment(tmp_path / "environment", wheel=wheel)
    (tmp_path / "site").mkdir()
    walkthrough = Walkthrough(tmp_path, {**variables, "PIP_CONSTRAINT": ""})
    assert LINES[0] == 'pip install "django-sitemapkit[audit]"'
    walkthrough.run(f'pip install --quiet "django-sitemapkit[audit] @ {wheel.as_uri()}"')
    yield walkthrough
    walkthrough.close()


def test_two_lines_make_the_sitemap_of_a_static_site(reader):
    """It is valid, and its pages can be audited."""
    for name, link in (("index", "a"), ("a", "b"), ("b", "a")):
        reader.write(f"site/{name}.html", f"<title>{name}</title><a href={link}.html>{link}</a>")
    host, _, port = reader.address.partition(":")
    reader.serve(f"python -m http.server {port} --bind {host} --directory site")
    crawl = LINES[1].replace("https://www.example.com", f"http://{reader.address}")
    assert "3 URLs crawled, 0 broken links" in reader.run(f"{crawl} --allow-private")
    assert {path.name for path in (reader.folder / "public").iterdir()} == {
        *("sitemap.xml", "urls.txt", "sitemap.html", "pages.csv", "links.csv", ".sitemapkit-crawl")
    }
    assert "0 errors" in reader.run("sitemapkit validate public public/urls.txt")
    if shutil.which("xmllint") or "CI" in os.environ:
        schema = "--schema $SITEMAP_SCHEMAS/sitemap.xsd" if "SITEMAP_SCHEMAS" in os.environ else ""
        reader.run(f"xmllint --noout {schema} public/sitemap.xml")
        reader.run("xmllint --noout --html public/sitemap.html")
    reader.run("cp public/sitemap.xml site/")
    audit = f"python -m django_sitemapkit audit http://{reader.address}/sitemap.xml"
    assert "3 URLs of live pages, 0 bad" in reader.run(f"{audit} --allow-private")
