"""Which site a test is about."""

from django_sitemapkit.sites import SitemapSite, all_sites


def site_with_key(key: str | None) -> SitemapSite:
    """Return the site with a key, or with None the only one there is.

    Raises ValueError if there is no such site, or more than one to choose from.
    """
    known = {site.key: site for site in all_sites()}
    if key is None and len(known) == 1:
        (key,) = known
    if key is None or key not in known:
        keys = ", ".join(map(repr, known))
        why = "There is more than one site" if key is None else f"There is no site {key!r}"
        raise ValueError(f"{why}. Choose one of these keys with site=…: {keys}.")
    return known[key]
