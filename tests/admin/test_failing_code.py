"""Screens where the project's own code raises: each page says why."""

import pytest
from django.db import DatabaseError

from django_sitemapkit import Section
from django_sitemapkit.admin import base, overview
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

SCREENS = {
    "overview": ("overview/?site=default", None),
    "request": ("overview/request/", {"site": "default", "button": "changed"}),
    "progress": ("overview/progress/?site=default", None),
    "pause": ("overview/pause/?site=default", None),
}


@pytest.mark.parametrize("error", [RuntimeError, DatabaseError])
@pytest.mark.parametrize(("path", "data"), SCREENS.values(), ids=SCREENS)
def test_sites_that_cannot_be_read_are_no_server_error(
    admin_client, monkeypatch, path, data, error
):
    """Such as those of a tenant service that is down."""

    def fail():
        raise error("the tenant service is down")

    for module in (base, overview):
        monkeypatch.setattr(module, "all_sites", fail)
    url = f"/admin/sitemapkit/build/{path}"
    response = admin_client.post(url, data) if data else admin_client.get(url)
    assert response.status_code in {200, 302, 404}


def test_a_section_that_cannot_be_made_leaves_the_others_to_choose(admin_client, sections):
    """In the form of an override."""

    def fail(self, site):
        raise RuntimeError("no such tenant")

    sections.add(type("Broken", (Section,), {"model": Product, "__init__": fail}))
    assert admin_client.get("/admin/sitemapkit/urloverride/add/").status_code == 200
