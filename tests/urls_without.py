"""A URLconf without the package's URLs."""

urlpatterns = []
