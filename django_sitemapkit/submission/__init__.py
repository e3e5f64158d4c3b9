"""Submission: tells search engines what a site has published, by IndexNow and Search Console.

Add ``django_sitemapkit.submission`` to INSTALLED_APPS, set ``SITEMAPKIT_SUBMIT`` and run
``manage.py submit_sitemaps`` after each build.
"""
