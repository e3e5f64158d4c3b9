"""The facts: what each URL of the site answers, and what it is."""

import gzip
from dataclasses import replace

from tests.audit.truth.declaring import (
    Url,
    broken,
    canonical,
    header,
    holds,
    kinds,
    languages,
    meta,
    moved,
    outside,
    target_of,
    urls_of,
)

LOGIN = "/accounts/login/"
SIGN_IN_ELSEWHERE = "OTHER/sso/login?return_to=x"


OK = "/answers/ok/"

APART = {"is_linked": False, "is_listed": False}

ANSWERS = urls_of(
    "answers",
    ("ok/",),
    *(broken(f"{status}/", status) for status in (400, 401, 404, 405, 410, 418, 451)),
    *(broken(f"{status}/", status) for status in (206, 500, 501, 505)),
    broken("204/", 204, raw=b""),
    broken("403/", 403, walk="process"),
    broken("raises/", 500, walk="process"),
    ("empty/", "page", {"raw": b"", "title": "", **kinds("title-missing")}),
    ("no-type/", "page", {"headers": {"Content-Type": None}}),
    ("xhtml/", "page", header("Content-Type", "application/xhtml+xml")),
    ("upper-type/", "page", header("Content-Type", "Text/HTML; Charset=UTF-8")),
    *(
        (name, "file", {"raw": b"...", "is_listed": False, **header("Content-Type", kind)})
        for name, kind in {
            "file.pdf": "application/pdf",
            "file.txt": "text/plain",
            "file.json": "application/json",
            "feed.xml": "application/rss+xml",
            "picture": "image/png",
        }.items()
    ),
    ("listed.pdf", "file", {"raw": b"%PDF", **header("Content-Type", "application/pdf")}),
)

REDIRECTS = urls_of(
    "redirects",
    *(moved(f"{status}/", OK, status) for status in (301, 302, 303, 307, 308)),
    moved("relative/", OK, location="../../answers/ok/"),
    moved("fragment/", OK, location="/answers/ok/#part"),
    moved("absolute/", OK, location="BASE/answers/ok/"),
    moved("utf-8/", "/paths/caf%C3%A9/", location="/paths/café/".encode().decode("latin-1")),
    moved("no-slash", "/redirects/no-slash/", 301),
    ("no-slash/", "page", {"is_linked": False}),
    moved("two/1/", "/redirects/two/2/", 301),
    moved("two/2/", OK, is_linked=False),
    moved("three/", "/redirects/two/1/"),
    moved("itself/", "/redirects/itself/"),
    moved("loop/1/", "/redirects/loop/2/"),
    moved("loop/2/", "/redirects/loop/1/", is_linked=False),
    moved("to-loop/", "/redirects/loop/1/"),
    moved("many/0/", "/redirects/many/1/"),
    *(
        moved(f"many/{n}/", f"/redirects/many/{n + 1}/", is_linked=False, is_listed=False)
        for n in range(1, 15)
    ),
    moved("to-404/", "/answers/404/"),
    moved("to-410/", "/answers/410/"),
    moved("to-500/", "/answers/500/"),
    moved("to-noindex/", "/indexing/meta/"),
    moved("to-duplicate/", "/canonicals/elsewhere/"),
    moved("to-file/", "/answers/file.pdf"),
    moved("to-blocked/", "/closed/2/"),
    moved("to-other/", "OTHER/fine/"),
    moved("to-login/", f"{LOGIN}?next=/redirects/to-login/"),
    broken("without-target/", 301, **kinds("redirect")),
    broken("to-nonsense/", 302, headers={"Location": "http://[nonsense/"}, **kinds("no-answer")),
    *(
        (name, "redirect", {"to": OK, "head": head, "headers": headers, **kinds("refresh")})
        for name, head, headers in (
            ("refresh/", '<meta http-equiv="refresh" content="0; url=/answers/ok/">', {}),
            ("refresh-2/", "<META HTTP-EQUIV=Refresh CONTENT='5;URL=\"../../answers/ok/\"'>", {}),
            ("refresh-header/", "", {"Refresh": "0; url=/answers/ok/"}),
        )
    ),
    ("reload/", "page", {"head": '<meta http-equiv="refresh" content="30">'}),
    (
        "reload-2/",
        "page",
        {"head": '<meta http-equiv="refresh" content="9; url=/redirects/reload-2/">'},
    ),
)

PAST, FUTURE = "2020-01-01T00:00:00Z", "2200-01-01T00:00:00Z"
TAG = "X-Robots-Tag"

INDEXING = urls_of(
    "indexing",
    ("meta/", "noindex", meta("robots", "noindex")),
    ("none/", "noindex", meta("ROBOTS", "None") | {"follows": False, "links": ("/answers/none/",)}),
    ("google/", "noindex", meta("googlebot", "noindex, follow")),
    (
        "second/",
        "noindex",
        {"head": '<meta name=robots content="max-snippet:-1"><meta name=robots content="NOINDEX">'},
    ),
    ("header/", "noindex", header(TAG, "noindex")),
    ("header-google/", "noindex", header(TAG, "otherbot: nofollow, googlebot: noindex")),
    ("header-list/", "noindex", header(TAG, "noarchive, max-image-preview:large, noindex")),
    ("expired/", "noindex", meta("robots", f"unavailable_after: {PAST}")),
    ("expired-header/", "noindex", header(TAG, "unavailable_after: 25 Jun 2010 15:00:00 PST")),
    ("links-on/", "noindex", meta("robots", "noindex") | {"links": ("/indexing/below-noindex/",)}),
    ("below-noindex/", "page", {"is_linked": False}),
    ("other/", "page", meta("otherbot", "noindex")),
    ("other-header/", "page", header(TAG, "otherbot: noindex")),
    ("other-none/", "page", header(TAG, "otherbot: noindex, nofollow")),
    ("news/", "page", meta("googlebot-news", "noindex")),
    ("follow/", "page", meta("robots", "index, follow, max-snippet:-1")),
    ("later/", "page", meta("robots", f"unavailable_after: {FUTURE}")),
    ("later-header/", "page", header(TAG, f"unavailable_after: {FUTURE}")),
    ("comment/", "page", {"head": '<!-- <meta name="robots" content="noindex"> -->'}),
    ("script/", "page", {"head": '<script>\'<meta name="robots" content="noindex">\'</script>'}),
    (
        "nofollow/",
        "page",
        meta("robots", "nofollow") | {"follows": False, "links": ("/indexing/behind-nofollow/",)},
    ),
    (
        "nofollow-header/",
        "page",
        header(TAG, "nofollow", follows=False, links=("/indexing/behind-nofollow/",)),
    ),
    ("behind-nofollow/", "page", {"is_linked": False}),
    ("unlisted/", "noindex", meta("robots", "noindex") | {"is_listed": False}),
    ("image/", "page", meta("robots", "noimageindex, notranslate")),
)

CANONICALS = urls_of(
    "canonicals",
    ("itself/", "page", canonical("BASE/canonicals/itself/")),
    ("itself-relative/", "page", canonical("/canonicals/itself-relative/")),
    ("itself-dots/", "page", canonical("../itself-dots/")),
    ("itself-fragment/", "page", canonical("BASE/canonicals/itself-fragment/#top")),
    ("caf%C3%A9/", "page", canonical("/canonicals/café/")),
    ("escapes~/", "page", canonical("/canonicals/%65scapes%7e/")),
    ("empty/", "page", canonical("")),
    ("in-body/", "page", {"text": '<link rel="canonical" href="/answers/ok/">'}),
    ("comment/", "page", {"head": '<!-- <link rel="canonical" href="/answers/ok/"> -->'}),
    ("twice/", "page", {"head": '<link rel="canonical" href="/canonicals/twice/">' * 2}),
    ("elsewhere/", "duplicate", canonical("BASE/answers/ok/", OK)),
    ("relative/", "duplicate", canonical("../../answers/ok/", OK)),
    ("header/", "duplicate", header("Link", '<BASE/answers/ok/>; rel="canonical"', to=OK)),
    (
        "header-list/",
        "duplicate",
        header("Link", "</x.css>; rel=preload, </answers/ok/>; rel=canonical", to=OK),
    ),
    (
        "words/",
        "duplicate",
        {"head": '<LINK href=/answers/ok/ rel="shortlink Canonical">', "to": OK},
    ),
    ("other-site/", "duplicate", canonical("OTHER/fine/", "OTHER/fine/")),
    ("?sort=name", "duplicate", canonical("/canonicals/", "/canonicals/")),
    ("unlisted/", "duplicate", canonical("/answers/ok/", OK, is_listed=False)),
    ("only-canonical/", "page", {"is_linked": False}),
    (
        "leads-there/",
        "duplicate",
        canonical("/canonicals/only-canonical/", "/canonicals/only-canonical/"),
    ),
    (
        "conflict/",
        "page",
        {
            "head": '<link rel="canonical" href="/answers/ok/">'
            '<link rel="canonical" href="/answers/xhtml/">',
            **kinds("canonical-conflict"),
        },
    ),
    (
        "conflict-header/",
        "page",
        {
            "head": '<link rel="canonical" href="/canonicals/conflict-header/">',
            **header("Link", '</answers/ok/>; rel="canonical"'),
            **kinds("canonical-conflict"),
        },
    ),
)

PATHS = [
    Url(
        path="/paths/",
        text='<a href="">Here</a>',
        links=(
            *("plain/ > /paths/plain/", "./dot/ > /paths/dot/", "../paths/up/ > /paths/up/"),
            *("//HOST/paths/scheme/ > /paths/scheme/", "BASE/paths/absolute/ > /paths/absolute/"),
            *("/paths/%63ode/ > /paths/code/", "/paths/tilde%7e/ > /paths/tilde~/"),
            *("/paths/a b/ > /paths/a%20b/", "/paths/c%20d/", "/paths/café/ > /paths/caf%C3%A9/"),
            *(
                "/paths/na%c3%afve/ > /paths/na%C3%AFve/",
                "/paths/日本/ > /paths/%E6%97%A5%E6%9C%AC/",
            ),
            *("/paths/Upper/", "/paths/upper/", "/paths/part/#part > /paths/part/"),
            *("/paths/part/#other > /paths/part/", "#only >", "? > /paths/?"),
            *("?page=2 > /paths/?page=2", "/paths/?a=1&amp;b=2 > /paths/?a=1&b=2"),
            *("/paths/?q=a+b", "/paths/?q=a%20b", "/paths/?q=ñ > /paths/?q=%C3%B1"),
            *("/paths/x/../dots/ > /paths/dots/", "/paths/semi;v=1/", "/paths/at@home,(1)!/"),
            *("/paths/100%25/", "/paths/double//slash/", "/paths/file.html", "/paths/no-end"),
            *("mailto:a@b.example >", "tel:+1 >", "javascript:void(0) >", "data:text/plain,x >"),
            *("BASE > /", "/paths/plus+sign/", "/paths/colon:1/", "./colon:2/ > /paths/colon:2/"),
        ),
    ),
    *(
        Url(path=f"/paths/{name}")
        for name in (
            *("plain/", "dot/", "up/", "scheme/", "absolute/", "code/", "tilde~/", "a%20b/"),
            *("c%20d/", "caf%C3%A9/", "na%C3%AFve/", "%E6%97%A5%E6%9C%AC/", "Upper/", "part/"),
            *("?page=2", "?a=1&b=2", "?q=a+b", "?q=a%20b", "?q=%C3%B1", "dots/", "semi;v=1/"),
            *("at@home,(1)!/", "100%25/", "double//slash/", "file.html", "no-end"),
            *("plus+sign/", "colon:1/", "colon:2/"),
        )
    ),
    Url(path="/paths/?", walk="http"),
    Url(path="/paths/upper/", what="broken", status=404),
]

MARKUP = urls_of(
    "markup",
    *(
        holds(f"{number}/", link, f"/markup/to/{number}/")
        for number, link in enumerate(
            (
                "<A HREF=/markup/to/0/>Upper case, no quotes</A>",
                "<a class='x' href='/markup/to/1/'>Single quotes</a>",
                '<a href="\n /markup/to\t/2/ ">Spaces within</a>',
                '<a href="/markup/to/3/"><b><i>Wrongly nested</b></i>',
                '<p><div><a href="/markup/to/4/">Not closed',
                '<map><area href="/markup/to/5/" alt="An area"></map>',
                '<a href="&#47;markup/to/&#x36;/">Entities</a>',
                '<a href="/markup/to/7/" rel="noopener external">Other rel</a>',
                '<a href="/markup/to/8/"><img src="data:," alt="An image"></a>',
                '<table><a href="/markup/to/9/">In a table</a></table>',
                '<a name="x" href="/markup/to/10/" href="/markup/none/">Twice</a>',
                '<script>if (1 < 2) "</a>"</script><a href="/markup/to/11/">After a script</a>',
                '<a href="\\markup\\to\\12\\">Backslashes</a>',
                '<svg><a href="/markup/to/13/"><text>In an image</text></a></svg>',
                '<noscript><a href="/markup/to/14/">Without scripts</a></noscript>',
            )
        )
    ),
    *((f"to/{number}/", "page", {"is_linked": False}) for number in range(15)),
    *(
        ("no/" + str(number) + "/", "page", {"text": text})
        for number, text in enumerate(
            (
                '<!-- <a href="/markup/none/">In a comment</a> -->',
                "<script>document.write('<a href=\"/markup/none/\">In a script</a>')</script>",
                '<style>/* <a href="/markup/none/"> */</style>',
                '<textarea><a href="/markup/none/">In a field</a></textarea>',
                '<a data-href="/markup/none/">Another attribute</a>',
                "<a>Nowhere</a>",
                '<p title="<a href=/markup/none/>">In an attribute</p>',
                '<template><a href="/markup/none/">In a template</a></template>',
                "<p>/markup/none/</p>",
            )
        )
    ),
    (
        "base/",
        "page",
        {
            "head": '<base href="/markup/based/">',
            "links": ("in/ > /markup/based/in/", "/markup/root/", "../up/ > /markup/up/"),
        },
    ),
    (
        "base-absolute/",
        "page",
        {
            "head": '<base target="_top"><base href="BASE/markup/based/x">',
            "links": ("two/ > /markup/based/two/",),
        },
    ),
    (
        "base-other/",
        "page",
        {
            "head": '<base href="OTHER/">',
            "links": ("markup/none/ >", "BASE/markup/back/ > /markup/back/"),
            "files": ("OTHER/markup/none/",),
        },
    ),
    *(
        (name, "page", {"is_linked": False})
        for name in ("based/in/", "based/two/", "root/", "up/", "back/")
    ),
    (
        "dead/1/",
        "page",
        {"links": ("/markup/missing/", "missing-2/ > /markup/dead/1/missing-2/", OK)},
    ),
    (
        "dead/2/",
        "page",
        {"links": ("/markup/missing/", "/markup/missing/#again > /markup/missing/")},
    ),
    broken("missing/", 404, is_linked=False, is_listed=False),
    broken("dead/1/missing-2/", 404, is_linked=False, is_listed=False),
)

ENCODINGS = urls_of(
    "encodings",
    *(
        (
            name,
            "page",
            {
                "title": f"Ñandú {name}",
                "encoding": encoding,
                "links": (f"/encodings/ñ/{name} > /encodings/%C3%B1/{name}",),
                **header("Content-Type", f"text/html{charset}"),
                "head": head,
            },
        )
        for name, encoding, charset, head in (
            ("utf-8/", "utf-8", "; charset=utf-8", ""),
            ("none/", "utf-8", "", ""),
            ("latin-1/", "latin-1", "; charset=ISO-8859-1", ""),
            ("cp1252/", "cp1252", "", '<meta charset="windows-1252">'),
            (
                "http-equiv/",
                "latin-1",
                "",
                '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">',
            ),
            ("bom/", "utf-8-sig", "; charset=iso-8859-1", ""),
            ("utf-16/", "utf-16", "", ""),
            ("quoted/", "utf-8", '; charset="UTF-8"', '<meta charset="iso-8859-1">'),
        )
    ),
    *(
        (f"%C3%B1/{name}", "page", {"is_linked": False})
        for name in (
            "utf-8/",
            "none/",
            "latin-1/",
            "cp1252/",
            "http-equiv/",
            "bom/",
            "utf-16/",
            "quoted/",
        )
    ),
    (
        "koi8/",
        "page",
        {
            "title": "Привет",
            "encoding": "koi8-r",
            **header("Content-Type", "text/html; charset=koi8-r"),
        },
    ),
    (
        "shift-jis/",
        "page",
        {"title": "日本語", "encoding": "shift_jis", "head": "<meta charset=shift_jis>"},
    ),
    ("unknown/", "page", header("Content-Type", "text/html; charset=nonsense")),
    ("invalid/", "page", {"raw": b"<title>A \xff title</title>", "title": "A \ufffd title"}),
    (
        "gzip/",
        "page",
        {
            "raw": gzip.compress(b"<title>Compressed</title><a href=/encodings/in-gzip/>x</a>"),
            "title": "Compressed",
            "links": (" > /encodings/in-gzip/",),
            "headers": {"Content-Encoding": "gzip"},
        },
    ),
    ("in-gzip/", "page", {"is_linked": False}),
    (
        "entities/",
        "page",
        {"raw": b"<title>A &amp; B &eacute; &#8364;</title>", "title": "A & B é €"},
    ),
    ("spaces/", "page", {"raw": b"<title>\n  Two\t words\n</title>", "title": "Two words"}),
)

ROBOTS = """User-agent: otherbot
Disallow: /

User-agent: *
Disallow: /open/

User-agent: Googlebot
Disallow: /closed/
Allow: /closed/open/
Disallow: /*.private$
Disallow: /*?print=
"""

RULES = [
    *urls_of(
        "rules",
        ("/closed/1/", "blocked"),
        ("/closed/2/", "blocked", {"is_listed": False}),
        ("/closed/open/1/",),
        ("/open/1/",),
        ("report.private", "blocked"),
        ("report.private.html",),
        ("?print=1", "blocked"),
        ("?view=1&print=1",),
        ("/Closed/1/",),
    )
]

ORPHANS = [
    Url(path="/orphans/", nofollow=("/orphans/by-nofollow/",), text="<!-- /orphans/1/ -->"),
    *(
        Url(path=f"/orphans/{name}", is_linked=False, **facts)
        for name, facts in {
            "1/": {},
            "2/": {"links": ("/orphans/2/", OK)},
            "3/": {"links": ("/orphans/4/",)},
            "4/": {"links": ("/orphans/3/",)},
            "?orphan=1": {},
            "missing/": {"what": "broken", "status": 404},
            "by-nofollow/": {},
            "unlisted/": {"is_listed": False},
        }.items()
    ),
]

UNLISTED = urls_of(
    "unlisted",
    *((f"{number}/", "page", {"is_listed": False}) for number in range(1, 6)),
    ("?page=2", "page", {"is_listed": False}),
    broken("gone/", 410, is_listed=False),
    moved("moved/", "/unlisted/behind/", is_listed=False),
    ("behind/", "page", {"is_linked": False, "is_listed": False}),
)

TITLES = urls_of(
    "titles",
    ("first/", "page", {"title": "A repeated title"}),
    ("second/", "page", {"title": "A repeated title", **kinds("title-repeated")}),
    ("third/", "page", {"title": " A  repeated title ", **kinds("title-repeated")}),
    (
        "spanish/",
        "page",
        {"raw": b'<html lang="es"><title>A repeated title</title>', "title": "A repeated title"},
    ),
    ("case/", "page", {"title": "A Repeated Title"}),
    ("none/", "page", {"raw": b"<p>Text</p>", "title": "", **kinds("title-missing")}),
    ("empty/", "page", {"title": "", **kinds("title-missing")}),
    (
        "image/",
        "page",
        {"raw": b"<svg><title>Of an image</title></svg>", "title": "", **kinds("title-missing")},
    ),
    ("modified/", "page", header("Last-Modified", "Wed, 01 May 2024 10:00:00 GMT")),
    (
        "later/",
        "page",
        header("Last-Modified", "Wed, 10 Jul 2024 10:00:00 GMT", **kinds("lastmod")),
    ),
    ("nonsense/", "page", header("Last-Modified", "yesterday")),
)

HREFLANG = urls_of(
    "hreflang",
    *(
        (
            f"good/{code}/",
            "page",
            {
                "head": languages(
                    *(("en", "BASE/hreflang/good/en/"), ("es-MX", "/hreflang/good/es/")),
                    *(("zh-Hant", "../zh/"), ("x-default", "BASE/hreflang/good/en/")),
                )
            },
        )
        for code in ("en", "es", "zh")
    ),
    (
        "one-way/",
        "page",
        {
            "head": languages(("en", "BASE/hreflang/one-way/"), ("es", "BASE/hreflang/no-return/")),
            **kinds("hreflang-return"),
        },
    ),
    ("no-return/", "page", {"head": languages(("es", "BASE/hreflang/no-return/"))}),
    *(
        (
            name,
            "page",
            {
                "head": languages(*versions),
                "files": tuple(href for _, href in versions),
                **kinds(*wrong),
            },
        )
        for name, versions, *wrong in (
            (
                "bad-code/",
                (("en-UK", "/hreflang/bad-code/"), ("english", "/hreflang/bad-code/")),
                "hreflang-code",
            ),
            (
                "underscore/",
                (("en_GB", "/hreflang/underscore/"), ("fr", "/hreflang/underscore/")),
                "hreflang-code",
            ),
            ("no-self/", (("es", "/hreflang/good/es/"),), "hreflang-self", "hreflang-return"),
            *(
                (name, (("en", f"/hreflang/{name}"), ("es", target)), "hreflang-target")
                for name, target in (
                    ("to-missing/", "/answers/404/"),
                    ("to-moved/", "/redirects/301/"),
                    ("to-noindex/", "/indexing/meta/"),
                )
            ),
        )
    ),
)

NOT_FOUND = "<title>Page not found</title><h1>Page not found</h1><p>There is no such page.</p>"

SOFT = urls_of(
    "soft",
    *(
        (name, "broken", {"raw": text.encode(), **kinds("soft-404")})
        for name, text in {
            "same/": NOT_FOUND,
            "same-but-links/": f'{NOT_FOUND}<a href="/">Home</a>',
        }.items()
    ),
    (
        "film/",
        "page",
        {
            "title": "Page not found: a film",
            "text": "<h1>A film about the web</h1><p>Its plot.</p>",
        },
    ),
    (
        "heading/",
        "page",
        {"title": "What 404 means", "text": "<h1>Page not found</h1><p>Means this.</p>"},
    ),
    ("short/", "page", {"title": "Short", "raw": b"<title>Short</title>"}),
    (
        "shop/",
        "page",
        {"title": "Shoes", "text": "<h1>Shoes</h1><p>No results were not found here.</p>"},
    ),
)

FORM = '<form method="post"><input name="user"><input type="password" name="password"></form>'

SIGN_IN = urls_of(
    "sign-in",
    (
        "wall/",
        "page",
        {
            "title": "Sign in",
            "text": f"<h1>Sign in</h1>{FORM}",
            **kinds("login"),
        },
    ),
    moved("foreign/", SIGN_IN_ELSEWHERE, **kinds("login")),
    (
        "header-form/",
        "page",
        {"title": "A shop", "text": f"<header>{FORM}</header><h1>A shop</h1><p>Text</p>"},
    ),
    (
        "about/",
        "page",
        {"title": "Sign in with a passkey: how to", "text": "<h1>How to</h1><p>Text</p>"},
    ),
)

FILE_MARKUP = {
    "image": '<img src="{}" alt="">',
    "srcset": '<img src="data:," srcset="{} 2x" alt="">',
    "sources": '<picture><source srcset="{}, {} 2x"></picture>',
    "style": '<link rel="stylesheet" href="{}">',
    "script": '<script src="{}"></script>',
    "icon": '<link rel="shortcut icon" href="{}">',
    "iframe": '<iframe src="{}"></iframe>',
    "video": '<video poster="{}"></video>',
    "audio": '<audio><source src="{}"></audio>',
    "track": '<video><track src="{}"></video>',
    "object": '<object data="{}"></object>',
    "search": '<form action="{}"></form>',
}
"""The markup of each way to name a file."""

FILES = urls_of(
    "files",
    *(
        (
            f"{name}/",
            "page",
            {
                "text": markup.replace("{}", "/files/fine.png")
                + markup.replace("{}", f"no-{name}"),
                "files": ("/files/fine.png", f"/files/{name}/no-{name}"),
            },
        )
        for name, markup in FILE_MARKUP.items()
    ),
    *(broken(f"{name}/no-{name}", 404, **APART) for name in FILE_MARKUP),
    ("fine.png", "file", {"raw": b"...", **header("Content-Type", "image/png"), **APART}),
    ("both/", "page", {"text": f'<iframe src="{OK}"></iframe>', "files": (OK,)}),
    (
        "none/",
        "page",
        {
            "text": '<img src="data:image/png,x"><img src=""><img alt="No source">'
            '<link rel="preconnect" href="/files/nothing"><form method="post" action="/files/post">'
        },
    ),
)

NO_URLS = ("http://[::1", "htp://x.example/", "http://x.example:99999/", "http://a host/")

OUTSIDE = urls_of(
    "outside",
    ("fine/", "page", {"text": '<a href="OTHER/fine/">Fine</a><img src="OTHER/fine/">'}),
    outside("link/", '<a href="{}">Gone</a>', "OTHER/missing/"),
    outside("nofollow/", '<a href="{}" rel="nofollow">Gone</a>', "OTHER/missing/"),
    outside("image/", '<img src="{}">', "OTHER/missing.png"),
    *(
        outside(f"malformed/{number}/", '<a href="{}">No URL</a>', address)
        for number, address in enumerate(NO_URLS)
    ),
    *(Url(path=address, what="broken", status=0, **APART) for address in NO_URLS),
    *(
        Url(path=f"OTHER/{name}", what="broken", status=404, walk="http", **APART)
        for name in ("missing/", "missing.png", "markup/none/")
    ),
)

CLOUDS = urls_of(
    "clouds",
    *((f"{s}/", "unknown", {"status": s}) for s in (408, 425, 429, 502, 503, 504)),
    ("403/", "unknown", {"status": 403, "walk": "http"}),
    ("br/", "unknown", {"raw": b"x", "headers": {"Content-Encoding": "br"}}),
    (
        "half-gzip/",
        "unknown",
        {
            "raw": gzip.compress(b"<title>x</title>" * 99)[:-20],
            "headers": {"Content-Encoding": "gzip"},
        },
    ),
    (
        "cut/",
        "unknown",
        {
            "raw": b"<title>Half",
            "headers": {"Content-Length": "999", "Connection": "close"},
            "walk": "http",
        },
    ),
    ("reset/", "unknown", {"status": 0, "walk": "http"}),
    moved("to-503/", "/clouds/503/"),
    (
        "large/",
        "page",
        {"text": f"<!--{'x' * 3_100_000}--><a href=/clouds/behind/1/>1</a>", "is_cut": True},
    ),
    (
        "many-links/",
        "page",
        {
            "text": "<a href=/answers/ok/>ok</a>" * 5_000 + "<a href=/clouds/behind/2/>2</a>",
            "links": (f" > {OK}",),
            "is_cut": True,
        },
    ),
    *((f"behind/{n}/", "page", {"is_linked": False}) for n in (1, 2)),
)
"""URLs of which something cannot be determined; the site has them if it is asked for them."""

GROUPS = (
    *(ANSWERS, REDIRECTS, INDEXING, CANONICALS, PATHS, MARKUP, ENCODINGS, RULES, ORPHANS),
    *(UNLISTED, TITLES, HREFLANG, SOFT, SIGN_IN, FILES, OUTSIDE),
)


def site(walk, *, cloudy=False):
    """Return the URLs that are answered over "http" or within the "process", by path."""
    groups = (*GROUPS, CLOUDS) if cloudy else GROUPS
    home = Url(path="/", links=tuple(group[0].path for group in groups))
    urls = [home, Url(path=LOGIN, is_listed=False), *(url for group in groups for url in group)]
    elsewhere = {url.path for url in urls if url.walk not in {"", walk}}
    return {
        url.path: replace(
            url, links=tuple(link for link in url.links if target_of(link) not in elsewhere)
        )
        for url in urls
        if url.path not in elsewhere
    }
