"""What axe-core finds on a page; the package axe-playwright-python carries it."""

import importlib.util
from pathlib import Path

from tests.browser.conftest import missing

DJANGOS = [".breadcrumbs", "#toolbar", "#changelist-filter", "#nav-sidebar", "#header"]
"""Parts of pages that are Django's own: its breadcrumbs differ from text by colour alone."""


def source():
    """Return the script."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None:
        missing("axe-playwright-python is not installed; it is in the dependency group browser")
    return Path(spec.origin).with_name("axe.min.js").read_text("utf-8")


def violations(visitor, *, rules=(), include=()):
    """Return what it finds on the page that a visitor has open, a line each, once it is still.

    ``rules`` names the rules, of all that there are; ``include`` the parts of the page.
    """
    page = visitor.page
    visitor.wait_until_still()
    parts = [[part] for part in include if page.locator(part).count()]
    if include and not parts:
        return []
    context = {"exclude": [[part] for part in DJANGOS]}
    options = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
    if parts:
        context["include"] = parts
    if rules:
        options = {"resultTypes": ["violations"], "runOnly": list(rules)}
    page.evaluate(source())
    answer = page.evaluate("([context, options]) => axe.run(context, options)", [context, options])
    return [
        f"{page.url}: {violation['id']}: {node['html'][:200]}"
        for violation in answer["violations"]
        for node in violation["nodes"]
    ]
