"""URLs with namespaces, languages, several views and converters."""

from django.conf.urls.i18n import i18n_patterns
from django.http import HttpResponse
from django.urls import include, path, re_path, register_converter


class StrictConverter:
    """Knows integers alone: of anything else it makes a TypeError."""

    regex = "[0-9]+"

    def to_python(self, value):
        return int(value)

    def to_url(self, value):
        return str(value + 0)


register_converter(StrictConverter, "strict")


def view(request, **kwargs):
    """Never called: its URLs are only written and resolved."""
    return HttpResponse()


stock = [path("<slug:shop>/<str:slug>/", view, name="item")]

urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("stock/", include((stock, "stock"))),
    path("outlet/<int:floor>/", include((stock, "stock"), namespace="outlet")),
    path("kinds/<str:slug>/", view, {"kind": "x"}, name="kind"),
    path("one/<str:slug>/", view, name="one"),
    path("two/<str:slug>/", view, name="two"),
    path("n/<int:number>/", view, name="number"),
    path("t/<uuid:token>/", view, name="token"),
    path("strict/<strict:number>/", view, name="strict"),
    path("home/", view, name="home"),
    path("nameless/<str:slug>/", view),
    path("reserved/<str:class>/", view, name="reserved"),
    re_path(r"^unnamed/([^/]+)/([0-9]+)/$", view, name="unnamed"),
    re_path(r"^maybe/(?:(?P<rank>[0-9.]+)/)?$", view, name="maybe"),
    *i18n_patterns(path("tale/<str:slug>/", view, name="tale")),
]
