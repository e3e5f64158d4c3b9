"""Advice: what a section could declare to be read faster, from its rows and query plans.

It samples rows, checks each finding on more of them, says what it saw, and writes nothing. Add
``"django_sitemapkit.advice"`` to INSTALLED_APPS for the command ``advise_sitemaps``; in Python,
call ``django_sitemapkit.advice.advisor.advise``.
"""
