"""Documents of another sitemap."""

from django_sitemapkit.protocol.limits import IMAGE, NAMESPACE, NEWS, VIDEO, XHTML

PREFIXES = {"xhtml": XHTML, "image": IMAGE, "video": VIDEO, "news": NEWS}


def urlset(*urls):
    """Return a sitemap; each argument is a URL as XML, or all that is inside of its ``<url>``."""
    declared = "".join(f' xmlns:{prefix}="{name}"' for prefix, name in PREFIXES.items())
    inner = "".join(
        f"<url>{url if url.startswith('<') else f'<loc>{url}</loc>'}</url>\n" for url in urls
    )
    return f'<?xml version="1.0"?>\n<urlset xmlns="{NAMESPACE}"{declared}>\n{inner}</urlset>'


def index(*sitemaps):
    """Return an index of these addresses."""
    inner = "".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in sitemaps)
    return f'<?xml version="1.0"?><sitemapindex xmlns="{NAMESPACE}">{inner}</sitemapindex>'
