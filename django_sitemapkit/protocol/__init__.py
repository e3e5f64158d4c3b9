"""The sitemap protocol 0.9 in plain Python: usable without Django being configured.

``limits`` has the numbers, ``locations`` the grammar of URLs, ``dates`` and ``values`` the optional
tags, ``extensions`` images, videos, news and hreflang. ``writers`` and ``texts`` write documents;
``django_sitemapkit.audit.reader`` reads and checks them by the same rules.
"""
