"""What is known of a URL: which section lists it, with which values, or why not.

And of a section: how each of its options is read, and why a method is called for each object.
Pages try to read all that, and show why if it fails.
"""

from django_sitemapkit.inspection.attempts import (
    reason_of,
    savepoint_if_atomic,
    try_each,
    try_read,
)
from django_sitemapkit.inspection.candidates import (
    all_rows,
    label_or_none,
    listed_locations_of,
    object_by_paging_key,
    paging_key,
    url_match,
)
from django_sitemapkit.inspection.readings import (
    OptionReading,
    ReadAs,
    SectionReading,
    reading_reports_of,
)
from django_sitemapkit.inspection.urls import (
    UrlInspection,
    inspect_listings,
    inspect_object,
    inspect_path,
    inspections_of,
    similar_path,
)

__all__ = [
    "OptionReading",
    "ReadAs",
    "SectionReading",
    "UrlInspection",
    "all_rows",
    "inspect_listings",
    "inspect_object",
    "inspect_path",
    "inspections_of",
    "label_or_none",
    "listed_locations_of",
    "object_by_paging_key",
    "paging_key",
    "reading_reports_of",
    "reason_of",
    "savepoint_if_atomic",
    "similar_path",
    "try_each",
    "try_read",
    "url_match",
]
