"""A site as a crawler reads it, and a window of the browser as a person uses it."""

import gzip
import re
import urllib.request

SECONDS = 20
"""How long is waited for what a page is to show."""

NOTHING_GOES_ON = "No build is running."

PUBLISH = re.compile("^Yes, (publish it|roll back)")
"""The button that publishes a build; it says how many URLs are lost."""

STILL = """() => getComputedStyle(document.body).opacity === "1" && document.getAnimations().every(
    (animation) => animation.timeline !== document.timeline
        || animation.effect.getComputedTiming().endTime === Infinity)"""
"""The page is opaque, and only endless animations run, such as spinners, or those of scrolling."""

_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Site:
    """The site that is served, read as crawlers do."""

    def __init__(self, base, sessions):
        self.base = base
        self.sessions = sessions

    def get(self, path):
        """Return what the site answers, decompressed."""
        with _opener.open(self.base + path, timeout=SECONDS) as response:
            body = response.read()
        return (gzip.decompress(body) if path.endswith(".gz") else body).decode()

    def entries(self, section):
        """Return a section's entries as the index leads to them: the XML of each, by path."""
        found = {}
        for address in re.findall("<loc>(.+?)</loc>", self.get("/sitemap.xml")):
            path = address.removeprefix(self.base)
            if path.startswith(f"/sitemap-{section}-"):
                for entry in re.findall("<url>.+?</url>", self.get(path)):
                    location = re.search("<loc>(.+?)</loc>", entry)[1]
                    found[location.removeprefix(self.base)] = entry
        return found


class Visitor:
    """A window of the browser in which a user is logged in, and all that goes wrong in it."""

    def __init__(self, context, site, user=None):
        self.site = site
        self.strict = True
        self._faults, self._given_up = [], set()
        context.set_default_timeout(SECONDS * 1000)
        context.expose_binding("reportViolation", lambda source, text: self._faults.append(text))
        context.add_init_script(
            """document.addEventListener("securitypolicyviolation", (event) => reportViolation(
                `policy: ${event.violatedDirective} ${event.blockedURI} on ${location.href}`));"""
        )
        if user:
            key = site.sessions[user]
            context.add_cookies([{"name": "sessionid", "value": key, "url": site.base}])
        self.page = page = context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self._faults.append(f"error: {error}"))
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)

    def faults(self):
        """Return all that went wrong.

        Who leaves a page gives up what it was asking for, such as an icon that a script has just
        added. That is no fault if the server answers when it is asked again.
        """
        again = {address: self.page.request.get(address) for address in self._given_up}
        unanswered = [f"{each.status}: {address}" for address, each in again.items() if not each.ok]
        return [*self._faults, *unanswered]

    def _heard(self, message):
        if message.type in {"error", "warning"}:
            self._faults.append(f"console: {message.text}")

    def _failed(self, request):
        is_ours = request.url.startswith(self.site.base)
        if is_ours and request.method == "GET" and "ERR_ABORTED" in str(request.failure):
            self._given_up.add(request.url)
        else:
            self._faults.append(f"failed: {request.url} {request.failure}")

    def _answered(self, response):
        if response.status >= 400:
            self._faults.append(f"{response.status}: {response.url}")

    # What people do

    def open(self, path):
        """Open a page of the admin."""
        self.page.goto(f"{self.site.base}/admin/{path}")

    def wait_until_still(self):
        """Wait until the page has faded in: colours measured before that are not its own.

        Baton keeps the page transparent until its script has run, then fades it in.
        """
        self.page.wait_for_function(STILL)

    def press(self, name, role="button"):
        """Press a button or follow a link, by its whole name, and wait for the page it leads to."""
        with self.page.expect_navigation():
            self.page.get_by_role(role, name=name, exact=True).click()

    def follow(self, name):
        """Follow the first link of the page's content with this whole name."""
        links = self.page.locator("#content").get_by_role("link", name=name, exact=True)
        with self.page.expect_navigation():
            links.first.click()

    def sees(self, text):
        """Wait until the page says something."""
        self.page.get_by_text(text).first.wait_for()

    def text(self):
        """Return what the page's content says, in its own letters, be they shown as capitals."""
        return " ".join(self.page.locator("#content").text_content().split())

    def messages(self):
        """Return what the page tells of the last step."""
        return "\n".join(self.page.locator(".messagelist li").all_text_contents())

    def open_overview(self):
        """Open the overview."""
        self.open("sitemapkit/sitemapsoverview/")

    def build(self, button=""):
        """Press a button of the overview, and wait until what it began has ended.

        By default the first one, whose name says whether changes of editors wait.
        """
        self.open_overview()
        if button:
            self.press(button)
        else:
            with self.page.expect_navigation():
                self.page.locator("form.sitemapkit-buttons button[value=changed]").click()
        self.wait_for_build()

    def wait_for_build(self):
        """Wait until the overview says that no build is running."""
        self.page.locator("#sitemapkit-progress").get_by_text(NOTHING_GOES_ON).wait_for()
