"""A gazetteer of some 235,000 cities: the example project of django-sitemapkit."""
