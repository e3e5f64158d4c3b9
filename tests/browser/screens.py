"""The screens of the admin, what fills them, and what is looked for on them."""

import re

SCREENS = [
    *("sitemapkit/", "sitemapkit/sitemapsoverview/", "sitemapkit/build/"),
    *("sitemapkit/sitemapsoverview/health/", "sitemapkit/sitemapsoverview/inspect/?url=/about/"),
    "sitemapkit/sitemapsoverview/activity/",
    *("sitemapkit/build/1/change/", "sitemapkit/build/2/change/"),
    *("sitemapkit/build/2/differences/", "sitemapkit/build/2/publish/"),
    *("sitemapkit/build/1/publish/", "sitemapkit/sitemapsoverview/pause/?site=default"),
    "sitemapkit/build/2/differences/?below=/countries/",
    "sitemapkit/build/1/files/3/",
    *("sitemapkit/urloverride/", "sitemapkit/urloverride/add/"),
    "sitemapkit/sitemapsoverview/inspect/?url=/abut/",
    *("sitemapkit/urloverride/1/change/", "sitemapkit/urloverride/2/change/"),
    *("sitemapkit/urloverride/import/", "sitemapkit/urloverride/1/history/"),
    *("sitemapkit/extraurl/", "sitemapkit/extraurl/add/", "sitemapkit/extraurl/1/change/"),
    *("sitemapkit/extraurl/paste/", "sitemapkit/extraurl/import/"),
    *("sitemapkit/exclusionrule/", "sitemapkit/exclusionrule/1/change/"),
    *("sitemapkit/sectionsettings/", "gazetteer/city/203/change/"),
    *("sitemapkit_audit/auditrun/", "sitemapkit_audit/auditrun/1/change/"),
    *("sitemapkit_audit/auditrun/2/change/", "sitemapkit_audit/savedpage/"),
    *("sitemapkit_audit/auditfinding/", "sitemapkit_audit/auditfinding/1/change/"),
    *("sitemapkit_submission/urlbatch/", "sitemapkit_submission/urlbatch/1/change/"),
    *("sitemapkit_submission/submittedsitemap/",),
]
"""Every screen; the addresses are those that ``fill`` makes."""

NARROW = {"viewport": {"width": 390, "height": 800}}
ZOOMED = {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2}
"""A window of 1,280 by 900 pixels at 200 %."""

LONG = "/press/" + "a-very-long-address-without-any-place-to-break-it" * 3

OUTSIDE = """() => {
    // What stands out of the window, or is cut off; a box of its own that scrolls may hold it.
    const page = document.documentElement.scrollWidth;
    const cut = (element) => {
        if (element.closest(".visually-hidden")) {
            return false;
        }
        const box = element.getBoundingClientRect();
        let at = element.parentElement;
        while (at.id !== "content" && getComputedStyle(at).overflowX === "visible") {
            at = at.parentElement;
        }
        const holds = /auto|scroll/.test(getComputedStyle(at).overflowX) && at.id !== "content";
        return box.width > 1 && !holds && box.right > at.getBoundingClientRect().right + 1;
    };
    const found = [...document.querySelectorAll("#content *")].filter(cut);
    return [
        ...(page > innerWidth ? [`the page is ${page} wide`] : []),
        ...found.map((element) => element.outerHTML.slice(0, 80)),
    ];
}"""

FAINT = """() => {
    // Texts of this package whose contrast with what is behind them is less than 4.5 (WCAG 1.4.3).
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (colour) => {
        const [r, g, b] = parts(colour).slice(0, 3).map((value) => {
            value /= 255;
            return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if ((parts(colour)[3] ?? 1) > 0.5) {
                return colour;
            }
        }
        return "rgb(255, 255, 255)";
    };
    const texts = [...document.querySelectorAll("[class*=sitemapkit], [class*=sitemapkit] *")]
        .filter((element) => element !== document.body && element.closest("#content")
            && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
    return texts.flatMap((element) => {
        const pair = [light(getComputedStyle(element).color), light(behind(element))];
        const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
        return contrast < 4.5 ? [`${contrast.toFixed(1)} ${element.outerHTML.slice(0, 80)}`] : [];
    });
}"""


def fill(visitor):
    """Make something for every screen to show: two builds, and what editors set."""
    visitor.build()
    for path, key in (("/about/", ""), ("", "203")):
        visitor.open("sitemapkit/urloverride/add/")
        visitor.page.get_by_label("Path").fill(path)
        if key:
            visitor.page.get_by_label("Kind of object").select_option("City")
            visitor.page.get_by_label("Its primary key").fill(key)
        visitor.page.get_by_label("Priority").fill("0.9")
        visitor.page.get_by_label("Note").fill("W" * 200)
        visitor.press("Save")
    visitor.open("sitemapkit/extraurl/add/")
    visitor.page.get_by_label("Path").fill(LONG)
    visitor.press("Save")
    visitor.open("sitemapkit/sectionsettings/")
    visitor.page.get_by_label("Priority of section “countries”").fill("0.8")
    visitor.press("Save")
    visitor.open("sitemapkit/exclusionrule/add/")
    visitor.page.get_by_label("Pattern").fill("/countries/*town")
    visitor.press("Save")
    visitor.press(re.compile("^Exclude .* URLs?$"))
    visitor.build()
