"""Countries, cities and a few articles about them."""
