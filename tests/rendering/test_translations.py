"""Rows that are translations of one another link to each other, wherever they are listed."""

import gzip
import io
import re

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.models import CharField, F, JSONField, Value
from django.db.models.functions import Cast, Concat

from django_sitemapkit import Entry, Section
from django_sitemapkit.builds import build as build_site
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.report.due import due_by_section
from django_sitemapkit.inspection import inspect_object
from django_sitemapkit.models import UrlOverride
from django_sitemapkit.overrides import section_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.reading.validation import require_pageable
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering.pipeline import alternates_of
from django_sitemapkit.sites import all_sites
from tests.builds import use_storage
from tests.factories import declare
from tests.hreflang.checker import check
from tests.rendering.test_pages import render
from tests.testapp.models import Story

pytestmark = pytest.mark.django_db

HOSTS = {"en": "https://en.example.com", "fr": "https://fr.example.com"}


class Stories(Section):
    """All rows, two on a page."""

    queryset = Story.objects.filter(public=True)
    location = Concat(Value("/"), F("language"), Value("/"), F("slug"), Value("/"))
    translations = "translation_key"
    language = "language"
    limit = 2


class OfSite(Stories):
    """The rows of the site's language."""

    def get_queryset(self):
        return super().get_queryset().filter(language=self.site.key)


def story(key, language, slug, **fields):
    """Make a row."""
    return Story.objects.create(translation_key=key, language=language, slug=slug, **fields)


@pytest.fixture
def stories():
    """Return tea in three languages, coffee in two, and what has no translation."""
    story(1, "en", "tea")
    story(2, "en", "coffee")
    story(3, "en", "milk")
    story(None, "en", "water")
    story(None, "fr", "eau")
    story(1, "fr", "the")
    story(2, "fr", "cafe")
    story(1, "es", "te")


@pytest.fixture
def registered():
    """Give a function that registers sections, alone."""
    with registry.isolated():

        def add(*sections):
            for section in sections:
                registry.add(section)

        yield add


def sets_of(documents):
    """Return the links of each URL of some documents, as codes and paths."""
    found = {}
    for document in documents:
        for line in document.decode().splitlines():
            if location := re.search("<loc>https://[^/]*(.*?)</loc>", line):
                links = re.findall('hreflang="(.*?)" href="(.*?)"', line)
                found[location[1]] = {code: re.sub("^https://[^/]*", "", to) for code, to in links}
    return found


def pages(client, host="www.example.com"):
    """Return the pages of a site by address, as a reader that follows the index gets them."""
    index = client.get("/sitemap.xml", headers={"host": host})
    addresses = re.findall("<loc>https://[^/]*(.*?)</loc>", index.getvalue().decode())
    return {
        address: gzip.decompress(client.get(address, headers={"host": host}).getvalue())
        for address in addresses
    }


TEA = {"en": "/en/tea/", "es": "/es/te/", "fr": "/fr/the/"}
COFFEE = {"en": "/en/coffee/", "fr": "/fr/cafe/"}
EXPECTED = {
    **dict.fromkeys(TEA.values(), TEA),
    **dict.fromkeys(COFFEE.values(), COFFEE),
    **{path: {} for path in ("/en/milk/", "/en/water/", "/fr/eau/")},
}


@pytest.mark.slow
@pytest.mark.parametrize("served", ["live", "built"])
def test_translations_link_across_the_pages_of_a_section(
    client, settings, stories, registered, served, tmp_path
):
    """To themselves too; a row alone in its group, or in none, links to nothing."""
    use_storage(settings, "Memory")
    registered(Stories)
    if served == "built":
        build_site(all_sites()[0])
    assert sets_of(pages(client).values()) == EXPECTED

    def read(address):
        path = address.removeprefix("https://www.example.com")
        return io.BytesIO(client.get(path).getvalue())

    report = check("https://www.example.com/sitemap.xml", read, tmp_path)
    assert report.faults == []
    assert (report.urls, report.linked) == (8, 5)


@pytest.mark.slow
def test_translations_link_across_sections_that_share_the_field(client, stories, registered):
    """A section for each language, each with its own idea of its URLs."""

    class English(Stories):
        queryset = Story.objects.filter(language="en")
        location = None

    class Others(Stories):
        queryset = Story.objects.exclude(language="en")

    registered(English, Others)
    assert sets_of(pages(client).values()) == EXPECTED


@pytest.mark.slow
def test_sections_that_share_no_field_do_not_link(client, stories, registered):
    """Equal numbers of two fields mean nothing."""

    class English(Stories):
        queryset = Story.objects.filter(language="en")

    class Others(Stories):
        queryset = Story.objects.exclude(language="en")
        translations = "pk"

    registered(English, Others)
    found = sets_of(pages(client).values())
    assert set(map(str, found.values())) == {"{}"}


@pytest.mark.slow
@pytest.mark.parametrize("served", ["live", "built"])
def test_translations_link_across_hosts(client, settings, stories, registered, served):
    """Each site lists the rows of its language, and links to those of the other."""
    use_storage(settings, "Memory")
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_BASE_URL = ""
    settings.SITEMAPKIT_SITES = {code: {"BASE_URL": base} for code, base in HOSTS.items()}
    registered(OfSite)
    if served == "built":
        for site in all_sites():
            build_site(site)
    english = b"".join(pages(client, "en.example.com").values()).decode()
    french = b"".join(pages(client, "fr.example.com").values()).decode()
    for text in (english, french):
        assert 'hreflang="en" href="https://en.example.com/en/tea/"' in text
        assert 'hreflang="fr" href="https://fr.example.com/fr/the/"' in text
        assert "/es/te/" not in text


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_each_change_of_a_translation_changes_its_whole_group(
    client, settings, stories, registered, several
):
    """Built again after each, on every site: added, unpublished, moved, renamed, excluded."""
    use_storage(settings, "Memory")
    if several:
        settings.ALLOWED_HOSTS = ["*"]
        settings.SITEMAPKIT_BASE_URL = ""
        settings.SITEMAPKIT_SITES = {code: {"BASE_URL": base} for code, base in HOSTS.items()}
    registered(OfSite if several else Stories)
    hosts = ["en.example.com", "fr.example.com"] if several else ["www.example.com"]

    def built():
        for site in all_sites():
            build_site(site)
        found = {}
        for host in hosts:
            found |= sets_of(pages(client, host).values())
        return found

    tea = {code: path for code, path in TEA.items() if not several or code in HOSTS}
    assert built()["/en/tea/"] == tea
    story(3, "fr", "lait")
    assert built()["/en/milk/"] == {"en": "/en/milk/", "fr": "/fr/lait/"}
    Story.objects.filter(slug="cafe").update(public=False)
    found = built()
    assert found["/en/coffee/"] == {}
    assert "/fr/cafe/" not in found
    Story.objects.filter(slug="the").update(slug="infusion")
    found = built()
    assert found["/en/tea/"] == found["/fr/infusion/"] == {**tea, "fr": "/fr/infusion/"}
    Story.objects.filter(slug="infusion").update(translation_key=2)
    found = built()
    assert found["/en/coffee/"] == {"en": "/en/coffee/", "fr": "/fr/infusion/"}
    assert "fr" not in found["/en/tea/"]
    site = all_sites()[-1]
    UrlOverride.objects.create(site=site.key, path="/fr/infusion/", include=False)
    found = built()
    assert found["/en/coffee/"] == {}
    assert "/fr/infusion/" not in found


def test_of_two_rows_in_one_language_the_first_is_the_translation(stories):
    """The second is listed alone: a set has one version in each language."""
    story(1, "en", "tea-again")
    with registry.isolated():
        registry.add(Stories)
        section = section_of(all_sites()[0], "stories")
        found = sets_of([render(section, page.keys)[1] for page in all_pages(section)])
    assert found["/en/tea-again/"] == {}
    assert found["/fr/the/"] == TEA


@pytest.mark.parametrize(
    ("x_default", "expected"),
    [("en", "/en/tea/"), ("/choose/", "/choose/"), (True, "/en/tea/")],
)
def test_a_default_for_all_other_languages(stories, registered, settings, x_default, expected):
    """The version in one language, or a page on which people choose."""
    settings.LANGUAGE_CODE = "en"

    class Defaulted(Stories):
        limit = None

    Defaulted.x_default = x_default
    registered(Defaulted)
    _, document = render(section_of(all_sites()[0], "defaulted"))
    assert sets_of([document])["/fr/the/"] == {**TEA, "x-default": expected}


def test_a_language_that_hreflang_does_not_know_is_a_problem_and_no_link(registered):
    """Once, whatever the number of rows."""
    story(1, "en", "tea")
    story(1, "klingon!", "tea")
    story(2, "en", "milk")
    story(2, "klingon!", "milk")

    class Slugs(Stories):
        location = Concat(Value("/"), Cast("pk", CharField()), Value("/"))
        limit = None

    registered(Slugs)
    rendering, document = render(section_of(all_sites()[0], "slugs"))
    assert document.count(b"<loc>") == 4
    assert b"klingon" not in document
    (problem,) = rendering.problems.examples
    assert problem.key == "languages"


def test_a_language_that_is_a_list_is_a_problem_and_no_link(registered):
    """As a JSON field may have it."""
    story(1, "en", "tea")
    story(1, "fr", "the")

    class Listed(Stories):
        queryset = Story.objects.annotate(codes=Value(["en"], output_field=JSONField()))
        language = "codes"

    registered(Listed)
    rendering, document = render(section_of(all_sites()[0], "listed"))
    assert document.count(b"<loc>") == 2
    assert b"hreflang" not in document
    (problem,) = rendering.problems.examples
    assert problem.key == "languages"
    assert "['en']" in problem.message


def test_the_case_of_a_code_does_not_matter(registered, settings):
    """Rows have it as they like; a set has each code once, and x_default finds its version."""
    settings.LANGUAGES = [("en", "English"), ("pt-br", "Portuguese")]
    for key, language in ((1, "EN"), (1, "en"), (1, "pt-BR")):
        story(key, language, f"tea-{language}")

    class Cased(Stories):
        limit = None
        x_default = "pt-br"

    registered(Cased)
    rendering, document = render(section_of(all_sites()[0], "cased"))
    found = sets_of([document])
    brazilian = {"en": "/EN/tea-EN/", "pt-BR": "/pt-BR/tea-pt-BR/"}
    assert found["/EN/tea-EN/"] == {**brazilian, "x-default": "/pt-BR/tea-pt-BR/"}
    assert found["/pt-BR/tea-pt-BR/"] == found["/EN/tea-EN/"]
    assert found["/en/tea-en/"] == {}
    assert not rendering.problems


def test_a_version_without_a_code_leaves_its_only_translation_alone(registered):
    """Neither has links: there is nothing to link to."""
    story(1, "en", "tea")
    story(1, "klingon!", "tea")

    class Slugs(Stories):
        location = Concat(Value("/"), Cast("pk", CharField()), Value("/"))

    registered(Slugs)
    assert b"hreflang" not in render(section_of(all_sites()[0], "slugs"))[1]


def test_rows_with_blank_keys_are_not_translations_of_each_other(registered):
    """As the default of a text field has it."""

    class Blank(Stories):
        translations = "group"
        limit = None

    for slug, language in (("tea", "en"), ("the", "fr")):
        Story.objects.create(group="", language=language, slug=slug)
    registered(Blank)
    assert b"hreflang" not in render(section_of(all_sites()[0], "blank"))[1]


def test_an_object_with_too_many_entries_is_not_linked_to(registered):
    """No page has it."""
    story(1, "en", "tea")
    story(1, "fr", "the")

    class Several(Stories):
        location = None
        limit = 3

        def entries(self, story):
            many = 5 if story.language == "fr" else 1
            return (f"{story.get_absolute_url()}{number}/" for number in range(many))

    registered(Several)
    rendering, document = render(section_of(all_sites()[0], "several"))
    assert sets_of([document]) == {"/en/tea/0/": {}}
    assert [problem.code for problem in rendering.problems.examples] == ["too-many-urls"]


def test_another_section_that_fails_is_named(registered, stories):
    """Its rows might be translations of these."""

    class Broken(Stories):
        def get_queryset(self):
            raise KeyError("tea")

    registered(Stories, Broken)
    with pytest.raises(ImproperlyConfigured, match=r"'broken' of site 'default', whose rows"):
        render(section_of(all_sites()[0], "stories"))


def test_the_links_are_known_for_a_page_of_the_project_and_for_an_editor(stories, registered):
    """The template tag and the inspection give those of the sitemap."""
    registered(Stories)
    site = all_sites()[0]
    tea = Story.objects.get(slug="tea")
    links = [(code, f"https://www.example.com{path}") for code, path in TEA.items()]
    assert alternates_of(site, tea) == links
    (inspected,) = inspect_object(site, tea)
    assert inspected.xml.count("<xhtml:link") == 3


def test_the_first_of_several_entries_is_the_translation(stories, registered):
    """Its other URLs are pages by themselves."""

    class Several(Stories):
        location = None
        limit = None

        def entries(self, story):
            yield story.get_absolute_url()
            yield Entry(f"{story.get_absolute_url()}comments/")

    registered(Several)
    _, document = render(section_of(all_sites()[0], "several"))
    found = sets_of([document])
    assert found["/en/tea/"] == TEA
    assert found["/en/tea/comments/"] == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"language": None}, "need each other"),
        ({"translations": None}, "need each other"),
        ({"translations": Concat("slug", "language")}, "is not a column"),
        ({"language": lambda self, obj: "en"}, "is not a column"),
        ({"i18n": True}, "both translations and i18n"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(options, message):
    """Before a page is rendered."""
    section = declare(Stories, **options)
    with pytest.raises(ImproperlyConfigured, match=message):
        require_pageable(section)


def reasons():
    """Return why how many pages of each section are due."""
    return {item.section: item.pages for item in due_by_section(all_sites()[0]) if item.pages}


def changed_pages():
    """Return the numbers of the pages that a build stores."""
    files = build_site(all_sites()[0]).files
    return {file.number for file in files if file.section and file.state == "stored"}


@pytest.mark.slow
def test_a_build_renders_the_pages_of_a_changed_group_only(settings, stories, registered):
    """The database tells: pages with the row, and with its translations, whatever the tags are."""
    use_storage(settings, "Memory")
    registered(Stories)
    assert changed_pages() == {1, 2, 3, 4}  # tea, coffee | milk, - | -, the | cafe, te
    assert reasons() == {}
    Story.objects.filter(slug="the").update(slug="infusion")
    assert reasons() == {"stories": {Reason.ROWS: 3}}
    assert changed_pages() == {1, 3, 4}
    story(3, "es", "leche")
    assert changed_pages() == {2, 5}
    UrlOverride.objects.create(site="default", path="/en/elsewhere/", include=False)
    assert reasons() == {"stories": {Reason.ROWS: 5}}
    assert changed_pages() == set()
    assert reasons() == {}


@pytest.mark.usefixtures("methods_are_called")
@pytest.mark.slow
def test_a_translation_by_a_method_has_the_pages_of_its_group_rendered(
    settings, stories, registered
):
    """Each time, since no column shows its URL; others know it by what it depends on."""
    use_storage(settings, "Memory")

    class ByMethod(Stories):
        queryset = Story.objects.filter(language="es")

        def location(self, story):
            return story.get_absolute_url()

    class ByColumns(Stories):
        queryset = Story.objects.exclude(language="es")

    registered(ByMethod, ByColumns)
    changed_pages()
    assert reasons() == {"by-method": {Reason.METHODS: 1}, "by-columns": {Reason.METHODS: 2}}
    ByMethod.depends_on = ("language", "slug")
    changed_pages()
    assert reasons() == {}
    Story.objects.filter(slug="te").update(slug="infusion")
    assert reasons() == {"by-method": {Reason.ROWS: 1}, "by-columns": {Reason.ROWS: 2}}


@pytest.mark.slow
def test_blank_keys_are_no_group_of_which_a_change_matters(settings, registered):
    """Most rows may have none; one more has its own page rendered."""
    use_storage(settings, "Memory")

    class ByGroup(Stories):
        translations = "group"

    registered(ByGroup)
    for n in range(4):
        story(None, "en", f"s{n}")
    assert changed_pages() == {1, 2}
    story(None, "fr", "new")
    assert changed_pages() == {3}
    assert reasons() == {}
