"""Finds columns that give the same tags as methods."""

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

from django_sitemapkit.advice.columns import Wanted, fitting
from django_sitemapkit.advice.evaluate import (
    Answer,
    answers,
    first_difference,
    formatter_of,
    refusal_notes,
    try_format,
)
from django_sitemapkit.advice.results import AdviceFinding
from django_sitemapkit.advice.sampling import Sample
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading import QuerySetReader

_FIELD_TYPES: dict[str, tuple[type["Field[Any, Any]"], ...]] = {
    "lastmod": (DateField,),
    "changefreq": (CharField, TextField),
    "priority": (DecimalField, FloatField, IntegerField, CharField),
}
"""The types of fields for each tag; a DateTimeField is a DateField too."""


def tag_finding(section: QuerySetReader, tag: str, sample: Sample) -> tuple[AdviceFinding, Any]:
    """Return the finding about a tag that is a method, and a value or column that replaces it."""
    given = answers(section, tag, sample.keys)
    notes = refusal_notes(given)
    texts: dict[Any, Answer] = {
        key: text for key, text in given.items() if not isinstance(text, InvalidValue)
    }
    if not any(texts.values()):
        message = "the method gives no tag for any examined row."
        return AdviceFinding(about=tag, message=message, notes=notes), None
    value, line, why = _found(section, tag, texts, sum(key in texts for key in sample.first))
    if value is None:
        return AdviceFinding(about=tag, message=f"stays a method: {why}", notes=notes), None
    if difference := first_difference(given, answers(section, tag, sample.keys, **{tag: value})):
        message = f"stays a method: {line} {difference}"
        return AdviceFinding(about=tag, message=message, notes=notes), None
    message = f"a column gives {sample.said}"
    if isinstance(value, str) and tag != "lastmod":
        message = "it is the same for all these rows, which does not prove that it always is."
    return AdviceFinding(about=tag, message=message, declare=line, notes=(*notes, *why)), value


def _found(
    section: QuerySetReader, tag: str, texts: dict[Any, Answer], first: int
) -> tuple[Any, str, Any]:
    """Return what can replace a method, its line, and notes; or None, and why not."""
    formatted = formatter_of(section, tag)
    wanted = Wanted(
        name=tag,
        values=texts,
        origin="the method gives",
        same=lambda text, value: try_format(formatted, value) == text,
        takes=lambda field: isinstance(field, _FIELD_TYPES[tag]),
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
    why = f"no column up to two relations away gives the same for all rows. {fit.nearest}"
    return None, "", why.rstrip()
