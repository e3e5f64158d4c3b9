"""What is known of a URL: which section lists it, with which values, or why not.

And of a section: how each of its options is read, and why a method is called for each object.
"""

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
    readings_of,
)
from django_sitemapkit.inspection.urls import (
    UrlInspection,
    inspect_listings,
    inspect_object,
    inspect_path,
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
    "label_or_none",
    "listed_locations_of",
    "object_by_paging_key",
    "paging_key",
    "readings_of",
    "similar_path",
    "url_match",
]
