"""What the tests of submission share."""

import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.builds import Products, fill, run, use_storage
from tests.submission.engines import IndexNow, SearchConsole, serving

KEY = "0f4c1a2be9d84f6c"
ROBOT = "robot@example.iam.gserviceaccount.com"


@pytest.fixture
def site(settings, sections):
    """Give a site with one section, to be built."""
    sections.add(Products)
    fill()
    return use_storage(settings, "Memory")


@pytest.fixture
def engine(settings, site, monkeypatch):
    """Give an engine of IndexNow, which the settings name; robots.txt is in order."""
    engine = IndexNow()
    monkeypatch.setattr("django_sitemapkit.submission.submit.robots_problem", lambda site: "")
    with serving(engine.handler()) as address:
        settings.SITEMAPKIT_SUBMIT = {
            "indexnow_key": KEY,
            "indexnow_endpoint": f"{address}/indexnow",
        }
        yield engine


@pytest.fixture(scope="session")
def private_key():
    """Return a key as Google writes it into the file of a service account."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


@pytest.fixture
def console(settings, site, monkeypatch, tmp_path, private_key):
    """Give Search Console, which the settings name; robots.txt is in order."""
    console = SearchConsole()
    monkeypatch.setattr("django_sitemapkit.submission.submit.robots_problem", lambda site: "")
    with serving(console.handler()) as address:
        credentials = tmp_path / "account.json"
        credentials.write_text(
            json.dumps(
                {
                    "type": "service_account",
                    "client_email": ROBOT,
                    "private_key": private_key,
                    "token_uri": f"{address}/token",
                }
            )
        )
        settings.SITEMAPKIT_SUBMIT = {
            "google_credentials": credentials,
            "google_endpoint": f"{address}/v3",
            "google_inspection_endpoint": f"{address}/v1",
        }
        run()
        yield console
