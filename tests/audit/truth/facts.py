"""What follows from the facts: all that a crawl and an audit say of the site, if they are right.

A statement is a tuple: its kind first, then the path that it is about.
"""

from tests.audit.truth.declaring import target_of
from tests.audit.truth.site import LOGIN, SIGN_IN_ELSEWHERE

MAX_REDIRECTS = 10
"""Redirects that search engines follow."""

STATUS_KINDS = {401: "login", 404: "not-found", 410: "gone"}

READ = ("page", "duplicate", "noindex")
"""What has links that are read."""


class Facts:
    """What is true of a site, whose URLs are given by path."""

    def __init__(self, urls, *, with_files):
        self.urls = urls
        self.held = self._held()
        self.holders = {path: set(pages) for path, pages in self.held.items()}
        """The pages that name each URL, as a link or, with files, in another element."""
        for page in self.held:
            for file in self.urls[page].files:
                if with_files or (file in urls and not urls[file].status):  # It is no URL.
                    self.holders.setdefault(file, set()).add(page)
        self.is_cloudy = any(self.urls[path].is_cloud for path in self.met)

    def _held(self):
        """Return the pages that link to each URL that is met from the home page on, by path."""
        held, hops, waiting = {"/": set()}, {"/": 0}, ["/"]
        while waiting:
            path = waiting.pop(0)
            url = self.urls.get(path)
            if url is None:
                raise ValueError(f"{path} is linked, but no URL of the site.")
            next_hops = hops[path] + 1 if url.what == "redirect" else 0
            targets = [url.to] if url.to and next_hops <= MAX_REDIRECTS else []
            links = self._links(url)
            for target in (*targets, *links):
                if self._is_followed(target) and target not in held:
                    held[target], hops[target] = set(), next_hops
                    waiting.append(target)
            for target in links:
                if target in held:
                    held[target].add(path)
        return held

    def _links(self, url):
        """Return the paths that a page leads robots to."""
        reads = url.what in READ and url.follows
        return [target for target in map(target_of, url.links) if target] if reads else []

    def _is_followed(self, target):
        return target in self.urls or not target.startswith(("OTHER", LOGIN))

    @property
    def met(self):
        """The paths of all URLs that are followed."""
        return self.held.keys()

    def listed(self):
        """Return the paths that the published sitemap lists, in their order."""
        return [path for path, url in self.urls.items() if url.is_listed]

    def in_files(self):
        """Return the paths that the files of a crawl list."""
        return {path for path in self.met if self.urls[path].what == "page"}

    def of_crawl(self):
        """Return all that a crawl says."""
        said = set()
        for path, holders in self.holders.items():
            url = self.urls[path]
            if path in self.met:
                said.add(("outcome", path, url.what))
            if url.what in READ:
                title = f"Title of {path}" if url.title is None else " ".join(url.title.split())
                said.add(("title", path, title))
            if url.what in {"broken", "redirect", "unknown"}:
                said |= {("link", path, holder) for holder in holders}
            said |= {("crawl", path, kind) for kind in self._crawl_kinds(path, url)}
        said |= {("crawl", path, "orphan") for path in self._orphans()}
        for file in ("sitemap.xml", "urls.txt", "sitemap.html"):
            said |= {(file, path) for path in self.in_files()}
        return said

    def of_audit(self):
        """Return all that an audit says."""
        return {
            ("audit", path, kind)
            for path in self.listed()
            for kind in self._audit_kinds(self.urls[path])
        }

    def _crawl_kinds(self, path, url):
        if url.is_cloud:
            yield "undetermined"
        if url.what == "page" and not url.is_listed:
            yield "missing"
        if url.what == "duplicate":
            yield "duplicate"
        if url.what == "broken" and self.holders[path]:
            yield "broken-link"
        if url.what == "redirect" and self.holders[path]:
            end, redirects = self._end_of(url)
            if end in {"loop", "broken"}:
                yield "broken-link"
            elif end == "unknown":
                yield "undetermined"
            elif end != "login":
                yield "redirect-link" if redirects == 1 else "redirect-chain"

    def _end_of(self, url):
        """Return where a redirect ends: what that URL is, "loop", "login" or "elsewhere"."""
        passed = []
        while url.what == "redirect":
            passed.append(url.path)
            if url.to.startswith((LOGIN, SIGN_IN_ELSEWHERE)):
                return "login", len(passed)
            if url.to in passed or len(passed) > MAX_REDIRECTS:
                return "loop", len(passed)
            if url.to.startswith("OTHER"):
                return "elsewhere", len(passed)
            url = self.urls[url.to]
        return url.what, len(passed)

    def _orphans(self):
        if self.is_cloudy:  # Links may be in what was not read.
            return set()
        named = {
            target
            for path in self.met
            for link in (*self.urls[path].nofollow, *self.urls[path].links)
            if (target := target_of(link))
        }
        return {path for path in self.listed() if path not in self.met and path not in named}

    def _audit_kinds(self, url):
        if url.audit is not None:
            return url.audit
        if url.what == "redirect":
            end, _ = self._end_of(url)
            if end in {"login", "loop"}:
                return {{"login": "login", "loop": "redirect-loop"}[end]}
            while url.what == "redirect" and url.to in self.urls:
                url = self.urls[url.to]
            if end not in {"broken", "unknown"}:
                return {"redirect"}
        if url.what == "broken":
            return {self._kind_of_status(url.status)}
        kinds = {
            "duplicate": "canonical",
            "noindex": "noindex",
            "blocked": "robots",
            "unknown": "undetermined",
        }
        return {kinds[url.what]} if url.what in kinds else set()

    def _kind_of_status(self, status):
        if status < 300:
            return "no-answer"
        return STATUS_KINDS.get(status, "server-error" if status >= 500 else "client-error")
