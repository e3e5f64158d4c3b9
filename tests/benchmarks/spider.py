"""A spider as Scrapy's documentation shows it, which follows all links of a site."""

import scrapy
from scrapy.linkextractors import LinkExtractor

found = []
"""The titles of all pages."""


class LinkSpider(scrapy.Spider):
    """Follows all links of one host."""

    name = "links"

    def __init__(self, base, **options):
        super().__init__(**options)
        self.start_urls = [f"{base}/"]
        self.extractor = LinkExtractor(allow=f"^{base}/")

    def parse(self, response):
        """Note the title, and follow all links."""
        found.append(response.css("title::text").get())
        for link in self.extractor.extract_links(response):
            yield scrapy.Request(link.url)
