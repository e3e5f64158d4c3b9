"""The page "Health": what builds, audits, crawls and submissions found, and what to do about it."""

from django_sitemapkit.admin.health import builds

__all__ = ["builds"]
