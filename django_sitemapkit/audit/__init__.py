"""Audit: validates sitemaps of any origin, audits the pages that they list, and crawls the site.

Add ``"django_sitemapkit.audit"`` to INSTALLED_APPS for the commands ``validate_sitemaps``,
``audit_sitemaps`` and ``crawl_sitemaps``, and for ``diff_sitemaps --against``. In Python,
``audit.validation`` has ``validate_published`` and ``validate_source``, ``audit.auditing`` has
``audit``, ``audit.crawl`` has ``crawl``, ``audit.moving`` has ``SitemapComparison``;
``audit.reader`` has ``validate`` and ``SitemapReader``, which work without Django.
"""
