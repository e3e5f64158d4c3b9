"""Builds that changed rows ask for: ``SITEMAPKIT_REBUILD = "on_change"``.

A save only notes its model in memory, once its transaction has committed. A few seconds later a
thread of its own asks for one build of each site that lists rows of these models, so that neither
the database nor a queue delays a save, or makes it fail.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db import transaction
from django.db.models import Model
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from django_sitemapkit.builds.requests import (
    record_message_if_due,
    record_request,
    start_processing_on_commit,
)
from django_sitemapkit.conf import caching_sites, settings
from django_sitemapkit.identities import identity_model
from django_sitemapkit.models import BuildRequest
from django_sitemapkit.printable import logger
from django_sitemapkit.reading import reader_of
from django_sitemapkit.registry import belongs_to, registry
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import SitemapSite, all_sites
from django_sitemapkit.tenants import BackgroundJobs, current_tenants

DELAY_SECONDS = 5.0
"""Seconds from the first change to the request for a build; what changes meanwhile is in it."""


def model_changed(
    sender: type[Model], *, using: str | None = None, raw: bool = False, **kwargs: Any
) -> None:
    """Ask for a build of each site that lists rows of a model, once the transaction has committed.

    It returns at once, and never raises: what fails later is logged. Saves of fixtures (``raw``)
    and of migrations are skipped. With ``SITEMAPKIT_REBUILD = "on_change"`` it is called after each
    save and delete of a model with a section. Call it yourself after what sends no signal, or
    connect it to another signal whose sender is a model::

        from django_sitemapkit.rebuild import model_changed

        Product.objects.filter(brand=brand).update(visible=False)
        model_changed(Product)
    """
    if raw or sender._meta.apps is not apps:  # A migration has models of its own.
        return

    def note_change() -> None:
        """Have the thread request builds for the model."""
        _changes.add(sender)

    try:
        transaction.on_commit(note_change, using=using, robust=True)
    except Exception:
        logger.exception("No build can be requested after a change of %s.", sender._meta.label)


@caching_sites()
def request_builds(models: Collection[type[Model]]) -> None:
    """Request and start a build of each site that lists rows of one of these models.

    With ``SITEMAPKIT_REBUILD``, only the models that any site lists are watched from then on; with
    django-tenants, all are. If no site is known, it is logged, and all remain watched.
    """
    try:
        sites, is_watching = all_sites(), settings.REBUILD == "on_change"
    except ImproperlyConfigured as error:
        logger.warning("A change requests no build: %s", error)
        return
    changed = {identity_model(model): model._meta.label_lower for model in models}
    listed: set[type[Model]] = set()
    is_complete = not current_tenants()  # Another one may list other models.
    for site in sites:
        try:
            here = listed_models_of(site)
            listed |= here
            if labels := sorted(changed[model] for model in here & changed.keys()):
                by = f"SITEMAPKIT_REBUILD: {', '.join(labels)}"
                asked = record_request(site, BuildRequest.Kind.BUILD, by=by)
                # The worker that got the message looks again by itself; a thread may have ended.
                is_waited_for = get_runner().supports_requests and not record_message_if_due(site)
                if asked.is_new or not is_waited_for:
                    start_processing_on_commit(site, get_runner)
        except Exception:
            is_complete = False
            logger.exception("Site %r: a change could not have the site built.", site.key)
    if is_watching:  # Else it was called for what sends no signal.
        _watch(model for model in apps.get_models() if identity_model(model) in listed)
        # A receiver for all models would keep Django from deleting rows of any model without
        # reading them, so it is there only until the models are known.
        if is_complete:
            _watch([None], stop=True)


_changes = BackgroundJobs(
    request_builds,
    "No build could be requested after a change.",
    delay_seconds=DELAY_SECONDS,
)

_models_by_section: WeakKeyDictionary[type[BaseSection], type[Model] | None] = WeakKeyDictionary()
"""The model that each section lists; a section that makes a list is asked for it only once."""


def listed_models_of(site: SitemapSite) -> set[type[Model]]:
    """Return the models that the sections of a site list, enabled or not.

    For a proxy or the child of an inherited table, it is the model that has the primary key.
    """
    found: set[type[Model]] = set()
    for section in registry.classes_of(site):
        if not belongs_to(section, site):
            continue
        if section not in _models_by_section:
            model = getattr(reader_of(section(site)).rows, "model", None)
            _models_by_section[section] = identity_model(model) if model else None
        if model := _models_by_section[section]:
            found.add(model)
    return found


def watch_if_set() -> None:
    """Connect ``model_changed`` to the signals of all models, or of none, as the setting says.

    Which models sections list is found out at the first change: to find them now would read the
    database while Django starts.
    """
    _watch([None, *apps.get_models()], stop=True)
    _models_by_section.clear()
    with suppress(ImproperlyConfigured):  # A system check reports it.
        if settings.REBUILD == "on_change":
            _watch([None])


def _watch(senders: Iterable[type[Model] | None], *, stop: bool = False) -> None:
    """Connect ``model_changed`` to the save and delete signals of models; None for all models.

    With ``stop`` it is disconnected from them.
    """
    for sender in senders:
        for signal in (post_save, post_delete):
            change = signal.disconnect if stop else signal.connect
            change(model_changed, sender=sender)


@receiver(setting_changed)
def _watch_changed_setting(*, setting: str, **changed: Any) -> None:
    """Follow a change of SITEMAPKIT_REBUILD, as in tests."""
    if setting == "SITEMAPKIT_REBUILD":
        watch_if_set()
