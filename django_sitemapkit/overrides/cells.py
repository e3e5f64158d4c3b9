"""The cells of CSV files: conversion between values of settings and text."""

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import model_by_label
from django_sitemapkit.models import ExtraUrl, UrlOverride
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.protocol.locations import UNSAFE
from django_sitemapkit.sites import SitemapSite

_CELL = '((?:\\A|[,;\t\r\n])[ "]*)'
"""Where a cell may start: spreadsheets accept commas, semicolons or tabs as separators."""

_FORMULA = "(?='*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"
"""What a spreadsheet may read as the start of a formula, possibly escaped already."""

_TO_GUARD = re.compile(_CELL + _FORMULA)
_GUARDED = re.compile(f"{_CELL}'{_FORMULA}")

_LAYOUT = re.compile("[\t\n\r]")
"""Control characters that a note may contain; a path is checked for them separately."""

_WORDS = {"": None, "yes": True, "no": False, "true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A model whose rows can be exported to and imported from CSV, and its columns."""

    model: type[Any]
    """The model: ``UrlOverride`` or ``ExtraUrl``."""
    identity: tuple[str, ...]
    """The columns that identify a row."""
    values: tuple[str, ...]
    """The other columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns: those that identify a row, then the others; files have this order."""
        return (*self.identity, *self.values)


OVERRIDE_TABLE = CsvTable(
    UrlOverride,
    ("site", "path", "model", "object_id"),
    ("include", "priority", "changefreq", "lastmod", "note"),
)
EXTRA_URL_TABLE = CsvTable(
    ExtraUrl, ("site", "path"), ("title", "lastmod", "changefreq", "priority", "note")
)


def cell_text(value: Any) -> str:
    """Return a value of a setting as the text of a cell: "" for None, "yes" for True."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case dt.datetime():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
    return str(value)


def escape_formulas(text: str) -> str:
    """Return a text with an apostrophe before whatever a spreadsheet could read as a formula.

    That is at its start, and after each separator in it: a spreadsheet may take it for several
    cells.
    """
    return _TO_GUARD.sub(r"\1'", text)


def unescape_formulas(text: str) -> str:
    """Return a text without the apostrophes that ``escape_formulas`` adds."""
    return _GUARDED.sub(r"\1", text)


class RowReader:
    """Makes unsaved model instances of the cells of a file, and validates them without queries."""

    def __init__(self, table: CsvTable, sites: Mapping[str, SitemapSite]) -> None:
        """Read rows of a table for these sites, which are given by key."""
        self._table = table
        self._sites = sites
        self._readers: dict[str, Callable[[str], Any]] = {
            "include": self._parse_include,
            "lastmod": self._parse_lastmod,
        }

    def row(self, columns: Sequence[str], cells: Sequence[str]) -> Any:
        """Return an unsaved instance made of a row's cells; raises InvalidValue for a wrong one."""
        if len(cells) != len(columns):
            text = _("The number of cells (%(cells)s) differs from that of columns (%(columns)s).")
            raise csv_error(text % {"cells": len(cells), "columns": len(columns)})
        texts = {name: unescape_formulas(cell) for name, cell in zip(columns, cells, strict=True)}
        for name, text in texts.items():
            if name != "note":
                texts[name] = text.strip()
            if UNSAFE.search(_LAYOUT.sub("", text)):
                raise csv_error(_("%(column)s: contains a control character.") % {"column": name})
        row = self._table.model()
        self._set_identity(row, texts)
        for name in self._table.values:
            if name in texts:
                setattr(row, name, self._parse_value(name, texts[name]))
        row.normalise()
        return row

    def _set_identity(self, row: Any, texts: Mapping[str, str]) -> None:
        """Set the site of a row, and its path or object; raises InvalidValue if they are invalid.

        The site may be missing if there is only one.
        """
        key = texts.get("site") or (next(iter(self._sites)) if len(self._sites) == 1 else "")
        site = self._sites.get(key)
        if site is None:
            raise csv_error(_("site: %(site)s does not exist.") % {"site": repr(key[:50])})
        row.site = key
        label, object_id = texts.get("model", ""), texts.get("object_id", "")
        if label or object_id:
            if texts.get("path"):
                raise csv_error(_("The line has both a path and an object."))
            row.model, row.object_id = _parse_object(label, object_id)
            return
        try:
            row.path = pasted_path(site, texts.get("path", ""))
        except InvalidValue as error:
            raise csv_error(f"path: {error}") from error

    def _parse_value(self, name: str, text: str) -> Any:
        """Return a cell's text as a value of the field ``name``; raises InvalidValue."""
        value: Any = self._readers.get(name, str)(text)
        try:
            field = self._table.model._meta.get_field(name)
            return field.clean(None if value == "" and field.null else value, None)
        except ValidationError as error:
            raise csv_error(f"{name}: {' '.join(error.messages)}") from error

    def _parse_include(self, text: str) -> bool | None:
        """Return True for "yes", False for "no" and None for "", or raise InvalidValue."""
        if text.lower() not in _WORDS:
            raise csv_error(_("include: enter yes, no or nothing."))
        return _WORDS[text.lower()]

    def _parse_lastmod(self, text: str) -> dt.datetime | None:
        """Return a date and time, or None for ""; raises InvalidValue if it is in the future."""
        if not text:
            return None
        try:
            value = self._table.model._meta.get_field("lastmod").to_python(text)
            if django_settings.USE_TZ and timezone.is_naive(value):
                value = timezone.make_aware(value)
            elif not django_settings.USE_TZ and timezone.is_aware(value):
                value = timezone.make_naive(value)
        except (ValidationError, OverflowError) as error:
            raise csv_error(
                _("lastmod: enter a date, or a date and time, in ISO 8601 format.")
            ) from error
        if value > timezone.now():
            raise csv_error(_("lastmod: this date is in the future."))
        return value  # type: ignore[no-any-return]


def _parse_object(label: str, text: str) -> tuple[str, str]:
    """Return the model label and the key of the object that two cells name.

    The key is the text that the database has for it: "7" for "007". Raises InvalidValue if there is
    no such model, or no object can have that key.
    """
    model = model_by_label(label.lower())
    if model is None:
        raise csv_error(
            _("model: %(label)s is not a model. For a child or proxy, use its parent model.")
            % {"label": repr(label[:50])}
        )
    try:
        key = model._meta.pk.to_python(text) if text else None
    except (ValidationError, OverflowError):
        key = None
    if key is None or len(str(key)) > 255:
        raise csv_error(_("object_id: this object does not exist."))
    return label.lower(), str(key)


def csv_error(message: str) -> InvalidValue:
    """Return an InvalidValue, to be raised, for a mistake in a file or in one line of it."""
    return InvalidValue("invalid-csv", message)
