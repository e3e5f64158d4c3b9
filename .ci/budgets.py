"""Prints the size of each room of the package, and fails if a budget is exceeded.

    tox run -e budgets

A change that exceeds a budget raises its number here, in the same commit, and says why in
the commit's message. A statement is an ``ast.stmt`` that is no docstring; a token is one of
``tokenize`` that is neither comment, docstring, newline nor indentation. Migrations do not count.
Run it with Python 3.11: newer versions split f-strings into several tokens.
"""

import ast
import io
import sys
import tempfile
import time
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import CodeType, FrameType

import django
from django.conf import settings
from django.core.management import call_command
from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, include, path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "django_sitemapkit"
GUESTS = frozenset({"audit", "contrib", "submission"})

BUDGETS = {
    "package: statements": 24_711,
    "package: tokens": 294_096,
    "core: statements": 17_811,
    "core: tokens": 214_617,
    "builds, runners, planning, publishing: statements": 4_517,
    "audit: statements": 4_953,
    "inspections by Google: statements": 203,
    "fields of the tables of builds": 66,
    "first build of five rows: functions": 380,
    "first build of five rows: files": 53,
    "Exclude now: functions": 395,
    "Exclude now: files": 54,
    "functions: lines, 95th percentile": 30,
    "functions: lines, longest": 60,
    "files: lines, longest": 502,
}
INSPECTIONS = frozenset({"submission/indexing.py", "submission/search_console.py"})
"""What asks Google about URLs, and counts them; the client also submits sitemaps."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A module of the package, measured."""

    room: str
    """The folder or module directly below the package."""
    name: str
    """The path below the package."""
    statements: int
    tokens: int
    lines: int
    functions: tuple[int, ...]
    """How many lines each function has."""


def main() -> int:
    """Print rooms and budgets; return how many budgets are exceeded."""
    modules = sorted(PACKAGE.rglob("*.py"))
    sources = [measured(module) for module in modules if "migrations" not in module.parts]
    print_rooms(sources)
    found = sizes(sources) | journeys()
    print(f"\n{'budget':<52} {'now':>8} {'bound':>8}")
    for name, bound in BUDGETS.items():
        print(f"{name:<52} {found[name]:>8,} {bound:>8,}{'  EXCEEDED' * (found[name] > bound)}")
    return sum(found[name] > bound for name, bound in BUDGETS.items())


# Sizes --------------------------------------------------------------------------------------------


def measured(module: Path) -> Source:
    """Parse one module and count what is in it."""
    text = module.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {node.lineno for node in nodes if is_docstring(node)}
    return Source(
        room=module.relative_to(PACKAGE).parts[0].removesuffix(".py"),
        name=module.relative_to(PACKAGE).as_posix(),
        statements=sum(isinstance(node, ast.stmt) for node in nodes) - len(docstrings),
        tokens=sum(1 for _ in tokens(text, docstrings)),
        lines=text.count("\n"),
        functions=tuple(
            (node.end_lineno or 0) - node.lineno + 1
            for node in nodes
            if isinstance(node, FUNCTIONS)
        ),
    )


def is_docstring(node: ast.AST) -> bool:
    """Tell whether a statement is a text by itself, which documents what stands around it."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def tokens(text: str, docstrings: set[int]) -> Iterator[tokenize.TokenInfo]:
    """Yield the tokens that count."""
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
    layout |= {tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_text = token.type == tokenize.STRING and token.start[0] in docstrings
        if token.type not in layout and not is_text:
            yield token


def print_rooms(sources: list[Source]) -> None:
    """Print the statements, tokens and lines of each room, largest first."""
    rooms: dict[str, Counter[str]] = {}
    for source in sources:
        rooms.setdefault(source.room, Counter()).update(
            modules=1, statements=source.statements, tokens=source.tokens, lines=source.lines
        )
    print(f"{'room':<20} {'modules':>8} {'statements':>11} {'tokens':>9} {'lines':>8}")
    for room, counts in sorted(rooms.items(), key=lambda item: -item[1]["statements"]):
        print(
            f"{room:<20} {counts['modules']:>8,} {counts['statements']:>11,} "
            f"{counts['tokens']:>9,} {counts['lines']:>8,}"
        )


def sizes(sources: list[Source]) -> dict[str, int]:
    """Return what can be counted without running anything."""
    core = [source for source in sources if source.room not in GUESTS]
    making = {"builds", "runners", "planning", "publishing"}
    functions = sorted(lines for source in sources for lines in source.functions)
    return {
        "package: statements": sum(source.statements for source in sources),
        "package: tokens": sum(source.tokens for source in sources),
        "core: statements": sum(source.statements for source in core),
        "core: tokens": sum(source.tokens for source in core),
        "builds, runners, planning, publishing: statements": sum(
            source.statements for source in core if source.room in making
        ),
        "audit: statements": sum(source.statements for source in sources if source.room == "audit"),
        "inspections by Google: statements": sum(
            source.statements for source in sources if source.name in INSPECTIONS
        ),
        "functions: lines, 95th percentile": functions[len(functions) * 95 // 100],
        "functions: lines, longest": functions[-1],
        "files: lines, longest": max(source.lines for source in sources),
    }


# Journeys -----------------------------------------------------------------------------------------


urlpatterns: list[URLPattern | URLResolver] = []
"""Of the project of the journeys, once it is set up."""


def journeys() -> dict[str, int]:
    """Return how many functions and files of the package a build and *Exclude now* enter.

    A section of five rows in two pages, on SQLite, in a process that has checked the project.
    """
    with tempfile.TemporaryDirectory() as folder:
        set_up(folder)
        from django_sitemapkit import builds
        from django_sitemapkit.models import (
            Build,
            BuildDifferences,
            BuildRequest,
            Place,
            Publication,
            StoredPage,
            UrlOverride,
        )
        from django_sitemapkit.sites import all_sites

        (site,) = all_sites()
        built = entered(lambda: builds.build(site))
        override = UrlOverride.objects.create(site=site.key, path="/users/user-2/", include=False)
        time.sleep(1)  # Else the index may be the same: it has the second of each file.
        excluded = entered(lambda: builds.publish_override(site, override))
        tables = Build, Place, StoredPage, Publication, BuildRequest, BuildDifferences
    return {
        "fields of the tables of builds": sum(
            not field.auto_created
            for model in tables
            for field in model._meta.local_concrete_fields
        ),
        "first build of five rows: functions": len(built),
        "first build of five rows: files": len({code.co_filename for code in built}),
        "Exclude now: functions": len(excluded),
        "Exclude now: files": len({code.co_filename for code in excluded}),
    }


def set_up(folder: str) -> None:
    """Make a project of five users in two pages: tables in memory, files in ``folder``."""
    local = "django.core.files.storage.FileSystemStorage"
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django_sitemapkit",
        ],
        ROOT_URLCONF=__name__,
        SITEMAPKIT_BASE_URL="https://www.example.com",
        STORAGES={
            "default": {"BACKEND": local},
            "sitemaps": {"BACKEND": local, "OPTIONS": {"location": folder}},
        },
        USE_TZ=True,
    )
    django.setup()
    from django.contrib.auth.models import User

    from django_sitemapkit import Route, Section, register

    @register
    class Users(Section):
        queryset = User.objects.all()
        location = Route("user", username="username")
        lastmod = "date_joined"
        limit = 3

    urlpatterns[:] = [
        path("", include("django_sitemapkit.urls")),
        path("users/<slug:username>/", lambda request, username: HttpResponse(), name="user"),
    ]
    call_command("check")
    call_command("migrate", verbosity=0)
    User.objects.bulk_create(
        User(username=f"user-{day}", date_joined=datetime(2024, 1, day, tzinfo=UTC))
        for day in range(1, 6)
    )


def entered(action: Callable[[], object]) -> set[CodeType]:
    """Run ``action``; return the code of the package that it entered, by identity."""
    seen: set[CodeType] = set()
    package = f"{PACKAGE}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_inlined = code.co_name in {"<listcomp>", "<setcomp>", "<dictcomp>"}  # as 3.12 does
        if event == "call" and code.co_filename.startswith(package) and not is_inlined:
            seen.add(code)

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return seen


if __name__ == "__main__":
    sys.exit(main())
