"""The settings of the example, with files so small that one country needs several."""

from example_project.settings import *  # noqa: F403

SITEMAPKIT_MAX_URLS = 200
