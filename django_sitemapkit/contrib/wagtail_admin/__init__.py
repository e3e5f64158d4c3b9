"""Sitemaps in the admin of Wagtail: a page's own entry, and a report.

::

    # settings.py
    INSTALLED_APPS = [..., "django_sitemapkit.contrib.wagtail_admin"]
"""
