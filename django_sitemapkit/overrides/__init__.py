"""What editors set: read, written and compared as CSV, and the sections in which it is in force."""

from django_sitemapkit.overrides.cells import EXTRA_URL_TABLE, OVERRIDE_TABLE, CsvTable
from django_sitemapkit.overrides.in_force import (
    OverrideEffects,
    Overrides,
    disable_methods_as_columns,
    disabled_sections_of,
    overrides_of,
    require_sections,
    section_of,
    sections_of,
    with_overrides,
)
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.overrides.patterns import Pattern, first_matching_patterns
from django_sitemapkit.overrides.transfer import (
    MAX_CSV_BYTES,
    MAX_CSV_LINES,
    Comparison,
    LineOutcome,
    compare_file,
    compare_rows,
    csv_lines,
    exported_lines,
)

__all__ = [
    "EXTRA_URL_TABLE",
    "MAX_CSV_BYTES",
    "MAX_CSV_LINES",
    "OVERRIDE_TABLE",
    "Comparison",
    "CsvTable",
    "LineOutcome",
    "OverrideEffects",
    "Overrides",
    "Pattern",
    "compare_file",
    "compare_rows",
    "csv_lines",
    "disable_methods_as_columns",
    "disabled_sections_of",
    "exported_lines",
    "first_matching_patterns",
    "overrides_of",
    "pasted_path",
    "require_sections",
    "section_of",
    "sections_of",
    "with_overrides",
]
