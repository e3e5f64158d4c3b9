"""The example project under a strict Content-Security-Policy, in the visitor's language."""

from example_project.settings import *  # noqa: F403
from example_project.settings import MIDDLEWARE as EXAMPLES

MIDDLEWARE = [
    "tests.browser.policy.strict_policy",
    *EXAMPLES,
    "tests.browser.policy.visitors_language",
]
ROOT_URLCONF = "tests.browser.urls"
