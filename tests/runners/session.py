"""One build by several processes, with faults on demand: run by test_processes."""

import os
import signal
import sys
import time

import django


def asleep(pipe, databases, job):
    """Be a worker that never gets ready."""
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


def main(fate):
    """Build the site of the kill loop's settings while ``fate`` befalls the processes."""
    django.setup()
    from django.core.management import call_command

    from django_sitemapkit.builds import PageBuilder
    from django_sitemapkit.runners import processes
    from django_sitemapkit.runners.processes import Crew
    from tests.killloop.models import Item

    call_command("migrate", run_syncdb=True, verbosity=0)
    Item.objects.bulk_create([Item() for _ in range(400)])
    if fate == "overrides":
        steer(Item)
    crews = []
    if fate == "workers are slow":
        processes.enter = asleep
    render, start = PageBuilder.render, Crew.__init__

    def slowly(self, line):
        time.sleep(0.05)
        crew = crews[-1]
        if fate == "worker is killed":
            for worker in crew.busy:
                os.kill(worker.process.pid, signal.SIGKILL)
        if fate == "builder is killed" and crew.busy:
            sys.stdout.write(" ".join(str(worker.process.pid) for worker in crew.workers) + "\n")
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        made.append(line.pk)
        return render(self, line)

    def noted(self, *arguments):
        start(self, *arguments)
        crews.append(self)
        while fate != "workers are slow" and not all(w.pipe.poll() for w in self.workers):
            time.sleep(0.01)

    made = []
    PageBuilder.render, Crew.__init__ = slowly, noted
    call_command("build_sitemaps", workers=3, verbosity=0)
    from django_sitemapkit.builds import preview
    from django_sitemapkit.sites import all_sites

    (site,) = all_sites()
    files = preview(site).files
    states = {file.state for file in files}
    sys.stdout.write(f"{len(made)} of {len(files)} here, {states}\n")
    sys.stdout.write(f"{sum(file.urls for file in files)} URLs\n")


if __name__ == "__main__":
    main(sys.argv[1])
