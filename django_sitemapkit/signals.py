"""Signals that a project may listen to: what happens to builds, and what is published.

All are sent by the process that does the work, while it has the lease of the site: a
receiver that takes long delays the build, and no heartbeat is sent meanwhile. A receiver that
raises is logged and stops nothing::

    from django.core.mail import mail_admins
    from django.dispatch import receiver
    from django_sitemapkit.signals import build_ended


    @receiver(build_ended)
    def tell_admins(site, result, **kwargs):
        if result.status in ("held", "failed"):
            mail_admins(f"Sitemaps of {site}: {result.status}", result.reason)
"""

from django.dispatch import Signal

build_started = Signal()
"""Sent when a build begins to render its pages.

A build sends only ``build_ended`` if nothing has changed, as far as that is known without a
rendering. So does one that fails before, for example while the pages are planned.

``sender`` is ``django_sitemapkit.models.Build``. ``site`` is the site's key, ``build`` the id of
the build, ``pages`` how many pages are to be rendered, and ``adopted`` how many it has taken over
from builds that ended early.
"""

page_built = Signal()
"""Sent when a page was rendered, and its file is stored or found to be the same as before.

It is not sent for a page whose fingerprint is unchanged, nor for an index. With several processes,
the one that rendered the page sends it.

``sender`` is ``django_sitemapkit.models.Build``. ``site`` is the site's key, ``build`` the id of
the build, and ``file`` a ``django_sitemapkit.builds.FileResult``.
"""

build_ended = Signal()
"""Sent when a build ended, however it did: once for each build, after the export and pruning.

``sender`` is ``django_sitemapkit.models.Build``. ``site`` is the site's key, ``build`` the id of
the build; None if it failed before it had one. ``result`` is a
``django_sitemapkit.builds.BuildResult``, with the problems in its ``files``; its ``build`` is
another one if the build equals one that is held already. Its ``status`` is

- ``"published"`` or ``"unchanged"``;
- ``"held"`` if the build is held for review, and ``reason`` says why;
- ``"failed"`` if ``build()`` raises, and ``reason`` says why: what was published still is, and the
  next run adopts its pages;
- ``"abandoned"`` if someone cancelled it, another process has taken it over, or another build
  follows at once, and ``reason`` says why: a request split a page, or a process was killed and
  another build adopts its pages, or declarations or settings have changed since.

If the process is killed, nothing is sent until the next run gives up its build.
"""

sitemaps_published = Signal()
"""Sent when a site serves another build than before, after the export, by the process that built.

``sender`` is ``django_sitemapkit.models.Publication``. ``site`` is the site's key, ``build`` the id
of the build, and ``addresses`` a list of the absolute URLs of all sitemaps that are new, changed or
gone, the index among them: what a CDN should forget. If the process is killed in between, the next
run sends it; so it may come twice.
"""
