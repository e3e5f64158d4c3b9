"""URL patterns of every shape, for routes to be compiled against.

The module is a URLconf; its class is another one, since Django takes any object with urlpatterns.
"""

from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path, re_path, register_converter
from django.urls.converters import IntConverter, SlugConverter, StringConverter
from django.utils.functional import lazy
from django.utils.translation import get_language


class EvenConverter(IntConverter):
    """Writes even numbers in four digits, and has no URL for odd ones."""

    def to_url(self, value):
        if int(value) % 2:
            raise ValueError(f"{value!r} is odd")
        return f"{int(value):04d}"


class CodeConverter(StringConverter):
    """A child of a built-in converter with an expression of its own."""

    regex = "[A-Z]{2}"


class SameConverter(SlugConverter):
    """A child of a built-in converter that changes nothing."""


class NumberConverter(SlugConverter):
    """A child of a built-in converter that writes what is no text."""

    def to_url(self, value):
        return int(value)


class MonthConverter:
    """Knows dates alone: of anything else it makes an AttributeError."""

    regex = "[0-9]{4}/[0-9]{2}"

    def to_url(self, value):
        return value.strftime("%Y/%m")


class HexConverter:
    """Is named as nothing built in, and takes any hexadecimal text."""

    regex = "(?:[0-9a-f]{2})+"

    def to_url(self, value):
        return value


for name, converter in {
    "even": EvenConverter,
    "code": CodeConverter,
    "same": SameConverter,
    "number": NumberConverter,
    "month": MonthConverter,
    "hex": HexConverter,
}.items():
    register_converter(converter, name)


def view(request, **kwargs):
    """Never called: its URLs are only written."""
    raise NotImplementedError


def _translated(default, spanish):
    return spanish if get_language() == "es" else default


translated = lazy(_translated, str)

stock = [
    path("item/<slug:slug>/", view, name="item"),
    path("item/<slug:slug>/<int:number>.html", view, name="numbered"),
    re_path(r"^raw/(?P<slug>[a-z]+)$", view, name="raw"),
]
deep = [
    path("<str:label>/", view, name="leaf"),
    path("stock/", include((stock, "stock"))),
]
shop = [*stock, path("deep/<int:level>/", include((deep, "deep")))]
languages = [
    path("", view, name="start"),
    path("page/<str:slug>/", view, name="page"),
    path(translated("product/<slug:slug>/", "producto/<slug:slug>/"), view, name="translated"),
    re_path(translated(r"^old/(?P<slug>[a-z]+)$", r"^viejo/(?P<slug>[a-z]+)$"), view, name="old"),
    path(translated("shop/", "tienda/"), include((stock, "local"))),
]

urlpatterns = [
    path("", view, name="home"),
    path("über uns/(all)/[x].html", view, name="about"),
    # Built-in converters.
    path("a/<int:pk>/", view, name="article"),
    path("p/<slug:shop>/<slug:slug>/", view, name="product"),
    path("c/<str:country>/<str:slug>-<int:id>/", view, name="city"),
    path("t/<uuid:id>", view, name="token"),
    path("f/<path:rest>", view, name="file"),
    path("e/<path:rest>/edit/", view, name="edit"),
    path("g/<slug:a>-<int:b><str:c>", view, name="glued"),
    path("<path:rest>", view, name="bare"),
    path("<name>.html", view, name="untyped"),
    path("/<slug:slug>/", view, name="slashed"),
    # Converters of the project.
    path("even/<even:n>/", view, name="even"),
    path("code/<code:code>/<slug:slug>/", view, name="code"),
    path("same/<same:slug>/", view, name="same"),
    path("number/<number:n>/", view, name="number"),
    path("month/<month:day>/", view, name="month"),
    path("hex/<hex:id>/", view, name="hex"),
    # Several patterns of one name: reverse() takes the first that fits.
    path("many/even/<even:x>/", view, name="many"),
    path("many/code/<code:x>/", view, name="many"),
    path("many/int/<int:x>/", view, name="many"),
    path("many/path/<path:x>", view, name="many"),
    path("few/<path:x>", view, name="few"),
    path("few/slug/<slug:x>/", view, name="few"),
    path("some/slug/<slug:x>/", view, name="some"),
    path("some/code/<code:x>/", view, name="some"),
    path("several/<slug:a>/", view, name="several"),
    path("several/<slug:a>/<int:b>/", view, name="several"),
    # Extra arguments of a pattern.
    path("kind/<slug:slug>/", view, {"kind": "x"}, name="kind"),
    path("kinds/x/<slug:slug>/", view, {"kind": "x", "n": 1}, name="kinds"),
    path("kinds/y/<slug:slug>/", view, {"kind": "y"}, name="kinds"),
    path("hole/<slug:kind>/<slug:slug>/", view, {"kind": "x"}, name="hole"),
    path("extra/", include([path("<slug:slug>/", view, name="extra")]), {"kind": "x"}),
    # Expressions.
    re_path(r"^archive/(?:page-(?P<n>[0-9]+)/)?$", view, name="archive"),
    re_path(r"^tree/(?:(?P<a>[a-z]+)/(?:(?P<b>[0-9]+)/)?)?$", view, name="tree"),
    re_path(r"^unnamed/([0-9]+)/([a-z ü%]+)/$", view, name="unnamed"),
    re_path(r"^loose/(?P<x>.*)", view, name="loose"),
    re_path(r"^ahead/(?!admin)(?P<x>[a-z]+)/$", view, name="ahead"),
    re_path(r"^choice/(?P<x>a|bc)/$", view, name="choice"),
    re_path(r"^(?:this|that)/(?P<x>[a-z]+)$", view, name="disjunct"),
    re_path(r"^lazy/(?P<slug>[-a-zA-Z0-9_]+)/\Z", view, name="like-a-path"),
    re_path(r"^words/\d\w\.(?P<x>\w{2,4})\Z", view, name="classes"),
    # reverse() never writes a literal per cent sign: it is a format's to it.
    path("100%/<slug:slug>/", view, name="percent"),
    path("100%sale/<slug:slug>/", view, name="percent-s"),
    path("100%d/", view, name="percent-d"),
    # Includes and namespaces.
    path("in/<slug:tenant>/", include([path("<int:pk>/ü/", view, name="within")])),
    re_path(r"^re/(?P<tenant>[a-z]+)/", include([path("<int:pk>/", view, name="re-within")])),
    path("shop/", include((shop, "shop"))),
    path("outlet/", include((shop, "shop"), namespace="outlet")),
    path("mall/<slug:mall>/<int:floor>/", include((shop, "mall"))),
    path("plaza/", include((stock, "plaza"), namespace="north")),
    path("südplatz/", include((stock, "plaza"), namespace="south")),
    *i18n_patterns(*languages),
]


class DefaultUnprefixed:
    """The URLs of the default language have no prefix."""

    urlpatterns = i18n_patterns(*languages, prefix_default_language=False)


class Broken:
    """Patterns that reverse() itself fails on."""

    urlpatterns = [
        path("hole/<slug:kind>/<slug:slug>/", view, {"kind": "x"}, name="own-hole"),
        path("open/<slug:kind>/<slug:slug>/", view, {"kind": "x"}, name="other-hole"),
        path("open/<slug:slug>/", view, name="other-hole"),
    ]
