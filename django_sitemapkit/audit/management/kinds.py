"""The kinds of findings in ``--fail-on``, which the commands of the audit share."""

from collections.abc import Collection, Mapping

from django.core.management.base import CommandError

from django_sitemapkit.management.base import Exit


def parse_kinds(
    text: str, known: Collection[str], groups: Mapping[str, Collection[str]]
) -> frozenset[str]:
    """Return the kinds in a text, separated by commas; a name of ``groups`` stands for its kinds.

    Raises CommandError for a kind that is not ``known``, and names those that are.
    """
    names = {name.strip() for name in text.split(",") if name.strip()}
    if unknown := sorted(names - set(known) - set(groups)):
        raise CommandError(
            f"Unknown kinds: {', '.join(unknown)}. Known kinds: {', '.join([*groups, *known])}.",
            returncode=Exit.USAGE,
        )
    return frozenset().union(*(groups.get(name, [name]) for name in names))
