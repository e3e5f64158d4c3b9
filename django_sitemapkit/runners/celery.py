"""Pages made by workers of Celery; needs the extra ``celery``.

The message of a helper is acknowledged when it begins: one that dies is replaced by the process
that builds. Nothing is stored of results.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from celery import current_app, shared_task
from django.core.checks import CheckMessage, Warning  # noqa: A004  Django's name
from django.core.management import call_command

from django_sitemapkit.runners import helper, queues
from django_sitemapkit.runners.queues import QueueRunner, request_arguments
from django_sitemapkit.sites import SitemapSite


@shared_task(name="django_sitemapkit.help_build", acks_late=False, ignore_result=True)
def help_build(*arguments: Any) -> None:
    """Make pages of a build for up to a minute: the task that ``enqueue_helper()`` sends.

    The arguments are those of ``helper.help_build()``; no other task is sent afterwards.
    """
    helper.help_build(*arguments)


@shared_task(name="django_sitemapkit.process_requests", ignore_result=True)
def process_requests(
    site: str, kinds: Collection[str], schemas: Mapping[str, str] | None = None
) -> None:
    """Process the admin's open requests of the site with the key ``site``."""
    queues.process_requests(site, kinds, schemas)


@shared_task(name="django_sitemapkit.build_sitemaps", ignore_result=True)
def build_sitemaps() -> None:
    """Build all sites, adopting the pages of killed builds; for Celery beat.

    This worker builds them, with the runner of SITEMAPKIT_RUNNER, and skips sites that are being
    built. Does what the command ``build_sitemaps --skip-if-running`` does, and raises what that
    raises.
    """
    call_command("build_sitemaps", skip_if_running=True, verbosity=0)


class CeleryRunner(QueueRunner):
    """Has pages made by workers of Celery; the runner "celery".

    ::

        SITEMAPKIT_RUNNER = {
            "BACKEND": "celery",
            "OPTIONS": {"queue": "sitemaps", "priority": 3, "in_flight": 32},
        }

    ``queue`` and ``priority`` are those of Celery's ``apply_async()``; by default, Celery's
    settings decide. The other options are those of ``QueueRunner``.
    """

    def __init__(
        self, *, queue: str | None = None, priority: int | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        sending = {"queue": queue, "priority": priority}
        self._sending = {name: value for name, value in sending.items() if value is not None}

    def enqueue_helper(self, *arguments: Any) -> None:
        """Send the message that has a worker call ``help_build(*arguments)``."""
        help_build.apply_async(arguments, **self._sending)

    @property
    def supports_requests(self) -> bool:
        """Whether workers process requests: not with ``task_always_eager``."""
        return not current_app.conf.task_always_eager

    def enqueue_requests(
        self, site: SitemapSite, kinds: Collection[str], *, delay: float = 0
    ) -> bool:
        """Send a message that has a worker process a site's requests of these kinds; return True.

        Returns False, and sends none, if this process would run the task at once.
        """
        if not self.supports_requests:
            return False
        process_requests.apply_async(
            request_arguments(site, kinds), countdown=delay or None, **self._sending
        )
        return True

    def check(self) -> Iterable[CheckMessage]:
        """Report that this process has no Celery app, so that messages would go nowhere."""
        if current_app.main == "default" and not current_app.conf.broker_url:
            yield Warning(
                'SITEMAPKIT_RUNNER is "celery", but no Celery app is configured in this process:'
                " pages would be sent to a broker on localhost.",
                hint="Import your Celery app in the __init__.py of the project, as Celery's"
                " documentation for Django shows.",
                id="sitemapkit.W046",
            )
