"""One build by several processes, with faults on demand: run by test_processes."""

import os
import signal
import sys
import time
from multiprocessing import active_children

import django


def asleep(databases, arguments):
    """Be a helper that never gets ready."""
    time.sleep(600)


def hanging(databases, arguments):
    """Be a helper that no signal ends, but the one that ends all."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def steer(model):
    """Leave out a fifth of all URLs, by object, and change what is reported of others."""
    from django_sitemapkit.identities import identity_of
    from django_sitemapkit.models import UrlOverride
    from django_sitemapkit.sites import all_sites

    (site,) = all_sites()
    for place, item in enumerate(model.objects.order_by("pk")):
        label, object_id = identity_of(item)
        include = False if place % 5 == 0 else None
        values = {"include": include, "priority": "0.9" if place % 3 == 0 else None}
        UrlOverride.objects.create(site=site.key, model=label, object_id=object_id, **values)


def wait_for_helpers(count):
    """Wait until so many helpers have begun or more, and one makes a page or has made them all."""
    from django_sitemapkit.builds.lease import ClaimState
    from django_sitemapkit.models import Build

    while True:
        state = ClaimState.of(Build.objects.get(status="running"))
        # One that starts late finds nothing left to claim but the page that waits here.
        if state.helpers >= count and (state.claimed > 1 or state.open == 1):
            return
        time.sleep(0.01)


def main(fate):
    """Build the site of the kill loop's settings while ``fate`` befalls the processes."""
    django.setup()
    from django.core.management import call_command

    from django_sitemapkit.builds import PageBuilder
    from django_sitemapkit.runners import processes
    from tests.killloop.models import Item

    call_command("migrate", run_syncdb=True, verbosity=0)
    Item.objects.bulk_create([Item() for _ in range(400)])
    if fate == "overrides":
        steer(Item)
    if fate == "workers are slow":
        processes.run_helper = asleep
    if fate == "workers hang":
        processes.run_helper, processes.END_SECONDS = hanging, 0.1
    render = PageBuilder.render

    def slowly(self, row):
        hang = fate == "workers hang" and not made  # Until they do, too.
        time.sleep(3 if hang else 0.05)
        started = active_children()
        if not made and fate not in {"workers are slow", "workers hang"}:
            wait_for_helpers(2)
        if not made and fate == "worker is killed":
            for helper in started:
                helper.kill()
        if fate == "builder is killed":
            sys.stdout.write(" ".join(str(helper.pid) for helper in started) + "\n")
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        made.append(row.pk)
        return render(self, row)

    made = []
    PageBuilder.render = slowly
    call_command("build_sitemaps", workers=3, verbosity=0)
    PageBuilder.render = render
    from django_sitemapkit.builds import preview
    from django_sitemapkit.sites import all_sites

    (site,) = all_sites()
    files = preview(site).files
    states = {file.state for file in files}
    sys.stdout.write(f"{len(made)} of {len(files)} here, {states}\n")
    sys.stdout.write(f"{sum(file.urls for file in files)} URLs\n")


if __name__ == "__main__":
    main(sys.argv[1])
