"""Inspection of one URL: which section lists it, with which values, and why not if it is not."""

from django_sitemapkit.inspection.candidates import label_or_none, paging_key, url_match
from django_sitemapkit.inspection.urls import (
    UrlInspection,
    inspect_all,
    inspect_object,
    inspect_path,
    similar_path,
)

__all__ = [
    "UrlInspection",
    "inspect_all",
    "inspect_object",
    "inspect_path",
    "label_or_none",
    "paging_key",
    "similar_path",
    "url_match",
]
