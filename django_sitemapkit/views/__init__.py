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
from django_sitemapkit.models.migrated import schema_fault
from django_sitemapkit.printable import logger
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering.templates import template_blocks
from django_sitemapkit.sites import site_for
from django_sitemapkit.views.live import empty_news, live_index, live_page
from django_sitemapkit.views.published import published_index, published_page
from django_sitemapkit.views.responses import Responder, StreamedResponse, chained_blocks
from django_sitemapkit.words import english_of

__all__ = ["index", "old_address", "page", "public_view", "robots", "stream_template"]


RETRY_AFTER = 30
"""Seconds after which a reader is asked to come back while nothing can be served."""

_View = Callable[..., HttpResponseBase]


def public_view(view: _View) -> _View:
    """Give a view what all have in common: methods, Cache-Control, and 503 when it must wait."""

    @require_safe
    @wraps(view)
    def answer(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        try:
            response = view(request, **arguments)
        except FileLost:
            return _retry_later()
        except NotPublished as error:
            raise Http404(str(error)) from error
        except NotPlanned as error:
            logger.warning("%s", error)
            return _retry_later()
        except ImproperlyConfigured as error:
            logger.error("%s", error)  # noqa: TRY400  the text says it all
            return _retry_later(str(error) if django_settings.DEBUG else "")
        except (DatabaseError, InterfaceError) as error:
            if not (reason := _temporary_failure(error)):
                raise
            return _retry_later(reason if django_settings.DEBUG else "")
        if settings.CACHE_CONTROL:
            response.headers["Cache-Control"] = settings.CACHE_CONTROL
        return response

    # The plan may be stored in any of the databases, and must be seen by others at once.
    for alias in connections:
        answer = non_atomic_requests(using=alias)(answer)
    return login_not_required(answer)


def _temporary_failure(error: Exception) -> str:
    """Log a database error that time or ``migrate`` ends and return its text; "" for others."""
    reason = schema_fault(error)
    if reason:
        logger.error("%s", reason)
    elif isinstance(error, (OperationalError, InterfaceError)):
        reason = f"The database cannot be read: {error}"
        logger.error("%s", reason, exc_info=error)
    return reason


def _retry_later(reason: str = "") -> HttpResponse:
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
    response = None
    if settings.SERVE_FROM != "live":
        response = published_index(site, responder)
    response = response or live_index(site, responder)
    if response is None:
        why = english_of(registry.why_no_url)
        raise Http404(f"There is no sitemap to list in it: {why}.")
    return response


@public_view
def page(request: HttpRequest, section: str, number: str, form: str) -> HttpResponseBase:
    """Answer with one page of a section, as XML or text.

    404 if there is none with a URL, 503 if its published file is lost and has no rows any more.
    """
    site, responder = site_for(request), Responder(request, form)
    place = site, section, int(number), responder
    reason = NotPublished("This sitemap does not exist, or is currently empty.")
    response = None
    try:
        if settings.SERVE_FROM != "live":
            response = published_page(*place)
        response = response or live_page(*place)
    except NotPublished as error:
        reason = error
    response = response or empty_news(*place)
    if response is None:
        raise reason
    return response


@public_view
def robots(request: HttpRequest) -> HttpResponse:
    """Answer with a robots.txt that allows all and names the sitemaps, for projects without one.

    It is included nowhere: ``path("robots.txt", views.robots)``. Override the template
    ``sitemapkit/robots.txt`` to say more.
    """
    content_type = "text/plain; charset=utf-8"
    return render(request, "sitemapkit/robots.txt", content_type=content_type)


@public_view
def old_address(
    request: HttpRequest, section: str | None = None, **other: object
) -> HttpResponsePermanentRedirect:
    """Redirect an address of an earlier sitemap to the index of the request's site, permanently.

    It is included nowhere: ``path("sitemap-<section>.xml", views.old_address)``, after the
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

    ``{% sitemap_pages %}`` and ``{% sitemap_entries %}`` at the top of the template hand on their
    output as it comes, in constant memory. Raises TemplateDoesNotExist, TemplateSyntaxError where
    the template extends another, and TypeError where it is not of Django's own engine.
    """
    template = getattr(get_template(template_name), "template", None)
    if not isinstance(template, Template):
        raise TypeError(f"{template_name} is not a template of Django's own engine.")
    values = make_context(context, request, autoescape=template.engine.autoescape)
    rest = template_blocks(template, values)
    blocks = chained_blocks(list(islice(rest, 1)), rest)
    return StreamedResponse(request, blocks, content_type=content_type)
