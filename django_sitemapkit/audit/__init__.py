"""Audit: validates sitemaps of any origin as a search engine reads them.

Add ``"django_sitemapkit.audit"`` to INSTALLED_APPS for the command ``validate_sitemaps``. In
Python, ``audit.validation`` has ``validate_published`` and ``validate_source``; ``audit.reader``
has ``validate`` and ``SitemapReader``, which work without Django.
"""
