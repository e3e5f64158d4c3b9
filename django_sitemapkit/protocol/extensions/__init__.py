"""Extensions of sitemaps: images, videos, news, links to other languages, and a project's own.

``values`` has the classes that projects use, ``rules`` what their tags may contain, ``elements``
writes them as XML, and ``languages`` has the codes of hreflang.
"""

from django_sitemapkit.protocol.extensions.elements import (
    alternate_elements,
    image_element,
    news_element,
    own_element,
    video_element,
)
from django_sitemapkit.protocol.extensions.languages import (
    X_DEFAULT,
    format_hreflang,
    hreflang_doubt,
)
from django_sitemapkit.protocol.extensions.values import Restriction

__all__ = [
    "X_DEFAULT",
    "Restriction",
    "alternate_elements",
    "format_hreflang",
    "hreflang_doubt",
    "image_element",
    "news_element",
    "own_element",
    "video_element",
]
