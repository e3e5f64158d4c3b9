"""Advice: what a section could declare to be read faster, by its rows and the database's plans.

Nothing is guessed in silence, and nothing is written: rows are sampled, each finding is checked
on more of them, and what was seen is said beside what is advised. Add
``"django_sitemapkit.advice"`` to INSTALLED_APPS for the command ``advise_sitemaps``; from Python
call ``django_sitemapkit.advice.advisor.advise``.
"""
