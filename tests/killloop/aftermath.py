"""What must be true once nobody kills any more and one build has run undisturbed."""

import datetime as dt
import time
from collections import Counter
from pathlib import Path

from django.core.management import call_command
from django.db.models import F

from django_sitemapkit.audit.validation import validate_published
from django_sitemapkit.builds import build, prune
from django_sitemapkit.models import Build, Lease, Place
from django_sitemapkit.sites import all_sites
from tests.export_manifest import MANIFEST, aged
from tests.killloop.crawler import Crawler, Violation
from tests.killloop.places import EXPORT, LONG_AGO, STORAGE, place
from tests.killloop.rows import all_paths
from tests.killloop.settings import FOLDER, LEASE_SECONDS, SITEMAPKIT_BASE_URL


def check_aftermath():
    """Raise Violation where anything is left that one build and one prune should have healed."""
    check_log()
    time.sleep(LEASE_SECONDS + 0.5)
    call_command("build_sitemaps", verbosity=0)
    [site] = all_sites()
    require(build(site).status == "unchanged", "a second build found something to do")
    faults = [fault for file in validate_published(site) for fault in file.texts("error")]
    require(not faults, f"published files have faults: {faults[:3]}")
    found, _, _ = Crawler(SITEMAPKIT_BASE_URL, FOLDER).crawl()
    expected = Counter(all_paths())
    require(found == expected, f"what is listed is not what is there: {found - expected}")
    running = Build.objects.filter(status=Build.Status.RUNNING).count()
    require(not running, f"{running} builds are left running")
    held = list(Lease.objects.exclude(owner="").values_list("name", flat=True))
    require(not held, f"leases are left held: {held}")
    check_storage(site)
    check_export(site)


def check_log():
    """Raise Violation where an error was logged: a lost file is rendered live, and valid."""
    lines = (Path(FOLDER) / "package.log").read_text().splitlines()
    errors = [line for line in lines if line.startswith("ERROR")]
    require(not errors, f"{len(errors)} errors were logged: {errors[:3]}")


def check_storage(site):
    """Raise Violation where, after a day, the storage has what no manifest names, or lacks any."""
    with place().aged():
        prune(site)
    stored = place().names(STORAGE)
    named = set(Place.objects.exclude(page=None).values_list("page__name", flat=True))
    require(stored == named, f"unnamed: {sorted(stored - named)}; lost: {sorted(named - stored)}")


def check_export(site):
    """Raise Violation where, after the grace period, the export is not what is published."""
    age = dt.timedelta(seconds=LONG_AGO)
    Build.objects.exclude(replaced_at=None).update(replaced_at=F("replaced_at") - age)
    place().write(EXPORT, MANIFEST, aged(place().read(EXPORT, MANIFEST), LONG_AGO))
    with place().aged():
        prune(site)
    there = {name: place().read(EXPORT, name) for name in place().names(EXPORT) - {MANIFEST}}
    published = Build.objects.published(site)
    lines = Place.objects.in_build(published).filter(status=Place.Status.DONE)
    should = {_exported_as(line): place().read(STORAGE, line.name) for line in lines}
    require(
        there.keys() == should.keys(),
        f"the export has {sorted(there.keys() - should.keys())},"
        f" and lacks {sorted(should.keys() - there.keys())}",
    )
    others = [name for name in should if there[name] != should[name]]
    require(not others, f"exported files are not those that are published: {others}")
    left = place().leftovers()
    require(not left, f"{len(left)} things are left of killed builders: {left[:3]}")


def _exported_as(line):
    return f"sitemap-{line.section}-{line.number}.xml.gz" if line.section else "sitemap.xml"


def require(condition, why):
    """Raise Violation unless the condition holds."""
    if not condition:
        raise Violation(why)
