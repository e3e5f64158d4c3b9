"""A spider as Scrapy's documentation shows it, which follows all links of a site."""

import json
from pathlib import Path

import scrapy
from scrapy.linkextractors import LinkExtractor

found = []
"""The titles of all pages."""


class LinkSpider(scrapy.Spider):
    """Follows all links of one host; writes the status of each URL into the file ``output``."""

    name = "links"

    def __init__(self, base, output="", **options):
        super().__init__(**options)
        self.start_urls = [f"{base}/"]
        self.extractor = LinkExtractor(allow=f"^{base}/")
        self.output = output
        self.statuses = {}

    def parse(self, response):
        """Note the title and the status, and follow all links."""
        self.statuses[response.url] = response.status
        if not isinstance(response, scrapy.http.HtmlResponse):
            return
        found.append(response.css("title::text").get())
        for link in self.extractor.extract_links(response):
            yield scrapy.Request(link.url)

    def closed(self, reason):
        """Write the statuses."""
        if self.output:
            Path(self.output).write_text(json.dumps(self.statuses), encoding="utf-8")
