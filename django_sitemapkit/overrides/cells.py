"""The cells of CSV files: the values of overrides and extra URLs as text, and text as values."""

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.models import ExtraUrl, UrlOverride
from django_sitemapkit.overrides.objects import named_model
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.protocol.locations import UNSAFE
from django_sitemapkit.sites import Site

_CELL = '((?:\\A|[,;\t\r\n])[ "]*)'
"""Where a cell may begin: spreadsheets take commas, semicolons or tabs for the separator."""

_FORMULA = "(?='*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"
"""What a spreadsheet takes for the beginning of a formula, even if it is guarded already."""

_TO_GUARD = re.compile(_CELL + _FORMULA)
_GUARDED = re.compile(f"{_CELL}'{_FORMULA}")

_LAYOUT = re.compile("[\t\n\r]")
"""Controls that a note may have; a path is looked at for them once more."""

_WORDS = {"": None, "yes": True, "no": False, "true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True)
class Table:
    """A model whose rows travel as CSV."""

    model: type[Any]
    """The model: ``UrlOverride`` or ``ExtraUrl``."""
    found_by: tuple[str, ...]
    """The columns that tell which row it is."""
    values: tuple[str, ...]
    """The other columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order in which they are written."""
        return (*self.found_by, *self.values)


OVERRIDES = Table(
    UrlOverride,
    ("site", "path", "model", "object_id"),
    ("include", "priority", "changefreq", "lastmod", "note"),
)
EXTRA_URLS = Table(ExtraUrl, ("site", "path"), ("lastmod", "changefreq", "priority", "note"))


def text_of(value: Any) -> str:
    """Return a value as the text of a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)


def guarded(text: str) -> str:
    """Return a text in which no spreadsheet finds a formula, wherever it lets a cell begin."""
    return _TO_GUARD.sub(r"\1'", text)


def unguarded(text: str) -> str:
    """Return what was guarded."""
    return _GUARDED.sub(r"\1", text)


class RowReader:
    """Makes rows of a model out of cells, as far as that can be told without the database."""

    def __init__(self, table: Table, sites: Mapping[str, Site]) -> None:
        self._table = table
        self._sites = sites
        self._scope_of = cache(Site.scope)
        self._now = timezone.now()
        self._readers: dict[str, Callable[[str], Any]] = {
            "include": self._include,
            "lastmod": self._lastmod,
        }

    def row(self, columns: Sequence[str], cells: Sequence[str]) -> Any:
        """Return the row; raises RefusedValue for a wrong cell."""
        if len(cells) != len(columns):
            text = _("It has %(cells)s cells, the first line has %(columns)s.")
            raise refused(text % {"cells": len(cells), "columns": len(columns)})
        texts = {name: unguarded(cell) for name, cell in zip(columns, cells, strict=True)}
        for name, text in texts.items():
            if name != "note":
                texts[name] = text.strip()
            if UNSAFE.search(_LAYOUT.sub("", text)):
                raise refused(_("%(column)s: it has a control character.") % {"column": name})
        row = self._table.model()
        self._find(row, texts)
        for name in self._table.values:
            if name in texts:
                setattr(row, name, self._value(name, texts[name]))
        row.prepare()
        return row

    def _find(self, row: Any, texts: Mapping[str, str]) -> None:
        """Set what a row is found by."""
        key = texts.get("site") or (next(iter(self._sites)) if len(self._sites) == 1 else "")
        site = self._sites.get(key)
        if site is None:
            text = _("site: there is no site %(site)s.")
            raise refused(text % {"site": repr(key[:50])})
        row.site = key
        label, object_id = texts.get("model", ""), texts.get("object_id", "")
        if label or object_id:
            if texts.get("path"):
                raise refused(_("It has both a path and an object."))
            row.model, row.object_id = _identity(label, object_id)
            return
        try:
            row.path = pasted_path(site, texts.get("path", ""), self._scope_of(site))
        except RefusedValue as refusal:
            raise refused(f"path: {refusal}") from refusal

    def _value(self, name: str, text: str) -> Any:
        if name in self._readers:
            value: Any = self._readers[name](text)
        else:
            value = text
        try:
            field = self._table.model._meta.get_field(name)
            return field.clean(None if value == "" and field.null else value, None)
        except ValidationError as error:
            raise refused(f"{name}: {' '.join(error.messages)}") from error

    def _include(self, text: str) -> bool | None:
        try:
            return _WORDS[text.lower()]
        except KeyError as error:
            raise refused(_("include: write yes, no or nothing.")) from error

    def _lastmod(self, text: str) -> dt.datetime | None:
        if not text:
            return None
        try:
            value = self._table.model._meta.get_field("lastmod").to_python(text)
            if django_settings.USE_TZ and timezone.is_naive(value):
                value = timezone.make_aware(value)
            elif not django_settings.USE_TZ and timezone.is_aware(value):
                value = timezone.make_naive(value)
        except (ValidationError, OverflowError) as error:
            raise refused(_("lastmod: write a date, or a date and time, by ISO 8601.")) from error
        if value > self._now:
            raise refused(_("lastmod: it lies in the future."))
        return value  # type: ignore[no-any-return]


def _identity(label: str, text: str) -> tuple[str, str]:
    """Return what names an object: its key as the database would spell it."""
    model = named_model(label.lower())
    if model is None:
        raise refused(
            _("model: no object is named by %(label)s; a child or proxy has its parent's name.")
            % {"label": repr(label[:50])}
        )
    try:
        key = model._meta.pk.to_python(text) if text else None
    except (ValidationError, OverflowError):
        key = None
    if key is None or len(str(key)) > 255:
        raise refused(_("object_id: there is no such object."))
    return label.lower(), str(key)


def refused(message: str) -> RefusedValue:
    """Return the refusal of a file, or of a line of it."""
    return RefusedValue("invalid-csv", message)
