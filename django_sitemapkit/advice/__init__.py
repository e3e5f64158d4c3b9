"""Advice: what a section could declare to be read faster, by its rows and the database's plans.

Nothing is guessed in silence, and nothing is written: rows are sampled, each finding is checked
on more of them, and what was seen is said beside what is advised.
"""

from django_sitemapkit.advice.advisor import advise, advise_section
from django_sitemapkit.advice.results import Finding, SectionAdvice

__all__ = ["Finding", "SectionAdvice", "advise", "advise_section"]
