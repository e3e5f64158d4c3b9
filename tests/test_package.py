"""What is installed is what the checkout has."""

from pathlib import Path

import django_sitemapkit

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
