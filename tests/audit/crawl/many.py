"""A site whose pages all link to each other and to one that is missing."""

from django.urls import path

from tests.audit.faulty import page
from tests.urls import urlpatterns as usual

LINKING = 30
"""Pages that link to the one that is missing."""

PAGES = 300


def numbered(request, number):
    """Answer with a page that links to the next ten, and to one that is missing."""
    targets = [f"/page/{(10 * number + further) % PAGES}/" for further in range(1, 11)]
    links = "".join(f'<a href="{target}">Page</a>' for target in targets)
    if number < LINKING:
        links += f'<a href="/missing/">From {number}</a> <a href="/missing/">and again</a>'
    return page(body=links)(request)


def home(request):
    """Answer with a page that links to the first pages."""
    return page(body="".join(f'<a href="/page/{number}/">P</a>' for number in range(LINKING)))(
        request
    )


urlpatterns = [path("", home), path("page/<int:number>/", numbered), *usual]
