"""The example project in Hebrew, which is read from right to left, under the strict policy.

The package has no Hebrew texts: what Django itself says is Hebrew, the rest is English.
"""

from tests.browser.settings import *  # noqa: F403
from tests.browser.settings import MIDDLEWARE as STRICT

MIDDLEWARE = [*STRICT[:-1], "tests.browser.policy.hebrew"]
