"""The example project with sixty sites, of which the first one is built."""

from tests.browser.settings import *  # noqa: F403
from tests.browser.settings import SITEMAPKIT_BASE_URL as FIRST

SITEMAPKIT_SITES = {
    "default": {"BASE_URL": FIRST},
    **{f"region-{n}": {"BASE_URL": f"https://{n}.example.com"} for n in range(1, 60)},
}
SITEMAPKIT_BASE_URL = None
