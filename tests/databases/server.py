"""An app server that builds and serves as its standard input says: run by test_two_servers."""

import hashlib
import json
import re
import sys

import django


def main():
    """Do what each line says; answer with a line of JSON."""
    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from tests.killloop.models import Item

    client = Client(headers={"host": "127.0.0.1"})

    def migrate():
        call_command("migrate", run_syncdb=True, verbosity=0)
        Item.objects.bulk_create([Item() for _ in range(50)])

    def build():
        call_command("build_sitemaps", verbosity=0)

    def change():
        Item.objects.bulk_create([Item() for _ in range(3)])
        Item.objects.order_by("pk").first().delete()

    def remove():
        Item.objects.all().delete()

    def crawl():
        index = answer("/sitemap.xml")
        pages = re.findall("<loc>http://127.0.0.1([^<]+)</loc>", index.pop("body"))
        return {"/sitemap.xml": index} | {page: without_body(answer(page)) for page in pages}

    def answer(address):
        response = client.get(address)
        body = response.getvalue()
        return {
            "status": response.status_code,
            "etag": response.headers.get("ETag", ""),
            "retry": response.headers.get("Retry-After", ""),
            "sha256": hashlib.sha256(body).hexdigest(),
            "body": body.decode("latin-1"),
        }

    actions = {each.__name__: each for each in (migrate, build, change, remove, crawl)}
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(actions[line.strip()]())}\n")
        sys.stdout.flush()


def without_body(answered):
    """Return all else of what was answered."""
    return {name: value for name, value in answered.items() if name != "body"}


if __name__ == "__main__":
    main()
