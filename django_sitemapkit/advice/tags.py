"""Columns that give the same tags as methods do."""

from typing import Any

from django.db.models import (
    CharField,
    DateField,
    DecimalField,
    F,
    Field,
    FloatField,
    IntegerField,
    TextField,
)

from django_sitemapkit.advice.asking import (
    Answer,
    answers,
    attempt,
    first_difference,
    formatter,
    refusals,
    shown,
)
from django_sitemapkit.advice.columns import Wanted, fitting
from django_sitemapkit.advice.results import Finding
from django_sitemapkit.advice.sampling import Sample
from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.sections import Section

_KINDS: dict[str, tuple[type["Field[Any, Any]"], ...]] = {
    "lastmod": (DateField,),
    "changefreq": (CharField, TextField),
    "priority": (DecimalField, FloatField, IntegerField, CharField),
}
"""The fields that may hold a tag; a datetime is a date to Django."""


def tag_finding(section: Section, tag: str, sample: Sample) -> tuple[Finding, Any]:
    """Return what was found about a tag that is a method, and a value or column that gives it."""
    given = answers(section, tag, sample.keys)
    notes = refusals(given)
    texts: dict[Any, Answer] = {
        key: text for key, text in given.items() if not isinstance(text, RefusedValue)
    }
    if not any(texts.values()):
        message = "the method gives no tag for any row that was looked at."
        return Finding(about=tag, message=message, notes=notes), None
    value, line, why = _found(section, tag, texts, sum(key in texts for key in sample.first))
    if value is None:
        return Finding(about=tag, message=f"stays a method: {why}", notes=notes), None
    if different := first_difference(given, answers(section, tag, sample.keys, **{tag: value})):
        key, before, after = different
        message = (
            f"stays a method: {line} differs in row {key!r}: it gives {shown(after)}, the method"
            f" {shown(before)}."
        )
        return Finding(about=tag, message=message, notes=notes), None
    message = f"a column gives {sample.said}"
    if isinstance(value, str) and tag != "lastmod":
        message = "it is the same for all these rows; that it always is, is not proven."
    return Finding(about=tag, message=message, declare=line, notes=(*notes, *why)), value


def _found(
    section: Section, tag: str, texts: dict[Any, Answer], first: int
) -> tuple[Any, str, Any]:
    """Return what may stand for a method, its line, and what to know; or None, and why not."""
    formatted = formatter(section, tag)
    wanted = Wanted(
        name=tag,
        values=texts,
        same=lambda text, value: attempt(formatted, value) == text,
        takes=lambda field: isinstance(field, _KINDS[tag]),
    )
    (fit,) = fitting(section, [wanted], first)
    if fit.columns:
        best, *others = fit.columns
        notes = (f"The same in all these rows: {', '.join(others)}.",) if others else ()
        if tag == "lastmod":
            return best, f'lastmod = "{best}"', notes
        return F(best), f'{tag} = F("{best}")', notes
    (constant, *more) = set(texts.values())
    if not more and tag != "lastmod":
        return constant, f'{tag} = "{constant}"', ()
    why = "no column up to two relations away gives the same for all rows."
    if fit.nearest:
        why += (
            f" The nearest is {fit.nearest}; in row {fit.row!r} the method gives"
            f" {shown(fit.wanted)}, and the column {fit.got!r}."
        )
    return None, "", why
