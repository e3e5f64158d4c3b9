"""What sitemaps say beyond the protocol: images, videos, news, other languages, anything else.

``values`` are what a project gives, ``elements`` writes them as XML or refuses them by name,
``languages`` knows the codes of hreflang, ``namespaces`` how all of it is declared.
"""

from django_sitemapkit.protocol.extensions.elements import (
    alternate_elements,
    image_element,
    news_element,
    own_element,
    video_element,
)
from django_sitemapkit.protocol.extensions.languages import format_hreflang, hreflang_doubt
from django_sitemapkit.protocol.extensions.namespaces import IMAGE, NAMESPACES, NEWS, VIDEO, XHTML
from django_sitemapkit.protocol.extensions.values import (
    Allow,
    Deny,
    Element,
    Image,
    News,
    Restriction,
    Video,
)

__all__ = [
    "IMAGE",
    "NAMESPACES",
    "NEWS",
    "VIDEO",
    "XHTML",
    "Allow",
    "Deny",
    "Element",
    "Image",
    "News",
    "Restriction",
    "Video",
    "alternate_elements",
    "format_hreflang",
    "hreflang_doubt",
    "image_element",
    "news_element",
    "own_element",
    "video_element",
]
