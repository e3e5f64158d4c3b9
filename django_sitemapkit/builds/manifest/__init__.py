"""What a build consists of: its rows, their stored files, and what became of them."""

from django_sitemapkit.builds.manifest.freeze import declaration_of, freeze
from django_sitemapkit.builds.manifest.reader import (
    Reading,
    check_file,
    damage_of,
    decompressed,
    holds_location,
    location_and_values,
    locations_of,
    stored_entries_of,
    unescaped,
)
from django_sitemapkit.builds.manifest.results import (
    BuildResult,
    FileResult,
    log_problems,
    problem_kinds,
    problem_lines,
)
from django_sitemapkit.builds.manifest.rows import (
    KeptRows,
    PageName,
    copy_of,
    covers,
    index_order,
    keys_of,
    page_entries_of,
    page_name_of,
    page_rows_of,
    pending_copy_of,
    take_over,
)
from django_sitemapkit.builds.manifest.site_builds import SiteBuilds
from django_sitemapkit.builds.manifest.stored import StoredFiles, reopen_lost

__all__ = [
    "BuildResult",
    "FileResult",
    "KeptRows",
    "PageName",
    "Reading",
    "SiteBuilds",
    "StoredFiles",
    "check_file",
    "copy_of",
    "covers",
    "damage_of",
    "declaration_of",
    "decompressed",
    "freeze",
    "holds_location",
    "index_order",
    "keys_of",
    "location_and_values",
    "locations_of",
    "log_problems",
    "page_entries_of",
    "page_name_of",
    "page_rows_of",
    "pending_copy_of",
    "problem_kinds",
    "problem_lines",
    "reopen_lost",
    "stored_entries_of",
    "take_over",
    "unescaped",
]
