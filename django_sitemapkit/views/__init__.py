"""The views: the index and the pages, from published files or streamed from the database.

They answer GET and HEAD, set no cookie and depend on none.
"""

from collections.abc import Callable
from functools import wraps
from itertools import islice
from typing import Any

from django.conf import settings as django_settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, OperationalError, connections
from django.db.transaction import non_atomic_requests
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponsePermanentRedirect,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template import Template
from django.template.context import make_context
from django.template.loader import get_template
from django.views.decorators.http import require_safe

from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import FileLost, NotPlanned, NotPublished
from django_sitemapkit.models.migrated import schema_error_message
from django_sitemapkit.printable import logger
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering.templates import rendered_blocks
from django_sitemapkit.sites import site_for
from django_sitemapkit.views.live import empty_news_page, live_index, live_page
from django_sitemapkit.views.published import published_index, published_page
from django_sitemapkit.views.responses import Responder, StreamedResponse, chained_blocks
from django_sitemapkit.words import english_of

__all__ = ["index", "old_address", "page", "public_view", "robots", "stream_template"]


RETRY_AFTER = 30
"""Seconds after which a reader may try again while nothing can be served."""

_View = Callable[..., HttpResponseBase]


def public_view(view: _View) -> _View:
    """Wrap a view of a sitemap: GET and HEAD only, no login, Cache-Control, 503 or 404 on errors.

    It answers 404 if the sitemap is not published, and 503 with Retry-After while it cannot be
    served: a file is lost, a plan is not made yet, the settings or the database fail.
    """

    @require_safe
    @wraps(view)
    def answer(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        """Answer by the view, or with 404 or 503 if it raises an expected error."""
        try:
            response = view(request, **arguments)
        except FileLost:
            return _retry_later_response()
        except NotPublished as error:
            raise Http404(str(error)) from error
        except NotPlanned as error:
            logger.warning("%s", error)
            return _retry_later_response()
        except ImproperlyConfigured as error:
            logger.error("%s", error)  # noqa: TRY400  the text says it all
            return _retry_later_response(str(error) if django_settings.DEBUG else "")
        except (DatabaseError, InterfaceError) as error:
            if not (reason := _log_if_temporary(error)):
                raise
            return _retry_later_response(reason if django_settings.DEBUG else "")
        if settings.CACHE_CONTROL:
            response.headers["Cache-Control"] = settings.CACHE_CONTROL
        return response

    # The plan may be stored in any of the databases, and must be seen by others at once.
    for alias in connections:
        answer = non_atomic_requests(using=alias)(answer)
    return login_not_required(answer)


def _log_if_temporary(error: Exception) -> str:
    """Log a database error that is temporary, or that ``migrate`` ends; return its text.

    Return "" for any other error, which is not logged.
    """
    reason = schema_error_message(error)
    if reason:
        logger.error("%s", reason)
    elif isinstance(error, (OperationalError, InterfaceError)):
        reason = f"The database cannot be read: {error}"
        logger.error("%s", reason, exc_info=error)
    return reason


def _retry_later_response(reason: str = "") -> HttpResponse:
    """Return a response 503 with Retry-After; its text contains ``reason``."""
    return HttpResponse(
        f"This sitemap cannot be served right now.\n{reason}",
        status=503,
        content_type="text/plain; charset=utf-8",
        headers={"Retry-After": str(RETRY_AFTER), "X-Robots-Tag": "noindex"},
    )


@public_view
def index(request: HttpRequest) -> HttpResponseBase:
    """Answer with the index of the request's site; 404 if it is empty."""
    site, responder = site_for(request), Responder(request)
    response = published_index(site, responder) if settings.SERVE_FROM != "live" else None
    if response := response or live_index(site, responder):
        return response
    raise Http404(f"There is no sitemap to list in it: {english_of(registry.why_no_url)}.")


@public_view
def page(request: HttpRequest, section: str, number: str, form: str) -> HttpResponseBase:
    """Answer with one page of a section, as XML or text.

    404 if there is no such page or it lists no URL, except that page 1 of a news section is then an
    empty ``urlset``. 503 if its published file is lost and its rows are gone. ``form`` is the
    ending of the file: ``xml``, ``xml.gz``, ``txt`` or ``txt.gz``.
    """
    site, responder = site_for(request), Responder(request, form)
    wanted = site, section, int(number), responder
    reason = NotPublished("This sitemap does not exist, or is currently empty.")
    response = None
    try:
        response = published_page(*wanted) if settings.SERVE_FROM != "live" else None
        response = response or live_page(*wanted)
    except NotPublished as error:
        reason = error
    if response := response or empty_news_page(*wanted):
        return response
    raise reason


@public_view
def robots(request: HttpRequest) -> HttpResponse:
    """Answer with a robots.txt that allows all and names the sitemaps, for projects without one.

    No URLconf includes it: add ``path("robots.txt", views.robots)``. Override the template
    ``sitemapkit/robots.txt`` to say more.
    """
    return render(request, "sitemapkit/robots.txt", content_type="text/plain; charset=utf-8")


@public_view
def old_address(
    request: HttpRequest, section: str | None = None, **other: object
) -> HttpResponsePermanentRedirect:
    """Redirect an address of an earlier sitemap to the index of the request's site, permanently.

    No URLconf includes it: add ``path("sitemap-<section>.xml", views.old_address)`` after the
    package's URLs. The answer is 404 if the pattern has a ``section`` that the site does not have;
    the query string, such as ``?p=2``, and other arguments of the pattern are ignored.
    """
    site = site_for(request)
    if section is not None and registry.get(site, section) is None:
        raise Http404(f"There is no section {section!r}.")
    return HttpResponsePermanentRedirect(site.address("index"))


def stream_template(
    request: HttpRequest,
    template_name: str,
    context: dict[str, Any] | None = None,
    *,
    content_type: str = "application/xml",
) -> StreamingHttpResponse:
    """Return a response that streams one of the project's own templates.

    The output of ``{% sitemap_pages %}`` and ``{% sitemap_entries %}`` at the top level of the
    template is sent as it is rendered, in constant memory. Raises TemplateDoesNotExist,
    TemplateSyntaxError if the template extends another, and TypeError if it is not of Django's own
    engine.
    """
    template = getattr(get_template(template_name), "template", None)
    if not isinstance(template, Template):
        raise TypeError(f"{template_name} is not a template of Django's own engine.")
    values = make_context(context, request, autoescape=template.engine.autoescape)
    rest = rendered_blocks(template, values)
    blocks = chained_blocks(list(islice(rest, 1)), rest)
    return StreamedResponse(request, blocks, content_type=content_type)
