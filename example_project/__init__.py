"""A gazetteer of some 235,000 cities in three languages: the example of django-sitemapkit."""
