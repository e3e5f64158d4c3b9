"""The example project with django-unfold in the place of the plain admin's looks.

Its own scripts need more than a strict policy allows, so there is none.
"""

from example_project.settings import *  # noqa: F403
from example_project.settings import INSTALLED_APPS as EXAMPLES

INSTALLED_APPS = ["unfold", *EXAMPLES]
ROOT_URLCONF = "tests.browser.urls"
