"""The manifest of an export, as something else may read and write it."""

import gzip
import json

MANIFEST = "sitemap-manifest.json.gz"
"""Its name, beside the files."""


def aged(manifest, seconds):
    """Return the content of a manifest in which all is gone so much longer ago."""
    values = json.loads(gzip.decompress(manifest))
    gone = {name: moment - seconds for name, moment in values["gone"].items()}
    return gzip.compress(json.dumps({**values, "gone": gone}).encode())
