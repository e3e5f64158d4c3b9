"""What a check of a declaration is, and the mistakes that every kind of section can have."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from traceback import walk_tb
from typing import Any, ClassVar

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.extensions import format_hreflang, hreflang_doubt
from django_sitemapkit.protocol.limits import MAX_URLS
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.reading.base import SectionReader
from django_sitemapkit.reading.sources import TAGS, UNSET, Column, Constant, source_of
from django_sitemapkit.reading.validation.frozen import frozen_moment


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with a declaration, and the way out."""

    message: str
    """What is wrong."""
    hint: str
    """What to write instead."""

    @property
    def sentence(self) -> str:
        """What is wrong, with one full stop, whatever it quotes ends with."""
        return f"{self.message.rstrip('.')}."

    @property
    def text(self) -> str:
        """Both, for an error."""
        return f"{self.sentence} {self.hint}"


FindMistake = Callable[[Any], Mistake | None]

NOT_OF_PROJECT = frozenset({"django", "django_sitemapkit", *sys.stdlib_module_names})
"""The packages whose code is not a project's."""


def raised(error: Exception) -> Mistake:
    """Return what a project's code raised: which function, where, and what it must do."""
    what, place = "its code", ""
    for frame, line in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in NOT_OF_PROJECT:
            name = frame.f_code.co_name
            what = f"{name}()" if name.isidentifier() else name
            place = f" ({module}, line {line})"
            break
    reason = ": ".join(filter(None, [type(error).__name__, str(error)]))
    return Mistake(
        f"{what} raised {reason}{place}",
        f"Let {what} work whenever it is called: before tables have rows, without a request, and"
        " while other services are down.",
    )


def wrong_constant(tag: str, format_tag: Callable[[Any], str | None], hint: str) -> FindMistake:
    """Return a check of a tag that is the same for all rows: the protocol must have its value."""

    def find(checks: "SectionChecks") -> Mistake | None:
        source = checks.reader.declared_source(tag)
        try:
            if isinstance(source, Constant) and source != UNSET:
                format_tag(source.value)
        except InvalidValue as refusal:
            return Mistake(f"{tag}: {refusal}", hint)
        return None

    return find


class SectionChecks:
    """The checks of one section. Each returns what is wrong and the way out, or None."""

    def __init__(self, reader: SectionReader) -> None:
        self.reader = reader
        self.options: Any = reader.options

    def wrong_limit(self) -> Mistake | None:
        """Find a limit that is not a number of URLs a file may have."""
        limit = self.options.limit
        whole = isinstance(limit, int) and not isinstance(limit, bool)
        if limit is None or (whole and 1 <= limit <= MAX_URLS):
            return None
        return Mistake(f"limit is {limit!r}", f"Set it to a whole number from 1 to {MAX_URLS:,}.")

    def column_without_rows(self) -> Mistake | None:
        """Find a column on a section that has no rows in the database."""
        declared = {tag: self.reader.declared_source(tag) for tag in TAGS}
        declared["title"] = source_of(self.options.title, text_is_column=True)
        for option, source in declared.items():
            if isinstance(source, Column):
                message = f"{option} is a column, but its items are not rows"
                return Mistake(message, "Use a value or a method.")
        return None

    def idle_languages(self) -> Mistake | None:
        """Find language options without effect."""
        if not self.options.i18n:
            return None
        named = self.options.languages
        codes = [] if isinstance(named, str) else list(named or ())
        repeated = next((code for n, code in enumerate(codes) if code in codes[:n]), None)
        if repeated is not None:
            return Mistake(
                f"languages has {repeated!r} twice, which has no effect", "Name it once."
            )
        if not self.options.alternates and self.options.x_default is not False:
            return Mistake("x_default has no effect without alternates", "Set alternates = True.")
        return None

    def doubtful_language(self) -> Mistake | None:
        """Find the code of a language that Google does not know."""
        plan = self.reader.language_plan
        if not plan or not self.options.alternates:
            return None
        for code in plan.codes:
            try:
                doubt = hreflang_doubt(format_hreflang(code))
            except InvalidValue as refusal:
                doubt = str(refusal)
            if doubt:
                return Mistake(
                    f"the hreflang of language {code!r} will not be understood: {doubt}",
                    "Remove it from languages, or ignore this warning: the pages are listed"
                    " anyway.",
                )
        return None

    def frozen_moment(self) -> Mistake | None:
        """Find a moment at which the class was imported: what it selects stays as it was then."""
        moment = frozen_moment(self.options)
        if moment is None:
            return None
        return Mistake(
            f"it compares with {moment}, the time at which it was imported, or has it as lastmod:"
            " until the process ends, it stays the same",
            "Use Now() of django.db.models.functions, or a method: def get_queryset(self).",
        )

    CHECKS: ClassVar[dict[str, FindMistake]] = {
        "sitemapkit.E122": wrong_limit,
        "sitemapkit.E123": wrong_constant(
            "lastmod", format_lastmod, "Set a date, or name a date column."
        ),
        "sitemapkit.E124": wrong_constant(
            "changefreq",
            format_changefreq,
            "Use always, hourly, daily, weekly, monthly, yearly or never.",
        ),
        "sitemapkit.E125": wrong_constant(
            "priority", format_priority, "Use a number from 0.0 to 1.0."
        ),
        "sitemapkit.W152": idle_languages,
        "sitemapkit.W153": doubtful_language,
        "sitemapkit.W164": frozen_moment,
    }
    """The checks of a kind of section by id, in their order."""

    ITEM_CHECKS: ClassVar[dict[str, FindMistake]] = {}
    """Checks that may read the database: last, so that the others are run without one."""

    OF_CODE: ClassVar[tuple[str, ...]] = ()
    """What these ids warn of is an error as long as it is declared, not returned by code.

    An error would end ``migrate`` and ``loaddata``, by which the code gets the rows it needs.
    """

    @property
    def calls_code(self) -> bool:
        """Whether a method of the project returns what the checks in ``OF_CODE`` judge."""
        return False

    PAGEABLE: ClassVar[tuple[FindMistake, ...]] = (wrong_limit,)
    """The mistakes that would lose rows or list them twice: such a section refuses to run."""
