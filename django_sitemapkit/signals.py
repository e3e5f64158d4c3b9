"""Signals that a project may listen to."""

from django.dispatch import Signal

sitemaps_published = Signal()
"""Sent when a site serves another build than before, after the export, by the process that built.

``sender`` is ``django_sitemapkit.models.Publication``. ``site`` is the site's key, ``build`` the id
of the build, and ``addresses`` a list of the absolute URLs of all sitemaps that are new, changed or
gone, the index among them: what a CDN should forget. A receiver that raises is logged and stops
nothing. Where the process is killed in between, the next run sends it; so it may come twice.
"""
