"""Crawls: web pages are found by following links, and compared with what the sitemap lists.

``crawl(site)`` crawls a site. It records each URL that it meets as a ``CrawledUrl``, which is also
the queue of URLs to fetch, and what is wrong as findings of an ``AuditRun``.
"""

from django_sitemapkit.audit.crawl.crawling import crawl

__all__ = ["crawl"]
