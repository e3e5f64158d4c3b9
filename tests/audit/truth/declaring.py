"""How the facts of the site are declared: as `Url`, most of them by a short row of a group.

In texts, BASE stands for the site's address and OTHER for that of a second site. A link is written
as its href; if that is not the path of its target, as "href > path", and as "href >" if it leads to
no URL of the site. Without an href, the text of the page has the link.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """One URL, and what is true of it."""

    path: str
    """The path with its query, in normal form."""
    what: str = "page"
    """page (to be listed), file, redirect, duplicate, noindex, blocked, broken or unknown."""
    to: str = ""
    """Where it redirects to, or the path of its canonical URL; absolute outside of the site."""
    audit: frozenset | None = None
    """The kinds that an audit finds, if they do not follow from the rest."""
    status: int = 200
    headers: dict = field(default_factory=dict)
    head: str = ""
    text: str = ""
    raw: bytes | None = None
    """The body, instead of one that is made from the rest."""
    title: str | None = None
    """The title; by default one of its own."""
    encoding: str = "utf-8"
    links: tuple = ()
    nofollow: tuple = ()
    """Links that are not to be followed."""
    files: tuple = ()
    """Paths of what a crawl only asks for: images, styles and so on, and other sites."""
    follows: bool = True
    """Whether robots may follow its links."""
    is_linked: bool = True
    """Whether the page of its group links to it."""
    is_listed: bool = True
    """Whether the published sitemap lists it."""
    walk: str = ""
    """"http" or "process", if it is answered in that way only."""
    is_cut: bool = False
    """Whether not all of its links can be read."""

    @property
    def is_cloud(self):
        """Whether something of it cannot be determined."""
        return self.is_cut or self.what == "unknown"


def urls_of(group, *rows):
    """Return the URLs of a group, whose page links to those that are linked."""
    made = [row if isinstance(row, Url) else _url(group, *row) for row in rows]
    linked = tuple(url.path for url in made if url.is_linked)
    return [Url(path=f"/{group}/", links=linked), *made]


def _url(group, name, what="page", facts=None):
    path = name if name.startswith(("/", "OTHER")) else f"/{group}/{name}"
    return Url(path=path, what=what, **facts or {})


def kinds(*names):
    """Say which kinds an audit finds."""
    return {"audit": frozenset(names)}


def meta(name, content):
    """Have a meta element in the head."""
    return {"head": f'<meta name="{name}" content="{content}">'}


def header(name, value, **facts):
    """Answer with a header."""
    return {"headers": {name: value}, **facts}


def canonical(href, to="", **facts):
    """Name a canonical URL in the head."""
    return {"head": f'<link rel="canonical" href="{href}">', "to": to, **facts}


def broken(name, status, **facts):
    """Return the row of a URL that answers with an error."""
    return name, "broken", {"status": status, **facts}


def moved(name, to, status=302, location=None, **facts):
    """Return the row of a redirect."""
    headers = {"Location": to if location is None else location}
    return name, "redirect", {"status": status, "headers": headers, "to": to, **facts}


def holds(name, link, target="", **facts):
    """Return a page whose only link is written in an odd way."""
    return name, "page", {"text": link, "links": (f" > {target}",), **facts}


def outside(name, markup, address):
    """Return the row of a page that names a URL of another site."""
    return name, "page", {"text": markup.format(address), "files": (address,)}


def languages(*versions):
    """Return language links for a head."""
    return "".join(
        f'<link rel="alternate" hreflang="{code}" href="{href}">' for code, href in versions
    )


def target_of(link):
    """Return the path that a link leads to, or "" if that is no URL of the site."""
    _, arrow, target = link.rpartition(" >")
    return target.strip() if arrow else link
