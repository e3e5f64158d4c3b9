"""What the tests of the site map for people share: sections with titles, and reading its pages."""

import html
import re

from django.template import Context, Template

from django_sitemapkit import Route, Section
from django_sitemapkit.models import Page, Plan
from django_sitemapkit.reading import reader_of
from tests.factories import SITE
from tests.testapp.models import Article, Token, Word
from tests.testapp.serving import Readings

FIRST_PAGE = "/sitemap/"
READINGS = "/sitemap/readings/1/"


class Words(Section):
    """Rows whose key is a text in an order of the database's own."""

    queryset = Word.objects.all()
    key = "text"

    def location(self, word):
        return f"/words/{word.text}/"


class Tokens(Section):
    """Rows with a UUID as their key."""

    queryset = Token.objects.all()
    location = Route("token", id="pk")


class Articles(Section):
    """Rows with a title."""

    queryset = Article.objects.all()
    location = Route("article", pk="pk")
    title = "title"


class Levels(Readings):
    """Readings that are called by their level."""

    name = "readings"

    def title(self, reading):
        return f"Level {reading.level}"


def make_articles(*titles):
    """Make an article for each title."""
    for title in titles:
        Article.objects.create(title=title, edited_at="2024-01-01T00:00Z")


def body(response):
    """Return the HTML of a page, which is there."""
    assert response.status_code == 200
    return response.content.decode()


def links_in(text):
    """Return the links of the items of lists, as addresses with texts."""
    found = re.findall('<li><a (?:rel="[a-z]+" )?href="([^"]*)"[^>]*>(.*?)</a></li>', text)
    return [(html.unescape(address), html.unescape(title)) for address, title in found]


def entries(response):
    """Return the links of a page's only list of entries."""
    found = re.findall('<ul class="sitemapkit-entries">(.*?)</ul>', body(response), re.DOTALL)
    return [link for text in found[:1] for link in links_in(text)]


def addresses(response):
    """Return where these links lead to."""
    return [address for address, _ in entries(response)]


def titles(response):
    """Return the texts of these links."""
    return [title for _, title in entries(response)]


def parts(response):
    """Return the links of a page to the parts behind it."""
    found = re.findall('<ul class="sitemapkit-pages">(.*?)</ul>', body(response), re.DOTALL)
    return [link for text in found for link in links_in(text)]


def heading(response):
    """Return the heading of a page, and the name of the part that it shows."""
    text = body(response)
    found = re.search("<h1[^>]*>(.*?)(?: <span[^>]*>(.*?)</span>)?</h1>", text)
    return tuple(html.unescape(each or "") for each in found.groups())


def sections_of(response):
    """Return the links of the first page by the heading of their section."""
    found = re.findall("<section .*?</section>", body(response), re.DOTALL)
    return {
        html.unescape(re.search("<h2[^>]*>(.*?)</h2>", text)[1]): links_in(text) for text in found
    }


def step(response, side):
    """Return where "Next" or "Previous page" leads to, or None where there is no such link."""
    found = re.findall(f'<a rel="{side}" href="([^"]*)">', body(response))
    return html.unescape(found[0]) if found else None


def walked(client, address, side="next"):
    """Return the addresses of all entries that "Next" leads to, page by page."""
    found = []
    while address:
        response = client.get(address)
        found.append(addresses(response))
        address = step(response, side)
        assert len(found) < 200
    return found


def flat(pages):
    """Return the addresses of pages as one list."""
    return [address for page in pages for address in page]


def plan(section, bounds, numbers):
    """Store a plan of pages with these bounds between them, and these numbers in key order."""
    ready = reader_of(section(SITE))
    keyset = ready.keyset
    Plan.objects.all().delete()
    stored = Plan.objects.create(
        site=SITE.key,
        section=ready.get_name(),
        key=keyset.identity,
        rows_per_page=ready.rows_per_page,
        last_number=max(numbers),
    )
    texts = [keyset.encode(bound) for bound in bounds]
    ends = zip([None, *texts], [*texts, None], numbers, strict=True)
    Page.objects.bulk_create(
        Page(plan=stored, lower=lower, upper=upper, number=number) for lower, upper, number in ends
    )


def written(text, rf, host="www.example.com"):
    """Render a template with the tags."""
    request = rf.get("/", headers={"host": host})
    return Template(f"{{% load sitemapkit_people %}}{text}").render(Context({"request": request}))
