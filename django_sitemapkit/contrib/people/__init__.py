"""A site map for people: HTML pages that link to everything the sitemaps list.

Add ``"django_sitemapkit.contrib.people"`` to INSTALLED_APPS and include
``django_sitemapkit.contrib.people.urls``.
"""
