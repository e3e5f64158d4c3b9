"""The example project with django-baton in the place of the plain admin's looks.

Its own templates have inline styles and scripts, so there is no strict policy.
"""

from example_project.settings import *  # noqa: F403
from example_project.settings import INSTALLED_APPS as EXAMPLES

INSTALLED_APPS = ["baton", *EXAMPLES, "baton.autodiscover"]
ROOT_URLCONF = "tests.browser.urls"
