"""What editors have set in the admin, and which pages they want listed for it."""

from collections.abc import Iterable, Iterator

from django_sitemapkit.models import ExclusionRule, ExtraUrl, SectionSettings, UrlOverride
from django_sitemapkit.overrides.patterns import Pattern

SITE = "default"


class Editing:
    """The overrides of the site, asked page by page: by the rules of the documentation alone."""

    def __init__(self) -> None:
        found = UrlOverride.objects.filter(site=SITE).exclude(include=None)
        self._paths = {row.path: row.include for row in found if row.path}
        self._objects = {(row.model, row.object_id): row.include for row in found if row.model}
        rules = ExclusionRule.objects.filter(site=SITE)
        self._rules = [Pattern(rule.pattern) for rule in rules]
        off = SectionSettings.objects.filter(site=SITE, enabled=False)
        self._off = set(off.values_list("section", flat=True))

    def extra(self) -> Iterator[tuple[str, str]]:
        """Yield the addresses that editors added, which stand for no object."""
        for path in ExtraUrl.objects.filter(site=SITE).values_list("path", flat=True):
            yield path, ""

    def listed(self, section: str, model: str, pages: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Yield the addresses of a section that are to be listed; each comes with its key."""
        if section in self._off:
            return
        for path, key in pages:
            include = self._paths.get(path)
            if include is None:
                include = self._objects.get((model, key))
            if include is None:
                include = not any(rule.matches(path) for rule in self._rules)
            if include:
                yield path
