"""Web pages as a search engine meets them: fetched in-process or over HTTP, and read.

``in_process.InProcessFetcher`` and ``live.LiveFetcher`` give ``responses.Fetched``;
``pages.WebPage`` reads what it says to search engines; ``robots.RobotsRules`` is robots.txt.
"""
