"""Panels that other apps add to the overview."""

import pytest
from django.utils.html import format_html

from django_sitemapkit.admin import panels, register_panel
from tests.admin.operating import OVERVIEW, person, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_panels(monkeypatch):
    monkeypatch.setattr(panels, "_panels", [])


def test_a_panel_is_shown_for_the_site_with_its_title():
    """A panel gets the request and the site; "" hides it; plain text is escaped."""

    @register_panel("Visits & more")
    def visits(request, site):
        return format_html("<p>{} sees {}</p>", request.user.get_username(), site.key)

    register_panel("Hidden")(lambda request, site: "")
    register_panel("Plain")(lambda request, site: "<b>")
    text = text_of(person("viewer").get(OVERVIEW))
    assert '<h2 id="sitemapkit-panel-1">Visits &amp; more</h2>' in text
    assert "<p>viewer sees default</p>" in text
    assert "Hidden" not in text
    assert "&lt;b&gt;" in text


def test_a_panel_that_fails_shows_its_error():
    """The rest of the page and the other panels work."""
    register_panel("Broken")(lambda request, site: 1 / 0)
    register_panel("Fine")(lambda request, site: "here it is")
    response = person("viewer").get(OVERVIEW)
    assert response.status_code == 200
    assert "ZeroDivisionError: division by zero" in text_of(response)
    assert "here it is" in text_of(response)
    assert "No build is running." in text_of(response)
