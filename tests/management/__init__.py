"""What the tests of the commands share: running one, and a storage to look into."""

from io import StringIO

from django.core.management import CommandError, call_command

from django_sitemapkit.models import Place, Publication
from django_sitemapkit.publishing import SitemapStorage
from tests.factories import SITE


class Terminal(StringIO):
    """An output that is a terminal."""

    def isatty(self):
        return True


def run(*arguments, out=None):
    """Return the exit code of a command, its output, and its errors with the last word."""
    out = StringIO() if out is None else out
    err = StringIO()
    try:
        call_command(*map(str, arguments), stdout=out, stderr=err)
    except CommandError as error:
        return error.returncode, out.getvalue(), f"{err.getvalue()}{error}"
    return 0, out.getvalue(), err.getvalue()


def line_of(section="", number=1):
    """Return the manifest's line of a published file, the index by default."""
    return Place.objects.get(
        build=Publication.objects.get(site=SITE.key).build,
        section=section,
        number=number if section else 0,
    )


def path_of(line):
    """Return where a stored file lies."""
    return SitemapStorage().local_path(line.name)


def names(folder):
    """Return every file of a folder and the folders in it."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
